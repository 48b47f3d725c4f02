//! The ranges of a container as clients see them: its map, the live ones with all that they came from.
//!
//! Clients read the map as a feed of changes: with the etag of what they have they get the ranges that are new since, and
//! 304 if there are none. Numbers of ranges grow, so the etag is the highest one.

use lazuli_http::{Response, StatusCode};
use lazuli_shapes::document::Range;
use lazuli_value::{Object, Value};

use crate::address::ContainerName;
use crate::charge;
use crate::containers::Opened;
use crate::error::Result;
use crate::items::of_container;
use crate::resources::feed;
use crate::{Call, Front, response};

pub(crate) async fn read(
    front: &Front,
    call: &Call,
    container: &ContainerName,
) -> Result<Response> {
    let opened = front.open(call, container).await?;
    let ranges = front.documents.ranges(&opened.collection).await?;
    let newest = ranges.iter().map(|range| range.id.0).max().unwrap_or_default();
    let known = call.headers.if_none_match.as_deref().and_then(number);
    let etag = format!("\"{newest}\"");
    if known.is_some_and(|known| known >= newest) {
        let response = response::empty(StatusCode::NOT_MODIFIED).with("etag", etag);
        return Ok(response::charged(of_container(&opened, response, None), charge::METADATA_READ));
    }
    // Without the header of a feed of changes the client wants the whole map, whatever it has.
    let since = known.filter(|_| call.headers.changes.is_some()).unwrap_or_default();
    let count = ranges.len();
    let rows: Vec<Value> = ranges
        .iter()
        .filter(|range| since == 0 || range.id.0 > since)
        .map(|range| show(&opened, range, count))
        .collect();
    let items = rows.len().to_string();
    let body = feed(&opened.resource.rid.to_string(), "PartitionKeyRanges", rows);
    let response =
        response::json(StatusCode::OK, &body).with("etag", etag).with("x-ms-item-count", items);
    Ok(response::charged(of_container(&opened, response, None), charge::METADATA_READ))
}

fn number(etag: &str) -> Option<u64> {
    etag.trim_matches('"').parse().ok()
}

fn show(opened: &Opened, range: &Range, count: usize) -> Value {
    let owner = &opened.resource.rid;
    let (rid, database) = (owner.range(range.id.0), owner.database());
    let mut shown = Object::new();
    shown.insert("id", range.id.0.to_string().into());
    shown.insert("_rid", rid.to_string().into());
    shown.insert("_self", format!("dbs/{database}/colls/{owner}/pkranges/{rid}/").into());
    shown.insert("_etag", format!("\"{:032x}\"", range.id.0).into());
    shown.insert("_ts", ((opened.resource.written_ms / 1_000) as i64).into());
    shown.insert("minInclusive", range.min_text().into());
    shown.insert("maxExclusive", range.max_text().into());
    shown.insert("ridPrefix", 0.into());
    shown.insert(
        "throughputFraction",
        Value::number(1.0 / count.max(1) as f64).unwrap_or(Value::Null),
    );
    shown.insert("status", "online".into());
    let parents = range.parents.iter().map(|id| Value::String(id.0.to_string()));
    shown.insert("parents", Value::Array(parents.collect()));
    Value::Object(shown)
}
