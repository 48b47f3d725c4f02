//! The service itself on the wire: properties, statistics, pages of other origins, the secondary endpoint.

use expect_test::expect;

use crate::raw::Server;
use crate::{check, put, with_queue};

const PROPERTIES: &str = "/dev?restype=service&comp=properties";
const CORS: &str = "<StorageServiceProperties><Cors><CorsRule><AllowedMethods>GET,DELETE</AllowedMethods>\
    <AllowedOrigins>http://page.example</AllowedOrigins><AllowedHeaders>x-ms-*</AllowedHeaders>\
    <ExposedHeaders>x-ms-*</ExposedHeaders><MaxAgeInSeconds>60</MaxAgeInSeconds></CorsRule></Cors>\
    </StorageServiceProperties>";

fn with_cors() -> Server {
    let server = with_queue();
    assert!(server.send(&format!("PUT {PROPERTIES}\n\n{CORS}")).starts_with("202"));
    server
}

#[test]
fn properties_are_kept_by_account() {
    let server = with_cors();
    check(
        &server,
        &format!("GET {PROPERTIES}"),
        expect![[r#"
        200 OK
        cache-control: no-cache

        <?xml version="1.0" encoding="utf-8"?><StorageServiceProperties><Logging><Version>1.0</Version><Delete>false</Delete><Read>false</Read><Write>false</Write><RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></Logging><HourMetrics><Version>1.0</Version><Enabled>false</Enabled><RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></HourMetrics><MinuteMetrics><Version>1.0</Version><Enabled>false</Enabled><RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></MinuteMetrics><Cors><CorsRule><AllowedMethods>GET,DELETE</AllowedMethods><AllowedOrigins>http://page.example</AllowedOrigins><AllowedHeaders>x-ms-*</AllowedHeaders><ExposedHeaders>x-ms-*</ExposedHeaders><MaxAgeInSeconds>60</MaxAgeInSeconds></CorsRule></Cors></StorageServiceProperties>
    "#]],
    );
    let other = server.send(&format!("GET {}", PROPERTIES.replace("dev", "other")));
    assert!(other.contains("<Cors></Cors>"), "{other}");
    let bad = |body: &str| server.refusal(&format!("PUT {PROPERTIES}\n\n{body}"));
    assert_eq!(bad("{}"), "400 InvalidXmlDocument");
    assert_eq!(bad(&CORS.replace("60", "soon")), "400 InvalidXmlNodeValue");
}

#[test]
fn the_secondary_reads_and_does_not_write() {
    let server = with_queue();
    server.send(&put("a"));
    check(
        &server,
        "GET /dev-secondary?restype=service&comp=stats",
        expect![[r#"
        200 OK
        cache-control: no-cache

        <?xml version="1.0" encoding="utf-8"?><StorageServiceStats><GeoReplication><Status>live</Status><LastSyncTime>Tue, 29 Oct 2024 08:49:37 GMT</LastSyncTime></GeoReplication></StorageServiceStats>
    "#]],
    );
    let primary = "GET /dev?restype=service&comp=stats";
    assert_eq!(server.refusal(primary), "400 InvalidQueryParameterValue");
    let peek = "GET /dev-secondary/orders/messages?peekonly=true";
    assert_eq!(server.refusal(peek), "200 without a code");
    let refused = "403 InsufficientAccountPermissions";
    assert_eq!(server.refusal("GET /dev-secondary/orders/messages"), refused);
    assert_eq!(server.refusal("PUT /dev-secondary/others"), refused);
}

#[test]
fn a_preflight_needs_a_rule_and_no_signature() {
    let server = with_cors();
    let ask = "OPTIONS /dev/orders/messages\nauthorization: none\norigin: http://page.example\n\
               access-control-request-method: DELETE\naccess-control-request-headers: x-ms-date";
    check(
        &server,
        ask,
        expect![[r#"
        200 OK
        access-control-allow-origin: http://page.example
        access-control-allow-credentials: true
        access-control-allow-methods: DELETE
        access-control-allow-headers: x-ms-date
        access-control-max-age: 60
    "#]],
    );
    let refused = |text: String| server.refusal(&text);
    assert_eq!(refused(ask.replace("page", "other")), "403 CorsPreflightFailure");
    assert_eq!(refused(ask.replace("origin", "from")), "400 MissingRequiredHeader");
}

#[test]
fn pages_of_allowed_origins_may_read_answers() {
    let server = with_cors();
    let get = "GET /dev/others?comp=metadata\norigin: http://page.example";
    check(
        &server,
        get,
        expect![[r#"
        404 Not Found
        x-ms-error-code: QueueNotFound
        vary: Origin
        access-control-allow-origin: http://page.example
        access-control-allow-credentials: true
        access-control-expose-headers: x-ms-*

        <?xml version="1.0" encoding="utf-8"?><Error><Code>QueueNotFound</Code><Message>The specified queue does not exist.</Message></Error>
    "#]],
    );
    let other = server.send(&get.replace("page", "other"));
    assert!(other.contains("vary: Origin") && !other.contains("allow-origin"), "{other}");
}

#[test]
fn versions_are_dates() {
    let server = with_queue();
    let get = "GET /dev/orders?comp=metadata\nx-ms-version:";
    assert_eq!(server.refusal(&format!("{get} latest")), "400 InvalidHeaderValue");
    assert_eq!(server.refusal(&format!("{get} 2099-01-01")), "200 without a code");
}

/// A client that is told of a document reads one, and an answer to HEAD has none.
#[test]
fn a_refusal_of_head_has_no_document() {
    let server = with_queue();
    check(
        &server,
        "HEAD /dev/missing?comp=metadata",
        expect![[r#"
        404 Not Found
        x-ms-error-code: QueueNotFound
    "#]],
    );
}
