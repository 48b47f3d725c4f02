//! Executes one action of a plan through the engine. Partitions that have changed since the plan was made are skipped.

use std::time::Duration;

use lazuli_balance::{Action, Cut, Merge, Move, Split};
use lazuli_engine::{Isolated, Middle, MoveOptions, Outcome};
use lazuli_shardmap::manager::Known;
use lazuli_shardmap::{Partition, PartitionId, ShardId};
use lazuli_store::{Error, Kind, Result};

use super::Balancer;

/// How often a move is looked at until it is over.
const LOOK: Duration = Duration::from_millis(50);

impl Balancer {
    /// Does what an action says, to its end.
    pub(super) async fn act(&self, number: u64, action: &Action) -> Result<()> {
        match action {
            Action::Split(split) => self.split(split).await,
            Action::Merge(merge) => self.merge(number, merge).await,
            Action::Move(one) => self.send(number, one).await,
        }
    }

    async fn split(&self, split: &Split) -> Result<()> {
        let partition = self.partition(split.partition, split.shard).await?;
        let engine = &self.engine;
        let halves = async |middle| {
            let at = engine.middle(&partition, middle).await?;
            Ok(<[_; 2]>::from(engine.split(Known::from(&partition), at).await?).to_vec())
        };
        let requests = split.pieces.iter().map(|piece| piece.load.requests);
        let pieces = match split.cut {
            Cut::Bytes => expected(halves(Middle::Size).await?, requests),
            Cut::Requests => expected(halves(Middle::Load).await?, requests),
            Cut::HotShardlet => {
                let hottest = self.history.hot_keys(&partition)?.into_iter().next();
                let cold = || Error::precondition("no-hot-key", "no key stands out any more");
                let route = hottest.ok_or_else(cold)?.route;
                around(engine.isolate(&partition, &route).await?, requests)
            }
        };
        let ids: Vec<u64> = pieces.iter().map(|(piece, _)| piece.0).collect();
        tracing::info!(partition = split.partition.0, pieces = ?ids, "split to balance");
        let now_ms = self.now_ms();
        let mut state = self.state();
        pieces.into_iter().for_each(|(piece, requests)| state.expect(piece, requests, now_ms));
        Ok(())
    }

    async fn merge(&self, number: u64, merge: &Merge) -> Result<()> {
        if let Some(first) = &merge.first {
            self.send(number, first).await?;
        }
        let left = self.partition(merge.left, merge.shard).await?;
        let right = self.partition(merge.right, merge.shard).await?;
        let merged = self.engine.merge(Known::from(&left), Known::from(&right)).await?;
        let (left, right) = (left.id.0, right.id.0);
        tracing::info!(left, right, merged = merged.id.0, "merged to balance");
        let now_ms = self.now_ms();
        let mut state = self.state();
        state.rest(merged.id, now_ms);
        state.expect(merged.id, merge.load.requests, now_ms);
        Ok(())
    }

    async fn send(&self, number: u64, one: &Move) -> Result<()> {
        self.partition(one.partition, one.from).await?;
        let rate = self.settings.planner.rate();
        let options = MoveOptions { bytes_per_second: Some(rate), ..MoveOptions::default() };
        let begun = self.engine.move_partition(one.partition, one.to, options).await?;
        let job = begun.number;
        tracing::info!(partition = one.partition.0, to = %one.to, job, "began a move to balance");
        if let Some(doing) = self.state().doing.get_mut(&number) {
            doing.job = Some(job);
        }
        let outcome = self.over(job).await?;
        self.state().rest(one.partition, self.now_ms());
        match outcome {
            Outcome::Arrived => Ok(()),
            Outcome::Cancelled => {
                Err(Error::precondition("move-cancelled", format!("job {job} was called off")))
            }
        }
    }

    /// Waits until a job is over.
    pub(super) async fn over(&self, job: u64) -> Result<Outcome> {
        loop {
            match self.engine.move_finished(job).await {
                Ok(finished) => return Ok(finished.outcome),
                Err(error) if error.kind() == Kind::NotFound => {}
                Err(error) => return Err(error),
            }
            self.engine.env().clock.sleep(LOOK).await;
        }
    }

    /// A partition as it is now, if it still is where the plan saw it.
    async fn partition(&self, id: PartitionId, shard: ShardId) -> Result<Partition> {
        let partition = self.engine.manager().catalog().partition(id).await?.partition;
        if partition.shard == shard {
            return Ok(partition);
        }
        let message = format!("partition {id} is not on shard {shard} any more");
        Err(Error::precondition("plan-outdated", message))
    }
}

/// What is expected of each piece, in the order of both.
fn expected(
    pieces: Vec<Partition>,
    requests: impl Iterator<Item = f64>,
) -> Vec<(PartitionId, f64)> {
    pieces.iter().map(|piece| piece.id).zip(requests).collect()
}

/// The same around an isolated shardlet. One that lies at an end has fewer neighbours than the plan took it to have.
fn around(isolated: Isolated, requests: impl Iterator<Item = f64>) -> Vec<(PartitionId, f64)> {
    let requests: Vec<f64> = requests.collect();
    let hottest = requests.iter().copied().fold(0.0, f64::max);
    let others = isolated.pieces.len().saturating_sub(1).max(1) as f64;
    let each = (requests.iter().sum::<f64>() - hottest) / others;
    let expect = |id| if id == isolated.alone.id { hottest } else { each };
    isolated.pieces.iter().map(|piece| (piece.id, expect(piece.id))).collect()
}
