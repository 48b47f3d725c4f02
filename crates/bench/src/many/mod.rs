//! A hundred thousand tables, containers of blobs and queues: what the last ones cost against the first, what lists, a
//! start and the pages for operators take, what an item needs in memory, and what an idle server does.
//!
//! A server in this process, asked over the wire by one connection. Processor time is that of all threads but the
//! client's; nothing is synced, because the disk would hide what is measured.

mod report;
mod service;

use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use lazuli_server::Server;
use lazuli_server::settings::{Settings, Sources};
use lazuli_store::{Error, Result};
use lazuli_trial::client::Client;

use crate::figures::{cpu_time_without, resident_bytes};
pub use report::Report;
use report::{Creation, Figures, List, Page};
use service::Service;

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Items of each service.
    pub items: usize,
    /// The first so many are compared with the last so many.
    pub compared: usize,
    /// How long an idle server is watched.
    pub idle: Duration,
}

impl Size {
    /// What the bounds are for. Idle is long enough for what runs every thirty seconds.
    pub const FULL: Self = Self { items: 100_000, compared: 1_000, idle: Duration::from_secs(65) };
    /// Enough to see that it runs.
    pub const TINY: Self = Self { items: 30, compared: 10, idle: Duration::from_millis(50) };
}

const TOKEN: &str = "a-token-for-one-benchmark";
/// The threads that ask. What they use is not the server's.
const CLIENT: &str = "many-client";
const SETTINGS: &[(&str, &str)] = &[
    ("durability", "relaxed"),
    ("table-port", "0"),
    ("queue-port", "0"),
    ("blob-port", "0"),
    ("admin-port", "0"),
    ("log-level", "error"),
];
/// The pages for operators, and how they are asked for.
const PAGES: &[(&str, &str)] = &[
    ("status", "/v1/status"),
    ("overview", "/v1/overview"),
    ("shards", "/v1/shards"),
    ("maps, a page", "/v1/maps"),
    ("maps, by name", "/v1/maps?name=item-0099999"),
    ("metrics", "/metrics"),
];

fn failed(error: impl std::fmt::Display) -> Error {
    Error::internal("bench", error)
}

fn settings(folder: &Path) -> Result<Settings> {
    let data = folder.join("data").to_string_lossy().into_owned();
    let flags = SETTINGS.iter().map(|(name, text)| (*name, (*text).to_owned()));
    let sources = Sources {
        flags: flags.chain([("data", data)]).collect(),
        variables: [("LAZULI_ADMIN_TOKEN".to_owned(), TOKEN.to_owned())].into(),
        file: None,
        folder: folder.join("nothing"),
    };
    sources.texts().and_then(|texts| Settings::read(&texts)).map_err(failed)
}

/// Runs everything in `folder`, which must be on the disk that counts.
pub async fn run(folder: &Path, size: Size) -> Result<Report> {
    let mut report = Report::default();
    let server = Server::start(settings(folder)?).await.map_err(failed)?;
    for service in Service::ALL {
        let address = address(&server, service.endpoint())?;
        let figures = beside(move || measure(address, service, size)).await?;
        report.services.push((service.name(), figures));
    }
    server.stop().await;
    let began = Instant::now();
    let server = Server::start(settings(folder)?).await.map_err(failed)?;
    report.start = began.elapsed();
    let admin = address(&server, "admin")?;
    // Before anything is asked for: what waits for the start to be over is part of the first page.
    report.pages = beside(move || pages(admin)).await?;
    let before = cpu_time_without(CLIENT);
    tokio::time::sleep(size.idle).await;
    let used = cpu_time_without(CLIENT).saturating_sub(before);
    report.idle = used.as_secs_f64() / size.idle.as_secs_f64();
    server.stop().await;
    Ok(report)
}

fn address(server: &Server, name: &str) -> Result<SocketAddr> {
    let found = server.endpoints().iter().find(|endpoint| endpoint.name == name);
    found.map(|endpoint| endpoint.address).ok_or_else(|| failed("no such endpoint"))
}

/// Runs what asks in a thread whose processor time is not counted.
async fn beside<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    let (tell, told) = tokio::sync::oneshot::channel();
    let work = move || {
        // The one who waits may be gone only if the benchmark is.
        let _ = tell.send(work());
    };
    std::thread::Builder::new().name(CLIENT.to_owned()).spawn(work).map_err(failed)?;
    told.await.map_err(failed)?
}

/// Creates all items of a service and lists them.
fn measure(address: SocketAddr, service: Service, size: Size) -> Result<Figures> {
    let mut client = Client::connect(address).map_err(failed)?;
    // The first item also makes what its account needs.
    create(&mut client, service, 0..1)?;
    let memory = resident_bytes().unwrap_or(0);
    let last = size.items - size.compared;
    let first = create(&mut client, service, 1..1 + size.compared)?;
    create(&mut client, service, 1 + size.compared..1 + last)?;
    let last = create(&mut client, service, 1 + last..1 + size.items)?;
    let grown = resident_bytes().unwrap_or(0).saturating_sub(memory);
    let list = list(&mut client, service)?;
    let bytes = grown as f64 / size.items as f64;
    Ok(Figures { first, last, list, bytes })
}

fn create(
    client: &mut Client,
    service: Service,
    numbers: std::ops::Range<usize>,
) -> Result<Creation> {
    let count = numbers.len() as f64;
    let (began, before) = (Instant::now(), cpu_time_without(CLIENT));
    for number in numbers {
        let answer = client.exchange(&service.create(number)).map_err(failed)?;
        if answer.status != 201 && answer.status != 204 {
            return Err(failed(format_args!("{} {}", answer.status, answer.text())));
        }
    }
    let used = cpu_time_without(CLIENT).saturating_sub(before);
    let us = |time: Duration| time.as_secs_f64() * 1e6 / count;
    Ok(Creation { cpu_us: us(used), wall_us: us(began.elapsed()) })
}

/// All pages of a list, from its start to its end.
fn list(client: &mut Client, service: Service) -> Result<List> {
    let mut list = List::default();
    let mut marker = None;
    loop {
        let began = Instant::now();
        let answer = client.exchange(&service.list(marker.as_deref())).map_err(failed)?;
        if answer.status != 200 {
            return Err(failed(format_args!("{} {}", answer.status, answer.text())));
        }
        let took = began.elapsed();
        list.pages += 1;
        list.all += took;
        list.last = took;
        if list.pages == 1 {
            list.first = took;
        }
        list.items += service.items(&answer);
        match service.next(&answer) {
            Some(next) => marker = Some(next),
            None => return Ok(list),
        }
    }
}

/// What the pages for operators take: the first time, and once more.
fn pages(admin: SocketAddr) -> Result<Vec<Page>> {
    let mut client = Client::connect(admin).map_err(failed)?;
    let mut ask = |path: &str| -> Result<Duration> {
        let request = format!(
            "GET {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {TOKEN}\r\n\r\n"
        );
        let began = Instant::now();
        let answer = client.exchange(request.as_bytes()).map_err(failed)?;
        match answer.status {
            200 => Ok(began.elapsed()),
            status => Err(failed(format_args!("{path}: {status} {}", answer.text()))),
        }
    };
    let mut pages = Vec::new();
    for (name, path) in PAGES {
        let (first, again) = (ask(path)?, ask(path)?);
        pages.push(Page { name, first, again });
    }
    Ok(pages)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn a_tiny_run_measures_everything() {
        let folder = tempfile::tempdir().unwrap();
        let report = run(folder.path(), Size::TINY).await.unwrap();
        assert_eq!(report.services.len(), 3);
        for (name, figures) in &report.services {
            assert_eq!(figures.list.items, Size::TINY.items + 1, "{name}: {report}");
            assert!(figures.first.wall_us > 0.0 && figures.last.wall_us > 0.0, "{report}");
        }
        assert_eq!(report.pages.len(), PAGES.len());
    }
}
