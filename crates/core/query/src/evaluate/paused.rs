//! Groups as bytes, for queries that add up over more items than one request has time for: the page ends, and the next one goes
//! on with what was added up. The bytes go to the client and come back, so they are checked as they are read.
//!
//! `keys | states`. A value: `0`, or `1 | length (4) | encoded value`. A state: `0 | count (8)`, `1 | is a sum (1) | sum (8) |
//! error (8) | count (8)`, or `2 | is poisoned (1) | value`.

use lazuli_value::{Value, View};

use super::aggregate::{Group, State, Total};
use super::{Context, value_bytes};
use crate::error::QueryError;
use crate::tree::{AggregateKind, Grouping};

const COUNT: u8 = 0;
const SUM: u8 = 1;
const EXTREME: u8 = 2;

impl Group {
    /// Appends what it takes to go on. None if it holds lists, which may be of any length.
    pub(crate) fn pause(&self, out: &mut Vec<u8>) -> Option<()> {
        self.keys.iter().for_each(|key| write_value(key.as_ref(), out));
        self.states.iter().try_for_each(|state| state.pause(out))
    }

    /// Reads what [`pause`](Self::pause) has written.
    pub(crate) fn resume(
        grouping: &Grouping,
        bytes: &mut &[u8],
        context: &Context,
    ) -> Result<Option<Self>, QueryError> {
        let Some(group) = read(grouping, bytes) else { return Ok(None) };
        let extremes = group.states.iter().filter_map(|state| match state {
            State::Extreme { best: Some(best), .. } => Some(value_bytes(best.into())),
            _ => None,
        });
        let held = extremes.sum();
        context.hold(held)?;
        Ok(Some(Self { held, ..group }))
    }
}

impl State {
    fn pause(&self, out: &mut Vec<u8>) -> Option<()> {
        match self {
            Self::Count(count) => {
                out.push(COUNT);
                out.extend_from_slice(&count.to_be_bytes());
            }
            Self::Sum { total, count } => {
                out.extend([SUM, u8::from(total.is_some())]);
                let Total { sum, error } = total.unwrap_or_default();
                out.extend_from_slice(&sum.to_be_bytes());
                out.extend_from_slice(&error.to_be_bytes());
                out.extend_from_slice(&count.to_be_bytes());
            }
            Self::Extreme { best, is_poisoned } => {
                out.extend([EXTREME, u8::from(*is_poisoned)]);
                write_value(best.as_ref(), out);
            }
            Self::List(_) | Self::Set { .. } => return None,
        }
        Some(())
    }
}

fn write_value(value: Option<&Value>, out: &mut Vec<u8>) {
    out.push(u8::from(value.is_some()));
    if let Some(value) = value {
        let encoded = value.encode();
        out.extend_from_slice(&(encoded.len() as u32).to_be_bytes());
        out.extend_from_slice(&encoded);
    }
}

fn read(grouping: &Grouping, bytes: &mut &[u8]) -> Option<Group> {
    let keys = grouping.keys.iter().map(|_| read_value(bytes)).collect::<Option<_>>()?;
    let kinds = grouping.aggregates.iter().map(|aggregate| aggregate.kind);
    let states = kinds.map(|kind| read_state(kind, bytes)).collect::<Option<_>>()?;
    Some(Group { keys, states, held: 0 })
}

fn read_state(kind: AggregateKind, bytes: &mut &[u8]) -> Option<State> {
    let tag = byte(bytes)?;
    match (kind, tag) {
        (AggregateKind::Count | AggregateKind::CountIf, COUNT) => {
            Some(State::Count(number(bytes)?))
        }
        (AggregateKind::Sum | AggregateKind::Average, SUM) => {
            let is_sum = flag(bytes)?;
            let (sum, error) = (f64::from_bits(number(bytes)?), f64::from_bits(number(bytes)?));
            let total = is_sum.then_some(Total { sum, error });
            Some(State::Sum { total, count: number(bytes)? })
        }
        (AggregateKind::Min | AggregateKind::Max, EXTREME) => {
            let is_poisoned = flag(bytes)?;
            Some(State::Extreme { best: read_value(bytes)?, is_poisoned })
        }
        _ => None,
    }
}

/// A value, or that there is none; the outer none means that the bytes are no value.
fn read_value(bytes: &mut &[u8]) -> Option<Option<Value>> {
    if !flag(bytes)? {
        return Some(None);
    }
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let (value, rest) = rest.split_at_checked(u32::from_be_bytes(*length) as usize)?;
    *bytes = rest;
    Some(Some(View::parse(value).ok()?.to_value()))
}

fn flag(bytes: &mut &[u8]) -> Option<bool> {
    match byte(bytes)? {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    }
}

fn byte(bytes: &mut &[u8]) -> Option<u8> {
    let (first, rest) = bytes.split_first()?;
    *bytes = rest;
    Some(*first)
}

fn number(bytes: &mut &[u8]) -> Option<u64> {
    let (number, rest) = bytes.split_first_chunk::<8>()?;
    *bytes = rest;
    Some(u64::from_be_bytes(*number))
}
