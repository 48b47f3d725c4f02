//! The change feed: what was written in a part of a container, in the order of its ranges, from a position on.

use lazuli_engine::Lsn;
use lazuli_http::{Response, StatusCode};
use lazuli_shapes::document::{
    Document, FeedChange, FeedMode, FeedOperation, FeedPage, FeedPosition, FeedStart,
};
use lazuli_value::{Object, Value, json};

use crate::address::ContainerName;
use crate::charge;
use crate::error::{Fault, Result};
use crate::feed::{self, position, position_text};
use crate::headers::Changes;
use crate::items::{from_core, of_container};
use crate::{Call, Front, response};

pub(crate) async fn read(
    front: &Front,
    call: &Call,
    container: &ContainerName,
) -> Result<Response> {
    let opened = front.open(call, container).await?;
    let part = front.part(call, &opened).await?;
    let budget = front.admit_part(call, &opened, &part).await?;
    let start = start(call)?;
    let mode = match call.headers.changes {
        Some(Changes::All) => FeedMode::All,
        Some(Changes::Latest) | None => FeedMode::Latest,
    };
    let (documents, collection) = (&front.documents, &opened.collection);
    if mode == FeedMode::All && collection.definition().versions_kept_s == 0 {
        return Err(Fault::bad_request(
            "All versions can be read only of a container with a retention in its changeFeedPolicy.",
        ));
    }
    let from = documents.feed_position(collection, &part.scope, start).await;
    let most = front.parts.limits.page_items(call.headers.items_max);
    let page = documents.changes(collection, &from.map_err(from_core)?, mode, most).await;
    let page = page.map_err(from_core)?;
    let units = charge::feed(page.changes.len(), page.work.bytes_read as usize);
    budget.take(units);
    let seen = feed::seen(front, &opened, part.range).await?;
    let response = match page.changes.is_empty() {
        true => response::empty(StatusCode::NOT_MODIFIED),
        false => {
            let mut body = String::with_capacity(page.work.bytes_read as usize * 2 + 1024);
            feed::begin(&mut body, &opened);
            let rows = write_rows(&page, mode, &mut body)?;
            feed::end(&mut body, rows);
            response::text(StatusCode::OK, body).with("x-ms-item-count", rows.to_string())
        }
    };
    // The position is always there: a reader that finds nothing goes on with it.
    let etag = format!("\"{}\"", position_text(&page.position.encode()));
    Ok(response::charged(of_container(&opened, response.with("etag", etag), seen), units))
}

/// Where a reader begins: a position, now, a time, or the beginning.
fn start(call: &Call) -> Result<FeedStart> {
    match call.headers.if_none_match.as_deref() {
        Some("*") => Ok(FeedStart::Now),
        Some(text) => {
            let bytes = position(text.trim_matches('"'))?;
            Ok(FeedStart::Position(FeedPosition::decode(&bytes).map_err(from_core)?))
        }
        None => Ok(match call.headers.if_modified_since {
            Some(seconds) => FeedStart::Time(u64::try_from(seconds).unwrap_or(0) * 1_000),
            None => FeedStart::Beginning,
        }),
    }
}

/// Writes the rows of a page, and says how many they are.
fn write_rows(page: &FeedPage, mode: FeedMode, body: &mut String) -> Result<usize> {
    let mut rows = 0;
    for change in &page.changes {
        if mode == FeedMode::Latest && change.document.is_none() {
            continue;
        }
        if rows > 0 {
            body.push(',');
        }
        rows += 1;
        match &change.document {
            Some(document) if mode == FeedMode::Latest => latest(document, change.lsn, body)?,
            _ => json::write((&version(change)?).into(), body),
        }
    }
    Ok(rows)
}

/// The newest version of an item, with the number of its last write.
fn latest(document: &Document, lsn: Lsn, body: &mut String) -> Result<()> {
    document.write_json(body).map_err(from_core)?;
    if body.pop() != Some('}') {
        return Err(Fault::internal("an item is no object"));
    }
    body.push_str(&format!(",\"_lsn\":{}}}", lsn.0));
    Ok(())
}

/// One write or deletion.
fn version(change: &FeedChange) -> Result<Value> {
    let item = |document: &Option<lazuli_shapes::document::Document>| match document {
        Some(document) => document.value().map(Some).map_err(from_core),
        None => Ok(None),
    };
    let mut metadata = Object::new();
    let operation = match change.operation {
        FeedOperation::Create => "create",
        FeedOperation::Replace => "replace",
        FeedOperation::Delete => "delete",
    };
    metadata.insert("operationType", operation.into());
    metadata.insert("lsn", (change.lsn.0 as i64).into());
    metadata.insert("crts", ((change.lsn.millis() / 1_000) as i64).into());
    if let Some(previous) = &change.previous {
        metadata.insert("previousImageLSN", (previous.version.0 as i64).into());
    }
    if change.operation == FeedOperation::Delete {
        metadata.insert("id", change.id.as_str().into());
        // Whoever deletes an item has it kept as it was. What nobody deleted has expired.
        metadata.insert("timeToLiveExpired", change.previous.is_none().into());
    }
    let mut row = Object::new();
    row.insert("current", item(&change.document)?.unwrap_or_else(|| Value::Object(Object::new())));
    if let Some(previous) = item(&change.previous)? {
        row.insert("previous", previous);
    }
    row.insert("metadata", Value::Object(metadata));
    Ok(Value::Object(row))
}
