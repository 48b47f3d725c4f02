//! Contents that come in one request: whole blobs, and bytes at the end of append blobs.

use lazuli_http::{Body, Response, StatusCode};
use lazuli_shapes::blob::{
    AppendConditions, BlobAddress, BlobRecord, Conditions, Content, Etags, NewBlob as ShapeBlob,
    UploadOptions,
};

use crate::access::may_overwrite;
use crate::error::{Code, Common, Fault, Result, refused};
use crate::options::Checksums;
use crate::request::{Append, BlobPath, NewBlob, NewKind, PutBlob, PutBlobFromUrl, bad_header};
use crate::{Call, Front, blob_of, response, source};

pub(crate) async fn put(
    front: &Front,
    call: &Call,
    path: &BlobPath,
    put: PutBlob,
    body: &mut Body,
) -> Result<Response> {
    match put.kind {
        NewKind::Block => return put_block_blob(front, call, path, put, body).await,
        NewKind::Append | NewKind::Page { .. } => {}
    }
    if body.length() != Some(0) {
        return Err(Fault::new(Common::InvalidHeaderValue).detail("HeaderName", "Content-Length"));
    }
    let address = blob_of(call, path);
    let protection = front.protection(&call.target.account).await?;
    let conditions = guarded(call, put.blob.conditions.clone());
    let mut new = new_blob(put.blob);
    new.key_sha256 = call.own.key.as_ref().map(|key| key.sha256);
    let record = match put.kind {
        NewKind::Append | NewKind::Block => {
            front.blobs.put_append_blob(&address, new, &conditions, protection).await
        }
        NewKind::Page { length, sequence } => {
            let blobs = &front.blobs;
            blobs.put_page_blob(&address, length, sequence, new, &conditions, protection).await
        }
    };
    let record = record.map_err(|error| overwrite(call, refused(error)))?;
    Ok(response::written(StatusCode::CREATED, &record))
}

async fn put_block_blob(
    front: &Front,
    call: &Call,
    path: &BlobPath,
    put: PutBlob,
    body: &mut Body,
) -> Result<Response> {
    let address = blob_of(call, path);
    let most = front.limits.put_blob_bytes_max;
    let content = receive(front, call, &address, body, most, put.checksums, true).await?;
    let (md5, crc64) = (content.md5, content.crc64);
    let conditions = guarded(call, put.blob.conditions.clone());
    let mut new = new_blob(put.blob);
    new.headers.content_md5 = md5;
    let record = commit(front, call, &address, content, new, &conditions).await?;
    let response = response::written(StatusCode::CREATED, &record);
    let response = response::checksums(response, None, crc64);
    Ok(response::checksums(response, md5, crc64))
}

pub(crate) async fn put_from_url(
    front: &Front,
    call: &Call,
    path: &BlobPath,
    mut put: PutBlobFromUrl,
) -> Result<Response> {
    let address = blob_of(call, path);
    let most = front.limits.put_blob_bytes_max;
    let opened = Box::pin(source::open(front, call, &put.source)).await?;
    let wants = source::Wants { most, md5: true };
    let (content, origin) =
        Box::pin(source::receive(front, call, &address, opened, &put.source, wants)).await?;
    if put.copy_headers {
        let own = &mut put.blob.headers;
        let kept = origin.headers;
        own.content_type = own.content_type.take().or(kept.content_type);
        own.content_encoding = own.content_encoding.take().or(kept.content_encoding);
        own.content_language = own.content_language.take().or(kept.content_language);
        own.content_disposition = own.content_disposition.take().or(kept.content_disposition);
        own.cache_control = own.cache_control.take().or(kept.cache_control);
        if put.blob.metadata.is_empty() {
            put.blob.metadata = origin.metadata;
        }
    }
    if put.copy_tags {
        put.blob.tags = Some(origin.tags);
    }
    let (md5, crc64) = (content.md5, content.crc64);
    let named = Checksums { md5: put.blob.headers.content_md5, crc64: None };
    named.check(md5, crc64)?;
    let conditions = guarded(call, put.blob.conditions.clone());
    let mut new = new_blob(put.blob);
    new.headers.content_md5 = md5;
    let record = commit(front, call, &address, content, new, &conditions).await?;
    let response = response::written(StatusCode::CREATED, &record);
    Ok(response::checksums(response, md5, crc64))
}

async fn commit(
    front: &Front,
    call: &Call,
    address: &BlobAddress,
    content: Content,
    new: ShapeBlob,
    conditions: &Conditions,
) -> Result<BlobRecord> {
    let protection = front.protection(&call.target.account).await?;
    let put = front.blobs.put_block_blob(address, content, new, conditions, protection).await;
    put.map_err(|error| overwrite(call, refused(error)))
}

/// Takes a body in, piece by piece, and checks it against what the request says of it.
pub(crate) async fn receive(
    front: &Front,
    call: &Call,
    address: &BlobAddress,
    body: &mut Body,
    most: u64,
    checksums: Checksums,
    md5: bool,
) -> Result<Content> {
    if body.length().is_none_or(|length| length > most) {
        return Err(Fault::new(Common::RequestBodyTooLarge).detail("MaxLimit", most.to_string()));
    }
    let options = UploadOptions { md5: md5 || checksums.md5.is_some(), key: call.own.key.clone() };
    let mut upload = front.blobs.upload(address, &options).await.map_err(refused)?;
    while let Some(piece) = body.chunk().await? {
        upload.write(piece).await.map_err(refused)?;
    }
    let content = upload.finish().await.map_err(refused)?;
    checksums.check(content.md5, content.crc64)?;
    Ok(content)
}

/// A block has bytes, whichever type of blob it is for.
pub(crate) fn check_block(body: &Body) -> Result<()> {
    match body.length() {
        Some(0) => Err(bad_header("Content-Length").detail("HeaderValue", "0")),
        _ => Ok(()),
    }
}

/// The conditions of a request that creates something, where its sender may not replace what is there.
pub(crate) fn guarded(call: &Call, conditions: Conditions) -> Conditions {
    match may_overwrite(&call.access) {
        true => conditions,
        false => Conditions { if_none_match: Some(Etags::Any), ..conditions },
    }
}

/// What such a request is told when something is there.
pub(crate) fn overwrite(call: &Call, fault: Fault) -> Fault {
    match fault.code {
        Code::BlobAlreadyExists if !may_overwrite(&call.access) => {
            Fault::new(Code::UnauthorizedBlobOverwrite)
        }
        _ => fault,
    }
}

/// What the shape wants to know of a new blob.
pub(crate) fn new_blob(new: NewBlob) -> ShapeBlob {
    ShapeBlob {
        headers: new.headers,
        metadata: new.metadata,
        tags: new.tags.unwrap_or_default(),
        tier: new.tier,
        immutability: new.immutability,
        has_legal_hold: new.legal_hold,
        expires_ms: None,
        scope: None,
        key_sha256: None,
    }
}

pub(crate) async fn append(
    front: &Front,
    call: &Call,
    path: &BlobPath,
    append: Append,
    body: &mut Body,
) -> Result<Response> {
    let address = blob_of(call, path);
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
    let sealed = front.blobs.seal(&blob_of(call, path), position, conditions).await;
    let record = sealed.map_err(refused)?;
    let answer = response::changed(Response::new(StatusCode::OK), record.modified());
    Ok(answer.with("x-ms-blob-sealed", "true"))
}
