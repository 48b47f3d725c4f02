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

use lazuli_store::Result;
use lazuli_trial::client::Client;
use serde_json::Value;

use crate::figures::{cpu_time_without, failed, resident_bytes};
use crate::server::{Admin, BenchServer};
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

/// The name of the client's threads, whose processor time is not the server's.
const CLIENT: &str = "many-client";
const SETTINGS: &[(&str, &str)] = &[("durability", "relaxed")];
/// The pages for operators, and how they are asked for.
const PAGES: &[(&str, &str)] = &[
    ("status", "/v1/status"),
    ("overview", "/v1/overview"),
    ("shards", "/v1/shards"),
    ("maps, a page", "/v1/maps"),
    ("maps, by name", "/v1/maps?name=item-0099999"),
    ("metrics", "/metrics"),
];

/// Runs everything in `folder`, which must be on the disk that counts.
pub async fn run(folder: &Path, size: Size) -> Result<Report> {
    let mut report = Report::default();
    let server = BenchServer::start(folder, SETTINGS).await?;
    for service in Service::ALL {
        let address = server.address(service.endpoint())?;
        let figures = beside(move || measure(address, service, size)).await?;
        report.services.push((service.name(), figures));
    }
    server.stop().await;
    let began = Instant::now();
    let server = BenchServer::start(folder, SETTINGS).await?;
    report.start = began.elapsed();
    let admin = server.address("admin")?;
    // Before anything is asked for: what waits for the start to be over is part of the first page.
    report.pages = beside(move || pages(admin)).await?;
    let before = cpu_time_without(CLIENT);
    tokio::time::sleep(size.idle).await;
    let used = cpu_time_without(CLIENT).saturating_sub(before);
    report.idle = used.as_secs_f64() / size.idle.as_secs_f64();
    server.stop().await;
    Ok(report)
}

/// Runs the client in a thread whose processor time is not counted.
async fn beside<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    let (tell, told) = tokio::sync::oneshot::channel();
    let work = move || {
        // The receiver is dropped only together with the benchmark.
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
        client.expect(service.create(number), &[201, 204]).map_err(failed)?;
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
        let answer = client.expect(service.list(marker.as_deref()), &[200]).map_err(failed)?;
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
    let mut client = Admin::connect(admin)?;
    let mut ask = |path: &str| -> Result<Duration> {
        let began = Instant::now();
        client.send("GET", path, &Value::Null).map(|_| began.elapsed())
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
