//! Properties, statistics and CORS on the wire.

use expect_test::expect;

use crate::raw::Server;
use crate::{check, with_entity};

const PROPERTIES: &str = "/dev/?restype=service&comp=properties";

const CORS: &str = "<StorageServiceProperties><Cors><CorsRule><AllowedOrigins>http://page.example\
    </AllowedOrigins><AllowedMethods>GET,DELETE</AllowedMethods><AllowedHeaders>x-ms-*\
    </AllowedHeaders><ExposedHeaders>x-ms-*</ExposedHeaders><MaxAgeInSeconds>60</MaxAgeInSeconds>\
    </CorsRule></Cors></StorageServiceProperties>";

fn with_cors() -> Server {
    let server = with_entity();
    let set = format!("PUT {PROPERTIES}\n\n{CORS}");
    assert_eq!(server.refusal(&set), "202 without a code");
    server
}

#[test]
fn properties_are_kept_by_account() {
    let server = with_entity();
    check(
        &server,
        &format!("GET {PROPERTIES}\naccept: application/xml"),
        expect![[r#"
        200 OK
        content-type: application/xml

        <?xml version="1.0" encoding="utf-8"?><StorageServiceProperties><Logging><Version>1.0</Version><Delete>false</Delete><Read>false</Read><Write>false</Write><RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></Logging><HourMetrics><Version>1.0</Version><Enabled>false</Enabled><RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></HourMetrics><MinuteMetrics><Version>1.0</Version><Enabled>false</Enabled><RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></MinuteMetrics><Cors></Cors></StorageServiceProperties>
    "#]],
    );
    check(
        &server,
        &format!("PUT {PROPERTIES}\n\n{CORS}"),
        expect![[r#"
        202 Accepted
    "#]],
    );
    let logging = "<StorageServiceProperties><Logging><Version>1.0</Version><Read>true</Read>\
                   </Logging></StorageServiceProperties>";
    assert_eq!(server.refusal(&format!("PUT {PROPERTIES}\n\n{logging}")), "202 without a code");
    check(
        &server,
        &format!("GET {PROPERTIES}"),
        expect![[r#"
        200 OK
        content-type: application/xml

        <?xml version="1.0" encoding="utf-8"?><StorageServiceProperties><Logging><Version>1.0</Version><Delete>false</Delete><Read>true</Read><Write>false</Write><RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></Logging><HourMetrics><Version>1.0</Version><Enabled>false</Enabled><RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></HourMetrics><MinuteMetrics><Version>1.0</Version><Enabled>false</Enabled><RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></MinuteMetrics><Cors><CorsRule><AllowedMethods>GET,DELETE</AllowedMethods><AllowedOrigins>http://page.example</AllowedOrigins><AllowedHeaders>x-ms-*</AllowedHeaders><ExposedHeaders>x-ms-*</ExposedHeaders><MaxAgeInSeconds>60</MaxAgeInSeconds></CorsRule></Cors></StorageServiceProperties>
    "#]],
    );
    let other = server.send(&format!("GET {}", PROPERTIES.replace("dev", "other")));
    assert!(other.contains("<Cors></Cors>"), "{other}");
    let bad = |body: &str| server.refusal(&format!("PUT {PROPERTIES}\n\n{body}"));
    assert_eq!(bad("{}"), "400 InvalidXmlDocument");
    assert_eq!(bad(&CORS.replace("60", "soon")), "400 InvalidXmlNodeValue");
}

#[test]
fn statistics_are_at_the_secondary_endpoint() {
    let server = with_entity();
    check(
        &server,
        "GET /dev-secondary/?restype=service&comp=stats",
        expect![[r#"
        200 OK
        content-type: application/xml

        <?xml version="1.0" encoding="utf-8"?><StorageServiceStats><GeoReplication><Status>live</Status><LastSyncTime>Tue, 29 Oct 2024 08:49:37 GMT</LastSyncTime></GeoReplication></StorageServiceStats>
    "#]],
    );
    let primary = "GET /dev/?restype=service&comp=stats";
    assert_eq!(server.refusal(primary), "400 InvalidQueryParameterValue");
}

#[test]
fn a_preflight_needs_a_rule_and_no_signature() {
    let server = with_cors();
    let ask = "OPTIONS /dev/Tables('People')\nauthorization: none\norigin: http://page.example\n\
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
    assert_eq!(refused(ask.replace("method: DELETE", "method: PUT")), "403 CorsPreflightFailure");
    assert_eq!(refused(ask.replace("x-ms-date", "accept")), "403 CorsPreflightFailure");
    assert_eq!(refused(ask.replace("dev", "other")), "403 CorsPreflightFailure");
    assert_eq!(refused(ask.replace("origin", "from")), "400 MissingRequiredHeader");
    let disguised = format!("{ask}\nx-http-method: DELETE");
    assert_eq!(refused(disguised), "400 XMethodNotUsingPost");
    assert!(server.send("GET /dev/People()").starts_with("200"));
}

#[test]
fn pages_of_allowed_origins_may_read_answers() {
    let server = with_cors();
    let get = "GET /dev/People(PartitionKey='p',RowKey='x')\norigin: http://page.example";
    check(
        &server,
        get,
        expect![[r#"
        404 Not Found
        x-ms-error-code: ResourceNotFound
        vary: Origin
        access-control-allow-origin: http://page.example
        access-control-allow-credentials: true
        access-control-expose-headers: x-ms-*

        {"odata.error":{"code":"ResourceNotFound","message":{"lang":"en-US","value":"The specified resource does not exist."}}}
    "#]],
    );
    let other = server.send(&get.replace("page", "other"));
    assert!(other.contains("vary: Origin") && !other.contains("allow-origin"), "{other}");
    assert!(!server.send("GET /dev/Tables").contains("vary"));
}
