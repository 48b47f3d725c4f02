//! Ranges of order keys.

use lazuli_value::{
    Kind, ValueRef, key_is_cut, kind_bounds, order_key, order_key_length, string_prefix_key,
};

/// Order keys from one, included, to another, excluded. Bounds may be beginnings of keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRange {
    pub from: Vec<u8>,
    pub to: Vec<u8>,
}

/// The first bytes that do not begin like these.
fn behind(prefix: &[u8]) -> Vec<u8> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if last < 0xff {
            end.push(last + 1);
            break;
        }
    }
    end
}

impl KeyRange {
    /// All keys that begin with these bytes. Order keys never begin with 0xff, so the end exists.
    pub fn prefix(prefix: Vec<u8>) -> Self {
        Self { to: behind(&prefix), from: prefix }
    }

    /// The keys of values equal to this one.
    pub fn equal(value: ValueRef<'_>) -> Self {
        Self::prefix(key(value))
    }

    /// The keys of all values of a kind.
    pub fn kind(kind: Kind) -> Self {
        let (from, to) = kind_bounds(kind);
        Self { from: vec![from], to: vec![to] }
    }

    /// The keys of all values there are.
    pub fn all() -> Self {
        Self { from: Vec::new(), to: vec![0xff] }
    }

    /// The keys of strings that begin with this text.
    pub fn beginning(text: &str) -> Self {
        let mut prefix = Vec::new();
        string_prefix_key(text, &mut prefix);
        Self::prefix(prefix)
    }

    /// The keys of values of the same kind that are less than this one, or greater, or also equal. Of a value whose key
    /// is cut, all values with the same beginning are included, because their order is not that of the keys.
    pub fn beside(value: ValueRef<'_>, is_less: bool, or_equal: bool) -> Self {
        let kind = Self::kind(value.kind());
        let key = key(value);
        let (key, or_equal) = match key_is_cut(&key) {
            true => (uncut(value, &key), true),
            false => (key, or_equal),
        };
        match (is_less, or_equal) {
            (true, true) => Self { from: kind.from, to: behind(&key) },
            (true, false) => Self { from: kind.from, to: key },
            (false, true) => Self { from: key, to: kind.to },
            (false, false) => Self { from: behind(&key), to: kind.to },
        }
    }

    /// The keys of values in this range as parts of longer keys: these bytes come in front of them, and if they are turned,
    /// all their bits are inverted, so that they sort the other way around.
    #[must_use]
    pub(super) fn behind_key(&self, front: &[u8], is_turned: bool) -> Self {
        let join = |part: &[u8]| [front, part].concat();
        if !is_turned {
            return Self { from: join(&self.from), to: join(&self.to) };
        }
        let turned = |part: &[u8]| part.iter().map(|byte| !byte).collect::<Vec<u8>>();
        // Order keys never begin with 0xff, so turned ones never begin with zero, nor with 0xff.
        let end = match self.from.is_empty() {
            true => vec![0xff],
            false => behind(&turned(&self.from)),
        };
        Self { from: join(&behind(&turned(&self.to))), to: join(&end) }
    }

    /// Whether it holds the keys of exactly one value.
    pub fn is_one_value(&self) -> bool {
        order_key_length(&self.from) == Some(self.from.len()) && self.to == behind(&self.from)
    }

    pub fn is_empty(&self) -> bool {
        self.from >= self.to
    }

    /// The keys in both.
    #[must_use]
    pub fn and(&self, other: &KeyRange) -> Self {
        let from = self.from.clone().max(other.from.clone());
        Self { from, to: self.to.clone().min(other.to.clone()) }
    }

    pub fn contains(&self, key: &[u8]) -> bool {
        key >= self.from.as_slice() && key < self.to.as_slice()
    }
}

fn key(value: ValueRef<'_>) -> Vec<u8> {
    let mut key = Vec::new();
    order_key(value, &mut key);
    key
}

/// What the cut keys of all values with the same beginning begin with.
fn uncut(value: ValueRef<'_>, key: &[u8]) -> Vec<u8> {
    match value.as_str() {
        Some(text) => {
            let mut prefix = Vec::new();
            string_prefix_key(text, &mut prefix);
            prefix
        }
        None => key[..1].to_vec(),
    }
}

/// Sorts ranges and joins those that touch.
pub(super) fn united(mut ranges: Vec<KeyRange>) -> Vec<KeyRange> {
    ranges.retain(|range| !range.is_empty());
    ranges.sort_unstable_by(|one, two| one.from.cmp(&two.from));
    let mut united: Vec<KeyRange> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match united.last_mut() {
            Some(last) if range.from <= last.to => {
                if range.to > last.to {
                    last.to = range.to;
                }
            }
            _ => united.push(range),
        }
    }
    united
}

/// The keys that are in a range of each of two lists, which are sorted and disjoint.
pub(super) fn intersected(one: &[KeyRange], two: &[KeyRange]) -> Vec<KeyRange> {
    let (mut at, mut other) = (0, 0);
    let mut both = Vec::new();
    while let (Some(first), Some(second)) = (one.get(at), two.get(other)) {
        let common = first.and(second);
        if !common.is_empty() {
            both.push(common);
        }
        // What ends first cannot meet anything that follows.
        if first.to < second.to { at += 1 } else { other += 1 }
    }
    both
}
