//! Containers of documents: created, opened, and the ranges that they are made of.

use std::sync::Arc;

use bytes::Bytes;
use lazuli_engine::{
    Container, Cuts, Error, ItemKey, KeyRange, Kind, Known, Middle, NewContainer, Partition,
    PartitionId, Policies, Result, Size, Space, after_prefix,
};
use lazuli_value::Value;

use super::definition::{DEFINITION, Definition, NewDefinition};
use super::directory::{Create, TakeNumber};
use super::item::damaged;
use super::items::Scope;
use super::key::{PartitionKey, schema};
use super::reason::DocumentReason;
use super::resource::Resource;
use super::rid::{ResourceKind, Rid};
use super::{Documents, SCHEMA};

/// The attribute that says what people call the container.
pub(super) const TITLE: &str = "title";

/// The engine's container with the items of a container of documents.
pub(super) fn container_name(account: &str, rid: &Rid) -> String {
    format!("documents/{account}/{rid}")
}

/// A container of documents, as it was when it was opened.
#[derive(Clone, Debug)]
pub struct Collection {
    pub(super) container: Arc<Container>,
    pub(super) definition: Arc<Definition>,
}

/// One of the ranges of effective partition keys that a container is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Range {
    /// Never used again for another range.
    pub id: PartitionId,
    /// Empty: from the beginning.
    pub min: Bytes,
    /// None: to the end.
    pub max: Option<Bytes>,
    /// The ranges that it came from, the oldest first.
    pub parents: Vec<PartitionId>,
}

impl Range {
    /// A bound as clients write it.
    pub fn min_text(&self) -> String {
        epk_text(&self.min)
    }

    pub fn max_text(&self) -> String {
        self.max.as_ref().map_or_else(|| "FF".to_owned(), |max| epk_text(max))
    }

    pub fn routes(&self) -> KeyRange {
        KeyRange::new(self.min.clone(), self.max.clone())
    }
}

/// An effective partition key as clients write it.
pub fn epk_text(epk: &[u8]) -> String {
    epk.iter().map(|byte| format!("{byte:02X}")).collect()
}

/// The bytes of an effective partition key; the text `FF` is the end of all, and none.
pub fn epk_bound(text: &str) -> Result<Option<Bytes>> {
    if text == "FF" {
        return Ok(None);
    }
    let digits = text.as_bytes();
    let byte = |pair: &[u8]| {
        let text = std::str::from_utf8(pair).ok()?;
        u8::from_str_radix(text, 16).ok().filter(|_| pair.len() == 2 && pair[0] != b'+')
    };
    let bytes: Option<Vec<u8>> = digits.chunks(2).map(byte).collect();
    let bad = || Error::invalid(DocumentReason::BadKey, "a bound is hexadecimal");
    Ok(Some(bytes.ok_or_else(bad)?.into()))
}

/// How a container of documents is made.
#[derive(Clone, Debug)]
pub struct NewCollection {
    pub definition: NewDefinition,
    /// The ranges that it begins with.
    pub ranges: u16,
    /// The budget of each range, in units of cost a second; none means no limit.
    pub throughput: Option<u32>,
    /// What the front keeps about it.
    pub body: Value,
}

impl Collection {
    pub fn rid(&self) -> &Rid {
        &self.definition.rid
    }

    pub fn definition(&self) -> &Arc<Definition> {
        &self.definition
    }

    pub fn container(&self) -> &Arc<Container> {
        &self.container
    }

    /// Grows with every change of the container's definition or ranges.
    pub fn version(&self) -> u64 {
        self.container.version
    }

    /// The effective partition key of a key, or the beginning of those of a key of fewer levels than there are.
    pub fn epk(&self, key: &PartitionKey) -> Result<Bytes> {
        match key.is_none() {
            true => self.container.kind.epk(&key.parts(self.definition.levels())?),
            false => self.container.kind.epk(&key.first_parts(self.definition.levels())?),
        }
    }

    /// The routes of a key: one shardlet, or all below the first levels of a hierarchical one.
    pub fn routes_of(&self, key: &PartitionKey) -> Result<KeyRange> {
        let is_whole = key.is_none() || key.0.len() == self.definition.levels();
        match is_whole {
            true => Ok(KeyRange::prefix(self.route(key)?)),
            false => Ok(KeyRange::prefix(self.epk(key)?)),
        }
    }

    pub(super) fn route(&self, key: &PartitionKey) -> Result<Bytes> {
        let parts = key.parts(self.definition.levels())?;
        self.container.kind.route(&self.container.key, &parts)
    }

    pub(super) fn item_key(&self, route: &[u8], id: &str) -> ItemKey {
        ItemKey::new(self.container.id, Space::ITEMS, route, id.as_bytes())
    }

    /// Splits `route | row key`.
    pub(super) fn split<'a>(&self, bytes: &'a [u8]) -> Result<(&'a [u8], &'a [u8])> {
        self.container.kind.split(&self.container.key, bytes)
    }

    pub(super) fn key_of(&self, route: &[u8]) -> Result<PartitionKey> {
        let parts = self.container.kind.key(&self.container.key, route)?;
        PartitionKey::from_parts(&parts).ok_or_else(damaged)
    }
}

impl Documents {
    /// Creates a container under a database. Fails with `Exists`, and with `ParentMissing`.
    pub async fn create_collection(
        &self,
        account: &str,
        database: &Rid,
        id: &str,
        new: NewCollection,
    ) -> Result<(Resource, Collection)> {
        let shelf = self.shelf(account).await?;
        let (directory, route) = (shelf.container.id, shelf.route.clone());
        // What cannot be created is refused before anything is made for it.
        match self.resource(account, ResourceKind::Collection, Some(database), id).await {
            Ok(_) => {
                let message = format!("there is a container {id:?} already");
                return Err(Error::exists(DocumentReason::ResourceExists, message));
            }
            Err(error) if error.kind() == Kind::NotFound => {}
            Err(error) => return Err(error),
        }
        let number = self.engine.write(directory, &route, TakeNumber(shelf.clone())).await?;
        let rid = Rid::new(ResourceKind::Collection, Some(database), number);
        let name = container_name(account, &rid);
        let definition = Definition::new(rid.clone(), new.definition)?;
        let made = self.make_container(&name, id, &definition, new.ranges, new.throughput).await?;
        let create = Create {
            shelf,
            kind: ResourceKind::Collection,
            parent: Some(database.clone()),
            id: Some(id.to_owned()),
            body: new.body,
            rid: Some(rid),
        };
        match self.engine.write(directory, &route, create).await {
            Ok(resource) => {
                let definition = self.rules.definition(&made)?;
                let container = Arc::new(made);
                Ok((resource, Collection { container, definition }))
            }
            Err(error) => {
                self.engine.delete_container(&name).await?;
                Err(error)
            }
        }
    }

    async fn make_container(
        &self,
        name: &str,
        title: &str,
        definition: &Definition,
        ranges: u16,
        throughput: Option<u32>,
    ) -> Result<Container> {
        let attributes =
            [(TITLE.to_owned(), title.to_owned()), (DEFINITION.to_owned(), definition.to_text())];
        let new = NewContainer {
            name: name.to_owned(),
            kind: definition.key_kind.map(),
            key: schema(definition.levels())?,
            schema: SCHEMA.to_owned(),
            placement: Vec::new(),
            policies: Policies {
                // The change feed needs them, and clients may begin to read it at any time.
                changes: true,
                throughput,
                attributes: attributes.into(),
            },
            cuts: Cuts::Even(ranges.max(1)),
            shards: Vec::new(),
        };
        self.engine.create_container(&new).await
    }

    /// A container by the names of its database and its own. Fails with `NotFound`.
    pub async fn open(
        &self,
        account: &str,
        database: &str,
        id: &str,
    ) -> Result<(Resource, Collection)> {
        let database = self.resource(account, ResourceKind::Database, None, database).await?;
        let parent = Some(&database.rid);
        let resource = self.resource(account, ResourceKind::Collection, parent, id).await?;
        let collection = self.open_rid(account, &resource.rid).await?;
        Ok((resource, collection))
    }

    /// A container by its id. Fails with `NotFound`.
    pub async fn open_rid(&self, account: &str, rid: &Rid) -> Result<Collection> {
        let opened = self.engine.open(&container_name(account, rid), SCHEMA).await;
        let container = opened.map_err(|error| match error.kind() {
            Kind::NotFound => {
                let message = format!("there is no container {rid}");
                Error::not_found(DocumentReason::ResourceMissing, message)
            }
            _ => error,
        })?;
        let definition = self.rules.definition(&container)?;
        Ok(Collection { container, definition })
    }

    /// The partitions of a container as the catalog has them now, in the order of their routes.
    pub(super) async fn partitions(&self, collection: &Collection) -> Result<Vec<Partition>> {
        let catalog = self.engine.manager().catalog();
        let (id, all) = (collection.container.id, KeyRange::all());
        let entries = catalog.partitions_in(id, &all, RANGES_MAX).await?;
        Ok(entries.into_iter().map(|entry| entry.partition).collect())
    }

    /// Cuts a range in two, at an effective partition key or where both halves are as large.
    pub async fn split(
        &self,
        collection: &Collection,
        range: PartitionId,
        at: Option<Bytes>,
    ) -> Result<()> {
        let partitions = self.partitions(collection).await?;
        let found = partitions.into_iter().find(|partition| partition.id == range);
        let partition = found.ok_or_else(|| gone(range))?;
        let at = match at {
            Some(at) => at,
            None => self.engine.middle(&partition, Middle::Size).await?,
        };
        self.engine.split(Known::from(&partition), at).await?;
        Ok(())
    }

    /// Refuses with `Throttled` if a range of this scope is over its budget.
    pub async fn admit(&self, collection: &Collection, scope: &Scope) -> Result<()> {
        self.engine.admit(collection.container.id, &collection.routes_in(scope)?).await
    }

    /// Takes what a request has cost from the budgets of the ranges of this scope, from each the same.
    pub async fn charge(&self, collection: &Collection, scope: &Scope, cost: u32) -> Result<()> {
        let routes = collection.routes_in(scope)?;
        self.engine.charge_after(collection.container.id, &routes, cost).await
    }

    /// What each range holds: items and bytes, as far as they are counted.
    pub async fn sizes(&self, collection: &Collection) -> Result<Vec<(PartitionId, Size)>> {
        let mut sizes = Vec::new();
        for partition in self.partitions(collection).await? {
            let size = self.engine.partition_size(partition.id, partition.shard).await?;
            sizes.push((partition.id, size));
        }
        Ok(sizes)
    }

    /// Changes the budget of each range.
    pub async fn set_throughput(
        &self,
        collection: &Collection,
        throughput: Option<u32>,
    ) -> Result<()> {
        let name = collection.container.name.clone();
        self.engine.set_throughput(&name, throughput).await
    }
}

fn gone(range: PartitionId) -> Error {
    let message = format!("the container has no range {range}");
    Error::not_found(DocumentReason::RangeGone, message)
}

/// The most ranges of a container that are listed.
const RANGES_MAX: usize = 16_384;

/// The routes between two bounds as clients write them.
pub fn routes_between(min: &str, max: &str) -> Result<KeyRange> {
    let start = epk_bound(min)?;
    match start {
        // From the end of all to anywhere there is nothing.
        None => Ok(KeyRange::new(Bytes::new(), Some(Bytes::new()))),
        Some(start) => Ok(KeyRange::new(start, end_bound(max)?)),
    }
}

/// The end of a range. One that is written as `xxFF` with a whole number of hashes in front of it is behind all of them.
fn end_bound(text: &str) -> Result<Option<Bytes>> {
    let Some(bound) = epk_bound(text)? else { return Ok(None) };
    match bound.split_last() {
        Some((0xff, front)) if front.len().is_multiple_of(16) && !front.is_empty() => {
            Ok(after_prefix(front))
        }
        _ => Ok(Some(bound)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_read_as_clients_write_them() {
        let all = routes_between("", "FF").unwrap();
        assert_eq!(all, KeyRange::all());
        let some = routes_between("1F", "3FFF").unwrap();
        assert_eq!(some, KeyRange::new(&b"\x1f"[..], Some(Bytes::from_static(b"\x3f\xff"))));
        let hash = "0E711127C5B5A8E4726AC6DD306A3E59";
        let below = routes_between(hash, &format!("{hash}FF")).unwrap();
        assert_eq!(below, KeyRange::prefix(epk_bound(hash).unwrap().unwrap()));
        assert!(routes_between("FF", "FF").unwrap().is_empty());
        for bad in ["1", "xx", "+1", "ä"] {
            assert!(routes_between(bad, "FF").is_err(), "{bad}");
        }
    }
}
