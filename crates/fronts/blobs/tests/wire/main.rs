//! What SDKs hide: raw requests in, raw answers out, with times, versions and ids masked.
//!
//! `UPDATE_EXPECT=1 cargo test -p lazuli-blobs` writes the answers anew.

#![allow(clippy::unwrap_used, reason = "a panic in a test is the failure report")]

mod access;
mod checksums;
mod contents;
mod details;
mod leases;
mod lists;
mod raw;
mod service;
mod sources;
mod states;

use expect_test::{Expect, expect};
use raw::Server;

#[track_caller]
fn check(server: &Server, request: &str, expected: Expect) {
    expected.assert_eq(&server.send(request));
}

fn with_container() -> Server {
    let server = Server::start();
    server.done("PUT /dev/con?restype=container");
    server
}

fn with_blob() -> Server {
    let server = with_container();
    server.done("PUT /dev/con/b\nx-ms-blob-type: BlockBlob\nx-ms-meta-one: 1\n\nhello");
    server
}

/// What other tests leave out because it is in every answer.
#[test]
fn every_answer_says_what_it_answers() {
    let server = with_container();
    let mine = "GET /dev/con/b\nx-ms-client-request-id: mine";
    let expected = expect![[r#"
        404 Not Found
        x-ms-error-code: BlobNotFound
        content-type: application/xml
        x-ms-request-id: 00000000-0000-0000-0000-000000000007
        x-ms-version: 2021-12-02
        x-ms-client-request-id: mine
        server: Lazuli
        x-content-type-options: nosniff

        <?xml version="1.0" encoding="utf-8"?><Error><Code>BlobNotFound</Code><Message>The specified blob does not exist.
        RequestId:00000000-0000-0000-0000-000000000007
        Time:<time></Message></Error>
    "#]];
    expected.assert_eq(&server.try_send(mine).unwrap());
}

#[test]
fn create_container() {
    let server = Server::start();
    check(
        &server,
        "PUT /dev/con?restype=container\nx-ms-meta-one: 1",
        expect![[r#"
        201 Created
        etag: "<etag>"
        last-modified: <date>
    "#]],
    );
    check(
        &server,
        "GET /dev/con?restype=container",
        expect![[r#"
        200 OK
        etag: "<etag>"
        last-modified: <date>
        x-ms-meta-one: 1
        x-ms-lease-status: unlocked
        x-ms-lease-state: available
        x-ms-has-immutability-policy: false
        x-ms-has-legal-hold: false
        x-ms-immutable-storage-with-versioning-enabled: false
        x-ms-default-encryption-scope: $account-encryption-key
        x-ms-deny-encryption-scope-override: false
    "#]],
    );
    assert_eq!(server.refusal("PUT /dev/con?restype=container"), "409 ContainerAlreadyExists");
    check(
        &server,
        "DELETE /dev/con?restype=container",
        expect![[r#"
        202 Accepted
    "#]],
    );
    assert_eq!(server.refusal("GET /dev/con?restype=container"), "404 ContainerNotFound");
}

#[test]
fn container_acl() {
    let server = with_container();
    let body = "<SignedIdentifiers><SignedIdentifier><Id>a</Id><AccessPolicy><Start>2030-01-01\
                </Start><Expiry>2030-01-02T00:00:00Z</Expiry><Permission>r</Permission>\
                </AccessPolicy></SignedIdentifier></SignedIdentifiers>";
    let set = "PUT /dev/con?restype=container&comp=acl\nx-ms-blob-public-access: blob";
    server.done(&format!("{set}\n\n{body}"));
    check(
        &server,
        "GET /dev/con?restype=container&comp=acl",
        expect![[r#"
        200 OK
        content-type: application/xml
        etag: "<etag>"
        last-modified: <date>
        x-ms-blob-public-access: blob

        <?xml version="1.0" encoding="utf-8"?><SignedIdentifiers><SignedIdentifier><Id>a</Id><AccessPolicy><Start><time></Start><Expiry><time></Expiry><Permission>r</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>
    "#]],
    );
}

#[test]
fn lease_container() {
    let server = with_container();
    let lease = "PUT /dev/con?restype=container&comp=lease\nx-ms-lease-action: ";
    check(
        &server,
        &format!("{lease}acquire\nx-ms-lease-duration: 15"),
        expect![[r#"
        201 Created
        etag: "<etag>"
        last-modified: <date>
        x-ms-lease-id: <id>
    "#]],
    );
    check(
        &server,
        &format!("{lease}break\nx-ms-lease-break-period: 0"),
        expect![[r#"
        202 Accepted
        etag: "<etag>"
        last-modified: <date>
        x-ms-lease-time: 0
    "#]],
    );
}
