//! The settings of the Documents front: their rows, and the limits that are read from them.

use lazuli_shapes::document::Sizing;

use super::table::{Row, row};
use super::{Reader, Result, memory_bytes, value};

pub(super) const ROWS: &[Row] = &[
    row("document-item-bytes-max", "BYTES", Some("2MiB"), "The largest item of Documents"),
    row(
        "document-page-items-max",
        "COUNT",
        Some("1000"),
        "The most items in one page of a feed or a query of Documents",
    ),
    row(
        "document-query-timeout",
        "TIME",
        Some("5s"),
        "How long a query of Documents may work on one page",
    ),
    row(
        "document-throttling",
        "on|off",
        Some("on"),
        "Whether requests beyond the request units of a container are refused with 429",
    ),
    row(
        "document-throughput",
        "COUNT",
        Some("400"),
        "The request units per second of a container that is created without any",
    ),
    row(
        "document-partition-units",
        "COUNT",
        Some("6000"),
        "A container gets a physical partition for each so many request units per second",
    ),
    row(
        "document-partition-units-max",
        "COUNT",
        Some("10000"),
        "The most request units per second of a physical partition; beyond it, it is split",
    ),
    row(
        "document-partition-bytes-max",
        "BYTES",
        Some("50GiB"),
        "The size beyond which a physical partition is split, if it has more than one partition key",
    ),
    row(
        "document-key-bytes-max",
        "BYTES",
        Some("20GiB"),
        "The most bytes of all items with one partition key; beyond it only deletions are taken",
    ),
];

const SWITCH: &[(&str, bool)] = &[("on", true), ("off", false)];

pub(super) fn limits(one: &Reader<'_>) -> Result<lazuli_documents::Limits> {
    Ok(lazuli_documents::Limits {
        item_bytes_max: one.need("document-item-bytes-max", memory_bytes)?,
        page_items_max: one.need("document-page-items-max", value::count)?,
        query_time_max: one.need("document-query-timeout", value::time)?,
        throttles: one.need("document-throttling", |text| value::choice(text, SWITCH))?,
        throughput_default: one.need("document-throughput", units)?,
        initial_partition_units: one.need("document-partition-units", units)?,
        physical_partition_units_max: one.need("document-partition-units-max", units)?,
        ..lazuli_documents::Limits::default()
    })
}

pub(super) fn sizing(one: &Reader<'_>) -> Result<Sizing> {
    Ok(Sizing {
        range_bytes_max: one.need("document-partition-bytes-max", value::bytes)?,
        shardlet_bytes_max: one.need("document-key-bytes-max", value::bytes)?,
    })
}

/// Request units per second.
fn units(text: &str) -> value::Parsed<u32> {
    let count = value::count(text)?;
    u32::try_from(count).ok().filter(|units| *units > 0).ok_or_else(|| "a count above 0".to_owned())
}
