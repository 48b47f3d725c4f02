//! Blocks of block blobs: put, listed, and named by the list that makes them a blob.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use lazuli_http::{Body, Response, StatusCode};
use lazuli_shapes::blob::{Conditions, Which};

use crate::error::{Result, refused};
use crate::put::{check_block, guarded, new_blob, overwrite, receive};
use crate::request::{BlobPath, BlockListKind, PutBlock, PutBlockList};
use crate::{Call, Front, block_list, response, source};

pub(crate) async fn put(
    front: &Front,
    call: &Call,
    path: &BlobPath,
    put: PutBlock,
    body: &mut Body,
) -> Result<Response> {
    let address = call.blob(path);
    let (content, checksums) = match &put.source {
        None => {
            check_block(body)?;
            let most = front.limits.block_bytes_max;
            let sums = put.checksums;
            (receive(front, call, &address, body, most, sums, false).await?, sums)
        }
        Some(source) => {
            let wants = source::Wants { most: front.limits.from_url_bytes_max, md5: false };
            let opened = Box::pin(source::open(front, call, source)).await?;
            let received =
                Box::pin(source::receive(front, call, &address, opened, source, wants)).await?;
            (received.0, source.checksums)
        }
    };
    let (md5, crc64) = (content.md5.filter(|_| checksums.md5.is_some()), content.crc64);
    let lease = put.conditions.lease_id.as_deref();
    let staged = front.blobs.put_block(&address, put.id.into(), content, lease).await;
    staged.map_err(refused)?;
    let answer = Response::new(StatusCode::CREATED).with("x-ms-request-server-encrypted", "true");
    let answer = match &call.key {
        Some(key) => answer.with("x-ms-encryption-key-sha256", STANDARD.encode(key.sha256)),
        None => answer,
    };
    Ok(response::checksums(answer, md5, crc64))
}

pub(crate) async fn commit(
    front: &Front,
    call: &Call,
    path: &BlobPath,
    put: PutBlockList,
    body: &mut Body,
) -> Result<Response> {
    let body = front.checked_document(body, put.checksums).await?;
    let list = block_list::read(&body, &front.limits)?;
    let protection = front.protection(&call.target.account).await?;
    let conditions = guarded(call, put.blob.conditions.clone());
    let mut new = new_blob(put.blob);
    new.key_sha256 = call.key.as_ref().map(|key| key.sha256);
    let address = call.blob(path);
    let committed =
        front.blobs.commit_block_list(&address, list, new, &conditions, protection).await;
    let record = committed.map_err(|error| overwrite(call, refused(error)))?;
    Ok(response::written(StatusCode::CREATED, &record))
}

pub(crate) async fn list(
    front: &Front,
    call: &Call,
    path: &BlobPath,
    which: Which,
    kind: BlockListKind,
    conditions: &Conditions,
) -> Result<Response> {
    let listed = front.blobs.block_list(&call.blob(path), which, conditions).await;
    let listed = listed.map_err(refused)?;
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"utf-8\"?><BlockList>");
    for (name, is_asked, blocks) in [
        ("CommittedBlocks", kind.committed, &listed.committed),
        ("UncommittedBlocks", kind.uncommitted, &listed.uncommitted),
    ] {
        if !is_asked {
            continue;
        }
        out.push_str(&format!("<{name}>"));
        for (id, size) in blocks {
            let id = STANDARD.encode(id);
            out.push_str(&format!("<Block><Name>{id}</Name><Size>{size}</Size></Block>"));
        }
        out.push_str(&format!("</{name}>"));
    }
    out.push_str("</BlockList>");
    let answer = response::xml(StatusCode::OK, out);
    Ok(match &listed.record {
        Some(record) => response::changed(answer, record.modified())
            .with("x-ms-blob-content-length", record.length().to_string()),
        None => answer.with("x-ms-blob-content-length", "0"),
    })
}
