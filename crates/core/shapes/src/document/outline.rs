//! Which paths all items of a container have: one item of each outline tells.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use bytes::Bytes;
use lazuli_engine::{Direction, ItemKey, KeyRange, PageLimit, Result, ShardView, after_prefix};
use lazuli_query::plan::{Access, IndexScan};
use lazuli_value::{Kind, kind_bounds};

use super::Documents;
use super::collection::Collection;
use super::entries::{HEAD_BYTES, Indexes, outline_head, path_head, place_of};
use super::path::Step;
use super::query::QueryResult;
use super::spans::{Span, Spans, steps_of};

/// The most outlines that are looked at.
const OUTLINES_MAX: usize = 32;
/// Bytes of the hash behind the head.
const HASH_BYTES: usize = 8;

/// The places that all items of a container have entries at.
pub(super) enum Everywhere {
    Unknown,
    /// Taken for granted.
    All,
    Places(BTreeSet<u64>),
}

impl Everywhere {
    pub(super) fn has(&self, steps: &[Step]) -> bool {
        match self {
            Self::Unknown => false,
            Self::All => true,
            Self::Places(places) => places.contains(&place_of(steps)),
        }
    }
}

/// The outlines of a container.
pub(super) struct Outlines {
    /// The entries of each, without those of its items.
    entries: Vec<Bytes>,
    /// The places that all of them have; none if there is no item.
    common: Option<BTreeSet<u64>>,
}

impl Outlines {
    pub(super) fn everywhere(&self) -> Everywhere {
        self.common.clone().map_or(Everywhere::All, Everywhere::Places)
    }

    /// One entry of each item of these routes.
    pub(super) fn spans(&self, routes: &KeyRange) -> Spans {
        Spans::Set(self.entries.iter().map(|entry| Span::of_entry(entry, routes)).collect())
    }
}

impl Documents {
    /// The outlines of a container; none if items differ too much, or have no index.
    pub(super) async fn outlines(&self, collection: &Collection) -> QueryResult<Option<Outlines>> {
        let Some(index) = collection.definition.index() else { return Ok(None) };
        let head = outline_head(index.generation);
        let indexes = Indexes::new(&collection.definition);
        let views = self.engine.shard_views(collection.container.id, &KeyRange::all()).await?;
        let mut outlines = Outlines { entries: Vec::new(), common: None };
        for view in &views {
            let mut keys = KeyRange::prefix(Bytes::copy_from_slice(&head));
            while let Some((entry, item)) = first(view, &keys).await? {
                let outline = entry.slice(..(HEAD_BYTES + HASH_BYTES).min(entry.len()));
                if !outlines.entries.contains(&outline) {
                    outlines.entries.push(outline.clone());
                }
                if outlines.entries.len() > OUTLINES_MAX {
                    return Ok(None);
                }
                if let Some(found) = view.get(&item).await? {
                    let places = indexes.places(index.generation, &found)?;
                    outlines.common = Some(match outlines.common {
                        Some(common) => common.intersection(&places).copied().collect(),
                        None => places,
                    });
                }
                match after_prefix(&outline) {
                    Some(next) => keys.start = next,
                    None => break,
                }
            }
        }
        Ok(Some(outlines))
    }

    /// Whether arrays or objects have entries where a plan reads values in their order.
    pub(super) async fn has_containers(
        &self,
        collection: &Collection,
        access: &Access,
    ) -> QueryResult<bool> {
        let index = collection.definition.index().filter(|index| index.has_kinds);
        let Some(index) = index else { return Ok(false) };
        let Access::Index(IndexScan { path, ranges, .. }) = access else { return Ok(false) };
        let head = path_head(index.generation, &steps_of(path));
        let views = self.engine.shard_views(collection.container.id, &KeyRange::all()).await?;
        for kind in [Kind::Array, Kind::Object] {
            let (from, to) = kind_bounds(kind);
            if !ranges.iter().any(|range| range.contains(&[from])) {
                continue;
            }
            let bound = |byte: u8| Bytes::from([&head[..], &[byte]].concat());
            let keys = KeyRange::new(bound(from), Some(bound(to)));
            for view in &views {
                if first(view, &keys).await?.is_some() {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }
}

/// Entries of other partitions that are stepped over at once.
const STEP: PageLimit = PageLimit { items: 256, bytes: 256 * 1024 };

/// The first entry of a range.
async fn first(view: &ShardView, keys: &KeyRange) -> Result<Option<(Bytes, ItemKey)>> {
    let mut keys = keys.clone();
    loop {
        let mut found = None;
        let visit = |entry: Bytes, item: ItemKey| {
            found = Some((entry, item));
            Ok(ControlFlow::Break(()))
        };
        let next = view.entries(&keys, Direction::Forward, STEP, visit).await?;
        match next {
            _ if found.is_some() => return Ok(found),
            Some(last) => keys.start = lazuli_engine::after_key(&last),
            None => return Ok(None),
        }
    }
}
