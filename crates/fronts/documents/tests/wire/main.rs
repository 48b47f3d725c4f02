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

#[test]
fn a_token_ends_with_its_permission() {
    let server = Server::with_container();
    server.ok("POST /dbs/d/users\n\n{\"id\":\"u\"}");
    let permission = |mode: &str| {
        format!("{{\"id\":\"p\",\"permissionMode\":\"{mode}\",\"resource\":\"dbs/d/colls/c\"}}")
    };
    let made = server.ok(&format!("POST /dbs/d/users/u/permissions\n\n{}", permission("Read")));
    let token = made.split_once("\"_token\":\"").unwrap().1.split_once('"').unwrap().0.to_owned();
    let token = lazuli_http::uri::percent_encode(&token);
    let read = format!("GET /dbs/d/colls/c/docs\nauthorization: {token}");
    server.ok(&read);
    // One that grants something else by now is another permission.
    server.ok(&format!("PUT /dbs/d/users/u/permissions/p\n\n{}", permission("All")));
    assert_eq!(server.refusal(&read), "403");
    server.ok(&format!("PUT /dbs/d/users/u/permissions/p\n\n{}", permission("Read")));
    server.ok(&read);
    server.ok("DELETE /dbs/d/users/u/permissions/p");
    assert_eq!(server.refusal(&read), "403");
}

#[test]
fn a_container_tells_what_its_ranges_hold() {
    let server = Server::with_container();
    for id in 0..3 {
        server.ok(&format!(
            "POST /dbs/d/colls/c/docs\nx-ms-documentdb-partitionkey: [\"a\"]\n\n\
             {{\"id\":\"{id}\",\"pk\":\"a\",\"text\":\"{}\"}}",
            "x".repeat(2_000)
        ));
    }
    let asked = "GET /dbs/d/colls/c\nx-ms-documentdb-populatepartitionstatistics: True\n\
                 x-ms-documentdb-populatequotainfo: True";
    let shown = server.ok(asked);
    assert!(shown.contains("\"documentCount\":3"), "{shown}");
    let number = |text: &str, name: &str| {
        let rest = text.split_once(name).unwrap().1;
        let digits: String =
            rest.chars().take_while(|sign| "0123456789.".contains(*sign)).collect();
        digits.parse::<f64>().unwrap()
    };
    assert!((6.0..20.0).contains(&number(&shown, "\"sizeInKB\":")), "{shown}");
    assert!(number(&shown, "\"unitsPerSecond\":") > 0.0, "{shown}");
    let usage = server.header(asked, "x-ms-resource-usage").unwrap();
    assert!(usage.contains("documentsCount=3;"), "{usage}");
    assert!((6.0..20.0).contains(&number(&usage, "collectionSize=")), "{usage}");
}

/// Holds a container, exchanges it for another one, and lets it go.
#[test]
fn two_containers_exchange_their_names_while_writes_are_held() {
    let server = Server::with_container();
    let key = r#"{"paths":["/other"],"kind":"Hash","version":2}"#;
    server.ok(&format!("POST /dbs/d/colls\n\n{{\"id\":\"n\",\"partitionKey\":{key}}}"));
    let create = |id: &str| {
        format!(
            "POST /dbs/d/colls/c/docs\nx-ms-documentdb-partitionkey: [\"a\"]\n\n\
             {{\"id\":\"{id}\",\"pk\":\"a\",\"other\":\"a\"}}"
        )
    };
    let switch = |step: &str| format!("POST /dbs/d/colls/c\nx-lazuli-switch: {step}");
    server.ok(&create("1"));
    // What is not held cannot be exchanged.
    assert_eq!(server.refusal(&switch("exchange n")), "412");
    for bad in ["hold", "hold 0", "hold 9999", "exchange", "close"] {
        assert_eq!(server.refusal(&switch(bad)), "400", "{bad}");
    }
    server.ok(&switch("hold 60"));
    assert_eq!(server.refusal(&create("2")), "429/3200");
    server.ok("GET /dbs/d/colls/c/docs/1\nx-ms-documentdb-partitionkey: [\"a\"]");
    server.ok(&switch("open"));
    server.ok(&create("2"));
    // A hold that nobody ends ends by itself.
    server.ok(&switch("hold 1"));
    std::thread::sleep(std::time::Duration::from_millis(1_100));
    assert_eq!(server.refusal(&switch("exchange n")), "412");
    server.release_lapsed();
    server.ok(&create("3"));
    server.ok(&switch("hold 60"));
    assert_eq!(server.refusal(&switch("exchange none")), "404/1003");
    server.ok(&switch("exchange n"));
    assert!(server.ok("GET /dbs/d/colls/c").contains("\"paths\":[\"/other\"]"));
    assert!(server.ok("GET /dbs/d/colls/n").contains("\"paths\":[\"/pk\"]"));
    server.ok(&create("4"));
    assert!(server.ok("GET /dbs/d/colls/c/docs").contains("\"_count\":1"));
    assert!(server.ok("GET /dbs/d/colls/n/docs").contains("\"_count\":3"));
    server.release_lapsed();
    let former = create("5").replace("/colls/c/", "/colls/n/");
    assert_eq!(server.refusal(&former), "429/3200");
}

#[test]
fn an_index_is_built_anew_and_tells_how_far_it_is() {
    let server = Server::with_container();
    server.ok(
        "POST /dbs/d/colls/c/docs\nx-ms-documentdb-partitionkey: [\"a\"]\n\n{\"id\":\"1\",\"pk\":\"a\"}",
    );
    let progress = || {
        let read = "GET /dbs/d/colls/c\nx-ms-documentdb-populatequotainfo: true";
        let name = "x-ms-documentdb-collection-index-transformation-progress";
        server.header(read, name).unwrap()
    };
    assert_eq!(progress(), "100");
    let rebuild = |how: &str| format!("POST /dbs/d/colls/c\nx-lazuli-index: {how}");
    assert_eq!(server.refusal(&rebuild("drop")), "400");
    assert!(server.send(&rebuild("rebuild")).starts_with("202 "));
    assert_eq!(progress(), "0");
    server.tend();
    assert_eq!(progress(), "100");
}
