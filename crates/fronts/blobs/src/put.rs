//! Contents that come in one request: whole blobs, and bytes at the end of append blobs.

use lazuli_http::{Body, Response, StatusCode};
use lazuli_shapes::blob::{
    AppendConditions, BlobRecord, Conditions, Content, Etags, NewBlob as ShapeBlob, UploadOptions,
};

use crate::access::may_overwrite;
use crate::error::{Code, Common, Fault, Result, refused};
use crate::options::Checksums;
use crate::request::{Append, NewBlob, NewKind, PutBlob, PutBlobFromUrl, Source, bad_header};
use crate::{Call, OnBlob, response, source};

pub(crate) async fn put(on: &OnBlob<'_>, put: PutBlob, body: &mut Body) -> Result<Response> {
    match put.kind {
        NewKind::Block => return put_block_blob(on, put, body).await,
        NewKind::Append | NewKind::Page { .. } => {}
    }
    if body.length() != Some(0) {
        return Err(Fault::new(Common::InvalidHeaderValue).detail("HeaderName", "Content-Length"));
    }
    let protection = on.front.protection(&on.call.target.account).await?;
    let conditions = guarded(on.call, put.blob.conditions.clone());
    let mut new = new_blob(put.blob);
    new.key_sha256 = on.call.own.key.as_ref().map(|key| key.sha256);
    let record = match put.kind {
        NewKind::Append | NewKind::Block => {
            on.front.blobs.put_append_blob(&on.address, new, &conditions, protection).await
        }
        NewKind::Page { length, sequence } => {
            let blobs = &on.front.blobs;
            blobs.put_page_blob(&on.address, length, sequence, new, &conditions, protection).await
        }
    };
    let record = record.map_err(|error| overwrite(on.call, refused(error)))?;
    Ok(response::written(StatusCode::CREATED, &record))
}

async fn put_block_blob(on: &OnBlob<'_>, put: PutBlob, body: &mut Body) -> Result<Response> {
    let most = on.front.limits.put_blob_bytes_max;
    let content = receive(on, body, most, put.checksums, true).await?;
    let (md5, crc64) = (content.md5, content.crc64);
    let conditions = guarded(on.call, put.blob.conditions.clone());
    let mut new = new_blob(put.blob);
    new.headers.content_md5 = md5;
    let record = commit(on, content, new, &conditions).await?;
    let response = response::written(StatusCode::CREATED, &record);
    let response = response::checksums(response, None, crc64);
    Ok(response::checksums(response, md5, crc64))
}

pub(crate) async fn put_from_url(on: &OnBlob<'_>, mut put: PutBlobFromUrl) -> Result<Response> {
    let most = on.front.limits.put_blob_bytes_max;
    let opened = Box::pin(source::open(on.front, on.call, &put.source)).await?;
    let wants = source::Wants { most, md5: true };
    let (content, origin) = Box::pin(source::receive(on, opened, &put.source, wants)).await?;
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
    let conditions = guarded(on.call, put.blob.conditions.clone());
    let mut new = new_blob(put.blob);
    new.headers.content_md5 = md5;
    let record = commit(on, content, new, &conditions).await?;
    let response = response::written(StatusCode::CREATED, &record);
    Ok(response::checksums(response, md5, crc64))
}

async fn commit(
    on: &OnBlob<'_>,
    content: Content,
    new: ShapeBlob,
    conditions: &Conditions,
) -> Result<BlobRecord> {
    let protection = on.front.protection(&on.call.target.account).await?;
    let put =
        on.front.blobs.put_block_blob(&on.address, content, new, conditions, protection).await;
    put.map_err(|error| overwrite(on.call, refused(error)))
}

/// Takes in the body, or the source that the request names in its place. Returns the content and the checksums that the
/// answer says.
pub(crate) async fn content(
    on: &OnBlob<'_>,
    body: &mut Body,
    source: Option<&Source>,
    checksums: Checksums,
    most: u64,
) -> Result<(Content, Option<[u8; 16]>, u64)> {
    let (content, checksums) = match source {
        None => (receive(on, body, most, checksums, false).await?, checksums),
        Some(source) => {
            let opened = Box::pin(source::open(on.front, on.call, source)).await?;
            let wants = source::Wants { most, md5: false };
            let received = Box::pin(source::receive(on, opened, source, wants)).await?;
            (received.0, source.checksums)
        }
    };
    let (md5, crc64) = (content.md5.filter(|_| checksums.md5.is_some()), content.crc64);
    Ok((content, md5, crc64))
}

/// Takes a body in, piece by piece, and checks it against what the request says of it.
pub(crate) async fn receive(
    on: &OnBlob<'_>,
    body: &mut Body,
    most: u64,
    checksums: Checksums,
    md5: bool,
) -> Result<Content> {
    if body.length().is_none_or(|length| length > most) {
        return Err(Fault::new(Common::RequestBodyTooLarge).detail("MaxLimit", most.to_string()));
    }
    let options =
        UploadOptions { md5: md5 || checksums.md5.is_some(), key: on.call.own.key.clone() };
    let mut upload = on.front.blobs.upload(&on.address, &options).await.map_err(refused)?;
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

pub(crate) async fn append(on: &OnBlob<'_>, append: Append, body: &mut Body) -> Result<Response> {
    let most = on.front.limits.append_bytes_max;
    if append.source.is_none() {
        check_block(body)?;
    }
    let source = append.source.as_ref();
    let (content, md5, crc64) = content(on, body, source, append.checksums, most).await?;
    let bounds = AppendConditions { position: append.position, max_length: append.most };
    let appended =
        on.front.blobs.append_block(&on.address, content, bounds, &append.conditions).await;
    let (offset, record) = appended.map_err(refused)?;
    let answer = response::written(StatusCode::CREATED, &record)
        .with("x-ms-blob-append-offset", offset.to_string())
        .with("x-ms-blob-committed-block-count", record.append_blocks.to_string());
    Ok(response::checksums(answer, md5, crc64))
}

pub(crate) async fn seal(
    on: &OnBlob<'_>,
    position: Option<u64>,
    conditions: &Conditions,
) -> Result<Response> {
    let sealed = on.front.blobs.seal(&on.address, position, conditions).await;
    let record = sealed.map_err(refused)?;
    let answer = response::changed(Response::new(StatusCode::OK), record.modified());
    Ok(answer.with("x-ms-blob-sealed", "true"))
}
