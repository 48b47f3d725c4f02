//! The change feed: what was written in a range, in its order, from a position on.
//!
//! A position is a place in the change records of the engine: it names numbers and items and no partition, so it stays good
//! across splits, merges and moves. A reader of a range reads the partitions that hold it one after another, and remembers one
//! position for each stretch of routes.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use lazuli_engine::changes::{ItemChange, ItemOperation};
use lazuli_engine::{
    Error, Item, ItemKey, KeyRange, Lsn, PageLimit, Result, SNAPSHOT_LIFE_MAX, Space, View,
};

use super::Documents;
use super::collection::Collection;
use super::item::Document;
use super::items::Scope;
use super::key::PartitionKey;
use super::operation::Work;
use super::past;
use super::reason::DocumentReason;

const FORMAT: u8 = 1;
/// Bytes of the number in front of a place among change records.
const LSN_BYTES: usize = 8;
/// The most stretches of routes that a position has.
const STRETCHES_MAX: usize = 16_384;

/// Where a reader begins.
#[derive(Clone, Debug)]
pub enum FeedStart {
    Beginning,
    /// Behind all that is written by now.
    Now,
    /// With what is written from this time on, in milliseconds since the Unix epoch.
    Time(u64),
    /// Where a page before ended.
    Position(FeedPosition),
}

/// How far a reader has come, for each stretch of the routes that it reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeedPosition {
    /// In the order of their routes. Each has the place behind which it goes on; none begins at the beginning.
    stretches: Vec<(KeyRange, Bytes)>,
}

/// What a reader wants to see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeedMode {
    /// Each item that has changed once, as it is now. Deletions are not shown.
    Latest,
    /// Every write and every deletion.
    All,
}

/// One change.
#[derive(Clone, Debug)]
pub struct FeedChange {
    pub lsn: Lsn,
    pub key: PartitionKey,
    pub id: String,
    pub operation: FeedOperation,
    /// The item as this write left it; none if it was deleted, or is not kept in this version.
    pub document: Option<Document>,
    /// The item as it was before, where every version is asked for and it is kept.
    pub previous: Option<Document>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeedOperation {
    /// Written: whether it was new is told by its number being that of its creation.
    Create,
    Replace,
    Delete,
}

/// A page of changes.
#[derive(Clone, Debug)]
pub struct FeedPage {
    pub changes: Vec<FeedChange>,
    /// Where the next page goes on, also if this one is empty.
    pub position: FeedPosition,
    /// Whether there is more already.
    pub more: bool,
    /// The greatest number that the reader has come to.
    pub lsn: Lsn,
    pub work: Work,
}

impl FeedPosition {
    fn new(routes: &KeyRange, place: Bytes) -> Self {
        Self { stretches: vec![(routes.clone(), place)] }
    }

    /// The routes that it is about.
    pub fn routes(&self) -> KeyRange {
        let start = self.stretches.first().map(|(routes, _)| routes.start.clone());
        let end = self.stretches.last().map(|(routes, _)| routes.end.clone());
        KeyRange::new(start.unwrap_or_default(), end.unwrap_or_default())
    }

    /// The same place, for a part of the routes.
    #[must_use]
    pub fn within(&self, routes: &KeyRange) -> Self {
        let cut = self.stretches.iter().map(|(one, place)| (one.intersect(routes), place.clone()));
        Self { stretches: cut.filter(|(one, _)| !one.is_empty()).collect() }
    }

    /// Neighbours that are at the same place are one.
    fn joined(mut self) -> Self {
        self.stretches.dedup_by(|next, last| {
            let touches = last.0.end.as_ref() == Some(&next.0.start);
            let is_one = touches && last.1 == next.1;
            if is_one {
                last.0.end = next.0.end.clone();
            }
            is_one
        });
        self
    }

    /// `format (1) | for each stretch: start, end, place, each with its length (2); an end of length ffff is none`.
    pub fn encode(&self) -> Bytes {
        let mut bytes = BytesMut::new();
        bytes.put_u8(FORMAT);
        let put = |part: &[u8], bytes: &mut BytesMut| {
            bytes.put_u16(u16::try_from(part.len()).unwrap_or(u16::MAX - 1));
            bytes.put_slice(part);
        };
        for (routes, place) in &self.stretches {
            put(&routes.start, &mut bytes);
            match &routes.end {
                Some(end) => put(end, &mut bytes),
                None => bytes.put_u16(u16::MAX),
            }
            put(place, &mut bytes);
        }
        bytes.freeze()
    }

    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let bad = || {
            let message = "this is no position of a change feed";
            Error::invalid(DocumentReason::BadContinuation, message)
        };
        Self::read(Bytes::copy_from_slice(bytes)).ok_or_else(bad)
    }

    fn read(mut bytes: Bytes) -> Option<Self> {
        if bytes.try_get_u8().ok()? != FORMAT {
            return None;
        }
        fn part(bytes: &mut Bytes) -> Option<Option<Bytes>> {
            let length = bytes.try_get_u16().ok()?;
            if length == u16::MAX {
                return Some(None);
            }
            let length = usize::from(length);
            (length <= bytes.len()).then(|| Some(bytes.split_to(length)))
        }
        let mut stretches: Vec<(KeyRange, Bytes)> = Vec::new();
        while !bytes.is_empty() {
            let (start, end) = (part(&mut bytes)??, part(&mut bytes)?);
            let place = part(&mut bytes)??;
            let is_next = stretches
                .last()
                .is_none_or(|(last, _)| last.end.as_ref().is_some_and(|end| *end <= start));
            let routes = KeyRange::new(start, end);
            if !is_next || routes.is_empty() || stretches.len() >= STRETCHES_MAX {
                return None;
            }
            stretches.push((routes, place));
        }
        (!stretches.is_empty()).then_some(Self { stretches })
    }
}

/// The place right before the first record with this number or a greater one.
fn before(lsn: Lsn) -> Bytes {
    match lsn.0.checked_sub(1) {
        Some(last) => {
            let mut place = last.to_be_bytes().to_vec();
            place.push(0xff);
            place.into()
        }
        None => Bytes::new(),
    }
}

impl Documents {
    /// The position of a reader who begins with these routes.
    pub async fn feed_position(
        &self,
        collection: &Collection,
        scope: &Scope,
        start: FeedStart,
    ) -> Result<FeedPosition> {
        let routes = collection.routes_in(scope)?;
        match start {
            FeedStart::Beginning => Ok(FeedPosition::new(&routes, Bytes::new())),
            FeedStart::Time(ms) => Ok(FeedPosition::new(&routes, before(Lsn::at_ms(ms)))),
            FeedStart::Position(position) => {
                let inside = position.within(&routes);
                if inside.stretches.is_empty() {
                    let message = "the position is of other ranges";
                    return Err(Error::invalid(DocumentReason::BadContinuation, message));
                }
                Ok(inside)
            }
            FeedStart::Now => {
                let mut stretches = Vec::new();
                let mut rest = routes;
                while !rest.is_empty() {
                    let view = self.engine.read(collection.container.id, &rest.start, 0).await?;
                    let here = rest.intersect(view.routes());
                    let last = view.last_lsn().await?;
                    stretches.push((here.clone(), before(Lsn(last.0 + 1))));
                    match here.end {
                        Some(end) => rest.start = end,
                        None => break,
                    }
                }
                Ok(FeedPosition { stretches })
            }
        }
    }

    /// The next changes behind a position.
    pub async fn changes(
        &self,
        collection: &Collection,
        position: &FeedPosition,
        mode: FeedMode,
        most: usize,
    ) -> Result<FeedPage> {
        let mut reader = Reader {
            collection,
            mode,
            most: most.max(1),
            changes: Vec::new(),
            lsn: Lsn::ZERO,
            work: Work::default(),
        };
        let (mut stretches, mut more) = (Vec::new(), false);
        for (routes, place) in &position.stretches {
            let mut rest = routes.clone();
            while !rest.is_empty() {
                if reader.changes.len() >= reader.most {
                    // Those that were not asked may have more.
                    stretches.push((rest.clone(), place.clone()));
                    more = true;
                    break;
                }
                let read = reader.read(self, &rest, place).await?;
                more |= read.more;
                let end = read.routes.end.clone();
                stretches.push((read.routes, read.place));
                match end {
                    Some(end) => rest.start = end,
                    None => break,
                }
            }
        }
        let position = FeedPosition { stretches }.joined();
        let Reader { changes, lsn, work, .. } = reader;
        Ok(FeedPage { changes, position, more, lsn, work })
    }
}

/// One page while it is read.
struct Reader<'a> {
    collection: &'a Collection,
    mode: FeedMode,
    most: usize,
    changes: Vec<FeedChange>,
    lsn: Lsn,
    work: Work,
}

/// What was read of the first routes of a stretch.
struct Stretch {
    routes: KeyRange,
    place: Bytes,
    more: bool,
}

impl Reader<'_> {
    /// Reads on in the partition that holds the first of these routes.
    async fn read(
        &mut self,
        documents: &Documents,
        rest: &KeyRange,
        place: &Bytes,
    ) -> Result<Stretch> {
        let (engine, id) = (&documents.engine, self.collection.container.id);
        let left = self.most - self.changes.len();
        let limit = PageLimit { items: left, ..PageLimit::MAX };
        let page = engine.changes(id, &rest.start, place, limit).await?;
        let routes = rest.intersect(&page.routes);
        let mut latest: BTreeMap<Bytes, Lsn> = BTreeMap::new();
        let is_inside =
            |it: &ItemChange| it.key.space() == Space::ITEMS && routes.contains(it.key.route());
        let inside: Vec<ItemChange> = page.changes.into_iter().filter(is_inside).collect();
        for change in &inside {
            latest.insert(change.key.bytes().clone(), change.lsn);
        }
        let clock = &engine.env().clock;
        let mut kept: Option<(View, Duration)> = None;
        for change in inside {
            let is_last = latest.get(change.key.bytes()) == Some(&change.lsn);
            // An item that changes again on the same page is shown there.
            if self.mode == FeedMode::All || is_last {
                let route = change.key.route();
                // One view shows many of them, until it is old, or if the partition was split since its changes were read.
                let is_good = |(view, old_at): &(View, Duration)| {
                    view.routes().contains(route) && clock.uptime() < *old_at
                };
                let (view, old_at) = match kept.take().filter(is_good) {
                    Some(good) => good,
                    None => {
                        let old_at = clock.uptime() + SNAPSHOT_LIFE_MAX / 2;
                        (engine.read(id, route, 0).await?, old_at)
                    }
                };
                let shown = self.show(&view, change).await?;
                self.changes.extend(shown);
                kept = Some((view, old_at));
            }
        }
        if let Some(number) = page.position.first_chunk::<LSN_BYTES>() {
            self.lsn = self.lsn.max(Lsn(u64::from_be_bytes(*number)));
        }
        Ok(Stretch { routes, place: page.position, more: page.more })
    }

    async fn show(&mut self, view: &View, change: ItemChange) -> Result<Option<FeedChange>> {
        let ItemChange { lsn, operation, key } = &change;
        let found = match operation {
            ItemOperation::Put => view.get(key).await?,
            ItemOperation::Delete => None,
        };
        // Who wants the latest version sees what has changed since with its later change.
        let mut image = found.filter(|item| item.version == *lsn);
        let mut before = None;
        match self.mode {
            FeedMode::Latest if image.is_none() => return Ok(None),
            FeedMode::Latest => {}
            FeedMode::All => {
                if image.is_none() && *operation == ItemOperation::Put {
                    image = past::version(view, key, *lsn).await?;
                }
                before = past::version_before(view, key, *lsn).await?;
            }
        }
        let document = self.document(key, image.as_ref())?;
        let previous = self.document(key, before.as_ref())?;
        let operation = match (change.operation, &document) {
            (ItemOperation::Delete, _) => FeedOperation::Delete,
            (ItemOperation::Put, Some(document)) if document.created == change.lsn => {
                FeedOperation::Create
            }
            (ItemOperation::Put, _) => FeedOperation::Replace,
        };
        let key = self.collection.key_of(change.key.route())?;
        let id = String::from_utf8_lossy(change.key.row()).into_owned();
        Ok(Some(FeedChange { lsn: change.lsn, key, id, operation, document, previous }))
    }

    fn document(&mut self, key: &ItemKey, item: Option<&Item>) -> Result<Option<Document>> {
        let Some(item) = item else { return Ok(None) };
        self.work.items_read += 1;
        self.work.bytes_read += item.payload.len() as u64;
        let rest = &key.bytes()[lazuli_engine::PREFIX_BYTES..];
        Ok(Some(self.collection.document(rest, item)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_survives_its_bytes_and_nothing_else_is_one() {
        let range = |from: &'static [u8], to: Option<&'static [u8]>| {
            KeyRange::new(from, to.map(Bytes::from_static))
        };
        let position = FeedPosition {
            stretches: vec![
                (range(b"", Some(b"\x10")), Bytes::new()),
                (range(b"\x10", Some(b"\x20")), before(Lsn(77))),
                (range(b"\x30", None), before(Lsn(78))),
            ],
        };
        let bytes = position.encode();
        assert_eq!(FeedPosition::decode(&bytes).unwrap(), position);
        for length in 0..bytes.len() {
            let cut = FeedPosition::decode(&bytes[..length]);
            assert!(cut.is_err() || cut.unwrap() != position);
        }
        assert!(FeedPosition::decode(&[2, 0]).is_err());
        let inside = position.within(&range(b"\x18", Some(b"\x40")));
        assert_eq!(inside.stretches.len(), 2);
        assert_eq!(inside.routes(), range(b"\x18", Some(b"\x40")));
    }

    #[test]
    fn neighbours_at_one_place_are_joined() {
        let range = |from: &'static [u8], to: Option<&'static [u8]>| {
            KeyRange::new(from, to.map(Bytes::from_static))
        };
        let stretches = vec![
            (range(b"", Some(b"\x10")), before(Lsn(5))),
            (range(b"\x10", Some(b"\x20")), before(Lsn(5))),
            (range(b"\x20", None), before(Lsn(6))),
        ];
        let joined = FeedPosition { stretches }.joined();
        assert_eq!(joined.stretches.len(), 2);
        assert_eq!(joined.stretches[0].0, range(b"", Some(b"\x20")));
    }
}
