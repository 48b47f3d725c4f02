//! What SDKs hide: raw requests in, raw answers out, with times and names masked.
//!
//! `UPDATE_EXPECT=1 cargo test -p lazuli-queues` writes the answers anew.

#![allow(clippy::unwrap_used, reason = "a panic in a test is the failure report")]

mod access;
mod limits;
mod messages;
mod raw;
mod service;

use expect_test::{Expect, expect};
use raw::Server;

#[track_caller]
fn check(server: &Server, request: &str, expected: Expect) {
    expected.assert_eq(&server.send(request));
}

fn with_queue() -> Server {
    let server = Server::start();
    assert!(server.send("PUT /dev/orders").starts_with("201"));
    server
}

/// A request that puts a message.
fn put(text: &str) -> String {
    format!(
        "POST /dev/orders/messages\n\n<QueueMessage><MessageText>{text}</MessageText></QueueMessage>"
    )
}

/// What other tests leave out because it is in every answer.
#[test]
fn every_answer_says_what_it_answers() {
    let server = Server::start();
    let expected = expect![[r#"
        404 Not Found
        x-ms-error-code: QueueNotFound
        content-type: application/xml
        x-ms-request-id: 00000000-0000-0000-0000-000000000007
        x-ms-version: 2026-10-06
        x-ms-client-request-id: mine
        server: Lazuli

        <?xml version="1.0" encoding="utf-8"?><Error><Code>QueueNotFound</Code><Message>The specified queue does not exist.
        RequestId:00000000-0000-0000-0000-000000000007
        Time:2024-10-29T08:49:37.0000000Z</Message></Error>
    "#]];
    let mine = "DELETE /dev/orders\nx-ms-client-request-id: mine";
    expected.assert_eq(&server.whole(mine));
}

#[test]
fn create_and_delete_queue() {
    let server = Server::start();
    check(
        &server,
        "PUT /dev/orders\nx-ms-meta-a: 1",
        expect![[r#"
        201 Created
    "#]],
    );
    check(
        &server,
        "PUT /dev/orders\nx-ms-meta-a: 1",
        expect![[r#"
        204 No Content
    "#]],
    );
    check(
        &server,
        "PUT /dev/orders\nx-ms-meta-a: 2",
        expect![[r#"
        409 Conflict
        x-ms-error-code: QueueAlreadyExists

        <?xml version="1.0" encoding="utf-8"?><Error><Code>QueueAlreadyExists</Code><Message>The specified queue already exists.</Message></Error>
    "#]],
    );
    check(
        &server,
        "DELETE /dev/orders",
        expect![[r#"
        204 No Content
    "#]],
    );
    assert_eq!(server.refusal("DELETE /dev/orders"), "404 QueueNotFound");
    assert_eq!(server.refusal("PUT /dev/Orders"), "400 InvalidResourceName");
    assert_eq!(server.refusal("PUT /dev/or"), "400 OutOfRangeInput");
    assert!(server.send("PUT /dev/orders").starts_with("201"), "it can come back");
}

#[test]
fn a_queue_that_comes_back_is_empty() {
    let server = with_queue();
    server.send(&put("old"));
    server.send("DELETE /dev/orders");
    server.send("PUT /dev/orders");
    assert!(!server.send("GET /dev/orders/messages").contains("old"));
    let metadata = server.send("GET /dev/orders?comp=metadata");
    assert!(metadata.contains("x-ms-approximate-messages-count: 0\n"), "{metadata}");
}

#[test]
fn metadata_is_set_and_read() {
    let server = with_queue();
    check(
        &server,
        "PUT /dev/orders?comp=metadata\nx-ms-meta-b: two\nx-ms-meta-a: 1",
        expect![[r#"
            204 No Content
        "#]],
    );
    server.send(&put("hello"));
    check(
        &server,
        "GET /dev/orders?comp=metadata",
        expect![[r#"
        200 OK
        cache-control: no-cache
        x-ms-approximate-messages-count: 1
        x-ms-meta-a: 1
        x-ms-meta-b: two
    "#]],
    );
    check(
        &server,
        "HEAD /dev/orders?comp=metadata",
        expect![[r#"
        200 OK
        cache-control: no-cache
        x-ms-approximate-messages-count: 1
        x-ms-meta-a: 1
        x-ms-meta-b: two
    "#]],
    );
    assert!(server.send("PUT /dev/orders?comp=metadata").starts_with("204"));
    assert!(!server.send("GET /dev/orders?comp=metadata").contains("x-ms-meta"));
    let missing = "GET /dev/others?comp=metadata";
    assert_eq!(server.refusal(missing), "404 QueueNotFound");
    assert_eq!(server.refusal(&missing.replace("GET", "PUT")), "404 QueueNotFound");
    let bad = "PUT /dev/orders?comp=metadata\nx-ms-meta-a-b: 1";
    assert_eq!(server.refusal(bad), "400 InvalidMetadata");
}

#[test]
fn list_queues() {
    let server = Server::start();
    for queue in ["apples", "berries", "cherries", "blueberries"] {
        server.send(&format!("PUT /dev/{queue}\nx-ms-meta-name: {queue}"));
    }
    server.send("PUT /other/hidden");
    check(
        &server,
        "GET /dev?comp=list",
        expect![[r#"
        200 OK
        cache-control: no-cache

        <?xml version="1.0" encoding="utf-8"?><EnumerationResults ServiceEndpoint="http://127.0.0.1:10001/dev/"><Prefix></Prefix><MaxResults>5000</MaxResults><Queues><Queue><Name>apples</Name></Queue><Queue><Name>berries</Name></Queue><Queue><Name>blueberries</Name></Queue><Queue><Name>cherries</Name></Queue></Queues><NextMarker></NextMarker></EnumerationResults>
    "#]],
    );
    check(
        &server,
        "GET /dev/?comp=list&prefix=b&maxresults=1&include=metadata",
        expect![[r#"
        200 OK
        cache-control: no-cache

        <?xml version="1.0" encoding="utf-8"?><EnumerationResults ServiceEndpoint="http://127.0.0.1:10001/dev/"><Prefix>b</Prefix><MaxResults>1</MaxResults><Queues><Queue><Name>berries</Name><Metadata><name>berries</name></Metadata></Queue></Queues><NextMarker>blueberries</NextMarker></EnumerationResults>
    "#]],
    );
    check(
        &server,
        "GET /dev/?comp=list&prefix=b&marker=blueberries",
        expect![[r#"
        200 OK
        cache-control: no-cache

        <?xml version="1.0" encoding="utf-8"?><EnumerationResults ServiceEndpoint="http://127.0.0.1:10001/dev/"><Prefix>b</Prefix><Marker>blueberries</Marker><MaxResults>5000</MaxResults><Queues><Queue><Name>blueberries</Name></Queue></Queues><NextMarker></NextMarker></EnumerationResults>
    "#]],
    );
    assert_eq!(
        server.refusal("GET /dev?comp=list&maxresults=0"),
        "400 OutOfRangeQueryParameterValue"
    );
    assert!(server.send("GET /nobody?comp=list").contains("AuthenticationFailed"));
}

#[test]
fn what_a_parameter_may_be_stands_in_the_refusal() {
    let server = with_queue();
    check(
        &server,
        "GET /dev/orders/messages?numofmessages=33",
        expect![[r#"
        400 Bad Request
        x-ms-error-code: OutOfRangeQueryParameterValue

        <?xml version="1.0" encoding="utf-8"?><Error><Code>OutOfRangeQueryParameterValue</Code><Message>One of the query parameters specified in the request URI is outside the permissible range.</Message><QueryParameterName>numofmessages</QueryParameterName><QueryParameterValue>33</QueryParameterValue><MinimumAllowed>1</MinimumAllowed><MaximumAllowed>32</MaximumAllowed></Error>
    "#]],
    );
    check(
        &server,
        "GET /dev/orders/messages?numofmessages=many",
        expect![[r#"
        400 Bad Request
        x-ms-error-code: InvalidQueryParameterValue

        <?xml version="1.0" encoding="utf-8"?><Error><Code>InvalidQueryParameterValue</Code><Message>Value for one of the query parameters specified in the request URI is invalid.</Message><QueryParameterName>numofmessages</QueryParameterName><QueryParameterValue>many</QueryParameterValue></Error>
    "#]],
    );
}
