//! Reading and writing items.

use bytes::Bytes;
use lazuli_engine::{
    Continuation, Error, FanOut, Item, ItemKey, ItemScan, KeyRange, Lsn, OnFailure, PREFIX_BYTES,
    PageLimit, Result, Space, Transaction, Tx,
};

use super::Documents;
use super::collection::Collection;
use super::entries::unique_entry;
use super::item::{Body, Document, Place};
use super::key::PartitionKey;
use super::limits::BATCH_OPERATIONS_MAX;
use super::operation::{Action, Etag, Operation, Outcome, Work};
use super::past::{self, Successor};
use super::reason::DocumentReason;

/// The items with one set of unique values that are looked at: one that is there, and some that have expired.
const UNIQUE_OTHERS_MAX: usize = 16;

/// All operations or none, on items of one partition key.
pub(super) struct Run {
    pub(super) collection: Collection,
    pub(super) key: PartitionKey,
    pub(super) route: Bytes,
    pub(super) operations: Vec<Operation>,
}

impl Transaction for Run {
    type Output = Vec<Outcome>;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<Vec<Outcome>> {
        let mut outcomes = Vec::with_capacity(self.operations.len());
        for (position, operation) in self.operations.iter().enumerate() {
            let outcome = self.one(tx, operation).await;
            outcomes.push(outcome.map_err(|error| error.at(position))?);
        }
        Ok(outcomes)
    }

    fn cost(&self) -> u32 {
        1
    }
}

impl Run {
    async fn one(&self, tx: &mut Tx<'_>, operation: &Operation) -> Result<Outcome> {
        let key = self.collection.item_key(&self.route, &operation.id);
        let entries_before = tx.entries_written();
        let raw = tx.get_raw(&key).await?;
        let found = raw.as_ref().filter(|item| !item.is_expired(tx.now_ms()));
        let mut work = Work::default();
        if let Some(item) = found {
            work.items_read = 1;
            work.bytes_read = item.payload.len() as u64;
        }
        let was_there = found.is_some();
        let is_read = matches!(operation.action, Action::Read);
        check(operation, found, is_read)?;
        let document = match &operation.action {
            Action::Read => {
                let item = found.ok_or_else(|| missing(&operation.id))?;
                Some(self.document(&key, item)?)
            }
            Action::Delete => {
                let item = found.ok_or_else(|| missing(&operation.id))?;
                work.items_written = 1;
                work.bytes_written = item.payload.len() as u64;
                self.keep(tx, &key, Some(item), Successor::Delete).await?;
                tx.remove(&key, item)?;
                if self.collection.definition.versions_kept_s == 0 {
                    // Who wants only the last version of each item has nothing to learn from its end.
                    tx.forget_change(&key, tx.lsn())?;
                }
                None
            }
            Action::Create(body) | Action::Upsert(body) | Action::Replace(body) => {
                Some(self.put(tx, &key, raw.as_ref(), body, &mut work).await?)
            }
            Action::Update(update) => {
                let item = found.ok_or_else(|| missing(&operation.id))?;
                let body = update(&self.document(&key, item)?)?;
                Some(self.put(tx, &key, raw.as_ref(), &body, &mut work).await?)
            }
        };
        work.entries_written = tx.entries_written() - entries_before;
        let range = tx.partition_of(&key)?;
        Ok(Outcome { document, was_there, work, range, lsn: tx.lsn() })
    }

    async fn put(
        &self,
        tx: &mut Tx<'_>,
        key: &ItemKey,
        old: Option<&Item>,
        body: &Body,
        work: &mut Work,
    ) -> Result<Document> {
        if body.id().as_bytes() != key.row() {
            let message = "an item keeps its id";
            return Err(Error::invalid(DocumentReason::BadId, message));
        }
        let definition = self.collection.definition();
        let said = PartitionKey::of(&definition.key_paths, body.view().into())?;
        if said != self.key && !self.key.is_none() {
            let message = "the item says another partition key than the request";
            return Err(Error::invalid(DocumentReason::KeyMismatch, message));
        }
        let created = match old.filter(|item| !item.is_expired(tx.now_ms())) {
            Some(item) => super::item::stored(&item.payload)?.0,
            None => tx.lsn(),
        };
        let payload = body.payload(created);
        let expires_ms = definition.expiry_ms(tx.now_ms(), body.ttl_s());
        work.items_written = 1;
        work.bytes_written = payload.len() as u64;
        self.check_unique(tx, key, body).await?;
        self.keep(tx, key, old, Successor::Put).await?;
        tx.replace(key, old, payload.clone(), expires_ms)?;
        let (version, written_ms) = (tx.lsn(), tx.set_back_ms());
        let item = Item { version, expires_ms, written_ms, payload };
        Ok(self.document(key, &item)?.made_here())
    }

    /// Refuses an item that has the values of another one where they must be unique.
    async fn check_unique(&self, tx: &mut Tx<'_>, key: &ItemKey, body: &Body) -> Result<()> {
        for paths in &self.collection.definition.unique_keys {
            let entry = unique_entry(paths, body.view().into());
            let id = self.collection.container.id;
            for other in tx.entry_items(id, &entry, &self.route, UNIQUE_OTHERS_MAX).await? {
                let Some(item) = tx.get_raw(&other).await?.filter(|_| other != *key) else {
                    continue;
                };
                if !item.is_expired(tx.now_ms()) {
                    let message = "an item of this partition key has these unique values already";
                    return Err(Error::exists(DocumentReason::NotUnique, message));
                }
                tx.remove(&other, &item)?;
            }
        }
        Ok(())
    }

    /// Keeps what an item was before it is replaced or deleted, or forgets that it was written.
    async fn keep(
        &self,
        tx: &mut Tx<'_>,
        key: &ItemKey,
        old: Option<&Item>,
        successor: Successor,
    ) -> Result<()> {
        let Some(old) = old else { return Ok(()) };
        let kept_s = self.collection.definition.versions_kept_s;
        if kept_s == 0 {
            return tx.forget_change(key, old.version);
        }
        past::keep(tx, key, old, successor, kept_s).await
    }

    fn document(&self, key: &ItemKey, item: &Item) -> Result<Document> {
        let place = Place { route: key.route(), row: key.row() };
        Document::new(self.collection.rid(), self.key.clone(), &place, item)
    }
}

fn check(operation: &Operation, found: Option<&Item>, is_read: bool) -> Result<()> {
    let exists = || {
        let message = format!("there is an item {:?} already", operation.id);
        Err(Error::exists(DocumentReason::ItemExists, message))
    };
    match (&operation.action, found) {
        (Action::Create(_), Some(_)) => return exists(),
        (Action::Replace(_) | Action::Update(_) | Action::Delete | Action::Read, None) => {
            return Err(missing(&operation.id));
        }
        _ => {}
    }
    let differs = || {
        let message = "the item has another etag than the request asks for";
        Err(Error::precondition(DocumentReason::EtagMismatch, message))
    };
    match (operation.etag, found) {
        (Etag::Any, _) | (Etag::IsNot(_) | Etag::Absent, None) => Ok(()),
        (Etag::Absent, Some(_)) => exists(),
        (Etag::Is(wanted), Some(item)) if item.version == wanted => Ok(()),
        // An upsert with an etag creates what is not there.
        (Etag::Is(_), None) => Ok(()),
        (Etag::Is(_), Some(_)) => differs(),
        (Etag::IsNot(excluded), Some(item)) if item.version != excluded => Ok(()),
        (Etag::IsNot(_), Some(_)) if is_read => {
            let message = "the item has not changed";
            Err(Error::precondition(DocumentReason::NotModified, message))
        }
        (Etag::IsNot(_), Some(_)) => differs(),
    }
}

pub(super) fn missing(id: &str) -> Error {
    Error::not_found(DocumentReason::ItemMissing, format!("there is no item {id:?}"))
}

/// Which items a feed looks at.
#[derive(Clone, Debug)]
pub enum Scope {
    /// Those of a partition key, or of the first levels of one.
    Key(PartitionKey),
    /// Those whose routes are in this range.
    Routes(KeyRange),
}

/// A feed of items and how much of it to give at once.
#[derive(Clone, Debug)]
pub struct ItemFeed {
    pub scope: Scope,
    pub limit: PageLimit,
    /// What a page before said is next.
    pub after: Option<Bytes>,
}

/// A page of a feed.
#[derive(Clone, Debug)]
pub struct ItemPage {
    pub documents: Vec<Document>,
    /// Where to go on; none at the end. It stays good across restarts, splits, merges and moves.
    pub next: Option<Bytes>,
    pub work: Work,
}

impl Documents {
    /// Reads one item. Fails with `ItemMissing`, and with `NotModified` if the etag says so.
    pub async fn read(
        &self,
        collection: &Collection,
        key: &PartitionKey,
        id: &str,
        etag: Etag,
    ) -> Result<Outcome> {
        let route = collection.route(key)?;
        let item_key = collection.item_key(&route, id);
        let view = self.engine.read(collection.container.id, &route, 1).await?;
        let found = view.get(&item_key).await?;
        let operation = Operation::read(id).with(etag);
        check(&operation, found.as_ref(), true)?;
        let item = found.ok_or_else(|| missing(id))?;
        let place = Place { route: &route, row: id.as_bytes() };
        let document = Document::new(collection.rid(), key.clone(), &place, &item)?;
        let bytes_read = item.payload.len() as u64;
        let work = Work { items_read: 1, bytes_read, ..Work::default() };
        let lsn = view.last_lsn().await?;
        Ok(Outcome {
            document: Some(document),
            was_there: true,
            work,
            range: view.partition(),
            lsn,
        })
    }

    /// One operation on one item.
    pub async fn run_one(
        &self,
        collection: &Collection,
        key: &PartitionKey,
        operation: Operation,
    ) -> Result<Outcome> {
        let mut outcomes = self.run(collection, key, vec![operation]).await?;
        let none = || Error::internal("no-outcome", "an operation without an outcome");
        outcomes.pop().ok_or_else(none)
    }

    /// Operations on items of one partition key, all or none of them. A failure says which one it was.
    pub async fn run(
        &self,
        collection: &Collection,
        key: &PartitionKey,
        operations: Vec<Operation>,
    ) -> Result<Vec<Outcome>> {
        if operations.len() > BATCH_OPERATIONS_MAX {
            let message = format!("a batch has at most {BATCH_OPERATIONS_MAX} operations");
            return Err(Error::too_large(DocumentReason::BatchTooLarge, message));
        }
        let route = collection.route(key)?;
        self.check_room(collection, &route, &operations).await?;
        let run = Run {
            collection: collection.clone(),
            key: key.clone(),
            route: route.clone(),
            operations,
        };
        let outcomes = match self.engine.write(collection.container.id, &route, run).await {
            Ok(outcomes) => outcomes,
            Err(error) => return Err(self.refused(collection, error).await),
        };
        // What is written is written, whether or not its size can be looked at now.
        let _ = self.notice(collection, &route, &outcomes).await;
        Ok(outcomes)
    }

    /// A page of items in the order of their routes and ids.
    pub async fn items(&self, collection: &Collection, feed: &ItemFeed) -> Result<ItemPage> {
        let routes = collection.routes_in(&feed.scope)?;
        let id = collection.container.id;
        let after = feed.after.clone().map(|after| Continuation::new(id, after));
        let scan = ItemScan { space: Space::ITEMS, range: routes.clone() };
        let request = FanOut { routes, limit: feed.limit, on_failure: OnFailure::Fail };
        let page = self.engine.fan_out(id, &scan, &request, after.as_ref()).await?;
        let mut work = Work::default();
        let mut documents = Vec::with_capacity(page.rows.len());
        for (key, item) in &page.rows {
            work.items_read += 1;
            work.bytes_read += item.payload.len() as u64;
            documents.push(collection.document(&key[PREFIX_BYTES..], item)?);
        }
        let next = page.next.map(|next| next.position().clone());
        Ok(ItemPage { documents, next, work })
    }

    /// Deletes items of a partition key, up to `most` at once, and says whether there are more.
    pub async fn delete_some(
        &self,
        collection: &Collection,
        key: &PartitionKey,
        most: usize,
    ) -> Result<bool> {
        let feed =
            ItemFeed { scope: Scope::Key(key.clone()), limit: PageLimit::items(most), after: None };
        let page = self.items(collection, &feed).await?;
        for some in page.documents.chunks(BATCH_OPERATIONS_MAX) {
            let Some(first) = some.first() else { break };
            let route = collection.route(&first.key)?;
            let operations = some.iter().map(|one| Operation::delete(&one.id)).collect();
            let (collection, key) = (collection.clone(), first.key.clone());
            let container = collection.container.id;
            let run = Run { collection, key, route: route.clone(), operations };
            self.engine.write(container, &route, DeleteAll(run)).await?;
        }
        Ok(page.next.is_some())
    }

    /// The last number of the range that holds a route: every write before it is visible.
    pub async fn last_lsn(&self, collection: &Collection, route: &[u8]) -> Result<Lsn> {
        self.engine.read(collection.container.id, route, 0).await?.last_lsn().await
    }
}

/// Deletes items that may be gone already.
struct DeleteAll(Run);

impl Transaction for DeleteAll {
    type Output = ();

    async fn run(&self, tx: &mut Tx<'_>) -> Result<()> {
        for operation in &self.0.operations {
            match self.0.one(tx, operation).await {
                Err(error) if error.is(DocumentReason::ItemMissing) => {}
                done => drop(done?),
            }
        }
        Ok(())
    }
}

impl Collection {
    pub(super) fn routes_in(&self, scope: &Scope) -> Result<KeyRange> {
        match scope {
            Scope::Key(key) => self.routes_of(key),
            Scope::Routes(routes) => Ok(routes.clone()),
        }
    }

    /// The document of an item under `route | row key`.
    pub(super) fn document(&self, bytes: &[u8], item: &Item) -> Result<Document> {
        let (route, row) = self.split(bytes)?;
        let place = Place { route, row };
        Document::new(self.rid(), self.key_of(route)?, &place, item)
    }
}
