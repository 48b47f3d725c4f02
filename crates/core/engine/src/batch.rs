//! A batch: transactions that run one after another on one overlay and become durable in one commit.

use std::sync::Arc;

use lazuli_shardmap::local::{Access, Held};
use lazuli_store::{Direction, PageLimit, Reader, Result, Write};
use tokio::sync::MutexGuard;

use crate::item::keys_of;
use crate::lane::Job;
use crate::limits::{BATCH_BYTES, COUNT_AT_ONCE_MAX};
use crate::lsn::Lsn;
use crate::outside::Outside;
use crate::overlay::Overlay;
use crate::partition::LivePartition;
use crate::shard::LiveShard;
use crate::stats::{Counts, Delta};
use crate::tx::{Claim, Tx};

/// The partitions of a batch with their turns, in the order of their ids.
pub(crate) struct Batch<'a> {
    shard: &'a Arc<LiveShard>,
    partitions: Vec<(Arc<LivePartition>, MutexGuard<'a, ()>)>,
}

/// How a batch ended for the jobs that ran in it.
type Outcomes = Vec<(Box<dyn Job>, Result<()>)>;

impl<'a> Batch<'a> {
    pub(crate) fn new(
        shard: &'a Arc<LiveShard>,
        partitions: Vec<(Arc<LivePartition>, MutexGuard<'a, ()>)>,
    ) -> Self {
        Self { shard, partitions }
    }

    /// Runs jobs of one partition, all routed by an epoch of their own: those of another one are told so. Gives back the
    /// jobs for which the batch had no room.
    pub(crate) async fn run(mut self, jobs: Vec<Box<dyn Job>>) -> Vec<Box<dyn Job>> {
        let Some(epoch) = jobs.first().map(|job| job.epoch()) else { return jobs };
        let (mut now, mut later) = (Vec::new(), Vec::new());
        for job in jobs {
            // A batch has one guard, so it takes one epoch; another one waits for the next batch.
            if job.epoch() == epoch { now.push(job) } else { later.push(job) }
        }
        let id = self.partitions[0].0.id;
        let held = self.shard.local.held(id, epoch, Access::Write).await;
        match held {
            Ok(held) => {
                let mut left = self.run_held(vec![held], now).await;
                left.extend(later);
                left
            }
            Err(error) => {
                for job in now {
                    job.answer(Err(error.clone()));
                }
                later
            }
        }
    }

    /// Runs jobs on partitions that this shard holds. The guards decide in the commit itself whether it still does.
    pub(crate) async fn run_held(
        &mut self,
        held: Vec<Held>,
        jobs: Vec<Box<dyn Job>>,
    ) -> Vec<Box<dyn Job>> {
        let mut jobs = jobs.into_iter();
        let mut outcomes = Vec::new();
        let committed = self.run_and_commit(held, &mut jobs, &mut outcomes).await;
        for (job, outcome) in outcomes {
            // Also a refusal rests on what the batch wrote before it, so it stands only if the batch does.
            job.answer(committed.clone().and(outcome));
        }
        let left: Vec<_> = jobs.collect();
        match committed {
            Ok(()) => left,
            Err(error) => {
                for job in left {
                    job.answer(Err(error.clone()));
                }
                Vec::new()
            }
        }
    }

    async fn run_and_commit(
        &mut self,
        held: Vec<Held>,
        jobs: &mut impl Iterator<Item = Box<dyn Job>>,
        outcomes: &mut Outcomes,
    ) -> Result<()> {
        let guards = held.iter().map(|held| held.guard.clone()).collect();
        let txn = self.shard.store.begin(guards).await?;
        let mut counts = self.load_counts(&*txn, &held).await?;
        let mut claims: Vec<Claim> = held
            .into_iter()
            .map(|held| Claim { held, records_changes: false, rules: None })
            .collect();
        let mut overlay = Overlay::default();
        let mut deltas = vec![Delta::default(); claims.len()];
        let mut last_lsn = Lsn::ZERO;
        // On a full disk the transactions that free space go on without the others of the batch.
        let health = self.shard.store.health();
        for mut job in jobs {
            for claim in &mut claims {
                claim.records_changes = job.records_changes();
                claim.rules = job.rules(claim.held.container);
            }
            last_lsn = self.shard.lsns.next_lsn();
            let clock_ms = self.shard.env.clock.now_ms();
            let outside = &self.shard.settings.outside;
            let mut tx = Tx::new(&*txn, &mut overlay, &claims, last_lsn, clock_ms, outside);
            let outcome = job.run(&mut tx).await;
            let (added, wrote_expiry) = (tx.deltas, tx.wrote_expiry);
            let outcome = outcome.and_then(|()| overlay.check(&health));
            if outcome.is_ok() {
                overlay.keep();
                for (total, added) in deltas.iter_mut().zip(added) {
                    total.add(added);
                }
                if wrote_expiry {
                    self.shard.note_expiring(claims.iter().map(|claim| claim.held.container));
                }
            } else {
                overlay.take_back();
            }
            outcomes.push((job, outcome));
            if overlay.bytes() >= BATCH_BYTES {
                break;
            }
        }
        if overlay.is_empty() {
            return Ok(());
        }
        self.count(&mut overlay, &mut counts, &deltas, last_lsn);
        self.shard.count_commit(outcomes.len());
        txn.commit(overlay.into_writes()).await?;
        self.note_sizes(&counts);
        Ok(())
    }

    /// The figures of each partition as the transaction finds them: another process may have changed them since the last
    /// batch of this one. Numbers given out from here on are greater than those of all that is committed there.
    async fn load_counts(&self, txn: &dyn Reader, held: &[Held]) -> Result<Vec<Counts>> {
        let mut all = Vec::with_capacity(held.len());
        for (held, (partition, _)) in held.iter().zip(&self.partitions) {
            let mut counts = Counts::read(txn, partition.id).await?.unwrap_or_default();
            if counts.is_blank() {
                counts = estimate(txn, held, &self.shard.settings.outside, counts.last_lsn).await?;
            }
            self.shard.lsns.push_past(counts.last_lsn);
            if !counts.exact {
                self.shard.note_inexact(partition.id);
            }
            all.push(counts);
        }
        self.note_sizes(&all);
        Ok(all)
    }

    fn note_sizes(&self, counts: &[Counts]) {
        for ((partition, _), counts) in self.partitions.iter().zip(counts) {
            if let Some(size) = counts.size() {
                partition.note_size(size);
            }
        }
    }

    /// Brings the figures of each partition up to date, in the same commit.
    fn count(&self, overlay: &mut Overlay, counts: &mut [Counts], deltas: &[Delta], last_lsn: Lsn) {
        let figures = counts.iter_mut().zip(deltas);
        for ((partition, _), (counts, delta)) in self.partitions.iter().zip(figures) {
            delta.add_to(counts);
            counts.last_lsn = last_lsn;
            overlay.write(Write::Put(Counts::key(partition.id), counts.encode()));
        }
    }
}

/// The figures of a partition that has none yet: counted if that is quick. If not, what was found so far is as good a start
/// as any other for additions: it has to be counted later.
async fn estimate(
    reader: &dyn Reader,
    held: &Held,
    outside: &Outside,
    last_lsn: Lsn,
) -> Result<Counts> {
    let mut counts = Counts { exact: true, last_lsn, ..Counts::default() };
    let mut total = Delta::default();
    for space in lazuli_shardmap::layout::Space::KEY_ORDERED {
        let keys = keys_of(held.container, *space, &held.routes);
        let limit = PageLimit::items(COUNT_AT_ONCE_MAX);
        let page = reader.scan(&keys, Direction::Forward, limit).await?;
        counts.exact &= !page.more;
        for (key, value) in page.items {
            total.put(outside.weigh(&key, &value));
            counts.last_lsn = counts.last_lsn.max(crate::item::Item::decode(value)?.version);
        }
    }
    counts.estimated = !counts.exact;
    total.add_to(&mut counts);
    Ok(counts)
}
