//! What SDKs hide: raw requests in, raw answers out, with times and versions masked.
//!
//! `UPDATE_EXPECT=1 cargo test -p lazuli-tables` writes the answers anew.

#![allow(clippy::unwrap_used, reason = "a panic in a test is the failure report")]

mod access;
mod limits;
mod older_clients;
mod raw;
mod service;
mod transactions;

use expect_test::{Expect, expect};
use raw::Server;

#[track_caller]
fn check(server: &Server, request: &str, expected: Expect) {
    expected.assert_eq(&server.send(request));
}

fn with_table() -> Server {
    let server = Server::start();
    server.send("POST /dev/Tables\n\n{\"TableName\":\"People\"}");
    server
}

fn with_entity() -> Server {
    let server = with_table();
    server.send("POST /dev/People\n\n{\"PartitionKey\":\"p\",\"RowKey\":\"r\",\"Age\":23}");
    server
}

/// What other tests leave out because it is in every answer.
#[test]
fn every_answer_says_what_it_answers() {
    let server = with_table();
    let mine = "POST /dev/Tables\nx-ms-client-request-id: mine\n\n{\"TableName\":\"People\"}";
    let expected = expect![[r#"
        409 Conflict
        x-ms-error-code: TableAlreadyExists
        content-type: application/json;odata=minimalmetadata;streaming=true;charset=utf-8
        x-ms-request-id: 00000000-0000-0000-0000-000000000007
        x-ms-version: 2019-02-02
        x-ms-client-request-id: mine
        server: Lazuli
        x-content-type-options: nosniff

        {"odata.error":{"code":"TableAlreadyExists","message":{"lang":"en-US","value":"The table specified already exists.\nRequestId:00000000-0000-0000-0000-000000000007\nTime:<time>"}}}
    "#]];
    expected.assert_eq(&server.try_send(mine).unwrap());
}

#[test]
fn create_table() {
    let server = Server::start();
    check(
        &server,
        "POST /dev/Tables\naccept: application/json;odata=fullmetadata\n\n{\"TableName\":\"People\"}",
        expect![[r#"
            201 Created
            content-type: application/json;odata=fullmetadata;streaming=true;charset=utf-8
            cache-control: no-cache
            location: http://127.0.0.1:10002/dev/Tables('People')

            {"odata.metadata":"http://127.0.0.1:10002/dev/$metadata#Tables/@Element","odata.type":"dev.Tables","odata.id":"http://127.0.0.1:10002/dev/Tables('People')","odata.editLink":"Tables('People')","TableName":"People"}
        "#]],
    );
    let again = "POST /dev/Tables\n\n{\"TableName\":\"People\"}";
    assert_eq!(server.refusal(again), "409 TableAlreadyExists");
    assert_eq!(server.refusal(&again.replace("People", "PEOPLE")), "409 TableAlreadyExists");
    let quiet = "POST /dev/Tables\nprefer: return-no-content\n\n{\"TableName\":\"Other\"}";
    check(
        &server,
        quiet,
        expect![[r#"
        204 No Content
        preference-applied: return-no-content
        dataserviceid: http://127.0.0.1:10002/dev/Tables('Other')
        location: http://127.0.0.1:10002/dev/Tables('Other')
    "#]],
    );
    assert_eq!(
        server.refusal("POST /dev/Tables\n\n{\"TableName\":\"no-good\"}"),
        "400 InvalidResourceName"
    );
}

/// The page comes in the order of hashes, whole all the same.
#[test]
fn a_table_may_hash_its_keys() {
    let server = Server::start();
    let create = "POST /dev/Tables\nx-lazuli-map: hash\n\n{\"TableName\":\"People\"}";
    assert!(server.send(create).starts_with("201"));
    for key in ["a", "b", "c", "d"] {
        let entity = format!("{{\"PartitionKey\":\"{key}\",\"RowKey\":\"r\"}}");
        assert!(server.send(&format!("POST /dev/People\n\n{entity}")).starts_with("201"));
    }
    let (mut found, mut next) = (Vec::new(), String::new());
    loop {
        let page = server.send(&format!("GET /dev/People()?$top=1&$select=PartitionKey{next}"));
        let key = page.split("\"PartitionKey\":\"").nth(1).map(|rest| rest[..1].to_owned());
        found.extend(key);
        let token = |name: &str| {
            let line = page.lines().find_map(|line| line.strip_prefix(name));
            line.map(str::to_owned)
        };
        let Some(partition) = token("x-ms-continuation-nextpartitionkey: ") else { break };
        let row = token("x-ms-continuation-nextrowkey: ").unwrap();
        next = format!("&NextPartitionKey={partition}&NextRowKey={row}");
    }
    assert_ne!(found, ["a", "b", "c", "d"], "hashes have an order of their own");
    found.sort_unstable();
    assert_eq!(found, ["a", "b", "c", "d"]);
    let bad = create.replace("hash", "heap").replace("People", "Other");
    assert_eq!(server.refusal(&bad), "400 InvalidHeaderValue");
}

#[test]
fn query_tables() {
    let server = with_table();
    server.send("POST /dev/Tables\n\n{\"TableName\":\"Places\"}");
    server.send("POST /other/Tables\n\n{\"TableName\":\"Hidden\"}");
    check(
        &server,
        "GET /dev/Tables",
        expect![[r#"
        200 OK
        cache-control: no-cache

        {"odata.metadata":"http://127.0.0.1:10002/dev/$metadata#Tables","value":[{"TableName":"People"},{"TableName":"Places"}]}
    "#]],
    );
    check(
        &server,
        "GET /dev/Tables?$top=1&$format=application/json;odata=nometadata",
        expect![[r#"
        200 OK
        content-type: application/json;odata=nometadata;streaming=true;charset=utf-8
        cache-control: no-cache
        x-ms-continuation-nexttablename: 1!cGVvcGxl

        {"value":[{"TableName":"People"}]}
    "#]],
    );
    check(
        &server,
        "GET /dev/Tables?NextTableName=1!cGVvcGxl\naccept: application/json;odata=fullmetadata",
        expect![[r#"
            200 OK
            content-type: application/json;odata=fullmetadata;streaming=true;charset=utf-8
            cache-control: no-cache

            {"odata.metadata":"http://127.0.0.1:10002/dev/$metadata#Tables","value":[{"odata.type":"dev.Tables","odata.id":"http://127.0.0.1:10002/dev/Tables('Places')","odata.editLink":"Tables('Places')","TableName":"Places"}]}
        "#]],
    );
}

#[test]
fn delete_table() {
    let server = with_entity();
    check(
        &server,
        "DELETE /dev/Tables('People')",
        expect![[r#"
        204 No Content
    "#]],
    );
    assert_eq!(server.refusal("DELETE /dev/Tables('People')"), "404 ResourceNotFound");
    assert_eq!(server.refusal("GET /dev/People()"), "404 TableNotFound");
}

#[test]
fn insert_entity() {
    let server = with_table();
    let entity =
        r#"{"PartitionKey":"it's","RowKey":"r","Age":23,"Big@odata.type":"Edm.Int64","Big":"5"}"#;
    check(
        &server,
        &format!("POST /dev/People\n\n{entity}"),
        expect![[r#"
        201 Created
        cache-control: no-cache
        location: http://127.0.0.1:10002/dev/People(PartitionKey='it%27%27s',RowKey='r')
        etag: W/"datetime'<time>'"

        {"odata.metadata":"http://127.0.0.1:10002/dev/$metadata#People/@Element","odata.etag":"W/\"datetime'<time>'\"","PartitionKey":"it's","RowKey":"r","Timestamp":"<time>","Age":23,"Big@odata.type":"Edm.Int64","Big":"5"}
    "#]],
    );
    assert_eq!(server.refusal(&format!("POST /dev/People\n\n{entity}")), "409 EntityAlreadyExists");
    let quiet =
        "POST /dev/People\nprefer: return-no-content\n\n{\"PartitionKey\":\"\",\"RowKey\":\"\"}";
    check(
        &server,
        quiet,
        expect![[r#"
        204 No Content
        preference-applied: return-no-content
        dataserviceid: http://127.0.0.1:10002/dev/People(PartitionKey='',RowKey='')
        location: http://127.0.0.1:10002/dev/People(PartitionKey='',RowKey='')
        etag: W/"datetime'<time>'"
    "#]],
    );
    assert_eq!(
        server.refusal("POST /dev/People\n\n{\"PartitionKey\":\"p\"}"),
        "400 PropertiesNeedValue"
    );
}

#[test]
fn get_entity_at_every_level() {
    let server = with_entity();
    let get = "GET /dev/People(PartitionKey='p',RowKey='r')";
    for (level, expected) in [
        (
            "nometadata",
            expect![[r#"
            200 OK
            content-type: application/json;odata=nometadata;streaming=true;charset=utf-8
            cache-control: no-cache
            etag: W/"datetime'<time>'"

            {"PartitionKey":"p","RowKey":"r","Timestamp":"<time>","Age":23}
        "#]],
        ),
        (
            "minimalmetadata",
            expect![[r#"
            200 OK
            cache-control: no-cache
            etag: W/"datetime'<time>'"

            {"odata.metadata":"http://127.0.0.1:10002/dev/$metadata#People/@Element","odata.etag":"W/\"datetime'<time>'\"","PartitionKey":"p","RowKey":"r","Timestamp":"<time>","Age":23}
        "#]],
        ),
        (
            "fullmetadata",
            expect![[r#"
            200 OK
            content-type: application/json;odata=fullmetadata;streaming=true;charset=utf-8
            cache-control: no-cache
            etag: W/"datetime'<time>'"

            {"odata.metadata":"http://127.0.0.1:10002/dev/$metadata#People/@Element","odata.type":"dev.People","odata.id":"http://127.0.0.1:10002/dev/People(PartitionKey='p',RowKey='r')","odata.etag":"W/\"datetime'<time>'\"","odata.editLink":"People(PartitionKey='p',RowKey='r')","PartitionKey":"p","RowKey":"r","Timestamp@odata.type":"Edm.DateTime","Timestamp":"<time>","Age":23}
        "#]],
        ),
    ] {
        let request = format!("{get}\naccept: application/json;odata={level}");
        check(&server, &request, expected);
    }
    check(
        &server,
        "GET /dev/People(RowKey='r',PartitionKey='p')?$select=Age,Name",
        expect![[r#"
        200 OK
        cache-control: no-cache
        etag: W/"datetime'<time>'"

        {"odata.metadata":"http://127.0.0.1:10002/dev/$metadata#People/@Element","odata.etag":"W/\"datetime'<time>'\"","Age":23,"Name":null}
    "#]],
    );
    assert_eq!(
        server.refusal("GET /dev/People(PartitionKey='p',RowKey='x')"),
        "404 ResourceNotFound"
    );
}

#[test]
fn errors_are_xml_for_who_asks() {
    let server = with_table();
    let get = "GET /dev/People(PartitionKey='p',RowKey='x')\naccept: application/xml";
    check(
        &server,
        get,
        expect![[r#"
        415 Unsupported Media Type
        x-ms-error-code: AtomFormatNotSupported
        content-type: application/xml

        <?xml version="1.0" encoding="utf-8" standalone="yes"?><error xmlns="http://schemas.microsoft.com/ado/2007/08/dataservices/metadata"><code>AtomFormatNotSupported</code><message xml:lang="en-US">Atom format is not supported.
        RequestId:00000000-0000-0000-0000-000000000007
        Time:<time></message></error>
    "#]],
    );
}

#[test]
fn query_entities_page_by_page() {
    let server = with_entity();
    server.send("POST /dev/People\n\n{\"PartitionKey\":\"q\",\"RowKey\":\"r\",\"Age\":42}");
    let query = "GET /dev/People()?$top=1&$select=Age\naccept: application/json;odata=nometadata";
    check(
        &server,
        query,
        expect![[r#"
        200 OK
        content-type: application/json;odata=nometadata;streaming=true;charset=utf-8
        cache-control: no-cache
        x-ms-continuation-nextpartitionkey: 1!cA
        x-ms-continuation-nextrowkey: 1!cg

        {"value":[{"Age":23}]}
    "#]],
    );
    let rest = "GET /dev/People()?$select=Age&NextPartitionKey=1!cA&NextRowKey=1!cg\naccept: application/json;odata=nometadata";
    check(
        &server,
        rest,
        expect![[r#"
        200 OK
        content-type: application/json;odata=nometadata;streaming=true;charset=utf-8
        cache-control: no-cache

        {"value":[{"Age":42}]}
    "#]],
    );
    check(
        &server,
        "GET /dev/People()?$filter=Age%20gt%20100",
        expect![[r#"
        200 OK
        cache-control: no-cache

        {"odata.metadata":"http://127.0.0.1:10002/dev/$metadata#People","value":[]}
    "#]],
    );
    let impossible = server.send("GET /dev/People()?$filter=PartitionKey%20eq%205");
    assert!(impossible.contains("\"value\":[]"), "{impossible}");
    assert_eq!(server.refusal("GET /dev/People()?$filter=Age%20gt"), "400 InvalidInput");
    assert_eq!(server.refusal("GET /dev/People()?$top=1001"), "400 InvalidInput");
}

#[test]
fn entities_of_a_list_look_as_each_does_alone() {
    let server = with_table();
    let entities = [
        ("a", "1", r#""Name":"x","Size":1"#),
        ("a", "2", r#""Name":"y","Size":"2","Size@odata.type":"Edm.Int64""#),
        ("a", "3", r#""Size":3"#),
        ("b", "1", r#""Näme":"ö\"","Name":"z""#),
        ("b", "2", ""),
    ];
    for (partition, row, rest) in entities {
        let keys = format!("\"PartitionKey\":\"{partition}\",\"RowKey\":\"{row}\"");
        let comma = if rest.is_empty() { "" } else { "," };
        server.send(&format!("POST /dev/People\n\n{{{keys}{comma}{rest}}}"));
    }
    for level in ["nometadata", "minimalmetadata", "fullmetadata"] {
        let get = |target: &str| {
            let accept = format!("accept: application/json;odata={level}");
            let answer = server.send(&format!("GET /dev/{target}\n{accept}"));
            let body = answer.rsplit_once("\n\n").unwrap().1;
            serde_json::from_str::<serde_json::Value>(body).unwrap()
        };
        let alone = entities.map(|(partition, row, _)| {
            let mut one = get(&format!("People(PartitionKey='{partition}',RowKey='{row}')"));
            one.as_object_mut().unwrap().remove("odata.metadata");
            one
        });
        assert_eq!(get("People()")["value"], serde_json::Value::from(alone.to_vec()));
    }
}

#[test]
fn conditions_decide() {
    let server = with_entity();
    let entity = "/dev/People(PartitionKey='p',RowKey='r')";
    assert_eq!(server.refusal(&format!("DELETE {entity}")), "400 MissingRequiredHeader");
    let stale = "if-match: W/\"datetime'2001-01-01T00%3A00%3A00.0000000Z'\"";
    assert_eq!(
        server.refusal(&format!("DELETE {entity}\n{stale}")),
        "412 UpdateConditionNotSatisfied"
    );
    assert_eq!(
        server.refusal(&format!("PUT {entity}\n{stale}\n\n{{\"Age\":1}}")),
        "412 UpdateConditionNotSatisfied"
    );
    assert_eq!(
        server.refusal(&format!("PUT {entity}\nif-match: nonsense\n\n{{}}")),
        "400 InvalidInput"
    );
    let tunnelled =
        format!("POST {entity}\nx-http-method: MERGE\nif-match: *\n\n{{\"Name\":\"x\"}}");
    check(
        &server,
        &tunnelled,
        expect![[r#"
        204 No Content
        etag: W/"datetime'<time>'"
    "#]],
    );
    check(
        &server,
        &format!("GET {entity}\naccept: application/json;odata=nometadata"),
        expect![[r#"
        200 OK
        content-type: application/json;odata=nometadata;streaming=true;charset=utf-8
        cache-control: no-cache
        etag: W/"datetime'<time>'"

        {"PartitionKey":"p","RowKey":"r","Timestamp":"<time>","Age":23,"Name":"x"}
    "#]],
    );
    check(
        &server,
        &format!("DELETE {entity}\nif-match: *"),
        expect![[r#"
        204 No Content
    "#]],
    );
    assert_eq!(server.refusal(&format!("DELETE {entity}\nif-match: *")), "404 ResourceNotFound");
}

#[test]
fn strangers_stay_outside() {
    let server = with_entity();
    assert_eq!(
        server.refusal("GET /dev/Tables\nauthorization: none"),
        "401 NoAuthenticationInformation"
    );
    assert_eq!(
        server.refusal("GET /dev/Tables\nauthorization: SharedKey dev:AAEC"),
        "403 AuthenticationFailed"
    );
    assert_eq!(
        server.refusal("GET /nobody/Tables\nauthorization: SharedKey nobody:AAEC"),
        "403 AuthenticationFailed"
    );
    assert_eq!(
        server.refusal("GET /other/Tables\nauthorization: sign as dev"),
        "403 AuthenticationFailed"
    );
    assert_eq!(
        server.refusal("GET /dev/Tables\nx-ms-date: Sun, 06 Nov 1994 08:49:37 GMT"),
        "403 AuthenticationFailed"
    );
}

#[test]
fn either_scheme_and_either_key_opens() {
    let server = with_table();
    for how in ["sign", "sign lite", "sign with the second key"] {
        let answer = server.send(&format!("GET /dev/Tables\nauthorization: {how}"));
        assert!(answer.starts_with("200"), "{how}: {answer}");
    }
}

#[test]
fn the_account_may_stand_in_the_host_name() {
    let server = with_table();
    let get =
        "GET /Tables\nhost: dev.table.example.com\naccept: application/json;odata=fullmetadata";
    check(
        &server,
        get,
        expect![[r#"
        200 OK
        content-type: application/json;odata=fullmetadata;streaming=true;charset=utf-8
        cache-control: no-cache

        {"odata.metadata":"http://dev.table.example.com/$metadata#Tables","value":[{"odata.type":"dev.Tables","odata.id":"http://dev.table.example.com/Tables('People')","odata.editLink":"Tables('People')","TableName":"People"}]}
    "#]],
    );
    let secondary = "GET /Tables\nhost: dev-secondary.table.example.com";
    assert!(server.send(secondary).starts_with("200"));
}

#[test]
fn the_secondary_endpoint_reads_and_does_not_write() {
    let server = with_table();
    assert!(server.send("GET /dev-secondary/People()").starts_with("200"));
    assert_eq!(
        server.refusal("DELETE /dev-secondary/Tables('People')"),
        "403 InsufficientAccountPermissions"
    );
}

#[test]
fn any_version_is_echoed_and_what_is_no_version_is_refused() {
    let server = with_table();
    let answer = server.send("GET /dev/Tables\nx-ms-version: 2099-12-31");
    assert!(answer.starts_with("200") && answer.contains("x-ms-version: 2099-12-31"), "{answer}");
    assert_eq!(server.refusal("GET /dev/Tables\nx-ms-version: newest"), "400 InvalidHeaderValue");
}

#[test]
fn addresses_and_media_types_that_mean_nothing_are_refused() {
    let server = with_table();
    assert_eq!(server.refusal("GET /dev/a/b"), "400 InvalidUri");
    assert_eq!(server.refusal("GET /dev/People(x)"), "400 InvalidInput");
    assert_eq!(server.refusal("GET /dev/%zz"), "400 InvalidInput");
    assert_eq!(server.refusal("PATCH /dev/Tables"), "405 MethodNotAllowed");
    assert_eq!(
        server.refusal("GET /dev/Tables\naccept: application/atom+xml"),
        "415 AtomFormatNotSupported"
    );
    assert_eq!(server.refusal("GET /dev/People()?comp=nothing"), "400 InvalidInput");
    assert_eq!(server.refusal("GET /dev/Tables\nx-http-method: PUT"), "400 XMethodNotUsingPost");
    assert_eq!(server.refusal("POST /dev/People\nx-http-method: GET"), "400 XMethodIncorrectValue");
    let large = format!("POST /dev/People\n\n{}", "x".repeat(4 * 1024 * 1024 + 1));
    assert_eq!(server.refusal(&large), "413 RequestBodyTooLarge");
}

/// A row of `operations.toml` that says "gap" is refused with 501, and no other one is.
#[test]
fn gaps_are_refused_and_nothing_else_is() {
    let table: toml::Table = include_str!("../../operations.toml").parse().unwrap();
    for row in table["operation"].as_array().unwrap() {
        let text = |field: &str| row[field].as_str().unwrap();
        let server = with_entity();
        let path = text("path").replace("{table}", "People").replace("{any}", "Tables");
        let path = path.replace("{key}", "x");
        let batch = "content-type: multipart/mixed; boundary=b";
        let head = format!("{} /dev{path}\nif-match: *\n{batch}", text("method"));
        let answer = server.send(&format!("{head}\n\n{{}}"));
        assert_eq!(answer.starts_with("501"), text("status") == "gap", "{row:?}: {answer}");
    }
}

/// A bounded stand-in for a fuzzer: whatever a request says, it gets one of the service's answers.
#[test]
fn random_requests_get_documented_answers() {
    let server = with_entity();
    for seed in [
        "GET /dev/People(PartitionKey='p',RowKey='r')?$select=Age,Name&$format=json",
        "GET /dev/People()?$filter=Age%20gt%2010%20and%20Name%20eq%20'x'&$top=5&NextPartitionKey=1!cA",
        "PATCH /dev/People(PartitionKey='p',RowKey='r')\nif-match: *\n\n{\"A@odata.type\":\"Edm.Int64\",\"A\":\"1\"}",
        "POST /dev/Tables\nprefer: return-no-content\n\n{\"TableName\":\"Other\"}",
    ] {
        lazuli_http::mutate::each(seed.as_bytes(), 1_000, |text| {
            let Some(answer) = server.try_send(&String::from_utf8_lossy(text)) else { return };
            let status: u16 = answer[..3].parse().unwrap();
            let known = matches!(status, 200..=204 | 400..=415 | 501);
            assert!(known, "{:?}: {answer}", String::from_utf8_lossy(text));
        });
    }
}
