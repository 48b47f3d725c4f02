//! Rows of a level: all combinations of its sources that pass its filter, and for subqueries everything after that.

use std::collections::BTreeMap;

use lazuli_value::{Value, ValueRef};

use super::{
    Context, Datum, Frame, Group, append_sort_key, evaluate, group_key, is_true, value_bytes,
};
use crate::error::QueryError;
use crate::tree::{Grouping, Level, Source};

/// Whether more rows are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    Continue,
    Stop,
}

type Each<'e> = &'e mut dyn FnMut(Option<&Frame<'_>>) -> Result<Flow, QueryError>;

/// Calls back for every row of the sources that passes the filter.
pub(crate) fn for_each_row(
    level: &Level,
    sources: &[Source],
    frame: Option<&Frame<'_>>,
    context: &Context,
    each: Each<'_>,
) -> Result<Flow, QueryError> {
    let Some((source, rest)) = sources.split_first() else {
        context.count_row()?;
        if let Some(filter) = &level.filter
            && !is_true(filter, frame, context)?
        {
            return Ok(Flow::Continue);
        }
        return each(frame);
    };
    let mut bind = |value: ValueRef<'_>| {
        let bound = Frame::on(frame, Some(value));
        for_each_row(level, rest, Some(&bound), context, each)
    };
    match source {
        // Items come from outside and are bound before.
        Source::Items => Ok(Flow::Continue),
        Source::Value(expression) => match evaluate(expression, frame, context)? {
            Some(value) => bind(value.as_ref()),
            None => Ok(Flow::Continue),
        },
        Source::Each(expression) => match evaluate(expression, frame, context)? {
            Some(value) => elements(value.as_ref(), &mut bind),
            None => Ok(Flow::Continue),
        },
        Source::Rows(inner) => run(inner, frame, context, &mut |row| bind(row.as_ref())),
        Source::EachOfRows(inner) => {
            run(inner, frame, context, &mut |row| elements(row.as_ref(), &mut bind))
        }
    }
}

fn elements(
    value: ValueRef<'_>,
    bind: &mut dyn FnMut(ValueRef<'_>) -> Result<Flow, QueryError>,
) -> Result<Flow, QueryError> {
    for element in value.as_array().into_iter().flat_map(|array| array.iter()) {
        if bind(element)? == Flow::Stop {
            return Ok(Flow::Stop);
        }
    }
    Ok(Flow::Continue)
}

/// Takes the rows that a subquery gives.
type Emit<'e> = &'e mut dyn FnMut(Datum<'_>) -> Result<Flow, QueryError>;

/// Runs a subquery to its end, or until no more rows are wanted.
pub(crate) fn run(
    level: &Level,
    frame: Option<&Frame<'_>>,
    context: &Context,
    emit: Emit<'_>,
) -> Result<Flow, QueryError> {
    let held = context.held();
    let mut window = Window { skip: level.offset, left: level.limit, wish: Flow::Continue };
    let mut emit = |row: Datum<'_>| window.pass(row, emit);
    if let Some(grouping) = &level.grouping {
        let groups = groups(level, grouping, frame, context)?;
        output_groups(level, grouping, groups, frame, context, &mut emit)?;
    } else if !level.sort.is_empty() || level.is_distinct {
        let rows = sorted(level, frame, context)?;
        emit_all(rows.into_values(), &mut emit)?;
    } else {
        for_each_row(level, &level.sources, frame, context, &mut |row| {
            let value = evaluate(&level.output, row, context)?;
            value.map_or(Ok(Flow::Continue), &mut emit)
        })?;
    }
    context.release(context.held().saturating_sub(held));
    Ok(window.wish)
}

/// OFFSET and LIMIT.
struct Window {
    skip: u64,
    left: Option<u64>,
    /// What the taker of the rows wants. That this level has given all its rows is no reason for it to stop.
    wish: Flow,
}

impl Window {
    fn pass(&mut self, row: Datum<'_>, emit: Emit<'_>) -> Result<Flow, QueryError> {
        if self.left == Some(0) {
            return Ok(Flow::Stop);
        }
        if self.skip > 0 {
            self.skip -= 1;
            return Ok(Flow::Continue);
        }
        self.wish = emit(row)?;
        self.left = self.left.map(|left| left - 1);
        Ok(if self.left == Some(0) { Flow::Stop } else { self.wish })
    }
}

fn emit_all(rows: impl Iterator<Item = Value>, emit: Emit<'_>) -> Result<Flow, QueryError> {
    for row in rows {
        if emit(row.into())? == Flow::Stop {
            return Ok(Flow::Stop);
        }
    }
    Ok(Flow::Continue)
}

fn groups(
    level: &Level,
    grouping: &Grouping,
    frame: Option<&Frame<'_>>,
    context: &Context,
) -> Result<BTreeMap<Vec<u8>, Group>, QueryError> {
    let mut groups = BTreeMap::new();
    for_each_row(level, &level.sources, frame, context, &mut |row| {
        let key = group_key(grouping, row, context)?;
        let group = match groups.entry(key) {
            std::collections::btree_map::Entry::Occupied(entry) => entry.into_mut(),
            std::collections::btree_map::Entry::Vacant(entry) => {
                let group = Group::new(grouping, row, context)?;
                context.hold(group.bytes() + entry.key().len())?;
                entry.insert(group)
            }
        };
        group.add(grouping, row, context)?;
        Ok(Flow::Continue)
    })?;
    if grouping.keys.is_empty() && groups.is_empty() {
        groups.insert(Vec::new(), Group::empty(grouping));
    }
    Ok(groups)
}

fn output_groups(
    level: &Level,
    grouping: &Grouping,
    groups: BTreeMap<Vec<u8>, Group>,
    frame: Option<&Frame<'_>>,
    context: &Context,
    emit: Emit<'_>,
) -> Result<Flow, QueryError> {
    let mut seen = std::collections::BTreeSet::new();
    for group in groups.into_values() {
        let slots = group.finish(grouping);
        let row = output_of_slots(level, &slots, frame, context)?;
        let Some(row) = row else { continue };
        if level.is_distinct && !seen.insert(lazuli_value::canonical_hash((&row).into())) {
            continue;
        }
        if emit(row.into())? == Flow::Stop {
            return Ok(Flow::Stop);
        }
    }
    Ok(Flow::Continue)
}

/// The output of a group whose keys and results are in slots.
pub(crate) fn output_of_slots(
    level: &Level,
    slots: &[Option<Value>],
    frame: Option<&Frame<'_>>,
    context: &Context,
) -> Result<Option<Value>, QueryError> {
    match slots.split_first() {
        None => Ok(evaluate(&level.output, frame, context)?.map(Datum::into_value)),
        Some((first, rest)) => {
            let bound = Frame::on(frame, first.as_ref().map(ValueRef::from));
            output_of_slots(level, rest, Some(&bound), context)
        }
    }
}

/// All rows by sort key. Of rows that are the same, DISTINCT leaves one; otherwise a counter keeps them apart.
fn sorted(
    level: &Level,
    frame: Option<&Frame<'_>>,
    context: &Context,
) -> Result<BTreeMap<Vec<u8>, Value>, QueryError> {
    let mut rows = BTreeMap::new();
    let mut counter = 0_u64;
    for_each_row(level, &level.sources, frame, context, &mut |row| {
        let Some(value) = evaluate(&level.output, row, context)? else {
            return Ok(Flow::Continue);
        };
        let mut key = Vec::new();
        for sort in &level.sort {
            let by = evaluate(&sort.expression, row, context)?;
            append_sort_key(by.as_ref().map(Datum::as_ref), sort.is_descending, &mut key);
        }
        if level.is_distinct {
            append_sort_key(Some(value.as_ref()), false, &mut key);
        } else {
            key.extend_from_slice(&counter.to_be_bytes());
            counter += 1;
        }
        context.hold(key.len() + value_bytes(value.as_ref()))?;
        rows.insert(key, value.into_value());
        Ok(Flow::Continue)
    })?;
    Ok(rows)
}
