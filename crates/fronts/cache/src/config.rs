//! Parameters that CONFIG GET shows and CONFIG SET changes while the server runs.
//!
//! What a parameter changes is changed by setting it. Others are shown, because clients and tools ask for them, and cannot be
//! set: a value that nothing obeys would be a lie.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use lazuli_keyspace::{Class, Keyspace, Policy};

use crate::glob;
use crate::latency::Latency;

/// Parameters that are shown and stay as they are.
const FIXED: &[(&str, &str)] = &[
    ("activerehashing", "yes"),
    ("appenddirname", "appendonlydir"),
    ("appendfilename", "appendonly.aof"),
    ("bind", "*"),
    ("cluster-announce-ip", ""),
    ("cluster-node-timeout", "15000"),
    ("cluster-require-full-coverage", "yes"),
    ("daemonize", "no"),
    ("dbfilename", "dump.rdb"),
    ("dir", "."),
    ("hash-max-listpack-entries", "512"),
    ("hash-max-listpack-value", "64"),
    ("hash-max-ziplist-entries", "512"),
    ("hash-max-ziplist-value", "64"),
    ("hz", "10"),
    ("io-threads", "1"),
    ("lfu-decay-time", "1"),
    ("lfu-log-factor", "10"),
    ("list-compress-depth", "0"),
    ("list-max-listpack-size", "-2"),
    ("list-max-ziplist-size", "-2"),
    ("logfile", ""),
    ("loglevel", "notice"),
    ("lua-time-limit", "5000"),
    ("maxmemory-samples", "5"),
    ("min-replicas-to-write", "0"),
    ("proto-max-bulk-len", "536870912"),
    ("repl-backlog-size", "1048576"),
    ("replica-read-only", "yes"),
    ("save", ""),
    ("set-max-intset-entries", "512"),
    ("slave-read-only", "yes"),
    ("stream-node-max-bytes", "4096"),
    ("stream-node-max-entries", "100"),
    ("tcp-keepalive", "300"),
    ("zset-max-listpack-entries", "128"),
    ("zset-max-listpack-value", "64"),
    ("zset-max-ziplist-entries", "128"),
    ("zset-max-ziplist-value", "64"),
];

/// Parameters that can be set and have their effect where they are read.
const SETTABLE: &[(&str, &str)] = &[
    ("busy-reply-threshold", "5000"),
    ("latency-monitor-threshold", "0"),
    ("latency-tracking", "yes"),
    ("masterauth", ""),
    ("masteruser", ""),
    ("maxmemory", "0"),
    ("maxmemory-policy", "noeviction"),
    ("notify-keyspace-events", ""),
    ("slowlog-log-slower-than", "10000"),
    ("slowlog-max-len", "128"),
    ("timeout", "0"),
];

pub(crate) struct Config {
    /// What is neither fixed nor at its default.
    values: Mutex<BTreeMap<String, String>>,
    pub(crate) slow_micros: AtomicI64,
    pub(crate) slow_entries: AtomicUsize,
    /// After how many seconds without a command a client is disconnected; zero is never.
    pub(crate) idle_s: AtomicUsize,
}

/// Why a parameter was not set.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    Unknown,
    Fixed,
    Invalid(&'static str),
}

/// Whom parameters bind, besides the configuration itself.
#[derive(Clone, Copy)]
pub(crate) struct Obeys<'a> {
    pub(crate) keyspace: &'a Keyspace,
    pub(crate) latency: &'a Latency,
}

impl Config {
    pub(crate) fn new(shown: impl IntoIterator<Item = (&'static str, String)>) -> Self {
        let values = shown.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        Self {
            values: Mutex::new(values),
            slow_micros: AtomicI64::new(10_000),
            slow_entries: AtomicUsize::new(128),
            idle_s: AtomicUsize::new(0),
        }
    }

    fn values(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        self.values.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All parameters whose names fit one of the patterns.
    pub(crate) fn get(&self, patterns: &[&[u8]]) -> BTreeMap<String, String> {
        let defaults = FIXED.iter().chain(SETTABLE);
        let mut all: BTreeMap<String, String> =
            defaults.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        all.extend(self.values().clone());
        all.retain(|name, _| patterns.iter().any(|it| glob::matches_any_case(it, name.as_bytes())));
        all
    }

    /// The value of one parameter; empty if there is no such.
    pub(crate) fn value(&self, name: &str) -> String {
        self.get(&[name.as_bytes()]).remove(name).unwrap_or_default()
    }

    /// Sets a parameter and lets it take effect.
    pub(crate) fn set(&self, obeys: Obeys<'_>, name: &str, value: &str) -> Result<(), Refused> {
        let name = name.to_ascii_lowercase();
        if !SETTABLE.iter().any(|(it, _)| *it == name) {
            let is_known = FIXED.iter().any(|(it, _)| *it == name);
            let is_same = self.get(&[name.as_bytes()]).get(&name).is_some_and(|it| it == value);
            return match (is_same, is_known || self.values().contains_key(&name)) {
                (true, _) => Ok(()),
                (false, true) => Err(Refused::Fixed),
                (false, false) => Err(Refused::Unknown),
            };
        }
        let shown = self.apply(obeys, &name, value)?;
        self.values().insert(name, shown);
        Ok(())
    }

    /// What a parameter does, and how it is shown then.
    fn apply(&self, obeys: Obeys<'_>, name: &str, value: &str) -> Result<String, Refused> {
        let Obeys { keyspace, latency } = obeys;
        let number = || value.parse::<i64>().map_err(|_| Refused::Invalid(NOT_A_NUMBER));
        let natural = || {
            let parsed = value.parse::<usize>();
            parsed.map_err(|_| Refused::Invalid(NOT_A_NUMBER))
        };
        match name {
            "maxmemory" => {
                let bytes = parse_bytes(value).ok_or(Refused::Invalid(NOT_BYTES))?;
                keyspace.set_memory_max(bytes);
                return Ok(bytes.to_string());
            }
            "maxmemory-policy" => {
                let policy = Policy::parse(value).ok_or(Refused::Invalid(NOT_A_POLICY))?;
                keyspace.set_policy(policy);
            }
            "notify-keyspace-events" => {
                let invalid =
                    Refused::Invalid("Invalid event class character. Use 'Ag$lshzxeKEtmdn'.");
                let classes = Class::parse(value.as_bytes()).ok_or(invalid)?;
                keyspace.set_classes(classes);
                return Ok(classes.letters());
            }
            "slowlog-log-slower-than" => self.slow_micros.store(number()?, Ordering::Relaxed),
            "slowlog-max-len" => self.slow_entries.store(natural()?, Ordering::Relaxed),
            "timeout" => self.idle_s.store(natural()?, Ordering::Relaxed),
            "latency-tracking" if !matches!(value, "yes" | "no") => {
                return Err(Refused::Invalid("argument must be 'yes' or 'no'"));
            }
            "latency-tracking" => latency.set_tracking(value == "yes"),
            "latency-monitor-threshold" => latency.set_threshold(natural()? as u64),
            // Read when a server is followed.
            "masterauth" | "masteruser" => {}
            _ => drop(natural()?),
        }
        Ok(value.to_owned())
    }
}

const NOT_A_NUMBER: &str = "argument couldn't be parsed into an integer";
const NOT_BYTES: &str = "argument must be a memory value";
const NOT_A_POLICY: &str = "argument(s) must be one of the following: volatile-lru, volatile-lfu, \
    volatile-random, volatile-ttl, allkeys-lru, allkeys-lfu, allkeys-random, noeviction";

/// A number of bytes, with a unit as the service has them: `1k` is a thousand, `1kb` is 1024.
pub(crate) fn parse_bytes(text: &str) -> Option<u64> {
    let lower = text.to_ascii_lowercase();
    let units = [
        ("gb", 1 << 30),
        ("mb", 1 << 20),
        ("kb", 1 << 10),
        ("g", 1_000_000_000),
        ("m", 1_000_000),
        ("k", 1000),
        ("b", 1),
        ("", 1),
    ];
    let (digits, unit) =
        units.iter().find_map(|(name, unit)| Some((lower.strip_suffix(name)?, *unit)))?;
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_the_units_of_the_service() {
        assert_eq!(parse_bytes("100mb"), Some(100 << 20));
        assert_eq!(parse_bytes("1k"), Some(1000));
        assert_eq!(parse_bytes("7"), Some(7));
        assert_eq!((parse_bytes("x"), parse_bytes("-1"), parse_bytes("")), (None, None, None));
    }
}
