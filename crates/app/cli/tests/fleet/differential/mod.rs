//! The same requests, made from a seed, to an embedded server and to a fleet of two nodes: the answers are the same, apart
//! from ids, times and etags. Every request of the fleet goes to the other node than the one before.
//!
//! `cargo xtask differential` runs more seeds with more requests.

mod answer;
mod blobs;
mod documents;
mod queues;
mod tables;

use std::collections::BTreeMap;

use lazuli_env::SplitMix64;

use crate::fleet::Fleet;
use crate::program::{PUBLISHED_KEY, Server};
use answer::Shown;

/// Requests of each front in the test; `LAZULI_DIFFERENTIAL_REQUESTS` asks for another number.
const REQUESTS: u64 = 120;
/// The first seed, and how many there are; `LAZULI_DIFFERENTIAL_SEED` and `LAZULI_DIFFERENTIAL_SEEDS` ask for others.
const SEED: u64 = 1;
const SEEDS: u64 = 1;
/// Requests that are shown when answers differ: the last ones before it.
const SHOWN: usize = 12;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Front {
    Tables,
    Queues,
    Blobs,
    /// With the type of the resource, which is signed.
    Documents(&'static str),
}

/// A request before it is signed. `<NAME>` anywhere in it stands for what an earlier answer of the same side was asked to
/// keep under that name.
#[derive(Clone, Debug)]
struct Asked {
    front: Front,
    method: &'static str,
    path: String,
    headers: Vec<(&'static str, String)>,
    body: String,
    /// What to keep of the answer: the name, and the header, XML element or JSON field.
    keep: Vec<(String, &'static str)>,
}

impl Asked {
    fn new(front: Front, method: &'static str, path: impl Into<String>) -> Self {
        let (headers, body, keep) = (Vec::new(), String::new(), Vec::new());
        Self { front, method, path: path.into(), headers, body, keep }
    }

    fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    fn body(mut self, body: impl Into<String>) -> Self {
        self.body = body.into();
        self
    }

    fn keep(mut self, name: impl Into<String>, field: &'static str) -> Self {
        self.keep.push((name.into(), field));
        self
    }
}

/// Makes the next request of a front.
type Make<'a> = Box<dyn Fn(&mut Chance, u64) -> Asked + 'a>;

/// Chance, and what the makers of requests choose from.
struct Chance(SplitMix64);

impl Chance {
    fn below(&mut self, end: usize) -> usize {
        self.0.below(end)
    }

    fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }

    /// One of several names, few enough that requests meet.
    fn name(&mut self, begin: &str, count: usize) -> String {
        format!("{begin}{}", self.below(count))
    }
}

/// One of the two that are compared: an embedded server, or the nodes of a fleet.
struct Side<'a> {
    servers: Vec<&'a Server>,
    kept: BTreeMap<String, String>,
    asked: usize,
}

impl<'a> Side<'a> {
    fn new(servers: impl IntoIterator<Item = &'a Server>) -> Self {
        Self { servers: servers.into_iter().collect(), kept: BTreeMap::new(), asked: 0 }
    }

    /// The text with what was kept in the place of its name. What was never kept is an invalid value on both sides.
    fn filled(&self, text: &str) -> String {
        let mut out = text.to_owned();
        for (name, value) in &self.kept {
            out = out.replace(&format!("<{name}>"), value);
        }
        out
    }

    fn ask(&mut self, asked: &Asked) -> Shown {
        let server = self.servers[self.asked % self.servers.len()];
        self.asked += 1;
        let (path, body) = (self.filled(&asked.path), self.filled(&asked.body));
        let headers: Vec<(&str, String)> =
            asked.headers.iter().map(|(name, value)| (*name, self.filled(value))).collect();
        let headers: Vec<(&str, &str)> =
            headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let answer = match asked.front {
            Front::Tables => {
                server.exchange_tables(PUBLISHED_KEY, asked.method, &path, &headers, &body)
            }
            Front::Queues => {
                server.exchange_storage("queues", asked.method, &path, &headers, &body)
            }
            Front::Blobs => server.exchange_storage("blobs", asked.method, &path, &headers, &body),
            Front::Documents(kind) => {
                documents::exchange(server, kind, asked.method, &path, &headers, &body)
            }
        };
        for (name, field) in &asked.keep {
            if let Some(value) = answer::field(&answer, field) {
                self.kept.insert(name.clone(), value);
            }
        }
        Shown::of(asked.front, &answer)
    }
}

fn number(name: &str, default: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name} is not a number: {text}")),
        Err(_) => default,
    }
}

#[test]
fn an_embedded_server_and_a_fleet_answer_the_same() {
    let Some(fleet) = Fleet::start() else { return };
    fleet.add_shard("second");
    let folder = tempfile::tempdir().unwrap();
    let alone = Server::start(folder.path());
    alone.command(&["shard", "add", "second"]);
    let mut sides = [Side::new([&alone]), Side::new(fleet.nodes())];
    let requests = number("LAZULI_DIFFERENTIAL_REQUESTS", REQUESTS);
    let first = number("LAZULI_DIFFERENTIAL_SEED", SEED);
    for seed in first..first + number("LAZULI_DIFFERENTIAL_SEEDS", SEEDS) {
        compare(&mut sides, seed, requests);
    }
    fleet.one.server.command(&["fsck"]);
}

fn compare(sides: &mut [Side<'_>; 2], seed: u64, requests: u64) {
    let mut chance = Chance(SplitMix64::new(seed));
    let makers: [(&str, Make<'_>); 4] = [
        ("tables", Box::new(|chance, _| tables::next(chance, seed))),
        ("queues", Box::new(|chance, _| queues::next(chance, seed))),
        ("blobs", Box::new(|chance, _| blobs::next(chance, seed))),
        ("documents", Box::new(|chance, n| documents::next(chance, seed, n))),
    ];
    let mut before: Vec<String> = Vec::new();
    let mut statuses: BTreeMap<(&str, u16), u64> = BTreeMap::new();
    for n in 0..requests {
        for (front, make) in &makers {
            let asked = make(&mut chance, n);
            let [ours, theirs] = sides.each_mut().map(|side| side.ask(&asked));
            *statuses.entry((*front, ours.status)).or_default() += 1;
            let Asked { method, path, headers, .. } = &asked;
            before.push(format!("{method} {path} {headers:?} -> {}", ours.status));
            if ours != theirs {
                let last = before[before.len().saturating_sub(SHOWN)..].join("\n");
                panic!(
                    "seed {seed}, request {n} of {front}: {asked:#?}\nembedded: {ours:#?}\nfleet: \
                     {theirs:#?}\nafter:\n{last}"
                );
            }
        }
    }
    println!("seed {seed}: {} requests, answered {statuses:?}", requests * 4);
    // A maker whose requests are all refused would compare nothing.
    for front in ["tables", "queues", "blobs", "documents"] {
        let good = statuses.iter().filter(|((of, status), _)| *of == front && *status < 300);
        let good: u64 = good.map(|(_, count)| count).sum();
        assert!(good * 3 > requests, "{front}: only {good} of {requests} were carried out");
    }
}
