//! Answers: the headers that say what a blob or a container is.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use lazuli_http::{Body, HeaderName, HeaderValue, Response, StatusCode};
use lazuli_shapes::blob::{
    BlobKind, BlobRecord, ChosenTier, ContainerRecord, CopyState, CopyStatus, Lease, LeaseState,
    PublicAccess, Tier,
};

use crate::etag::{date, etag, moment_text};
use crate::request::MAP_HEADER;
use crate::source;

/// The content type of a blob that has none.
pub(crate) const CONTENT_TYPE_DEFAULT: &str = "application/octet-stream";

/// An answer with XML in it.
pub(crate) fn xml(status: StatusCode, body: impl Into<bytes::Bytes>) -> Response {
    Response::new(status).with("content-type", "application/xml").with_body(body.into())
}

/// An answer with a list in it.
pub(crate) fn list(body: Body) -> Response {
    let mut response = Response::new(StatusCode::OK).with("content-type", "application/xml");
    response.body = body;
    response
}

/// The ETag and the time of a change.
pub(crate) fn changed(response: Response, modified: (lazuli_engine::Lsn, u64)) -> Response {
    let (version, at_ms) = modified;
    response.with("etag", etag(version)).with("last-modified", date(at_ms))
}

/// What every write of a blob answers.
pub(crate) fn written(status: StatusCode, record: &BlobRecord) -> Response {
    let response = changed(Response::new(status), record.modified());
    let response = match record.version {
        Some(version) => response.with("x-ms-version-id", moment_text(version)),
        None => response,
    };
    encrypted(response, record, "x-ms-request-server-encrypted")
}

/// With which key a blob is encrypted; all of them are.
fn encrypted(response: Response, record: &BlobRecord, header: &'static str) -> Response {
    let response = response.with(header, "true");
    let response = match &record.key_sha256 {
        Some(sha256) => response.with("x-ms-encryption-key-sha256", STANDARD.encode(sha256)),
        None => response,
    };
    match &record.scope {
        Some(scope) => response.with("x-ms-encryption-scope", scope),
        None => response,
    }
}

/// The checksum of what was sent, as the service answers it: the one that was asked about, or its own.
pub(crate) fn checksums(response: Response, md5: Option<[u8; 16]>, crc64: u64) -> Response {
    match md5 {
        Some(md5) => response.with("content-md5", STANDARD.encode(md5)),
        None => response.with("x-ms-content-crc64", STANDARD.encode(crc64.to_le_bytes())),
    }
}

pub(crate) fn metadata(mut response: Response, metadata: &[(String, String)]) -> Response {
    for (name, value) in metadata {
        let name = HeaderName::from_bytes(format!("x-ms-meta-{name}").as_bytes());
        if let (Ok(name), Ok(value)) = (name, HeaderValue::from_bytes(value.as_bytes())) {
            response.headers.append(name, value);
        }
    }
    response
}

pub(crate) fn lease(response: Response, lease: &Lease, now_ms: u64) -> Response {
    let response = response
        .with("x-ms-lease-status", lease_status(lease, now_ms))
        .with("x-ms-lease-state", lease_state(lease, now_ms));
    match lease_duration(lease, now_ms) {
        Some(duration) => response.with("x-ms-lease-duration", duration),
        None => response,
    }
}

pub(crate) fn lease_status(lease: &Lease, now_ms: u64) -> &'static str {
    if lease.is_locked(now_ms) { "locked" } else { "unlocked" }
}

pub(crate) fn lease_state(lease: &Lease, now_ms: u64) -> &'static str {
    match lease.state(now_ms) {
        LeaseState::Available => "available",
        LeaseState::Leased => "leased",
        LeaseState::Expired => "expired",
        LeaseState::Breaking => "breaking",
        LeaseState::Broken => "broken",
    }
}

/// Said only while there is a lease.
pub(crate) fn lease_duration(lease: &Lease, now_ms: u64) -> Option<&'static str> {
    (lease.state(now_ms) == LeaseState::Leased).then_some(match lease.seconds {
        Some(_) => "fixed",
        None => "infinite",
    })
}

pub(crate) fn kind(kind: BlobKind) -> &'static str {
    match kind {
        BlobKind::Block => "BlockBlob",
        BlobKind::Append => "AppendBlob",
        BlobKind::Page => "PageBlob",
    }
}

pub(crate) fn copy_status(status: CopyStatus) -> &'static str {
    match status {
        CopyStatus::Pending => "pending",
        CopyStatus::Success => "success",
        CopyStatus::Aborted => "aborted",
        CopyStatus::Failed => "failed",
    }
}

pub(crate) fn public_access(access: PublicAccess) -> Option<&'static str> {
    match access {
        PublicAccess::None => None,
        PublicAccess::Blob => Some("blob"),
        PublicAccess::Container => Some("container"),
    }
}

pub(crate) fn tier(tier: Tier) -> String {
    match tier {
        Tier::Hot => "Hot".to_owned(),
        Tier::Cool => "Cool".to_owned(),
        Tier::Cold => "Cold".to_owned(),
        Tier::Archive => "Archive".to_owned(),
        Tier::Premium(size) => format!("P{size}"),
    }
}

/// Where a blob is on its way out of the archive.
pub(crate) fn archive_status(chosen: &ChosenTier) -> Option<String> {
    let to = chosen.rehydration?.to;
    Some(format!("rehydrate-pending-to-{}", tier(to).to_ascii_lowercase()))
}

/// The headers by which a client reads the bytes. `md5` is that of the bytes in the answer.
pub(crate) fn content_headers(response: Response, record: &BlobRecord) -> Response {
    let headers = &record.headers;
    let content_type = headers.content_type.as_deref().unwrap_or(CONTENT_TYPE_DEFAULT);
    let mut response = response.with("content-type", content_type);
    for (name, value) in [
        ("content-encoding", &headers.content_encoding),
        ("content-language", &headers.content_language),
        ("content-disposition", &headers.content_disposition),
        ("cache-control", &headers.cache_control),
    ] {
        if let Some(value) = value {
            response = response.with(name, value);
        }
    }
    response
}

/// What a blob is, beside its content.
pub(crate) fn blob(response: Response, record: &BlobRecord, now_ms: u64) -> Response {
    let response = changed(response, record.modified());
    let response = metadata(response, &record.metadata);
    let response = lease(response, &record.lease, now_ms);
    let response = encrypted(response, record, "x-ms-server-encrypted");
    let mut response = response
        .with("accept-ranges", "bytes")
        .with("x-ms-blob-type", kind(record.kind))
        .with("x-ms-creation-time", date(record.created_ms));
    match record.kind {
        BlobKind::Block => {}
        BlobKind::Append => {
            let count = record.append_blocks.to_string();
            response = response.with("x-ms-blob-committed-block-count", count);
            if record.is_sealed {
                response = response.with("x-ms-blob-sealed", "true");
            }
        }
        BlobKind::Page => {
            let number = record.sequence_number.to_string();
            response = response.with("x-ms-blob-sequence-number", number);
        }
    }
    if !record.tags.is_empty() {
        response = response.with("x-ms-tag-count", record.tags.len().to_string());
    }
    if let Some(policy) = record.immutability {
        response = response
            .with("x-ms-immutability-policy-until-date", date(policy.until_ms))
            .with("x-ms-immutability-policy-mode", immutability_mode(policy.is_locked));
    }
    if record.has_legal_hold {
        response = response.with("x-ms-legal-hold", "true");
    }
    if let Some(expires) = record.expires_ms {
        response = response.with("x-ms-expiry-time", date(expires));
    }
    match &record.copy {
        Some(state) => copied(response, state),
        None => response,
    }
}

pub(crate) fn immutability_mode(is_locked: bool) -> &'static str {
    if is_locked { "Locked" } else { "Unlocked" }
}

fn copied(response: Response, state: &CopyState) -> Response {
    let mut response = response
        .with("x-ms-copy-id", &state.id)
        .with("x-ms-copy-source", source::shown(&state.source))
        .with("x-ms-copy-status", copy_status(state.status))
        .with("x-ms-copy-progress", format!("{}/{}", state.done, state.total));
    if let Some(completed) = state.completed_ms {
        response = response.with("x-ms-copy-completion-time", date(completed));
    }
    match &state.description {
        Some(description) => response.with("x-ms-copy-status-description", description),
        None => response,
    }
}

/// The tier, which only the properties of a blob say.
pub(crate) fn tiered(response: Response, record: &BlobRecord, now_ms: u64) -> Response {
    let Some(chosen) = record.tier_at(now_ms) else {
        return match record.kind {
            BlobKind::Block => {
                response.with("x-ms-access-tier", "Hot").with("x-ms-access-tier-inferred", "true")
            }
            BlobKind::Append | BlobKind::Page => response,
        };
    };
    let mut response = response
        .with("x-ms-access-tier", tier(chosen.tier))
        .with("x-ms-access-tier-change-time", date(chosen.changed_ms));
    if let Some(status) = archive_status(&chosen) {
        response = response.with("x-ms-archive-status", status);
    }
    match chosen.rehydration {
        Some(way) => response.with("x-ms-rehydrate-priority", priority(way.is_urgent)),
        None => response,
    }
}

pub(crate) fn priority(is_urgent: bool) -> &'static str {
    if is_urgent { "High" } else { "Standard" }
}

/// What a container is.
pub(crate) fn container(response: Response, record: &ContainerRecord, now_ms: u64) -> Response {
    let response = changed(response, record.modified());
    let response = metadata(response, &record.metadata);
    let mut response = lease(response, &record.lease, now_ms)
        .with("x-ms-has-immutability-policy", "false")
        .with("x-ms-has-legal-hold", "false")
        .with("x-ms-immutable-storage-with-versioning-enabled", "false")
        .with("x-ms-default-encryption-scope", record.scope.as_deref().unwrap_or(SCOPE_DEFAULT))
        .with("x-ms-deny-encryption-scope-override", record.is_scope_fixed.to_string());
    if let Some(access) = public_access(record.public_access) {
        response = response.with("x-ms-blob-public-access", access);
    }
    if record.is_hashed {
        response = response.with(MAP_HEADER, "hash");
    }
    response
}

/// The scope of containers that have none of their own.
pub(crate) const SCOPE_DEFAULT: &str = "$account-encryption-key";
