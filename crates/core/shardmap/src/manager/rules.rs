//! Changes of a container that no write may miss: its partitions get new epochs with it.
//!
//! A write is routed by an epoch, and reads what the container says after that. So whoever still goes by what the container
//! said before is refused, reads it again, and goes by what it says now.

use lazuli_store::{Error, KeyRange};

use super::containers::{ContainerUpdate, check_version, too_many};
use super::{Manager, OPERATION_PARTITIONS_MAX, unclaimed};
use crate::catalog::{CatalogChange, ContainerChange, Decision, Draft, Entry, MapOperation};
use crate::{Container, Partition};
use lazuli_store::Result;

impl Manager {
    /// Changes policies as [`Manager::update_container`] does, so that every write and read that is made after the answer
    /// goes by them, whoever makes it. Waits with `partition-busy` for moves and restores of its partitions. Answers the
    /// container as the catalog has it then.
    pub async fn update_rules(&self, update: &ContainerUpdate) -> Result<Container> {
        self.run(&UpdateRules(update)).await?;
        // It was given its version when the operation ended, not when it was decided.
        self.catalog.container(update.id).await
    }
}

struct UpdateRules<'a>(&'a ContainerUpdate);

impl CatalogChange for UpdateRules<'_> {
    type Output = ();

    async fn decide(&self, draft: &mut Draft) -> Decision<()> {
        let Self(update) = self;
        let view = draft.view();
        let before = view.container(update.id).await?;
        unclaimed(view, update.id, &KeyRange::all()).await?;
        check_version(&before, update.version)?;
        let mut after = Container { policies: update.policies.clone(), ..before.clone() };
        if after == before {
            return Ok(());
        }
        let most = OPERATION_PARTITIONS_MAX + 1;
        let entries = view.entries(update.id, &KeyRange::all(), most).await?;
        if entries.len() == most {
            return Err(too_many(most).into());
        }
        let mut operation = MapOperation::new("change rules", update.id);
        operation.claims.push(KeyRange::all());
        for entry in entries {
            if entry.lock.is_some() || entry.partition.state.is_moving() {
                let message = format!("partition {} is on its way", entry.partition.id);
                return Err(Error::unavailable("partition-busy", message).into());
            }
            operation.remove(&entry.partition);
            let epoch = entry.partition.epoch.next();
            let partition = Partition { epoch, ..entry.partition };
            operation.puts.push(Entry { partition, lock: None });
        }
        // It is read by nobody before all shards have the new epochs: who went by it early would leave behind what others,
        // who do not know of it yet, do not take away.
        after.version += 1;
        operation.change = ContainerChange::Update(after);
        draft.begin(operation)?;
        Ok(())
    }
}
