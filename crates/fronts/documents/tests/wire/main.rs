//! What SDKs hide: raw requests in, raw answers out.

#![allow(clippy::unwrap_used, reason = "a panic in a test is the failure report")]

mod items;
mod ranges;
mod raw;

use raw::Server;

#[test]
fn every_refusal_has_a_body_with_code_and_message() {
    let server = Server::with_container();
    for (request, expected) in [
        ("GET /dbs/d\nauthorization: none", "401"),
        ("GET /dbs/d\nauthorization: type%3Dmaster", "401"),
        ("GET /dbs/d\nauthorization: as nobody", "401"),
        ("GET /dbs/d\nx-ms-date: Tue, 01 Nov 1994 08:12:31 GMT", "403"),
        ("GET /dbs/d\nx-ms-date: yesterday", "401"),
        ("GET /nothing", "400"),
        ("GET /dbs/none", "404"),
        ("GET /dbs/none/colls/c", "404/1003"),
        ("PUT /dbs/d\n\n{\"id\":\"d\"}", "405"),
        ("POST /dbs\n\n{", "400"),
        ("POST /dbs\n\n[]", "400"),
        ("POST /dbs\n\n{}", "400"),
        ("POST /dbs\n\n{\"id\":\"d\"}", "409"),
        ("GET /dbs/d/colls/c/docs/1", "400"),
        ("GET /dbs/d/colls/c/docs/1\nx-ms-documentdb-partitionkey: [\"a\"]", "404"),
        ("GET /dbs/d/colls/c/docs/1\nx-ms-documentdb-partitionkey: [", "400"),
        ("GET /dbs/d/colls/c/docs\nx-ms-max-item-count: 0", "400"),
        ("GET /dbs/d/colls/c/docs\nx-ms-continuation: ?", "400"),
        ("GET /dbs/d/colls/c/docs/1/attachments", "501"),
    ] {
        assert_eq!(server.refusal(request), expected, "{request}");
    }
}

#[test]
fn an_account_sees_its_own_databases_alone() {
    let server = Server::with_container();
    assert!(server.ok("GET /dbs").contains("\"_count\":1"));
    assert!(server.ok("GET /dbs\nauthorization: as other").contains("\"_count\":0"));
    assert_eq!(server.refusal("GET /dbs/d\nauthorization: as other"), "404");
}

#[test]
fn the_account_is_told_the_address_that_it_came_by() {
    let server = Server::start();
    let told = server.ok("GET /\nhost: proxy.test:7777");
    assert!(told.contains("\"databaseAccountEndpoint\":\"http://proxy.test:7777/\""), "{told}");
    assert!(told.contains("\"id\":\"dev\""), "{told}");
    let pem = server.ok("GET /_explorer/emulator.pem\nauthorization: none");
    assert!(pem.starts_with("-----BEGIN CERTIFICATE-----"));
}

#[test]
fn resources_are_found_by_name_and_by_resource_id() {
    let server = Server::with_container();
    let database = server.ok("GET /dbs/d");
    let container = server.ok("GET /dbs/d/colls/c/");
    let text = |body: &str, name: &str| {
        let start = format!("\"{name}\":\"");
        let rest = body.split_once(&start).unwrap().1;
        rest[..rest.find('"').unwrap()].to_owned()
    };
    let (database, container) = (text(&database, "_rid"), text(&container, "_rid"));
    let escape = |rid: &str| rid.replace('=', "%3D").replace('+', "%2B");
    let path = format!("/dbs/{}/colls/{}/", escape(&database), escape(&container));
    assert!(server.ok(&format!("GET {path}")).contains("\"id\":\"c\""));
    assert!(server.ok(&format!("GET {path}pkranges")).contains("\"PartitionKeyRanges\""));
}

#[test]
fn a_container_that_was_created_anew_is_another_one() {
    let server = Server::with_container();
    let rid = server.header("GET /dbs/d/colls/c/pkranges", "x-ms-content-path").unwrap();
    server.ok("DELETE /dbs/d/colls/c");
    let key = r#"{"paths":["/pk"],"kind":"Hash","version":2}"#;
    server.ok(&format!("POST /dbs/d/colls\n\n{{\"id\":\"c\",\"partitionKey\":{key}}}"));
    let create = format!(
        "POST /dbs/d/colls/c/docs\nx-ms-documentdb-partitionkey: [\"a\"]\n\
         x-ms-cosmos-intended-collection-rid: {rid}\n\n{{\"id\":\"1\",\"pk\":\"a\"}}"
    );
    assert_eq!(server.refusal(&create), "400/1024");
}

#[test]
fn conflicts_are_an_empty_feed() {
    let server = Server::with_container();
    assert!(server.ok("GET /dbs/d/colls/c/conflicts").contains("\"Conflicts\":[]"));
    assert_eq!(server.refusal("GET /dbs/d/colls/c/conflicts/x"), "404");
}

#[test]
fn client_encryption_keys_are_kept() {
    let server = Server::with_container();
    let key = r#"{"id":"k","encryptionAlgorithm":"AEAD_AES_256_CBC_HMAC_SHA256",
        "wrappedDataEncryptionKey":"AAEC","keyWrapMetadata":{"type":"t","name":"n","value":"v"}}"#;
    server.ok(&format!("POST /dbs/d/clientencryptionkeys\n\n{key}"));
    let found = server.ok("GET /dbs/d/clientencryptionkeys/k");
    assert!(found.contains("\"wrappedDataEncryptionKey\":\"AAEC\""), "{found}");
    assert!(server.ok("GET /dbs/d/clientencryptionkeys").contains("\"ClientEncryptionKeys\":[{"));
}
