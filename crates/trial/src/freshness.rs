//! How soon searches find a document that was answered, while documents are uploaded at a steady rate.
//!
//! Writers upload documents over connections of their own and tell when some of them were answered; seekers then search for
//! each until it is found. The rate is kept whatever the server does: an upload that is late makes the next ones late too, and
//! the rate that was reached is printed.

use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use lazuli_trial::Result;
use lazuli_trial::search::SearchClient;
use lazuli_trial::server::Server;
use serde_json::{Value, json};

use crate::Options;

const INDEX: &str = "freshness";
const WRITERS: u64 = 16;
const SEEKERS: usize = 4;
/// One in so many documents is looked for.
const SAMPLE: u64 = 25;
/// The pause of a seeker before it looks again.
const LOOK_PAUSE: Duration = Duration::from_millis(2);
/// A document that is not found within this time counts as lost.
const FOUND_WITHIN: Duration = Duration::from_secs(20);
/// The time in which nothing is measured yet.
const WARM_UP: Duration = Duration::from_secs(2);
/// What is promised (F1): nearly all documents are found after so long.
const PROMISE: Duration = Duration::from_millis(200);

/// A document that was answered.
struct Answered {
    id: String,
    at: Instant,
}

pub(crate) fn run(options: &Options) -> Result {
    let (rate, seconds): (u64, u64) = (options.value("--rate")?, options.value("--seconds")?);
    let server = Server::start(&options.binary, &options.folder)?;
    let address = server.endpoint("search")?;
    create(address)?;
    let begin = Instant::now();
    let end = begin + Duration::from_secs(seconds);
    let (sender, receiver) = channel();
    let receiver = Mutex::new(receiver);
    let (uploads, mut found) = std::thread::scope(|scope| {
        let seekers: Vec<_> = (0..SEEKERS)
            .map(|_| scope.spawn(|| seek(address, &receiver, begin + WARM_UP)))
            .collect();
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let sender = sender.clone();
                scope.spawn(move || write(address, writer, rate, (begin, end), &sender))
            })
            .collect();
        drop(sender);
        let died = || "a thread died".to_owned();
        let mut uploads = 0;
        for writer in writers {
            uploads += writer.join().map_err(|_| died())??;
        }
        let mut found = Vec::new();
        for seeker in seekers {
            found.extend(seeker.join().map_err(|_| died())??);
        }
        Ok::<_, String>((uploads, found))
    })?;
    let took = begin.elapsed().min(Duration::from_secs(seconds));
    server.stop()?;
    found.sort();
    report(uploads, took, &found)
}

fn create(address: SocketAddr) -> Result {
    let key = json!({ "name": "id", "type": "Edm.String", "key": true });
    let text = json!({ "name": "text", "type": "Edm.String", "searchable": true });
    let body = json!({ "name": INDEX, "fields": [key, text] });
    let mut client = SearchClient::connect(address)?;
    client.expect("POST", "/indexes", Some(&body), &[201]).map(drop)
}

/// Uploads one document after another, each at its time, and answers how many.
fn write(
    address: SocketAddr,
    writer: u64,
    rate: u64,
    (begin, end): (Instant, Instant),
    answered: &Sender<Answered>,
) -> Result<u64> {
    let mut client = SearchClient::connect(address)?;
    let mut uploads = 0;
    loop {
        let number = uploads * WRITERS + writer;
        let due = begin + Duration::from_micros(number * 1_000_000 / rate.max(1));
        if due >= end {
            return Ok(uploads);
        }
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        let text = format!("word{} of the document number{number}", number % 997);
        let document = json!({ "id": number.to_string(), "text": text });
        let body = json!({ "value": [document] });
        let path = format!("/indexes/{INDEX}/docs/index");
        client.expect("POST", &path, Some(&body), &[200])?;
        uploads += 1;
        if number.is_multiple_of(SAMPLE) {
            let told = Answered { id: number.to_string(), at: Instant::now() };
            answered.send(told).map_err(|_| "the seekers have died".to_owned())?;
        }
    }
}

/// Looks for answered documents, and answers how long each took to be found.
fn seek(
    address: SocketAddr,
    answered: &Mutex<Receiver<Answered>>,
    from: Instant,
) -> Result<Vec<Duration>> {
    let mut client = SearchClient::connect(address)?;
    let mut found = Vec::new();
    loop {
        let next = answered.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(Answered { id, at }) = next else { return Ok(found) };
        let body = json!({ "search": format!("number{id}"), "select": "id" });
        let path = format!("/indexes/{INDEX}/docs/search");
        while !is_there(&client.send_at_once("POST", &path, Some(&body))?.json(), &id) {
            if at.elapsed() > FOUND_WITHIN {
                return Err(format!("document {id} was not found within {FOUND_WITHIN:?}"));
            }
            std::thread::sleep(LOOK_PAUSE);
        }
        if at >= from {
            found.push(at.elapsed());
        }
    }
}

fn is_there(results: &Value, id: &str) -> bool {
    results["value"].as_array().is_some_and(|all| all.iter().any(|it| it["id"] == id))
}

fn report(uploads: u64, took: Duration, found: &[Duration]) -> Result {
    let at = |per_mille: usize| {
        let place = (found.len() * per_mille / 1_000).min(found.len().saturating_sub(1));
        found.get(place).copied().unwrap_or_default()
    };
    let ms = |time: Duration| time.as_secs_f64() * 1_000.0;
    println!(
        "{uploads} uploads, {:.0} a second; {} documents looked for, found after p50 {:.0} ms, p90 {:.0} ms, \
         p99 {:.0} ms, max {:.0} ms",
        uploads as f64 / took.as_secs_f64(),
        found.len(),
        ms(at(500)),
        ms(at(900)),
        ms(at(990)),
        ms(at(1_000)),
    );
    match at(990) {
        p99 if found.is_empty() || p99 > PROMISE => {
            Err(format!("99 in 100 documents are to be found within {PROMISE:?}"))
        }
        _ => Ok(()),
    }
}
