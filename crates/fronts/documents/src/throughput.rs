//! Throughput at work: the share of each range, requests let in by it, and what a change of throughput does to the ranges.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use lazuli_shapes::document::{PartitionKey, Range, Resource, Rid, Scope};

use crate::budget::{Account, Budgets};
use crate::containers::Opened;
use crate::error::{Fault, Result, Status, substatus};
use crate::feed::Part;
use crate::headers::Throughput;
use crate::{Call, Front, offers, session};

/// How long the throughput of a container is believed to be what it was. Another process may have changed it.
const RATE_KEPT_MS: u64 = 5_000;
/// The most containers whose throughput and ranges are remembered.
const KEPT_MAX: usize = 10_000;

type Ranges = Arc<Vec<Range>>;

/// A container as requests name it: the account, and the texts of the path.
pub(crate) type ContainerPath = (String, String, String);

/// A container that was found: the id of its database, its entry in the directory, and the version that it had then.
pub(crate) type Found = (Arc<str>, Arc<Resource>, u64);

/// What is remembered of containers between requests.
#[derive(Default)]
pub(crate) struct Remembered {
    pub(crate) budgets: Budgets,
    rates: Mutex<HashMap<String, (Rate, u64)>>,
    /// With the version of the container that has them.
    ranges: Mutex<HashMap<String, (u64, Ranges)>>,
    containers: Mutex<HashMap<ContainerPath, Found>>,
}

/// Whose throughput a container uses: its own or its database's.
#[derive(Clone, Debug)]
struct Rate {
    owner: String,
    units: u32,
}

impl Remembered {
    /// The container of a path, if it was found before. It may be gone since.
    pub(crate) fn container(&self, path: &ContainerPath) -> Option<Found> {
        self.containers.lock().unwrap_or_else(PoisonError::into_inner).get(path).cloned()
    }

    pub(crate) fn keep_container(&self, path: ContainerPath, found: Found) {
        let mut kept = self.containers.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= KEPT_MAX {
            kept.clear();
        }
        kept.insert(path, found);
    }

    pub(crate) fn forget_container(&self, path: &ContainerPath) {
        self.containers.lock().unwrap_or_else(PoisonError::into_inner).remove(path);
    }

    pub(crate) fn forget_containers(&self) {
        self.containers.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    pub(crate) fn forget_rates(&self) {
        self.rates.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

impl Front {
    /// The live ranges of a container, in their order.
    pub(crate) async fn ranges(&self, opened: &Opened) -> Result<Ranges> {
        let (rid, version) = (opened.resource.rid.to_string(), opened.collection.version());
        {
            let kept = self.remembered.ranges.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some((at, ranges)) = kept.get(&rid)
                && *at == version
            {
                return Ok(ranges.clone());
            }
        }
        let ranges = Arc::new(self.documents.ranges(&opened.collection).await?);
        let mut kept = self.remembered.ranges.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= KEPT_MAX {
            kept.clear();
        }
        kept.insert(rid, (version, ranges.clone()));
        Ok(ranges)
    }

    async fn rate(&self, call: &Call, opened: &Opened) -> Result<Rate> {
        let rid = opened.resource.rid.to_string();
        {
            let kept = self.remembered.rates.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some((rate, at_ms)) = kept.get(&rid)
                && call.received_ms.saturating_sub(*at_ms) < RATE_KEPT_MS
            {
                return Ok(rate.clone());
            }
        }
        let database = opened.resource.rid.database().to_string();
        let mut found = None;
        for owner in [rid.clone(), database] {
            if let Some(offer) = offers::find(self, call, &owner).await?
                && let Some(throughput) = offers::throughput(&offer.body)
            {
                found = Some(Rate { owner, units: throughput.units() });
                break;
            }
        }
        let units = self.parts.limits.throughput_default;
        let rate = found.unwrap_or(Rate { owner: rid.clone(), units });
        let mut kept = self.remembered.rates.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= KEPT_MAX {
            kept.clear();
        }
        kept.insert(rid, (rate.clone(), call.received_ms));
        Ok(rate)
    }

    /// Lets a request in that is about one partition key.
    pub(crate) async fn admit_key(
        &self,
        call: &Call,
        opened: &Opened,
        key: &PartitionKey,
    ) -> Result<Account> {
        if !self.parts.limits.throttles {
            return Ok(Account::free());
        }
        let epk = opened.collection.epk(key)?;
        let ranges = self.ranges(opened).await?;
        let range = ranges.iter().find(|range| range.routes().contains(&epk));
        let id = range.map_or(0, |range| range.id.0);
        self.admit_range(call, opened, id, ranges.len()).await
    }

    /// Lets a request in that is about a part of a container. One about all of it is counted with its first range.
    pub(crate) async fn admit_part(
        &self,
        call: &Call,
        opened: &Opened,
        part: &Part,
    ) -> Result<Account> {
        if !self.parts.limits.throttles {
            return Ok(Account::free());
        }
        match (&part.scope, part.range) {
            (Scope::Key(key), _) => self.admit_key(call, opened, key).await,
            (Scope::Routes(_), range) => {
                let ranges = self.ranges(opened).await?;
                let first = ranges.first().map_or(0, |range| range.id.0);
                self.admit_range(call, opened, range.unwrap_or(first), ranges.len()).await
            }
        }
    }

    async fn admit_range(
        &self,
        call: &Call,
        opened: &Opened,
        range: u64,
        ranges: usize,
    ) -> Result<Account> {
        let rate = self.rate(call, opened).await?;
        let share = f64::from(rate.units) / ranges.max(1) as f64;
        // A range gives no more, also while the split that a new throughput has asked for is pending.
        let share = share.min(f64::from(self.parts.limits.physical_partition_units_max));
        let range = if rate.owner == opened.resource.rid.to_string() { range } else { 0 };
        self.remembered.budgets.admit((rate.owner, range), share, call.received_ms)
    }

    /// Refuses a client that has seen more of a range than there is here.
    pub(crate) async fn check_session(&self, call: &Call, range: u64, lsn: u64) -> Result<()> {
        let Some(text) = &call.headers.session else { return Ok(()) };
        let ahead = |seen: &session::Seen| seen.range == range && seen.lsn > lsn;
        if session::parse(text)?.iter().any(ahead) {
            let message = "The read session is not available for the input session token.";
            return Err(Fault::new(Status::NotFound, message).substatus(substatus::NOT_THAT_FAR));
        }
        Ok(())
    }

    /// How many ranges a container has, and how many it would have with a throughput.
    pub(crate) async fn ranges_with(
        &self,
        account: &str,
        rid: &str,
        throughput: Throughput,
    ) -> Result<(i64, i64)> {
        let Some(rid) = Rid::parse(rid).filter(|rid| rid.collection().as_ref() == Some(rid)) else {
            // That of a database splits nothing.
            return Ok((0, 0));
        };
        let collection = self.documents.open_rid(account, &rid).await?;
        let now = self.documents.ranges(&collection).await?.len();
        let then = throughput.more_ranges(now, &self.parts.limits);
        Ok((now as i64, then.map_or(now as i64, i64::from)))
    }

    /// Does what a new throughput asks for: more than its ranges can give has them split in the background.
    pub(crate) async fn throughput_changed(
        &self,
        account: &str,
        rid: &str,
        throughput: Throughput,
    ) -> Result<()> {
        self.remembered.forget_rates();
        let Some(rid) = Rid::parse(rid) else { return Ok(()) };
        if rid.collection().as_ref() != Some(&rid) {
            return Ok(());
        }
        let collection = self.documents.open_rid(account, &rid).await?;
        let ranges = self.documents.ranges(&collection).await?.len();
        if let Some(wanted) = throughput.more_ranges(ranges, &self.parts.limits) {
            self.documents.want_ranges(&collection, wanted).await?;
        }
        Ok(())
    }
}
