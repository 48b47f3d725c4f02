//! A hundred thousand tables, containers of blobs and queues: what the last ones cost against the first, what lists, a
//! start and the pages for operators take, what an item needs in memory, and what an idle server does.
//!
//! A server in this process, asked over the wire by one connection. Processor time is that of all threads but the
//! client's; nothing is synced, because the disk would hide what is measured.

mod service;

use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use lazuli_store::Result;
use lazuli_trial::client::Client;
use serde_json::Value;

use crate::figures::{cpu_time_without, failed, milliseconds, resident_bytes};
use crate::report::Report;
use crate::server::{Admin, BenchServer};
use service::Service;

/// What the last items may cost, as a multiple of what the first cost.
const TIMES_MAX: f64 = 1.5;
/// The longest page of a list.
const LIST_PAGE_MS_MAX: f64 = 1_000.0;
/// The longest answer to an operator.
const PAGE_MS_MAX: f64 = 1_500.0;
/// The longest start.
const START_MS_MAX: f64 = 10_000.0;
/// The most memory that an item may take while it is created.
const ITEM_BYTES_MAX: f64 = 4_096.0;
/// The most of one core that an idle server may use.
const IDLE_MAX: f64 = 0.05;

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
        report = beside(move || measure(report, address, service, size)).await?;
    }
    server.stop().await;
    let began = Instant::now();
    let server = BenchServer::start(folder, SETTINGS).await?;
    report.at_most("start, ms", milliseconds(began.elapsed()), START_MS_MAX);
    let admin = server.address("admin")?;
    // Before anything is asked for: what waits for the start to be over is part of the first page.
    report = beside(move || pages(report, admin)).await?;
    let before = cpu_time_without(CLIENT);
    tokio::time::sleep(size.idle).await;
    let used = cpu_time_without(CLIENT).saturating_sub(before);
    let idle = used.as_secs_f64() / size.idle.as_secs_f64();
    report.at_most("idle, % of a core", idle * 100.0, IDLE_MAX * 100.0);
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
fn measure(
    mut report: Report,
    address: SocketAddr,
    service: Service,
    size: Size,
) -> Result<Report> {
    let mut client = Client::connect(address).map_err(failed)?;
    // The first item also makes what its account needs.
    create(&mut client, service, 0..1)?;
    let memory = resident_bytes().unwrap_or(0);
    let last = size.items - size.compared;
    let first = create(&mut client, service, 1..1 + size.compared)?;
    create(&mut client, service, 1 + size.compared..1 + last)?;
    let last = create(&mut client, service, 1 + last..1 + size.items)?;
    let grown = resident_bytes().unwrap_or(0).saturating_sub(memory);
    let name = |what: &str| format!("{}: {what}", service.name());
    report.figure(name("create one of the first, CPU us"), first.cpu_us);
    report.figure(name("create one of the first, wall us"), first.wall_us);
    report.figure(name("create one of the last, CPU us"), last.cpu_us);
    report.figure(name("create one of the last, wall us"), last.wall_us);
    let times = last.cpu_us / first.cpu_us.max(f64::MIN_POSITIVE);
    report.at_most(name("create, CPU, last / first"), times, TIMES_MAX);
    list(&mut report, &mut client, service)?;
    report.at_most(name("bytes each"), grown as f64 / size.items as f64, ITEM_BYTES_MAX);
    Ok(report)
}

/// What it takes to create one item.
struct Creation {
    cpu_us: f64,
    wall_us: f64,
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
fn list(report: &mut Report, client: &mut Client, service: Service) -> Result<()> {
    let (mut pages_ms, mut items, mut marker) = (Vec::new(), 0, None);
    loop {
        let began = Instant::now();
        let answer = client.expect(service.list(marker.as_deref()), &[200]).map_err(failed)?;
        pages_ms.push(milliseconds(began.elapsed()));
        items += service.items(&answer);
        marker = service.next(&answer);
        if marker.is_none() {
            break;
        }
    }
    let name = |what: &str| format!("{}: {what}", service.name());
    report.figure(name("items on the list"), items as f64);
    report.figure(name("pages of the list"), pages_ms.len() as f64);
    report.figure(name("the whole list, ms"), pages_ms.iter().sum());
    let (first, last) = (pages_ms[0], pages_ms[pages_ms.len() - 1]);
    report.at_most(name("first page of the list, ms"), first, LIST_PAGE_MS_MAX);
    report.at_most(name("last page of the list, ms"), last, LIST_PAGE_MS_MAX);
    Ok(())
}

/// What the pages for operators take: the first time, and once more.
fn pages(mut report: Report, admin: SocketAddr) -> Result<Report> {
    let mut client = Admin::connect(admin)?;
    for (name, path) in PAGES {
        for when in ["first", "again"] {
            let began = Instant::now();
            client.send("GET", path, &Value::Null)?;
            let took = milliseconds(began.elapsed());
            report.at_most(format!("page {name}, {when}, ms"), took, PAGE_MS_MAX);
        }
    }
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn a_tiny_run_measures_everything() {
        let folder = tempfile::tempdir().unwrap();
        let report = run(folder.path(), Size::TINY).await.unwrap();
        for service in Service::ALL {
            let values = |what: &str| report.values(&format!("{}: {what}", service.name()));
            assert_eq!(values("items"), [(Size::TINY.items + 1) as f64], "{report}");
            assert!(values("create one").iter().all(|us| *us > 0.0), "{report}");
        }
        assert_eq!(report.values("page ").len(), 2 * PAGES.len());
    }
}
