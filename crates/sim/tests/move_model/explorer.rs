//! Visits every state that a model can come to, breadth first, so that the first trace to a fault is a shortest one.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};

/// Something that goes from state to state in steps, several of which may be possible at a time.
pub(crate) trait Model {
    type State: Copy + Eq + Ord + Hash;
    type Step: Copy;
    type Fault: Copy + Eq + std::fmt::Debug;

    fn start(&self) -> Self::State;

    /// Adds every step that is possible, with what it leads to. A step that changes nothing may be among them.
    fn steps(&self, state: &Self::State, steps: &mut Vec<(Self::Step, Self::State)>);

    /// What is wrong with this very state.
    fn fault(&self, state: &Self::State) -> Option<Self::Fault>;

    /// Whether everything has come to its end. Such a state must stay in reach of all others.
    fn is_end(&self, state: &Self::State) -> bool;
}

/// What an exploration has found. It stops at the first fault.
pub(crate) struct Explored<M: Model> {
    pub states: Vec<M::State>,
    pub edges: Vec<(u32, u32)>,
    pub fault: Option<M::Fault>,
    /// By state: the state that it was first reached from, and by which step.
    origins: Vec<Option<(u32, M::Step)>>,
}

impl<M: Model> Explored<M> {
    /// The steps from the start to a state.
    pub(crate) fn trace(&self, state: usize) -> Vec<M::Step> {
        let mut steps = Vec::new();
        let mut at = state;
        while let Some((from, step)) = self.origins[at] {
            steps.push(step);
            at = from as usize;
        }
        steps.reverse();
        steps
    }

    /// The steps to the state at which the exploration stopped.
    pub(crate) fn trace_to_fault(&self) -> Vec<M::Step> {
        self.trace(self.states.len() - 1)
    }

    /// The first state from which no end can be reached, whatever happens next.
    pub(crate) fn stuck(&self, model: &M) -> Option<usize> {
        self.can_end(model).iter().position(|ends| !ends)
    }

    /// By state: whether an end can be reached from it.
    pub(crate) fn can_end(&self, model: &M) -> Vec<bool> {
        let mut ways_in: Vec<u32> = self.edges.iter().map(|(_, to)| *to).collect();
        let mut order: Vec<u32> = (0..ways_in.len() as u32).collect();
        order.sort_unstable_by_key(|edge| ways_in[*edge as usize]);
        ways_in.sort_unstable();
        let mut can_end: Vec<bool> = self.states.iter().map(|it| model.is_end(it)).collect();
        let ends = can_end.iter().enumerate().filter(|(_, ends)| **ends);
        let mut open: Vec<u32> = ends.map(|(state, _)| state as u32).collect();
        while let Some(state) = open.pop() {
            let first = ways_in.partition_point(|to| *to < state);
            let behind = ways_in.partition_point(|to| *to <= state);
            for edge in &order[first..behind] {
                let (from, _) = self.edges[*edge as usize];
                if !can_end[from as usize] {
                    can_end[from as usize] = true;
                    open.push(from);
                }
            }
        }
        can_end
    }
}

/// Visits all states, or all up to the first fault.
pub(crate) fn explore<M: Model>(model: &M) -> Explored<M> {
    let mut known: HashMap<M::State, u32, BuildHasherDefault<StateHasher>> = HashMap::default();
    let start = model.start();
    known.insert(start, 0);
    let mut found =
        Explored { states: vec![start], edges: Vec::new(), fault: None, origins: vec![None] };
    found.fault = model.fault(&start);
    let mut steps = Vec::new();
    let mut at = 0;
    while at < found.states.len() && found.fault.is_none() {
        let state = found.states[at];
        model.steps(&state, &mut steps);
        for (step, next) in steps.drain(..) {
            let new = found.states.len() as u32;
            let to = *known.entry(next).or_insert(new);
            found.edges.push((at as u32, to));
            if to == new {
                found.states.push(next);
                found.origins.push(Some((at as u32, step)));
                found.fault = model.fault(&next);
                if found.fault.is_some() {
                    break;
                }
            }
        }
        at += 1;
    }
    found
}

/// States are many small fields: one multiplication for each is enough to spread them.
#[derive(Default)]
struct StateHasher {
    hash: u64,
}

impl StateHasher {
    fn add(&mut self, word: u64) {
        // An odd number without a pattern.
        const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;
        self.hash = (self.hash.rotate_left(5) ^ word).wrapping_mul(SPREAD);
    }
}

impl Hasher for StateHasher {
    fn finish(&self) -> u64 {
        self.hash ^ (self.hash >> 29)
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let word = chunk.iter().fold(0, |word, byte| (word << 8) | u64::from(*byte));
            self.add(word);
        }
    }

    fn write_u8(&mut self, value: u8) {
        self.add(u64::from(value));
    }

    fn write_u64(&mut self, value: u64) {
        self.add(value);
    }

    fn write_isize(&mut self, value: isize) {
        self.add(value as u64);
    }

    fn write_usize(&mut self, value: usize) {
        self.add(value as u64);
    }
}
