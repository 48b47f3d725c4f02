//! Stretches of the index that a plan names.

use bytes::Bytes;
use lazuli_engine::{Error, KeyRange, Result, after_prefix};
use lazuli_query::plan::{self, Access, IndexScan};
use lazuli_value::order_key_length;

use super::collection::Collection;
use super::definition::IndexState;
use super::entries::{HEAD_BYTES, composite_head, outline_head, path_head};
use super::path::Step;
use super::reason::DocumentReason;

/// A stretch of entries of one place: keys of `entry | route | row key`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) keys: KeyRange,
    /// The entry of all keys, if they have one value: then they lie in the order of their items.
    pub(super) entry: Option<Bytes>,
}

/// The stretches of a plan.
pub(super) enum Spans {
    /// They are read in their order, and no item is in them twice.
    Ordered(OrderedSpans),
    /// An item may be in them more than once.
    Set(Vec<Span>),
}

/// Stretches of one place, in the order in which they are read.
pub(super) struct OrderedSpans {
    pub(super) head: [u8; HEAD_BYTES],
    pub(super) spans: Vec<Span>,
    pub(super) descends: bool,
}

/// The stretches that an access names, for items of these routes.
pub(super) fn spans_of(
    collection: &Collection,
    access: &Access,
    routes: &KeyRange,
) -> Result<Spans> {
    let none = || Error::internal("no-index", "a plan names an index that is not there");
    let index = collection.definition.index().ok_or_else(none)?;
    match access {
        Access::Index(scan) => {
            let (head, spans) = of_scan(index, scan, routes);
            if scan.path.has_elements() && !is_one_value(scan) {
                return Ok(Spans::Set(spans));
            }
            Ok(Spans::Ordered(ordered(head, spans, scan.is_descending)))
        }
        Access::AnyOf(scans) => {
            let all = scans.iter().flat_map(|scan| of_scan(index, scan, routes).1);
            Ok(Spans::Set(all.collect()))
        }
        Access::Composite { composite, is_descending } => {
            let paths = index.policy.composites.get(*composite).ok_or_else(none)?;
            let head = composite_head(index.generation, paths);
            let keys = KeyRange::prefix(Bytes::copy_from_slice(&head));
            Ok(Spans::Ordered(ordered(head, vec![Span { keys, entry: None }], *is_descending)))
        }
        Access::Nothing | Access::OneRow | Access::Items => {
            Err(Error::internal("no-index", "the plan reads no index"))
        }
    }
}

/// One entry of every item.
pub(super) fn all_spans(collection: &Collection) -> Result<Spans> {
    let none = || Error::internal("no-index", "a count needs an index");
    let index = collection.definition.index().ok_or_else(none)?;
    let head = outline_head(index.generation);
    let keys = KeyRange::prefix(Bytes::copy_from_slice(&head));
    Ok(Spans::Ordered(ordered(head, vec![Span { keys, entry: None }], false)))
}

fn ordered(head: [u8; HEAD_BYTES], mut spans: Vec<Span>, descends: bool) -> OrderedSpans {
    if descends {
        spans.reverse();
    }
    OrderedSpans { head, spans, descends }
}

pub(super) fn steps_of(path: &plan::Path) -> Vec<Step> {
    let step = |step: &plan::Step| match step {
        plan::Step::Name(name) => Step::Name(name.clone()),
        plan::Step::Element => Step::Element,
    };
    path.0.iter().map(step).collect()
}

fn of_scan(
    index: &IndexState,
    scan: &IndexScan,
    routes: &KeyRange,
) -> ([u8; HEAD_BYTES], Vec<Span>) {
    let head = path_head(index.generation, &steps_of(&scan.path));
    let spans = scan.ranges.iter().map(|range| {
        if is_value(range) {
            // All entries of one value lie in the order of their routes.
            let entry = [&head[..], &range.from].concat();
            let start = Bytes::from([&entry[..], &routes.start].concat());
            let end = match &routes.end {
                Some(end) => Some(Bytes::from([&entry[..], end].concat())),
                None => after_prefix(&entry),
            };
            return Span { keys: KeyRange::new(start, end), entry: Some(entry.into()) };
        }
        let start = Bytes::from([&head[..], &range.from].concat());
        let end = Bytes::from([&head[..], &range.to].concat());
        Span { keys: KeyRange::new(start, Some(end)), entry: None }
    });
    (head, spans.collect())
}

/// Whether a range holds the entries of exactly one value.
fn is_value(range: &plan::KeyRange) -> bool {
    order_key_length(&range.from) == Some(range.from.len())
        && after_prefix(&range.from).is_some_and(|end| end[..] == range.to[..])
}

fn is_one_value(scan: &IndexScan) -> bool {
    matches!(&scan.ranges[..], [range] if is_value(range))
}

/// Whether an access reads only entries of single values, which lie in the order of routes.
pub(super) fn is_equality(access: &Access) -> bool {
    let values = |scan: &IndexScan| scan.ranges.iter().all(is_value);
    match access {
        Access::Index(scan) => values(scan),
        Access::AnyOf(scans) => scans.iter().all(values),
        _ => false,
    }
}

impl OrderedSpans {
    /// What is left behind a place, or from it on.
    pub(super) fn resume(&mut self, place: &[u8], again: bool) -> Result<()> {
        let at = Bytes::from([&self.head[..], place].concat());
        let whole = KeyRange::prefix(Bytes::copy_from_slice(&self.head));
        if !whole.contains(&at) {
            let message = "the continuation is no place of this index";
            return Err(Error::invalid(DocumentReason::BadContinuation, message));
        }
        for span in &mut self.spans {
            let keys = &mut span.keys;
            match (self.descends, again) {
                (false, true) => keys.start = keys.start.clone().max(at.clone()),
                (false, false) => {
                    keys.start = keys.start.clone().max(lazuli_engine::after_key(&at));
                }
                (true, again) => {
                    let end = if again { lazuli_engine::after_key(&at) } else { at.clone() };
                    let end = keys.end.take().map_or(end.clone(), |old| old.min(end));
                    keys.end = Some(end);
                }
            }
        }
        self.spans.retain(|span| !span.keys.is_empty());
        Ok(())
    }
}
