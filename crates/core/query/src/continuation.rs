//! Continuations: what a query needs to go on after a page, in another process and after splits and moves.

use crate::error::{ErrorKind, QueryError};
use crate::limits::CONTINUATION_BYTES_MAX;

/// The first byte of an encoded continuation.
const FORMAT: u8 = 1;

/// Where a query goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Continuation {
    /// The query and parameters that it belongs to ([`crate::Query::fingerprint`]).
    pub fingerprint: u64,
    /// Rows that are still to be skipped.
    pub offset: u64,
    /// Rows that are still to be given, if their number is limited.
    pub limit: Option<u64>,
    pub position: Position,
}

/// The last row that was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Position {
    /// The query streams: it goes on behind an item of the source.
    Item {
        /// The item's place in the order of the source, as it was pushed; empty if the page ended before the first.
        place: Vec<u8>,
        /// If the item has rows left, it is pushed again, and so many of its rows were given.
        rows: Option<u64>,
    },
    /// The query sorts or groups: all items are pushed again, and rows up to this sort key are left out.
    Key(Vec<u8>),
    /// The query adds up, and the page ended before all items were pushed: it goes on behind an item of the source, with what
    /// was added up so far.
    Sums { place: Vec<u8>, state: Vec<u8> },
}

impl Position {
    /// Before the first item. Places of items are not empty.
    pub(crate) const START: Self = Self::Item { place: Vec::new(), rows: None };

    /// Whether the item at this place was done with before: it is not to be pushed again. Places are compared as bytes.
    pub fn is_behind(&self, place: &[u8]) -> bool {
        match self {
            Self::Item { place: last, rows: None } => !last.is_empty() && place <= last.as_slice(),
            Self::Item { place: last, rows: Some(_) } => place < last.as_slice(),
            Self::Key(_) => false,
            Self::Sums { place: last, .. } => place <= last.as_slice(),
        }
    }

    /// Whether an item has rows left.
    pub(crate) fn is_inside(&self) -> bool {
        matches!(self, Self::Item { rows: Some(_), .. })
    }
}

impl Continuation {
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![FORMAT];
        out.extend_from_slice(&self.fingerprint.to_be_bytes());
        out.extend_from_slice(&self.offset.to_be_bytes());
        optional(self.limit, &mut out);
        match &self.position {
            Position::Item { place, rows } => {
                out.push(0);
                optional(*rows, &mut out);
                out.extend_from_slice(place);
            }
            Position::Key(key) => {
                out.push(1);
                out.extend_from_slice(key);
            }
            Position::Sums { place, state } => {
                out.push(2);
                out.extend_from_slice(&(place.len() as u64).to_be_bytes());
                out.extend_from_slice(place);
                out.extend_from_slice(state);
            }
        }
        out
    }

    /// Whether the item at this place was done with before: it is not to be pushed again.
    pub fn is_behind(&self, place: &[u8]) -> bool {
        self.position.is_behind(place)
    }

    /// Reads what [`encode`](Self::encode) wrote.
    pub fn decode(bytes: &[u8]) -> Result<Self, QueryError> {
        read(bytes).ok_or_else(|| {
            QueryError::new(ErrorKind::Continuation, "The continuation token is malformed.")
        })
    }
}

fn read(bytes: &[u8]) -> Option<Continuation> {
    if bytes.len() > CONTINUATION_BYTES_MAX {
        return None;
    }
    let (&FORMAT, rest) = bytes.split_first()? else { return None };
    let (fingerprint, rest) = number(rest)?;
    let (offset, rest) = number(rest)?;
    let (limit, rest) = take_optional(rest)?;
    let position = match rest.split_first()? {
        (0, rest) => {
            let (rows, place) = take_optional(rest)?;
            Position::Item { place: place.to_vec(), rows }
        }
        (1, key) => Position::Key(key.to_vec()),
        (2, rest) => {
            let (length, rest) = number(rest)?;
            let (place, state) = rest.split_at_checked(usize::try_from(length).ok()?)?;
            Position::Sums { place: place.to_vec(), state: state.to_vec() }
        }
        _ => return None,
    };
    Some(Continuation { fingerprint, offset, limit, position })
}

fn optional(number: Option<u64>, out: &mut Vec<u8>) {
    out.push(u8::from(number.is_some()));
    out.extend(number.into_iter().flat_map(u64::to_be_bytes));
}

fn take_optional(bytes: &[u8]) -> Option<(Option<u64>, &[u8])> {
    match bytes.split_first()? {
        (0, rest) => Some((None, rest)),
        (1, rest) => number(rest).map(|(number, rest)| (Some(number), rest)),
        _ => None,
    }
}

fn number(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (number, rest) = bytes.split_first_chunk::<8>()?;
    Some((u64::from_be_bytes(*number), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn continuations_come_back_as_they_were() {
        let positions = [
            Position::Item { place: vec![1, 2, 3], rows: Some(4) },
            Position::Item { place: Vec::new(), rows: None },
            Position::Key(vec![0xff; 300]),
            Position::Sums { place: vec![1; 9], state: vec![2; 30] },
        ];
        for position in positions {
            for limit in [None, Some(7)] {
                let one =
                    Continuation { fingerprint: 9, offset: 5, limit, position: position.clone() };
                let bytes = one.encode();
                assert_eq!(Continuation::decode(&bytes), Ok(one));
                for length in 0..20 {
                    assert!(Continuation::decode(&bytes[..length.min(17)]).is_err());
                }
            }
        }
        assert!(Continuation::decode(&[2; 40]).is_err());
    }
}
