//! What users feel beyond the comparison: the price of a write by its size and its values, the charges that the service has
//! published, and pages of long results. One connection, one request after another; processor time is the server's.

use std::time::Instant;

use lazuli_trial::documents::{Container, DocumentClient, Request};
use serde_json::{Value, json};

use super::item::ITEMS_PER_KEY;
use super::requests::DATABASE;
use crate::compare::Result;
use crate::compare::server::Server;
use crate::figures::{median, milliseconds};
use crate::report::Report;

const SIZED: &str = "sized";
const UNINDEXED: &str = "unindexed";
/// Creates of one size.
const CREATES: usize = 100;
/// Bytes and values of the items whose creation is measured.
const SHAPES: [(usize, usize); 6] =
    [(1_000, 5), (1_000, 50), (10_000, 50), (10_000, 500), (100_000, 50), (100_000, 5_000)];
/// Items of the change feed that are read.
const FEED_ITEMS: usize = 100_000;
const FEED_PAGE: usize = 1_000;
/// Pages of a result in order.
const PAGES: usize = 100;

/// How long requests took, and what they cost.
#[derive(Default)]
struct Took {
    milliseconds: Vec<f64>,
    units: f64,
    cpu_ms: f64,
}

impl Took {
    fn line(&self) -> String {
        let count = self.milliseconds.len().max(1) as f64;
        let typical = median(self.milliseconds.iter().copied());
        let (cpu, units) = (self.cpu_ms / count, self.units / count);
        format!("{typical:.2} ms, {cpu:.2} ms of processor time, {units:.2} RU")
    }
}

struct Meter<'a> {
    server: &'a Server,
    client: DocumentClient,
}

impl Meter<'_> {
    /// Sends a request and adds what it took. The answer is that of a success.
    fn send(&mut self, request: &Request, took: &mut Took) -> Result<Answered> {
        let (began, before) = (Instant::now(), self.server.cpu());
        let answer = self.client.expect(request, &[200, 201, 304])?;
        took.milliseconds.push(milliseconds(began.elapsed()));
        took.cpu_ms += milliseconds(self.server.cpu().saturating_sub(before));
        let header = |name: &str| answer.header(name).map(str::to_owned);
        let charge = header("x-ms-request-charge").and_then(|text| text.parse::<f64>().ok());
        took.units += charge.unwrap_or(0.0);
        let count = header("x-ms-item-count").and_then(|text| text.parse().ok()).unwrap_or(0);
        let (next, etag) = (header("x-ms-continuation"), header("etag"));
        Ok(Answered { count, next, etag })
    }
}

struct Answered {
    count: usize,
    next: Option<String>,
    etag: Option<String>,
}

/// Measures a server that has a container `filled` with many items.
pub(super) fn run(server: &Server, filled: &str, report: &mut Report) -> Result {
    let mut meter = Meter { server, client: DocumentClient::connect(server.address)? };
    super::requests::create(server, SIZED)?;
    let sized = Container { database: DATABASE, name: SIZED };
    for (bytes, values) in SHAPES {
        let mut took = Took::default();
        for n in 0..CREATES {
            let id = format!("{bytes}-{values}-{n}");
            let request = sized.create_item("k", &shaped(&id, bytes, values, n));
            meter.send(&request, &mut took)?;
        }
        report.say(format_args!("create of {bytes} bytes with {values} values: {}", took.line()));
    }
    charges(&mut meter, report)?;
    let filled = Container { database: DATABASE, name: filled };
    pages(&mut meter, &filled, report)?;
    scans(&mut meter, &filled, report)?;
    feed(&mut meter, &filled, report)
}

/// An item of about so many bytes, in so many values.
fn shaped(id: &str, bytes: usize, values: usize, n: usize) -> Value {
    let mut item = json!({ "id": id, "pk": "k" });
    let each = (bytes / values).saturating_sub(14).max(1);
    for value in 0..values {
        let text = format!("{:0each$}", n * 7_919 + value);
        item[format!("value{value:05}")] = text.into();
    }
    item
}

/// What the service has published of its prices.
fn charges(meter: &mut Meter<'_>, report: &mut Report) -> Result {
    let policy = json!({ "indexingMode": "none", "automatic": false });
    let plain = Container { database: DATABASE, name: UNINDEXED };
    meter.client.expect(&plain.create_with(400, &policy), &[201])?;
    for (size, published) in [(1_000, ("1", "5.5")), (100_000, ("10", "50"))] {
        let (mut created, mut read, mut replaced) =
            (Took::default(), Took::default(), Took::default());
        let item = shaped(&size.to_string(), size, 5, 1);
        let id = size.to_string();
        meter.send(&plain.create_item("k", &item), &mut created)?;
        meter.send(&plain.read_item("k", &id), &mut read)?;
        meter.send(&plain.replace_item("k", &id, &item), &mut replaced)?;
        report.say(format_args!(
            "{size} bytes without an index: read {:.2} RU (published: {}), create {:.2} (published: {}), \
             replace {:.2}",
            read.units, published.0, created.units, published.1, replaced.units
        ));
    }
    Ok(())
}

/// Pages of a result in order, all of them to be as quick as the first.
fn pages(meter: &mut Meter<'_>, filled: &Container<'_>, report: &mut Report) -> Result {
    for (name, text) in [
        ("order by", "SELECT * FROM c ORDER BY c.number"),
        ("filter and order by", "SELECT * FROM c WHERE c.express = true ORDER BY c.number DESC"),
    ] {
        let query = filled.query(None, text, &[]).with("x-ms-max-item-count", "100");
        let (mut first, mut rest) = (Took::default(), Took::default());
        let mut next = meter.send(&query, &mut first)?.next;
        for _ in 1..PAGES {
            let Some(after) = next.take() else { break };
            next = meter.send(&query.clone().with("x-ms-continuation", &after), &mut rest)?.next;
        }
        report.say(format_args!("{name}, first page of 100: {}", first.line()));
        report.say(format_args!(
            "{name}, the {} pages behind it: {}",
            rest.milliseconds.len(),
            rest.line()
        ));
    }
    let text = format!("SELECT * FROM c WHERE c.number < {ITEMS_PER_KEY}0");
    let mut took = Took::default();
    let query = filled.query(None, &text, &[]).with("x-ms-max-item-count", "1000");
    let found = meter.send(&query, &mut took)?.count;
    report.say(format_args!("range of {found} items by index: {}", took.line()));
    Ok(())
}

/// Queries that no index helps.
fn scans(meter: &mut Meter<'_>, filled: &Container<'_>, report: &mut Report) -> Result {
    for (name, text) in [
        ("count without an index", "SELECT VALUE COUNT(1) FROM c WHERE c.number % 1000 = 7"),
        ("average of all", "SELECT VALUE AVG(c.price) FROM c"),
        ("group by", "SELECT c.state, COUNT(1) AS n FROM c GROUP BY c.state"),
        ("count of all", "SELECT VALUE COUNT(1) FROM c"),
        ("count of a quarter", "SELECT VALUE COUNT(1) FROM c WHERE c.state = 'paid'"),
    ] {
        let mut took = Took::default();
        meter.send(&filled.query(None, text, &[]), &mut took)?;
        report.say(format_args!("{name}: {}", took.line()));
    }
    let text = "SELECT * FROM c WHERE c.number % 100000 = 7";
    let query = filled.query(None, text, &[]).with("x-ms-max-item-count", "100");
    let (mut took, mut next) = (Took::default(), None::<String>);
    loop {
        let page =
            next.iter().fold(query.clone(), |page, next| page.with("x-ms-continuation", next));
        next = meter.send(&page, &mut took)?.next;
        if next.is_none() {
            break;
        }
    }
    let pages = took.milliseconds.len();
    report.say(format_args!("scan without an index, {pages} pages, each: {}", took.line()));
    Ok(())
}

/// The change feed from its beginning.
fn feed(meter: &mut Meter<'_>, filled: &Container<'_>, report: &mut Report) -> Result {
    let ranges = meter.client.expect(&filled.ranges(), &[200])?.json();
    let range = ranges["PartitionKeyRanges"][0]["id"].as_str().unwrap_or_default().to_owned();
    let (mut took, mut items, mut since) = (Took::default(), 0, None::<String>);
    while items < FEED_ITEMS {
        let request = filled.changes(&range, since.as_deref());
        let page =
            meter.send(&request.with("x-ms-max-item-count", &FEED_PAGE.to_string()), &mut took)?;
        if page.count == 0 {
            break;
        }
        items += page.count;
        since = page.etag;
    }
    let tenth = (took.milliseconds.len() / 10).max(1);
    let first = median(took.milliseconds.iter().take(tenth).copied());
    let last = median(took.milliseconds.iter().rev().take(tenth).copied());
    report.say(format_args!(
        "change feed, {items} items in pages of {FEED_PAGE}: {}; first pages {first:.1} ms, last {last:.1} ms",
        took.line()
    ));
    Ok(())
}
