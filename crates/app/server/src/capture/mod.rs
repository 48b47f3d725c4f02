//! Capture: the events of a hub as Avro files in a container of blobs, written in the background.
//!
//! How far a partition is captured is the offset that the group `$capture` has committed. A file is put first and the offset
//! committed then; a file is named by its first event, so one that is put again after a crash takes the place of the
//! former. The blobs are put by signed requests to the front, in the name of the account that owns the hub.

mod avro;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use lazuli_bus::shown::{self, ShownEvent};
use lazuli_engine::Work;
use lazuli_http::date::{Fraction, TICKS_PER_MILLI, format_iso8601};
use lazuli_http::uri::percent_encode;
use lazuli_http::{Body, Method, StatusCode};
use lazuli_log::{Capture, CommittedOffset, GroupOffset, Hub, ReadLimit};
use tokio::task::JoinHandle;

use crate::failure::{Failure, Result};
use crate::owner::{Ask, Service};
use crate::running::Running;
use avro::Captured;

/// How often all hubs are looked at.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// How many hubs one look at the catalog answers.
const HUBS_AT_ONCE: usize = 100;
/// What one read of a log answers at most.
const READ: ReadLimit = ReadLimit { bytes: 1024 * 1024, batches: 1_000 };

/// The group whose offsets say how far hubs are captured.
const GROUP: &str = "$capture";

/// Captures until the task is aborted.
pub(crate) fn start(running: Arc<Running>) -> JoinHandle<()> {
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(LOOK_INTERVAL).await;
            // In a fleet one node does this work.
            if !running.engine.may(Work::Collect) {
                continue;
            }
            for (account, _) in running.accounts.list().await {
                if let Err(error) = capture_all(&running, &account.name).await {
                    tracing::warn!(account = account.name, %error, "cannot capture hubs yet");
                }
            }
        }
    })
}

async fn capture_all(running: &Running, account: &str) -> Result<()> {
    let mut after: Option<String> = None;
    loop {
        let hubs = running.logs.hubs(account, after.as_deref(), HUBS_AT_ONCE).await?;
        let Some(last) = hubs.last() else { return Ok(()) };
        after = Some(last.name.clone());
        for hub in &hubs {
            let Some(capture) = &hub.settings.capture else { continue };
            let committed = running.logs.committed(account, GROUP).await?;
            for partition in 0..hub.settings.partitions {
                let from = committed.get(&(hub.id(), partition)).map_or(0, |it| it.offset);
                // One file each turn: a partition that is far behind does not hold up the others.
                Place { running, account, hub, partition, capture }.capture_next(from).await?;
            }
        }
    }
}

/// One partition of a hub that is captured.
struct Place<'a> {
    running: &'a Running,
    account: &'a str,
    hub: &'a Hub,
    partition: u32,
    capture: &'a Capture,
}

impl Place<'_> {
    /// Writes the next file, if one is due.
    async fn capture_next(&self, from: u64) -> Result<()> {
        let events = self.gather(from).await?;
        let (Some(first), Some(last)) = (events.first(), events.last()) else { return Ok(()) };
        let bytes: u64 = events.iter().map(|event| event.data.len() as u64).sum();
        let now_ms = self.running.engine.env().clock.now_ms();
        let is_old = first.enqueued_ms + u64::from(self.capture.seconds) * 1_000 <= now_ms;
        if !is_old && bytes < self.capture.bytes {
            return Ok(());
        }
        let (name, next) = (self.name(first), last.offset + 1);
        let random = &self.running.engine.env().random;
        let marker = (u128::from(random.next_u64()) << 64) | u128::from(random.next_u64());
        let captured: Vec<Captured> = events.into_iter().map(captured).collect();
        let file = avro::file(&captured, marker.to_be_bytes());
        self.put(&name, file.into()).await?;
        let committed = CommittedOffset { offset: next, note: name };
        let offset = GroupOffset { hub: self.hub.id(), partition: self.partition, committed };
        self.running.logs.commit_offsets(self.account, GROUP, vec![offset], None).await?;
        Ok(())
    }

    /// The events from an offset on, up to the size of a file.
    async fn gather(&self, from: u64) -> Result<Vec<ShownEvent>> {
        let (mut events, mut next, mut bytes) = (Vec::new(), from, 0);
        while bytes < self.capture.bytes {
            let page = self.running.logs.read(self.hub, self.partition, next, READ).await?;
            if page.batches.is_empty() {
                break;
            }
            next = next.max(page.state.first);
            for batch in &page.batches {
                let read = shown::events(batch, next);
                let read = read.map_err(|why| Failure::new("unreadable-events", why))?;
                bytes += read.iter().map(|event| event.data.len() as u64).sum::<u64>();
                events.extend(read);
                next = batch.end();
            }
        }
        Ok(events)
    }

    /// `namespace/hub/partition/year/month/day/hour/minute/second-offset.avro`, by the first event.
    fn name(&self, first: &ShownEvent) -> String {
        let moment = moment(first.enqueued_ms);
        let time = moment.get(..19).unwrap_or_default().replace(['-', 'T', ':'], "/");
        let (hub, partition) = (&self.hub.name, self.partition);
        format!("{}/{hub}/{partition}/{time}-{}.avro", self.account, first.offset)
    }

    async fn put(&self, name: &str, file: Bytes) -> Result<()> {
        let container = percent_encode(&self.capture.container);
        let path = format!("/{container}/{}", percent_encode(name));
        let ask = || {
            Ask::new(Service::Blobs, Method::PUT, self.account, path.clone())
                .header("x-ms-blob-type", "BlockBlob")
                .header("content-type", "avro/binary")
                .body(Body::from(file.clone()))
        };
        let owner = &self.running.owner;
        let mut answer = owner.ask(ask()).await?;
        if answer.status == StatusCode::NOT_FOUND {
            let make = Ask::new(Service::Blobs, Method::PUT, self.account, format!("/{container}"));
            owner.ask(make.query("restype", "container")).await?;
            answer = owner.ask(ask()).await?;
        }
        match answer.status {
            StatusCode::CREATED => Ok(()),
            status => {
                let message = format!("the blob {name} cannot be put: {status}");
                Err(Failure::new("capture-refused", message))
            }
        }
    }
}

/// A time as text, in UTC.
fn moment(millis: u64) -> String {
    let ticks = i64::try_from(millis).unwrap_or(i64::MAX).saturating_mul(TICKS_PER_MILLI);
    format_iso8601(ticks, Fraction::Seven)
}

fn captured(event: ShownEvent) -> Captured {
    Captured {
        offset: event.offset,
        enqueued: moment(event.enqueued_ms),
        key: event.key,
        properties: event.shown.properties,
        body: event.data,
    }
}
