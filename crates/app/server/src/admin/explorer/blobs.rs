//! Blobs: containers, lists by prefix, properties, download, upload, deletion, tags.

use bytes::Bytes;
use lazuli_http::uri::{percent_decode, percent_encode};
use lazuli_http::{Body, Method, Request, Response, StatusCode, xml};
use serde_json::{Map, Value, json};

use super::super::refusal::{Refusal, Result};
use super::super::{body, ok};
use super::answer::{ask, document, header, new_name};
use super::request::{BlobPath, ContainerPath, Page};
use crate::owner::{Ask, Owner, Service};

/// What browsers may do with bytes that users stored: keep them, and nothing else.
const POLICY: &str = "sandbox; default-src 'none'";

/// The properties of a blob, by our names and by the headers they stand in.
const PROPERTIES: [(&str, &str); 13] = [
    ("kind", "x-ms-blob-type"),
    ("content_type", "content-type"),
    ("content_encoding", "content-encoding"),
    ("content_language", "content-language"),
    ("content_disposition", "content-disposition"),
    ("content_md5", "content-md5"),
    ("cache_control", "cache-control"),
    ("created", "x-ms-creation-time"),
    ("changed", "last-modified"),
    ("etag", "etag"),
    ("tier", "x-ms-access-tier"),
    ("lease", "x-ms-lease-state"),
    ("copy_status", "x-ms-copy-status"),
];
const METADATA: &str = "x-ms-meta-";

pub(super) async fn containers(owner: &Owner, account: &str, page: &Page) -> Result<Response> {
    let wanted = Ask::new(Service::Blobs, Method::GET, account, "/".to_owned())
        .query("comp", "list")
        .query("maxresults", &page.most.to_string())
        .maybe_query("marker", page.after.as_deref());
    let found = document(ask(owner, wanted).await?).await?;
    let one = |container: &xml::Element| {
        let property = |name: &str| container.child("Properties")?.child_text(name);
        json!({
            "name": container.child_text("Name"),
            "changed": property("Last-Modified"),
            "public": property("PublicAccess"),
        })
    };
    let listed: Vec<Value> = items(&found, "Containers").map(one).collect();
    Ok(ok(&json!({ "containers": listed, "next": found.child_text("NextMarker") })))
}

pub(super) async fn create(owner: &Owner, account: &str, request: Request) -> Result<Response> {
    let name = new_name(request).await?;
    let place = format!("/{}", percent_encode(&name));
    let wanted = Ask::new(Service::Blobs, Method::PUT, account, place);
    ask(owner, wanted.query("restype", "container")).await?;
    Ok(ok(&json!({ "name": name })))
}

/// Blobs whose names begin with the prefix; those that have the delimiter behind it are summed up as one prefix.
pub(super) async fn list(
    owner: &Owner,
    path: &ContainerPath,
    prefix: Option<&str>,
    delimiter: Option<&str>,
    page: &Page,
) -> Result<Response> {
    let place = format!("/{}", percent_encode(&path.container));
    let wanted = Ask::new(Service::Blobs, Method::GET, &path.account, place)
        .query("restype", "container")
        .query("comp", "list")
        .query("maxresults", &page.most.to_string())
        .maybe_query("prefix", prefix)
        .maybe_query("delimiter", delimiter)
        .maybe_query("marker", page.after.as_deref());
    let found = document(ask(owner, wanted).await?).await?;
    let (mut prefixes, mut blobs) = (Vec::new(), Vec::new());
    for item in items(&found, "Blobs") {
        match item.name.as_str() {
            "BlobPrefix" => prefixes.push(json!(name(item))),
            _ => blobs.push(listed(item)),
        }
    }
    let next = found.child_text("NextMarker");
    Ok(ok(&json!({ "prefixes": prefixes, "blobs": blobs, "next": next })))
}

fn items<'d>(found: &'d xml::Element, list: &str) -> impl Iterator<Item = &'d xml::Element> {
    found.child(list).map(|list| list.children.iter()).into_iter().flatten()
}

fn listed(item: &xml::Element) -> Value {
    let property = |name: &str| item.child("Properties")?.child_text(name);
    json!({
        "name": name(item),
        "bytes": property("Content-Length").and_then(|bytes| bytes.parse::<u64>().ok()),
        "content_type": property("Content-Type"),
        "changed": property("Last-Modified"),
        "kind": property("BlobType"),
        "tier": property("AccessTier"),
    })
}

/// The name of a blob or of a prefix, white space and all.
fn name(item: &xml::Element) -> Option<String> {
    let name = item.child("Name")?;
    match name.encoded {
        true => percent_decode(&name.text).ok().map(Into::into),
        false => Some(name.text.clone()),
    }
}

pub(super) async fn show(owner: &Owner, path: &BlobPath) -> Result<Response> {
    let answer = ask(owner, blob(path, Method::HEAD)).await?;
    let mut shown = json!({ "name": path.name, "bytes": length(&answer) });
    for (name, from) in PROPERTIES {
        shown[name] = json!(header(&answer, from));
    }
    shown["metadata"] = Value::Object(metadata(&answer));
    let tags = document(ask(owner, blob(path, Method::GET).query("comp", "tags")).await?).await?;
    let tag = |tag: &xml::Element| {
        let text = |name: &str| tag.child(name).map(|child| child.text.clone()).unwrap_or_default();
        (text("Key"), Value::String(text("Value")))
    };
    shown["tags"] = Value::Object(items(&tags, "TagSet").map(tag).collect());
    Ok(ok(&shown))
}

pub(super) fn length(answer: &Response) -> u64 {
    header(answer, "content-length").and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// The metadata in the headers of an answer.
pub(super) fn metadata(answer: &Response) -> Map<String, Value> {
    let named = |name: &str| name.strip_prefix(METADATA).map(str::to_owned);
    let pairs = answer.headers.iter().filter_map(|(name, value)| {
        let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
        Some((named(name.as_str())?, Value::String(value)))
    });
    pairs.collect()
}

/// The bytes as they are stored, as a file and never as a page.
pub(super) async fn download(owner: &Owner, path: &BlobPath) -> Result<Response> {
    let answer = ask(owner, blob(path, Method::GET)).await?;
    let last = path.name.rsplit('/').next().filter(|last| !last.is_empty()).unwrap_or("blob");
    let disposition = format!("attachment; filename*=UTF-8''{}", percent_encode(last));
    Ok(stored(answer.body, "application/octet-stream").with("content-disposition", disposition))
}

/// Bytes that users stored, in an answer that no browser runs.
pub(super) fn stored(body: Body, content_type: &str) -> Response {
    let mut response = Response::new(StatusCode::OK)
        .with("content-type", content_type)
        .with("x-content-type-options", "nosniff")
        .with("content-security-policy", POLICY)
        .with("cache-control", "no-store");
    response.body = body;
    response
}

/// The body of the request as a block blob. One that is there is replaced only if that is asked for.
pub(super) async fn upload(
    owner: &Owner,
    path: &BlobPath,
    overwrite: bool,
    request: Request,
) -> Result<Response> {
    let (content_type, body) = (request.header("content-type").map(str::to_owned), request.body);
    let wanted = blob(path, Method::PUT)
        .header("x-ms-blob-type", "BlockBlob")
        .maybe_header("content-type", content_type.as_deref())
        .maybe_header("if-none-match", (!overwrite).then_some("*"));
    let answer = ask(owner, wanted.body(body)).await?;
    Ok(ok(&json!({ "name": path.name, "etag": header(&answer, "etag") })))
}

/// With its snapshots. On the condition of the request's `If-Match`, if it has one.
pub(super) async fn delete(owner: &Owner, path: &BlobPath, request: &Request) -> Result<Response> {
    let wanted = blob(path, Method::DELETE)
        .header("x-ms-delete-snapshots", "include")
        .maybe_header("if-match", request.header("if-match"));
    ask(owner, wanted).await?;
    Ok(ok(&json!({ "deleted": true })))
}

/// `{"tags": {…}}`: all tags that the blob has from now on.
pub(super) async fn set_tags(owner: &Owner, path: &BlobPath, request: Request) -> Result<Response> {
    let body = body(request).await?;
    let wrong = || Refusal::bad_request("tags must be an object of texts");
    let mut document = String::from("<Tags><TagSet>");
    for (key, value) in body["tags"].as_object().ok_or_else(wrong)? {
        document.push_str("<Tag>");
        xml::write(&mut document, "Key", key);
        xml::write(&mut document, "Value", value.as_str().ok_or_else(wrong)?);
        document.push_str("</Tag>");
    }
    document.push_str("</TagSet></Tags>");
    let wanted = blob(path, Method::PUT).query("comp", "tags");
    let wanted = wanted.header("content-type", "application/xml");
    ask(owner, wanted.body(Body::from(Bytes::from(document)))).await?;
    Ok(ok(&json!({ "name": path.name, "tags": body["tags"] })))
}

pub(super) fn blob(path: &BlobPath, method: Method) -> Ask {
    let BlobPath { container: ContainerPath { account, container }, name } = path;
    let place = format!("/{}/{}", percent_encode(container), percent_encode(name));
    Ask::new(Service::Blobs, method, account, place)
}
