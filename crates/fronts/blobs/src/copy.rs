//! Copies of blobs. A blob of this server is copied directly, in the background where it takes long; what another server has
//! is read from there while the client waits.

use lazuli_engine::{Crc64, Lsn};
use lazuli_http::{Response, StatusCode};
use lazuli_shapes::blob::{
    BlobRecord, Conditions, CopyOptions, CopySource, CopyState, CopyStatus, Etags,
};
use md5::{Digest as _, Md5};

use crate::error::Code;
use crate::error::{Common, Fault, Result, refused};
use crate::options::Checksums;
use crate::put::{guarded, new_blob, overwrite};
use crate::request::{BlobPath, CopyBlob, Source};
use crate::{Call, Front, blob_of, response, source};

pub(crate) async fn start(
    front: &Front,
    call: &Call,
    path: &BlobPath,
    copy: CopyBlob,
) -> Result<Response> {
    let id = front.new_id();
    let Some(local) = source::local(front, call, &copy.source).await? else {
        return from_there(front, call, path, copy, &id).await;
    };
    let sums = match copy.sync && copy.source.checksums != Checksums::default() {
        true => Some(sums_of(front, &local, &copy.source).await?),
        false => None,
    };
    let record = from_here(front, call, path, copy, local, sums.as_ref(), &id).await?;
    let state = record.copy.as_ref().map_or(CopyStatus::Success, |state| state.status);
    let answer = started(&record, &id, state);
    Ok(match sums {
        Some(sums) => response::checksums(answer, sums.md5, sums.crc64),
        None => answer,
    })
}

/// What the bytes of a source add up to, and the state of it that has these bytes.
struct Sums {
    md5: Option<[u8; 16]>,
    crc64: u64,
    state: Lsn,
}

/// Reads a source to compare it with what the request says of it: a client can write any MD5 into the properties of a blob.
async fn sums_of(front: &Front, local: &source::Local, source: &Source) -> Result<Sums> {
    let (which, key) = (local.which, source.key.as_ref());
    let read = front.blobs.read(&local.address, which, None, &source.conditions, key).await;
    let mut read = read.map_err(source::source_refused)?;
    let (mut md5, mut crc64) = (Md5::new(), Crc64::new());
    while let Some(piece) = read.reader.next().await.map_err(refused)? {
        md5.update(&piece);
        crc64.update(&piece);
    }
    let (md5, crc64) = (Some(md5.finalize().into()), crc64.sum());
    source.checksums.check(md5, crc64)?;
    let md5 = md5.filter(|_| source.checksums.md5.is_some());
    Ok(Sums { md5, crc64, state: read.record.changed })
}

fn started(record: &BlobRecord, id: &str, status: CopyStatus) -> Response {
    response::written(StatusCode::ACCEPTED, record)
        .with("x-ms-copy-id", id)
        .with("x-ms-copy-status", response::copy_status(status))
}

async fn from_here(
    front: &Front,
    call: &Call,
    path: &BlobPath,
    copy: CopyBlob,
    local: source::Local,
    sums: Option<&Sums>,
    id: &str,
) -> Result<BlobRecord> {
    let mut conditions = copy.source.conditions;
    if let Some(sums) = sums {
        conditions.if_match = Some(Etags::These(vec![sums.state]));
    }
    let source = CopySource {
        address: local.address,
        which: local.which,
        conditions,
        key: copy.source.key,
        url: source::shown(&copy.source.url),
    };
    let conditions = guarded(call, copy.blob.conditions.clone());
    let metadata = copy.blob.metadata.clone();
    let options = CopyOptions {
        id: id.to_owned(),
        with_tags: copy.copy_tags,
        new: new_blob(copy.blob),
        metadata: (!metadata.is_empty()).then_some(metadata),
        with_headers: true,
        key: call.own.key.clone(),
        is_sealed: copy.seal.unwrap_or_default(),
    };
    let protection = front.protection(&call.target.account).await?;
    let (blobs, target) = (&front.blobs, blob_of(call, path));
    let copied = match copy.sync {
        true => blobs.copy(&source, &target, options, &conditions, protection).await,
        false => blobs.start_copy(&source, &target, options, &conditions, protection).await,
    };
    copied.map_err(|error| target_refused(call, refused(error)))
}

/// What the refusals of a write are of the target of a copy.
fn target_refused(call: &Call, fault: Fault) -> Fault {
    match fault.code {
        Code::Common(Common::ConditionNotMet) => Fault::new(Code::TargetConditionNotMet),
        Code::CannotVerifyCopySource => fault.with_status(StatusCode::NOT_FOUND),
        _ => overwrite(call, fault),
    }
}

async fn from_there(
    front: &Front,
    call: &Call,
    path: &BlobPath,
    copy: CopyBlob,
    id: &str,
) -> Result<Response> {
    let opened = Box::pin(source::open(front, call, &copy.source)).await?;
    // What is read from another server is bytes, and becomes a block blob.
    if opened.kind().is_some_and(|kind| kind != "BlockBlob") {
        return Err(Fault::new(Code::InvalidSourceBlobType));
    }
    let wants = source::Wants { most: front.limits.put_blob_bytes_max, md5: true };
    let address = blob_of(call, path);
    let received =
        Box::pin(source::receive(front, call, &address, opened, &copy.source, wants)).await?;
    let (content, origin) = received;
    let conditions = guarded(call, copy.blob.conditions.clone());
    let mut new = new_blob(copy.blob);
    new.headers = origin.headers;
    if new.metadata.is_empty() {
        new.metadata = origin.metadata;
    }
    new.headers.content_md5 = content.md5;
    let (md5, crc64) = (content.md5.filter(|_| copy.source.checksums.md5.is_some()), content.crc64);
    let state = CopyState {
        id: id.to_owned(),
        source: source::shown(&copy.source.url),
        status: CopyStatus::Success,
        done: content.length,
        total: content.length,
        completed_ms: Some(call.received_ms),
        description: None,
    };
    let protection = front.protection(&call.target.account).await?;
    let put =
        front.blobs.put_copied_blob(&address, content, new, state, &conditions, protection).await;
    let record = put.map_err(|error| target_refused(call, refused(error)))?;
    let answer = started(&record, id, CopyStatus::Success);
    Ok(if copy.sync { response::checksums(answer, md5, crc64) } else { answer })
}

pub(crate) async fn abort(
    front: &Front,
    call: &Call,
    path: &BlobPath,
    id: &str,
    conditions: &Conditions,
) -> Result<Response> {
    let lease = conditions.lease_id.as_deref();
    front.blobs.abort_copy(&blob_of(call, path), id, lease).await.map_err(refused)?;
    Ok(Response::new(StatusCode::NO_CONTENT))
}
