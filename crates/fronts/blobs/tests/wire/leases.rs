//! A lease keeps writes out that do not bring its id, whatever operation they are.

use super::raw::Server;
use super::with_container;

const LEASE: &str = "0f8fad5b-d9cb-469f-a165-70867728950e";
const OTHER: &str = "1f8fad5b-d9cb-469f-a165-70867728950e";

/// A blob of each type, all of them leased, and one that is the source of copies.
fn with_leased_blobs() -> Server {
    let server = with_container();
    server.done("PUT /dev/con/source\nx-ms-blob-type: BlockBlob\n\nhello");
    let page = "hello".repeat(103)[..512].to_owned();
    server.done(&format!("PUT /dev/con/page-source\nx-ms-blob-type: BlockBlob\n\n{page}"));
    server.done("PUT /dev/con/block\nx-ms-blob-type: BlockBlob\n\nhello");
    server.done("PUT /dev/con/append\nx-ms-blob-type: AppendBlob");
    server.done("PUT /dev/con/page\nx-ms-blob-type: PageBlob\nx-ms-blob-content-length: 1024");
    for name in ["block", "append", "page"] {
        server.done(&format!(
            "PUT /dev/con/{name}?comp=lease\nx-ms-lease-action: acquire\n\
             x-ms-lease-duration: -1\nx-ms-proposed-lease-id: {LEASE}"
        ));
    }
    server
}

fn page_of(text: &str) -> String {
    text.repeat(512 / text.len())
}

/// Every write of a blob in `operations.toml`: the line of the request with further headers, and its body.
fn writes() -> Vec<(&'static str, String, String)> {
    let source = "x-ms-copy-source: http://127.0.0.1:10000/dev/con/source";
    let pages = "x-ms-copy-source: http://127.0.0.1:10000/dev/con/page-source";
    let block = "?comp=block&blockid=YQ%3D%3D";
    let write = "x-ms-page-write: update\nx-ms-range: bytes=0-511";
    let tags = "<Tags><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tags>";
    let list = "<BlockList><Latest>YQ==</Latest></BlockList>";
    let one = |name, request: String, body: &str| (name, request, body.to_owned());
    vec![
        one("PutBlob", "PUT /dev/con/block\nx-ms-blob-type: BlockBlob".into(), "two"),
        one("PutBlob", "PUT /dev/con/append\nx-ms-blob-type: AppendBlob".into(), ""),
        one(
            "PutBlob",
            "PUT /dev/con/page\nx-ms-blob-type: PageBlob\nx-ms-blob-content-length: 1024".into(),
            "",
        ),
        one(
            "PutBlobFromUrl",
            format!("PUT /dev/con/block\nx-ms-blob-type: BlockBlob\n{source}"),
            "",
        ),
        one(
            "SetBlobProperties",
            "PUT /dev/con/block?comp=properties\nx-ms-blob-content-type: a/b".into(),
            "",
        ),
        one(
            "SetBlobProperties",
            "PUT /dev/con/page?comp=properties\nx-ms-blob-content-length: 1536".into(),
            "",
        ),
        one(
            "SetBlobProperties",
            "PUT /dev/con/page?comp=properties\nx-ms-sequence-number-action: increment".into(),
            "",
        ),
        one("SetBlobMetadata", "PUT /dev/con/block?comp=metadata\nx-ms-meta-a: b".into(), ""),
        one("SetBlobTags", "PUT /dev/con/block?comp=tags\nx-ms-meta-a: b".into(), tags),
        one("CopyBlob", format!("PUT /dev/con/block\n{source}"), ""),
        one(
            "CopyBlobFromUrl",
            format!("PUT /dev/con/block\n{source}\nx-ms-requires-sync: true"),
            "",
        ),
        one("SetBlobTier", "PUT /dev/con/block?comp=tier\nx-ms-access-tier: Cool".into(), ""),
        one(
            "SetBlobExpiry",
            "PUT /dev/con/block?comp=expiry\nx-ms-expiry-option: NeverExpire".into(),
            "",
        ),
        one("PutBlock", format!("PUT /dev/con/block{block}\nx-ms-meta-a: b"), "two"),
        one("PutBlockFromUrl", format!("PUT /dev/con/block{block}\n{source}"), ""),
        one("PutBlockList", "PUT /dev/con/block?comp=blocklist\nx-ms-meta-a: b".into(), list),
        one("PutPage", format!("PUT /dev/con/page?comp=page\n{write}"), &page_of("page")),
        one(
            "PutPageFromUrl",
            format!(
                "PUT /dev/con/page?comp=page\n{write}\nx-ms-source-range: bytes=0-511\n{pages}"
            ),
            "",
        ),
        one("AppendBlock", "PUT /dev/con/append?comp=appendblock\nx-ms-meta-a: b".into(), "two"),
        one("AppendBlockFromUrl", format!("PUT /dev/con/append?comp=appendblock\n{source}"), ""),
        one("SealAppendBlob", "PUT /dev/con/append?comp=seal\nx-ms-meta-a: b".into(), ""),
        one("DeleteBlob", "DELETE /dev/con/block\nx-ms-meta-a: b".into(), ""),
    ]
}

#[test]
fn every_write_on_a_leased_blob_needs_the_lease() {
    let server = with_leased_blobs();
    for (name, request, body) in writes() {
        let bare = format!("{request}\n\n{body}");
        assert_eq!(server.refusal(&bare), "412 LeaseIdMissing", "{name}\n{request}");
        let wrong = format!("{request}\nx-ms-lease-id: {OTHER}\n\n{body}");
        let expected = "412 LeaseIdMismatchWithBlobOperation";
        assert_eq!(server.refusal(&wrong), expected, "{name}\n{request}");
        server.done(&format!("{request}\nx-ms-lease-id: {LEASE}\n\n{body}"));
    }
}

/// The test above has them all: what is not in it changes no blob, or nothing that a lease protects.
#[test]
fn every_write_of_the_table_is_tried() {
    let table: toml::Table = include_str!("../../operations.toml").parse().unwrap();
    let free = [
        // The lease itself, and what leaves the blob as it is.
        "LeaseBlob",
        "SnapshotBlob",
        "UndeleteBlob",
        // Whoever may set policies may set them on leased blobs: their requests have no lease id.
        "SetBlobImmutabilityPolicy",
        "DeleteBlobImmutabilityPolicy",
        "SetBlobLegalHold",
        // Only what is being copied can be called off, which `lazuli-shapes` tests.
        "AbortCopyBlob",
        "IncrementalCopyBlob",
    ];
    for row in table["operation"].as_array().unwrap() {
        let text = |field: &str| row[field].as_str().unwrap();
        let is_write = text("path").starts_with("/{container}/{blob}")
            && ["PUT", "DELETE"].contains(&text("method"));
        if is_write && !free.contains(&text("name")) {
            let is_tried = writes().iter().any(|(name, ..)| *name == text("name"));
            assert!(is_tried, "{} is not tried", text("name"));
        }
    }
}

#[test]
fn what_a_lease_does_not_protect_needs_none() {
    let server = with_leased_blobs();
    server.done("PUT /dev/con/block?comp=snapshot");
    server.done("PUT /dev/con/block?comp=legalhold\nx-ms-legal-hold: false");
    server.done("GET /dev/con/block?comp=tags");
    let snapshot = server.header("PUT /dev/con/block?comp=snapshot", "x-ms-snapshot");
    let tags = "<Tags><TagSet></TagSet></Tags>";
    server.done(&format!("PUT /dev/con/block?comp=tags&snapshot={snapshot}\n\n{tags}"));
}
