//! The requests of each operation, signed once for all by a signature for the whole account.

use std::sync::Arc;
use std::time::Duration;

use lazuli_env::SplitMix64;
use lazuli_trial::blobs::account_sas;
use lazuli_trial::client::ACCOUNT;

use crate::compare::Result;
use crate::compare::connection::Answer;
use crate::compare::load::{Requests, nonce, send_all};
use crate::compare::server::Server;

/// Blobs that are read in turns.
pub(super) const READ_BLOBS: u64 = 64;
/// The blocks of a large blob, and the ranges in which it is read.
pub(super) const BLOCK_BYTES: usize = 8 * 1024 * 1024;
/// Blocks of the large blob that is read.
pub(super) const LARGE_BLOCKS: u64 = 128;
const LARGE: &str = "large";
/// As many names as one page of a list holds.
const PAGE_NAMES: usize = 5_000;
const FILL_CONNECTIONS: usize = 16;
/// How long filling may take.
const FILL_WAIT: Duration = Duration::from_secs(120);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BlobOperation {
    /// Puts new blobs of so many bytes.
    Put(usize),
    /// Gets blobs of so many bytes.
    Get(usize),
    /// A page of the names in a container, then the next one, and so on.
    List,
    /// Blocks of a blob that is never committed.
    PutBlock,
    /// Ranges of one large blob.
    GetRange,
}

/// What one connection sends.
pub(super) struct BlobRequests {
    operation: BlobOperation,
    container: String,
    /// Makes the names of new blobs unlike those of all other connections and runs.
    nonce: u64,
    sas: Arc<str>,
    content: Arc<[u8]>,
    marker: String,
}

/// Bytes that do not repeat within a block.
pub(super) fn content(bytes: usize) -> Arc<[u8]> {
    SplitMix64::new(1).bytes(bytes).into()
}

impl BlobRequests {
    pub(super) fn new(operation: BlobOperation, container: &str, content: Arc<[u8]>) -> Self {
        let (sas, marker) = (account_sas().into(), String::new());
        let container = container.to_owned();
        Self { operation, container, nonce: nonce(), sas, content, marker }
    }

    fn head(&self, method: &str, blob: &str, query: &str, more: &str, length: usize) -> String {
        let (container, sas) = (&self.container, &self.sas);
        format!(
            "{method} /{ACCOUNT}/{container}{blob}?{query}{sas} HTTP/1.1\r\nhost: 127.0.0.1\r\n\
             x-ms-version: 2021-12-02\r\ncontent-length: {length}\r\n{more}\r\n"
        )
    }

    /// Puts the blob of this name.
    fn put(&self, name: &str, request: &mut Vec<u8>) {
        let kind = "x-ms-blob-type: BlockBlob\r\n";
        let head = self.head("PUT", &format!("/{name}"), "", kind, self.content.len());
        request.extend_from_slice(head.as_bytes());
        request.extend_from_slice(&self.content);
    }

    fn put_block(&self, name: &str, number: u64, request: &mut Vec<u8>) {
        let query = format!("comp=block&blockid={}&", block_id(number));
        let head = self.head("PUT", &format!("/{name}"), &query, "", self.content.len());
        request.extend_from_slice(head.as_bytes());
        request.extend_from_slice(&self.content);
    }
}

/// Twelve letters and digits are base64 as they are, and need no escapes.
fn block_id(number: u64) -> String {
    format!("{number:012}")
}

impl Requests for BlobRequests {
    fn write(&mut self, turn: u64, request: &mut Vec<u8>) {
        match self.operation {
            BlobOperation::Put(_) => self.put(&format!("{:06}-{turn:08}", self.nonce), request),
            BlobOperation::Get(_) => {
                let name = format!("/{:04}", turn.wrapping_add(self.nonce * 7) % READ_BLOBS);
                request.extend_from_slice(self.head("GET", &name, "", "", 0).as_bytes());
            }
            BlobOperation::List => {
                let marker = &self.marker;
                let query =
                    format!("restype=container&comp=list&maxresults={PAGE_NAMES}&marker={marker}&");
                request.extend_from_slice(self.head("GET", "", &query, "", 0).as_bytes());
            }
            BlobOperation::PutBlock => self.put_block(&format!("up-{}", self.nonce), turn, request),
            BlobOperation::GetRange => {
                let first = turn.wrapping_add(self.nonce * 7) % LARGE_BLOCKS * BLOCK_BYTES as u64;
                let range = format!("range: bytes={first}-{}\r\n", first + BLOCK_BYTES as u64 - 1);
                let head = self.head("GET", &format!("/{LARGE}"), "", &range, 0);
                request.extend_from_slice(head.as_bytes());
            }
        }
    }

    fn reads_body(&self) -> bool {
        !matches!(self.operation, BlobOperation::Get(_) | BlobOperation::GetRange)
    }

    fn is_expected(&mut self, answer: &Answer<'_>) -> bool {
        let Answer { status, body, length } = *answer;
        match self.operation {
            BlobOperation::Put(_) | BlobOperation::PutBlock => status == 201,
            BlobOperation::Get(bytes) => status == 200 && length == bytes,
            BlobOperation::GetRange => status == 206 && length == BLOCK_BYTES,
            BlobOperation::List => {
                self.marker = marker(body).unwrap_or_default();
                status == 200 && find(body, b"</EnumerationResults>").is_some()
            }
        }
    }
}

/// Where the next page begins, as a query wants it; none behind the last one.
fn marker(body: &[u8]) -> Option<String> {
    let start = find(body, b"<NextMarker>")? + b"<NextMarker>".len();
    let end = start + body[start..].iter().position(|byte| *byte == b'<')?;
    let text = String::from_utf8_lossy(&body[start..end]);
    Some(lazuli_http::uri::percent_encode(&text)).filter(|text| !text.is_empty())
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    // From the end: what is looked for stands there, and pages are long.
    bytes.windows(what.len()).rposition(|window| window == what)
}

/// Creates a container.
pub(super) fn create(server: &Server, container: &str) -> Result {
    let requests = BlobRequests::new(BlobOperation::List, container, content(0));
    let request = requests.head("PUT", "", "restype=container&", "", 0);
    send(server, 1, 1, move |_| request.clone().into_bytes()).map(drop)
}

/// Puts blobs of these names, `count` of them, and says how many there are when that is done or takes too long.
pub(super) fn fill(
    server: &Server,
    container: &str,
    count: u64,
    content: &Arc<[u8]>,
    name: impl Fn(u64) -> String + 'static,
) -> Result<u64> {
    let requests = BlobRequests::new(BlobOperation::Put(0), container, content.clone());
    let put = move |number| {
        let mut request = Vec::new();
        requests.put(&name(number), &mut request);
        request
    };
    send(server, count, FILL_CONNECTIONS, put)
}

/// Puts the large blob in blocks, and commits them.
pub(super) fn put_large(server: &Server, container: &str, content: &Arc<[u8]>) -> Result {
    let requests = || BlobRequests::new(BlobOperation::PutBlock, container, content.clone());
    let blocks = requests();
    let put = move |number| {
        let mut request = Vec::new();
        blocks.put_block(LARGE, number, &mut request);
        request
    };
    send(server, LARGE_BLOCKS, 4, put)?;
    let ids = (0..LARGE_BLOCKS).map(|number| format!("<Latest>{}</Latest>", block_id(number)));
    let body = format!(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?><BlockList>{}</BlockList>",
        ids.collect::<String>()
    );
    let head = requests().head("PUT", &format!("/{LARGE}"), "comp=blocklist&", "", body.len());
    send(server, 1, 1, move |_| (head.clone() + &body).into_bytes()).map(drop)
}

/// Sends so many requests; each must be answered with 201. Says how many were, which is fewer if it takes too long.
fn send(
    server: &Server,
    count: u64,
    connections: usize,
    request: impl Fn(u64) -> Vec<u8> + 'static,
) -> Result<u64> {
    send_all(server, count, connections, FILL_WAIT, request, |status, _| status == 201)
}
