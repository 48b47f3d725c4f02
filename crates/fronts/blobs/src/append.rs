//! Append blobs: bytes at their end, until they are sealed.

use lazuli_http::{Body, Response, StatusCode};
use lazuli_shapes::blob::{AppendConditions, Conditions};

use crate::error::{Result, refused};
use crate::put::{check_block, receive};
use crate::request::{Append, BlobPath};
use crate::{Call, Front, response, source};

pub(crate) async fn append(
    front: &Front,
    call: &Call,
    path: &BlobPath,
    append: Append,
    body: &mut Body,
) -> Result<Response> {
    let address = call.blob(path);
    let most = front.limits.append_bytes_max;
    let (content, checksums) = match &append.source {
        None => {
            check_block(body)?;
            let sums = append.checksums;
            (receive(front, call, &address, body, most, sums, false).await?, sums)
        }
        Some(source) => {
            let opened = Box::pin(source::open(front, call, source)).await?;
            let wants = source::Wants { most, md5: false };
            let received =
                Box::pin(source::receive(front, call, &address, opened, source, wants)).await?;
            (received.0, source.checksums)
        }
    };
    let (md5, crc64) = (content.md5.filter(|_| checksums.md5.is_some()), content.crc64);
    let bounds = AppendConditions { position: append.position, max_length: append.most };
    let appended = front.blobs.append_block(&address, content, bounds, &append.conditions).await;
    let (offset, record) = appended.map_err(refused)?;
    let answer = response::written(StatusCode::CREATED, &record)
        .with("x-ms-blob-append-offset", offset.to_string())
        .with("x-ms-blob-committed-block-count", record.append_blocks.to_string());
    Ok(response::checksums(answer, md5, crc64))
}

pub(crate) async fn seal(
    front: &Front,
    call: &Call,
    path: &BlobPath,
    position: Option<u64>,
    conditions: &Conditions,
) -> Result<Response> {
    let sealed = front.blobs.seal(&call.blob(path), position, conditions).await;
    let record = sealed.map_err(refused)?;
    let answer = response::changed(Response::new(StatusCode::OK), record.modified());
    Ok(answer.with("x-ms-blob-sealed", "true"))
}
