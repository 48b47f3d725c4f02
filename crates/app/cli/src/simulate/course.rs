//! Runs virtual time: plans are made, a move takes the time that its bytes take at the configured rate, all other actions
//! are instant.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use lazuli_balance::{Action, Fleet, Load, Merge, Move, Note, Schedule, Settings, plan};
use lazuli_env::SplitMix64;
use lazuli_shardmap::PartitionId;

const SECOND_MS: u64 = 1_000;
const MINUTE_MS: u64 = 60 * SECOND_MS;
/// The time of a move besides copying: planning, fencing, switching over.
const MOVE_MS_MIN: u64 = 100;
/// The least time between two plans.
const PLAN_MS_MIN: u64 = MINUTE_MS;

/// What was done since the start.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Done {
    pub(super) plans: u64,
    pub(super) moves: u64,
    pub(super) bytes: u64,
    pub(super) splits: u64,
    pub(super) merges: u64,
}

pub(super) struct Course {
    now_ms: u64,
    fleet: Fleet,
    settings: Settings,
    random: SplitMix64,
    schedule: Schedule,
    /// Running moves: when they end, and the index of their partition in the fleet.
    ends: BinaryHeap<Reverse<(u64, usize)>>,
    underway: HashMap<usize, Move>,
    /// Merges whose move is running, by the moving partition.
    merges: HashMap<PartitionId, Merge>,
    /// Merges whose move is over; done all at once with the next plan.
    moved: Vec<Action>,
    /// The index in the fleet of each partition of the last plan.
    places: HashMap<PartitionId, usize>,
    next_plan_ms: u64,
    changed_ms: u64,
    settled: bool,
    done: Done,
    notes: Vec<Note>,
    notes_count: usize,
}

impl Course {
    pub(super) fn new(fleet: Fleet, settings: Settings, seed: u64) -> Self {
        Self {
            now_ms: 0,
            fleet,
            settings,
            random: SplitMix64::new(seed ^ 0x5317),
            schedule: Schedule::default(),
            ends: BinaryHeap::new(),
            underway: HashMap::new(),
            merges: HashMap::new(),
            moved: Vec::new(),
            places: HashMap::new(),
            next_plan_ms: 0,
            changed_ms: 0,
            settled: false,
            done: Done::default(),
            notes: Vec::new(),
            notes_count: 0,
        }
    }

    pub(super) fn now_ms(&self) -> u64 {
        self.now_ms
    }

    /// No move is running, no partition is left alone after a change, and the last plan was empty.
    pub(super) fn is_settled(&self) -> bool {
        self.settled
    }

    pub(super) fn done(&self) -> Done {
        self.done
    }

    pub(super) fn underway(&self) -> usize {
        self.schedule.underway()
    }

    pub(super) fn fleet(&self) -> &Fleet {
        &self.fleet
    }

    /// The partitions for which the last plan has no action, and how many there are.
    pub(super) fn notes(&self) -> (&[Note], usize) {
        (&self.notes, self.notes_count)
    }

    /// Runs virtual time up to this moment.
    pub(super) fn go_on(&mut self, until_ms: u64) {
        loop {
            let idle = self.schedule.waiting() == 0 && self.schedule.underway() == 0;
            if idle && !self.settled && self.now_ms >= self.next_plan_ms {
                self.replan();
            }
            self.begin();
            let end = self.ends.peek().map(|Reverse((at, _))| *at);
            let plan = (idle && !self.settled).then_some(self.next_plan_ms);
            let next = end.into_iter().chain(plan).chain(self.next_look()).min();
            match next.filter(|at| *at <= until_ms) {
                Some(at) => self.now_ms = self.now_ms.max(at),
                None => break,
            }
            while self.ends.peek().is_some_and(|Reverse((at, _))| *at <= self.now_ms) {
                self.finish();
            }
        }
        self.now_ms = until_ms;
        self.begin();
    }

    /// When to check again whether the window is open, if an action waits for that.
    fn next_look(&self) -> Option<u64> {
        let closed = self.settings.window.is_some_and(|window| !window.is_open(self.now_ms));
        let waits = closed && self.schedule.waiting() > 0;
        waits.then_some((self.now_ms / MINUTE_MS + 1) * MINUTE_MS)
    }

    /// Shifts the load to other partitions: each takes over the requests of another one.
    pub(super) fn shift(&mut self) {
        let partitions = &mut self.fleet.partitions;
        let count = partitions.len();
        if count > 1 {
            let by = 1 + self.random.below(count - 1);
            let old: Vec<(f64, Option<f64>)> =
                partitions.iter().map(|it| (it.load.requests, it.hot_share)).collect();
            for (at, partition) in partitions.iter_mut().enumerate() {
                (partition.load.requests, partition.hot_share) = old[(at + by) % count];
            }
        }
        self.settled = false;
        self.schedule.replan(Vec::new());
        self.next_plan_ms = self.now_ms;
    }

    fn replan(&mut self) {
        let merged = std::mem::take(&mut self.moved);
        self.fleet.apply(&merged, self.now_ms);
        let plan = plan(&self.fleet, &self.settings, self.now_ms);
        self.done.plans += 1;
        self.notes_count = plan.notes.len() + plan.notes_unlisted;
        self.notes = plan.notes;
        self.next_plan_ms = self.now_ms + PLAN_MS_MIN;
        if plan.actions.is_empty() {
            self.next_plan_ms = self.now_ms + self.settings.rest_ms.max(PLAN_MS_MIN);
            self.settled = self.now_ms >= self.changed_ms + self.settings.rest_ms;
            return;
        }
        let (moves, at_once): (Vec<_>, Vec<_>) =
            plan.actions.into_iter().partition(|action| action.transfer().is_some());
        for action in &at_once {
            match action {
                Action::Split(_) => self.done.splits += 1,
                Action::Merge(_) => self.done.merges += 1,
                Action::Move(_) => {}
            }
        }
        self.fleet.apply(&at_once, self.now_ms);
        self.changed_ms = self.now_ms;
        let wanted = moves.iter().filter_map(|action| Some((action.transfer()?.partition, 0)));
        self.places = wanted.collect();
        for (at, partition) in self.fleet.partitions.iter().enumerate() {
            if let Some(place) = self.places.get_mut(&partition.id) {
                *place = at;
            }
        }
        self.schedule.replan(moves);
    }

    fn begin(&mut self) {
        while let Some(action) = self.schedule.begin(&self.settings, self.now_ms) {
            let Some(one) = action.transfer().copied() else { continue };
            let at = self.places[&one.partition];
            let copy_ms = one.load.bytes.saturating_mul(SECOND_MS) / self.settings.rate();
            self.ends.push(Reverse((self.now_ms + MOVE_MS_MIN + copy_ms, at)));
            self.fleet.partitions[at].moving_to = Some(one.to);
            self.underway.insert(at, one);
            if let Action::Merge(merge) = action {
                self.merges.insert(one.partition, merge);
            }
        }
    }

    /// Finishes the move that ends first.
    fn finish(&mut self) {
        let Some(Reverse((_, at))) = self.ends.pop() else { return };
        let Some(one) = self.underway.remove(&at) else { return };
        self.schedule.finished(one.partition);
        let partition = &mut self.fleet.partitions[at];
        partition.shard = one.to;
        partition.moving_to = None;
        partition.changed_at_ms = Some(self.now_ms);
        self.changed_ms = self.now_ms;
        self.done.moves += 1;
        self.done.bytes += one.load.bytes;
        if let Some(merge) = self.merges.remove(&one.partition) {
            self.done.merges += 1;
            self.moved.push(Action::Merge(Merge { first: None, ..merge }));
        }
    }

    /// The load of each shard now. A moving partition counts on its source.
    pub(super) fn loads(&self) -> Vec<Load> {
        let shards = &self.fleet.shards;
        let places: HashMap<_, _> =
            shards.iter().enumerate().map(|(at, shard)| (shard.id, at)).collect();
        let mut loads = vec![Load::default(); shards.len()];
        for partition in &self.fleet.partitions {
            if let Some(at) = places.get(&partition.shard) {
                loads[*at] += partition.load;
            }
        }
        loads
    }
}
