//! What a fuzzer calls: one function for each parser, which takes any bytes and panics if something that must hold does
//! not. The targets in `fuzz/` are these functions; `tests.rs` runs the same ones on fixed seeds.

mod print;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use lazuli_azure::Operation as _;
use lazuli_azure::account::Target;
use lazuli_azure::auth::access::Access;
use lazuli_azure::auth::{Accounts, Key, Keys};
use lazuli_azure::odata::Value;
use lazuli_http::multipart;
use lazuli_http::uri::{Query, percent_encode};
use lazuli_http::{Body, HeaderMap, HeaderName, HeaderValue, Method, Request, RequestId, Uri};

use crate::address::{EntityKey, Resource};
use crate::entity::{Entity, PARTITION_KEY, Properties, ROW_KEY, merge};
use crate::error::Fault;
use crate::etag::{IfMatch, etag};
use crate::filter::{Filter, Plan};
use crate::limits::Limits;
use crate::request::{Head, Operation, Wishes};
use crate::{Call, Own};
use crate::{token, transaction};

/// The most keys of a filter that its plan is tried on.
const KEYS_MAX: usize = 8;

/// `$filter`: what is read can be written and is read the same again, and its plan leaves out no entity that it matches.
pub fn filter(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let Ok(filter) = Filter::parse(&text) else { return };
    let written = print::filter(&filter);
    // NaN is not equal to itself, but prints as itself.
    let (read, again) = (format!("{:?}", Ok::<_, ()>(&filter)), Filter::parse(&written));
    // What the client left out (spaces, signs, parentheses) may be written, so the text may pass its limit.
    if written.len() <= crate::limits::FILTER_BYTES_MAX {
        assert_eq!(format!("{again:?}"), read, "{written}");
    }
    let mut keys = vec![String::new()];
    literals(&filter, &mut keys);
    let plan = Plan::of(Some(&filter));
    for partition in &keys {
        for row in &keys {
            let find = |name: &str| match name {
                PARTITION_KEY => Some(Value::String(Cow::Borrowed(partition))),
                ROW_KEY => Some(Value::String(Cow::Borrowed(row))),
                _ => None,
            };
            let left_out = filter.matches(&find) && !covers(&plan, partition, row);
            assert!(!left_out, "{plan:?} leaves out {partition:?} {row:?} of {text}");
        }
    }
}

/// Texts that the filter compares with, and those right behind them.
fn literals(filter: &Filter, keys: &mut Vec<String>) {
    match filter {
        Filter::All(terms) | Filter::Any(terms) => {
            terms.iter().for_each(|term| literals(term, keys));
        }
        Filter::Not(term) => literals(term, keys),
        Filter::Compare(_, _, Value::String(key)) if keys.len() < KEYS_MAX => {
            keys.extend([key.to_string(), format!("{key}\0")]);
        }
        Filter::Compare(..) | Filter::Constant(_) => {}
    }
}

fn covers(plan: &Plan, partition: &str, row: &str) -> bool {
    match plan {
        Plan::Nothing => false,
        Plan::Point(one, two) => one == partition && two == row,
        Plan::Rows(key, rows) => key == partition && rows.contains(row),
        Plan::Partitions(keys) => keys.contains(partition),
        Plan::Everything => true,
    }
}

/// The host in the first line and the path in the rest: keys that are read can be written and are read the same again.
pub fn address(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (host, path) = text.split_once('\n').unwrap_or(("localhost", &text));
    if let Ok(Resource::Entity(key)) = Resource::parse(path) {
        let quoted = |key: &str| percent_encode(&key.replace('\'', "''"));
        let EntityKey { table, partition_key, row_key } = &key;
        let (partition, row) = (quoted(partition_key), quoted(row_key));
        let table = percent_encode(table);
        let written = format!("{table}(PartitionKey='{partition}',RowKey='{row}')");
        assert_eq!(Resource::parse(&written), Ok(Resource::Entity(key)), "{written}");
    }
    let accounts = Accounts::new();
    let first = Key::from_base64("a2V5").expect("it is base64");
    accounts.set("dev", Keys { first, second: None });
    let request = request(Method::GET, path, "", &[("host", host)]);
    if let Some((target, rest)) = Target::of(&request, &accounts) {
        for parsed in [Resource::parse(rest), Resource::inside(&target, path)] {
            if let Err(fault) = parsed {
                refused(&fault);
            }
        }
    }
}

/// A method, a path, a query and headers, each in a line: the operation that they mean.
pub fn operation(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let mut lines = text.split('\n');
    let mut next = || lines.next().unwrap_or_default();
    let (method, path, query) = (next(), next(), next());
    let headers: Vec<_> = lines.filter_map(|line| line.split_once(": ")).collect();
    let method = Method::from_bytes(method.as_bytes()).unwrap_or(Method::GET);
    let request = request(method, path, query, &headers);
    let Ok(query) = Query::parse(&request.query) else { return };
    let head = Head { method: &request.method, headers: &request.headers };
    let parsed = Resource::parse(&request.path)
        .and_then(|resource| Operation::parse(head, resource, &query, &Limits::default()));
    match parsed {
        Ok(operation) => {
            assert!(!operation.row().name.is_empty());
            let _ = Wishes::of(head, &query);
        }
        Err(fault) => refused(&fault),
    }
}

/// A continuation token: one token for one key.
pub fn continuation(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    assert_eq!(token::read(&token::write(&text)).as_deref(), Ok(&*text));
    match token::read(&text) {
        Ok(key) => assert_eq!(token::write(&key), text),
        Err(fault) => refused(&fault),
    }
}

/// `If-Match`: a version that is read can be written and is read the same again.
pub fn if_match(data: &[u8]) {
    match IfMatch::parse(&String::from_utf8_lossy(data)) {
        Ok(IfMatch::Any) => {}
        Ok(IfMatch::Version(version)) => {
            assert_eq!(IfMatch::parse(&etag(version)), Ok(IfMatch::Version(version)));
        }
        Err(fault) => refused(&fault),
    }
}

/// The JSON of an entity: what is taken is stored and comes back whole.
pub fn entity(data: &[u8]) {
    let limits = Limits::default();
    let entity = match Entity::parse(data, &limits) {
        Ok(entity) => entity,
        Err(fault) => return refused(&fault),
    };
    match entity.encode("p", "r", &limits) {
        Ok(stored) => {
            let sent =
                entity.properties.iter().map(|(name, value)| Ok((name.as_ref(), value.clone())));
            let sent: Vec<Result<_, crate::entity::Damaged>> = sent.collect();
            let read: Vec<_> = Properties::open(&stored).into_iter().flatten().collect();
            assert_eq!(format!("{read:?}"), format!("{sent:?}"));
            let merged = merge(&stored, &stored, "p", "r", &limits);
            assert_eq!(merged, Ok(stored), "merging an entity into itself changes it");
        }
        Err(fault) => refused(&fault),
    }
}

/// Stored bytes that may be damaged: they are read to their end or to the damage.
pub fn stored(data: &[u8]) {
    if let Ok(read) = Properties::open(data) {
        assert!(read.count() <= data.len());
    }
    let _ = merge(data, data, "p", "r", &Limits::default());
}

/// A boundary in the first line and a change set in the rest: what is taken keeps to one partition key and to the limit,
/// and names no row twice.
pub fn change_set(data: &[u8]) {
    let at = data.iter().position(|byte| *byte == b'\n').unwrap_or(data.len());
    let content_type = String::from_utf8_lossy(&data[..at]);
    let Ok(boundary) = multipart::boundary(&content_type) else { return };
    let limits = Limits::default();
    let changes = match transaction::changes(&limits, &call(), boundary, &data[at..]) {
        Ok(changes) => changes,
        Err(fault) => return refused(&fault),
    };
    assert!(changes.len() <= limits.transaction_operations_max);
    let mut keys: Vec<_> = changes.iter().map(|(_, change)| &change.key).collect();
    keys.sort_by_key(|key| &key.row_key);
    for pair in keys.windows(2) {
        assert_eq!(pair[0].partition_key, pair[1].partition_key);
        assert!(pair[0].table.eq_ignore_ascii_case(&pair[1].table));
        assert_ne!(pair[0].row_key, pair[1].row_key);
    }
}

/// Whatever a client sends is its own fault.
fn refused(fault: &Fault) {
    assert!(!fault.is_ours(), "{fault:?}");
}

fn call() -> Call {
    let request = request(Method::POST, "/dev/$batch", "", &[]);
    let target = Target::of(&request, &Accounts::new()).expect("the path names an account").0;
    Call {
        target,
        access: Access::Owner,
        version: String::new(),
        request_id: request.id.to_string().into(),
        received_ms: 0,
        secure: false,
        peer: request.peer,
        own: Own::default(),
    }
}

fn request(method: Method, path: &str, query: &str, headers: &[(&str, &str)]) -> Request {
    let values = headers.iter().filter_map(|(name, value)| {
        let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
        Some((name, HeaderValue::from_str(value).ok()?))
    });
    // Only what is an address at all gets as far as a front.
    let uri: Uri = format!("{path}?{query}").parse().unwrap_or_default();
    Request {
        method,
        path: uri.path().to_owned(),
        query: uri.query().unwrap_or_default().to_owned(),
        headers: HeaderMap::from_iter(values),
        body: Body::empty(),
        peer: ([127, 0, 0, 1], 1).into(),
        secure: false,
        received_ms: 0,
        id: RequestId(1),
    }
}
