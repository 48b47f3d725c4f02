//! The history of one partition.

use lazuli_engine::{Asked, Held, Sample, Size};

use crate::level::Level;
use crate::point::Point;
use crate::step::Step;

pub(crate) struct Watch {
    pub(crate) held: Held,
    /// Time of its first sample.
    began_ms: u64,
    /// When it was found to have ended: split, merged or deleted.
    pub(crate) ended_ms: Option<u64>,
    /// Time of its last sample. The partition with the oldest one is evicted first.
    pub(crate) heard_ms: u64,
    /// Its size, once that is known.
    pub(crate) size: Option<Size>,
    /// The first known size, used for the steps before it.
    first: Option<Size>,
    /// What other nodes were asked of it, since this history has heard of them.
    pub(crate) elsewhere: Asked,
    levels: [Level; Step::ALL.len()],
}

fn index(step: Step) -> usize {
    step as usize
}

impl Watch {
    pub(crate) fn new(held: Held, at_ms: u64, size: Option<Size>) -> Self {
        Self {
            held,
            began_ms: at_ms,
            ended_ms: None,
            heard_ms: at_ms,
            size,
            first: size,
            elsewhere: Asked::default(),
            levels: std::array::from_fn(|_| Level::new(size)),
        }
    }

    /// Adds the requests around this time.
    pub(crate) fn take(&mut self, at_ms: u64, sample: &Sample) {
        self.heard_ms = at_ms;
        if let Some(held) = sample.held {
            self.held = held;
            self.ended_ms = None;
        }
        if let Some(size) = sample.size {
            self.resize(size);
        }
        for step in Step::ALL {
            self.levels[index(step)].take(step.number(at_ms), sample);
        }
    }

    pub(crate) fn resize(&mut self, size: Size) {
        self.size = Some(size);
        self.first = self.first.or(self.size);
    }

    /// Closes the steps that have ended at this time.
    pub(crate) fn close(&mut self, now_ms: u64) {
        for step in Step::ALL {
            self.levels[index(step)].close(step, step.number(now_ms), self.size);
        }
    }

    /// It has ended, and all of its steps are too old to be kept.
    pub(crate) fn is_over(&self) -> bool {
        self.ended_ms.is_some() && self.levels.iter().all(Level::is_empty)
    }

    /// The part of a range of steps from its first sample until its end.
    pub(crate) fn series(&self, step: Step, range: &std::ops::Range<u32>) -> Vec<Point> {
        let begin = range.start.max(step.number(self.began_ms));
        let end = match self.ended_ms {
            Some(ended_ms) => range.end.min(step.number(ended_ms)),
            None => range.end,
        };
        self.levels[index(step)].series(step, begin..end.max(begin), self.first)
    }

    /// How long it has been known at this time.
    pub(crate) fn known_ms(&self, now_ms: u64) -> u64 {
        now_ms.saturating_sub(self.began_ms)
    }

    pub(crate) fn bytes(&self) -> usize {
        size_of::<Self>() + self.levels.iter().map(Level::heap_bytes).sum::<usize>()
    }
}
