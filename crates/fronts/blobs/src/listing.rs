//! Lists as XML: containers, blobs, what a search found. A page may have thousands of entries, so text is written as it
//! comes.

use std::collections::VecDeque;
use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use lazuli_http::Body;
use lazuli_http::uri::percent_encode;
use lazuli_shapes::blob::{
    BlobKind, BlobRecord, Deleted, Lease, ListedBlob, ListedContainer, Which,
};

use crate::etag::{date, etag, moment_text};
use crate::request::BlobList;
use crate::response::{
    CONTENT_TYPE_DEFAULT, SCOPE_DEFAULT, archive_status, copy_status, immutability_mode, kind,
    lease_duration, lease_state, lease_status, priority, public_access, tier,
};
use crate::{source, tags};

const HEAD: &str = "<?xml version=\"1.0\" encoding=\"utf-8\"?>";
/// How much of a long list is one part of its body. What has been sent needs no room any more.
const PART_BYTES: usize = 64 * 1024;
const DAY_MS: u64 = 24 * 3600 * 1000;

/// A document in the making.
pub(crate) struct Page {
    parts: VecDeque<Bytes>,
    pub(crate) out: String,
    pub(crate) now_ms: u64,
}

impl Page {
    /// Opens a list: the endpoint and the container that it is of.
    pub(crate) fn new(endpoint: &str, container: Option<&str>, now_ms: u64) -> Self {
        let mut page = Self { parts: VecDeque::new(), out: String::with_capacity(4096), now_ms };
        page.out.push_str(HEAD);
        page.out.push_str("<EnumerationResults ServiceEndpoint=\"");
        page.escaped(endpoint);
        page.out.push_str("/\"");
        if let Some(container) = container {
            page.out.push_str(" ContainerName=\"");
            page.escaped(container);
            page.out.push('"');
        }
        page.out.push('>');
        page
    }

    /// Between two entries: lets what is written be a part if it is long enough for one.
    pub(crate) fn cut(&mut self) {
        if self.out.len() >= PART_BYTES {
            let room = String::with_capacity(PART_BYTES + PART_BYTES / 8);
            self.parts.push_back(std::mem::replace(&mut self.out, room).into());
        }
    }

    /// Ends it, with the place where the next page begins.
    pub(crate) fn end(mut self, next: Option<&str>) -> Body {
        match next {
            Some(next) => self.element("NextMarker", next),
            None => self.out.push_str("<NextMarker />"),
        }
        self.out.push_str("</EnumerationResults>");
        if self.parts.is_empty() {
            return Body::from(Bytes::from(self.out));
        }
        self.parts.push_back(self.out.into());
        let length = self.parts.iter().map(|part| part.len() as u64).sum();
        Body::made(length, self.parts, |mut parts| {
            let part = parts.pop_front();
            std::future::ready(Ok(part.map(|part| (part, parts))))
        })
    }

    fn escaped(&mut self, text: &str) {
        let mut rest = text;
        while let Some(at) = rest.find(['&', '<', '>', '"', '\r']) {
            self.out.push_str(&rest[..at]);
            self.out.push_str(match rest.as_bytes()[at] {
                b'&' => "&amp;",
                b'<' => "&lt;",
                b'>' => "&gt;",
                b'\r' => "&#13;",
                _ => "&quot;",
            });
            rest = &rest[at + 1..];
        }
        self.out.push_str(rest);
    }

    pub(crate) fn open(&mut self, name: &str) {
        self.out.push('<');
        self.out.push_str(name);
        self.out.push('>');
    }

    pub(crate) fn close(&mut self, name: &str) {
        self.out.push_str("</");
        self.out.push_str(name);
        self.out.push('>');
    }

    pub(crate) fn element(&mut self, name: &str, text: &str) {
        self.open(name);
        self.escaped(text);
        self.close(name);
    }

    fn optional(&mut self, name: &str, text: Option<&str>) {
        if let Some(text) = text {
            self.element(name, text);
        }
    }

    fn number(&mut self, name: &str, number: u64) {
        self.open(name);
        // Writing into a string does not fail.
        let _ = write!(self.out, "{number}");
        self.close(name);
    }

    /// What was asked for, which the answer repeats.
    pub(crate) fn asked(&mut self, prefix: &str, marker: Option<&str>, most: Option<usize>) {
        self.element("Prefix", prefix);
        self.element("Marker", marker.unwrap_or_default());
        if let Some(most) = most {
            self.number("MaxResults", most as u64);
        }
    }

    /// A name, in another form if it has characters that no document can carry.
    fn name(&mut self, name: &str) {
        let is_plain =
            |c: char| matches!(c, '\t' | '\n' | '\r' | '\u{20}'..='\u{fffd}' | '\u{10000}'..);
        if name.chars().all(is_plain) {
            return self.element("Name", name);
        }
        self.out.push_str("<Name Encoded=\"true\">");
        self.out.push_str(&percent_encode(name));
        self.close("Name");
    }

    fn metadata(&mut self, metadata: &[(String, String)]) {
        self.open("Metadata");
        for (name, value) in metadata {
            self.element(name, value);
        }
        self.close("Metadata");
    }

    fn lease(&mut self, lease: &Lease) {
        self.element("LeaseStatus", lease_status(lease, self.now_ms));
        self.element("LeaseState", lease_state(lease, self.now_ms));
        self.optional("LeaseDuration", lease_duration(lease, self.now_ms));
    }

    fn retention(&mut self, deleted: &Deleted) {
        self.element("DeletedTime", &date(deleted.at_ms));
        let left = deleted.until_ms.saturating_sub(self.now_ms) / DAY_MS;
        self.number("RemainingRetentionDays", left);
    }

    pub(crate) fn container(&mut self, item: &ListedContainer, metadata: bool) {
        let record = &item.record;
        self.open("Container");
        self.element("Name", &item.name);
        if let Some(deleted) = item.deleted {
            self.element("Deleted", "true");
            self.element("Version", &moment_text(deleted));
        }
        self.open("Properties");
        self.element("Last-Modified", &date(record.modified().1));
        self.element("Etag", &etag(record.changed));
        self.lease(&record.lease);
        self.optional("PublicAccess", public_access(record.public_access));
        self.element("HasImmutabilityPolicy", "false");
        self.element("HasLegalHold", "false");
        self.element("ImmutableStorageWithVersioningEnabled", "false");
        let scope = record.scope.as_deref().unwrap_or(SCOPE_DEFAULT).to_owned();
        self.element("DefaultEncryptionScope", &scope);
        let is_fixed = if record.is_scope_fixed { "true" } else { "false" };
        self.element("DenyEncryptionScopeOverride", is_fixed);
        if let Some(deleted) = &record.deleted {
            self.retention(deleted);
        }
        self.close("Properties");
        if metadata && !record.metadata.is_empty() {
            self.metadata(&record.metadata);
        }
        self.close("Container");
    }

    /// A folder of a list.
    pub(crate) fn prefix(&mut self, name: &str) {
        self.open("BlobPrefix");
        self.name(name);
        self.close("BlobPrefix");
    }

    pub(crate) fn blob(&mut self, item: &ListedBlob, list: &BlobList) {
        let record = &item.record;
        self.open("Blob");
        self.name(&item.name);
        if record.deleted.is_some() {
            self.element("Deleted", "true");
        }
        if let Which::Snapshot(time) = item.which {
            self.element("Snapshot", &moment_text(time));
        }
        if let Some(version) = record.version.filter(|_| list.versions) {
            self.element("VersionId", &moment_text(version));
            let is_current = item.which == Which::Current && record.deleted.is_none();
            if is_current && !item.has_versions_only {
                self.element("IsCurrentVersion", "true");
            }
        }
        if item.has_versions_only {
            self.element("HasVersionsOnly", "true");
        }
        self.open("Properties");
        self.properties(record, list);
        self.close("Properties");
        if list.metadata {
            self.metadata(&record.metadata);
        }
        if list.tags && !record.tags.is_empty() {
            self.open("Tags");
            tags::write_set(&mut self.out, &record.tags);
            self.close("Tags");
        }
        self.out.push_str("<OrMetadata />");
        self.close("Blob");
    }

    fn properties(&mut self, record: &BlobRecord, list: &BlobList) {
        self.element("Creation-Time", &date(record.created_ms));
        self.element("Last-Modified", &date(record.modified_ms()));
        self.open("Etag");
        // Here without the quotation marks that headers have.
        self.out.push_str(etag(record.changed).trim_matches('"'));
        self.close("Etag");
        self.number("Content-Length", record.length());
        let headers = &record.headers;
        let content_type = headers.content_type.as_deref().unwrap_or(CONTENT_TYPE_DEFAULT);
        self.element("Content-Type", content_type);
        for (name, value) in [
            ("Content-Encoding", &headers.content_encoding),
            ("Content-Language", &headers.content_language),
        ] {
            self.element(name, value.as_deref().unwrap_or_default());
        }
        self.out.push_str("<Content-CRC64 />");
        let md5 = headers.content_md5.map(|md5| STANDARD.encode(md5)).unwrap_or_default();
        self.element("Content-MD5", &md5);
        self.element("Cache-Control", headers.cache_control.as_deref().unwrap_or_default());
        let disposition = headers.content_disposition.as_deref().unwrap_or_default();
        self.element("Content-Disposition", disposition);
        if record.kind == BlobKind::Page {
            self.number("x-ms-blob-sequence-number", record.sequence_number);
        }
        self.element("BlobType", kind(record.kind));
        self.tier(record);
        self.lease(&record.lease);
        self.element("ServerEncrypted", "true");
        if let Some(sha256) = &record.key_sha256 {
            self.element("CustomerProvidedKeySha256", &STANDARD.encode(sha256));
        }
        self.optional("EncryptionScope", record.scope.as_deref());
        if !record.tags.is_empty() {
            self.number("TagCount", record.tags.len() as u64);
        }
        if let Some(expires) = record.expires_ms {
            self.element("Expiry-Time", &date(expires));
        }
        if record.is_sealed {
            self.element("Sealed", "true");
        }
        if let Some(deleted) = &record.deleted {
            self.retention(deleted);
        }
        self.kept(record, list);
        if list.copy {
            self.copy(record);
        }
    }

    fn tier(&mut self, record: &BlobRecord) {
        let Some(chosen) = record.tier_at(self.now_ms) else {
            if record.kind == BlobKind::Block {
                self.element("AccessTier", "Hot");
                self.element("AccessTierInferred", "true");
            }
            return;
        };
        self.element("AccessTier", &tier(chosen.tier));
        self.element("AccessTierChangeTime", &date(chosen.changed_ms));
        self.optional("ArchiveStatus", archive_status(&chosen).as_deref());
        if let Some(way) = chosen.rehydration {
            self.element("RehydratePriority", priority(way.is_urgent));
        }
    }

    fn kept(&mut self, record: &BlobRecord, list: &BlobList) {
        if let Some(policy) = record.immutability.filter(|_| list.immutability) {
            self.element("ImmutabilityPolicyUntilDate", &date(policy.until_ms));
            self.element("ImmutabilityPolicyMode", immutability_mode(policy.is_locked));
        }
        if record.has_legal_hold && list.legal_hold {
            self.element("LegalHold", "true");
        }
    }

    fn copy(&mut self, record: &BlobRecord) {
        let Some(copy) = &record.copy else { return };
        self.element("CopyId", &copy.id);
        self.element("CopySource", &source::shown(&copy.source));
        self.element("CopyStatus", copy_status(copy.status));
        self.element("CopyProgress", &format!("{}/{}", copy.done, copy.total));
        if let Some(completed) = copy.completed_ms {
            self.element("CopyCompletionTime", &date(completed));
        }
        self.optional("CopyStatusDescription", copy.description.as_deref());
    }

    /// A blob that a search found.
    pub(crate) fn found(&mut self, container: &str, name: &str, tags: &[(String, String)]) {
        self.open("Blob");
        self.element("Name", name);
        self.element("ContainerName", container);
        self.open("Tags");
        tags::write_set(&mut self.out, tags);
        self.close("Tags");
        self.close("Blob");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_list_that_is_cut_has_the_same_bytes() {
        let list = |cuts: bool| {
            let mut page = Page::new("http://here", Some("container"), 0);
            for number in 0..10_000 {
                page.prefix(&format!("folder-{number}/"));
                if cuts {
                    page.cut();
                }
            }
            page.end(Some("next"))
        };
        let mut parts = list(true);
        let first = parts.chunk().await.unwrap().unwrap();
        assert!(first.len() < 2 * PART_BYTES);
        let mut bytes = first.to_vec();
        while let Some(part) = parts.chunk().await.unwrap() {
            bytes.extend_from_slice(&part);
        }
        assert!(bytes == list(false).collect(usize::MAX).await.unwrap());
    }
}
