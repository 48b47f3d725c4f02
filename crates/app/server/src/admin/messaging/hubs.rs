//! Hubs: their partitions with rates, how far groups of consumers are behind, and events.

use std::time::Duration;

use lazuli_bus::shown::{self, Typed};
use lazuli_log::limits::CAPTURE_BYTES_MAX;
use lazuli_log::{Capture, Cleanup, Hub, HubSettings, ReadLimit};
use serde_json::{Map, Value, json};

use super::super::refusal::{Refusal, Result};
use super::{From, HubPath, maybe_number, maybe_small, maybe_text, properties, text};
use crate::running::Running;

const HOUR: Duration = Duration::from_secs(3_600);
/// Over how many minutes rates are taken.
const RATE_MINUTES: u32 = 1;
/// The most bytes of events that one request reads.
const READ_BYTES: usize = 1024 * 1024;
/// After how long a file of events is ended, if nothing else is said.
const CAPTURE_SECONDS: u32 = 300;
/// The partitions of a hub whose maker names no number.
const PARTITIONS: u32 = 4;

fn describe(hub: &Hub) -> Value {
    let settings = &hub.settings;
    json!({
        "name": hub.name,
        "partitions": settings.partitions,
        "retention_hours": settings.retention.map(|it| it.as_secs_f64() / HOUR.as_secs_f64()),
        "retention_bytes": settings.retention_bytes,
        "cleanup": settings.cleanup.name(),
        "created_ms": hub.created_ms,
        "groups": settings.groups,
        "capture": settings.capture.as_ref().map(|it| json!({
            "container": it.container,
            "seconds": it.seconds,
            "bytes": it.bytes,
        })),
    })
}

pub(super) async fn list(
    running: &Running,
    account: &str,
    after: Option<&str>,
    most: usize,
) -> Result<Value> {
    let found = running.logs.hubs(account, after, most).await?;
    let next = found.last().filter(|_| found.len() >= most).map(|hub| hub.name.clone());
    let hubs: Vec<Value> = found.iter().map(describe).collect();
    Ok(json!({ "hubs": hubs, "next": next }))
}

pub(super) async fn create(running: &Running, account: &str, body: &Value) -> Result<Value> {
    let name = text(body, "name")?;
    let mut new = HubSettings::new(maybe_small(body, "partitions")?.unwrap_or(PARTITIONS));
    if let Some(hours) = maybe_small(body, "retention_hours")? {
        new.retention = (hours > 0).then(|| HOUR * hours);
    }
    new.retention_bytes = maybe_number(body, "retention_bytes")?;
    if let Some(cleanup) = maybe_text(body, "cleanup")? {
        let refused = || Refusal::bad_request("cleanup is delete, compact, or compact,delete");
        new.cleanup = Cleanup::of_name(&cleanup).ok_or_else(refused)?;
    }
    if running.bus.entity(account, name).await.is_ok() {
        return Err(Refusal::bad_request("there is a queue or topic of this name"));
    }
    let hub = running.logs.create_hub(account, name, &new).await?;
    Ok(describe(&hub))
}

/// A hub with all its partitions, and for each group how many events it has not committed yet.
pub(super) async fn show(running: &Running, path: &HubPath) -> Result<Value> {
    let (logs, account) = (&running.logs, path.account.as_str());
    let hub = logs.hub(account, &path.hub).await?;
    let mut shown = describe(&hub);
    let mut ends = Vec::new();
    let mut partitions = Vec::new();
    for partition in 0..hub.settings.partitions {
        let state = logs.state(&hub, partition).await?;
        let id = logs.partition_id(&hub, partition).await?;
        let rates = id.and_then(|id| running.history.history().rates(id, RATE_MINUTES));
        ends.push(state.next);
        partitions.push(json!({
            "partition": partition,
            "map_partition": id.map(|id| id.0),
            "first": state.first,
            "next": state.next,
            "bytes": state.bytes,
            "last_ms": (state.last_ms > 0).then_some(state.last_ms),
            "appends_per_second": rates.map(|rates| rates.writes),
            "reads_per_second": rates.map(|rates| rates.reads),
        }));
    }
    let mut consumers = Vec::new();
    for group in logs.group_names(account).await? {
        let committed = logs.committed(account, &group).await?;
        let of_hub = committed.iter().filter(|((id, _), _)| *id == hub.id());
        let mut lags = Map::new();
        let mut lag = 0;
        for ((_, partition), offset) in of_hub {
            let end = ends.get(*partition as usize).copied().unwrap_or(0);
            let behind = end.saturating_sub(offset.offset);
            lag += behind;
            lags.insert(partition.to_string(), json!(behind));
        }
        if !lags.is_empty() {
            consumers.push(json!({ "group": group, "lag": lag, "partitions": lags }));
        }
    }
    shown["all_partitions"] = json!(partitions);
    shown["consumers"] = json!(consumers);
    Ok(shown)
}

pub(super) async fn delete(running: &Running, path: &HubPath) -> Result<Value> {
    running.logs.delete_hub(&path.account, &path.hub).await?;
    Ok(json!({ "name": path.hub, "deleted": true }))
}

pub(super) async fn set_partitions(
    running: &Running,
    path: &HubPath,
    body: &Value,
) -> Result<Value> {
    let count = maybe_small(body, "count")?;
    let count = count.ok_or_else(|| Refusal::bad_request("count must be a whole number"))?;
    let hub = running.logs.set_partitions(&path.account, &path.hub, count).await?;
    Ok(describe(&hub))
}

/// `{"container": …, "seconds": …, "bytes": …}`
pub(super) async fn set_capture(running: &Running, path: &HubPath, body: &Value) -> Result<Value> {
    let capture = Capture {
        container: text(body, "container")?.to_owned(),
        seconds: maybe_small(body, "seconds")?.unwrap_or(CAPTURE_SECONDS),
        bytes: maybe_number(body, "bytes")?.unwrap_or(CAPTURE_BYTES_MAX),
    };
    let with = |settings: &mut HubSettings| settings.capture = Some(capture.clone());
    let hub = running.logs.change_hub(&path.account, &path.hub, with).await?;
    Ok(describe(&hub))
}

pub(super) async fn end_capture(running: &Running, path: &HubPath) -> Result<Value> {
    let without = |settings: &mut HubSettings| settings.capture = None;
    let hub = running.logs.change_hub(&path.account, &path.hub, without).await?;
    Ok(describe(&hub))
}

pub(super) async fn read(
    running: &Running,
    path: &HubPath,
    partition: u32,
    from: From,
    most: usize,
) -> Result<Value> {
    let logs = &running.logs;
    let hub = logs.hub(&path.account, &path.hub).await?;
    let from = match from {
        From::Offset(offset) => offset,
        From::Start(start) => logs.find(&hub, partition, start).await?.0,
    };
    let limit = ReadLimit { bytes: READ_BYTES, batches: most };
    let page = logs.read(&hub, partition, from, limit).await?;
    let mut events = Vec::new();
    let from = from.max(page.state.first);
    let mut next = from.min(page.state.next);
    'page: for batch in &page.batches {
        let unreadable = |message: String| Refusal::bad_request(message);
        for event in shown::events(batch, from).map_err(unreadable)? {
            if events.len() >= most {
                break 'page;
            }
            next = event.offset + 1;
            let own = event.shown.properties.into_iter();
            let own: Map<String, Value> = own.map(|(name, value)| (name, json!(value))).collect();
            events.push(json!({
                "partition": partition,
                "offset": event.offset,
                "enqueued_ms": event.enqueued_ms,
                "key": event.key,
                "properties": own,
                "is_text": event.shown.body.is_text,
                "text": event.shown.body.text,
            }));
        }
        // Compaction leaves batches that end without an event.
        next = next.max(batch.end());
    }
    Ok(json!({ "events": events, "next": next, "end": page.state.next }))
}

/// `{"text": …, "key": …}` or `{"text": …, "partition": …}`; without both the hub's partitions take turns.
pub(super) async fn send(running: &Running, path: &HubPath, body: &Value) -> Result<Value> {
    let (logs, account) = (&running.logs, path.account.as_str());
    let typed = Typed {
        text: text(body, "text")?.to_owned(),
        partition_key: maybe_text(body, "key")?,
        properties: properties(body)?,
        ..Typed::default()
    };
    let batch = shown::typed_event(&typed);
    let appended = match (maybe_small(body, "partition")?, &typed.partition_key) {
        (Some(_), Some(_)) => {
            return Err(Refusal::bad_request("an event has a key or a partition, not both"));
        }
        (Some(partition), None) => {
            let hub = logs.hub(account, &path.hub).await?;
            logs.append(&hub, partition, batch).await?
        }
        (None, Some(key)) => logs.append_by_key(account, &path.hub, key, batch).await?,
        (None, None) => {
            let hub = logs.hub(account, &path.hub).await?;
            let any = running.engine.env().random.next_u64() % u64::from(hub.settings.partitions);
            logs.append(&hub, any as u32, batch).await?
        }
    };
    Ok(json!({ "partition": appended.partition, "offset": appended.first }))
}

pub(super) async fn add_group(running: &Running, path: &HubPath, body: &Value) -> Result<Value> {
    let hub = running.logs.add_group(&path.account, &path.hub, text(body, "name")?).await?;
    Ok(describe(&hub))
}

pub(super) async fn delete_group(running: &Running, path: &HubPath, group: &str) -> Result<Value> {
    let found = running.logs.hub(&path.account, &path.hub).await?;
    if !found.settings.groups.iter().any(|one| one.eq_ignore_ascii_case(group)) {
        return Err(Refusal::not_found("consumer group", group, "lazuli hub show"));
    }
    let without = |settings: &mut HubSettings| {
        settings.groups.retain(|one| !one.eq_ignore_ascii_case(group));
    };
    let hub = running.logs.change_hub(&path.account, &path.hub, without).await?;
    Ok(describe(&hub))
}
