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
        "eventhubs-config",
        "FILE",
        None,
        "Event hubs and consumer groups to make at start: the Config.json of their emulator",
    ),
    row("bus-entities-max", "COUNT", Some("10000"), "The most queues and topics of a namespace"),
    row(
        "bus-partitioned-max",
        "COUNT",
        Some("10000"),
        "The most queues and topics of a namespace that have more than one partition; 100 is what the service allows",
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

pub(super) fn bus(one: &Reader<'_>) -> Result<lazuli_bus_shape::BusSettings> {
    Ok(lazuli_bus_shape::BusSettings {
        entities_max: one.need("bus-entities-max", value::count)?,
        partitioned_max: one.need("bus-partitioned-max", value::count)?,
        ..lazuli_bus_shape::BusSettings::default()
    })
}
