//! What requests mean: every operation of the table is read, and what is none is refused.

use lazuli_azure::Operation as _;
use lazuli_azure::storage_error::ErrorCode as _;
use lazuli_http::uri::Query;
use lazuli_http::{HeaderMap, HeaderName, HeaderValue, Method};

use super::*;
use crate::access::Need;

fn parse(method: &str, target: &str, headers: &[(&str, &str)]) -> Result<Operation> {
    let method = Method::from_bytes(method.as_bytes()).unwrap();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
        map.insert(name, HeaderValue::from_str(value).unwrap());
    }
    let query = Query::parse(query).unwrap();
    let head = Head { method: &method, headers: &map, query: &query };
    Operation::parse(head, Resource::parse(path, head)?, &Limits::default())
}

fn refusal(method: &str, target: &str, headers: &[(&str, &str)]) -> &'static str {
    parse(method, target, headers).unwrap_err().code.name()
}

#[test]
fn the_table_of_operations_is_what_the_code_does() {
    let table: toml::Table = include_str!("../../operations.toml").parse().unwrap();
    for row in table["operation"].as_array().unwrap() {
        let text = |field: &str| row.get(field).map_or("", |value| value.as_str().unwrap());
        let target = text("path")
            .replace("{container}", "con")
            .replace("{blob}", "folder/blob")
            .replace("{id}", "0f8fad5b-d9cb-469f-a165-70867728950e");
        let header = text("header")
            .replace("{url}", "http://127.0.0.1/dev/con/other")
            .replace("{date}", "Sun, 06 Nov 2044 08:49:37 GMT");
        let mut headers: Vec<_> = header.split("; x-ms-").collect();
        let joined: Vec<String> = headers
            .drain(..)
            .enumerate()
            .map(|(at, text)| if at == 0 { text.to_owned() } else { format!("x-ms-{text}") })
            .collect();
        let pairs: Vec<_> = joined.iter().filter_map(|line| line.split_once(": ")).collect();
        // Told by its host alone.
        let parsed = match text("name") {
            "GetWebsite" => Operation::Website("/".into()),
            _ => parse(text("method"), &target, &pairs).unwrap(),
        };
        assert_eq!(parsed.row().name, text("name"));
        let (resource, permission) = match parsed.row().need {
            Need::Nothing => (text("resource"), "none"),
            Need::Key => (text("resource"), "key"),
            Need::Bearer => (text("resource"), "bearer"),
            Need::Any(types, letters) => (types, letters),
        };
        let expected = (text("resource"), text("permission"));
        assert_eq!((resource, permission), expected, "{}", parsed.row().name);
        assert_eq!(parsed.row().writes, !is_read(&parsed), "{}", parsed.row().name);
    }
}

/// What may be asked of the secondary endpoint.
fn is_read(operation: &Operation) -> bool {
    let name = operation.row().name;
    ["Get", "List", "Find", "Query", "Preflight"].iter().any(|word| name.starts_with(word))
}

#[test]
fn what_is_no_operation_is_refused() {
    assert_eq!(refusal("GET", "/?comp=nothing", &[]), "InvalidQueryParameterValue");
    assert_eq!(refusal("GET", "/", &[]), "InvalidUri");
    assert_eq!(refusal("PATCH", "/con/blob", &[]), "UnsupportedHttpVerb");
    assert_eq!(refusal("PUT", "/con/blob?comp=nothing", &[]), "InvalidQueryParameterValue");
    assert_eq!(refusal("GET", "/con?restype=other", &[]), "InvalidQueryParameterValue");
    assert_eq!(refusal("GET", "/No?restype=container", &[]), "OutOfRangeInput");
    assert_eq!(refusal("GET", "/NoNo?restype=container", &[]), "InvalidResourceName");
}

#[test]
fn headers_are_checked() {
    let put = |headers: &[(&str, &str)]| {
        let headers = [&[("x-ms-blob-type", "BlockBlob")], headers].concat();
        refusal("PUT", "/con/blob", &headers)
    };
    assert_eq!(refusal("PUT", "/con/blob", &[]), "MissingRequiredHeader");
    assert_eq!(refusal("PUT", "/con/blob", &[("x-ms-blob-type", "Other")]), "InvalidHeaderValue");
    assert_eq!(put(&[("content-md5", "abc")]), "InvalidMd5");
    assert_eq!(put(&[("x-ms-content-crc64", "abc")]), "InvalidHeaderValue");
    assert_eq!(put(&[("x-ms-meta-", "a")]), "EmptyMetadataKey");
    assert_eq!(put(&[("x-ms-meta-a-b", "a")]), "InvalidMetadata");
    assert_eq!(put(&[("x-ms-meta-a", &"a".repeat(8192))]), "MetadataTooLarge");
    assert_eq!(put(&[("x-ms-access-tier", "Warm")]), "InvalidHeaderValue");
    assert_eq!(put(&[("x-ms-lease-id", "mine")]), "InvalidHeaderValue");
    assert_eq!(put(&[("x-ms-tags", "a=b&a=c")]), "InvalidTag");
    assert_eq!(put(&[("x-ms-if-tags", "a")]), "InvalidHeaderValue");
    assert_eq!(put(&[("if-modified-since", "soon")]), "InvalidHeaderValue");
    assert_eq!(put(&[("x-ms-structured-body", "XSM/1.0")]), "UnsupportedHeader");
    assert_eq!(put(&[("x-ms-encryption-scope", "mine")]), "UnsupportedHeader");
    let pages = [("x-ms-blob-type", "PageBlob"), ("x-ms-blob-content-length", "513")];
    assert_eq!(refusal("PUT", "/con/blob", &pages), "InvalidHeaderValue");
}

#[test]
fn leases_have_their_limits() {
    let lease = |headers: &[(&str, &str)]| refusal("PUT", "/con/blob?comp=lease", headers);
    let acquire = ("x-ms-lease-action", "acquire");
    for seconds in ["0", "14", "61", "-2", "x"] {
        let headers = [acquire, ("x-ms-lease-duration", seconds)];
        assert_eq!(lease(&headers), "InvalidHeaderValue", "{seconds}");
    }
    assert_eq!(lease(&[acquire]), "MissingRequiredHeader");
    assert_eq!(lease(&[("x-ms-lease-action", "renew")]), "MissingRequiredHeader");
    assert_eq!(lease(&[("x-ms-lease-action", "steal")]), "InvalidHeaderValue");
    let late = [("x-ms-lease-action", "break"), ("x-ms-lease-break-period", "61")];
    assert_eq!(lease(&late), "InvalidHeaderValue");
}

#[test]
fn pages_are_whole() {
    let write = |range, kind| {
        let headers = [("x-ms-range", range), ("x-ms-page-write", kind)];
        refusal("PUT", "/con/blob?comp=page", &headers)
    };
    assert_eq!(write("bytes=0-510", "update"), "InvalidPageRange");
    assert_eq!(write("bytes=0-511", "fill"), "InvalidHeaderValue");
    assert_eq!(write("bytes=0-", "update"), "InvalidHeaderValue");
    let none = [("x-ms-page-write", "update")];
    assert_eq!(refusal("PUT", "/con/blob?comp=page", &none), "MissingRequiredHeader");
}

#[test]
fn lists_know_what_they_can_include() {
    let list = "/con?restype=container&comp=list";
    let include = format!("{list}&include=metadata,snapshots,tags&maxresults=7");
    let Ok(Operation::Container(_, ContainerOperation::List(read))) = parse("GET", &include, &[])
    else {
        panic!("it is a list");
    };
    assert!(read.metadata && read.snapshots && read.tags && !read.deleted);
    assert_eq!((read.most, read.asked), (7, Some(7)));
    let bad = |more: &str| refusal("GET", &format!("{list}&{more}"), &[]);
    assert_eq!(bad("include=everything"), "InvalidQueryParameterValue");
    assert_eq!(bad("include=snapshots&delimiter=/"), "InvalidQueryParameterValue");
    assert_eq!(bad("maxresults=0"), "OutOfRangeQueryParameterValue");
    assert_eq!(bad("maxresults=x"), "InvalidQueryParameterValue");
    assert_eq!(bad("marker=mine"), "InvalidQueryParameterValue");
}

#[test]
fn a_customers_key_comes_with_its_sum() {
    let head = |headers: &HeaderMap| {
        let query = Query::default();
        let head = Head { method: &Method::GET, headers, query: &query };
        crate::options::customer_key(head, "x-ms-").map_err(|fault| fault.code.name())
    };
    let mut headers = HeaderMap::new();
    assert!(head(&headers).unwrap().is_none());
    let mut set = |name: &'static str, value: &'static str| {
        headers.insert(name, HeaderValue::from_static(value));
        head(&headers)
    };
    let key = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
    assert_eq!(set("x-ms-encryption-key", key).unwrap_err(), "MissingRequiredHeader");
    let sum = "Zmh6rfhivXdsj8GLjp+OIAiXFIVu4jOzkCpZHQ1fKSU=";
    assert_eq!(set("x-ms-encryption-key-sha256", sum).unwrap_err(), "InvalidHeaderValue");
    assert!(set("x-ms-encryption-algorithm", "AES256").unwrap().is_some());
    assert_eq!(set("x-ms-encryption-key-sha256", key).unwrap_err(), "InvalidHeaderValue");
}
