//! Who reads a partition for which group, and with which epoch: a reader with an epoch has the partition to itself.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lazuli_engine::ContainerId;
use tokio::sync::Notify;

use crate::error::{Fault, Result};

/// The most readers without an epoch of one partition and group, as the service has it.
const READERS_MAX: usize = 5;

/// A hub, a partition of it, and a group in lower case.
type Place = (ContainerId, u32, String);

#[derive(Default)]
pub(super) struct Readers {
    all: Arc<Mutex<BTreeMap<Place, Vec<Reading>>>>,
    next: AtomicU64,
}

struct Reading {
    id: u64,
    epoch: Option<i64>,
    stolen: Arc<Notify>,
}

/// The place of one reader, until it is dropped.
pub(super) struct Reader {
    all: Arc<Mutex<BTreeMap<Place, Vec<Reading>>>>,
    place: Place,
    id: u64,
    stolen: Arc<Notify>,
}

type All = BTreeMap<Place, Vec<Reading>>;

fn lock(all: &Mutex<All>) -> MutexGuard<'_, All> {
    all.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) fn stolen(text: impl Into<String>) -> Fault {
    Fault::new(409, lazuli_amqp::condition::STOLEN, text)
}

impl Readers {
    /// Lets a reader in. One with an epoch puts out all with a lower one, the same one or none.
    pub(super) fn enter(
        &self,
        hub: ContainerId,
        partition: u32,
        group: &str,
        epoch: Option<i64>,
    ) -> Result<Reader> {
        let place = (hub, partition, group.to_lowercase());
        let mut all = lock(&self.all);
        let here = all.entry(place.clone()).or_default();
        let highest = here.iter().filter_map(|one| one.epoch).max();
        if let Some(highest) = highest
            && epoch.is_none_or(|epoch| epoch < highest)
        {
            return Err(stolen(format!(
                "At least one receiver for the endpoint is created with epoch of '{highest}', and \
                 so non-epoch receiver or one with a lower epoch is not allowed."
            )));
        }
        if epoch.is_some() {
            here.drain(..).for_each(|one| one.stolen.notify_one());
        } else if here.len() >= READERS_MAX {
            let text = "Exceeded the maximum number of allowed receivers per partition in a \
                        consumer group which is 5.";
            return Err(Fault::new(403, lazuli_amqp::condition::RESOURCE_LIMIT, text));
        }
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let notify: Arc<Notify> = Arc::default();
        here.push(Reading { id, epoch, stolen: notify.clone() });
        Ok(Reader { all: self.all.clone(), place, id, stolen: notify })
    }
}

impl Reader {
    /// Waits until another reader has taken the partition.
    pub(super) async fn stolen(&self) {
        self.stolen.notified().await;
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let mut all = lock(&self.all);
        if let Some(here) = all.get_mut(&self.place) {
            here.retain(|one| one.id != self.id);
            if here.is_empty() {
                all.remove(&self.place);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_higher_or_equal_epoch_takes_the_partition_and_a_lower_one_is_refused() {
        let readers = Readers::default();
        let enter = |epoch| readers.enter(ContainerId(1), 0, "$Default", epoch);
        let plain = enter(None).unwrap_or_else(|_| panic!("it is free"));
        let first = enter(Some(3)).unwrap_or_else(|_| panic!("epochs go first"));
        plain.stolen().await;
        assert!(enter(None).is_err() && enter(Some(2)).is_err());
        let second = enter(Some(3)).unwrap_or_else(|_| panic!("the same epoch takes it"));
        first.stolen().await;
        drop((plain, first, second));
        let all: Vec<_> = (0..READERS_MAX).map(|_| enter(None)).collect();
        assert!(all.iter().all(|one| one.is_ok()) && enter(None).is_err());
        drop(all);
        assert!(lock(&readers.all).is_empty());
    }
}
