//! The settings of the Tables, Queues and Blobs fronts: their rows, and the limits that are read from them.

use lazuli_http::client;

use super::table::{Row, row};
use super::{Reader, Result, memory_bytes, value};
use crate::fronts;

pub(super) const ROWS: &[Row] = &[
    row(
        "queue-message-bytes-max",
        "BYTES",
        Some("64KiB"),
        "The largest message of Queues; body-bytes-max bounds it too",
    ),
    row(
        "queue-messages-per-second-max",
        "COUNT",
        None,
        "The most messages per second of one queue; the original service allows 2000",
    ),
    row(
        "table-key-bytes-max",
        "BYTES",
        Some("1KiB"),
        "The largest partition key or row key of Tables, counted as UTF-16",
    ),
    row(
        "table-value-bytes-max",
        "BYTES",
        Some("64KiB"),
        "The largest value of a property of Tables",
    ),
    row("table-properties-max", "COUNT", Some("252"), "The most properties of an entity of Tables"),
    row("table-entity-bytes-max", "BYTES", Some("1MiB"), "The largest entity of Tables"),
    row(
        "table-transaction-operations-max",
        "COUNT",
        Some("100"),
        "The most operations of an entity group transaction",
    ),
    row(
        "table-transaction-bytes-max",
        "BYTES",
        Some("4MiB"),
        "The largest body of an entity group transaction",
    ),
    row(
        "table-page-items-max",
        "COUNT",
        Some("1000"),
        "The most entities in one page of a query of Tables",
    ),
    row(
        "table-query-timeout",
        "TIME",
        Some("5s"),
        "How long a query of Tables may look for its next page",
    ),
    row(
        "blob-put-bytes-max",
        "BYTES",
        Some("5000MiB"),
        "The largest blob that one request of Blobs may put",
    ),
    row("blob-block-bytes-max", "BYTES", Some("4000MiB"), "The largest block of a blob"),
    row("blob-append-bytes-max", "BYTES", Some("100MiB"), "The most that one request may append"),
    row("blob-page-items-max", "COUNT", Some("5000"), "The most blobs in one page of a list"),
    row(
        "blob-request-timeout",
        "TIME",
        Some("2h"),
        "How long a request of Blobs may take altogether: the largest bodies are slow",
    ),
    row(
        "blob-source-hosts",
        "HOST[:PORT],…",
        None,
        "Hosts that blobs may be copied from beside the fronts; on this machine itself only with a port",
    ),
];

pub(super) fn blobs(one: &Reader<'_>) -> Result<lazuli_blobs::Limits> {
    let default = lazuli_blobs::Limits::default();
    let document_bytes_max = one.may("blob-body-bytes-max", memory_bytes)?;
    Ok(lazuli_blobs::Limits {
        document_bytes_max: document_bytes_max.unwrap_or(default.document_bytes_max),
        put_blob_bytes_max: one.need("blob-put-bytes-max", value::bytes)?,
        block_bytes_max: one.need("blob-block-bytes-max", value::bytes)?,
        append_bytes_max: one.need("blob-append-bytes-max", value::bytes)?,
        page_items_max: one.need("blob-page-items-max", value::count)?,
        sources: client::Sources {
            hosts: one.may("blob-source-hosts", value::hosts)?.unwrap_or_default(),
            ..client::Sources::default()
        },
        ..default
    })
}

/// A number per second. More than the type holds is as good as none.
fn rate(text: &str) -> value::Parsed<u32> {
    value::count(text).map(|number| u32::try_from(number).unwrap_or(u32::MAX))
}

pub(super) fn queues(one: &Reader<'_>) -> Result<lazuli_queues::Limits> {
    Ok(lazuli_queues::Limits {
        body_bytes_max: one.need_of(fronts::find("queues"), "body-bytes-max", memory_bytes)?,
        message_bytes_max: one.need("queue-message-bytes-max", memory_bytes)?,
        messages_per_second_max: one.may("queue-messages-per-second-max", rate)?,
        ..lazuli_queues::Limits::default()
    })
}

pub(super) fn tables(one: &Reader<'_>) -> Result<lazuli_tables::Limits> {
    Ok(lazuli_tables::Limits {
        body_bytes_max: one.need_of(fronts::find("tables"), "body-bytes-max", memory_bytes)?,
        key_units_max: one.need("table-key-bytes-max", memory_bytes)? / 2,
        value_bytes_max: one.need("table-value-bytes-max", memory_bytes)?,
        property_count_max: one.need("table-properties-max", value::count)?,
        entity_bytes_max: one.need("table-entity-bytes-max", memory_bytes)?,
        transaction_operations_max: one.need("table-transaction-operations-max", value::count)?,
        transaction_bytes_max: one.need("table-transaction-bytes-max", memory_bytes)?,
        page_items_max: one.need("table-page-items-max", value::count)?,
        scan_time_max: one.need("table-query-timeout", value::time)?,
        ..lazuli_tables::Limits::default()
    })
}
