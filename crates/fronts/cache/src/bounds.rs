//! Bounds of ranges of sorted sets: by score and by the bytes of members.

use lazuli_keyspace::types::SortedSet;
use lazuli_resp::parse_double;

use crate::failure::Failure;
use crate::range::{Cut, slice};

/// An end of a range of scores.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Score {
    value: f64,
    is_exclusive: bool,
}

impl Score {
    fn parse(text: &[u8]) -> Result<Self, Failure> {
        let (is_exclusive, text) = match text {
            [b'(', text @ ..] => (true, text),
            text => (false, text),
        };
        // An empty text is zero, as it is to C.
        let value = if text.is_empty() { Some(0.0) } else { parse_double(text) };
        let value = value.ok_or(const { Failure::of("ERR min or max is not a float") })?;
        Ok(Self { value, is_exclusive })
    }
}

/// An end of a range of members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lex<'a> {
    Lowest,
    Highest,
    Inclusive(&'a [u8]),
    Exclusive(&'a [u8]),
}

impl<'a> Lex<'a> {
    fn parse(text: &'a [u8]) -> Result<Self, Failure> {
        match text {
            b"-" => Ok(Self::Lowest),
            b"+" => Ok(Self::Highest),
            [b'[', member @ ..] => Ok(Self::Inclusive(member)),
            [b'(', member @ ..] => Ok(Self::Exclusive(member)),
            _ => Err(Failure::of("ERR min or max not valid string range item")),
        }
    }
}

/// A range of a sorted set.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Bounds<'a> {
    Ranks(i64, i64),
    Scores(ScoreBounds),
    Members(LexBounds<'a>),
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct ScoreBounds {
    from: Score,
    to: Score,
}

impl ScoreBounds {
    pub(crate) fn parse(from: &[u8], to: &[u8]) -> Result<Self, Failure> {
        Ok(Self { from: Score::parse(from)?, to: Score::parse(to)? })
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct LexBounds<'a> {
    from: Lex<'a>,
    to: Lex<'a>,
}

impl<'a> LexBounds<'a> {
    pub(crate) fn parse(from: &'a [u8], to: &'a [u8]) -> Result<Self, Failure> {
        Ok(Self { from: Lex::parse(from)?, to: Lex::parse(to)? })
    }
}

impl Bounds<'_> {
    /// The ranks inside, from the lowest; with `is_reverse` ranks are counted from the highest.
    pub(crate) fn find(&self, zset: &SortedSet, is_reverse: bool) -> Cut {
        let (low, high) = match self {
            Self::Ranks(from, to) => return slice(*from, *to, zset.len()),
            Self::Scores(bounds) => scores(zset, bounds),
            Self::Members(bounds) => members(zset, bounds),
        };
        if low >= high {
            return Cut { from: 0, count: 0 };
        }
        Cut { from: if is_reverse { zset.len() - high } else { low }, count: high - low }
    }
}

/// How many members are below a range, and how many are below its end.
fn scores(zset: &SortedSet, bounds: &ScoreBounds) -> (usize, usize) {
    let ScoreBounds { from, to } = *bounds;
    let low = zset
        .partition(&|score, _| score < from.value || (from.is_exclusive && score == from.value));
    let high =
        zset.partition(&|score, _| score < to.value || (!to.is_exclusive && score == to.value));
    (low, high)
}

fn members(zset: &SortedSet, bounds: &LexBounds<'_>) -> (usize, usize) {
    let low = zset.partition(&|_, member| match bounds.from {
        Lex::Lowest => false,
        Lex::Highest => true,
        Lex::Inclusive(bound) => member < bound,
        Lex::Exclusive(bound) => member <= bound,
    });
    let high = zset.partition(&|_, member| match bounds.to {
        Lex::Lowest => false,
        Lex::Highest => true,
        Lex::Inclusive(bound) => member <= bound,
        Lex::Exclusive(bound) => member < bound,
    });
    (low, high)
}
