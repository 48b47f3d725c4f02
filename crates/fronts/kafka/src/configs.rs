//! Settings of topics: taken when a topic is created, and shown.

use std::time::Duration;

use lazuli_kafka_wire::Writer;
use lazuli_log::{Hub, HubSettings};

use crate::limits::BATCH_BYTES_MAX;

const FROM_TOPIC: i8 = 1;
const FROM_DEFAULT: i8 = 5;

const RETENTION_MS: &str = "retention.ms";
const RETENTION_BYTES: &str = "retention.bytes";
const CLEANUP: &str = "cleanup.policy";

/// Takes one setting of a topic. What is not supported is refused, unless it says what holds anyway.
pub(crate) fn set(
    settings: &mut HubSettings,
    name: &str,
    value: Option<&str>,
) -> Result<(), &'static str> {
    let Some(value) = value else { return Ok(()) };
    let number = || value.parse::<i64>().map_err(|_| "not a number");
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
        (CLEANUP, "delete") => settings.compact = false,
        (CLEANUP, _) => return Err("only delete is supported"),
        ("message.timestamp.type", "CreateTime") | ("compression.type", "producer") => {}
        ("min.insync.replicas", "1") | ("unclean.leader.election.enable", "false") => {}
        _ => return Err("this setting is not supported"),
    }
    Ok(())
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
    let HubSettings { retention, retention_bytes, compact, .. } = &hub.settings;
    let default = HubSettings::new(1);
    let config = |name, value: String, is_default| Config { name, value, is_default };
    let or_none = |number: Option<String>| number.unwrap_or_else(|| "-1".to_owned());
    let ms = retention.map(|it| it.as_millis().to_string());
    let bytes = retention_bytes.map(|it| it.to_string());
    let cleanup = if *compact { "compact" } else { "delete" };
    vec![
        config(RETENTION_MS, or_none(ms), *retention == default.retention),
        config(RETENTION_BYTES, or_none(bytes), retention_bytes.is_none()),
        config(CLEANUP, cleanup.to_owned(), !compact),
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
        for (name, value) in [(RETENTION_MS, "x"), (CLEANUP, "compact"), ("flush.ms", "1")] {
            assert!(set(&mut settings, name, Some(value)).is_err(), "{name}");
        }
    }
}
