//! Numbers that commands of several types take: ranges of places, counts, cursors.

use lazuli_resp::parse_integer;

use crate::failure::Failure;

/// A part of a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    pub(crate) from: usize,
    pub(crate) count: usize,
}

/// The places from one up to another, both included; negative ones count from the end.
pub(crate) fn slice(from: i64, to: i64, len: usize) -> Cut {
    let len = len as i64;
    let place = |place: i64| if place < 0 { place.saturating_add(len) } else { place };
    let (from, to) = (place(from).max(0), place(to).min(len - 1));
    if from > to {
        return Cut { from: 0, count: 0 };
    }
    Cut { from: from as usize, count: (to - from + 1) as usize }
}

/// A number that must not be negative; whatever else is refused with the given error.
pub(crate) fn positive(text: &[u8], refused: Failure) -> Result<usize, Failure> {
    let number = parse_integer(text).and_then(|number| usize::try_from(number).ok());
    number.ok_or(refused)
}

/// A count that may be negative, of things drawn by chance.
pub(crate) fn signed_count(text: &[u8]) -> Result<i64, Failure> {
    match parse_integer(text) {
        None => Err(Failure::NOT_INTEGER),
        Some(i64::MIN) => Err(Failure::of(
            "ERR value is out of range, value must between \
             -9223372036854775807 and 9223372036854775807",
        )),
        Some(number) => Ok(number),
    }
}

/// The most elements that a command draws with repetition: beyond it the reply would take the machine's memory.
pub(crate) const DRAWS_MAX: i64 = 50_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_lies_within_the_sequence() {
        assert_eq!(slice(0, -1, 3), Cut { from: 0, count: 3 });
        assert_eq!(slice(-2, -1, 3), Cut { from: 1, count: 2 });
        assert_eq!(slice(-100, 100, 3), Cut { from: 0, count: 3 });
        assert_eq!(slice(2, 1, 3).count, 0);
        assert_eq!(slice(5, 9, 3).count, 0);
        assert_eq!(slice(i64::MIN, i64::MAX, 0).count, 0);
    }
}
