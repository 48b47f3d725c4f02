//! Following the changes of an index: what a text index must take in to show the documents as they are.
//!
//! A follower pulls. It first reads all documents of a part of the routes, and then the changes since that reading began. A
//! change says only that a document was written, so the document is read as it is now; taking it in twice does no harm. Its
//! positions are for the caller to commit together with what it took in.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use lazuli_engine::changes::ItemOperation;
use lazuli_engine::{
    Direction, KeyRange, Lsn, PREFIX_BYTES, PageLimit, Result, Space, View, after_key,
};

use crate::limits::{FILL_BYTES, FILL_DOCUMENTS, FOLLOW_CHANGES};
use crate::position::{Position, Positions, behind};
use crate::{Index, Indexes};

/// A document to take in, or to drop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentChange {
    pub key: String,
    /// JSON; none if there is no such document any more.
    pub document: Option<Bytes>,
}

/// What to take in next.
#[derive(Debug, Default)]
pub struct Step {
    pub changes: Vec<DocumentChange>,
    /// Whether there is more already.
    pub more: bool,
    /// Deletions among the changes. Once all text indexes have them, [`Indexes::forget_deletions`] may forget them.
    pub deletions: Vec<Deletion>,
}

/// That a document was deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deletion {
    pub(crate) route: Bytes,
    pub(crate) lsn: Lsn,
}

/// Follows some routes of one index.
pub struct Follower {
    indexes: Indexes,
    index: Arc<Index>,
    routes: KeyRange,
    positions: Positions,
}

impl Follower {
    /// Goes on behind these positions, which the last commit of the text index names; none begins anew.
    pub fn new(
        indexes: Indexes,
        index: Arc<Index>,
        routes: KeyRange,
        positions: Positions,
    ) -> Self {
        Self { indexes, index, routes, positions }
    }

    /// Where it stands behind the last step.
    pub fn positions(&self) -> &Positions {
        &self.positions
    }

    /// What is next. The caller takes all of it in, and keeps [`Follower::positions`] with it. After an error nothing was read.
    pub async fn step(&mut self) -> Result<Step> {
        let before = self.positions.clone();
        let step = self.read().await;
        if step.is_err() {
            // Changes that were read before the error are dropped with it, and must be read again.
            self.positions = before;
        }
        step
    }

    async fn read(&mut self) -> Result<Step> {
        let mut step = Step::default();
        let router = self.indexes.engine.router();
        let parts = router.partitions(self.index.id(), &self.routes).await?;
        for (routes, _) in parts {
            let routes = routes.intersect(&self.routes);
            if routes.is_empty() {
                continue;
            }
            match self.positions.lowest(&routes) {
                Some(Position::At(place)) => self.read_changes(&mut step, &routes, place).await?,
                filling => self.read_documents(&mut step, &routes, filling).await?,
            }
        }
        Ok(step)
    }

    /// Reads changes of the partition that holds these routes.
    async fn read_changes(
        &mut self,
        step: &mut Step,
        routes: &KeyRange,
        place: Bytes,
    ) -> Result<()> {
        let engine = self.indexes.engine.clone();
        // Read first: once there are no more changes, all up to this number are in.
        let last = engine.read(self.index.id(), &routes.start, 1).await?.last_lsn().await?;
        let limit = PageLimit::items(FOLLOW_CHANGES);
        let page = engine.changes(self.index.id(), &routes.start, &place, limit).await?;
        let held = page.routes.intersect(&self.routes);
        if self.positions.lowest(&held) != Some(Position::At(place.clone())) {
            // The partition was merged meanwhile, and stands further back by now: the next step goes by the new map.
            step.more = true;
            return Ok(());
        }
        let view = engine.read(self.index.id(), &held.start, 1).await?;
        if view.routes().intersect(&held) != held {
            // It was split meanwhile: the next step goes by the new map.
            step.more = true;
            return Ok(());
        }
        let in_order = page.changes.iter().filter(|change| change.key.space() == Space::ITEMS);
        let wanted = in_order.filter(|change| held.contains(change.key.route()));
        let mut routes = BTreeSet::new();
        for change in wanted {
            routes.insert(change.key.route());
            if change.operation == ItemOperation::Delete {
                let route = Bytes::copy_from_slice(change.key.route());
                step.deletions.push(Deletion { route, lsn: change.lsn });
            }
        }
        for route in routes {
            step.changes.push(self.document(&view, route).await?);
        }
        step.more |= page.more;
        let end = if page.more { page.position } else { page.position.max(behind(last)) };
        self.positions.set(&held, Position::At(end.max(place)));
        Ok(())
    }

    /// The document under a route as it is now.
    async fn document(&self, view: &View, route: &[u8]) -> Result<DocumentChange> {
        let key = self.index.key(route)?;
        let found = view.get(&self.index.item(&key)?).await?;
        Ok(DocumentChange { key, document: found.map(|item| item.payload) })
    }

    /// Reads documents of the partition that holds these routes, from where the last step ended.
    async fn read_documents(
        &mut self,
        step: &mut Step,
        routes: &KeyRange,
        filling: Option<Position>,
    ) -> Result<()> {
        let view = self.indexes.engine.read(self.index.id(), &routes.start, 1).await?;
        let held = view.routes().intersect(routes);
        let (after, from) = match filling {
            Some(Position::Filling { after, from }) => (after, from),
            // What is written from now on leaves changes with greater numbers. A part that has begun, and was merged with
            // one that has not, may have documents that were deleted since then.
            _ => {
                let (last, begun) = (view.last_lsn().await?, self.positions.begun(&held));
                (Bytes::new(), begun.map_or(last, |begun| begun.min(last)))
            }
        };
        let mut range = held.clone();
        if after >= range.start && !after.is_empty() {
            range.start = after_key(&after);
        }
        let mut last = after;
        let mut more = false;
        if !range.is_empty() {
            let limit = PageLimit { items: FILL_DOCUMENTS, bytes: FILL_BYTES };
            let page = view.scan(Space::ITEMS, &range, Direction::Forward, limit).await?;
            more = page.next.is_some();
            for (key, item) in page.items {
                last = key.slice(PREFIX_BYTES..);
                let key = self.index.key(&last)?;
                step.changes.push(DocumentChange { key, document: Some(item.payload) });
            }
            if let Some(next) = page.next {
                last = next.slice(PREFIX_BYTES..);
            }
        }
        step.more = true;
        let position = match more {
            true => Position::Filling { after: last, from },
            false => Position::At(behind(from)),
        };
        self.positions.set(&held, position);
        Ok(())
    }
}
