//! Search through HTTP: uploads, simple queries, lookups of keys, and how soon a document is found. It has no peer: the
//! engine alone is compared with Lucene in `crates/search/benches/compare.rs`.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use lazuli_trial::client::KEY;
use lazuli_trial::search::SearchClient;
use lazuli_trial::server::Server;
use serde_json::{Value, json};

use super::connection::Answer;
use super::load::{self, Figure, Requests};
use super::server::{cpu_of, settled};
use super::{Options, Result};
use crate::figures::{Latency, median, milliseconds};
use crate::report::Report;

const INDEX: &str = "bench";
/// Documents, and words that they are made of; the n-th word is about n times rarer than the first.
const DOCUMENTS: u64 = 100_000;
const DOCUMENTS_QUICK: u64 = 20_000;
const VOCABULARY: u64 = 20_000;
const TITLE_WORDS: usize = 8;
const BODY_WORDS: usize = 140;
const BATCH: u64 = 1_000;
const CONNECTIONS: usize = 16;
const ROUNDS: usize = 3;

/// Simple queries a second for each core, of the processor time that the server uses.
const QUERIES_LEAST: f64 = 3_000.0;
/// A document is found so soon after it was answered, while so many come in a second.
const FOUND_MS_MAX: f64 = 200.0;
const UPLOADS: u64 = 1_000;
const UPLOADS_AT_ONCE: u64 = 10;
const PROBES: usize = 40;

pub fn run(options: &Options) -> Result<Report> {
    let mut report = Report::default();
    let is_quick = options.time < Duration::from_secs(2);
    let documents = if is_quick { DOCUMENTS_QUICK } else { DOCUMENTS };
    let folder = options.folder.join("ours");
    std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    let server = Server::start(&options.binary, &folder)?;
    let address = server.endpoint("search")?;
    make(address)?;
    report.say(format_args!("\nthrough HTTP, {documents} documents"));
    index(&server, address, documents, &mut report)?;
    settled(server.process_id());
    for (name, kind, least) in [
        ("1 term", Kind::Term, Some(QUERIES_LEAST)),
        ("2 terms, OR", Kind::Terms, None),
        ("key lookup", Kind::Key, None),
    ] {
        for connections in [1, CONNECTIONS] {
            asked(
                &server,
                address,
                options,
                (name, kind, least, documents),
                connections,
                &mut report,
            )?;
        }
    }
    soon(address, documents, &mut report)?;
    Ok(report)
}

/// Numbers from a seed: the same corpus in every run.
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn word(&mut self) -> u64 {
        let share = (self.next() >> 11) as f64 / (1_u64 << 53) as f64;
        (((VOCABULARY as f64 + 1.0).powf(share) - 1.0) as u64).min(VOCABULARY - 1)
    }

    fn words(&mut self, count: usize) -> String {
        let mut text = String::new();
        for _ in 0..count {
            // Writing to a string does not fail.
            let _ = write!(text, "w{} ", self.word());
        }
        text
    }
}

fn make(address: SocketAddr) -> Result {
    let text = |name: &str| json!({ "name": name, "type": "Edm.String", "searchable": true, "filterable": false, "sortable": false, "facetable": false });
    let key = json!({ "name": "id", "type": "Edm.String", "key": true, "searchable": false });
    let price = json!({ "name": "price", "type": "Edm.Double", "facetable": false });
    let body = json!({ "name": INDEX, "fields": [key, text("title"), text("body"), price] });
    let mut client = SearchClient::connect(address)?;
    client.expect("POST", "/indexes", Some(&body), &[201]).map(drop)
}

fn document(chance: &mut Chance, id: &str) -> Value {
    let (title, body) = (chance.words(TITLE_WORDS), chance.words(BODY_WORDS));
    json!({ "@search.action": "upload", "id": id, "title": title, "body": body, "price": chance.next() % 100_000 })
}

/// Uploads all documents over one connection, and waits until a search sees the last one.
fn index(server: &Server, address: SocketAddr, documents: u64, report: &mut Report) -> Result {
    let mut client = SearchClient::connect(address)?;
    let mut chance = Chance(0x5EED_0001);
    let (mut took, before) = (Duration::ZERO, cpu_of(server.process_id()));
    for low in (0..documents).step_by(BATCH as usize) {
        let ids = low..(low + BATCH).min(documents);
        let batch: Vec<Value> = ids.map(|id| document(&mut chance, &id.to_string())).collect();
        let body = json!({ "value": batch });
        let begun = Instant::now();
        client.expect("POST", &format!("/indexes/{INDEX}/docs/index"), Some(&body), &[200])?;
        took += begun.elapsed();
    }
    let answered = took;
    let begun = Instant::now();
    client.expect("GET", &format!("/indexes/{INDEX}/docs?search=*&$top=1"), None, &[200])?;
    let visible = answered + begun.elapsed();
    let used = cpu_of(server.process_id()).saturating_sub(before);
    report.say(format_args!(
        "indexing: {:.0} documents a second until answered, {:.0} until visible, {:.0} for a second of processor time",
        documents as f64 / answered.as_secs_f64(),
        documents as f64 / visible.as_secs_f64(),
        documents as f64 / used.as_secs_f64(),
    ));
    Ok(())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Term,
    Terms,
    Key,
}

struct Asked {
    kind: Kind,
    chance: Chance,
    documents: u64,
}

impl Requests for Asked {
    fn write(&mut self, _: u64, request: &mut Vec<u8>) {
        let path = match self.kind {
            Kind::Key => format!("docs/{}?", self.chance.next() % self.documents),
            Kind::Term => format!("docs?search=w{}&$top=10&", self.chance.word()),
            Kind::Terms => {
                let (one, two) = (self.chance.word(), self.chance.word());
                format!("docs?search=w{one}%20w{two}&$top=10&")
            }
        };
        request.extend_from_slice(
            format!(
                "GET /indexes/{INDEX}/{path}api-version=2024-07-01 HTTP/1.1\r\nhost: localhost\r\napi-key: {KEY}\r\n\r\n"
            )
            .as_bytes(),
        );
    }

    fn is_expected(&mut self, answer: &Answer<'_>) -> bool {
        answer.status == 200 && answer.length > 0
    }
}

fn asked(
    server: &Server,
    address: SocketAddr,
    options: &Options,
    (name, kind, least, documents): (&str, Kind, Option<f64>, u64),
    connections: usize,
    report: &mut Report,
) -> Result {
    let mut figures: Vec<Figure> = Vec::new();
    for _ in 0..ROUNDS {
        let used = || cpu_of(server.process_id());
        let requests = || {
            let seed = 0x5EED_0100 + load::nonce() * 7_919;
            Ok(Asked { kind, chance: Chance(seed), documents })
        };
        figures.push(load::run_at(address, connections, options.time, used, requests)?);
    }
    let middle = |what: fn(&Figure) -> f64| median(figures.iter().map(what));
    let per_cpu = middle(|it| it.per_cpu);
    let line = format!(
        "{name}, {connections} connections: {:.0} a second, {per_cpu:.0} for a second of processor time, p50 {:.2} ms, p99 {:.2} ms",
        middle(|it| it.per_second),
        middle(|it| milliseconds(it.p50)),
        middle(|it| milliseconds(it.p99)),
    );
    eprintln!("{line}");
    report.say(line);
    if let (Some(least), CONNECTIONS) = (least, connections) {
        report.at_least(format!("{name}: queries a second and core"), per_cpu, least);
    }
    Ok(())
}

/// How long after its answer a document is found by a search, while others come in.
fn soon(address: SocketAddr, documents: u64, report: &mut Report) -> Result {
    let mut writer = SearchClient::connect(address)?;
    let mut chance = Chance(0x5EED_0003);
    let (begun, mut sent, mut found) = (Instant::now(), 0_u64, Vec::new());
    while found.len() < PROBES {
        let batch: Vec<Value> = (0..UPLOADS_AT_ONCE)
            .map(|at| {
                let mut one = document(&mut chance, &format!("more-{}", sent + at));
                one["title"] = json!(format!("probe{}", sent + at));
                one
            })
            .collect();
        let body = json!({ "value": batch });
        writer.expect("POST", &format!("/indexes/{INDEX}/docs/index"), Some(&body), &[200])?;
        let answered = Instant::now();
        sent += UPLOADS_AT_ONCE;
        // Every tenth batch is looked for, by another thread, so that the others go on coming.
        if (sent / UPLOADS_AT_ONCE).is_multiple_of(10) {
            let word = format!("probe{}", sent - 1);
            found.push(std::thread::spawn(move || look(address, &word, answered)));
        }
        let due = begun + Duration::from_secs_f64(sent as f64 / UPLOADS as f64);
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
    }
    let rate = sent as f64 / begun.elapsed().as_secs_f64();
    let times =
        found.into_iter().map(|it| it.join().map_err(|_| "a search panicked".to_owned())?);
    let latency = Latency::of(times.collect::<Result<Vec<Duration>>>()?);
    report.say(format_args!(
        "found after the answer, at {rate:.0} uploads a second beside {documents} documents: {latency}"
    ));
    report.at_most("found after the answer, p99, ms", milliseconds(latency.p99), FOUND_MS_MAX);
    report.at_least("uploads a second meanwhile", rate, UPLOADS as f64 * 0.9);
    Ok(())
}

/// Searches until a document is found that has this word, without asking the server to wait for it.
fn look(address: SocketAddr, word: &str, answered: Instant) -> Result<Duration> {
    let mut client = lazuli_trial::client::Client::connect(address)?;
    let request = format!(
        "GET /indexes/{INDEX}/docs?search={word}&api-version=2024-07-01 HTTP/1.1\r\nhost: localhost\r\napi-key: {KEY}\r\n\r\n"
    );
    loop {
        let answer = client.exchange(request.as_bytes())?;
        let body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        if body["value"].as_array().is_some_and(|it| !it.is_empty()) {
            return Ok(answered.elapsed());
        }
        if answered.elapsed() > Duration::from_secs(10) {
            return Err(format!("{word} is not found: {} {}", answer.status, answer.text()));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}
