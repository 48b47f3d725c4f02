//! The state of the balancer in memory: running and finished actions, and partitions that are left alone for a while.

use std::collections::{BTreeMap, VecDeque};

use lazuli_balance::{Action, Fleet, Goal, Plan};
use lazuli_shardmap::PartitionId;

/// How many actions that are over are remembered.
const ENDED_MAX: usize = 100;
/// How many partitions are remembered as changed, or for what was expected of them. The oldest are forgotten first.
const PARTITIONS_MAX: usize = 100_000;

/// Who wanted plans to be carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// An operator, by command.
    ByHand,
    /// The balancer itself.
    ByItself,
}

/// What kind of action it is: what is counted together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Split,
    Merge,
    Move,
}

impl Kind {
    pub(crate) const ALL: [Self; 3] = [Self::Split, Self::Merge, Self::Move];

    pub(crate) fn of(action: &Action) -> Self {
        match action {
            Action::Split(_) => Self::Split,
            Action::Merge(_) => Self::Merge,
            Action::Move(_) => Self::Move,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Split => "split",
            Self::Merge => "merge",
            Self::Move => "move",
        }
    }
}

/// How often something was done, by kind.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts([u64; Kind::ALL.len()]);

impl Counts {
    pub(crate) fn of(&self, kind: Kind) -> u64 {
        self.0[kind as usize]
    }

    fn add(&mut self, kind: Kind) {
        self.0[kind as usize] += 1;
    }
}

/// An action that is under way.
#[derive(Clone, Debug)]
pub(crate) struct Doing {
    pub(crate) action: Action,
    /// The job of its move, once that has begun.
    pub(crate) job: Option<u64>,
}

/// An action that is over.
#[derive(Clone, Debug)]
pub(crate) struct Ended {
    pub(crate) action: Action,
    pub(crate) ended_ms: u64,
    /// Why it could not be done; none if it was.
    pub(crate) trouble: Option<String>,
}

#[derive(Default)]
pub(crate) struct BalancerState {
    /// Who asked for what is being carried out now.
    pub(crate) running: Option<Asked>,
    /// An operator has asked to stop it.
    pub(crate) stop: bool,
    pub(crate) waiting: usize,
    pub(crate) plans: u64,
    pub(crate) begun: Counts,
    pub(crate) done: Counts,
    pub(crate) failed: Counts,
    /// By number, in the order in which they began.
    pub(crate) doing: BTreeMap<u64, Doing>,
    /// The newest last.
    pub(crate) ended: VecDeque<Ended>,
    /// The fullest shard as a multiple of the mean when the last plan was made, by goal.
    pub(crate) peaks: Option<[f64; Goal::ALL.len()]>,
    /// Why the last run ended before its time.
    pub(crate) trouble: Option<String>,
    /// When partitions were moved or merged.
    pub(super) changed: BTreeMap<PartitionId, u64>,
    /// Requests per second that are expected of pieces, and since when.
    pub(super) expected: BTreeMap<PartitionId, (f64, u64)>,
    next: u64,
}

impl BalancerState {
    pub(super) fn planned(&mut self, fleet: &Fleet, plan: &Plan) {
        self.plans += 1;
        self.waiting = plan.actions.len();
        self.peaks = Some(Goal::ALL.map(|goal| fleet.peak(&plan.before, goal)));
    }

    pub(super) fn begin(&mut self, action: Action) -> u64 {
        self.next += 1;
        self.begun.add(Kind::of(&action));
        self.doing.insert(self.next, Doing { action, job: None });
        self.next
    }

    pub(super) fn end(&mut self, number: u64, ended_ms: u64, trouble: Option<String>) {
        let Some(Doing { action, .. }) = self.doing.remove(&number) else { return };
        let counts = if trouble.is_none() { &mut self.done } else { &mut self.failed };
        counts.add(Kind::of(&action));
        if self.ended.len() == ENDED_MAX {
            self.ended.pop_front();
        }
        self.ended.push_back(Ended { action, ended_ms, trouble });
    }

    /// Partitions rest from now on.
    pub(super) fn rest(&mut self, partition: PartitionId, now_ms: u64) {
        self.changed.insert(partition, now_ms);
        if self.changed.len() > PARTITIONS_MAX {
            self.changed.pop_first();
        }
    }

    pub(super) fn expect(&mut self, partition: PartitionId, requests: f64, now_ms: u64) {
        self.expected.insert(partition, (requests, now_ms));
        if self.expected.len() > PARTITIONS_MAX {
            self.expected.pop_first();
        }
    }

    /// Forgets who has rested, and what was expected of those that were watched since.
    pub(super) fn forget(&mut self, rest_ms: u64, watch_ms: u64, now_ms: u64) {
        self.changed.retain(|_, at| now_ms < at.saturating_add(rest_ms));
        self.expected.retain(|_, (_, at)| now_ms < at.saturating_add(watch_ms));
    }
}

#[cfg(test)]
mod tests {
    use lazuli_balance::{Load, Move, Why};
    use lazuli_shardmap::ShardId;

    use super::*;

    fn action(partition: u64) -> Action {
        let (from, to) = (ShardId(1), ShardId(2));
        let (load, why) = (Load::default(), Why::Drain);
        let bytes_to_copy = load.bytes;
        Action::Move(Move { partition: PartitionId(partition), from, to, load, bytes_to_copy, why })
    }

    #[test]
    fn actions_are_counted_and_the_last_ones_remembered() {
        let mut state = BalancerState::default();
        for n in 0..ENDED_MAX as u64 + 5 {
            let number = state.begin(action(n));
            state.end(number, n, (n % 2 == 0).then(|| "why".to_owned()));
        }
        state.begin(action(999));
        assert_eq!((state.ended.len(), state.doing.len()), (ENDED_MAX, 1));
        assert_eq!(state.begun.of(Kind::Move), 106);
        assert_eq!((state.done.of(Kind::Move), state.failed.of(Kind::Move)), (52, 53));
        assert_eq!(state.ended[0].ended_ms, 5);
    }

    #[test]
    fn who_has_rested_is_forgotten() {
        let mut state = BalancerState::default();
        state.rest(PartitionId(1), 1_000);
        state.rest(PartitionId(2), 2_000);
        state.expect(PartitionId(3), 7.0, 1_500);
        state.forget(500, 1_000, 1_600);
        assert_eq!(state.changed.keys().collect::<Vec<_>>(), [&PartitionId(2)]);
        assert_eq!(state.expected.len(), 1);
        state.forget(500, 1_000, 2_500);
        assert!(state.changed.is_empty() && state.expected.is_empty());
    }
}
