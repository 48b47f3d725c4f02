//! Gathering: rows that are sorted, made distinct or grouped before the first of them can be given.

use lazuli_value::{Value, ValueRef, View, order_key};

use super::output::encoded;
use super::page_capacity;
use super::ranked::Ranked;
use super::top::Top;
use crate::error::QueryError;
use crate::evaluate::{
    Context, Datum, Flow, Frame, Group, append_sort_key, evaluate, for_each_row, group_key,
    output_of_slots,
};
use crate::limits::PAUSED_BYTES_MAX;
use crate::tree::{AggregateKind, Expression, Grouping, Level, Source};

/// What is gathered.
pub(super) struct Gather {
    kind: GatherKind,
    /// Rows of the page, and its bytes.
    rows: usize,
    bytes: usize,
}

enum GatherKind {
    /// Encoded rows by sort key.
    Rows(Top<Vec<u8>>),
    /// Rows whose order is known when all of them are.
    Ranked(Ranked),
    /// Groups by their keys.
    Groups(Top<Group>),
    /// All groups, because DISTINCT can only tell in the end which of their rows are the same, and the last row given.
    AllGroups(Top<Group>, Option<Vec<u8>>),
    /// The one group of aggregates without keys.
    One(Box<Group>),
}

/// The rows of a page; if more follow, the key of the last one and how many rows there are.
pub(super) struct Gathered {
    pub(super) rows: Vec<Vec<u8>>,
    pub(super) last: Option<(Vec<u8>, u64)>,
}

impl Gather {
    pub(super) fn new(
        level: &Level,
        rows: usize,
        offset: u64,
        bytes: usize,
        after: Option<Vec<u8>>,
    ) -> Self {
        let capacity = page_capacity(rows, offset);
        // Rows that are skipped are held by number, whatever their size, so the query's memory is their limit.
        let bytes_max = if offset == 0 { Some(bytes) } else { None };
        let kind = match &level.grouping {
            None if level.ranking.is_some() => GatherKind::Ranked(Ranked::new(after)),
            None => GatherKind::Rows(Top::new(capacity, bytes_max, after)),
            Some(grouping) if grouping.keys.is_empty() => {
                GatherKind::One(Box::new(Group::empty(grouping)))
            }
            Some(_) if level.is_distinct => {
                GatherKind::AllGroups(Top::new(usize::MAX, None, None), after)
            }
            Some(_) => GatherKind::Groups(Top::new(capacity, bytes_max, after)),
        };
        Self { kind, rows, bytes }
    }

    pub(super) fn push(
        &mut self,
        level: &Level,
        sources: &[Source],
        place: &[u8],
        frame: &Frame<'_>,
        context: &Context,
    ) -> Result<(), QueryError> {
        self.push_rows(level, sources, place, Some(frame), context)
    }

    pub(super) fn push_rows(
        &mut self,
        level: &Level,
        sources: &[Source],
        place: &[u8],
        frame: Option<&Frame<'_>>,
        context: &Context,
    ) -> Result<(), QueryError> {
        let mut row_of_item = 0_u32;
        for_each_row(level, sources, frame, context, &mut |row| {
            match (&mut self.kind, &level.grouping) {
                (GatherKind::Rows(top), _) => {
                    push_row(top, level, place, row_of_item, row, context)?;
                }
                (GatherKind::Ranked(ranked), _) => {
                    let mut key = Vec::new();
                    append_place(place, row_of_item, false, &mut key);
                    ranked.push(level, key, row, context)?;
                }
                (GatherKind::Groups(top) | GatherKind::AllGroups(top, _), Some(grouping)) => {
                    push_to_group(top, grouping, row, context)?;
                }
                (GatherKind::One(group), Some(grouping)) => group.add(grouping, row, context)?,
                (_, None) => {}
            }
            row_of_item += 1;
            Ok(Flow::Continue)
        })?;
        Ok(())
    }

    /// What was added up so far, if a later page can go on with it: aggregates without keys, and few groups. Groups that were
    /// dropped because they are not on this page would be missing, and lists have no bound.
    pub(super) fn pause(&self) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        match &self.kind {
            GatherKind::One(group) => group.pause(&mut out)?,
            GatherKind::Groups(top) => top.pause(&mut out)?,
            GatherKind::Rows(_) | GatherKind::Ranked(_) | GatherKind::AllGroups(..) => return None,
        }
        (out.len() <= PAUSED_BYTES_MAX).then_some(out)
    }

    /// Goes on with what an earlier page has added up; false if that is no state of this query.
    pub(super) fn resume(
        &mut self,
        level: &Level,
        mut state: &[u8],
        context: &Context,
    ) -> Result<bool, QueryError> {
        let Some(grouping) = &level.grouping else { return Ok(false) };
        match &mut self.kind {
            GatherKind::One(one) => match Group::resume(grouping, &mut state, context)? {
                Some(group) if state.is_empty() => **one = group,
                _ => return Ok(false),
            },
            GatherKind::Groups(top) => return top.resume(grouping, state, context),
            GatherKind::Rows(_) | GatherKind::Ranked(_) | GatherKind::AllGroups(..) => {
                return Ok(false);
            }
        }
        Ok(true)
    }

    pub(super) fn push_count(&mut self, items: u64) {
        if let GatherKind::One(group) = &mut self.kind {
            group.add_count(items);
        }
    }

    pub(super) fn finish(
        self,
        level: &Level,
        context: &Context,
        offset: u64,
        limit: Option<u64>,
        has_null_extremes: bool,
    ) -> Result<Gathered, QueryError> {
        let mut page = PageOfRows { rows: self.rows, bytes: self.bytes, skip: offset, limit };
        match (self.kind, &level.grouping) {
            (GatherKind::Rows(top), _) => {
                let (entries, has_more) = top.finish();
                page.fill(entries.map(|(key, row)| Ok((key, Some(row)))), has_more)
            }
            (GatherKind::Ranked(ranked), _) => {
                let entries = ranked.finish(level).into_iter();
                page.fill(entries.map(|(key, row)| Ok((key, Some(row)))), false)
            }
            (GatherKind::Groups(top), Some(grouping)) => {
                let (entries, has_more) = top.finish();
                let rows = entries.map(|(key, group)| {
                    let row = output_of_slots(level, &group.finish(grouping), None, context)?;
                    Ok((key, row.map(|row| row.encode())))
                });
                page.fill(rows, has_more)
            }
            (GatherKind::AllGroups(top, after), Some(grouping)) => {
                let mut distinct = Top::new(page_capacity(self.rows, offset), None, after);
                for (_, group) in top.finish().0 {
                    let slots = group.finish(grouping);
                    if let Some(row) = output_of_slots(level, &slots, None, context)? {
                        let mut key = Vec::new();
                        order_key((&row).into(), &mut key);
                        insert_once(&mut distinct, key, row.encode())?;
                    }
                }
                let (entries, has_more) = distinct.finish();
                page.fill(entries.map(|(key, row)| Ok((key, Some(row)))), has_more)
            }
            (GatherKind::One(group), Some(grouping)) => {
                let slots = group.finish(grouping);
                let mut row = output_of_slots(level, &slots, None, context)?;
                if row.is_none() && has_null_extremes && is_extreme(level, grouping) {
                    row = Some(Value::Null);
                }
                let row = row.map(|row| row.encode());
                page.fill(std::iter::once(Ok((Vec::new(), row))), false)
            }
            (_, None) => Ok(Gathered { rows: Vec::new(), last: None }),
        }
    }
}

/// Whether a query gives nothing but a MIN or MAX.
fn is_extreme(level: &Level, grouping: &Grouping) -> bool {
    let Expression::Slot(slot) = level.output else { return false };
    let aggregate = grouping.aggregates.get(slot - level.outer);
    aggregate.is_some_and(|it| matches!(it.kind, AggregateKind::Min | AggregateKind::Max))
}

/// Takes rows from an order until the page is full.
struct PageOfRows {
    rows: usize,
    bytes: usize,
    skip: u64,
    limit: Option<u64>,
}

impl PageOfRows {
    fn fill(
        &mut self,
        entries: impl Iterator<Item = Result<(Vec<u8>, Option<Vec<u8>>), QueryError>>,
        mut has_more: bool,
    ) -> Result<Gathered, QueryError> {
        let mut rows: Vec<Vec<u8>> = Vec::new();
        let mut bytes = 0;
        let mut last = None;
        for entry in entries {
            let (key, row) = entry?;
            let limit = self.limit.is_some_and(|limit| rows.len() as u64 >= limit);
            let row_bytes = row.as_ref().map_or(0, Vec::len);
            let too_large = !rows.is_empty() && bytes + row_bytes > self.bytes;
            if rows.len() >= self.rows || limit || too_large {
                has_more = true;
                break;
            }
            last = Some(key);
            match row {
                Some(_) if self.skip > 0 => self.skip -= 1,
                Some(row) => {
                    bytes += row.len();
                    rows.push(row);
                }
                None => {}
            }
        }
        let given = rows.len() as u64;
        let is_limited = self.limit.is_some_and(|limit| given >= limit);
        let last = if has_more && !is_limited { last.map(|key| (key, given)) } else { None };
        Ok(Gathered { rows, last })
    }
}

/// The sort key of a row: what it is sorted by, and then what tells it apart. Rows that are equal in the order go by the
/// places of their items, backwards if the last part of the order is.
fn push_row(
    top: &mut Top<Vec<u8>>,
    level: &Level,
    place: &[u8],
    row_of_item: u32,
    row: Option<&Frame<'_>>,
    context: &Context,
) -> Result<(), QueryError> {
    let mut key = Vec::new();
    for sort in &level.sort {
        let by = evaluate(&sort.expression, row, context)?;
        append_sort_key(by.as_ref().map(Datum::as_ref), sort.is_descending, &mut key);
    }
    if level.is_distinct {
        let Some(row) = encoded(&level.output, row, context)? else { return Ok(()) };
        let view = View::parse(&row).map_err(|_| QueryError::invalid("A row is malformed."))?;
        append_sort_key(Some(ValueRef::from(view)), false, &mut key);
        return insert_once(top, key, row);
    }
    let is_descending = level.sort.last().is_some_and(|sort| sort.is_descending);
    append_place(place, row_of_item, is_descending, &mut key);
    if !top.wants(&key) {
        return Ok(());
    }
    let Some(row) = encoded(&level.output, row, context)? else { return Ok(()) };
    let bytes = row.len();
    top.insert(key, row, bytes).map(drop)
}

fn append_place(place: &[u8], row_of_item: u32, is_descending: bool, key: &mut Vec<u8>) {
    let start = key.len();
    // A zero ends the place, and zeros inside of it are marked, so that places sort as they do alone.
    for byte in place {
        key.push(*byte);
        if *byte == 0 {
            key.push(0xff);
        }
    }
    key.extend([0, 1]);
    if is_descending {
        key[start..].iter_mut().for_each(|byte| *byte = !*byte);
    }
    // The rows of one item follow one another as its arrays do, whatever the order of items is.
    key.extend_from_slice(&row_of_item.to_be_bytes());
}

fn insert_once(top: &mut Top<Vec<u8>>, key: Vec<u8>, row: Vec<u8>) -> Result<(), QueryError> {
    if !top.wants(&key) || top.get_mut(&key).is_some() {
        return Ok(());
    }
    let bytes = row.len();
    top.insert(key, row, bytes).map(drop)
}

fn push_to_group(
    top: &mut Top<Group>,
    grouping: &Grouping,
    row: Option<&Frame<'_>>,
    context: &Context,
) -> Result<(), QueryError> {
    let key = group_key(grouping, row, context)?;
    if !top.wants(&key) {
        return Ok(());
    }
    if let Some(group) = top.get_mut(&key) {
        return group.add(grouping, row, context);
    }
    let mut group = Group::new(grouping, row, context)?;
    group.add(grouping, row, context)?;
    let bytes = group.bytes();
    top.insert(key, group, bytes)?.into_iter().for_each(|group| group.release(context));
    Ok(())
}
