//! Aggregates: the state that rows are added to, and what it comes to.

use std::collections::BTreeSet;

use lazuli_value::{Kind, Value, ValueRef, canonical_hash, compare};

use super::{Context, Datum, Frame, append_sort_key, evaluate, value_bytes};
use crate::error::QueryError;
use crate::tree::{AggregateKind, Grouping};

/// The state of one aggregate of one group.
#[derive(Debug)]
pub(super) enum State {
    Count(u64),
    /// Numbers so far; `None` once something else than a number came.
    Sum {
        total: Option<Total>,
        count: u64,
    },
    /// The best value so far, and whether an array or object came, which has no place in the order.
    Extreme {
        best: Option<Value>,
        is_poisoned: bool,
    },
    List(Vec<Value>),
    Set {
        seen: BTreeSet<u128>,
        values: Vec<Value>,
    },
}

/// A sum with the error that rounding has made so far, so that the order of the rows does not show in the result.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Total {
    pub(super) sum: f64,
    pub(super) error: f64,
}

impl Total {
    fn plus(self, number: f64) -> Self {
        let sum = self.sum + number;
        let rounded = sum - self.sum;
        let error = (self.sum - (sum - rounded)) + (number - rounded);
        Self { sum, error: self.error + error }
    }

    fn value(self) -> f64 {
        self.sum + self.error
    }
}

/// A group: its keys, and the states of its aggregates.
#[derive(Debug)]
pub(crate) struct Group {
    pub(super) keys: Vec<Option<Value>>,
    pub(super) states: Vec<State>,
    /// Bytes of the query's memory that its aggregates hold.
    pub(super) held: usize,
}

/// The keys of a row's group, as bytes that are equal for equal keys and sort by them.
pub(crate) fn group_key(
    grouping: &Grouping,
    frame: Option<&Frame<'_>>,
    context: &Context,
) -> Result<Vec<u8>, QueryError> {
    let mut key = Vec::new();
    for expression in &grouping.keys {
        let value = evaluate(expression, frame, context)?;
        append_sort_key(value.as_ref().map(Datum::as_ref), false, &mut key);
    }
    Ok(key)
}

impl Group {
    /// The group that a row begins, still without the row.
    pub(crate) fn new(
        grouping: &Grouping,
        frame: Option<&Frame<'_>>,
        context: &Context,
    ) -> Result<Self, QueryError> {
        let mut keys = Vec::with_capacity(grouping.keys.len());
        for expression in &grouping.keys {
            keys.push(evaluate(expression, frame, context)?.map(Datum::into_value));
        }
        let states = grouping.aggregates.iter().map(|it| State::new(it.kind)).collect();
        Ok(Self { keys, states, held: 0 })
    }

    /// The group of no rows at all, for aggregates without keys.
    pub(crate) fn empty(grouping: &Grouping) -> Self {
        let states = grouping.aggregates.iter().map(|it| State::new(it.kind)).collect();
        Self { keys: Vec::new(), states, held: 0 }
    }

    pub(crate) fn bytes(&self) -> usize {
        let keys = self.keys.iter().flatten().map(|key| value_bytes(key.into()));
        keys.sum::<usize>() + 64 * (1 + self.states.len())
    }

    /// Gives the memory back that its aggregates hold, because the group is dropped.
    pub(crate) fn release(self, context: &Context) {
        context.release(self.held);
    }

    pub(crate) fn add(
        &mut self,
        grouping: &Grouping,
        frame: Option<&Frame<'_>>,
        context: &Context,
    ) -> Result<(), QueryError> {
        for (state, aggregate) in self.states.iter_mut().zip(&grouping.aggregates) {
            if let Some(value) = evaluate(&aggregate.argument, frame, context)? {
                self.held = state.add(aggregate.kind, value.as_ref(), self.held, context)?;
            }
        }
        Ok(())
    }

    /// Adds rows of which only the number is known. Right only where every argument is defined for all of them.
    pub(crate) fn add_count(&mut self, rows: u64) {
        for state in &mut self.states {
            if let State::Count(count) = state {
                *count += rows;
            }
        }
    }

    /// The keys and the results, as the slots after grouping hold them.
    pub(crate) fn finish(self, grouping: &Grouping) -> Vec<Option<Value>> {
        let mut slots = self.keys;
        let kinds = grouping.aggregates.iter().map(|aggregate| aggregate.kind);
        slots.extend(self.states.into_iter().zip(kinds).map(|(state, kind)| state.finish(kind)));
        slots
    }
}

impl State {
    fn new(kind: AggregateKind) -> Self {
        match kind {
            AggregateKind::Count | AggregateKind::CountIf => Self::Count(0),
            AggregateKind::Sum | AggregateKind::Average => {
                Self::Sum { total: Some(Total::default()), count: 0 }
            }
            AggregateKind::Max | AggregateKind::Min => {
                Self::Extreme { best: None, is_poisoned: false }
            }
            AggregateKind::MakeList => Self::List(Vec::new()),
            AggregateKind::MakeSet => Self::Set { seen: BTreeSet::new(), values: Vec::new() },
        }
    }

    /// Adds a value. Takes and gives how many bytes of the query's memory the group holds.
    fn add(
        &mut self,
        kind: AggregateKind,
        value: ValueRef<'_>,
        held: usize,
        context: &Context,
    ) -> Result<usize, QueryError> {
        let hold = || {
            let bytes = value_bytes(value);
            context.hold(bytes).map(|()| held + bytes)
        };
        match self {
            Self::Count(count) => {
                let counts = kind == AggregateKind::Count || value.as_bool() == Some(true);
                *count += u64::from(counts);
            }
            Self::Sum { total, count } => {
                *total = total.zip(value.as_f64()).map(|(total, number)| total.plus(number));
                *count += 1;
            }
            Self::Extreme { best, is_poisoned } => {
                if matches!(value.kind(), Kind::Array | Kind::Object) {
                    *is_poisoned = true;
                    return Ok(held);
                }
                let is_better = best.as_ref().is_none_or(|best| {
                    let order = compare(value, best.into());
                    if kind == AggregateKind::Max { order.is_gt() } else { order.is_lt() }
                });
                if is_better {
                    let held = hold()?;
                    let former = best.replace(value.to_value());
                    let bytes = former.map_or(0, |former| value_bytes((&former).into()));
                    context.release(bytes);
                    return Ok(held - bytes);
                }
            }
            Self::List(values) => {
                values.push(value.to_value());
                return hold();
            }
            Self::Set { seen, values } => {
                if seen.insert(canonical_hash(value)) {
                    values.push(value.to_value());
                    return hold();
                }
            }
        }
        Ok(held)
    }

    fn finish(self, kind: AggregateKind) -> Option<Value> {
        match self {
            Self::Count(count) => Some(Value::Int64(i64::try_from(count).unwrap_or(i64::MAX))),
            Self::Sum { total, count } if kind == AggregateKind::Average => {
                let average = total.filter(|_| count > 0).map(|total| total.value() / count as f64);
                average.and_then(Value::number)
            }
            Self::Sum { total, .. } => total.and_then(|total| Value::number(total.value())),
            Self::Extreme { best, is_poisoned } => best.filter(|_| !is_poisoned),
            Self::List(values) | Self::Set { values, .. } => Some(Value::Array(values)),
        }
    }
}
