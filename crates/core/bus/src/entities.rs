//! Queues and topics: created, changed, deleted, listed, found, and deleted when they are not used.

use std::sync::Arc;

use lazuli_engine::{Error, KeyRange, Lsn, PREFIX_BYTES, PageLimit, Result, Space, after_key};
use lazuli_shardmap::record::decode;

use crate::BusReason;
use crate::address::{Address, check_entity_name};
use crate::bus::Bus;
use crate::change::{Change, EntityChange};
use crate::description::{Description, Entity, EntityKind};
use crate::directory::{EntityPhase, EntityRecord, Shelf};
use crate::endpoint::{Endpoint, Opened, part_of};
use crate::fragment::{FORWARD, not_found};
use crate::rows::Line;

/// The most items of one page of a list.
const LIST_MAX: usize = 1_000;

/// A page of a list, by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListPage<T> {
    pub items: Vec<T>,
    pub has_more: bool,
}

impl Bus {
    pub(crate) async fn change(
        &self,
        namespace: &str,
        name: &str,
        change: EntityChange,
    ) -> Result<()> {
        let shelf = match &change {
            EntityChange::Create { .. } => self.shelf(namespace).await?,
            _ => self.shelf_or_not_found(namespace).await?,
        };
        // What another request has begun, or left behind, is finished first.
        self.finish(namespace, name).await?;
        let (id, route) = (shelf.container.id, shelf.route.clone());
        let settings = self.shared.settings.clone();
        let change = Change { shelf, settings, name: name.to_owned(), change };
        self.engine.write(id, &route, change).await?;
        self.finish(namespace, name).await
    }

    pub async fn create_entity(
        &self,
        namespace: &str,
        kind: EntityKind,
        name: &str,
        description: Description,
    ) -> Result<Entity> {
        check_entity_name(name)?;
        description.check()?;
        self.change(namespace, name, EntityChange::Create { kind, description }).await?;
        self.entity(namespace, name).await
    }

    /// Replaces the description, if the entity still has the version given.
    pub async fn update_entity(
        &self,
        namespace: &str,
        kind: EntityKind,
        name: &str,
        description: Description,
        version: Option<Lsn>,
    ) -> Result<Entity> {
        description.check()?;
        let change = EntityChange::Update { kind, description, version };
        self.change(namespace, name, change).await?;
        self.entity(namespace, name).await
    }

    /// Deletes an entity with all its messages, and those of a topic's subscriptions.
    pub async fn delete_entity(
        &self,
        namespace: &str,
        kind: Option<EntityKind>,
        name: &str,
    ) -> Result<()> {
        self.change(namespace, name, EntityChange::Delete { kind }).await
    }

    /// The record of an entity, with what was begun finished first.
    pub(crate) async fn record(
        &self,
        shelf: &Shelf,
        namespace: &str,
        name: &str,
    ) -> Result<(EntityRecord, Lsn)> {
        let key = shelf.entity(name);
        let read = || async {
            let item = self.engine.get(&key, 1).await?.ok_or_else(not_found)?;
            Ok::<_, Error>((decode::<EntityRecord>(item.payload)?, item.version))
        };
        let (record, version) = read().await?;
        if record.phase == EntityPhase::Ready && record.settled == record.change {
            return Ok((record, version));
        }
        self.finish(namespace, name).await?;
        read().await
    }

    pub async fn entity(&self, namespace: &str, name: &str) -> Result<Entity> {
        let shelf = self.shelf_or_not_found(namespace).await?;
        let (record, version) = self.record(&shelf, namespace, name).await?;
        Ok(record.entity(version))
    }

    /// Queues or topics by name, without the first `skip` ones.
    pub async fn entities(
        &self,
        namespace: &str,
        kind: EntityKind,
        skip: usize,
        most: usize,
    ) -> Result<ListPage<Entity>> {
        let mut page = ListPage { items: Vec::new(), has_more: false };
        let Some(shelf) = self.shelf_if_any(namespace).await? else { return Ok(page) };
        let most = most.clamp(1, LIST_MAX);
        let view = self.engine.read(shelf.container.id, &shelf.route, 1).await?;
        let mut range: KeyRange = shelf.range(&shelf.entity(""));
        let mut skipped = 0;
        loop {
            let rows = view.scan(Space::ITEMS, &range, FORWARD, PageLimit::items(LIST_MAX)).await?;
            for (_, item) in rows.items {
                let record: EntityRecord = decode(item.payload)?;
                if record.kind != kind || record.phase == EntityPhase::Deleting {
                    continue;
                }
                if skipped < skip {
                    skipped += 1;
                } else if page.items.len() == most {
                    page.has_more = true;
                    return Ok(page);
                } else {
                    page.items.push(record.entity(item.version));
                }
            }
            match rows.next {
                Some(last) => range.start = after_key(&last.slice(PREFIX_BYTES..)),
                None => return Ok(page),
            }
        }
    }

    /// Finds what an address is of.
    pub(crate) async fn find(&self, namespace: &str, address: &Address) -> Result<Endpoint> {
        let shelf = self.shelf_or_not_found(namespace).await?;
        let (record, _) = self.record(&shelf, namespace, &address.entity).await?;
        let (owner, description) = match &address.subscription {
            None => (0, record.description.clone()),
            Some(name) => {
                let found = self.subscription_record(namespace, &address.entity, name).await?.0;
                (found.number, found.description)
            }
        };
        let container = self.fragments(namespace).await?.id;
        let endpoint = Endpoint(Arc::new(Opened {
            namespace: namespace.to_owned(),
            address: address.clone(),
            container,
            entity: record.number,
            kind: record.kind,
            fragments: record.description.fragments,
            line: Line::new(owner, part_of(address.sub_queue)),
            description,
        }));
        self.used(&endpoint);
        Ok(endpoint)
    }

    /// Notes that an entity is in use, for those that delete themselves when they are not.
    pub fn used(&self, endpoint: &Endpoint) {
        if endpoint.description().auto_delete_ms.is_some() {
            self.shared.note_use(endpoint.namespace(), &endpoint.address().owner());
        }
    }

    /// Writes down what was used, and deletes what has not been used for as long as it says. Answers what was deleted.
    pub async fn finish_idle(&self) -> Result<Vec<Address>> {
        for ((namespace, address), at_ms) in self.shared.take_uses() {
            let subscription = address.subscription.clone();
            let touch = EntityChange::Touch { subscription, at_ms };
            match self.change(&namespace, &address.entity, touch).await {
                Err(error) if error.is(BusReason::EntityNotFound) => {}
                touched => touched?,
            }
        }
        if !self.shared.is_time_for_idle() {
            return Ok(Vec::new());
        }
        self.delete_idle().await
    }

    /// Deletes what has not been used for as long as it says.
    pub async fn delete_idle(&self) -> Result<Vec<Address>> {
        let mut deleted = Vec::new();
        let prefix = crate::directory::DIRECTORIES;
        for container in self.engine.containers(prefix, None, LIST_MAX).await? {
            let Some(namespace) = container.name.strip_prefix(prefix) else { continue };
            let Some(shelf) = self.shelf_if_any(namespace).await? else { continue };
            let view = self.engine.read(shelf.container.id, &shelf.route, 1).await?;
            let range = shelf.range(&shelf.idle(""));
            let rows = view.scan(Space::ITEMS, &range, FORWARD, PageLimit::items(LIST_MAX)).await?;
            drop(view);
            for (key, _) in rows.items {
                let name = String::from_utf8_lossy(shelf.name_in(&key)).into_owned();
                let Ok(address) = Address::parse(&name) else { continue };
                let subscription = address.subscription.clone();
                let change = EntityChange::DeleteIdle { subscription };
                match self.change(namespace, &address.entity, change).await {
                    Err(error) if error.is(BusReason::EntityNotFound) => {}
                    done => done?,
                }
                match self.find(namespace, &address).await {
                    Err(error) if error.is(BusReason::EntityNotFound) => deleted.push(address),
                    _ => {}
                }
            }
        }
        Ok(deleted)
    }
}
