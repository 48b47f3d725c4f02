//! Requests to Blobs, signed, for the plain client.

use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use lazuli_http::date::{Fraction, TICKS_PER_SECOND, format_iso8601, format_rfc1123};

use crate::client::{ACCOUNT, Request, signature};

/// A request to the Blob service. The path begins behind the account.
pub fn request(method: &str, path: &str, query: &str, body: impl Into<Vec<u8>>) -> Request {
    let headers = [("host", "localhost"), ("x-ms-version", "2021-12-02")];
    Request {
        method: method.to_owned(),
        path: path.to_owned(),
        query: query.to_owned(),
        headers: headers.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec(),
        body: body.into(),
    }
}

/// The same request, signed as of now.
pub fn signed(request: Request) -> Request {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let date = format_rfc1123(i64::try_from(seconds).unwrap_or_default());
    let request = request.with("x-ms-date", &date);
    let mut ours: Vec<_> =
        request.headers.iter().filter(|(name, _)| name.starts_with("x-ms-")).collect();
    ours.sort();
    let ours: String = ours.iter().map(|(name, value)| format!("{name}:{value}\n")).collect();
    let Request { method, path, query, .. } = &request;
    let component = query.trim_start_matches('?').split('&').find(|it| it.starts_with("comp="));
    let component = component.map(|it| format!("?{it}")).unwrap_or_default();
    let text = format!("{method}\n\n\n\n{ours}/{ACCOUNT}/{ACCOUNT}{path}{component}");
    let authorization = format!("SharedKeyLite {ACCOUNT}:{}", signature(&text));
    request.with("authorization", &authorization)
}

const DAY_SECONDS: u64 = 24 * 3600;

/// A signature for all blobs of the development account, good for a day: a query without its question mark.
pub fn account_sas() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let ticks = i64::try_from(now + DAY_SECONDS).unwrap_or_default() * TICKS_PER_SECOND;
    let end = format_iso8601(ticks, Fraction::Shortest);
    let (may, services, kinds, version) = ("rwdlacup", "b", "sco", "2019-12-12");
    let text = format!("{ACCOUNT}\n{may}\n{services}\n{kinds}\n\n{end}\n\n\n{version}\n");
    let signature = signature(&text).replace('+', "%2B").replace('/', "%2F").replace('=', "%3D");
    let end = end.replace(':', "%3A");
    format!("sv={version}&ss={services}&srt={kinds}&sp={may}&se={end}&sig={signature}")
}

pub fn create_container(name: &str) -> Request {
    request("PUT", &format!("/{name}"), "?restype=container", "")
}

pub fn delete_container(name: &str) -> Request {
    request("DELETE", &format!("/{name}"), "?restype=container", "")
}

/// Puts a whole blob.
pub fn put(path: &str, body: Vec<u8>) -> Request {
    request("PUT", path, "", body).with("x-ms-blob-type", "BlockBlob")
}

/// Puts the block with this number.
pub fn put_block(path: &str, number: usize, body: Vec<u8>) -> Request {
    // Base64 of fixed length has signs that must not stand in a query as they are.
    let id = block_id(number).replace('=', "%3D").replace('+', "%2B").replace('/', "%2F");
    request("PUT", path, &format!("?comp=block&blockid={id}"), body)
}

/// Commits the first so many blocks.
pub fn put_block_list(path: &str, count: usize) -> Request {
    let blocks: String = (0..count).map(|n| format!("<Latest>{}</Latest>", block_id(n))).collect();
    let body = format!("<?xml version=\"1.0\" encoding=\"utf-8\"?><BlockList>{blocks}</BlockList>");
    request("PUT", path, "?comp=blocklist", body)
}

fn block_id(number: usize) -> String {
    STANDARD.encode(format!("block-{number:06}"))
}
