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
use crate::request::{CopyBlob, Source};
use crate::{Call, Front, OnBlob, response, source};

pub(crate) async fn start(on: &OnBlob<'_>, copy: CopyBlob) -> Result<Response> {
    let id = on.front.new_id();
    let Some(local) = source::local(on.front, on.call, &copy.source).await? else {
        return from_there(on, copy, &id).await;
    };
    let sums = match copy.sync && copy.source.checksums != Checksums::default() {
        true => Some(sums_of(on.front, &local, &copy.source).await?),
        false => None,
    };
    let record = from_here(on, copy, local, sums.as_ref(), &id).await?;
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
    on: &OnBlob<'_>,
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
    let conditions = guarded(on.call, copy.blob.conditions.clone());
    let metadata = copy.blob.metadata.clone();
    let options = CopyOptions {
        id: id.to_owned(),
        with_tags: copy.copy_tags,
        new: new_blob(copy.blob),
        metadata: (!metadata.is_empty()).then_some(metadata),
        with_headers: true,
        key: on.call.own.key.clone(),
        is_sealed: copy.seal.unwrap_or_default(),
    };
    let protection = on.front.protection(&on.call.target.account).await?;
    let (blobs, target) = (&on.front.blobs, &on.address);
    let copied = match copy.sync {
        true => blobs.copy(&source, target, options, &conditions, protection).await,
        false => blobs.start_copy(&source, target, options, &conditions, protection).await,
    };
    copied.map_err(|error| target_refused(on.call, refused(error)))
}

/// What the refusals of a write are of the target of a copy.
fn target_refused(call: &Call, fault: Fault) -> Fault {
    match fault.code {
        Code::Common(Common::ConditionNotMet) => Fault::new(Code::TargetConditionNotMet),
        Code::CannotVerifyCopySource => fault.with_status(StatusCode::NOT_FOUND),
        _ => overwrite(call, fault),
    }
}

async fn from_there(on: &OnBlob<'_>, copy: CopyBlob, id: &str) -> Result<Response> {
    let opened = Box::pin(source::open(on.front, on.call, &copy.source)).await?;
    // What is read from another server is bytes, and becomes a block blob.
    if opened.kind().is_some_and(|kind| kind != "BlockBlob") {
        return Err(Fault::new(Code::InvalidSourceBlobType));
    }
    let wants = source::Wants { most: on.front.limits.put_blob_bytes_max, md5: true };
    let received = Box::pin(source::receive(on, opened, &copy.source, wants)).await?;
    let (content, origin) = received;
    let conditions = guarded(on.call, copy.blob.conditions.clone());
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
        completed_ms: Some(on.call.received_ms),
        description: None,
    };
    let protection = on.front.protection(&on.call.target.account).await?;
    let put = on
        .front
        .blobs
        .put_copied_blob(&on.address, content, new, state, &conditions, protection)
        .await;
    let record = put.map_err(|error| target_refused(on.call, refused(error)))?;
    let answer = started(&record, id, CopyStatus::Success);
    Ok(if copy.sync { response::checksums(answer, md5, crc64) } else { answer })
}

pub(crate) async fn abort(on: &OnBlob<'_>, id: &str, conditions: &Conditions) -> Result<Response> {
    let lease = conditions.lease_id.as_deref();
    on.front.blobs.abort_copy(&on.address, id, lease).await.map_err(refused)?;
    Ok(Response::new(StatusCode::NO_CONTENT))
}
