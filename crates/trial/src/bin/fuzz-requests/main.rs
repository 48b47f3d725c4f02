//! Fuzzed requests: good ones with something changed, unsigned ones, ones that are no HTTP, and ones with too much of
//! everything, over several connections. Each is answered with a success or with an error that the documentation knows,
//! the server never fails, its memory stays flat, and afterwards it works and its data is sound. Run by
//! `cargo xtask fuzz`.

mod answers;
mod codes;
mod requests;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Instant;

use lazuli_http::mutate::Chance;
use lazuli_http::uri::Query;
use lazuli_trial::Result;
use lazuli_trial::client::{Answer, Client, Request};
use lazuli_trial::options::Options;
use lazuli_trial::server::{self, Server};

const TABLE: &str = "fuzz";
const CONNECTIONS: u64 = 8;

/// How much memory may grow between the first quarter and the end: what the store keeps in memory of the data that was
/// written meanwhile, and what the allocator holds back at that moment.
const GROWTH_KIB_MAX: u64 = 48 * 1024;

/// The most of a request that a failure shows.
const SHOWN_BYTES_MAX: usize = 2_000;

fn main() -> ExitCode {
    match Options::read().and_then(|options| run(&options)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("fuzz-requests: {message}");
            ExitCode::from(1)
        }
    }
}

fn run(options: &Options) -> Result {
    let (requests, seed): (u64, u64) = (options.value("--requests")?, options.value("--seed")?);
    println!("{requests} fuzzed requests over {CONNECTIONS} connections, seed {seed}");
    let began = Instant::now();
    let server = Server::start(&options.binary, &options.folder)?;
    Client::connect(server.address())?.create_table(TABLE)?;
    let (mut counts, mut memory_kib) = (Counts::default(), Vec::new());
    for quarter in 0..4 {
        counts.add(&fuzz(server.address(), seed * 4 + quarter, requests / 4)?);
        memory_kib.push(server.resident_kib()?);
    }
    serves(server.address())?;
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
    /// What never became a request, so that nobody had to answer it in the service's words.
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
        let chance = Chance::seeded(seed * CONNECTIONS + connection);
        std::thread::spawn(move || connection_of(address, chance, share))
    };
    let connections: Vec<_> = (0..CONNECTIONS).map(start).collect();
    let mut counts = Counts::default();
    for connection in connections {
        counts.add(&connection.join().map_err(|_| "a connection panicked".to_owned())??);
    }
    Ok(counts)
}

fn connection_of(address: SocketAddr, mut chance: Chance, requests: u64) -> Result<Counts> {
    let mut counts = Counts::default();
    let mut client = Client::connect(address)?;
    for _ in 0..requests {
        let (bytes, is_http) = next(&mut chance);
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
            Client::connect(address)?.last_words(&bytes)
        };
        if let Some(wrong) = answer.as_ref().and_then(answers::wrong) {
            return Err(shown(&wrong, &bytes));
        }
        counts.count(answer.as_ref());
    }
    Ok(counts)
}

/// The bytes of a request, and whether they are one that must be answered.
fn next(chance: &mut Chance) -> (Vec<u8>, bool) {
    let request = requests::good(chance);
    match chance.below(20) {
        0..=9 => (sign(requests::changed(chance, request)).bytes(), true),
        10 => (sign(request).bytes(), true),
        11 => (requests::changed(chance, request).bytes(), true),
        12 | 13 => {
            let mut request = sign(request);
            let name = ["authorization", "x-ms-date"][chance.below(2)];
            for (_, value) in request.headers.iter_mut().filter(|(it, _)| it == name) {
                let text = String::from_utf8_lossy(&chance.variant(value.as_bytes())).into_owned();
                *value = text.chars().filter(|c| !c.is_control()).collect();
            }
            (request.bytes(), true)
        }
        14 | 15 => (requests::shared_access(chance, request).bytes(), true),
        16 => (sign(requests::large(chance)).bytes(), true),
        17 | 18 => {
            let bytes = sign(request).bytes();
            (chance.variant(&bytes), false)
        }
        _ => ((0..chance.below(300)).map(|_| chance.below(256) as u8).collect(), false),
    }
}

/// Signs what is sent, so that what was changed is looked at.
fn sign(request: Request) -> Request {
    let query = request.query.clone();
    let query = Query::parse(query.strip_prefix('?').unwrap_or(&query)).unwrap_or_default();
    request.signed(query.get("comp"))
}

/// A good request works as ever.
fn serves(address: SocketAddr) -> Result {
    let mut client = Client::connect(address)?;
    let path = format!("/{TABLE}(PartitionKey='after',RowKey='all')");
    let put = client.send(Request::new("PUT", &path, "", r#"{"A":1}"#))?;
    let got = client.send(Request::new("GET", &path, "", ""))?;
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
