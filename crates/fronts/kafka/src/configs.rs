//! Settings of topics: taken when a topic is created, and shown.

use std::time::Duration;

use lazuli_kafka_wire::Writer;
use lazuli_log::{Cleanup, Compaction, Hub, HubSettings};

use crate::limits::BATCH_BYTES_MAX;

const FROM_TOPIC: i8 = 1;
const FROM_DEFAULT: i8 = 5;

const RETENTION_MS: &str = "retention.ms";
const RETENTION_BYTES: &str = "retention.bytes";
pub(crate) const CLEANUP: &str = "cleanup.policy";
const TOMBSTONES: &str = "delete.retention.ms";
const LAG: &str = "min.compaction.lag.ms";
const DIRTY: &str = "min.cleanable.dirty.ratio";

/// Takes one setting of a topic. What is not supported is refused, unless it says what holds anyway.
pub(crate) fn set(
    settings: &mut HubSettings,
    name: &str,
    value: Option<&str>,
) -> Result<(), &'static str> {
    let Some(value) = value else { return Ok(()) };
    let number = || value.parse::<i64>().map_err(|_| "not a number");
    let millis = || match value.parse() {
        Ok(ms) => Ok(Duration::from_millis(ms)),
        Err(_) => Err("not a time in milliseconds"),
    };
    match (name, value) {
        (RETENTION_MS, _) => {
            let ms = number()?;
            settings.retention = match u64::try_from(ms) {
                Ok(0) => return Err("records stay for longer than no time"),
                Ok(ms) => Some(Duration::from_millis(ms)),
                Err(_) => None,
            };
        }
        (RETENTION_BYTES, _) => settings.retention_bytes = u64::try_from(number()?).ok(),
        (CLEANUP, _) => {
            settings.cleanup = Cleanup::of_name(value).ok_or("delete, compact, or both of them")?;
        }
        (TOMBSTONES, _) => settings.compaction.tombstones = millis()?,
        (LAG, _) => settings.compaction.lag = millis()?,
        (DIRTY, _) => {
            let ratio: f64 = value.parse().map_err(|_| "not a number")?;
            if !(0.0..=1.0).contains(&ratio) {
                return Err("a ratio is from 0 to 1");
            }
            settings.compaction.dirty_permille = (ratio * 1_000.0).round() as u32;
        }
        ("message.timestamp.type", "CreateTime") | ("compression.type", "producer") => {}
        ("min.insync.replicas", "1") | ("unclean.leader.election.enable", "false") => {}
        _ => return Err("this setting is not supported"),
    }
    Ok(())
}

/// Makes one setting of a topic what it is without being set.
pub(crate) fn reset(settings: &mut HubSettings, name: &str) -> Result<(), &'static str> {
    let default = HubSettings::new(settings.partitions);
    match name {
        RETENTION_MS => settings.retention = default.retention,
        RETENTION_BYTES => settings.retention_bytes = default.retention_bytes,
        CLEANUP => settings.cleanup = default.cleanup,
        TOMBSTONES => settings.compaction.tombstones = default.compaction.tombstones,
        LAG => settings.compaction.lag = default.compaction.lag,
        DIRTY => settings.compaction.dirty_permille = default.compaction.dirty_permille,
        // What holds anyway.
        "max.message.bytes" | "message.timestamp.type" | "compression.type" => {}
        "min.insync.replicas" | "unclean.leader.election.enable" => {}
        _ => return Err("this setting is not supported"),
    }
    Ok(())
}

/// Makes all settings that clients of Kafka see what they are without being set.
pub(crate) fn reset_all(settings: &mut HubSettings) {
    for name in [RETENTION_MS, RETENTION_BYTES, CLEANUP, TOMBSTONES, LAG, DIRTY] {
        // These names are known.
        let _ = reset(settings, name);
    }
}

/// A setting as it is.
pub(crate) struct Config {
    pub(crate) name: &'static str,
    value: String,
    is_default: bool,
}

impl Config {
    pub(crate) fn write(&self, response: &mut Writer, version: i16) {
        response.text(self.name);
        response.nullable_text(Some(&self.value));
        response.bool(false);
        if version == 0 {
            response.bool(self.is_default);
        } else {
            response.i8(if self.is_default { FROM_DEFAULT } else { FROM_TOPIC });
        }
        response.bool(false);
        if version >= 1 {
            response.count(0);
        }
    }
}

pub(crate) fn configs(hub: &Hub) -> Vec<Config> {
    let HubSettings { retention, retention_bytes, cleanup, compaction, .. } = &hub.settings;
    let Compaction { tombstones, lag, dirty_permille } = compaction;
    let default = HubSettings::new(1);
    let config = |name, value: String, is_default| Config { name, value, is_default };
    let or_none = |number: Option<String>| number.unwrap_or_else(|| "-1".to_owned());
    let ms = retention.map(|it| it.as_millis().to_string());
    let bytes = retention_bytes.map(|it| it.to_string());
    let ratio = f64::from(*dirty_permille) / 1_000.0;
    let usual = default.compaction;
    vec![
        config(RETENTION_MS, or_none(ms), *retention == default.retention),
        config(RETENTION_BYTES, or_none(bytes), retention_bytes.is_none()),
        config(CLEANUP, cleanup.name().to_owned(), *cleanup == default.cleanup),
        config(TOMBSTONES, tombstones.as_millis().to_string(), *tombstones == usual.tombstones),
        config(LAG, lag.as_millis().to_string(), *lag == usual.lag),
        config(DIRTY, ratio.to_string(), *dirty_permille == usual.dirty_permille),
        config("max.message.bytes", BATCH_BYTES_MAX.to_string(), true),
        config("message.timestamp.type", "CreateTime".to_owned(), true),
        config("compression.type", "producer".to_owned(), true),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_topics_are_taken_or_refused() {
        let mut settings = HubSettings::new(1);
        set(&mut settings, RETENTION_MS, Some("5000")).unwrap();
        set(&mut settings, RETENTION_BYTES, Some("77")).unwrap();
        assert_eq!(settings.retention, Some(Duration::from_secs(5)));
        assert_eq!(settings.retention_bytes, Some(77));
        set(&mut settings, RETENTION_MS, Some("-1")).unwrap();
        assert_eq!(settings.retention, None);
        set(&mut settings, CLEANUP, Some("delete,compact")).unwrap();
        set(&mut settings, DIRTY, Some("0.01")).unwrap();
        set(&mut settings, TOMBSTONES, Some("100")).unwrap();
        let (compaction, tombstones) = (settings.compaction, Duration::from_millis(100));
        assert_eq!(settings.cleanup, Cleanup::CompactAndDelete);
        assert_eq!((compaction.dirty_permille, compaction.tombstones), (10, tombstones));
        for (name, value) in
            [(RETENTION_MS, "x"), (CLEANUP, "keep"), (DIRTY, "2"), (LAG, "-1"), ("flush.ms", "1")]
        {
            assert!(set(&mut settings, name, Some(value)).is_err(), "{name}");
        }
    }
}
