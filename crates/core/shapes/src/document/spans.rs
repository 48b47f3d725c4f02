//! Stretches of the index that a plan names.

use bytes::Bytes;
use lazuli_engine::{Error, KeyRange, Result, after_prefix};
use lazuli_query::plan::{self, Access, IndexScan};

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

impl Span {
    /// The entries of one value of items of these routes, in whose order they lie.
    pub(super) fn of_entry(entry: &[u8], routes: &KeyRange) -> Self {
        let start = Bytes::from([entry, &routes.start].concat());
        let end = match &routes.end {
            Some(end) => Some(Bytes::from([entry, end].concat())),
            None => after_prefix(entry),
        };
        Self { keys: KeyRange::new(start, end), entry: Some(Bytes::copy_from_slice(entry)) }
    }
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
        Access::Composite { composite, ranges, is_descending } => {
            let paths = index.policy.composites.get(*composite).ok_or_else(none)?;
            let head = composite_head(index.generation, paths);
            let span = |range| Span { keys: behind_head(&head, range), entry: None };
            let spans = ranges.iter().map(span).collect();
            Ok(Spans::Ordered(ordered(head, spans, *is_descending)))
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
    let spans = scan.ranges.iter().map(|range| match range.is_one_value() {
        true => Span::of_entry(&[&head[..], &range.from].concat(), routes),
        false => Span { keys: behind_head(&head, range), entry: None },
    });
    (head, spans.collect())
}

fn behind_head(head: &[u8; HEAD_BYTES], range: &plan::KeyRange) -> KeyRange {
    let bound = |bound: &[u8]| Bytes::from([&head[..], bound].concat());
    KeyRange::new(bound(&range.from), Some(bound(&range.to)))
}

fn is_one_value(scan: &IndexScan) -> bool {
    matches!(&scan.ranges[..], [range] if range.is_one_value())
}

/// Whether an access reads only entries of single values, which lie in the order of routes.
pub(super) fn is_equality(access: &Access) -> bool {
    let values = |scan: &IndexScan| scan.ranges.iter().all(plan::KeyRange::is_one_value);
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
