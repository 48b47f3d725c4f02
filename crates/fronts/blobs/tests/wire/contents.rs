//! Blobs and their contents.

use expect_test::expect;

use super::{check, with_blob, with_container};

#[test]
fn put_blob() {
    let server = with_container();
    check(
        &server,
        "PUT /dev/con/b\nx-ms-blob-type: BlockBlob\n\nhello",
        expect![[r#"
        201 Created
        etag: "<etag>"
        last-modified: <date>
        x-ms-request-server-encrypted: true
        x-ms-content-crc64: V0JSBnCFdzM=
        content-md5: XUFAKrxLKna5cZ2REBfFkg==
    "#]],
    );
    check(
        &server,
        "PUT /dev/con/a\nx-ms-blob-type: AppendBlob",
        expect![[r#"
        201 Created
        etag: "<etag>"
        last-modified: <date>
        x-ms-request-server-encrypted: true
    "#]],
    );
    let page = "PUT /dev/con/p\nx-ms-blob-type: PageBlob\nx-ms-blob-content-length: 512";
    check(
        &server,
        page,
        expect![[r#"
        201 Created
        etag: "<etag>"
        last-modified: <date>
        x-ms-request-server-encrypted: true
    "#]],
    );
    let other = "PUT /dev/con/b\nx-ms-blob-type: AppendBlob";
    assert_eq!(server.refusal(other), "409 InvalidBlobType");
}

#[test]
fn get_blob() {
    let server = with_blob();
    check(
        &server,
        "GET /dev/con/b",
        expect![[r#"
        200 OK
        etag: "<etag>"
        last-modified: <date>
        x-ms-meta-one: 1
        x-ms-lease-status: unlocked
        x-ms-lease-state: available
        x-ms-server-encrypted: true
        accept-ranges: bytes
        x-ms-blob-type: BlockBlob
        x-ms-creation-time: <date>
        content-type: application/octet-stream
        content-md5: XUFAKrxLKna5cZ2REBfFkg==

        hello
    "#]],
    );
    check(
        &server,
        "GET /dev/con/b\nx-ms-range: bytes=1-2",
        expect![[r#"
        206 Partial Content
        etag: "<etag>"
        last-modified: <date>
        x-ms-meta-one: 1
        x-ms-lease-status: unlocked
        x-ms-lease-state: available
        x-ms-server-encrypted: true
        accept-ranges: bytes
        x-ms-blob-type: BlockBlob
        x-ms-creation-time: <date>
        content-type: application/octet-stream
        content-range: bytes 1-2/5
        x-ms-blob-content-md5: XUFAKrxLKna5cZ2REBfFkg==

        el
    "#]],
    );
    check(
        &server,
        "GET /dev/con/b\nrange: bytes=3-\nx-ms-range-get-content-crc64: true",
        expect![[r#"
            206 Partial Content
            etag: "<etag>"
            last-modified: <date>
            x-ms-meta-one: 1
            x-ms-lease-status: unlocked
            x-ms-lease-state: available
            x-ms-server-encrypted: true
            accept-ranges: bytes
            x-ms-blob-type: BlockBlob
            x-ms-creation-time: <date>
            content-type: application/octet-stream
            content-range: bytes 3-4/5
            x-ms-blob-content-md5: XUFAKrxLKna5cZ2REBfFkg==
            x-ms-content-crc64: TqcD+5XZkOA=

            lo
        "#]],
    );
}

#[test]
fn a_range_behind_the_end_is_told_where_the_end_is() {
    let server = with_blob();
    let behind = "GET /dev/con/b\nx-ms-range: bytes=5-9";
    assert_eq!(server.refusal(behind), "416 InvalidRange");
    assert!(server.send(behind).contains("\ncontent-range: bytes */5\n"));
    server.done("PUT /dev/con/empty\nx-ms-blob-type: BlockBlob\ncontent-length: 0");
    assert!(server.send("GET /dev/con/empty\nrange: bytes=0-").contains("bytes */0\n"));
}

#[test]
fn get_blob_properties() {
    let server = with_blob();
    check(
        &server,
        "HEAD /dev/con/b",
        expect![[r#"
        200 OK
        etag: "<etag>"
        last-modified: <date>
        x-ms-meta-one: 1
        x-ms-lease-status: unlocked
        x-ms-lease-state: available
        x-ms-server-encrypted: true
        accept-ranges: bytes
        x-ms-blob-type: BlockBlob
        x-ms-creation-time: <date>
        content-type: application/octet-stream
        content-md5: XUFAKrxLKna5cZ2REBfFkg==
        x-ms-access-tier: Hot
        x-ms-access-tier-inferred: true
        content-length: 5
    "#]],
    );
    assert_eq!(server.refusal("GET /dev/con/b\nx-ms-range: bytes=5-"), "416 InvalidRange");
    assert_eq!(server.refusal("GET /dev/con/b\nx-ms-range: 1-2"), "400 InvalidHeaderValue");
    // As HTTP has it, a range that nobody knows is passed over.
    assert!(server.send("GET /dev/con/b\nrange: bytes=-2").starts_with("200"));
}

#[test]
fn a_blob_that_has_not_changed_is_not_sent() {
    let server = with_blob();
    let since = "GET /dev/con/b\nif-modified-since: Fri, 01 Jan 2100 00:00:00 GMT";
    check(
        &server,
        since,
        expect![[r#"
        304 Not Modified
        x-ms-error-code: ConditionNotMet
    "#]],
    );
    assert_eq!(server.refusal("GET /dev/con/b\nif-match: \"0x8D0\""), "412 ConditionNotMet");
    assert_eq!(server.refusal("GET /dev/con/b\nif-none-match: *"), "400 UnsatisfiableCondition");
}

#[test]
fn checksums_are_compared() {
    let server = with_container();
    let put = |sum: &str| {
        server.refusal(&format!("PUT /dev/con/b\nx-ms-blob-type: BlockBlob\n{sum}\n\nhello"))
    };
    assert_eq!(put("content-md5: XUFAKrxLKna5cZ2REBfFkg=="), "201 without a code");
    assert_eq!(put("content-md5: 1B2M2Y8AsgTpgAmY7PhCfg=="), "400 Md5Mismatch");
    assert_eq!(put("x-ms-content-crc64: V0JSBnCFdzM="), "201 without a code");
    assert_eq!(put("x-ms-content-crc64: AAAAAAAAAAA="), "400 Crc64Mismatch");
    assert_eq!(put("x-ms-blob-content-md5: 1B2M2Y8AsgTpgAmY7PhCfg=="), "400 Md5Mismatch");
}

#[test]
fn blocks() {
    let server = with_container();
    check(
        &server,
        "PUT /dev/con/b?comp=block&blockid=YQ%3D%3D\n\nhello",
        expect![[r#"
        201 Created
        x-ms-request-server-encrypted: true
        x-ms-content-crc64: V0JSBnCFdzM=
    "#]],
    );
    check(
        &server,
        "PUT /dev/con/b?comp=block&blockid=Yg%3D%3D\n\nworld",
        expect![[r#"
        201 Created
        x-ms-request-server-encrypted: true
        x-ms-content-crc64: v1g3+xj0pjQ=
    "#]],
    );
    check(
        &server,
        "GET /dev/con/b?comp=blocklist&blocklisttype=all",
        expect![[r#"
        200 OK
        content-type: application/xml
        x-ms-blob-content-length: 0

        <?xml version="1.0" encoding="utf-8"?><BlockList><CommittedBlocks></CommittedBlocks><UncommittedBlocks><Block><Name>YQ==</Name><Size>5</Size></Block><Block><Name>Yg==</Name><Size>5</Size></Block></UncommittedBlocks></BlockList>
    "#]],
    );
    let list = "<BlockList><Latest>Yg==</Latest><Latest>YQ==</Latest></BlockList>";
    check(
        &server,
        &format!("PUT /dev/con/b?comp=blocklist\n\n{list}"),
        expect![[r#"
        201 Created
        etag: "<etag>"
        last-modified: <date>
        x-ms-request-server-encrypted: true
    "#]],
    );
    check(
        &server,
        "GET /dev/con/b?comp=blocklist&blocklisttype=all",
        expect![[r#"
        200 OK
        content-type: application/xml
        etag: "<etag>"
        last-modified: <date>
        x-ms-blob-content-length: 10

        <?xml version="1.0" encoding="utf-8"?><BlockList><CommittedBlocks><Block><Name>Yg==</Name><Size>5</Size></Block><Block><Name>YQ==</Name><Size>5</Size></Block></CommittedBlocks><UncommittedBlocks></UncommittedBlocks></BlockList>
    "#]],
    );
    assert!(server.send("GET /dev/con/b").ends_with("worldhello\n"));
}

#[test]
fn appends() {
    let server = with_container();
    server.done("PUT /dev/con/a\nx-ms-blob-type: AppendBlob");
    check(
        &server,
        "PUT /dev/con/a?comp=appendblock\n\nhello",
        expect![[r#"
        201 Created
        etag: "<etag>"
        last-modified: <date>
        x-ms-request-server-encrypted: true
        x-ms-blob-append-offset: 0
        x-ms-blob-committed-block-count: 1
        x-ms-content-crc64: V0JSBnCFdzM=
    "#]],
    );
    let bounded = "PUT /dev/con/a?comp=appendblock\nx-ms-blob-condition-maxsize: 6\n\nhello";
    assert_eq!(server.refusal(bounded), "412 MaxBlobSizeConditionNotMet");
    check(
        &server,
        "PUT /dev/con/a?comp=seal",
        expect![[r#"
        200 OK
        etag: "<etag>"
        last-modified: <date>
        x-ms-blob-sealed: true
    "#]],
    );
}

#[test]
fn pages() {
    let server = with_container();
    let page = "PUT /dev/con/p\nx-ms-blob-type: PageBlob\nx-ms-blob-content-length: 2048";
    server.done(page);
    let write = "PUT /dev/con/p?comp=page\nx-ms-page-write: update\nx-ms-range: bytes=512-1023";
    check(
        &server,
        &format!("{write}\n\n{}", "x".repeat(512)),
        expect![[r#"
        201 Created
        etag: "<etag>"
        last-modified: <date>
        x-ms-request-server-encrypted: true
        x-ms-blob-sequence-number: 0
        x-ms-content-crc64: kxclNeFlVMY=
    "#]],
    );
    check(
        &server,
        "GET /dev/con/p?comp=pagelist",
        expect![[r#"
        200 OK
        content-type: application/xml
        etag: "<etag>"
        last-modified: <date>
        x-ms-blob-content-length: 2048

        <?xml version="1.0" encoding="utf-8"?><PageList><PageRange><Start>512</Start><End>1023</End></PageRange></PageList>
    "#]],
    );
    assert_eq!(server.refusal(&format!("{write}\n\nx")), "400 InvalidHeaderValue");
    let clear = "PUT /dev/con/p?comp=page\nx-ms-page-write: clear\nx-ms-range: bytes=0-2047";
    check(
        &server,
        clear,
        expect![[r#"
        201 Created
        etag: "<etag>"
        last-modified: <date>
        x-ms-blob-sequence-number: 0
    "#]],
    );
}

#[test]
fn snapshots() {
    let server = with_blob();
    check(
        &server,
        "PUT /dev/con/b?comp=snapshot",
        expect![[r#"
        201 Created
        etag: "<etag>"
        last-modified: <date>
        x-ms-request-server-encrypted: true
        x-ms-snapshot: <time>
    "#]],
    );
    assert_eq!(server.refusal("DELETE /dev/con/b"), "409 SnapshotsPresent");
    check(
        &server,
        "DELETE /dev/con/b\nx-ms-delete-snapshots: include",
        expect![[r#"
        202 Accepted
        x-ms-delete-type-permanent: true
    "#]],
    );
}

#[test]
fn tags() {
    let server = with_blob();
    let set = "<Tags><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tags>";
    check(
        &server,
        &format!("PUT /dev/con/b?comp=tags\n\n{set}"),
        expect![[r#"
        204 No Content
    "#]],
    );
    check(
        &server,
        "GET /dev/con/b?comp=tags",
        expect![[r#"
        200 OK
        content-type: application/xml

        <?xml version="1.0" encoding="utf-8"?><Tags><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tags>
    "#]],
    );
}

#[test]
fn a_customers_key_is_needed_again() {
    let server = with_container();
    let key = "x-ms-encryption-key: AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n\
               x-ms-encryption-key-sha256: Zmh6rfhivXdsj8GLjp+OIAiXFIVu4jOzkCpZHQ1fKSU=\n\
               x-ms-encryption-algorithm: AES256";
    server.done(&format!("PUT /dev/con/b\nx-ms-blob-type: BlockBlob\n{key}\n\nhello"));
    assert_eq!(server.refusal("GET /dev/con/b"), "409 BlobUsesCustomerSpecifiedEncryption");
    assert!(server.send(&format!("GET /dev/con/b\n{key}")).ends_with("hello\n"));
}
