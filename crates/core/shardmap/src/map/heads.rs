//! Heads: the eight bytes of a key behind what it has in common with its neighbours, as a number.
//!
//! Numbers side by side are searched without going where the keys are, and memory is what a lookup
//! in a large map waits for.

use std::ops::Range;

/// Up to so many heads a search looks at all of them: memory delivers lines in a row faster than it
/// does one after another.
const SCAN_MAX: usize = 64;

/// The head of what is left of a key, filled up with zeros. A smaller one belongs to a smaller key;
/// of two keys with the same head either may be the smaller one.
pub(super) fn head(rest: &[u8]) -> u64 {
    match rest.first_chunk() {
        Some(bytes) => u64::from_be_bytes(*bytes),
        None => rest.iter().rev().fold(0, |head, byte| head >> 8 | u64::from(*byte) << 56),
    }
}

/// How many bytes both begin with.
pub(super) fn common(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

/// How many of these sorted heads are smaller than this one.
pub(super) fn below(heads: &[u64], head: u64) -> usize {
    if heads.len() <= SCAN_MAX {
        heads.iter().filter(|other| **other < head).count()
    } else {
        heads.partition_point(|other| *other < head)
    }
}

/// Where this key is among keys that all begin with `prefix` and have these heads: those before the
/// range are smaller, those behind it are larger, and those in it have the same head.
pub(super) fn search(heads: &[u64], prefix: &[u8], key: &[u8]) -> Range<usize> {
    let Some(rest) = key.strip_prefix(prefix) else {
        let place = if key < prefix { 0 } else { heads.len() };
        return place..place;
    };
    let head = head(rest);
    let from = below(heads, head);
    from..from + heads[from..].partition_point(|other| *other == head)
}
