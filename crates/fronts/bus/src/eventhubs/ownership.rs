//! Who reads a partition where several processes share the stores: a reader with an epoch claims it by a row, and all others
//! look for such a row. `readers` knows those of this process, who are put out at once; those of others notice within
//! [`LOOK_INTERVAL`].

use std::time::{Duration, Instant};

use lazuli_log::{CLAIM_RENEWAL, Claim, Claimed, Hub, Logs};

use super::from_log;
use super::readers::stolen;
use crate::error::Result;

/// How often a reader looks whether another process has one in its place.
pub(super) const LOOK_INTERVAL: Duration = Duration::from_millis(500);

/// The place of one reader among those of all processes.
pub(super) struct Ownership {
    logs: Logs,
    namespace: String,
    group: String,
    claimed: Claimed,
    holder: u64,
    epoch: Option<i64>,
    looked: Instant,
    renewed: Instant,
}

impl Ownership {
    /// Takes the place, or fails as the service does where a reader with a higher epoch has it. None where no other process
    /// could have readers.
    pub(super) async fn take(
        logs: &Logs,
        namespace: &str,
        group: &str,
        hub: &Hub,
        partition: u32,
        epoch: Option<i64>,
    ) -> Result<Option<Self>> {
        if !logs.is_shared() {
            return Ok(None);
        }
        let now = Instant::now();
        let mut ownership = Self {
            logs: logs.clone(),
            namespace: namespace.to_owned(),
            group: group.to_lowercase(),
            claimed: Claimed::Reader { hub: hub.id(), partition },
            holder: logs.engine().env().random.next_u64(),
            epoch,
            looked: now,
            renewed: now,
        };
        match ownership.claim(false).await? {
            true => Ok(Some(ownership)),
            false => Err(stolen(
                "A receiver with a higher epoch, or with one, is connected to another node.",
            )),
        }
    }

    /// Claims or renews; without an epoch only looks. Says whether the place is this reader's.
    async fn claim(&mut self, is_renewal: bool) -> Result<bool> {
        let Self { logs, namespace, group, claimed, holder, epoch, .. } = self;
        let Some(level) = *epoch else {
            let found = logs.claimant(namespace, group, *claimed).await.map_err(from_log)?;
            return Ok(found.is_none());
        };
        let wanted = Claim { holder: *holder, level, note: String::new(), until_ms: 0 };
        let claim = logs.claim(namespace, group, *claimed, wanted, is_renewal).await;
        Ok(claim.map_err(from_log)?.holder == self.holder)
    }

    /// Whether another process has put this reader out. A look that fails is repeated.
    pub(super) async fn is_lost(&mut self) -> bool {
        if self.looked.elapsed() < LOOK_INTERVAL {
            return false;
        }
        self.looked = Instant::now();
        let is_due = self.epoch.is_none() || self.renewed.elapsed() >= CLAIM_RENEWAL;
        if is_due {
            let began = Instant::now();
            return match self.claim(true).await {
                Ok(is_ours) => {
                    self.renewed = began;
                    !is_ours
                }
                Err(_) => false,
            };
        }
        let found = self.logs.claimant(&self.namespace, &self.group, self.claimed).await;
        matches!(found, Ok(Some(claim)) if claim.holder != self.holder)
    }

    /// Gives the place back, so that readers with lower epochs need not wait for its end.
    pub(super) async fn give_up(self) {
        if self.epoch.is_some() {
            let Self { logs, namespace, group, claimed, holder, .. } = self;
            // What cannot be given up now ends by itself.
            let _ = logs.give_up(&namespace, &group, claimed, holder).await;
        }
    }
}
