//! Containers: created, changed, leased, deleted, restored and listed.

use std::sync::Arc;

use bytes::Bytes;
use lazuli_engine::{
    Container, Error, ItemKey, KeyPart, KeyRange, Lsn, Order, PageLimit, PartitionScan, Result,
    RowPage, Space, Transaction, Tx, View, after_prefix,
};

use super::address::{ContainerAddress, no_container, number_at, record_key};
use super::conditions::{Conditions, Facts};
use super::cursor::{States, text_prefix};
use super::lease::{Lease, LeaseAction, Leased};
use super::list::Page;
use super::put::Protection;
use super::record::{ContainerRecord, Deleted, PublicAccess};
use super::rows::damaged;
use super::{BlobReason, Blobs};

const DAY_MS: u64 = 24 * 3600 * 1000;

/// What a new container is.
#[derive(Clone, Debug, Default)]
pub struct NewBlobContainer {
    pub metadata: Vec<(String, String)>,
    pub public_access: PublicAccess,
    pub scope: Option<String>,
    pub is_scope_fixed: bool,
    pub is_immutable_by_version: bool,
    /// Whether its blobs are placed by a hash of their names.
    pub is_hashed: bool,
}

struct Create {
    key: ItemKey,
    new: NewBlobContainer,
}

impl Transaction for Create {
    type Output = ContainerRecord;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<ContainerRecord> {
        if tx.get(&self.key).await?.is_some() {
            let message = "there is a container of this name";
            return Err(Error::exists(BlobReason::ContainerExists, message));
        }
        let new = self.new.clone();
        let record = ContainerRecord {
            generation: tx.lsn().0.cast_signed(),
            created_ms: now_ms(tx),
            changed: tx.lsn(),
            changed_ms: tx.set_back_ms(),
            metadata: new.metadata,
            public_access: new.public_access,
            policies: Bytes::new(),
            lease: Lease::default(),
            scope: new.scope,
            is_scope_fixed: new.is_scope_fixed,
            is_immutable_by_version: new.is_immutable_by_version,
            is_hashed: new.is_hashed,
            deleted: None,
        };
        tx.put(&self.key, record.encode()).await?;
        Ok(record)
    }
}

/// Changes a container's record if the conditions hold.
struct Amend<F> {
    key: ItemKey,
    conditions: Conditions,
    /// Whether it gets a new ETag.
    modifies: bool,
    change: F,
}

impl<F> Transaction for Amend<F>
where
    F: Fn(&mut ContainerRecord, u64) -> Result<()> + Send + Sync + 'static,
{
    type Output = ContainerRecord;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<ContainerRecord> {
        let item = tx.get(&self.key).await?.ok_or_else(no_container)?;
        let mut record = ContainerRecord::decode(item.payload)?;
        record.check(&self.conditions, now_ms(tx), false)?;
        (self.change)(&mut record, now_ms(tx))?;
        if self.modifies {
            record.touch(tx);
        }
        tx.put(&self.key, record.encode()).await?;
        Ok(record)
    }
}

impl ContainerRecord {
    /// A container's lease keeps others from deleting it and from nothing else, but an id that is given must be right.
    fn check(&self, conditions: &Conditions, now_ms: u64, deletes: bool) -> Result<()> {
        let given = conditions.lease_id.as_deref();
        if deletes {
            self.lease.check_write(given, now_ms, Leased::Container)?;
        } else {
            self.lease.check_read(given, now_ms, Leased::Container)?;
        }
        let facts = Facts { changed: self.changed, modified_s: self.modified_s(), tags: &[] };
        let rest = Conditions { lease_id: None, ..conditions.clone() };
        rest.check_write(Some(facts), Some(&Lease::default()), now_ms)
    }
}

struct Delete {
    key: ItemKey,
    conditions: Conditions,
    protection: Protection,
}

impl Transaction for Delete {
    type Output = ();

    async fn run(&self, tx: &mut Tx<'_>) -> Result<()> {
        let item = tx.get(&self.key).await?.ok_or_else(no_container)?;
        let mut record = ContainerRecord::decode(item.payload)?;
        record.check(&self.conditions, now_ms(tx), true)?;
        tx.delete(&self.key).await?;
        let row = tx.lsn().0.to_be_bytes();
        let beside = |space| ItemKey::new(self.key.container(), space, self.key.route(), &row);
        match self.protection.retention_days {
            Some(days) => {
                let at_ms = now_ms(tx);
                let until_ms = at_ms + u64::from(days) * DAY_MS;
                record.deleted = Some(Deleted { at_ms, until_ms });
                record.lease = Lease::default();
                tx.put(&beside(Space::BLOB_PAST), record.encode()).await
            }
            // The blobs of this generation have no container any more: they are garbage.
            None => tx.put(&beside(Space::BLOB_GARBAGE), record.encode()).await,
        }
    }
}

/// Brings a deleted container back under a name that is free.
struct Restore {
    /// Where the deleted one is.
    from: ItemKey,
    to: ItemKey,
}

impl Transaction for Restore {
    type Output = ContainerRecord;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<ContainerRecord> {
        let item = tx.get(&self.from).await?.ok_or_else(no_container)?;
        let mut record = ContainerRecord::decode(item.payload)?;
        if record.deleted.take().is_none_or(|deleted| deleted.until_ms <= now_ms(tx)) {
            return Err(no_container());
        }
        if tx.get(&self.to).await?.is_some() {
            let message = "there is a container of this name";
            return Err(Error::exists(BlobReason::ContainerInUse, message));
        }
        tx.delete(&self.from).await?;
        record.touch(tx);
        tx.put(&self.to, record.encode()).await?;
        Ok(record)
    }
}

impl Blobs {
    /// Creates a container. Fails with `Exists` if there is one of this name.
    pub async fn create_container(
        &self,
        address: &ContainerAddress,
        new: NewBlobContainer,
    ) -> Result<ContainerRecord> {
        let directory = self.directory_or_new(&address.account).await?;
        let key = record_key(&directory, &address.container)?;
        let route = Bytes::copy_from_slice(key.route());
        self.engine.write(directory.id, &route, Create { key, new }).await
    }

    /// What is known about a container. A lease id that is given must be right.
    pub async fn container(
        &self,
        address: &ContainerAddress,
        lease_id: Option<&str>,
    ) -> Result<ContainerRecord> {
        let found = self.find(address).await?;
        found.record.lease.check_read(lease_id, self.now_ms(), Leased::Container)?;
        Ok(found.record)
    }

    pub async fn set_container_metadata(
        &self,
        address: &ContainerAddress,
        metadata: Vec<(String, String)>,
        conditions: &Conditions,
    ) -> Result<ContainerRecord> {
        let change = move |record: &mut ContainerRecord, _| {
            record.metadata.clone_from(&metadata);
            Ok(())
        };
        self.amend_container(address, conditions, true, change).await
    }

    /// Sets who may read without a key, and the stored policies, in the front's own form.
    pub async fn set_container_access(
        &self,
        address: &ContainerAddress,
        public_access: PublicAccess,
        policies: Bytes,
        conditions: &Conditions,
    ) -> Result<ContainerRecord> {
        let change = move |record: &mut ContainerRecord, _| {
            record.public_access = public_access;
            record.policies = policies.clone();
            Ok(())
        };
        self.amend_container(address, conditions, true, change).await
    }

    /// Makes a change of a container's lease. Answers the container and the seconds until a broken lease is free.
    pub async fn lease_container(
        &self,
        address: &ContainerAddress,
        action: LeaseAction,
        conditions: &Conditions,
    ) -> Result<(ContainerRecord, u32)> {
        let left = std::sync::Arc::new(std::sync::atomic::AtomicU32::new(0));
        let told = left.clone();
        let change = move |record: &mut ContainerRecord, now_ms| {
            let seconds = record.lease.act(&action, now_ms)?;
            told.store(seconds, std::sync::atomic::Ordering::Relaxed);
            Ok(())
        };
        let conditions = Conditions { lease_id: None, ..conditions.clone() };
        let record = self.amend_container(address, &conditions, false, change).await?;
        Ok((record, left.load(std::sync::atomic::Ordering::Relaxed)))
    }

    async fn amend_container<F>(
        &self,
        address: &ContainerAddress,
        conditions: &Conditions,
        modifies: bool,
        change: F,
    ) -> Result<ContainerRecord>
    where
        F: Fn(&mut ContainerRecord, u64) -> Result<()> + Send + Sync + 'static,
    {
        let directory = self.directory(&address.account).await?.ok_or_else(no_container)?;
        let key = record_key(&directory, &address.container)?;
        let route = Bytes::copy_from_slice(key.route());
        let amend = Amend { key, conditions: conditions.clone(), modifies, change };
        self.engine.write(directory.id, &route, amend).await
    }

    /// Deletes a container with all its blobs, for good or for as long as the protection says.
    pub async fn delete_container(
        &self,
        address: &ContainerAddress,
        conditions: &Conditions,
        protection: Protection,
    ) -> Result<()> {
        let directory = self.directory(&address.account).await?.ok_or_else(no_container)?;
        let key = record_key(&directory, &address.container)?;
        let route = Bytes::copy_from_slice(key.route());
        let delete = Delete { key, conditions: conditions.clone(), protection };
        self.engine.write(directory.id, &route, delete).await
    }

    /// Brings back the container that was deleted by the write `deleted`, as a list of deleted ones names it.
    pub async fn restore_container(
        &self,
        address: &ContainerAddress,
        deleted: Lsn,
    ) -> Result<ContainerRecord> {
        let directory = self.directory(&address.account).await?.ok_or_else(no_container)?;
        let to = record_key(&directory, &address.container)?;
        let row = deleted.0.to_be_bytes();
        let from = ItemKey::new(directory.id, Space::BLOB_PAST, to.route(), &row);
        let route = Bytes::copy_from_slice(to.route());
        self.engine.write(directory.id, &route, Restore { from, to }).await
    }
}

/// The time of a transaction: the clock's, where that was set back.
fn now_ms(tx: &Tx<'_>) -> u64 {
    tx.set_back_ms().unwrap_or(tx.now_ms())
}

#[derive(Clone, Debug, Default)]
pub struct ListContainers {
    pub prefix: String,
    /// Whether those are listed that were deleted and can be restored.
    pub deleted: bool,
    pub most: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedContainer {
    pub name: String,
    /// The write that deleted it, by which it can be restored.
    pub deleted: Option<Lsn>,
    pub record: ContainerRecord,
}

impl Blobs {
    /// A page of the containers of an account, by name, behind the place where the page before ended.
    pub async fn list_containers(
        &self,
        account: &str,
        options: &ListContainers,
        after: Option<&Bytes>,
    ) -> Result<Page<ListedContainer>> {
        let Some(directory) = self.directory(account).await? else {
            return Ok(Page { entries: Vec::new(), next: None });
        };
        let start = text_prefix(&[], &options.prefix);
        let range = KeyRange::new(start.clone(), after_prefix(&start));
        let (now_ms, deleted) = (self.now_ms(), options.deleted);
        let scan = ContainerScan { directory: directory.clone(), range, deleted, now_ms };
        self.page_of_list(&directory, &scan, &scan.range, options.most, after).await
    }
}

struct ContainerScan {
    directory: Arc<Container>,
    range: KeyRange,
    deleted: bool,
    now_ms: u64,
}

impl PartitionScan for ContainerScan {
    type Row = (Bytes, ListedContainer);

    fn order(&self) -> Order {
        Order::ByRoute
    }

    async fn page(
        &self,
        view: &View,
        after: Option<&Bytes>,
        limit: PageLimit,
    ) -> Result<RowPage<Self::Row>> {
        let mut states = States::new(&self.directory, &self.range, after, self.deleted);
        let mut page = RowPage { rows: Vec::new(), bytes: 0, next: None };
        while let Some(row) = states.next(view, limit).await? {
            let key = row.sort_key();
            page.bytes += key.len() + row.item.payload.len();
            let record = ContainerRecord::decode(row.item.payload)?;
            if record.deleted.is_some_and(|deleted| deleted.until_ms <= self.now_ms) {
                continue;
            }
            let parts = self.directory.kind.key(&self.directory.key, &row.route)?;
            let [KeyPart::Text(name)] = &parts[..] else { return Err(damaged()) };
            let deleted = match row.past {
                Some(past) => Some(Lsn(number_at(&past, 0).ok_or_else(damaged)?)),
                None => None,
            };
            let listed = ListedContainer { name: name.clone(), deleted, record };
            page.rows.push((key.clone(), listed));
            if page.rows.len() >= limit.items || page.bytes >= limit.bytes {
                page.next = Some(key);
                break;
            }
        }
        Ok(page)
    }

    fn sort_key(&self, (key, _): &Self::Row) -> Result<Bytes> {
        Ok(key.clone())
    }
}
