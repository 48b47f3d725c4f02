//! Fuzzed requests: good ones with something changed, unsigned ones, ones that are no HTTP, and ones with too much of
//! everything, over several connections. Each is answered with a success or with an error that the documentation knows,
//! the server never fails, its memory stays flat, and afterwards it works and its data is sound. Run by
//! `cargo xtask fuzz`.

mod answers;
mod codes;
mod requests;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Instant;

use lazuli_env::{SplitMix64, mix};
use lazuli_http::mutate::variant;
use lazuli_trial::Result;
use lazuli_trial::client::{Answer, Client, Request};
use lazuli_trial::server::{self, Server};

use crate::Options;

const TABLE: &str = "fuzz";
const CONNECTIONS: u64 = 8;

/// How much memory may grow between the first quarter and the end: what the store keeps in memory of the data that was
/// written meanwhile, and what the allocator holds back at that moment.
const GROWTH_KIB_MAX: u64 = 48 * 1024;

/// The most of a request that a failure shows.
const SHOWN_BYTES_MAX: usize = 2_000;

pub(crate) fn run(options: &Options) -> Result {
    let (requests, seed): (u64, u64) = (options.value("--requests")?, options.value("--seed")?);
    println!("{requests} fuzzed requests over {CONNECTIONS} connections, seed {seed}");
    let began = Instant::now();
    let server = Server::start(&options.binary, &options.folder)?;
    let address = server.endpoint("tables")?;
    Client::connect(address)?.create_table(TABLE)?;
    let (mut counts, mut memory_kib) = (Counts::default(), Vec::new());
    for quarter in 0..4 {
        counts.add(&fuzz(address, seed * 4 + quarter, requests / 4)?);
        memory_kib.push(server.resident_kib()?);
    }
    serves(address)?;
    let log = server.log();
    if let Some(line) = log.lines().find(|line| line.contains("panicked") || line.contains("ERROR"))
    {
        return Err(format!("the server's log says: {line}"));
    }
    server.stop()?;
    server::fsck(&options.binary, &options.folder)?;
    let seconds = began.elapsed().as_secs_f64();
    println!(
        "{} succeeded, {} refused with documented errors, {} were no HTTP; {seconds:.0} s",
        counts.succeeded,
        counts.refused.values().sum::<u64>(),
        counts.unheard
    );
    for (code, count) in &counts.refused {
        println!("  {count:>7} {code}");
    }
    println!("no failure of the server, no panic, still serving, fsck clean");
    println!("memory after each quarter, in KiB: {memory_kib:?}");
    if memory_kib[3] > memory_kib[0] + GROWTH_KIB_MAX {
        return Err(format!("memory grew by more than {GROWTH_KIB_MAX} KiB"));
    }
    Ok(())
}

#[derive(Default)]
struct Counts {
    succeeded: u64,
    /// By the code of the error.
    refused: BTreeMap<String, u64>,
    /// Bytes that never became a request, so no operation had to answer them.
    unheard: u64,
}

impl Counts {
    fn add(&mut self, other: &Self) {
        self.succeeded += other.succeeded;
        for (code, count) in &other.refused {
            *self.refused.entry(code.clone()).or_default() += count;
        }
        self.unheard += other.unheard;
    }

    fn count(&mut self, answer: Option<&Answer>) {
        match answer {
            Some(answer) if answer.status < 300 => self.succeeded += 1,
            Some(answer) => match answer.header("x-ms-error-code") {
                Some(code) => *self.refused.entry(code.to_owned()).or_default() += 1,
                None => self.unheard += 1,
            },
            None => self.unheard += 1,
        }
    }
}

/// Sends so many requests, spread over the connections.
fn fuzz(address: SocketAddr, seed: u64, requests: u64) -> Result<Counts> {
    let share = requests.div_ceil(CONNECTIONS);
    let start = |connection| {
        let random = SplitMix64::new(mix(seed * CONNECTIONS + connection));
        std::thread::spawn(move || connection_of(address, random, share))
    };
    let connections: Vec<_> = (0..CONNECTIONS).map(start).collect();
    let mut counts = Counts::default();
    for connection in connections {
        counts.add(&connection.join().map_err(|_| "a connection panicked".to_owned())??);
    }
    Ok(counts)
}

fn connection_of(address: SocketAddr, mut random: SplitMix64, requests: u64) -> Result<Counts> {
    let mut counts = Counts::default();
    let mut client = Client::connect(address)?;
    for _ in 0..requests {
        let (bytes, is_http) = next(&mut random);
        let answer = if is_http {
            let answer = match client.exchange(&bytes) {
                Ok(answer) => answer,
                // The server may close a connection whose last request it refused; the next one must work.
                Err(_) => {
                    client = Client::connect(address)?;
                    client.exchange(&bytes).map_err(|error| shown(&error, &bytes))?
                }
            };
            Some(answer)
        } else {
            Client::connect(address)?.exchange_last(&bytes)
        };
        if let Some(wrong) = answer.as_ref().and_then(answers::wrong) {
            return Err(shown(&wrong, &bytes));
        }
        counts.count(answer.as_ref());
    }
    Ok(counts)
}

/// The bytes of a request, and whether they are one that must be answered.
fn next(random: &mut SplitMix64) -> (Vec<u8>, bool) {
    let request = requests::good(random);
    match random.below(20) {
        0..=9 => (requests::changed(random, request).signed().bytes(), true),
        10 => (request.signed().bytes(), true),
        11 => (requests::changed(random, request).bytes(), true),
        12 | 13 => {
            let mut request = request.signed();
            let name = ["authorization", "x-ms-date"][random.below(2)];
            for (_, value) in request.headers.iter_mut().filter(|(it, _)| it == name) {
                let text = String::from_utf8_lossy(&variant(random, value.as_bytes())).into_owned();
                *value = text.chars().filter(|c| !c.is_control()).collect();
            }
            (request.bytes(), true)
        }
        14 | 15 => (requests::shared_access(random, request).bytes(), true),
        16 => (requests::large(random).signed().bytes(), true),
        17 | 18 => {
            let bytes = request.signed().bytes();
            (variant(random, &bytes), false)
        }
        _ => {
            let count = random.below(300);
            (random.bytes(count), false)
        }
    }
}

/// A good request works as ever.
fn serves(address: SocketAddr) -> Result {
    let mut client = Client::connect(address)?;
    let path = format!("/{TABLE}(PartitionKey='after',RowKey='all')");
    let put = client.send(Request::tables("PUT", &path, "", r#"{"A":1}"#))?;
    let got = client.send(Request::tables("GET", &path, "", ""))?;
    match (put.status, got.status, got.json()["A"].as_u64()) {
        (204, 200, Some(1)) => Ok(()),
        _ => {
            Err(format!("it does not serve any more: {} {} {}", put.status, got.status, got.text()))
        }
    }
}

fn shown(what: &str, request: &[u8]) -> String {
    let request = String::from_utf8_lossy(&request[..request.len().min(SHOWN_BYTES_MAX)]);
    format!("{what}; it was sent:\n{request}")
}
