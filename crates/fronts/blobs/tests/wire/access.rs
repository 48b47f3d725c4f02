//! Who may do what.

use super::raw::{Server, shared_access};
use super::{with_blob, with_container};

/// The parameters of a signature of the account, signed.
fn account_signed(permissions: &str, types: &str) -> String {
    let (version, expiry) = ("2021-12-02", "2100-01-01T00:00:00Z");
    let text = format!("dev\n{permissions}\nb\n{types}\n\n{expiry}\n\n\n{version}\n\n");
    let parameters = format!("sp={permissions}&ss=b&srt={types}&se={expiry}&sv={version}");
    shared_access(&parameters, &text)
}

#[test]
fn strangers_are_told_to_sign() {
    let server = with_blob();
    let stranger = "GET /dev/con/b\nauthorization: none";
    assert_eq!(server.refusal(stranger), "401 NoAuthenticationInformation");
    let old = format!("{stranger}\nx-ms-version: 2018-03-28");
    assert_eq!(server.refusal(&old), "404 ResourceNotFound");
    let wrong = "GET /dev/con/b\nauthorization: SharedKey dev:AAEC";
    assert_eq!(server.refusal(wrong), "403 AuthenticationFailed");
}

#[test]
fn what_is_public_is_read_by_anybody() {
    let server = with_blob();
    let set = |level: &str| {
        let set = "PUT /dev/con?restype=container&comp=acl";
        server.done(&format!("{set}\nx-ms-blob-public-access: {level}"));
    };
    let read =
        |target: &str| server.send(&format!("{target}\nauthorization: none"))[..3].to_owned();
    set("blob");
    assert_eq!(read("GET /dev/con/b"), "200");
    assert_eq!(read("HEAD /dev/con/b"), "200");
    assert_eq!(read("GET /dev/con?restype=container"), "401");
    assert_eq!(read("DELETE /dev/con/b"), "401");
    set("container");
    assert_eq!(read("GET /dev/con?restype=container"), "200");
}

#[test]
fn a_signature_grants_what_it_says() {
    let server = with_blob();
    let get = |permissions, types| {
        server.refusal(&format!("GET /dev/con/b?{}", account_signed(permissions, types)))
    };
    assert_eq!(get("r", "o"), "200 without a code");
    assert_eq!(get("w", "o"), "403 AuthorizationPermissionMismatch");
    assert_eq!(get("r", "c"), "403 AuthorizationResourceTypeMismatch");
}

#[test]
fn tags_have_a_permission_of_their_own() {
    let server = with_container();
    let put = |permissions| {
        let target = format!("PUT /dev/con/b?{}", account_signed(permissions, "o"));
        server.refusal(&format!("{target}\nx-ms-blob-type: BlockBlob\nx-ms-tags: a=b\n\nx"))
    };
    assert_eq!(put("w"), "403 AuthorizationPermissionMismatch");
    assert_eq!(put("wt"), "201 without a code");
}

#[test]
fn who_may_create_may_not_overwrite() {
    let server = with_container();
    let put = || {
        let target = format!("PUT /dev/con/b?{}", account_signed("c", "o"));
        server.refusal(&format!("{target}\nx-ms-blob-type: BlockBlob\n\nx"))
    };
    assert_eq!(put(), "201 without a code");
    assert_eq!(put(), "403 UnauthorizedBlobOverwrite");
}

#[test]
fn policies_are_for_keys_only() {
    let server = with_container();
    let signed = account_signed("rwdl", "sco");
    let get = format!("GET /dev/con?restype=container&comp=acl&{signed}");
    assert_eq!(server.refusal(&get), "403 AuthorizationFailure");
}

#[test]
fn the_secondary_does_not_write() {
    let server = Server::start();
    assert_eq!(
        server.refusal("PUT /dev-secondary/con?restype=container"),
        "403 InsufficientAccountPermissions"
    );
}
