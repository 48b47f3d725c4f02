//! The service itself, batches and websites.

use expect_test::expect;

use super::raw::Server;
use super::{check, with_blob, with_container};

#[test]
fn service_properties() {
    let server = Server::start();
    check(
        &server,
        "GET /dev/?restype=service&comp=properties",
        expect![[r#"
        200 OK
        content-type: application/xml

        <?xml version="1.0" encoding="utf-8"?><StorageServiceProperties><Logging><Version>1.0</Version><Delete>false</Delete><Read>false</Read><Write>false</Write><RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></Logging><HourMetrics><Version>1.0</Version><Enabled>false</Enabled><RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></HourMetrics><MinuteMetrics><Version>1.0</Version><Enabled>false</Enabled><RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></MinuteMetrics><Cors></Cors><DeleteRetentionPolicy><Enabled>false</Enabled></DeleteRetentionPolicy><StaticWebsite><Enabled>false</Enabled></StaticWebsite></StorageServiceProperties>
    "#]],
    );
    let set = "<StorageServiceProperties><DeleteRetentionPolicy><Enabled>true</Enabled><Days>3</Days>\
               </DeleteRetentionPolicy></StorageServiceProperties>";
    let put = "PUT /dev/?restype=service&comp=properties";
    check(
        &server,
        &format!("{put}\n\n{set}"),
        expect![[r#"
        202 Accepted
    "#]],
    );
    assert!(server.send("GET /dev/?restype=service&comp=properties").contains("<Days>3</Days>"));
    assert_eq!(server.refusal(&format!("{put}\n\n<a/>")), "400 InvalidXmlDocument");
}

#[test]
fn stats_and_account() {
    let server = Server::start();
    check(
        &server,
        "GET /dev-secondary/?restype=service&comp=stats",
        expect![[r#"
        200 OK
        content-type: application/xml

        <?xml version="1.0" encoding="utf-8"?><StorageServiceStats><GeoReplication><Status>live</Status><LastSyncTime><date></LastSyncTime></GeoReplication></StorageServiceStats>
    "#]],
    );
    assert_eq!(
        server.refusal("GET /dev/?restype=service&comp=stats"),
        "400 InvalidQueryParameterValue"
    );
    check(
        &server,
        "GET /dev/?restype=account&comp=properties",
        expect![[r#"
        200 OK
        x-ms-sku-name: Standard_RAGRS
        x-ms-account-kind: StorageV2
        x-ms-is-hns-enabled: false
    "#]],
    );
    assert_eq!(
        server.refusal("POST /dev/?restype=service&comp=userdelegationkey\n\n<KeyInfo/>"),
        "403 AuthenticationFailed"
    );
}

#[test]
fn a_batch_answers_each_request() {
    let server = with_blob();
    let part = |id: u8, name: &str| {
        format!(
            "--b\r\nContent-Type: application/http\r\nContent-ID: {id}\r\n\r\n\
             DELETE /dev/con/{name} HTTP/1.1\r\n\r\n\r\n"
        )
    };
    let body = part(0, "b") + &part(1, "missing") + "--b--\r\n";
    let batch = "POST /dev/con?restype=container&comp=batch\n\
                 content-type: multipart/mixed; boundary=b";
    let answer = server.send(&format!("{batch}\n\n{body}")).replace('\r', "");
    expect![[r#"
        202 Accepted
        content-type: multipart/mixed; boundary=batchresponse_<id>

        --batchresponse_<id>
        Content-ID: 0
        Content-Type: application/http
        Content-Transfer-Encoding: binary

        HTTP/1.1 202 Accepted
        x-ms-delete-type-permanent: true
        x-ms-request-id: 00000000-0000-0000-0000-000000000007
        x-ms-version: 2021-12-02


        --batchresponse_<id>
        Content-ID: 1
        Content-Type: application/http
        Content-Transfer-Encoding: binary

        HTTP/1.1 404 Not Found
        x-ms-error-code: BlobNotFound
        Content-Type: application/xml
        x-ms-request-id: 00000000-0000-0000-0000-000000000007
        x-ms-version: 2021-12-02

        <?xml version="1.0" encoding="utf-8"?><Error><Code>BlobNotFound</Code><Message>The specified blob does not exist.</Message></Error>
        --batchresponse_<id>--

    "#]].assert_eq(&answer);
    let empty = "--b--\r\n";
    assert_eq!(server.refusal(&format!("{batch}\n\n{empty}")), "400 InvalidInput");
    let other = part(0, "b").replace("/con/", "/other/") + "--b--\r\n";
    let answer = server.send(&format!("{batch}\n\n{other}"));
    assert!(answer.contains("HTTP/1.1 400"), "{answer}");
}

#[test]
fn a_website_is_read_by_anybody() {
    let server = Server::start();
    server.done("PUT /dev/$web?restype=container");
    let put = |name: &str, text: &str| {
        let request = format!("PUT /dev/$web/{name}\nx-ms-blob-type: BlockBlob");
        server.done(&format!("{request}\nx-ms-blob-content-type: text/html\n\n{text}"));
    };
    put("index.html", "home");
    put("404.html", "nothing");
    let page = |path: &str| {
        let answer =
            server.send(&format!("GET {path}\nhost: dev.web.localhost\nauthorization: none"));
        (answer[..3].to_owned(), answer.lines().last().unwrap_or_default().to_owned())
    };
    assert_eq!(page("/").0, "404");
    let set = "<StorageServiceProperties><StaticWebsite><Enabled>true</Enabled><IndexDocument>\
               index.html</IndexDocument><ErrorDocument404Path>404.html</ErrorDocument404Path>\
               </StaticWebsite></StorageServiceProperties>";
    server.done(&format!("PUT /dev/?restype=service&comp=properties\n\n{set}"));
    assert_eq!(page("/"), ("200".into(), "home".into()));
    assert_eq!(page("/index.html"), ("200".into(), "home".into()));
    assert_eq!(page("/other"), ("404".into(), "nothing".into()));
}

#[test]
fn what_is_not_there_yet_is_said_so() {
    let server = with_container();
    assert_eq!(server.refusal("POST /dev/con/b?comp=query\n\n<a/>"), "501 NotImplemented");
    let copy = "PUT /dev/con/b?comp=incrementalcopy\nx-ms-copy-source: http://127.0.0.1/a";
    assert_eq!(server.refusal(copy), "501 NotImplemented");
}

#[test]
fn caches_learn_whether_an_answer_is_for_all_origins() {
    let server = with_blob();
    server.done("PUT /dev/con?restype=container&comp=acl\nx-ms-blob-public-access: blob");
    let set = |origins: &str| {
        let rule = format!(
            "<CorsRule><AllowedMethods>GET</AllowedMethods><AllowedOrigins>{origins}\
             </AllowedOrigins><AllowedHeaders/><ExposedHeaders>etag</ExposedHeaders>\
             <MaxAgeInSeconds>60</MaxAgeInSeconds></CorsRule>"
        );
        let set =
            format!("<StorageServiceProperties><Cors>{rule}</Cors></StorageServiceProperties>");
        server.done(&format!("PUT /dev/?restype=service&comp=properties\n\n{set}"));
    };
    let get = |origin: &str, name: &str| {
        let origin = match origin {
            "" => String::new(),
            origin => format!("\norigin: {origin}"),
        };
        server.header(&format!("GET /dev/con/b\nauthorization: none{origin}"), name)
    };
    let (vary, allowed) = ("vary", "access-control-allow-origin");
    assert_eq!((get("", vary), get("", allowed)), (String::new(), String::new()));
    set("https://*.example.com");
    assert_eq!((get("", vary), get("", allowed)), ("Origin".into(), String::new()));
    let below = "https://a.example.com";
    assert_eq!((get(below, vary), get(below, allowed)), ("Origin".into(), below.into()));
    let other = "https://example.com";
    assert_eq!((get(other, vary), get(other, allowed)), ("Origin".into(), String::new()));
    set("*");
    for origin in ["", below] {
        assert_eq!((get(origin, vary), get(origin, allowed)), (String::new(), "*".into()));
    }
    // What is signed for in a header is given to nobody else.
    assert_eq!(server.header("GET /dev/con/b", allowed), "");
}
