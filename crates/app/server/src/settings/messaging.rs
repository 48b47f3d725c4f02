//! The settings of the bus and of hubs.

use super::table::{Row, row};
use super::{Reader, Result, value};

pub(super) const ROWS: &[Row] = &[
    row(
        "servicebus-config",
        "FILE",
        None,
        "Queues, topics and subscriptions to make at start: the Config.json of the emulator",
    ),
    row(
        "kafka-auto-create",
        "COUNT|off",
        Some("4"),
        "The partitions of a topic that a Kafka client uses before anyone creates it; off means that it must be created",
    ),
];

pub(super) fn kafka(one: &Reader<'_>) -> Result<lazuli_kafka::Settings> {
    let auto_create = one.need("kafka-auto-create", value::count_or_off)?;
    Ok(lazuli_kafka::Settings { auto_create })
}
