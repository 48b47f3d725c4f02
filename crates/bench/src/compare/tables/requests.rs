//! The requests of each operation, as the SDKs send them.

use std::fmt::Write;
use std::time::Duration;

use lazuli_env::mix;
use lazuli_http::client::blocking::date_now;
use lazuli_trial::client::{ACCOUNT, Client, signature};

use super::entity::{self, ENTITIES_PER_PARTITION};
use crate::compare::Result;
use crate::compare::connection::Answer;
use crate::compare::load::{Requests, nonce, send_all};
use crate::compare::server::Server;

const TRANSACTION_ENTITIES: u64 = 100;
/// Inserts are spread over so many partitions.
const INSERT_PARTITIONS: u64 = 64;
/// One entity in so many is found by a filtered scan.
const SCAN_SHARE: u64 = 1_000;
const FILL_CONNECTIONS: usize = 4;
/// How long filling may take: the emulator gets slower with every entity.
const FILL_WAIT: Duration = Duration::from_secs(240);

const BOUNDARY: &str = "batch_7a1b";
const CHANGES: &str = "changeset_7a1b";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TableOperation {
    Insert,
    Get,
    Merge,
    /// All entities of one partition: one page.
    QueryPartition,
    /// A condition on a property, over the whole table.
    FilteredScan,
    /// A hundred inserts.
    Transaction,
    /// A request that is refused by its address alone: what HTTP costs before any work is done.
    Bare,
}

impl TableOperation {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Insert => "insert",
            Self::Get => "get",
            Self::Merge => "merge",
            Self::QueryPartition => "query partition",
            Self::FilteredScan => "filtered scan",
            Self::Transaction => "transaction",
            Self::Bare => "bare answer",
        }
    }
}

/// What one connection sends.
pub(super) struct TableRequests {
    operation: TableOperation,
    table: String,
    entities: u64,
    /// Makes the keys of new entities unlike those of all other connections and runs.
    nonce: u64,
    text: String,
}

impl TableRequests {
    pub(super) fn new(operation: TableOperation, table: &str, entities: u64) -> Self {
        let (table, text) = (table.to_owned(), String::new());
        Self { operation, table, entities, nonce: nonce(), text }
    }

    /// A number without order, below the number of entities.
    fn any(&self, turn: u64) -> u64 {
        mix(turn ^ self.nonce << 40) % self.entities
    }

    fn insert(&mut self, turn: u64, request: &mut Vec<u8>) {
        let partition = format!("i{:04}", turn % INSERT_PARTITIONS);
        let row = format!("{:06}-{turn:08}", self.nonce);
        self.text.clear();
        entity::write(&mut self.text, &partition, &row, turn);
        let path = format!("/{}", self.table);
        head(request, "POST", &path, "", "application/json", self.text.len());
        request.extend_from_slice(self.text.as_bytes());
    }

    fn merge(&mut self, turn: u64, request: &mut Vec<u8>) {
        let path = self.entity_path(turn);
        let body = format!("{{\"Count\":{turn}}}");
        head(request, "PATCH", &path, "", "application/json", body.len());
        // The head ends with an empty line, before which this goes.
        request.truncate(request.len() - 2);
        request.extend_from_slice(b"if-match: *\r\n\r\n");
        request.extend_from_slice(body.as_bytes());
    }

    fn entity_path(&self, turn: u64) -> String {
        let (partition, row) = entity::keys(self.any(turn));
        format!("/{}(PartitionKey='{partition}',RowKey='{row}')", self.table)
    }

    fn query(&mut self, filter: &str, request: &mut Vec<u8>) {
        let path = format!("/{}()", self.table);
        let query = format!("?$filter={}", filter.replace(' ', "%20").replace('\'', "%27"));
        head(request, "GET", &path, &query, "application/json", 0);
    }
}

impl Requests for TableRequests {
    fn write(&mut self, turn: u64, request: &mut Vec<u8>) {
        match self.operation {
            TableOperation::Bare => {
                request.extend_from_slice(b"GET / HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
            }
            TableOperation::Insert => self.insert(turn, request),
            TableOperation::Merge => self.merge(turn, request),
            TableOperation::Get => {
                let path = self.entity_path(turn);
                head(request, "GET", &path, "", "application/json", 0);
            }
            TableOperation::QueryPartition => {
                let partition = entity::partition(self.any(turn) / ENTITIES_PER_PARTITION);
                self.query(&format!("PartitionKey eq '{partition}'"), request);
            }
            TableOperation::FilteredScan => {
                let count = self.any(turn) % SCAN_SHARE;
                self.query(&format!("Count eq {count}"), request);
            }
            TableOperation::Transaction => {
                let partition = format!("t{:06}-{turn:08}", self.nonce);
                let rows =
                    (0..TRANSACTION_ENTITIES).map(|n| (partition.clone(), format!("r{n:06}"), n));
                transaction(&self.table, &mut self.text, rows, request);
            }
        }
    }

    fn is_expected(&mut self, answer: &Answer<'_>) -> bool {
        let Answer { status, body, .. } = *answer;
        match self.operation {
            TableOperation::Bare => status >= 400,
            TableOperation::Insert | TableOperation::Merge => status == 204,
            TableOperation::Get | TableOperation::FilteredScan => status == 200,
            // A page that lacks entities would be quick for the wrong reason.
            TableOperation::QueryPartition => {
                status == 200 && body.len() > 100 * ENTITIES_PER_PARTITION as usize
            }
            TableOperation::Transaction => status == 202 && has_succeeded(body),
        }
    }
}

/// The answer to a transaction is always 202; its parts have the outcomes, and a failure is the only part.
fn has_succeeded(body: &[u8]) -> bool {
    body.windows(12).filter(|word| word == b"HTTP/1.1 204").count() == TRANSACTION_ENTITIES as usize
}

fn head(
    request: &mut Vec<u8>,
    method: &str,
    path: &str,
    query: &str,
    content: &str,
    length: usize,
) {
    let path = format!("/{ACCOUNT}{path}");
    let date = date_now();
    let signature = signature(&format!("{date}\n/{ACCOUNT}{path}"));
    let head = format!(
        "{method} {path}{query} HTTP/1.1\r\nhost: 127.0.0.1\r\nx-ms-date: {date}\r\n\
         x-ms-version: 2019-02-02\r\nauthorization: SharedKeyLite {ACCOUNT}:{signature}\r\n\
         accept: application/json;odata=minimalmetadata\r\ndataserviceversion: 3.0\r\n\
         prefer: return-no-content\r\ncontent-type: {content}\r\ncontent-length: {length}\r\n\r\n",
    );
    request.extend_from_slice(head.as_bytes());
}

/// A transaction of inserts.
fn transaction(
    table: &str,
    body: &mut String,
    entities: impl Iterator<Item = (String, String, u64)>,
    request: &mut Vec<u8>,
) {
    body.clear();
    // Writing to a string does not fail, here and below.
    let _ =
        write!(body, "--{BOUNDARY}\r\nContent-Type: multipart/mixed; boundary={CHANGES}\r\n\r\n");
    for (partition, row, number) in entities {
        let _ = write!(
            body,
            "--{CHANGES}\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n\
             POST http://127.0.0.1/{ACCOUNT}/{table} HTTP/1.1\r\nContent-Type: application/json\r\n\
             Accept: application/json;odata=minimalmetadata\r\nPrefer: return-no-content\r\n\
             DataServiceVersion: 3.0\r\n\r\n"
        );
        entity::write(body, &partition, &row, number);
        body.push_str("\r\n");
    }
    let _ = write!(body, "--{CHANGES}--\r\n--{BOUNDARY}--\r\n");
    let content = format!("multipart/mixed; boundary={BOUNDARY}");
    head(request, "POST", "/$batch", "", &content, body.len());
    request.extend_from_slice(body.as_bytes());
}

/// Creates a table.
pub(super) fn create(server: &Server, table: &str) -> Result {
    Client::connect(server.address)?.create_table(table)
}

/// Fills a table that has `from` entities up to `to`. Says how many it has when that is done or takes too long.
pub(super) fn fill(server: &Server, table: &str, from: u64, to: u64) -> Result<u64> {
    let table = table.to_owned();
    let request = move |number: u64| {
        let first = from + number * TRANSACTION_ENTITIES;
        let entities = (first..first + TRANSACTION_ENTITIES).map(|number| {
            let (partition, row) = entity::keys(number);
            (partition, row, number)
        });
        let (mut request, mut body) = (Vec::new(), String::new());
        transaction(&table, &mut body, entities, &mut request);
        request
    };
    let count = (to - from).div_ceil(TRANSACTION_ENTITIES);
    let is_expected = |status, body: &[u8]| status == 202 && has_succeeded(body);
    let done = send_all(server, count, FILL_CONNECTIONS, FILL_WAIT, request, is_expected)?;
    Ok((from + done * TRANSACTION_ENTITIES).min(to))
}
