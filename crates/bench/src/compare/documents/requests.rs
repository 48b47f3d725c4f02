//! The requests of each operation, as the SDKs send them.

use std::fmt::Write;
use std::sync::LazyLock;
use std::time::Duration;

use lazuli_azure::auth::Key;
use lazuli_azure::auth::master_key::authorization;
use lazuli_env::mix;
use lazuli_http::client::blocking::date_now;
use lazuli_trial::documents::{Container, DocumentClient, KEY, create_database};

use super::item::{self, ITEMS_PER_CUSTOMER, ITEMS_PER_KEY, STATES};
use crate::compare::Result;
use crate::compare::connection::Answer;
use crate::compare::load::{Requests, nonce, send_all};
use crate::compare::server::Server;

pub(super) const DATABASE: &str = "bench";
/// The throughput of each container: the service's least, which makes one physical partition. It is not enforced.
const UNITS: u32 = 400;
/// New items are spread over so many partition keys.
const CREATE_KEYS: u64 = 64;
/// Items of a page in order.
const TOP: u64 = 100;
/// An item has at least so many bytes in a response.
const ITEM_BYTES_LEAST: usize = 1_000;
const FILL_CONNECTIONS: usize = 4;
/// How long filling may take.
const FILL_WAIT: Duration = Duration::from_secs(1_800);

static SIGNER: LazyLock<Key> =
    LazyLock::new(|| Key::from_base64(KEY).expect("the published key is base64"));

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DocumentOperation {
    Create,
    Read,
    Replace,
    /// All items of one partition key.
    QueryKey,
    /// The items of one customer, over all partition keys.
    QueryIndexed,
    /// The first ones by a number, over all partition keys.
    Top,
    /// How many have a state, over all partition keys.
    Count,
    /// A request that is refused by its address alone: what HTTP costs before any work is done.
    Bare,
}

impl DocumentOperation {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Read => "point read",
            Self::Replace => "replace",
            Self::QueryKey => "query in one partition",
            Self::QueryIndexed => "query by index",
            Self::Top => "order by, top 100",
            Self::Count => "count with filter",
            Self::Bare => "bare answer",
        }
    }
}

/// What one connection sends.
pub(super) struct DocumentRequests {
    operation: DocumentOperation,
    container: String,
    items: u64,
    /// Makes the ids of new items unlike those of all other connections and runs.
    nonce: u64,
    body: String,
}

impl DocumentRequests {
    pub(super) fn new(operation: DocumentOperation, container: &str, items: u64) -> Self {
        let container = container.to_owned();
        Self { operation, container, items, nonce: nonce(), body: String::new() }
    }

    /// A number without order, below the number of items.
    fn any(&self, turn: u64) -> u64 {
        mix(turn ^ self.nonce << 40) % self.items
    }

    fn link(&self) -> String {
        format!("dbs/{DATABASE}/colls/{}", self.container)
    }

    fn create(&mut self, turn: u64, request: &mut Vec<u8>) {
        let key = item::key(turn % CREATE_KEYS);
        let id = format!("new-{:06}-{turn:08}", self.nonce);
        self.body.clear();
        item::write(&mut self.body, &key, &id, mix(turn) % self.items, self.items);
        let link = self.link();
        let head = Head { method: "POST", path: &format!("{link}/docs"), link: &link };
        head.write(request, &of_key(&key), &self.body);
    }

    fn of_item(&mut self, turn: u64, request: &mut Vec<u8>) {
        let number = self.any(turn);
        let (key, id) = item::place(number);
        self.body.clear();
        let method = match self.operation {
            DocumentOperation::Replace => {
                let other = self.any(turn + 1);
                item::write(&mut self.body, &key, &id, other, self.items);
                "PUT"
            }
            _ => "GET",
        };
        let link = format!("{}/docs/{id}", self.link());
        Head { method, path: &link, link: &link }.write(request, &of_key(&key), &self.body);
    }

    /// A query with one parameter, in one partition key or over all.
    fn query(&mut self, key: Option<&str>, text: &str, value: &str, request: &mut Vec<u8>) {
        self.body.clear();
        // Writing to a string does not fail.
        let _ = write!(
            self.body,
            "{{\"query\":\"{text}\",\"parameters\":[{{\"name\":\"@value\",\"value\":\"{value}\"}}]}}"
        );
        let scope = match key {
            Some(key) => of_key(key),
            None => "x-ms-documentdb-query-enablecrosspartition: true\r\n".to_owned(),
        };
        let link = self.link();
        let head = Head { method: "POST", path: &format!("{link}/docs"), link: &link };
        let options = "x-ms-documentdb-isquery: true\r\nx-ms-max-item-count: 100\r\n";
        head.write(request, &format!("{scope}{options}"), &self.body);
    }
}

impl Requests for DocumentRequests {
    fn write(&mut self, turn: u64, request: &mut Vec<u8>) {
        use DocumentOperation::{Bare, Count, Create, QueryIndexed, QueryKey, Read, Replace, Top};
        match self.operation {
            Bare => request.extend_from_slice(b"GET /no HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"),
            Create => self.create(turn, request),
            Read | Replace => self.of_item(turn, request),
            QueryKey => {
                let key = item::key(self.any(turn) / ITEMS_PER_KEY);
                let text = "SELECT * FROM c WHERE c.pk = @value";
                self.query(Some(&key), text, &key, request);
            }
            QueryIndexed => {
                let customer = item::customer(self.any(turn) / ITEMS_PER_CUSTOMER);
                let text = "SELECT * FROM c WHERE c.customer = @value";
                self.query(None, text, &customer, request);
            }
            Top => {
                let text = format!("SELECT TOP {TOP} * FROM c ORDER BY c.number DESC");
                self.query(None, &text, "", request);
            }
            Count => {
                let state = STATES[(self.any(turn) % 4) as usize];
                let text = "SELECT VALUE COUNT(1) FROM c WHERE c.state = @value";
                self.query(None, text, state, request);
            }
        }
    }

    fn reads_body(&self) -> bool {
        matches!(self.operation, DocumentOperation::Count)
    }

    fn is_expected(&mut self, answer: &Answer<'_>) -> bool {
        let Answer { status, body, length } = *answer;
        let has_items = |items: u64| status == 200 && length >= items as usize * ITEM_BYTES_LEAST;
        match self.operation {
            DocumentOperation::Bare => status >= 400,
            DocumentOperation::Create => status == 201,
            DocumentOperation::Read | DocumentOperation::Replace => has_items(1),
            // A page that lacks items would be quick for the wrong reason.
            DocumentOperation::QueryKey => has_items(ITEMS_PER_KEY),
            DocumentOperation::QueryIndexed => has_items(ITEMS_PER_CUSTOMER),
            DocumentOperation::Top => has_items(TOP),
            DocumentOperation::Count => {
                let count = format!("[{}]", self.items / STATES.len() as u64);
                status == 200 && body.windows(count.len()).any(|word| word == count.as_bytes())
            }
        }
    }
}

fn of_key(key: &str) -> String {
    format!("x-ms-documentdb-partitionkey: [\"{key}\"]\r\n")
}

/// What a request about items is signed by.
struct Head<'a> {
    method: &'a str,
    path: &'a str,
    link: &'a str,
}

impl Head<'_> {
    /// Writes the whole request.
    fn write(&self, request: &mut Vec<u8>, headers: &str, body: &str) {
        let Self { method, path, link } = self;
        let date = date_now();
        let authorization = authorization(&SIGNER, method, "docs", link, &date);
        let length = body.len();
        let head = format!(
            "{method} /{path} HTTP/1.1\r\nhost: 127.0.0.1\r\nx-ms-date: {date}\r\n\
             x-ms-version: 2020-07-15\r\nauthorization: {authorization}\r\n\
             accept: application/json\r\ncontent-type: application/json\r\n{headers}\
             content-length: {length}\r\n\r\n"
        );
        request.extend_from_slice(head.as_bytes());
        request.extend_from_slice(body.as_bytes());
    }
}

/// Creates a container, and the database of all containers if it is not there.
pub(super) fn create(server: &Server, name: &str) -> Result {
    let container = Container { database: DATABASE, name };
    for (request, statuses) in
        [(create_database(DATABASE), &[201, 409][..]), (container.create(UNITS), &[201])]
    {
        // The emulator closes the connection behind each answer.
        DocumentClient::connect(server.address)?.expect(&request, statuses)?;
    }
    Ok(())
}

/// Fills a container with items, all those of a partition key in one batch.
pub(super) fn fill(server: &Server, name: &str, items: u64) -> Result {
    let link = format!("dbs/{DATABASE}/colls/{name}");
    let request = move |number: u64| {
        let (key, mut body) = (item::key(number), String::from("["));
        for number in number * ITEMS_PER_KEY..(number + 1) * ITEMS_PER_KEY {
            let separator = if body.len() > 1 { "," } else { "" };
            // Writing to a string does not fail.
            let _ = write!(body, "{separator}{{\"operationType\":\"Create\",\"resourceBody\":");
            item::write(&mut body, &key, &item::id(number), number, items);
            body.push('}');
        }
        body.push(']');
        let options = "x-ms-cosmos-is-batch-request: true\r\nx-ms-cosmos-batch-atomic: true\r\n";
        let mut request = Vec::new();
        let head = Head { method: "POST", path: &format!("{link}/docs"), link: &link };
        head.write(&mut request, &format!("{}{options}", of_key(&key)), &body);
        request
    };
    let count = items.div_ceil(ITEMS_PER_KEY);
    let is_expected = |status, _: &[u8]| status == 200;
    match send_all(server, count, FILL_CONNECTIONS, FILL_WAIT, request, is_expected)? {
        done if done == count => Ok(()),
        done => Err(format!("only {} of {items} items in time", done * ITEMS_PER_KEY)),
    }
}
