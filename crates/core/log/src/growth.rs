//! More partitions for a hub that is in use (`docs/decisions/0186-more-hub-partitions.md`).
//!
//! A key belongs to the partition that its hash says, out of as many as there are. With more partitions most keys belong
//! elsewhere. So that the records of a key stay in order, the change goes in steps that anyone finishes who meets them:
//! the hub says to how many partitions it grows; the new ones are added to the map; every old log refuses, from one commit
//! on, whatever was routed by the old layout; and only then does the hub say the new number. When the first record of a key
//! is appended in its new partition, all its old ones can be read.

use std::collections::BTreeMap;
use std::sync::Arc;

use lazuli_engine::{Error, KeyRange, Kind, NewPartition, Result, Transaction, Tx};

use crate::directory::container_name;
use crate::hub::{GROWING, Hub, LAYOUT, LogPlace, PARTITIONS};
use crate::limits::PARTITIONS_MAX;
use crate::rows::LogState;
use crate::{LogReason, Logs};

/// Refuses, from its commit on, appends by key that were routed by an older layout.
struct CloseLayout {
    place: LogPlace,
    layout: u64,
}

impl Transaction for CloseLayout {
    type Output = ();

    async fn run(&self, tx: &mut Tx<'_>) -> Result<()> {
        let key = self.place.state();
        let old = tx.get(&key).await?;
        let state = old.as_ref().map(|item| LogState::decode(item.payload.clone()));
        let mut state = state.transpose()?.unwrap_or_default();
        if state.layout >= self.layout {
            return Ok(());
        }
        state.layout = self.layout;
        tx.replace(&key, old.as_ref(), state.encode(), None)
    }
}

impl Logs {
    /// Gives a hub more partitions while it is in use. As many as it has changes nothing; fewer are refused.
    pub async fn set_partitions(&self, namespace: &str, hub: &str, count: u32) -> Result<Arc<Hub>> {
        if count == 0 || count > PARTITIONS_MAX {
            let message = format!("a hub has 1 to {PARTITIONS_MAX} partitions");
            return Err(Error::invalid(LogReason::BadSettings, message));
        }
        let found = self.finish_growth(namespace, hub).await?;
        if found.settings.partitions == count {
            return Ok(found);
        }
        let too_few = |have: u32| {
            let message = format!("hub {hub} has {have} partitions, and partitions only grow");
            Error::invalid(LogReason::BadSettings, message)
        };
        let begin = |attributes: &mut BTreeMap<String, String>| {
            let have = number(attributes, PARTITIONS)?;
            if attributes.contains_key(GROWING) {
                let message = "another change of the number of partitions is under way";
                return Err(Error::unavailable(LogReason::LayoutChanged, message));
            }
            if have > u64::from(count) {
                return Err(too_few(u32::try_from(have).unwrap_or(u32::MAX)));
            }
            attributes.insert(GROWING.to_owned(), count.to_string());
            Ok(())
        };
        self.engine.change_attributes(&container_name(namespace, hub), begin).await?;
        self.look_again(namespace, hub).await?;
        self.finish_growth(namespace, hub).await
    }

    /// Finishes what a change of the number of partitions has begun, whoever began it. Every step can be repeated.
    pub(crate) async fn finish_growth(&self, namespace: &str, hub: &str) -> Result<Arc<Hub>> {
        let _turn = self.growing.lock().await;
        let found = self.look_again(namespace, hub).await?;
        let Some(count) = found.growing else { return Ok(found) };
        let have = found.settings.partitions;
        self.add_missing(&found, count).await?;
        let next = found.layout + 1;
        for partition in 0..have {
            let place = LogPlace::new(&found.container, partition)?;
            let route = place.route.clone();
            let close = CloseLayout { place, layout: next };
            self.engine.write(found.container.id, &route, close).await?;
        }
        let end = |attributes: &mut BTreeMap<String, String>| {
            // Another process may have finished this change, and have begun the next one.
            if number(attributes, LAYOUT)? == found.layout {
                attributes.insert(PARTITIONS.to_owned(), count.max(have).to_string());
                attributes.insert(LAYOUT.to_owned(), next.to_string());
                attributes.remove(GROWING);
            }
            Ok(())
        };
        self.engine.change_attributes(&container_name(namespace, hub), end).await?;
        self.look_again(namespace, hub).await
    }

    /// Adds those of the partitions that the map lacks.
    async fn add_missing(&self, hub: &Hub, count: u32) -> Result<()> {
        let id = hub.container.id;
        let there = self.engine.router().partitions(id, &KeyRange::all()).await?;
        let mut missing = Vec::new();
        for partition in 0..count {
            let route = LogPlace::new(&hub.container, partition)?.route;
            if !there.iter().any(|(routes, _)| routes.contains(&route)) {
                missing.push(NewPartition::point(route, None));
            }
        }
        match self.engine.add_partitions(id, missing).await {
            // Another process has added them meanwhile, all or none.
            Err(error) if error.kind() == Kind::Exists => Ok(()),
            added => added.map(|_| ()),
        }
    }
}

fn number(attributes: &BTreeMap<String, String>, name: &str) -> Result<u64> {
    let number = attributes.get(name).and_then(|text| text.parse().ok());
    number.ok_or_else(|| crate::rows::damaged("what is kept of a hub"))
}
