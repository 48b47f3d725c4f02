//! Bringing a change of an entity to its fragments, which are made and deleted on the way.

use std::sync::Arc;

use lazuli_engine::{
    Error, KeyRange, Known, MapReason, NewPartition, PartitionState, Result, Transaction, Tx,
};
use lazuli_shardmap::record::{decode, encode};
use tokio::sync::oneshot;

use crate::bus::Bus;
use crate::config::{EntityConfig, SubscriptionConfig};
use crate::directory::{EntityPhase, EntityRecord, Shelf};
use crate::endpoint::fragment_route;
use crate::fragment::{Fragment, Place, read_subscriptions};
use crate::rows::{FragmentState, Line, Part};
use crate::shared::Shared;
use crate::timers;

/// How often a change is brought to the fragments anew because another one came in between.
const TRIES_MAX: usize = 16;

/// Gives a fragment the state of its entity after a change, unless it has a later one.
struct Apply {
    shared: Arc<Shared>,
    place: Place,
    change: u64,
    entity: EntityConfig,
    subscriptions: Vec<SubscriptionConfig>,
}

impl Transaction for Apply {
    type Output = ();

    async fn run(&self, tx: &mut Tx<'_>) -> Result<()> {
        let Self { place, change, .. } = self;
        let state: FragmentState = match tx.get(&place.state()).await? {
            Some(item) => decode(item.payload)?,
            None => FragmentState { timer_ms: u64::MAX, ..FragmentState::default() },
        };
        if state.config >= *change {
            return Ok(());
        }
        let before = read_subscriptions(tx, place).await?;
        tx.put(&place.entity(), encode(&self.entity)).await?;
        for subscription in &self.subscriptions {
            let same = before
                .iter()
                .any(|it| (it.number, it.changed) == (subscription.number, subscription.changed));
            if !same {
                tx.put(&place.subscription(subscription.number), encode(subscription)).await?;
            }
        }
        let is_kept = |number| self.subscriptions.iter().any(|it| it.number == number);
        let gone: Vec<u32> =
            before.iter().map(|it| it.number).filter(|number| !is_kept(*number)).collect();
        for number in &gone {
            tx.delete(&place.subscription(*number)).await?;
        }
        tx.put(&place.state(), encode(&FragmentState { config: *change, ..state })).await?;
        if gone.is_empty() {
            return Ok(());
        }
        let mut fragment = Fragment::load(tx, place, &self.shared).await?;
        for number in gone {
            for part in Part::ALL {
                timers::doom(&mut fragment, tx, Line::new(number, part)).await?;
            }
        }
        fragment.save(tx).map(|_| ())
    }
}

/// Notes that all fragments have a change.
struct Settled {
    shelf: Shelf,
    name: String,
    number: u32,
    change: u64,
}

impl Transaction for Settled {
    /// Whether there was no other change in between.
    type Output = bool;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<bool> {
        let Some(mut record) = self.shelf.load_entity(tx, &self.name).await? else {
            return Ok(true);
        };
        if record.number != self.number || record.change != self.change {
            return Ok(false);
        }
        record.settled = self.change;
        if record.phase == EntityPhase::Creating {
            record.phase = EntityPhase::Ready;
        }
        self.shelf.save_entity(tx, &record).await?;
        Ok(true)
    }
}

/// Forgets an entity whose fragments are gone.
struct Forget {
    shelf: Shelf,
    name: String,
    number: u32,
}

impl Transaction for Forget {
    type Output = ();

    async fn run(&self, tx: &mut Tx<'_>) -> Result<()> {
        let shelf = &self.shelf;
        let Some(record) = shelf.load_entity(tx, &self.name).await? else { return Ok(()) };
        if record.number != self.number || record.phase != EntityPhase::Deleting {
            return Ok(());
        }
        for subscription in shelf.subscriptions_in(tx, &self.name).await? {
            tx.delete(&shelf.subscription(&self.name, &subscription.name)).await?;
            let address = format!("{}/subscriptions/{}", self.name, subscription.name);
            shelf.note_idle(tx, &address, false).await?;
        }
        shelf.note_idle(tx, &self.name, false).await?;
        tx.delete(&shelf.entity(&self.name)).await?;
        let mut counters = shelf.load_counters(tx).await?;
        counters.entities = counters.entities.saturating_sub(1);
        let is_partitioned = record.description.fragments > 1;
        counters.partitioned = counters.partitioned.saturating_sub(u32::from(is_partitioned));
        tx.put(&shelf.counters(), encode(&counters)).await
    }
}

impl Bus {
    /// Brings the last change of an entity to its fragments, whether or not the caller stays to hear of it.
    pub(crate) async fn finish(&self, namespace: &str, name: &str) -> Result<()> {
        let (bus, namespace, name) = (self.clone(), namespace.to_owned(), name.to_owned());
        let (reply, answer) = oneshot::channel();
        let task = async move {
            // The caller may be gone.
            let _ = reply.send(bus.finish_here(&namespace, &name).await);
        };
        self.engine.env().spawn.spawn("bus-change", Box::pin(task));
        answer.await.map_err(|_| Error::unavailable("stopping", "the change was not answered"))?
    }

    async fn finish_here(&self, namespace: &str, name: &str) -> Result<()> {
        let shelf = self.shelf_or_not_found(namespace).await?;
        let (id, route) = (shelf.container.id, shelf.route.clone());
        for _ in 0..TRIES_MAX {
            let view = self.engine.read(id, &route, 1).await?;
            let Some(item) = view.get(&shelf.entity(name)).await? else { return Ok(()) };
            let record: EntityRecord = decode(item.payload)?;
            if record.phase == EntityPhase::Deleting {
                self.delete_fragments(namespace, &record).await?;
                let forget =
                    Forget { shelf: shelf.clone(), name: name.to_owned(), number: record.number };
                return self.engine.write(id, &route, forget).await;
            }
            if record.settled == record.change {
                return Ok(());
            }
            let subscriptions = shelf.subscriptions(&view, name).await?;
            drop(view);
            let subscriptions = subscriptions.iter().map(|(it, _)| it.config()).collect();
            self.apply(namespace, &record, subscriptions).await?;
            let settled = Settled {
                shelf: shelf.clone(),
                name: name.to_owned(),
                number: record.number,
                change: record.change,
            };
            if self.engine.write(id, &route, settled).await? {
                return Ok(());
            }
        }
        Err(Error::unavailable("entity-unsettled", "the entity was changed again and again"))
    }

    async fn apply(
        &self,
        namespace: &str,
        record: &EntityRecord,
        subscriptions: Vec<SubscriptionConfig>,
    ) -> Result<()> {
        let container = self.fragments(namespace).await?;
        let mut places = Vec::new();
        for fragment in 0..record.description.fragments {
            let fragment = fragment as u16;
            let route = fragment_route(record.number, fragment)?;
            places.push(Place { container: container.id, route, fragment });
        }
        if record.phase == EntityPhase::Creating {
            let points: Vec<NewPartition> =
                places.iter().map(|it| NewPartition::point(it.route.clone(), None)).collect();
            match self.engine.manager().add_partitions(container.id, &points).await {
                // An earlier attempt made them, all at once.
                Err(error) if error.is(MapReason::PointMapped) => {}
                added => _ = added?,
            }
        }
        for place in places {
            let apply = Apply {
                shared: self.shared.clone(),
                place: place.clone(),
                change: record.change,
                entity: record.config(),
                subscriptions: subscriptions.clone(),
            };
            self.engine.write(place.container, &place.route, apply).await?;
        }
        Ok(())
    }

    async fn delete_fragments(&self, namespace: &str, record: &EntityRecord) -> Result<()> {
        let container = self.fragments(namespace).await?;
        let manager = self.engine.manager();
        for fragment in 0..record.description.fragments {
            let route = fragment_route(record.number, fragment as u16)?;
            let routes = KeyRange::prefix(route);
            let found = manager.catalog().partitions_in(container.id, &routes, 1).await?;
            let Some(entry) = found.into_iter().next() else { continue };
            let known = Known::from(&entry.partition);
            let offline = manager.set_state(known, PartitionState::Offline).await?;
            manager.delete_partition(Known::from(&offline)).await?;
        }
        Ok(())
    }
}
