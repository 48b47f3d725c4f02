//! Moving a partition to another shard while it is in use: what happens between the operations of the catalog
//! (`docs/decisions/0070-moving-a-partition.md`).
//!
//! A move is led by one engine at a time. `mover` takes it from step to step; `handover`, or else `copy`, and `pass`
//! bring the data over and read it back, `verify` compares, `close` cleans up behind it. Every step can be done again,
//! by the same engine or by the next one.

mod close;
mod copy;
mod handover;
mod mover;
mod pass;
mod status;
mod verify;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use lazuli_env::BoxFuture;
use lazuli_shardmap::catalog::Work;
use lazuli_shardmap::manager::{Known, NewMove};
use lazuli_shardmap::{MapReason, Move, MoveStage, PartitionId, ShardId};
use lazuli_store::{Error, Result};
use tokio::sync::Notify;

use crate::engine::Engine;
use crate::panics::caught;
use mover::Mover;

pub(crate) use status::Progress;
pub use status::{Finished, MoveStats, MoveStatus, Outcome, Phase};

/// How a move stands, shared by who leads it and who asks.
type Status = Arc<Mutex<MoveStatus>>;

/// How long an engine leaves a move alone that another one has taken. Then it looks again, so that a move without a leader is found.
const LOST_FOR: Duration = Duration::from_secs(5);

/// The longest pause unless the caller says otherwise. Moves aim at a shorter one (`mover::PAUSE_AIM`).
const PAUSE_LIMIT: Duration = Duration::from_secs(5);

/// How a partition is to be moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MoveOptions {
    /// The longest time for which writers may have to wait. A move aims at less, and takes more only after it has waited
    /// in vain for a shorter pause.
    pub pause_limit: Duration,
    /// The most bytes that are copied in a second.
    pub bytes_per_second: Option<u64>,
}

impl Default for MoveOptions {
    fn default() -> Self {
        Self { pause_limit: PAUSE_LIMIT, bytes_per_second: None }
    }
}

/// What this engine knows of moves.
#[derive(Default)]
pub(crate) struct Moves {
    known: Mutex<KnownMoves>,
    /// Tells the background work that there are moves to go on with.
    pub(crate) wanted: Arc<Notify>,
    counters: Counters,
}

#[derive(Default)]
struct KnownMoves {
    /// Moves that are being led just now, with how they stand.
    led: BTreeMap<u64, Status>,
    /// The job epochs of moves that this engine has begun and not led yet.
    epochs: BTreeMap<u64, u64>,
    /// Moves that another engine has taken, and when that was seen.
    lost: BTreeMap<u64, Duration>,
    /// Since when each open move has waited for its turn: since it was first seen, or last given up. The one that has waited
    /// for longest is led next, so that moves that cannot go on do not hold up the others.
    queued: BTreeMap<u64, Duration>,
    /// Since when moves have waited for a pause as short as they aim at.
    aiming: BTreeMap<u64, Duration>,
    /// Whether some move waits because as many are led as may be.
    is_crowded: bool,
}

impl KnownMoves {
    /// Puts the moves in the order of their turns, and forgets those that are over.
    fn line_up(&mut self, moves: &mut [Move], now: Duration) {
        let open: BTreeSet<u64> = moves.iter().map(|moving| moving.number).collect();
        for times in [&mut self.lost, &mut self.queued, &mut self.aiming] {
            times.retain(|number, _| open.contains(number));
        }
        moves.sort_by_key(|moving| {
            (*self.queued.entry(moving.number).or_insert(now), moving.number)
        });
    }

    /// Whether this engine is to lead a move: not if it does already, nor if the move rests or is another engine's.
    fn may_lead(&self, moving: &Move, now: Duration) -> bool {
        let rests = moving.is_paused && moving.is_open();
        let lost = self.lost.get(&moving.number);
        let lost = moving.is_open() && lost.is_some_and(|at| now < *at + LOST_FOR);
        !rests && !lost && !self.led.contains_key(&moving.number)
    }
}

#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) begun: AtomicU64,
    pub(crate) arrived: AtomicU64,
    pub(crate) cancelled: AtomicU64,
    pub(crate) handed_over: AtomicU64,
    pub(crate) reopened: AtomicU64,
    pub(crate) fenced_writes: AtomicU64,
    pub(crate) retries: AtomicU64,
    pub(crate) bytes: AtomicU64,
    pub(crate) pause_longest_us: AtomicU64,
    pub(crate) pause_total_us: AtomicU64,
}

impl Moves {
    fn known(&self) -> MutexGuard<'_, KnownMoves> {
        // What this lock guards is whole after every statement, so a panic elsewhere does not spoil it.
        self.known.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub(crate) fn count_fenced(&self) {
        self.counters.fenced_writes.fetch_add(1, Ordering::Relaxed);
    }

    /// For how long a move has waited for a pause as short as it aims at.
    fn aimed_for(&self, number: u64, now: Duration) -> Duration {
        now.saturating_sub(*self.known().aiming.entry(number).or_insert(now))
    }

    /// Whether other moves wait for one of those that are led to end.
    fn is_crowded(&self) -> bool {
        self.known().is_crowded
    }

    fn stats(&self) -> MoveStats {
        let Counters { begun, arrived, cancelled, handed_over, reopened, .. } = &self.counters;
        let Counters { fenced_writes, retries, bytes, .. } = &self.counters;
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        MoveStats {
            under_way: self.known().led.len(),
            begun: read(begun),
            arrived: read(arrived),
            cancelled: read(cancelled),
            handed_over: read(handed_over),
            reopened: read(reopened),
            fenced_writes: read(fenced_writes),
            retries: read(retries),
            bytes: read(bytes),
            pause_longest: Duration::from_micros(read(&self.counters.pause_longest_us)),
            pause_total: Duration::from_micros(read(&self.counters.pause_total_us)),
        }
    }
}

impl Engine {
    /// Begins to move a partition. It goes on in the background, also after a restart; [`Engine::move_status`] tells how
    /// it stands.
    pub async fn move_partition(
        &self,
        partition: PartitionId,
        target: ShardId,
        options: MoveOptions,
    ) -> Result<Move> {
        let entry = self.manager.catalog().partition(partition).await?;
        let new = NewMove {
            partition: Known::from(&entry.partition),
            target,
            pause_limit_ms: u64::try_from(options.pause_limit.as_millis()).unwrap_or(u64::MAX),
            bytes_per_second: options.bytes_per_second.unwrap_or(0),
        };
        let manager = self.manager.clone();
        let begun = self.to_the_end(async move { manager.begin_move(new).await }).await?;
        self.moves.known().epochs.insert(begun.number, begun.epoch);
        self.moves.counters.begun.fetch_add(1, Ordering::Relaxed);
        self.moves.wanted.notify_one();
        Ok(begun)
    }

    /// Calls a move off. What was copied is deleted in the background.
    pub async fn cancel_move(&self, number: u64) -> Result<Move> {
        let manager = self.manager.clone();
        let cancelled = self.to_the_end(async move { manager.cancel_move(number).await }).await?;
        self.moves.wanted.notify_one();
        Ok(cancelled)
    }

    /// Lets a move rest where it is.
    pub async fn pause_move(&self, number: u64) -> Result<Move> {
        self.manager.pause_move(number, true).await
    }

    /// Lets a move go on, led by this engine from now on.
    pub async fn resume_move(&self, number: u64) -> Result<Move> {
        let moving = self.manager.pause_move(number, false).await?;
        self.moves.known().lost.remove(&number);
        self.moves.wanted.notify_one();
        Ok(moving)
    }

    /// What moves have done since this engine began.
    pub fn move_stats(&self) -> MoveStats {
        self.moves.stats()
    }

    /// How all moves stand that are not over, by number.
    pub async fn move_statuses(&self) -> Result<Vec<MoveStatus>> {
        let moves = self.manager.catalog().moves().await?;
        let known = self.moves.known();
        let status = |moving: Move| match known.led.get(&moving.number) {
            Some(led) => MoveStatus { moving, ..status::lock(led).clone() },
            None => MoveStatus::at_rest(moving),
        };
        Ok(moves.into_iter().map(status).collect())
    }

    /// How a move stands that is not over.
    pub async fn move_status(&self, number: u64) -> Result<MoveStatus> {
        let found = self.move_statuses().await?;
        let missing =
            || Error::not_found(MapReason::MoveNotFound, format!("there is no move {number}"));
        found.into_iter().find(|status| status.moving.number == number).ok_or_else(missing)
    }

    /// Goes on with every move that is this engine's to lead, each in a task of its own, a bounded number at once.
    pub(crate) async fn start_moves(self: Arc<Self>) -> Result<()> {
        for (moving, status) in self.moves_to_lead().await? {
            let engine = self.clone();
            let task = async move {
                let led = Box::pin(caught(engine.clone().lead(moving, status)));
                match led.await {
                    // There is room for the next one.
                    Ok(()) => engine.moves.wanted.notify_one(),
                    // What fails now is tried again after a while. That a partition changed meanwhile is no trouble.
                    Err(error) if error.is_moved() => {}
                    Err(error) => engine.troubles.note("moves", error),
                }
            };
            self.env.spawn.spawn_behind("move", Box::pin(task));
        }
        Ok(())
    }

    /// The same at once: returns when the moves have come as far as they can.
    pub async fn run_moves(self: &Arc<Self>) -> Result<()> {
        let moves = self.moves_to_lead().await?;
        let led = moves.into_iter().map(|(moving, status)| -> BoxFuture<'static, Result<()>> {
            Box::pin(self.clone().lead(moving, status))
        });
        crate::join::join_all(led.collect()).await.into_iter().collect()
    }

    async fn moves_to_lead(&self) -> Result<Vec<(Move, Status)>> {
        let mut found = Vec::new();
        if !self.may(Work::Moves) {
            return Ok(found);
        }
        let mut moves = self.manager.catalog().moves().await?;
        let now = self.env.clock.uptime();
        let mut known = self.moves.known();
        known.line_up(&mut moves, now);
        let mut may_lead = moves.into_iter().filter(|moving| known.may_lead(moving, now));
        let room = self.settings.moves_at_once.saturating_sub(known.led.len());
        let next: Vec<Move> = may_lead.by_ref().take(room).collect();
        let is_crowded = may_lead.next().is_some();
        known.is_crowded = is_crowded;
        for moving in next {
            let status = Arc::new(Mutex::new(MoveStatus::at_rest(moving.clone())));
            known.led.insert(moving.number, status.clone());
            found.push((moving, status));
        }
        Ok(found)
    }

    async fn lead(self: Arc<Self>, moving: Move, status: Status) -> Result<()> {
        let number = moving.number;
        let ended = Ended { engine: &self, number };
        let outcome = self.lead_on(moving, &status).await;
        drop(ended);
        match outcome {
            Err(error) if error.is(MapReason::MoveTaken) || error.is(MapReason::LeaseLost) => {
                let now = self.env.clock.uptime();
                self.moves.known().lost.insert(number, now);
                Ok(())
            }
            Err(error) => {
                self.moves.counters.retries.fetch_add(1, Ordering::Relaxed);
                Err(error.context(format!("move {number}")))
            }
            Ok(()) => Ok(()),
        }
    }

    async fn lead_on(&self, moving: Move, status: &Status) -> Result<()> {
        let mut moving = moving;
        if moving.is_open() {
            moving = self.take(moving).await?;
        }
        // Unless it was called off at this very moment.
        if moving.is_open() {
            match Mover::open(self, moving, status).await?.run().await? {
                Some(closed) => moving = closed,
                // It rests.
                None => return Ok(()),
            }
        }
        self.close_move(moving, status).await
    }

    /// The move under an epoch of this engine's, with no fence standing.
    async fn take(&self, moving: Move) -> Result<Move> {
        let number = moving.number;
        // An operation on it may be half done.
        self.manager.settle_routes(moving.container, &moving.routes).await?;
        // Writers have waited since another one led it, or since something failed. They go first, whether or not the
        // target answers.
        if moving.stage == MoveStage::Fenced {
            self.manager.reopen_move(number).await?;
        }
        // No other engine leads a move that this one has just begun. After any failure it takes the move under a new epoch:
        // a commit whose answer never came must not come late.
        if self.moves.known().epochs.remove(&number) == Some(moving.epoch) {
            return Ok(moving);
        }
        let lease = self.leases.guard_of(Work::Moves, self.env.clock.uptime())?;
        self.manager.take_move(number, lease).await
    }
}

/// Takes a move from the list of those that are led, also if the task that led it was dropped.
struct Ended<'a> {
    engine: &'a Engine,
    number: u64,
}

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        let now = self.engine.env.clock.uptime();
        let mut known = self.engine.moves.known();
        known.led.remove(&self.number);
        known.epochs.remove(&self.number);
        // It stands behind the others from now on.
        known.queued.insert(self.number, now);
    }
}
