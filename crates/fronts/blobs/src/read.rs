//! Reading blobs: their bytes or a range of them, and what they are.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::{Bytes, BytesMut};
use lazuli_azure::auth::access::Access;
use lazuli_engine::Crc64;
use lazuli_http::{Body, BodyError, HeaderValue, Response, StatusCode};
use lazuli_shapes::blob::{BlobReader, BlobRecord, Conditions, ReadRange, Which};
use md5::{Digest as _, Md5};

use crate::error::Code;
use crate::error::{Result, refused};
use crate::etag::moment_text;
use crate::request::{Get, RangeDigest, bad_header};
use crate::{Call, OnBlob, response};

pub(crate) async fn get(on: &OnBlob<'_>, get: Get) -> Result<Response> {
    let range = get.range.map(|range| ReadRange { first: range.start, last: range.end });
    let (which, key) = (get.which, on.call.own.key.as_ref());
    let read = on.front.blobs.read(&on.address, which, range, &get.conditions, key).await;
    let read = match read.map_err(refused) {
        Ok(read) => read,
        Err(fault) if fault.code == Code::InvalidRange => {
            let known = on.front.blobs.properties(&on.address, which, &get.conditions, key);
            let length = Box::pin(known).await.map_err(refused)?.length();
            return Err(fault.header("content-range", format!("bytes */{length}")));
        }
        Err(fault) => return Err(fault),
    };
    let (record, length) = (read.record, read.range.end - read.range.start);
    let status = match get.range {
        Some(_) => StatusCode::PARTIAL_CONTENT,
        None => StatusCode::OK,
    };
    let mut answer = described(on.call, Response::new(status), &record, which);
    answer = response::content_headers(answer, &record);
    let md5 = record.headers.content_md5.map(|md5| STANDARD.encode(md5));
    match (get.range, md5) {
        (Some(_), md5) => {
            let (first, last) = (read.range.start, read.range.end.saturating_sub(1));
            let whole = record.length();
            answer = answer.with("content-range", format!("bytes {first}-{last}/{whole}"));
            if let Some(md5) = md5 {
                answer = answer.with("x-ms-blob-content-md5", md5);
            }
        }
        (None, Some(md5)) => answer = answer.with("content-md5", md5),
        (None, None) => {}
    }
    answer = signed_headers(on.call, answer);
    let Some(digest) = get.digest else {
        answer.body = stream(read.reader, length).await?;
        return Ok(answer);
    };
    if length > on.front.limits.range_digest_bytes_max {
        return Err(bad_header("x-ms-range-get-content-md5"));
    }
    let bytes = collect(read.reader, length).await?;
    let answer = match digest {
        RangeDigest::Md5 => answer.with("content-md5", STANDARD.encode(Md5::digest(&bytes))),
        RangeDigest::Crc64 => {
            let mut crc64 = Crc64::new();
            crc64.update(&bytes);
            answer.with("x-ms-content-crc64", STANDARD.encode(crc64.sum().to_le_bytes()))
        }
    };
    Ok(answer.with_body(bytes))
}

/// The bytes as a body. What is small enough for one piece is there at once, so that a fault of it is still an answer.
async fn stream(mut reader: BlobReader, length: u64) -> Result<Body> {
    let Some(first) = reader.next().await.map_err(refused)? else { return Ok(Body::empty()) };
    if first.len() as u64 == length {
        return Ok(Body::from(first));
    }
    Ok(Body::made(length, (Some(first), reader), |(first, mut reader)| async move {
        if let Some(first) = first {
            return Ok(Some((first, (None, reader))));
        }
        match reader.next().await {
            Ok(piece) => Ok(piece.map(|piece| (piece, (None, reader)))),
            Err(error) => {
                tracing::error!(cause = %error, "a blob could not be read to its end");
                Err(BodyError::Broken)
            }
        }
    }))
}

async fn collect(mut reader: BlobReader, length: u64) -> Result<Bytes> {
    let mut bytes = BytesMut::with_capacity(usize::try_from(length).unwrap_or(0));
    while let Some(piece) = reader.next().await.map_err(refused)? {
        bytes.extend_from_slice(&piece);
    }
    Ok(bytes.freeze())
}

/// The headers of the blob, and of the version or snapshot that was asked for.
fn described(call: &Call, answer: Response, record: &BlobRecord, which: Which) -> Response {
    let answer = response::blob(answer, record, call.received_ms);
    let answer = match record.version {
        Some(version) => answer.with("x-ms-version-id", moment_text(version)),
        None => answer,
    };
    let answer = match record.is_current_version {
        true => answer.with("x-ms-is-current-version", "true"),
        false => answer,
    };
    match which {
        Which::Current | Which::Version(_) => answer,
        Which::Snapshot(time) => answer.with("x-ms-snapshot", moment_text(time)),
    }
}

/// The headers that a signature gives the answer in place of the blob's own.
fn signed_headers(call: &Call, mut answer: Response) -> Response {
    if let Access::Resource(grant) = &call.access {
        for (name, value) in &grant.answer_headers {
            if let Ok(value) = HeaderValue::from_str(value) {
                answer.headers.insert(*name, value);
            }
        }
    }
    answer
}

pub(crate) async fn properties(
    on: &OnBlob<'_>,
    which: Which,
    conditions: &Conditions,
) -> Result<Response> {
    let key = on.call.own.key.as_ref();
    let record = on.front.blobs.properties(&on.address, which, conditions, key).await;
    let record = record.map_err(refused)?;
    let answer = described(on.call, Response::new(StatusCode::OK), &record, which);
    let answer = response::content_headers(answer, &record);
    let answer = match record.headers.content_md5 {
        Some(md5) => answer.with("content-md5", STANDARD.encode(md5)),
        None => answer,
    };
    let answer = response::tiered(answer, &record, on.call.received_ms);
    // The length of what is not sent.
    let answer = answer.with("content-length", record.length().to_string());
    Ok(signed_headers(on.call, answer))
}

pub(crate) async fn metadata(
    on: &OnBlob<'_>,
    which: Which,
    conditions: &Conditions,
) -> Result<Response> {
    let key = on.call.own.key.as_ref();
    let record = on.front.blobs.properties(&on.address, which, conditions, key).await;
    let record = record.map_err(refused)?;
    let answer = response::changed(Response::new(StatusCode::OK), record.modified());
    Ok(response::metadata(answer, &record.metadata))
}
