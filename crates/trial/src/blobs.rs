//! Requests to the Blob service.

use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use lazuli_http::date::{Fraction, TICKS_PER_SECOND, format_iso8601};
use lazuli_http::uri::percent_encode;

use crate::client::{ACCOUNT, Request, signature};

const DAY_SECONDS: u64 = 24 * 3600;

/// A shared access signature for all blobs of the development account, valid for a day: a query without its question mark.
pub fn account_sas() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let ticks = i64::try_from(now + DAY_SECONDS).unwrap_or_default() * TICKS_PER_SECOND;
    let end = format_iso8601(ticks, Fraction::Shortest);
    let (permissions, services, resources, version) = ("rwdlacup", "b", "sco", "2019-12-12");
    let text =
        format!("{ACCOUNT}\n{permissions}\n{services}\n{resources}\n\n{end}\n\n\n{version}\n");
    let (end, signature) = (percent_encode(&end), percent_encode(&signature(&text)));
    format!("sv={version}&ss={services}&srt={resources}&sp={permissions}&se={end}&sig={signature}")
}

pub fn create_container(name: &str) -> Request {
    Request::storage("PUT", &format!("/{name}"), "?restype=container", "")
}

pub fn delete_container(name: &str) -> Request {
    Request::storage("DELETE", &format!("/{name}"), "?restype=container", "")
}

/// Puts a whole blob.
pub fn put(path: &str, body: Vec<u8>) -> Request {
    Request::storage("PUT", path, "", body).with("x-ms-blob-type", "BlockBlob")
}

/// Puts the block with this number.
pub fn put_block(path: &str, number: usize, body: Vec<u8>) -> Request {
    let id = percent_encode(&block_id(number));
    Request::storage("PUT", path, &format!("?comp=block&blockid={id}"), body)
}

/// Commits the first so many blocks.
pub fn put_block_list(path: &str, count: usize) -> Request {
    let blocks: String = (0..count).map(|n| format!("<Latest>{}</Latest>", block_id(n))).collect();
    let body = format!("<?xml version=\"1.0\" encoding=\"utf-8\"?><BlockList>{blocks}</BlockList>");
    Request::storage("PUT", path, "?comp=blocklist", body)
}

fn block_id(number: usize) -> String {
    STANDARD.encode(format!("block-{number:06}"))
}
