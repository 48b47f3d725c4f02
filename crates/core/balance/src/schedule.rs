//! The actions of a plan that may begin now: within the window, and within the limits on moves in total and per shard.

use std::collections::{BTreeMap, VecDeque};

use lazuli_shardmap::{PartitionId, ShardId};

use crate::{Action, Settings};

/// How many waiting actions are examined when the shards of the first ones are busy. More would change the order too much.
const LOOK_AHEAD: usize = 64;

/// The execution of a plan: waiting actions, and running moves.
#[derive(Clone, Debug, Default)]
pub struct Schedule {
    waiting: VecDeque<Action>,
    underway: BTreeMap<PartitionId, [ShardId; 2]>,
    /// Moves from and to each shard; shards without moves are absent.
    busy: BTreeMap<ShardId, usize>,
}

impl Schedule {
    /// Replaces the waiting actions by a new plan. Running moves continue and count.
    pub fn replan(&mut self, actions: Vec<Action>) {
        self.waiting = actions.into();
    }

    /// The next action that may begin now. One with a move is running from here until it is [`Self::finished`].
    pub fn begin(&mut self, settings: &Settings, now_ms: u64) -> Option<Action> {
        if settings.window.is_some_and(|window| !window.is_open(now_ms)) {
            return None;
        }
        let may = |action: &Action| match action.transfer() {
            None => true,
            Some(one) => {
                let free =
                    |shard| self.busy.get(shard).copied().unwrap_or(0) < settings.moves_per_shard;
                self.underway.len() < settings.moves_at_once && free(&one.from) && free(&one.to)
            }
        };
        let at = self.waiting.iter().take(LOOK_AHEAD).position(may)?;
        let action = self.waiting.remove(at)?;
        if let Some(one) = action.transfer() {
            self.underway.insert(one.partition, [one.from, one.to]);
            for shard in [one.from, one.to] {
                *self.busy.entry(shard).or_default() += 1;
            }
        }
        Some(action)
    }

    /// The move of this partition has ended, successfully or not.
    pub fn finished(&mut self, partition: PartitionId) {
        for shard in self.underway.remove(&partition).into_iter().flatten() {
            let count = self.busy.get(&shard).copied().unwrap_or(0);
            if count <= 1 {
                self.busy.remove(&shard);
            } else {
                self.busy.insert(shard, count - 1);
            }
        }
    }

    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    pub fn underway(&self) -> usize {
        self.underway.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cut, Load, Move, Split, Why, Window};

    fn one(partition: u64, from: u32, to: u32) -> Action {
        Action::Move(Move {
            partition: PartitionId(partition),
            from: ShardId(from),
            to: ShardId(to),
            load: Load::default(),
            bytes_to_copy: 0,
            why: Why::Drain,
        })
    }

    fn begun(schedule: &mut Schedule, settings: &Settings) -> Vec<u64> {
        let actions = std::iter::from_fn(|| schedule.begin(settings, 0));
        actions.map(|action| action.transfer().map_or(0, |one| one.partition.0)).collect()
    }

    #[test]
    fn so_many_moves_begin_as_may_be_under_way_at_once_and_on_one_shard() {
        let settings = Settings { moves_at_once: 3, moves_per_shard: 1, ..Settings::default() };
        let mut schedule = Schedule::default();
        schedule.replan(vec![
            one(1, 1, 2),
            one(2, 1, 3),
            one(3, 4, 2),
            one(4, 4, 3),
            one(5, 5, 6),
            one(6, 7, 8),
        ]);
        assert_eq!(begun(&mut schedule, &settings), [1, 4, 5]);
        schedule.finished(PartitionId(1));
        assert_eq!(begun(&mut schedule, &settings), [6]);
        schedule.finished(PartitionId(4));
        schedule.finished(PartitionId(4));
        assert_eq!(begun(&mut schedule, &settings), [2]);
        assert_eq!((schedule.waiting(), schedule.underway()), (1, 3));
    }

    #[test]
    fn a_new_plan_takes_the_place_of_what_waits_and_not_of_what_is_under_way() {
        let settings = Settings { moves_at_once: 2, ..Settings::default() };
        let mut schedule = Schedule::default();
        schedule.replan(vec![one(1, 1, 2)]);
        assert_eq!(begun(&mut schedule, &settings), [1]);
        schedule.replan(vec![one(2, 3, 4), one(3, 5, 6)]);
        assert_eq!(begun(&mut schedule, &settings), [2]);
    }

    #[test]
    fn nothing_begins_outside_of_the_window_and_splits_take_no_place() {
        let window = Some(Window { from_minute: 60, to_minute: 120 });
        let settings = Settings { moves_at_once: 1, window, ..Settings::default() };
        let split = Split {
            partition: PartitionId(9),
            shard: ShardId(1),
            cut: Cut::Bytes,
            pieces: Vec::new(),
        };
        let mut schedule = Schedule::default();
        schedule.replan(vec![one(1, 1, 2), Action::Split(split), one(2, 3, 4)]);
        assert_eq!(begun(&mut schedule, &settings), [0; 0]);
        let settings = Settings { window: None, ..settings };
        assert_eq!(begun(&mut schedule, &settings), [1, 0]);
    }
}
