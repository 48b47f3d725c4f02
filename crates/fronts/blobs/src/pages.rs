//! Pages of page blobs: written, cleared, listed, compared with a snapshot.

use std::ops::Range;

use lazuli_http::{Body, Response, StatusCode, xml};
use lazuli_shapes::blob::{PageRanges, ReadRange};

use crate::error::Code;
use crate::error::{Common, Fault, Result, refused};
use crate::properties::sequenced;
use crate::put::content;
use crate::request::{GetPages, PageWrite, bad_header};
use crate::{OnBlob, list, response};

pub(crate) async fn write(on: &OnBlob<'_>, write: PageWrite, body: &mut Body) -> Result<Response> {
    let (start, length) = write.range;
    let most = on.front.limits.page_write_bytes_max;
    if write.clear {
        if body.length() != Some(0) {
            return Err(bad_header("Content-Length"));
        }
        let range = start..start + length;
        let cleared =
            on.front.blobs.clear_pages(&on.address, range, write.sequence, &write.conditions).await;
        let record = cleared.map_err(refused)?;
        let answer = response::changed(Response::new(StatusCode::CREATED), record.modified());
        return Ok(sequenced(answer, &record));
    }
    if length > most {
        return Err(Fault::new(Common::RequestBodyTooLarge).detail("MaxLimit", most.to_string()));
    }
    if write.source.is_none() && body.length() != Some(length) {
        return Err(bad_header("Content-Length"));
    }
    let source = write.source.as_ref();
    let (content, md5, crc64) = content(on, body, source, write.checksums, most).await?;
    if content.length != length {
        return Err(Fault::new(Code::InvalidPageRange));
    }
    let written = on
        .front
        .blobs
        .put_pages(&on.address, start, content, write.sequence, &write.conditions)
        .await;
    let record = written.map_err(refused)?;
    let answer = response::written(StatusCode::CREATED, &record);
    Ok(response::checksums(sequenced(answer, &record), md5, crc64))
}

pub(crate) async fn ranges(on: &OnBlob<'_>, get: GetPages) -> Result<Response> {
    let asked = get.range.map(|range| ReadRange { first: range.start, last: range.end });
    let found = on
        .front
        .blobs
        .page_ranges(&on.address, get.which, asked, get.since, &get.conditions)
        .await
        .map_err(refused)?;
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"utf-8\"?><PageList>");
    let after = get.after.unwrap_or(0);
    let mut next = None;
    for (count, (range, name)) in in_order(&found, after).into_iter().enumerate() {
        if count == get.most {
            next = Some(range.start);
            break;
        }
        let (start, end) = (range.start, range.end - 1);
        out.push_str(&format!("<{name}><Start>{start}</Start><End>{end}</End></{name}>"));
    }
    if let Some(next) = next {
        xml::write(&mut out, "NextMarker", &list::write_marker(next.to_string().as_bytes()));
    }
    out.push_str("</PageList>");
    let answer = response::changed(response::xml(StatusCode::OK, out), found.record.modified());
    Ok(answer.with("x-ms-blob-content-length", found.record.length().to_string()))
}

/// What is written and what is cleared, from a byte on, as the answer names it.
fn in_order(found: &PageRanges, after: u64) -> Vec<(&Range<u64>, &'static str)> {
    let written = found.written.iter().map(|range| (range, "PageRange"));
    let cleared = found.cleared.iter().map(|range| (range, "ClearRange"));
    let mut all: Vec<_> =
        written.chain(cleared).filter(|(range, _)| range.start >= after).collect();
    all.sort_unstable_by_key(|(range, _)| range.start);
    all
}
