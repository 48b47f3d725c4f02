//! Taking partitions out of use while a backup is restored into them, and back into use when all of it is there.
//!
//! A restore holds its partitions offline and locked. The lock says by its first bytes that it is a restore's: so nobody
//! opens by mistake what is half restored, and the next restore knows what it may take over from one that was cut short.

use lazuli_env::Id;
use lazuli_store::{Error, KeyRange, Result};

use super::containers::too_many;
use super::{Manager, OPERATION_PARTITIONS_MAX, locks, unclaimed};
use crate::catalog::{CatalogChange, Decision, Draft, Entry, MapOperation};
use crate::{Container, ContainerId, Partition, PartitionId, PartitionState};

/// What the token of every restore begins with.
const MARK: [u8; 8] = *b"restore:";

/// Whether a lock is that of a restore.
pub fn is_restore(token: Id) -> bool {
    token.to_bytes().starts_with(&MARK)
}

pub(super) fn restoring(partition: PartitionId) -> Error {
    let message = format!(
        "partition {partition} is being restored; if that was cut short, restore it once more"
    );
    Error::precondition("partition-restoring", message)
}

/// Partitions that a restore has taken out of use.
#[derive(Clone, Debug)]
pub struct Taken {
    pub token: Id,
    /// As they are now, in the order of routes.
    pub partitions: Vec<Partition>,
    /// The states that they had before; none for those that an earlier restore has left behind.
    pub states: Vec<Option<PartitionState>>,
}

impl Manager {
    /// Takes all partitions that hold some of the routes offline and locks them, all at once. What an earlier restore has
    /// locked is taken over: it gets the next epoch, so that whatever the earlier one still writes is refused. Routes that
    /// nobody holds are refused with `routes-unmapped`.
    pub async fn begin_restore(&self, container: ContainerId, routes: &KeyRange) -> Result<Taken> {
        let mut token = [0; 16];
        let (mark, rest) = token.split_at_mut(MARK.len());
        mark.copy_from_slice(&MARK);
        rest.copy_from_slice(&self.env.random.next_u64().to_be_bytes());
        let token = Id::from_bytes(token);
        self.run(&Begin { container, routes, token }).await
    }

    /// Takes the partitions into use again, in the states given, all at once; those that are given none stay as they are.
    /// What another restore has taken since is refused with `lock-not-held`, and then nothing changes.
    pub async fn end_restore(
        &self,
        taken: &Taken,
        states: &[Option<PartitionState>],
    ) -> Result<()> {
        self.run(&End { taken, states }).await
    }
}

struct Begin<'a> {
    container: ContainerId,
    routes: &'a KeyRange,
    token: Id,
}

impl CatalogChange for Begin<'_> {
    type Output = Taken;

    async fn decide(&self, draft: &mut Draft) -> Decision<Taken> {
        let view = draft.view();
        let container = view.container(self.container).await?;
        unclaimed(view, self.container, self.routes).await?;
        let most = OPERATION_PARTITIONS_MAX;
        let entries = view.entries(self.container, self.routes, most + 1).await?;
        if entries.len() > most {
            return Err(too_many(entries.len()).into());
        }
        check_mapped(&container, self.routes, &entries)?;
        let mut taken = Taken {
            token: self.token,
            partitions: Vec::with_capacity(entries.len()),
            states: Vec::with_capacity(entries.len()),
        };
        let mut operation = MapOperation::new("begin restore", self.container);
        for Entry { partition: before, lock } in entries {
            unclaimed(draft.view(), self.container, &before.routes).await?;
            let state = match lock {
                None => Some(before.state),
                Some(token) if is_restore(token) => None,
                Some(_) => return Err(locks::locked(before.id).into()),
            };
            let epoch = before.epoch.next();
            let after = Partition { state: PartitionState::Offline, epoch, ..before.clone() };
            operation.claims.push(before.routes.clone());
            operation.remove(&before);
            let lock = Some(self.token);
            operation.puts.push(Entry { partition: after.clone(), lock });
            taken.partitions.push(after);
            taken.states.push(state);
        }
        draft.begin(operation)?;
        Ok(taken)
    }
}

struct End<'a> {
    taken: &'a Taken,
    states: &'a [Option<PartitionState>],
}

impl CatalogChange for End<'_> {
    type Output = ();

    async fn decide(&self, draft: &mut Draft) -> Decision<()> {
        let Some(first) = self.taken.partitions.first() else { return Ok(()) };
        let mut operation = MapOperation::new("end restore", first.container);
        for (held, state) in self.taken.partitions.iter().zip(self.states) {
            let Some(state) = state else { continue };
            let entry = draft.view().entry(held.id).await?;
            let before = entry.partition;
            unclaimed(draft.view(), before.container, &before.routes).await?;
            if entry.lock != Some(self.taken.token) || before.epoch != held.epoch {
                return Err(locks::not_held(held.id).into());
            }
            let epoch = before.epoch.next();
            let after = Partition { state: *state, epoch, ..before.clone() };
            operation.claims.push(before.routes.clone());
            operation.remove(&before);
            operation.puts.push(Entry { partition: after, lock: None });
        }
        if !operation.puts.is_empty() {
            draft.begin(operation)?;
        }
        Ok(())
    }
}

/// Refuses routes of which no partition holds some.
fn check_mapped(container: &Container, routes: &KeyRange, entries: &[Entry]) -> Result<()> {
    let mut reached = Some(routes.start.clone());
    for Entry { partition, .. } in entries {
        match &reached {
            Some(at) if partition.routes.start <= *at => {
                reached.clone_from(&partition.routes.end);
            }
            _ => break,
        }
    }
    let is_whole = match (&reached, &routes.end) {
        (None, _) => true,
        (Some(at), Some(end)) => at >= end,
        (Some(_), None) => false,
    };
    if is_whole {
        return Ok(());
    }
    let message = format!("no partition of container {} holds some of the routes", container.name);
    Err(Error::precondition("routes-unmapped", message))
}
