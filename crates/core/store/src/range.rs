//! Half-open ranges of keys, and what comes right after a key or a prefix.

use bytes::Bytes;

/// All keys from `start` up to, but not including, `end`; no end means to the last key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRange {
    pub start: Bytes,
    pub end: Option<Bytes>,
}

impl KeyRange {
    pub fn new(start: impl Into<Bytes>, end: Option<Bytes>) -> Self {
        Self { start: start.into(), end }
    }

    pub fn all() -> Self {
        Self::new(Bytes::new(), None)
    }

    /// All keys that begin with `prefix`.
    pub fn prefix(prefix: impl Into<Bytes>) -> Self {
        let start = prefix.into();
        let end = after_prefix(&start);
        Self { start, end }
    }

    pub fn contains(&self, key: &[u8]) -> bool {
        key >= &self.start[..] && self.end.as_ref().is_none_or(|end| key < &end[..])
    }

    pub fn is_empty(&self) -> bool {
        self.end.as_ref().is_some_and(|end| end <= &self.start)
    }

    /// The keys that are in both.
    pub fn intersect(&self, other: &Self) -> Self {
        let end = match (&self.end, &other.end) {
            (Some(a), Some(b)) => Some(a.min(b).clone()),
            (a, b) => a.as_ref().or(b.as_ref()).cloned(),
        };
        Self { start: (&self.start).max(&other.start).clone(), end }
    }

    pub fn overlaps(&self, other: &Self) -> bool {
        !self.is_empty() && !other.is_empty() && !self.intersect(other).is_empty()
    }
}

/// The first key after `key` itself.
pub fn after_key(key: &[u8]) -> Bytes {
    let mut next = Vec::with_capacity(key.len() + 1);
    next.extend_from_slice(key);
    next.push(0);
    next.into()
}

/// The first key after everything that begins with `prefix`; none if that is the end of all keys.
pub fn after_prefix(prefix: &[u8]) -> Option<Bytes> {
    let kept = prefix.iter().rposition(|byte| *byte != 0xff)?;
    let mut next = prefix[..=kept].to_vec();
    next[kept] += 1;
    Some(next.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_range_of_a_prefix_holds_exactly_what_begins_with_it() {
        for prefix in [&b""[..], b"a", b"a\xff", b"\xff\xff", b"a\x00"] {
            let range = KeyRange::prefix(prefix.to_vec());
            for key in [&b""[..], b"a", b"a\x00", b"a\xff", b"a\xff\xff\xff", b"b", b"\xff\xff\xff"]
            {
                assert_eq!(range.contains(key), key.starts_with(prefix), "{prefix:?} {key:?}");
            }
        }
    }

    #[test]
    fn nothing_lies_between_a_key_and_the_one_after_it() {
        assert_eq!(&after_key(b"a")[..], b"a\x00");
        assert_eq!(&after_key(b"")[..], b"\x00");
    }

    #[test]
    fn ranges_intersect_and_overlap() {
        let range = |a: &str, b: Option<&str>| {
            KeyRange::new(a.to_owned(), b.map(|b| Bytes::from(b.to_owned())))
        };
        assert_eq!(range("a", Some("m")).intersect(&range("c", None)), range("c", Some("m")));
        assert!(!range("a", Some("c")).overlaps(&range("c", None)));
        assert!(range("a", Some("d")).overlaps(&range("c", None)));
        assert!(!range("c", Some("c")).overlaps(&KeyRange::all()));
    }
}
