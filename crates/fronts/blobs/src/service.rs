//! What blobs add to the operations on a service itself: documents with checksums, and the kind of the account.

use std::sync::Arc;

use bytes::Bytes;
use lazuli_azure::DocumentError;
use lazuli_azure::properties::{Properties, flag, retention_days, write_flag, write_retention};
use lazuli_azure::service::{self, ServiceProperties};
use lazuli_http::cors::CorsRule;
use lazuli_http::xml::{self, Element};
use lazuli_http::{Body, Response, StatusCode};
use lazuli_shapes::blob::Protection;
use md5::{Digest as _, Md5};

use crate::Front;
use crate::error::Result;
use crate::options::Checksums;

impl Front {
    /// The whole of a body that is a document.
    pub(crate) async fn document(&self, body: &mut Body) -> Result<Bytes> {
        let body = std::mem::replace(body, Body::empty());
        Ok(body.collect(self.limits.document_bytes_max).await?)
    }

    /// The same, checked against the sums that the request names.
    pub(crate) async fn checked_document(
        &self,
        body: &mut Body,
        checksums: Checksums,
    ) -> Result<Bytes> {
        let body = self.document(body).await?;
        let mut crc64 = lazuli_engine::Crc64::new();
        crc64.update(&body);
        checksums.check(Some(Md5::digest(&body).into()), crc64.sum())?;
        Ok(body)
    }
}

/// What kind of account it is: one that can do everything that we can.
pub(crate) fn account() -> Response {
    Response::new(StatusCode::OK)
        .with("x-ms-sku-name", "Standard_RAGRS")
        .with("x-ms-account-kind", "StorageV2")
        .with("x-ms-is-hns-enabled", "false")
}

/// The longest name of a document of a website.
const DOCUMENT_CHARS_MAX: usize = 255;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct BlobProperties {
    pub(crate) common: Properties,
    pub(crate) default_version: Option<String>,
    pub(crate) retention: Retention,
    pub(crate) container_retention: Retention,
    pub(crate) versioning: bool,
    pub(crate) website: Website,
}

/// How long what is deleted is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Retention {
    pub(crate) days: Option<u32>,
    /// Whether it may also be deleted for good before.
    pub(crate) allow_permanent: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Website {
    pub(crate) enabled: bool,
    /// The name of the document that stands for a folder, and the path of the one that stands for the root.
    pub(crate) index: Option<String>,
    pub(crate) default_index: Option<String>,
    /// The path of the document for what is not there.
    pub(crate) missing: Option<String>,
}

impl ServiceProperties for BlobProperties {
    fn changed_by(&self, body: &[u8]) -> std::result::Result<Self, DocumentError> {
        let mut changed = self.clone();
        changed.common = self.common.changed_by_some(body, |section| {
            match section.name.as_str() {
                "DefaultServiceVersion" => changed.default_version = version(section)?,
                "DeleteRetentionPolicy" => changed.retention = retention(section)?,
                "ContainerDeleteRetentionPolicy" => {
                    changed.container_retention = retention(section)?;
                }
                "IsVersioningEnabled" => changed.versioning = is_true(&section.text)?,
                "StaticWebsite" => changed.website = website(section)?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(changed)
    }

    fn write(&self) -> String {
        let mut own = String::new();
        if let Some(version) = &self.default_version {
            xml::write(&mut own, "DefaultServiceVersion", version);
        }
        write_kept(&mut own, "DeleteRetentionPolicy", self.retention);
        // Clients of the original do not know these, so they are written only if they were set.
        if self.container_retention != Retention::default() {
            write_kept(&mut own, "ContainerDeleteRetentionPolicy", self.container_retention);
        }
        if self.versioning {
            write_flag(&mut own, "IsVersioningEnabled", true);
        }
        own.push_str("<StaticWebsite>");
        write_flag(&mut own, "Enabled", self.website.enabled);
        for (name, text) in [
            ("IndexDocument", &self.website.index),
            ("DefaultIndexDocumentPath", &self.website.default_index),
            ("ErrorDocument404Path", &self.website.missing),
        ] {
            if let Some(text) = text {
                xml::write(&mut own, name, text);
            }
        }
        own.push_str("</StaticWebsite>");
        self.common.write_with(&own)
    }

    fn cors(&self) -> &[CorsRule] {
        &self.common.cors
    }
}

impl BlobProperties {
    /// What the account keeps of replaced and deleted blobs.
    pub(crate) fn protection(&self) -> Protection {
        Protection { versioning: self.versioning, retention_days: self.retention.days }
    }
}

fn write_kept(out: &mut String, name: &str, retention: Retention) {
    let mut policy = String::new();
    write_retention(&mut policy, retention.days);
    // The shared form has a name of its own around the two values.
    let inner =
        policy.trim_start_matches("<RetentionPolicy>").trim_end_matches("</RetentionPolicy>");
    out.push_str(&format!("<{name}>{inner}"));
    if retention.days.is_some() {
        write_flag(out, "AllowPermanentDelete", retention.allow_permanent);
    }
    out.push_str(&format!("</{name}>"));
}

fn retention(section: &Element) -> std::result::Result<Retention, DocumentError> {
    let days = retention_days(section)?;
    // Where nothing is kept, everything is gone for good anyway.
    let allow_permanent = flag(section, "AllowPermanentDelete")? && days.is_some();
    Ok(Retention { days, allow_permanent })
}

fn version(section: &Element) -> std::result::Result<Option<String>, DocumentError> {
    let text = section.text.as_str();
    let shape = |(at, byte): (usize, u8)| match at {
        4 | 7 => byte == b'-',
        _ => byte.is_ascii_digit(),
    };
    match text {
        "" => Ok(None),
        _ if text.len() == 10 && text.bytes().enumerate().all(shape) => Ok(Some(text.to_owned())),
        _ => Err(DocumentError::BadValue),
    }
}

fn is_true(text: &str) -> std::result::Result<bool, DocumentError> {
    match text {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(DocumentError::BadValue),
    }
}

fn website(section: &Element) -> std::result::Result<Website, DocumentError> {
    let text = |name: &str| match section.child_text(name) {
        Some(text) if text.chars().count() > DOCUMENT_CHARS_MAX => Err(DocumentError::BadValue),
        text => Ok(text.map(str::to_owned)),
    };
    let website = Website {
        enabled: flag(section, "Enabled")?,
        index: text("IndexDocument")?,
        default_index: text("DefaultIndexDocumentPath")?,
        missing: text("ErrorDocument404Path")?,
    };
    // The name of a document in any folder is no path.
    match website.index.as_ref().is_some_and(|name| name.contains('/')) {
        true => Err(DocumentError::BadValue),
        false => Ok(website),
    }
}

impl Front {
    /// The properties of an account's service.
    pub(crate) async fn properties(&self, account: &str) -> Result<Arc<BlobProperties>> {
        service::properties(self, account).await
    }

    /// What the account keeps of replaced and deleted blobs.
    pub(crate) async fn protection(&self, account: &str) -> Result<Protection> {
        Ok(self.properties(account).await?.protection())
    }

    /// What it keeps of deleted containers.
    pub(crate) async fn container_protection(&self, account: &str) -> Result<Protection> {
        let properties = self.properties(account).await?;
        Ok(Protection { versioning: false, retention_days: properties.container_retention.days })
    }
}

#[cfg(test)]
mod service_properties_tests {
    use super::*;

    #[test]
    fn what_was_written_reads_the_same() {
        let some = BlobProperties {
            default_version: Some("2021-12-02".into()),
            retention: Retention { days: Some(7), allow_permanent: true },
            container_retention: Retention { days: Some(1), allow_permanent: false },
            versioning: true,
            website: Website {
                enabled: true,
                index: Some("index.html".into()),
                default_index: None,
                missing: Some("errors/404.html".into()),
            },
            ..BlobProperties::default()
        };
        for properties in [some, BlobProperties::default()] {
            let read = BlobProperties::default().changed_by(properties.write().as_bytes());
            assert_eq!(read, Ok(properties));
        }
    }

    #[test]
    fn bad_values_are_refused() {
        let check = |inner: &str| {
            let text = format!("<StorageServiceProperties>{inner}</StorageServiceProperties>");
            BlobProperties::default().changed_by(text.as_bytes()).unwrap_err()
        };
        assert_eq!(check("<Other/>"), DocumentError::NotXml);
        for bad in [
            "<DefaultServiceVersion>new</DefaultServiceVersion>",
            "<IsVersioningEnabled/>",
            "<DeleteRetentionPolicy><Enabled>true</Enabled></DeleteRetentionPolicy>",
            "<DeleteRetentionPolicy><Enabled>true</Enabled><Days>366</Days></DeleteRetentionPolicy>",
            "<StaticWebsite><IndexDocument>a/b</IndexDocument></StaticWebsite>",
        ] {
            assert_eq!(check(bad), DocumentError::BadValue, "{bad}");
        }
    }
}
