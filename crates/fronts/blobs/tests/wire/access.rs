//! Who may do what.

use super::raw::{Server, shared_access};
use super::{with_blob, with_container};

/// The parameters of a signature of the account, signed.
fn account_signed(permissions: &str, types: &str) -> String {
    signed_for("dev", permissions, types)
}

pub(crate) fn signed_for(account: &str, permissions: &str, types: &str) -> String {
    let (version, expiry) = ("2021-12-02", "2100-01-01T00:00:00Z");
    let text = format!("{account}\n{permissions}\nb\n{types}\n\n{expiry}\n\n\n{version}\n\n");
    let parameters = format!("sp={permissions}&ss=b&srt={types}&se={expiry}&sv={version}");
    shared_access(&parameters, &text)
}

#[test]
fn strangers_are_told_to_sign() {
    let server = with_blob();
    let stranger = "GET /dev/con/b\nauthorization: none";
    assert_eq!(server.refusal(stranger), "401 NoAuthenticationInformation");
    let challenge = "\nwww-authenticate: Bearer authorization_uri=https://login.microsoftonline.com/\
                     common/oauth2/authorize resource_id=https://storage.azure.com\n";
    assert!(server.send(stranger).contains(challenge));
    let old = format!("{stranger}\nx-ms-version: 2018-03-28");
    assert_eq!(server.refusal(&old), "404 ResourceNotFound");
    let wrong = "GET /dev/con/b\nauthorization: SharedKey dev:AAEC";
    assert_eq!(server.refusal(wrong), "403 AuthenticationFailed");
    assert!(!server.send(wrong).contains("www-authenticate"));
}

#[test]
fn tokens_need_a_connection_that_nobody_else_reads() {
    let server = with_blob();
    let answer = server.send("GET /dev/con/b\nauthorization: Bearer a.b.c");
    assert!(answer.starts_with("403"), "{answer}");
    assert!(answer.contains("Authentication scheme Bearer is not allowed with HTTP."), "{answer}");
}

#[test]
fn a_folder_signature_lists_what_is_in_the_folder() {
    let server = with_container();
    for name in ["top/a", "top/in/b", "topmost/c", "d"] {
        server.done(&format!("PUT /dev/con/{name}\nx-ms-blob-type: BlockBlob\n\nx"));
    }
    let (version, expiry) = ("2021-12-02", "2100-01-01T00:00:00Z");
    let text = format!("rlf\n\n{expiry}\n/blob/dev/con/top\n\n\n\n{version}\nd\n\n\n\n\n\n\n");
    let parameters = format!("sp=rlf&se={expiry}&sv={version}&sr=d&sdd=1");
    let signed = shared_access(&parameters, &text);
    let list = |query: &str| {
        server.send(&format!("GET /dev/con?restype=container&comp=list{query}&{signed}"))
    };
    let listed = list("&prefix=top/");
    assert!(listed.starts_with("200"), "{listed}");
    assert_eq!(listed.matches("<Blob>").count(), 2, "{listed}");
    assert!(list("&prefix=top/in/").starts_with("200"));
    for query in ["", "&prefix=", "&prefix=top", "&prefix=topmost/", "&prefix=to"] {
        assert!(list(query).starts_with("403"), "{query}");
    }
    let find =
        format!("GET /dev/con?restype=container&comp=blobs&where=a%3D'b'&prefix=top/&{signed}");
    assert_eq!(server.refusal(&find), "403 AuthorizationFailure");
    let delete = format!("DELETE /dev/con?restype=container&prefix=top/&{signed}");
    assert_eq!(server.refusal(&delete), "403 AuthorizationFailure");
}

#[test]
fn another_accounts_blob_is_copied_by_signature() {
    let server = with_container();
    server.done("PUT /other/con?restype=container");
    server.done("PUT /other/con/b\nx-ms-blob-type: BlockBlob\nx-ms-meta-a: b\n\nhello");
    let copy = |signature: &str| {
        let source = format!("http://127.0.0.1:10000/other/con/b{signature}");
        server.refusal(&format!("PUT /dev/con/copy\nx-ms-copy-source: {source}"))
    };
    assert_eq!(copy(""), "401 CannotVerifyCopySource");
    let read = |account| format!("?{}", signed_for(account, "r", "o"));
    assert_eq!(copy(&read("dev")), "403 CannotVerifyCopySource");
    assert_eq!(copy(&read("other")), "202 without a code");
    assert_eq!(server.header("GET /dev/con/copy", "x-ms-meta-a"), "b");
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
