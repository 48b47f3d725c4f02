//! One engine leading one move, from wherever it stands to its commit.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use lazuli_shardmap::local::LocalMap;
use lazuli_shardmap::{MapReason, Move};
use lazuli_store::{Error, Newest, Result, Write};

use super::pass::Pass;
use super::status::{self, MoveStatus, Phase, Progress};
use crate::engine::Engine;
use crate::shard::LiveShard;
use crate::stats::Counts;

/// Commits that lie between fence and opening, beside those of the last pass: by them the pause is predicted.
const COMMITS_OF_A_PAUSE: u32 = 8;
/// The pause that a move aims at, unless its limit is shorter. After it has waited in vain for `AIM_PATIENCE`, it aims at twice
/// as much, and so on up to its limit: on a shard whose commits are always slow it would wait for ever otherwise.
pub(super) const PAUSE_AIM: Duration = Duration::from_millis(500);
const AIM_PATIENCE: Duration = Duration::from_secs(5);
/// How long a move waits for a short pause before it lets another one have its turn, if one is waiting.
const TURN_MAX: Duration = Duration::from_secs(5);
/// How long catching up rests when a pass was too long for the fence to be set.
const BREATHER: Duration = Duration::from_millis(50);
const BREATHER_MAX: Duration = Duration::from_secs(2);

pub(super) struct Mover<'a> {
    pub(super) engine: &'a Engine,
    pub(super) moving: Move,
    pub(super) source: Arc<LiveShard>,
    pub(super) target: Arc<LiveShard>,
    pub(super) progress: Progress,
    pub(super) status: &'a Arc<Mutex<MoveStatus>>,
    /// How long a commit on the target took, lately. Nothing until there was one.
    pub(super) commit_time: Duration,
    /// For how long a fence stood in vain, lately.
    vain_time: Duration,
}

/// How a look at the catalog's row ended.
enum Look {
    GoOn,
    Rest,
    /// It was cancelled.
    Closed(Move),
}

impl<'a> Mover<'a> {
    pub(super) async fn open(
        engine: &'a Engine,
        moving: Move,
        status: &'a Arc<Mutex<MoveStatus>>,
    ) -> Result<Self> {
        let source = engine.shards.get(moving.source)?;
        let target = engine.shards.get(moving.target)?;
        let row = target.store.get(&LocalMap::progress_key(moving.number)).await?;
        let progress = row.map(Progress::decode).transpose()?.unwrap_or_default();
        let (commit_time, vain_time) = (Duration::ZERO, Duration::ZERO);
        Ok(Self { engine, moving, source, target, progress, status, commit_time, vain_time })
    }

    /// Leads the move until the target owns the partition, or until it was called off: the move as it is then. None if it
    /// is to rest.
    pub(super) async fn run(mut self) -> Result<Option<Move>> {
        let outcome = self.run_steps().await;
        match &outcome {
            Err(error) if is_lost(error) => {
                // The partition is gone or has changed under the move: there is nothing left to be moved.
                let (manager, number) = (self.engine.manager.clone(), self.moving.number);
                let cancelled = manager.cancel_move(number).await;
                return cancelled.map(Some).map_err(|_| error.clone());
            }
            Err(error) => status::lock(self.status).trouble = Some(error.clone()),
            Ok(_) => {}
        }
        outcome
    }

    async fn run_steps(&mut self) -> Result<Option<Move>> {
        self.say(Phase::Copying);
        self.expect_bytes().await;
        if let Some(rest) = self.copy().await? {
            return Ok(rest);
        }
        let began = self.engine.env.clock.uptime();
        let mut breather = BREATHER;
        loop {
            if let Some(rest) = self.look().await? {
                return Ok(rest);
            }
            self.say(Phase::CatchingUp);
            let pass = self.pass(None).await?;
            if !self.progress.is_verified {
                self.say(Phase::Verifying);
                self.verify(&pass).await?;
                continue;
            }
            if self.predict(&pass).await? <= self.pause_aim()
                && let Some(arrived) = self.fence_and_commit().await?
            {
                return Ok(Some(arrived));
            }
            let took = self.engine.env.clock.uptime().saturating_sub(began);
            if took > TURN_MAX && self.engine.moves.is_crowded() {
                return Ok(None);
            }
            // Writers that have just waited in vain, or would have to wait for too long, are let go for a while.
            self.engine.env.clock.sleep(breather).await;
            breather = (breather * 2).min(BREATHER_MAX);
            // Without writes on the source, passes commit nothing: only this measures whether commits are quick again.
            self.write(vec![]).await?;
        }
    }

    /// For how long writers would have to wait if the fence were set now.
    async fn predict(&mut self, pass: &Pass) -> Result<Duration> {
        if self.commit_time.is_zero() {
            // A leader that takes over after the copy has committed nothing yet.
            self.write(vec![]).await?;
        }
        let judged = pass.time * 2 + self.commit_time * COMMITS_OF_A_PAUSE;
        let predicted = judged.max(self.vain_time);
        // It tells less and less, so that the fence is tried again.
        self.vain_time = self.vain_time * 3 / 4;
        let mut status = status::lock(self.status);
        status.lag = pass.changes;
        status.pause_predicted = Some(predicted);
        Ok(predicted)
    }

    /// Reads the catalog's row: whether to go on. The outer option says whether to stop; the inner one is what `run` then
    /// answers.
    pub(super) async fn look(&self) -> Result<Option<Option<Move>>> {
        Ok(match self.look_at_row().await? {
            Look::GoOn => None,
            Look::Rest => Some(None),
            Look::Closed(moving) => Some(Some(moving)),
        })
    }

    async fn look_at_row(&self) -> Result<Look> {
        let number = self.moving.number;
        let row = self.engine.manager.catalog().moving(number).await?;
        let missing =
            || Error::not_found(MapReason::MoveNotFound, format!("there is no move {number}"));
        let row = row.ok_or_else(missing)?;
        if !row.is_open() {
            return Ok(Look::Closed(row));
        }
        if row.epoch != self.moving.epoch {
            let message = format!("another one leads move {number} now");
            return Err(Error::precondition(MapReason::MoveTaken, message));
        }
        Ok(if row.is_paused { Look::Rest } else { Look::GoOn })
    }

    /// What it means that the target is not what it should be: damage, unless another engine has written there since, which
    /// has taken the lead or cleans up. The catalog knows of them before they write.
    pub(super) async fn differs(&self, message: String) -> Error {
        match self.look_at_row().await {
            Ok(Look::GoOn | Look::Rest) => Error::corrupt("move-differs", message),
            Ok(Look::Closed(_)) => taken(),
            Err(error) => error,
        }
    }

    /// None if the fence stood for too long and was taken down.
    async fn fence_and_commit(&mut self) -> Result<Option<Move>> {
        let began = self.engine.env.clock.uptime();
        let (manager, moving) = (self.engine.manager.clone(), self.moving.clone());
        let fenced = self.engine.to_the_end(async move { manager.fence_move(&moving).await });
        self.moving = fenced.await?;
        self.say(Phase::Fenced);
        let deadline = began + self.pause_aim();
        match self.bring_the_rest(deadline).await {
            Ok(true) => {}
            // The fence must not stay while it is unclear how to go on.
            outcome => {
                self.reopen().await?;
                outcome?;
                self.vain_time = self.engine.env.clock.uptime().saturating_sub(began);
                return Ok(None);
            }
        }
        match self.commit().await {
            Ok(arrived) => {
                self.count_pause(self.engine.env.clock.uptime().saturating_sub(began));
                Ok(Some(arrived))
            }
            Err(error) => {
                // If it was decided all the same, this is refused, and the next look finds the partition arrived.
                let _ = self.reopen().await;
                Err(error)
            }
        }
    }

    async fn reopen(&mut self) -> Result<()> {
        let (manager, number) = (self.engine.manager.clone(), self.moving.number);
        let open = self.engine.to_the_end(async move { manager.reopen_move(number).await });
        let open = open.await?;
        // Anybody may take a fence down, also of a move that another engine leads by now. Its job epoch is not ours to use.
        if open.epoch != self.moving.epoch {
            return Err(taken());
        }
        self.moving = open;
        self.engine.moves.counters.reopened.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// The last pass, if it is made in time, and the partition's figures and clock. From here on it can only be decided,
    /// which takes as long as it takes.
    async fn bring_the_rest(&mut self, deadline: Duration) -> Result<bool> {
        self.pass(Some(deadline)).await?;
        if self.engine.env.clock.uptime() > deadline {
            return Ok(false);
        }
        self.bring_figures().await?;
        Ok(true)
    }

    async fn bring_figures(&mut self) -> Result<()> {
        let id = self.moving.partition;
        let found = Counts::read(&Newest::of(&*self.source.store), id).await?;
        let mut counts = found.unwrap_or_default();
        let held = self.progress.held;
        if counts.rows().is_some_and(|rows| rows != held) {
            let (theirs, ours) = (counts.items, held.items);
            let message = format!("the source has {theirs} items, {ours} were brought over");
            // The next leader compares both sides in full, and has the source count.
            self.progress.is_verified = false;
            self.write(vec![]).await?;
            return Err(self.differs(message).await);
        }
        if !counts.exact {
            // The rows were counted on their way. What they stand for outside is counted later, if they may.
            let (target, outside) = (&*self.target.store, &self.target.settings.outside);
            let Move { container, routes, .. } = &self.moving;
            counts.outside = 0;
            counts.exact = !outside.is_in(&Newest::of(target), *container, routes).await?;
            counts.estimated = !counts.exact;
        }
        counts.items = held.items;
        counts.bytes = held.bytes.saturating_add(counts.outside);
        // Without a number of its own, nothing was written in it by this version.
        counts.last_lsn = counts.settled().unwrap_or_else(|| self.source.lsns.latest());
        self.write(vec![Write::Put(Counts::key(id), counts.encode())]).await?;
        self.target.lsns.push_past(counts.last_lsn);
        Ok(())
    }

    /// Hands the partition over.
    async fn commit(&mut self) -> Result<Move> {
        self.target.note_expiring([self.moving.container].into_iter());
        let (manager, moving) = (self.engine.manager.clone(), self.moving.clone());
        let arrived = self.engine.to_the_end(async move { manager.commit_move(&moving).await });
        let arrived = arrived.await?;
        self.engine.moves.counters.arrived.fetch_add(1, Ordering::Relaxed);
        Ok(arrived)
    }

    fn count_pause(&self, pause: Duration) {
        let micros = u64::try_from(pause.as_micros()).unwrap_or(u64::MAX);
        let counters = &self.engine.moves.counters;
        counters.pause_longest_us.fetch_max(micros, Ordering::Relaxed);
        counters.pause_total_us.fetch_add(micros, Ordering::Relaxed);
        status::lock(self.status).pause_predicted = Some(pause);
    }

    /// Writes to the target, with how far the move has come, unless another one leads it.
    pub(super) async fn write(&mut self, mut writes: Vec<Write>) -> Result<()> {
        let Move { number, epoch, .. } = self.moving;
        writes.push(Write::Put(LocalMap::progress_key(number), self.progress.encode()));
        let began = self.engine.env.clock.uptime();
        let guard = LocalMap::arrival_guard(number, epoch);
        let txn = self.target.store.begin(vec![guard]).await.map_err(refused)?;
        txn.commit(writes).await.map_err(refused)?;
        let took = self.engine.env.clock.uptime().saturating_sub(began);
        // The worst lately, so that one quick commit does not make a promise.
        self.commit_time = took.max(self.commit_time * 3 / 4);
        let phase = status::lock(self.status).phase;
        self.engine.env.points.reach("move", phase.written()).await;
        Ok(())
    }

    /// How long a pause the move takes now: more and more the longer it waits, up to its limit.
    fn pause_aim(&self) -> Duration {
        let now = self.engine.env.clock.uptime();
        let waited = self.engine.moves.aimed_for(self.moving.number, now);
        pause_aim(Duration::from_millis(self.moving.pause_limit_ms), waited)
    }

    pub(super) fn say(&self, phase: Phase) {
        let mut status = status::lock(self.status);
        status.moving = self.moving.clone();
        status.phase = phase;
        status.items = self.progress.items;
        status.bytes = self.progress.bytes;
    }

    async fn expect_bytes(&self) {
        let key: Bytes = Counts::key(self.moving.partition);
        if let Ok(Some(row)) = self.source.store.get(&key).await
            && let Ok(counts) = Counts::decode(row)
        {
            // Block files stay where they are.
            let rows = counts.bytes.saturating_sub(counts.outside);
            status::lock(self.status).bytes_expected = rows;
        }
    }
}

fn pause_aim(limit: Duration, waited: Duration) -> Duration {
    let doublings = waited.as_secs() / AIM_PATIENCE.as_secs();
    let factor = u32::try_from(doublings).ok().and_then(|by| 1u32.checked_shl(by));
    factor.map_or(limit, |factor| PAUSE_AIM.saturating_mul(factor).min(limit))
}

/// A guard that is gone means that another one leads the move, or that it is over.
pub(super) fn refused(error: Error) -> Error {
    match error.is_moved() {
        true => taken(),
        false => error,
    }
}

fn taken() -> Error {
    Error::precondition(MapReason::MoveTaken, "another one leads this move now, or it is over")
}

fn is_lost(error: &Error) -> bool {
    use MapReason::{ContainerNotFound, LockNotHeld, PartitionChanged, PartitionNotFound};
    matches!(
        error.reason(),
        Some(PartitionNotFound | ContainerNotFound | PartitionChanged | LockNotHeld)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_move_that_waits_in_vain_takes_a_longer_pause_but_never_one_beyond_its_limit() {
        let aim = |limit_ms, waited_s| {
            let (limit, waited) = (Duration::from_millis(limit_ms), Duration::from_secs(waited_s));
            pause_aim(limit, waited).as_millis()
        };
        assert_eq!(
            [0, 4, 5, 10, 15, 20, 100_000].map(|waited| aim(5_000, waited)),
            [500, 500, 1_000, 2_000, 4_000, 5_000, 5_000]
        );
        assert_eq!([0, 20, u64::MAX / 2].map(|waited| aim(200, waited)), [200; 3]);
        assert_eq!(aim(u64::MAX, u64::MAX / 2), u128::from(u64::MAX));
    }
}
