//! The trace as one hash: every scheduling decision, every commit and every fault is part of it.
//!
//! Two runs with the same hash had the same schedule. With the log switched on the events are also kept as text, to
//! analyse a failing seed.

use std::time::Duration;

use lazuli_env::mix;

#[derive(Default)]
pub(crate) struct Trace {
    hash: u64,
    log: Option<Vec<String>>,
}

impl Trace {
    pub(crate) fn keep_log(&mut self) {
        self.log.get_or_insert_default();
    }

    pub(crate) fn number(&mut self, number: u64) {
        self.hash = mix(self.hash ^ number);
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        for chunk in bytes.chunks(8) {
            let number = chunk.iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
            self.number(number);
        }
    }

    /// Adds an event; the text is built only if the log is on.
    pub(crate) fn event(&mut self, now: Duration, text: impl FnOnce() -> String) {
        if let Some(log) = &mut self.log {
            log.push(format!("{:>12.6} {}", now.as_secs_f64(), text()));
        }
    }

    pub(crate) fn hash(&self) -> u64 {
        self.hash
    }

    pub(crate) fn take_log(&mut self) -> Vec<String> {
        self.log.take().unwrap_or_default()
    }
}
