//! Two partitions of one container that leave a shard together, written to by two processes.
//!
//! Writes of partitions that are on their way are written down in one space, by their numbers. A number is given out before
//! its commit, so rows of different partitions become visible out of order. Each move goes on from a position in that space.
//!
//! - A writer takes the lanes of its partitions, then a number, then commits; between any two of these everybody else may go
//!   on. The processes of the two writers have clocks of their own, one ahead of the other.
//! - A pass of a move is a snapshot of the source, then a commit on the target. Its leader may forget it in between.
//! - A fence refuses what is not committed, and may be taken down again.
//!
//! Left out: everything that concerns one move alone, which `model` has.

use super::explorer::{self, explore};

const PARTITIONS: usize = 2;
/// Numbers that can be given out. Index 0 stays empty.
const NUMBERS: usize = 12;
/// Values that a partition can have are the numbers of writes, beginning with this one.
const BEFORE: u8 = 0;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Variant {
    Right,
    /// A pass goes on from the last row that it saw, of whichever partition.
    PositionOfAnyRow,
    /// A process numbers its writes by its own clock, whatever is committed already.
    OwnClocksOnly,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
enum Stage {
    #[default]
    Copying,
    Fenced,
    Arrived,
}

/// What a move has read and not written yet.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
struct Pass {
    /// The value to be written, if the pass saw that it has changed.
    value: Option<u8>,
    position: u8,
    /// Whether it was read behind the fence, so that it is the last one.
    is_last: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
struct Part {
    stage: Stage,
    /// The writer that has the lane, counted from one.
    lane: u8,
    /// On the source, and the number of the last commit there.
    value: u8,
    last: u8,
    /// On the target, none before the copy.
    copied: Option<u8>,
    position: u8,
    pass: Option<Pass>,
    is_ready: bool,
    reopened: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
struct Writer {
    done: u8,
    /// The number of the write under way; 0 if it has none.
    number: u8,
    clock: u8,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
struct State {
    parts: [Part; PARTITIONS],
    writers: [Writer; 2],
    /// By number: the partitions whose row is there, as bits.
    rows: [u8; NUMBERS],
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    TakesNumber { writer: usize },
    Commits { writer: usize },
    IsRefused { writer: usize },
    Reads { partition: usize },
    Writes { partition: usize },
    Forgets { partition: usize },
    Fences { partition: usize },
    Reopens { partition: usize },
    Arrives { partition: usize },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct LostWrite;

struct Together {
    variant: Variant,
    /// By writer: the partitions of each of its writes, as bits.
    scripts: [&'static [u8]; 2],
}

fn bits(mask: u8) -> impl Iterator<Item = usize> {
    (0..PARTITIONS).filter(move |at| mask & (1 << at) != 0)
}

impl Together {
    fn writer_step(&self, state: &State, writer: usize) -> Option<(Step, State)> {
        let me = state.writers[writer];
        let mask = *self.scripts[writer].get(usize::from(me.done))?;
        let mut next = *state;
        let is_open = |state: &State| bits(mask).all(|at| state.parts[at].stage == Stage::Copying);
        if me.number == 0 {
            if !is_open(state) || bits(mask).any(|at| state.parts[at].lane != 0) {
                return None;
            }
            let seen = bits(mask).map(|at| state.parts[at].last).max().unwrap_or(0);
            let number = match self.variant {
                Variant::OwnClocksOnly => me.clock + 1,
                _ => me.clock.max(seen) + 1,
            };
            bits(mask).for_each(|at| next.parts[at].lane = writer as u8 + 1);
            next.writers[writer] = Writer { number, clock: number, ..me };
            return Some((Step::TakesNumber { writer }, next));
        }
        bits(mask).for_each(|at| next.parts[at].lane = 0);
        if !is_open(state) {
            next.writers[writer].number = 0;
            return Some((Step::IsRefused { writer }, next));
        }
        for at in bits(mask) {
            next.parts[at].value = me.number;
            next.parts[at].last = me.number;
        }
        next.rows[usize::from(me.number)] |= mask;
        next.writers[writer] = Writer { done: me.done + 1, number: 0, ..me };
        Some((Step::Commits { writer }, next))
    }

    /// Reads the source: the copy first, then what was written down behind the position.
    fn read(&self, state: &State, partition: usize) -> Pass {
        let part = state.parts[partition];
        let is_last = part.stage == Stage::Fenced;
        if part.copied.is_none() {
            return Pass { value: Some(part.value), position: part.position, is_last: false };
        }
        let horizon = match self.variant {
            Variant::PositionOfAnyRow => NUMBERS,
            _ => usize::from(part.last) + 1,
        };
        let mut new = (usize::from(part.position) + 1..horizon).filter(|at| state.rows[*at] != 0);
        let has_own = new.clone().any(|at| state.rows[at] & (1 << partition) != 0);
        let position = new.next_back().map_or(part.position, |at| at as u8);
        Pass { value: has_own.then_some(part.value), position, is_last }
    }

    fn move_steps(&self, state: &State, partition: usize, steps: &mut Vec<(Step, State)>) {
        let part = state.parts[partition];
        let mut with = |step: Step, part: Part| {
            let mut next = *state;
            next.parts[partition] = part;
            steps.push((step, next));
        };
        match (part.stage, part.pass) {
            (Stage::Arrived, _) => {}
            (_, Some(pass)) => {
                let copied = pass.value.or(part.copied);
                let written = Part { copied, position: pass.position, pass: None, ..part };
                let is_ready = pass.is_last && part.stage == Stage::Fenced;
                with(Step::Writes { partition }, Part { is_ready, ..written });
                with(Step::Forgets { partition }, Part { pass: None, ..part });
            }
            (stage, None) => {
                let pass = Some(self.read(state, partition));
                if pass != Some(Pass { value: None, position: part.position, is_last: false }) {
                    with(Step::Reads { partition }, Part { pass, ..part });
                }
                match stage {
                    Stage::Copying if part.copied.is_some() => {
                        let fenced = Part { stage: Stage::Fenced, ..part };
                        with(Step::Fences { partition }, fenced);
                    }
                    Stage::Fenced => {
                        if part.is_ready {
                            let arrived = Part { stage: Stage::Arrived, ..part };
                            with(Step::Arrives { partition }, arrived);
                        }
                        if !part.reopened {
                            let open = Part { stage: Stage::Copying, is_ready: false, ..part };
                            with(Step::Reopens { partition }, Part { reopened: true, ..open });
                        }
                    }
                    Stage::Copying | Stage::Arrived => {}
                }
            }
        }
    }
}

impl explorer::Model for Together {
    type State = State;
    type Step = Step;
    type Fault = LostWrite;

    fn start(&self) -> State {
        let mut writers = [Writer::default(); 2];
        // The clock of the second process is ahead.
        writers[1].clock = 3;
        let part = Part { value: BEFORE, ..Part::default() };
        State { parts: [part; PARTITIONS], writers, rows: [0; NUMBERS] }
    }

    fn steps(&self, state: &State, steps: &mut Vec<(Step, State)>) {
        for writer in 0..state.writers.len() {
            steps.extend(self.writer_step(state, writer));
        }
        for partition in 0..PARTITIONS {
            self.move_steps(state, partition, steps);
        }
    }

    fn fault(&self, state: &State) -> Option<LostWrite> {
        let is_lost = |part: &Part| part.stage == Stage::Arrived && part.copied != Some(part.value);
        state.parts.iter().any(is_lost).then_some(LostWrite)
    }

    fn is_end(&self, state: &State) -> bool {
        state.parts.iter().all(|part| part.stage == Stage::Arrived)
    }
}

/// Both processes write both partitions, also together.
const SCRIPTS: [&[u8]; 2] = [&[0b01, 0b10], &[0b10, 0b11]];

fn explored(variant: Variant, scripts: [&'static [u8]; 2]) -> explorer::Explored<Together> {
    let found = explore(&Together { variant, scripts });
    println!("{variant:?}: {:?}, {} states", found.fault, found.states.len());
    if found.fault.is_some() {
        for (number, step) in found.trace_to_fault().iter().enumerate() {
            println!("  {:2} {step:?}", number + 1);
        }
    }
    found
}

#[test]
fn two_partitions_that_leave_together_lose_nothing() {
    let found = explored(Variant::Right, SCRIPTS);
    assert_eq!(found.fault, None);
    assert!(found.states.len() > 50_000, "does the model still do anything?");
    let model = Together { variant: Variant::Right, scripts: SCRIPTS };
    assert_eq!(found.stuck(&model), None);
    let is_out_of_order = |state: &State| {
        let [one, other] = state.parts;
        let waits = state.writers.iter().find(|it| it.number != 0).map(|it| it.number);
        waits.is_some_and(|waits| waits < one.last.max(other.last))
    };
    assert!(found.states.iter().any(is_out_of_order), "a number waits behind a greater one");
}

#[test]
fn a_position_behind_the_row_of_another_partition_loses_a_write() {
    assert_eq!(explored(Variant::PositionOfAnyRow, SCRIPTS).fault, Some(LostWrite));
}

#[test]
fn numbers_by_the_clock_of_one_process_alone_lose_a_write() {
    assert_eq!(explored(Variant::OwnClocksOnly, SCRIPTS).fault, Some(LostWrite));
}
