//! Locks: while a partition is locked, only the owner of the lock changes it. Reading and writing its data ignores them.

use lazuli_env::Id;
use lazuli_store::{Error, Result};

use super::{Known, Manager, known, unclaimed};
use crate::catalog::{CatalogChange, Decision, Draft, Entry};
use crate::{ContainerId, MapReason, PartitionId};

/// The most partitions that one commit unlocks.
const UNLOCK_PARTITIONS_MAX: usize = 10_000;

impl Manager {
    /// A token to lock with.
    pub fn new_token(&self) -> Id {
        self.env.ids.next_id()
    }

    /// Locks a partition. One that is locked is refused with `partition-locked`, also to the owner of the lock.
    pub async fn lock(&self, partition: Known, token: Id) -> Result<()> {
        self.run(&Lock { partition, token }).await
    }

    /// Gives a lock back. Without holding it: `lock-not-held`.
    pub async fn unlock(&self, partition: PartitionId, token: Id) -> Result<()> {
        self.run(&Unlock { partition, token: Some(token) }).await
    }

    /// Takes a lock away from its owner. One that is not locked stays so.
    pub async fn force_unlock(&self, partition: PartitionId) -> Result<()> {
        self.run(&Unlock { partition, token: None }).await
    }

    /// Gives back all locks of a container that are held with this token, no others, and says how many.
    pub async fn unlock_all(&self, container: ContainerId, token: Id) -> Result<usize> {
        let mut freed = 0;
        loop {
            match self.run(&UnlockSome { container, token }).await? {
                0 => return Ok(freed),
                some => freed += some,
            }
        }
    }
}

pub(super) fn locked(partition: PartitionId) -> Error {
    Error::precondition("partition-locked", format!("partition {partition} is locked"))
}

pub(super) fn not_held(partition: PartitionId) -> Error {
    let message = format!("the lock of partition {partition} is not held with this token");
    Error::precondition(MapReason::LockNotHeld, message)
}

struct Lock {
    partition: Known,
    token: Id,
}

impl CatalogChange for Lock {
    type Output = ();

    async fn decide(&self, draft: &mut Draft) -> Decision<()> {
        let held = draft.view().entry(self.partition.id).await?.lock;
        let entry = known(draft.view(), Known { lock: held, ..self.partition }).await?;
        if entry.lock.is_some() {
            return Err(locked(self.partition.id).into());
        }
        draft.set_lock(&entry, Some(self.token));
        Ok(())
    }
}

struct Unlock {
    partition: PartitionId,
    /// None takes it from anybody.
    token: Option<Id>,
}

impl CatalogChange for Unlock {
    type Output = ();

    async fn decide(&self, draft: &mut Draft) -> Decision<()> {
        let entry = free(draft, draft.view().entry(self.partition).await?).await?;
        if self.token.is_some() && entry.lock != self.token {
            return Err(not_held(self.partition).into());
        }
        if let Some(token) = entry.lock {
            // What a move has locked is unlocked by its end, which sees to it that nothing is half open.
            if draft.view().moves().await?.iter().any(|moving| moving.token == token) {
                let message =
                    format!("partition {} is on its way: cancel its move", self.partition);
                return Err(Error::precondition("partition-moving", message).into());
            }
            draft.set_lock(&entry, None);
        }
        Ok(())
    }
}

struct UnlockSome {
    container: ContainerId,
    token: Id,
}

impl CatalogChange for UnlockSome {
    type Output = usize;

    async fn decide(&self, draft: &mut Draft) -> Decision<usize> {
        let view = draft.view();
        let held = view.locked_with(self.token, self.container, UNLOCK_PARTITIONS_MAX).await?;
        let count = held.len();
        for entry in held {
            let entry = free(draft, entry).await?;
            draft.set_lock(&entry, None);
        }
        Ok(count)
    }
}

/// A pending operation would bring the lock back, so it is finished first.
async fn free(draft: &Draft, entry: Entry) -> Decision<Entry> {
    unclaimed(draft.view(), entry.partition.container, &entry.partition.routes).await?;
    Ok(entry)
}
