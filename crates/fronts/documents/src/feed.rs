//! Feeds of items: all of a container, of a range, or of a partition key, page by page.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use lazuli_engine::{KeyRange, PageLimit};
use lazuli_http::{Response, StatusCode};
use lazuli_shapes::document::{ItemFeed, PartitionKey, Scope, routes_between};

use crate::address::ContainerName;
use crate::charge;
use crate::containers::Opened;
use crate::error::{Fault, Result};
use crate::items::{from_core, of_container};
use crate::session::Seen;
use crate::{Call, Front, response};

/// Which part of a container a request is about.
pub(crate) struct Part {
    pub(crate) scope: Scope,
    /// The range that it is in, if it is in one that is known.
    pub(crate) range: Option<u64>,
    /// Whether it is all of the container.
    pub(crate) is_whole: bool,
}

impl Front {
    /// What the headers say: a partition key or the first levels of one, a range, a slice of a range, or everything.
    pub(crate) async fn part(&self, call: &Call, opened: &Opened) -> Result<Part> {
        let headers = &call.headers;
        if let Some(values) = &headers.partition_key {
            let key = PartitionKey::from_values(values)?;
            return Ok(Part { scope: Scope::Key(key), range: None, is_whole: false });
        }
        let range = match &headers.range {
            Some(id) => Some(self.range(opened, id).await?),
            None => None,
        };
        let id = range.as_ref().map(|range| range.id.0);
        let slice = match &headers.slice {
            Some(slice) => Some(routes_between(&slice.start, &slice.end)?),
            None => None,
        };
        let routes = match (range.map(|range| range.routes()), slice) {
            (None, None) => {
                let scope = Scope::Routes(KeyRange::all());
                return Ok(Part { scope, range: None, is_whole: true });
            }
            (Some(routes), None) | (None, Some(routes)) => routes,
            (Some(range), Some(slice)) => overlap(&range, &slice),
        };
        Ok(Part { scope: Scope::Routes(routes), range: id, is_whole: false })
    }
}

/// What two ranges have in common; an empty range if that is nothing.
fn overlap(one: &KeyRange, other: &KeyRange) -> KeyRange {
    let start = one.start.clone().max(other.start.clone());
    let end = match (&one.end, &other.end) {
        (None, end) | (end, None) => end.clone(),
        (Some(one), Some(other)) => Some(one.clone().min(other.clone())),
    };
    match &end {
        Some(end) if *end < start => KeyRange::new(start.clone(), Some(start)),
        _ => KeyRange::new(start, end),
    }
}

/// A position as text for a header.
pub(crate) fn position_text(position: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(position)
}

pub(crate) fn position(text: &str) -> Result<Bytes> {
    let bytes = URL_SAFE_NO_PAD.decode(text);
    bytes.map(Bytes::from).map_err(|_| Fault::bad_header("x-ms-continuation"))
}

pub(crate) async fn list(
    front: &Front,
    call: &Call,
    container: &ContainerName,
) -> Result<Response> {
    let opened = front.open(call, container).await?;
    let part = front.part(call, &opened).await?;
    let budget = front.admit_part(call, &opened, &part).await?;
    let limits = &front.parts.limits;
    let limit = PageLimit {
        items: limits.page_items(call.headers.items_max),
        bytes: limits.page_bytes_max,
    };
    let after = call.headers.continuation.as_deref().map(position).transpose()?;
    let asked = ItemFeed { scope: part.scope, limit, after };
    let page = front.documents.items(&opened.collection, &asked).await.map_err(from_core)?;
    let units = charge::feed(page.documents.len(), page.work.bytes_read as usize);
    budget.take(units);
    let mut body = String::with_capacity(page.work.bytes_read as usize + 1024);
    begin(&mut body, &opened);
    for (n, document) in page.documents.iter().enumerate() {
        if n > 0 {
            body.push(',');
        }
        document.write_json(&mut body).map_err(from_core)?;
    }
    end(&mut body, page.documents.len());
    let seen = seen(front, &opened, part.range).await?;
    let response = response::text(StatusCode::OK, body)
        .with("x-ms-item-count", page.documents.len().to_string());
    let response = response::charged(of_container(&opened, response, seen), units);
    Ok(match page.next {
        Some(next) => response.with("x-ms-continuation", position_text(&next)),
        None => response,
    })
}

/// Begins the body of a feed of items.
pub(crate) fn begin(body: &mut String, opened: &Opened) {
    let rid = &opened.resource.rid;
    body.push_str(&format!("{{\"_rid\":\"{rid}\",\"Documents\":["));
}

pub(crate) fn end(body: &mut String, count: usize) {
    body.push_str(&format!("],\"_count\":{count}}}"));
}

/// How far the range of an answer is, or the first one if it has several.
pub(crate) async fn seen(
    front: &Front,
    opened: &Opened,
    range: Option<u64>,
) -> Result<Option<Seen>> {
    let ranges = front.ranges(opened).await?;
    let found = ranges.iter().find(|one| range.is_none_or(|range| range == one.id.0));
    let Some(found) = found else { return Ok(None) };
    let lsn = front.documents.last_lsn(&opened.collection, &found.min).await?;
    Ok(Some(Seen { range: found.id.0, lsn: lsn.0 }))
}
