//! How far an import is in its file: up to where everything has been answered, though answers come in any order.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// A position in a file: behind so many bytes, in this line, the first one being 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FilePosition {
    pub(crate) offset: u64,
    pub(crate) line: u64,
}

/// The outcome of one batch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    /// Up to where all of it is answered.
    pub(crate) to: FilePosition,
    pub(crate) written: u64,
    pub(crate) skipped: u64,
    /// False if a part of it failed: then nothing behind it counts.
    pub(crate) whole: bool,
}

#[derive(Debug)]
pub(crate) struct Frontier {
    pub(crate) position: FilePosition,
    pub(crate) written: u64,
    pub(crate) skipped: u64,
    next: u64,
    /// Steps that wait for one before them.
    waiting: BTreeMap<u64, Step>,
    stuck: bool,
}

impl Frontier {
    pub(crate) fn start() -> Self {
        Self::at(FilePosition { offset: 0, line: 1 }, 0, 0)
    }

    fn at(position: FilePosition, written: u64, skipped: u64) -> Self {
        Self { position, written, skipped, next: 0, waiting: BTreeMap::new(), stuck: false }
    }

    pub(crate) fn to_json(&self) -> Value {
        let FilePosition { offset, line } = self.position;
        let (written, skipped) = (self.written, self.skipped);
        json!({ "offset": offset, "line": line, "written": written, "skipped": skipped })
    }

    pub(crate) fn from_json(value: &Value) -> Option<Self> {
        let number = |name: &str| value[name].as_u64();
        let position = FilePosition { offset: number("offset")?, line: number("line")? };
        Some(Self::at(position, number("written")?, number("skipped")?))
    }

    /// Takes the outcome of the batch of this number; batches are numbered from 0 without gap.
    pub(crate) fn take(&mut self, number: u64, step: Step) {
        self.waiting.insert(number, step);
        while !self.stuck {
            let Some(step) = self.waiting.remove(&self.next) else { break };
            self.next += 1;
            self.position = step.to;
            self.written += step.written;
            self.skipped += step.skipped;
            self.stuck = !step.whole;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(offset: u64, whole: bool) -> Step {
        Step { to: FilePosition { offset, line: offset }, written: 1, skipped: 0, whole }
    }

    #[test]
    fn the_frontier_waits_for_what_is_missing() {
        let mut frontier = Frontier::start();
        frontier.take(1, step(20, true));
        assert_eq!((frontier.position.offset, frontier.written), (0, 0));
        frontier.take(0, step(10, true));
        assert_eq!((frontier.position.offset, frontier.written), (20, 2));
        let again = Frontier::from_json(&frontier.to_json()).unwrap();
        assert_eq!((again.position, again.written), (frontier.position, 2));
    }

    #[test]
    fn nothing_behind_a_failure_counts() {
        let mut frontier = Frontier::start();
        frontier.take(1, step(20, true));
        frontier.take(0, step(5, false));
        frontier.take(2, step(30, true));
        assert_eq!((frontier.position.offset, frontier.written), (5, 1));
    }
}
