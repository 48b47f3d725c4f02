//! Reading the entries that a plan names, from all shards, merged.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use bytes::Bytes;
use lazuli_engine::{
    Direction, ItemKey, KeyRange, PREFIX_BYTES, PageLimit, ShardView, after_key, yield_now,
};
use lazuli_query::execute::{Execution, Wants};

use super::entries::HEAD_BYTES;
use super::query::{
    QueryResult, Run, behind_entry_kind, behind_item_kind, entry_place, item_place,
};
use super::spans::{OrderedSpans, Span};

/// Entries of one shard that are read at once: few at first, since most pages are short.
const ENTRIES_FIRST: usize = 128;
pub(super) const ENTRIES_MAX: usize = 4_096;
/// The most items of a set that is gathered as a whole, because its entries do not lie in the order of items. A query that
/// selects more is refused.
const SET_ITEMS_MAX: usize = 200_000;

/// Entries of one shard: keys of `entry | route | row key`, each with its item, and how far it was looked.
struct Found {
    entries: Vec<(Bytes, ItemKey)>,
    /// The last key that was looked at, if there is more behind it.
    reach: Option<Bytes>,
}

async fn look(
    view: &ShardView,
    keys: &KeyRange,
    descends: bool,
    most: usize,
) -> lazuli_engine::Result<Found> {
    let direction = if descends { Direction::Backward } else { Direction::Forward };
    let mut entries = Vec::new();
    let visit = |entry: Bytes, item: ItemKey| {
        let rest = &item.bytes()[PREFIX_BYTES..];
        entries.push((Bytes::from([&entry[..], rest].concat()), item));
        Ok(ControlFlow::Continue(()))
    };
    let limit = PageLimit::items(most);
    let reach = view.entries(keys, direction, limit, visit).await?;
    Ok(Found { entries, reach })
}

/// Where a set goes on, in the order of items.
pub(super) fn first_of_set(resume: Option<(Vec<u8>, bool)>) -> QueryResult<Bytes> {
    let Some((place, again)) = resume else { return Ok(Bytes::new()) };
    let place = behind_item_kind(&place)?;
    Ok(if again { place } else { after_key(&place) })
}

impl Run<'_> {
    /// Pushes the items of entries in the order of the entries.
    pub(super) async fn push_entries(
        &mut self,
        mut spans: OrderedSpans,
        resume: Option<(Vec<u8>, bool)>,
        execution: &mut Execution,
    ) -> QueryResult<bool> {
        if let Some((place, again)) = resume {
            spans.resume(&behind_entry_kind(&place)?, again)?;
        }
        let mut most = ENTRIES_FIRST;
        for span in &spans.spans {
            let mut keys = span.keys.clone();
            while !keys.is_empty() {
                let (wants, reach) = self.step(&keys, spans.descends, most, execution).await?;
                if wants == Wants::NoMore {
                    return Ok(false);
                }
                match (reach, spans.descends) {
                    (None, _) => break,
                    (Some(reach), false) => keys.start = after_key(&reach),
                    (Some(reach), true) => keys.end = Some(reach),
                }
                most = (most * 2).min(ENTRIES_MAX);
                if self.is_late(execution) {
                    return Ok(false);
                }
                yield_now().await;
            }
        }
        Ok(true)
    }

    /// Pushes what all shards have up to where the first of them stopped looking, and says where that is.
    async fn step(
        &mut self,
        keys: &KeyRange,
        descends: bool,
        most: usize,
        execution: &mut Execution,
    ) -> QueryResult<(Wants, Option<Bytes>)> {
        let views = self.views().await?;
        let mut merged: Vec<(Bytes, ItemKey, usize)> = Vec::new();
        let mut reach: Option<Bytes> = None;
        for (at, view) in views.iter().enumerate() {
            let found = look(view, keys, descends, most).await?;
            merged.extend(found.entries.into_iter().map(|(entry, key)| (entry, key, at)));
            if let Some(stopped) = found.reach {
                reach = Some(match reach {
                    None => stopped,
                    Some(reach) if descends => reach.max(stopped),
                    Some(reach) => reach.min(stopped),
                });
            }
        }
        if let Some(reach) = &reach {
            let is_reached = |entry: &Bytes| if descends { entry >= reach } else { entry <= reach };
            merged.retain(|(entry, _, _)| is_reached(entry));
        }
        merged.sort_unstable_by(|a, b| if descends { b.0.cmp(&a.0) } else { a.0.cmp(&b.0) });
        for (entry, key, at) in merged {
            self.work.entries_read += 1;
            // What has expired has entries until it is swept away.
            let Some(item) = views[at].get(&key).await? else { continue };
            let place = entry_place(&entry[HEAD_BYTES..]);
            let wants = self.push_item(&place, &key.bytes()[PREFIX_BYTES..], &item, execution)?;
            if wants == Wants::NoMore {
                return Ok((wants, reach));
            }
        }
        Ok((Wants::More, reach))
    }

    /// Pushes the items of entries, each once, in the order of items.
    pub(super) async fn push_set(
        &mut self,
        spans: &[Span],
        resume: Option<(Vec<u8>, bool)>,
        execution: &mut Execution,
    ) -> QueryResult<bool> {
        let mut from = first_of_set(resume)?;
        let mut most = ENTRIES_FIRST;
        loop {
            let (items, reach) = self.set(spans, &from, most).await?;
            if self.push_keys(&items, execution).await? == Wants::NoMore {
                return Ok(false);
            }
            match reach {
                Some(reach) => from = after_key(&reach),
                None => return Ok(true),
            }
            most = (most * 2).min(ENTRIES_MAX);
        }
    }

    /// Pushes items in the order of their keys, as long as there is time.
    async fn push_keys(
        &mut self,
        items: &BTreeSet<ItemKey>,
        execution: &mut Execution,
    ) -> QueryResult<Wants> {
        let engine = self.documents.engine.clone();
        let items: Vec<&ItemKey> = items.iter().collect();
        for some in items.chunks(ENTRIES_FIRST) {
            let views = engine.shard_views(self.collection.container.id, &self.routes).await?;
            for key in some {
                let Some(view) = views.iter().find(|view| view.holds(key.route())) else {
                    continue;
                };
                let Some(item) = view.get(key).await? else { continue };
                let rest = &key.bytes()[PREFIX_BYTES..];
                let place = item_place(rest);
                if self.push_item(&place, rest, &item, execution)? == Wants::NoMore {
                    return Ok(Wants::NoMore);
                }
            }
            if self.is_late(execution) {
                return Ok(Wants::NoMore);
            }
            yield_now().await;
        }
        Ok(Wants::More)
    }

    /// Items of entries, from a place in the order of items on, each once, and the place up to which they are all there is,
    /// if there is more behind it. Where all entries lie in the order of items, about `most` of each stretch are read.
    pub(super) async fn set(
        &mut self,
        spans: &[Span],
        from: &Bytes,
        most: usize,
    ) -> QueryResult<(BTreeSet<ItemKey>, Option<Bytes>)> {
        if spans.iter().any(|span| span.entry.is_none()) {
            return Ok((self.whole_set(spans, from).await?, None));
        }
        let (mut items, mut reach): (BTreeSet<ItemKey>, Option<Bytes>) = (BTreeSet::new(), None);
        for Span { keys, entry } in spans {
            let entry = entry.as_deref().unwrap_or_default();
            let mut keys = keys.clone();
            keys.start = keys.start.max(Bytes::from([entry, from].concat()));
            if keys.is_empty() {
                continue;
            }
            let (found, stopped) = self.read_all(&keys, most).await?;
            self.work.entries_read += found.len() as u64;
            items.extend(found.into_iter().map(|(_, key)| key));
            if let Some(stopped) = stopped {
                let place = stopped.slice(entry.len().min(stopped.len())..);
                reach = Some(reach.map_or(place.clone(), |reach| reach.min(place)));
            }
        }
        if let Some(reach) = &reach {
            items.retain(|key| key.bytes()[PREFIX_BYTES..] <= reach[..]);
        }
        Ok((items, reach))
    }

    /// All items of entries from a place in the order of items on.
    async fn whole_set(&mut self, spans: &[Span], from: &Bytes) -> QueryResult<BTreeSet<ItemKey>> {
        let mut items = BTreeSet::new();
        for span in spans {
            let mut keys = span.keys.clone();
            loop {
                let (found, reach) = self.read_all(&keys, ENTRIES_MAX).await?;
                self.work.entries_read += found.len() as u64;
                let is_wanted = |key: &ItemKey| key.bytes()[PREFIX_BYTES..] >= from[..];
                items.extend(found.into_iter().map(|(_, key)| key).filter(is_wanted));
                if items.len() > SET_ITEMS_MAX {
                    let message = "the query selects too many items by several index ranges";
                    return Err(lazuli_engine::Error::too_large("query-too-large", message).into());
                }
                match reach {
                    Some(reach) => keys.start = after_key(&reach),
                    None => break,
                }
                yield_now().await;
            }
        }
        Ok(items)
    }

    /// Entries of all shards, up to where the first of them stopped looking.
    async fn read_all(
        &mut self,
        keys: &KeyRange,
        most: usize,
    ) -> QueryResult<(Vec<(Bytes, ItemKey)>, Option<Bytes>)> {
        let views = self.views().await?;
        let (mut all, mut reach): (Vec<_>, Option<Bytes>) = (Vec::new(), None);
        for view in &views {
            let found = look(view, keys, false, most).await?;
            all.extend(found.entries);
            if let Some(stopped) = found.reach {
                reach = Some(reach.map_or(stopped.clone(), |reach| reach.min(stopped)));
            }
        }
        if let Some(reach) = &reach {
            all.retain(|(entry, _)| entry <= reach);
        }
        Ok((all, reach))
    }
}
