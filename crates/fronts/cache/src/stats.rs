//! What is counted: commands, errors, traffic, for INFO, SLOWLOG and LATENCY.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use lazuli_resp::Args;

use crate::command::TABLE;
use crate::monitor::{REDACTED, is_secret};

/// How many arguments of a slow command are kept, and how much of each.
const SLOW_ARGUMENTS_MAX: usize = 32;
const SLOW_ARGUMENT_BYTES_MAX: usize = 128;
/// How many codes of errors are told apart.
const ERROR_CODES_MAX: usize = 128;

/// Counts of one command.
#[derive(Debug, Default)]
pub(crate) struct CommandCounts {
    pub(crate) calls: AtomicU64,
    pub(crate) micros: AtomicU64,
    pub(crate) rejected: AtomicU64,
    pub(crate) failed: AtomicU64,
}

/// A command that took long.
#[derive(Clone, Debug)]
pub(crate) struct Slow {
    pub(crate) id: u64,
    pub(crate) at_ms: u64,
    pub(crate) micros: u64,
    pub(crate) args: Vec<Vec<u8>>,
    pub(crate) peer: String,
    pub(crate) name: String,
}

pub(crate) struct Stats {
    pub(crate) by_command: Vec<CommandCounts>,
    pub(crate) commands: AtomicU64,
    pub(crate) connections: AtomicU64,
    pub(crate) changes: AtomicU64,
    pub(crate) errors: Mutex<BTreeMap<String, u64>>,
    slow: Mutex<(u64, VecDeque<Slow>)>,
    /// Commands in each of the last seconds' samples, for the rate.
    rate: Mutex<VecDeque<(u64, u64)>>,
    pub(crate) peak_bytes: AtomicU64,
}

impl Default for Stats {
    fn default() -> Self {
        Self {
            by_command: TABLE.commands.iter().map(|_| CommandCounts::default()).collect(),
            commands: AtomicU64::new(0),
            connections: AtomicU64::new(0),
            changes: AtomicU64::new(0),
            errors: Mutex::default(),
            slow: Mutex::default(),
            rate: Mutex::default(),
            peak_bytes: AtomicU64::new(0),
        }
    }
}

impl Stats {
    pub(crate) fn count_error(&self, code: &str) {
        let mut errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = errors.get_mut(code) {
            *count += 1;
        } else if errors.len() < ERROR_CODES_MAX {
            errors.insert(code.to_owned(), 1);
        }
    }

    pub(crate) fn slow(&self) -> MutexGuard<'_, (u64, VecDeque<Slow>)> {
        self.slow.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers a slow command, the newest first.
    pub(crate) fn remember_slow(&self, args: Args<'_>, mut slow: Slow, most: usize) {
        let shown = args.len().min(SLOW_ARGUMENTS_MAX);
        let seen = |(at, argument)| if is_secret(args, at) { REDACTED } else { argument };
        slow.args = args.iter().take(shown).enumerate().map(seen).map(shortened).collect();
        if args.len() > shown {
            let more = args.len() - shown + 1;
            slow.args.truncate(SLOW_ARGUMENTS_MAX - 1);
            slow.args.push(format!("... ({more} more arguments)").into_bytes());
        }
        let mut log = self.slow();
        slow.id = log.0;
        log.0 += 1;
        log.1.push_front(slow);
        log.1.truncate(most);
    }

    /// Takes a sample for the rate of commands.
    pub(crate) fn sample(&self, now_ms: u64) {
        let mut rate = self.rate.lock().unwrap_or_else(PoisonError::into_inner);
        rate.push_back((now_ms, self.commands.load(Ordering::Relaxed)));
        while rate.len() > 16 {
            rate.pop_front();
        }
    }

    pub(crate) fn commands_per_second(&self) -> u64 {
        let rate = self.rate.lock().unwrap_or_else(PoisonError::into_inner);
        let (Some(first), Some(last)) = (rate.front(), rate.back()) else { return 0 };
        let elapsed = last.0.saturating_sub(first.0);
        ((last.1 - first.1) * 1000).checked_div(elapsed).unwrap_or_default()
    }
}

fn shortened(argument: &[u8]) -> Vec<u8> {
    if argument.len() <= SLOW_ARGUMENT_BYTES_MAX {
        return argument.to_vec();
    }
    let more = argument.len() - SLOW_ARGUMENT_BYTES_MAX;
    let mut text = argument[..SLOW_ARGUMENT_BYTES_MAX].to_vec();
    text.extend_from_slice(format!("... ({more} more bytes)").as_bytes());
    text
}
