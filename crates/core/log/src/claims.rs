//! Claims: which process may coordinate a group of consumers, and which reader has a partition to itself, where several
//! processes share the stores (`docs/decisions/0188-claims-of-groups.md`).
//!
//! A claim is a row in the shardlet of its group, beside the group's offsets, with an end. Its holder renews it well before;
//! others take it when it has ended. A commit of offsets looks at the claim in its own transaction, so a coordinator that
//! has lost its group without knowing commits nothing. Times are those of the shard, the same for all processes.

use std::time::Duration;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use lazuli_engine::{ContainerId, Error, ItemKey, Result, Space, Transaction, Tx};

use crate::hub::check_group_name;
use crate::offsets::GroupPlace;
use crate::rows::damaged;
use crate::{LogReason, Logs};

const FORMAT: u8 = 1;
const COORDINATOR: u8 = 0;
const READER: u8 = 1;

/// For how long a claim holds that is not renewed.
pub const CLAIM_LIFE: Duration = Duration::from_secs(10);
/// How often a holder renews its claim.
pub const CLAIM_RENEWAL: Duration = Duration::from_secs(3);

/// What is claimed of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claimed {
    /// The coordination of its members. It is never taken from a holder that lives.
    Coordinator,
    /// A partition of a hub. A reader of the same or a higher level takes it from one that lives.
    Reader { hub: ContainerId, partition: u32 },
}

impl Claimed {
    fn row(self) -> Bytes {
        let mut row = BytesMut::with_capacity(9);
        match self {
            Self::Coordinator => row.put_u8(COORDINATOR),
            Self::Reader { hub, partition } => {
                row.put_u8(READER);
                row.put_u32(hub.0);
                row.put_u32(partition);
            }
        }
        row.freeze()
    }
}

/// Who has claimed something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Names the holder, and nobody before or after it.
    pub holder: u64,
    /// The epoch of a reader.
    pub level: i64,
    /// Where the holder is found, for people.
    pub note: String,
    /// From when on others may take it.
    pub until_ms: u64,
}

impl Claim {
    fn encode(&self) -> Bytes {
        let mut row = BytesMut::with_capacity(25 + self.note.len());
        row.put_u8(FORMAT);
        row.put_u64(self.holder);
        row.put_i64(self.level);
        row.put_u64(self.until_ms);
        row.put_slice(self.note.as_bytes());
        row.freeze()
    }

    fn decode(mut row: Bytes) -> Result<Self> {
        let damaged = || damaged("a claim of a group");
        if row.len() < 25 || row.get_u8() != FORMAT {
            return Err(damaged());
        }
        let (holder, level, until_ms) = (row.get_u64(), row.get_i64(), row.get_u64());
        let note = String::from_utf8(row.into()).map_err(|_| damaged())?;
        Ok(Self { holder, level, note, until_ms })
    }
}

/// The row of a claim.
fn key(group: &GroupPlace, claimed: Claimed) -> ItemKey {
    ItemKey::new(group.container, Space::LOG_STATES, &group.route, &claimed.row())
}

struct Take {
    group: GroupPlace,
    claimed: Claimed,
    wanted: Claim,
    /// Whether it is only renewed, and lost if another one has taken it.
    is_renewal: bool,
}

impl Transaction for Take {
    /// The claim as it stands now, whoever has it.
    type Output = Claim;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<Claim> {
        let key = key(&self.group, self.claimed);
        let old = tx.get(&key).await?;
        let standing = old.map(|item| Claim::decode(item.payload)).transpose()?;
        let now = tx.now_ms();
        if let Some(standing) = standing.filter(|it| it.holder != self.wanted.holder) {
            let is_live = standing.until_ms > now;
            let is_stronger = match self.claimed {
                Claimed::Coordinator => true,
                Claimed::Reader { .. } => standing.level > self.wanted.level || self.is_renewal,
            };
            if is_live && is_stronger {
                return Ok(standing);
            }
        }
        let until_ms = now + CLAIM_LIFE.as_millis() as u64;
        let claim = Claim { until_ms, ..self.wanted.clone() };
        // Rows of groups that nobody uses any more go away by themselves.
        let expires_ms = until_ms + 10 * CLAIM_LIFE.as_millis() as u64;
        tx.put_until(&key, claim.encode(), Some(expires_ms)).await?;
        Ok(claim)
    }

    fn cost(&self) -> u32 {
        0
    }
}

struct GiveUp {
    group: GroupPlace,
    claimed: Claimed,
    holder: u64,
}

impl Transaction for GiveUp {
    type Output = ();

    async fn run(&self, tx: &mut Tx<'_>) -> Result<()> {
        let key = key(&self.group, self.claimed);
        let Some(item) = tx.get(&key).await? else { return Ok(()) };
        if Claim::decode(item.payload.clone())?.holder == self.holder {
            tx.remove(&key, &item)?;
        }
        Ok(())
    }

    fn cost(&self) -> u32 {
        0
    }
}

/// Refuses what a process does in the name of a group that another one coordinates.
pub(crate) async fn check_holder(tx: &mut Tx<'_>, group: &GroupPlace, holder: u64) -> Result<()> {
    let Some(item) = tx.get(&key(group, Claimed::Coordinator)).await? else { return Ok(()) };
    let claim = Claim::decode(item.payload)?;
    if claim.holder == holder || claim.until_ms <= tx.now_ms() {
        return Ok(());
    }
    let message = format!("the group is coordinated at {}", claim.note);
    Err(Error::precondition(LogReason::NotCoordinator, message))
}

impl Logs {
    /// Whether other processes share the stores, so that what they all must know has to be claimed.
    pub fn is_shared(&self) -> bool {
        self.poll.is_some()
    }

    /// Takes or renews a claim, and answers who has it then: compare the holder.
    pub async fn claim(
        &self,
        namespace: &str,
        group: &str,
        claimed: Claimed,
        wanted: Claim,
        is_renewal: bool,
    ) -> Result<Claim> {
        check_group_name(group)?;
        let container = self.groups(namespace).await?;
        let group = GroupPlace::new(&container, group)?;
        let route = group.route.clone();
        let take = Take { group, claimed, wanted, is_renewal };
        self.engine.write(container.id, &route, take).await
    }

    /// Gives a claim up, if it is this holder's.
    pub async fn give_up(
        &self,
        namespace: &str,
        group: &str,
        claimed: Claimed,
        holder: u64,
    ) -> Result<()> {
        let Some(container) = self.groups_if_any(namespace).await? else { return Ok(()) };
        let group = GroupPlace::new(&container, group)?;
        let route = group.route.clone();
        self.engine.write(container.id, &route, GiveUp { group, claimed, holder }).await
    }

    /// Who holds a claim now; none if nobody does.
    pub async fn claimant(
        &self,
        namespace: &str,
        group: &str,
        claimed: Claimed,
    ) -> Result<Option<Claim>> {
        let Some(container) = self.groups_if_any(namespace).await? else { return Ok(None) };
        let group = GroupPlace::new(&container, group)?;
        let view = self.engine.read(container.id, &group.route, 1).await?;
        let found = view.get(&key(&group, claimed)).await?;
        let claim = found.map(|item| Claim::decode(item.payload)).transpose()?;
        let now = self.engine.env().clock.now_ms();
        Ok(claim.filter(|claim| claim.until_ms > now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_survives_its_row() {
        let claim = Claim { holder: 7, level: -3, note: "here".into(), until_ms: 9 };
        assert_eq!(Claim::decode(claim.encode()).unwrap(), claim);
        assert!(Claim::decode(claim.encode().slice(..20)).is_err());
        let hub = ContainerId(5);
        assert_ne!(Claimed::Reader { hub, partition: 1 }.row(), Claimed::Coordinator.row());
    }
}
