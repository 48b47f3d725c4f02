//! Sessions: reads and writes of items of one partition key that are decided outside of the lane, as scripts do, and become
//! durable all at once or not at all.
//!
//! Reads see what the session has written. The commit checks in the lane that everything it has read is still as it was; if not,
//! nothing is written, and the session has to be run again. So a script that takes its time holds up nobody.

use std::collections::BTreeMap;

use bytes::Bytes;
use lazuli_engine::{
    Direction, Error, Item, ItemKey, KeyRange, Lsn, PREFIX_BYTES, PageLimit, Result, Space,
    Transaction, Tx, after_key,
};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::Documents;
use super::collection::Collection;
use super::item::{Body, Document, IndexDirective};
use super::items::{Run, missing};
use super::key::PartitionKey;
use super::operation::{Action, Etag, Operation, Outcome, Work};
use super::reason::DocumentReason;

/// The most items of a partition key that a session looks through.
const ITEMS_MAX: usize = 50_000;
/// The most writes of a session.
const WRITES_MAX: usize = 10_000;

/// All items of a partition key, added up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sum(u64, u64);

impl Sum {
    fn add(&mut self, id: &[u8], version: Lsn) {
        self.0 += 1;
        self.1 = self.1.wrapping_add(xxh3_64_with_seed(id, version.0));
    }
}

/// An item as a session sees it: as it is stored, or as the session has written it.
#[derive(Clone, Debug)]
pub enum SessionItem {
    Stored(Document),
    Written(Body),
}

impl SessionItem {
    pub fn directive(&self) -> IndexDirective {
        match self {
            Self::Stored(document) => document.directive,
            Self::Written(body) => body.directive(),
        }
    }
}

/// Reads and writes of one partition key.
pub struct Session {
    documents: Documents,
    collection: Collection,
    key: PartitionKey,
    route: Bytes,
    /// The versions of items that were read; none: there was no item.
    read: BTreeMap<String, Option<Lsn>>,
    /// All items, if they were looked through.
    looked_through: Option<Sum>,
    /// In the order in which they were made.
    operations: Vec<Operation>,
    /// What the items are by now; none: deleted.
    written: BTreeMap<String, Option<Body>>,
    pub work: Work,
}

impl Documents {
    /// Begins a session on a partition key.
    pub fn session(&self, collection: &Collection, key: &PartitionKey) -> Result<Session> {
        Ok(Session {
            documents: self.clone(),
            collection: collection.clone(),
            route: collection.route(key)?,
            key: key.clone(),
            read: BTreeMap::new(),
            looked_through: None,
            operations: Vec::new(),
            written: BTreeMap::new(),
            work: Work::default(),
        })
    }
}

impl Session {
    /// An item, as this session has left it.
    pub async fn read(&mut self, id: &str) -> Result<Option<SessionItem>> {
        if let Some(written) = self.written.get(id) {
            return Ok(written.clone().map(SessionItem::Written));
        }
        Ok(self.stored(id).await?.map(SessionItem::Stored))
    }

    async fn stored(&mut self, id: &str) -> Result<Option<Document>> {
        let key = self.collection.item_key(&self.route, id);
        let found = self.documents.engine.get(&key, 1).await?;
        let version = found.as_ref().map(|item| item.version);
        let before = self.read.insert(id.to_owned(), version);
        if before.is_some_and(|before| before != version) {
            return Err(conflict());
        }
        let Some(item) = found else { return Ok(None) };
        self.work.items_read += 1;
        self.work.bytes_read += item.payload.len() as u64;
        self.collection.document(&key.bytes()[PREFIX_BYTES..], &item).map(Some)
    }

    /// All items of the partition key, as this session has left them, in the order of their ids.
    pub async fn items(&mut self) -> Result<Vec<SessionItem>> {
        let id = self.collection.container.id;
        let view = self.documents.engine.read(id, &self.route, 1).await?;
        let mut items = BTreeMap::new();
        let (mut rest, mut sum) = (KeyRange::prefix(self.route.clone()), Sum::default());
        loop {
            let limit = PageLimit::items(1_000);
            let page = view.scan(Space::ITEMS, &rest, Direction::Forward, limit).await?;
            for (key, item) in &page.items {
                let document = self.collection.document(&key[PREFIX_BYTES..], item)?;
                self.work.items_read += 1;
                self.work.bytes_read += item.payload.len() as u64;
                sum.add(document.id.as_bytes(), item.version);
                items.insert(document.id.clone(), SessionItem::Stored(document));
            }
            if items.len() > ITEMS_MAX {
                return Err(too_large());
            }
            match page.next {
                Some(last) => rest.start = after_key(&last.slice(PREFIX_BYTES..)),
                None => break,
            }
        }
        if self.looked_through.replace(sum).is_some_and(|before| before != sum) {
            return Err(conflict());
        }
        for (id, written) in &self.written {
            match written {
                Some(body) => items.insert(id.clone(), SessionItem::Written(body.clone())),
                None => items.remove(id),
            };
        }
        Ok(items.into_values().collect())
    }

    /// Makes one operation. Its conditions are checked now, and once more at the commit.
    pub async fn apply(&mut self, operation: Operation) -> Result<()> {
        if self.operations.len() >= WRITES_MAX {
            return Err(too_large());
        }
        let is_there = match self.written.get(&operation.id) {
            Some(written) => written.is_some(),
            None => {
                let found = self.stored(&operation.id).await?;
                let version = found.as_ref().map(|one| one.version);
                if let (Etag::Is(wanted), Some(version)) = (operation.etag, version)
                    && wanted != version
                {
                    let message = "the item has another etag than the request asks for";
                    return Err(Error::precondition(DocumentReason::EtagMismatch, message));
                }
                found.is_some()
            }
        };
        let written = match &operation.action {
            Action::Create(_) if is_there => {
                let message = format!("there is an item {:?} already", operation.id);
                return Err(Error::exists(DocumentReason::ItemExists, message));
            }
            Action::Replace(_) | Action::Delete | Action::Update(_) if !is_there => {
                return Err(missing(&operation.id));
            }
            Action::Create(body) | Action::Upsert(body) | Action::Replace(body) => {
                Some(body.clone())
            }
            Action::Delete => None,
            Action::Read | Action::Update(_) => {
                let message = "a session writes whole items";
                return Err(Error::invalid(DocumentReason::BadItem, message));
            }
        };
        self.written.insert(operation.id.clone(), written);
        // The etag was checked, and its item is checked again as one that was read.
        self.operations.push(operation.with(Etag::Any));
        Ok(())
    }

    /// Makes everything durable, if all that was read is still as it was. Otherwise fails with `SessionConflict`.
    pub async fn commit(self) -> Result<Vec<Outcome>> {
        let container = self.collection.container.id;
        let Self { documents, collection, key, route, operations, read, looked_through, .. } = self;
        documents.check_room(&collection, &route, &operations).await?;
        let run = Run { collection: collection.clone(), key, route: route.clone(), operations };
        let commit = Commit { run, read, looked_through };
        let outcomes = match documents.engine.write(container, &route, commit).await {
            Ok(outcomes) => outcomes,
            Err(error) => return Err(documents.refused(&collection, error).await),
        };
        // What is written is written, whether or not its size can be looked at now.
        let _ = documents.notice(&collection, &route, &outcomes).await;
        Ok(outcomes)
    }
}

fn conflict() -> Error {
    let message = "what the session has read was changed by another one";
    Error::precondition(DocumentReason::SessionConflict, message)
}

fn too_large() -> Error {
    Error::too_large(DocumentReason::BatchTooLarge, "the session reads or writes too much")
}

struct Commit {
    run: Run,
    read: BTreeMap<String, Option<Lsn>>,
    looked_through: Option<Sum>,
}

impl Commit {
    async fn check(&self, tx: &Tx<'_>) -> Result<()> {
        let Run { collection, route, .. } = &self.run;
        for (id, version) in &self.read {
            let found = tx.get(&collection.item_key(route, id)).await?;
            if found.map(|item| item.version) != *version {
                return Err(conflict());
            }
        }
        let Some(expected) = self.looked_through else { return Ok(()) };
        let (mut rest, mut sum) = (KeyRange::prefix(route.clone()), Sum::default());
        let (id, space) = (collection.container.id, Space::ITEMS);
        loop {
            let page = tx.scan(id, space, &rest, Direction::Forward, PageLimit::MAX).await?;
            let add = |(key, item): &(Bytes, Item)| {
                let key = ItemKey::from_bytes(key.clone(), route.len())?;
                sum.add(key.row(), item.version);
                Ok::<_, Error>(())
            };
            page.items.iter().try_for_each(add)?;
            match page.next {
                Some(last) => rest.start = after_key(&last.slice(PREFIX_BYTES..)),
                None => break,
            }
        }
        if sum == expected { Ok(()) } else { Err(conflict()) }
    }
}

impl Transaction for Commit {
    type Output = Vec<Outcome>;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<Vec<Outcome>> {
        self.check(tx).await?;
        self.run.run(tx).await
    }
}
