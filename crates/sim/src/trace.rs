//! What happened, as one number: every scheduling decision, every commit, every fault goes into the hash.
//!
//! Two runs with the same hash took the same way. With the log switched on the events are also kept as text, which is
//! how a failing seed is read.

use std::time::Duration;

use crate::random::mix;

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

    /// Notes an event; the text is only made when somebody wants to read it.
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
