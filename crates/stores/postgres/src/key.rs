//! Keys as rows have them. An index row of PostgreSQL holds less than a key may have, so a key is cut in two: the *head* is in
//! the index, the *tail* is not, and a hash of the tail keeps the rows of one head apart.

use bytes::Bytes;
use lazuli_store::KeyRange;
use sha2::{Digest, Sha256};

use crate::limits::KEY_HEAD_BYTES;

/// Columns `p`, `h` and `s` of a key.
pub(crate) struct Columns<'k> {
    pub(crate) head: &'k [u8],
    /// Empty, or the SHA-256 of the tail.
    pub(crate) hash: Vec<u8>,
    pub(crate) tail: &'k [u8],
}

pub(crate) fn columns(key: &[u8]) -> Columns<'_> {
    let (head, tail) = cut(key);
    let hash = if tail.is_empty() { Vec::new() } else { Sha256::digest(tail).to_vec() };
    Columns { head, hash, tail }
}

/// Head and tail.
pub(crate) fn cut(key: &[u8]) -> (&[u8], &[u8]) {
    key.split_at(key.len().min(KEY_HEAD_BYTES))
}

pub(crate) fn joined(head: &[u8], tail: &[u8]) -> Bytes {
    match tail.is_empty() {
        true => Bytes::copy_from_slice(head),
        false => [head, tail].concat().into(),
    }
}

/// Many keys, as arrays for `unnest`.
#[derive(Default)]
pub(crate) struct Arrays<'k> {
    pub(crate) heads: Vec<&'k [u8]>,
    pub(crate) hashes: Vec<Vec<u8>>,
    pub(crate) tails: Vec<&'k [u8]>,
}

impl<'k> Arrays<'k> {
    pub(crate) fn of(keys: impl IntoIterator<Item = &'k Bytes>) -> Self {
        let mut arrays = Self::default();
        for key in keys {
            let Columns { head, hash, tail } = columns(key);
            arrays.heads.push(head);
            arrays.hashes.push(hash);
            arrays.tails.push(tail);
        }
        arrays
    }

    pub(crate) fn count(&self) -> i64 {
        self.heads.len() as i64
    }
}

/// The bounds of a range. A key of the range has a head from `start.0` to `end.0`, both included; heads that equal a bound have
/// tails from `start.1` on and below `end.1`.
pub(crate) struct Bounds {
    pub(crate) start: (Bytes, Bytes),
    pub(crate) end: (Bytes, Bytes),
}

impl Bounds {
    pub(crate) fn of(range: &KeyRange) -> Self {
        let owned = |key: &Bytes| {
            let (head, tail) = cut(key);
            (key.slice_ref(head), key.slice_ref(tail))
        };
        // No head is as long as this.
        let last = || Bytes::from(vec![0xff; KEY_HEAD_BYTES + 1]);
        let end = range.end.as_ref().map_or_else(|| (last(), Bytes::new()), owned);
        Self { start: owned(&range.start), end }
    }

    /// Whether heads alone tell which keys belong to the range: `start.0 <= head < end.0`.
    pub(crate) fn are_heads(&self) -> bool {
        self.start.1.is_empty() && self.end.1.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_bounds(key: &[u8], bounds: &Bounds) -> bool {
        let (head, tail) = cut(key);
        let (start, end) = (&bounds.start, &bounds.end);
        let slow = (head > &start.0[..] || (head == &start.0[..] && tail >= &start.1[..]))
            && (head < &end.0[..] || (head == &end.0[..] && tail < &end.1[..]));
        if bounds.are_heads() {
            assert_eq!(slow, head >= &start.0[..] && head < &end.0[..]);
        }
        slow
    }

    #[test]
    fn bounds_of_heads_and_tails_hold_exactly_the_keys_of_a_range() {
        let long = |byte: u8, length: usize| Bytes::from(vec![byte; length]);
        let mut keys = vec![Bytes::new(), long(b'a', 1), long(0xff, 16_000)];
        for length in [1_999, 2_000, 2_001, 2_002, 4_000] {
            keys.extend([long(b'a', length), long(b'b', length)]);
            let mut other = vec![b'a'; length];
            other[length - 1] = b'A';
            keys.push(other.into());
        }
        for start in &keys {
            for end in keys.iter().cloned().map(Some).chain([None]) {
                let range = KeyRange::new(start.clone(), end);
                let bounds = Bounds::of(&range);
                for key in &keys {
                    assert_eq!(in_bounds(key, &bounds), range.contains(key));
                }
            }
        }
    }

    #[test]
    fn a_key_is_put_together_again() {
        for length in [0, 1, KEY_HEAD_BYTES, KEY_HEAD_BYTES + 1, 16 * 1024] {
            let key = vec![7; length];
            let Columns { head, hash, tail } = columns(&key);
            assert_eq!(joined(head, tail), key);
            assert_eq!(hash.is_empty(), length <= KEY_HEAD_BYTES);
        }
    }
}
