//! The directory of a namespace: its entities and subscriptions, in one shardlet of a container of its own.
//!
//! Row keys: `E | name`, `S | topic | 0 | subscription`, both in lower case; `A | …` names those that delete themselves when
//! unused; `R | name` is a rule of the whole namespace; `N` has the counters. A change is written here first, with its number, and then to the fragments. Whoever finds
//! a change that the fragments do not have yet brings it there, so it is finished also after a crash.

use std::sync::Arc;

use bytes::Bytes;
use lazuli_engine::{
    Container, Cuts, Error, ItemKey, KeyPart, KeyRange, KeySchema, KeyType, Kind, Lsn, MapKind,
    NewContainer, PREFIX_BYTES, PageLimit, Policies, Result, Space, Tx, View, after_key,
};
use lazuli_shardmap::record::{decode, encode};

use crate::bus::Bus;
use crate::config::{EntityConfig, SubscriptionConfig};
use crate::description::{Description, Entity, EntityKind, Rule, Subscription};
use crate::endpoint::fragment_schema;
use crate::fragment::{FORWARD, not_found};
use crate::record::{choice, fields};

const DIRECTORY_SCHEMA: &str = "bus-directory/1";
const FRAGMENTS_SCHEMA: &str = "bus/1";
pub(crate) const DIRECTORIES: &str = "bus-directory/";
const FRAGMENTS: &str = "bus/";

/// Where an entity stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EntityPhase {
    /// Its fragments are being made.
    Creating,
    Ready,
    /// Its fragments are being deleted.
    Deleting,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct EntityRecord {
    pub(crate) number: u32,
    pub(crate) kind: EntityKind,
    pub(crate) name: String,
    pub(crate) description: Description,
    pub(crate) created_ms: u64,
    pub(crate) updated_ms: u64,
    pub(crate) accessed_ms: u64,
    pub(crate) phase: EntityPhase,
    /// The number of its last change, its subscriptions' included.
    pub(crate) change: u64,
    /// The change that all fragments have.
    pub(crate) settled: u64,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SubscriptionRecord {
    pub(crate) number: u32,
    pub(crate) topic: String,
    pub(crate) name: String,
    pub(crate) description: Description,
    pub(crate) rules: Vec<Rule>,
    pub(crate) created_ms: u64,
    pub(crate) updated_ms: u64,
    pub(crate) accessed_ms: u64,
    pub(crate) changed: u64,
}

/// What a namespace counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counters {
    pub(crate) last: u32,
    pub(crate) entities: u32,
    pub(crate) partitioned: u32,
}

choice!(EntityPhase { Creating = 1, Ready = 2, Deleting = 3 });
fields!(EntityRecord {
    number,
    kind,
    name,
    description,
    created_ms,
    updated_ms,
    accessed_ms,
    phase,
    change,
    settled,
});
fields!(SubscriptionRecord {
    number,
    topic,
    name,
    description,
    rules,
    created_ms,
    updated_ms,
    accessed_ms,
    changed,
});
fields!(Counters { last, entities, partitioned });

impl EntityRecord {
    pub(crate) fn config(&self) -> EntityConfig {
        EntityConfig {
            number: self.number,
            kind: self.kind,
            name: self.name.clone(),
            description: self.description.clone(),
        }
    }

    pub(crate) fn entity(self, version: Lsn) -> Entity {
        Entity {
            kind: self.kind,
            name: self.name,
            description: self.description,
            created_ms: self.created_ms,
            updated_ms: self.updated_ms,
            accessed_ms: self.accessed_ms,
            version,
        }
    }
}

impl SubscriptionRecord {
    pub(crate) fn config(&self) -> SubscriptionConfig {
        SubscriptionConfig {
            number: self.number,
            changed: self.changed,
            name: self.name.clone(),
            description: self.description.clone(),
            rules: self.rules.clone(),
        }
    }

    pub(crate) fn subscription(self, version: Lsn) -> Subscription {
        Subscription {
            topic: self.topic,
            name: self.name,
            description: self.description,
            created_ms: self.created_ms,
            updated_ms: self.updated_ms,
            accessed_ms: self.accessed_ms,
            version,
        }
    }
}

/// The rows of one namespace.
#[derive(Clone)]
pub(crate) struct Shelf {
    pub(crate) container: Arc<Container>,
    pub(crate) route: Bytes,
}

impl Shelf {
    pub(crate) fn row(&self, kind: u8, rest: &[u8]) -> ItemKey {
        let row = [&[kind], rest].concat();
        ItemKey::new(self.container.id, Space::ITEMS, &self.route, &row)
    }

    pub(crate) fn entity(&self, name: &str) -> ItemKey {
        self.row(b'E', name.to_lowercase().as_bytes())
    }

    pub(crate) fn subscription(&self, topic: &str, name: &str) -> ItemKey {
        let names = format!("{}\0{}", topic.to_lowercase(), name.to_lowercase());
        self.row(b'S', names.as_bytes())
    }

    pub(crate) fn counters(&self) -> ItemKey {
        self.row(b'N', &[])
    }

    /// That an entity or subscription deletes itself when unused.
    pub(crate) fn idle(&self, address: &str) -> ItemKey {
        self.row(b'A', address.to_lowercase().as_bytes())
    }

    pub(crate) fn range(&self, first: &ItemKey) -> KeyRange {
        KeyRange::prefix(first.bytes().slice(PREFIX_BYTES..))
    }

    /// The row key behind the kind of a stored key.
    pub(crate) fn name_in<'k>(&self, key: &'k [u8]) -> &'k [u8] {
        key.get(PREFIX_BYTES + self.route.len() + 1..).unwrap_or_default()
    }

    pub(crate) async fn load_entity(
        &self,
        tx: &Tx<'_>,
        name: &str,
    ) -> Result<Option<EntityRecord>> {
        tx.get(&self.entity(name)).await?.map(|item| decode(item.payload)).transpose()
    }

    pub(crate) async fn load_subscription(
        &self,
        tx: &Tx<'_>,
        topic: &str,
        name: &str,
    ) -> Result<Option<SubscriptionRecord>> {
        let found = tx.get(&self.subscription(topic, name)).await?;
        found.map(|item| decode(item.payload)).transpose()
    }

    pub(crate) async fn load_counters(&self, tx: &Tx<'_>) -> Result<Counters> {
        let found = tx.get(&self.counters()).await?;
        found.map_or(Ok(Counters::default()), |item| decode(item.payload))
    }

    pub(crate) async fn save_entity(&self, tx: &mut Tx<'_>, record: &EntityRecord) -> Result<()> {
        self.note_idle(tx, &record.name, record.description.auto_delete_ms.is_some()).await?;
        tx.put(&self.entity(&record.name), encode(record)).await
    }

    pub(crate) async fn save_subscription(
        &self,
        tx: &mut Tx<'_>,
        record: &SubscriptionRecord,
    ) -> Result<()> {
        let address = format!("{}/subscriptions/{}", record.topic, record.name);
        self.note_idle(tx, &address, record.description.auto_delete_ms.is_some()).await?;
        tx.put(&self.subscription(&record.topic, &record.name), encode(record)).await
    }

    pub(crate) async fn note_idle(
        &self,
        tx: &mut Tx<'_>,
        address: &str,
        deletes_itself: bool,
    ) -> Result<()> {
        let key = self.idle(address);
        match deletes_itself {
            true => tx.put(&key, Bytes::new()).await,
            false => tx.delete(&key).await.map(|_| ()),
        }
    }

    /// All subscriptions of a topic, within a transaction.
    pub(crate) async fn subscriptions_in(
        &self,
        tx: &Tx<'_>,
        topic: &str,
    ) -> Result<Vec<SubscriptionRecord>> {
        let mut range = self.range(&self.subscription(topic, ""));
        let mut records = Vec::new();
        loop {
            let limit = PageLimit::items(1_000);
            let page = tx.scan(self.container.id, Space::ITEMS, &range, FORWARD, limit).await?;
            for (_, item) in page.items {
                records.push(decode(item.payload)?);
            }
            match page.next {
                Some(last) => range.start = after_key(&last.slice(PREFIX_BYTES..)),
                None => return Ok(records),
            }
        }
    }

    /// The same from a snapshot, with versions.
    pub(crate) async fn subscriptions(
        &self,
        view: &View,
        topic: &str,
    ) -> Result<Vec<(SubscriptionRecord, Lsn)>> {
        let mut range = self.range(&self.subscription(topic, ""));
        let mut records = Vec::new();
        loop {
            let limit = PageLimit::items(1_000);
            let page = view.scan(Space::ITEMS, &range, FORWARD, limit).await?;
            for (_, item) in page.items {
                records.push((decode(item.payload)?, item.version));
            }
            match page.next {
                Some(last) => range.start = after_key(&last.slice(PREFIX_BYTES..)),
                None => return Ok(records),
            }
        }
    }
}

impl Bus {
    /// The directory of a namespace, made at its first use.
    pub(crate) async fn shelf(&self, namespace: &str) -> Result<Shelf> {
        if let Some(shelf) = self.shelf_if_any(namespace).await? {
            return Ok(shelf);
        }
        let name = format!("{DIRECTORIES}{namespace}");
        let key = KeySchema::one(KeyType::Text);
        self.make_container(name, MapKind::Range, key, DIRECTORY_SCHEMA, Cuts::At(Vec::new()))
            .await?;
        let made = self.shelf_if_any(namespace).await?;
        made.ok_or_else(|| Error::unavailable("directory-gone", "the directory was deleted"))
    }

    pub(crate) async fn shelf_if_any(&self, namespace: &str) -> Result<Option<Shelf>> {
        let name = format!("{DIRECTORIES}{namespace}");
        let container = match self.engine.open(&name, DIRECTORY_SCHEMA).await {
            Err(error) if error.kind() == Kind::NotFound => return Ok(None),
            opened => opened?,
        };
        let route = container.kind.route(&container.key, &[KeyPart::Text(String::new())])?;
        Ok(Some(Shelf { container, route }))
    }

    pub(crate) async fn shelf_or_not_found(&self, namespace: &str) -> Result<Shelf> {
        self.shelf_if_any(namespace).await?.ok_or_else(not_found)
    }

    async fn make_container(
        &self,
        name: String,
        kind: MapKind,
        key: KeySchema,
        schema: &str,
        cuts: Cuts,
    ) -> Result<()> {
        let new = NewContainer {
            name,
            kind,
            key,
            schema: schema.to_owned(),
            placement: Vec::new(),
            policies: Policies::default(),
            cuts,
            shards: Vec::new(),
        };
        match self.engine.create_container(&new).await {
            // Another request created it first.
            Err(error) if error.kind() == Kind::Exists => Ok(()),
            created => created.map(|_| ()),
        }
    }

    /// The container of a namespace's fragments, made at its first use.
    pub(crate) async fn fragments(&self, namespace: &str) -> Result<Arc<Container>> {
        let name = format!("{FRAGMENTS}{namespace}");
        match self.engine.open(&name, FRAGMENTS_SCHEMA).await {
            Err(error) if error.kind() == Kind::NotFound => {}
            opened => return opened,
        }
        let key = fragment_schema();
        self.make_container(name.clone(), MapKind::List, key, FRAGMENTS_SCHEMA, Cuts::Empty)
            .await?;
        self.engine.open(&name, FRAGMENTS_SCHEMA).await
    }

    /// The namespace that a container of fragments is of.
    pub(crate) async fn namespace_of(
        &self,
        container: lazuli_engine::ContainerId,
    ) -> Result<Option<String>> {
        let container = self.engine.router().container(container).await?;
        Ok(container.name.strip_prefix(FRAGMENTS).map(str::to_owned))
    }
}
