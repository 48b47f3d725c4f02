//! The side of the store.

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use lazuli_env::SplitMix64;
use lazuli_postgres_server::Server;
use lazuli_store::blocks::{Blocks, Owner};
use lazuli_store::{Direction, Item, KeyRange, PageLimit, Reads, Result, Store, Write};
use lazuli_store_postgres::{PostgresBlocks, PostgresStore, Settings};

use super::Size;
use crate::figures::{failed, mebibytes};

/// One process's handle on the store.
pub(super) struct Ours {
    store: Arc<PostgresStore>,
    blocks: PostgresBlocks,
    size: Size,
}

/// As wide as keys of entities.
pub(super) fn key(space: &str, n: usize) -> Bytes {
    format!("{space}/partition-key-0001/row-key-of-some-length-{n:010}").into()
}

pub(super) fn value(noise: &mut SplitMix64) -> Bytes {
    let length = 200 + noise.next_u64() % 600;
    noise.bytes(length as usize).into()
}

fn guard(lane: usize) -> Bytes {
    format!("guard/{lane:04}").into()
}

impl Ours {
    pub(super) async fn new(server: &Server, size: Size) -> Result<Self> {
        let settings = Settings::parse(&server.address("bench"))?;
        let blocks = PostgresBlocks::open(settings.clone(), "bench").await?;
        Ok(Self { store: Arc::new(PostgresStore::open(settings).await?), blocks, size })
    }

    fn until(&self) -> Instant {
        Instant::now() + Duration::from_millis(self.size.turn_ms)
    }

    pub(super) async fn fill(&self) -> Result<()> {
        let mut noise = SplitMix64::new(1);
        let guards = (0..64).map(|lane| (guard(lane), Bytes::new()));
        let rows = (0..self.size.rows).map(|n| (key("item", n), value(&mut noise)));
        self.store.ingest(vec![], guards.chain(rows).collect()).await
    }

    /// Commits per second: lock the guard, read the figures, put an item and the figures.
    pub(super) async fn commits(&self, lanes: Range<usize>) -> Result<f64> {
        let (begun, until, rows) = (Instant::now(), self.until(), self.size.rows as u64);
        let mut running = tokio::task::JoinSet::new();
        for lane in lanes {
            let store = self.store.clone();
            running.spawn(async move {
                let (guard, figures) = (guard(lane), Bytes::from(format!("stats/{lane:04}")));
                let mut noise = SplitMix64::new(lane as u64);
                let mut count = 0_u64;
                while Instant::now() < until {
                    let txn = store.begin(vec![guard.clone()]).await?;
                    let before = txn.get(&figures).await?;
                    let figures_now = before.unwrap_or_else(|| vec![0; 40].into());
                    let item = key("item", (noise.next_u64() % rows) as usize);
                    let item = Write::Put(item, value(&mut noise));
                    txn.commit(vec![item, Write::Put(figures.clone(), figures_now)]).await?;
                    count += 1;
                }
                Ok(count)
            });
        }
        Ok(sum(running).await? / begun.elapsed().as_secs_f64())
    }

    /// Gets per second, each with its guard.
    pub(super) async fn gets(&self, tasks: usize) -> Result<f64> {
        let (begun, until, rows) = (Instant::now(), self.until(), self.size.rows as u64);
        let mut running = tokio::task::JoinSet::new();
        for task in 0..tasks {
            let store = self.store.clone();
            running.spawn(async move {
                let guards = [guard(task)];
                let mut noise = SplitMix64::new(task as u64);
                let mut count = 0_u64;
                while Instant::now() < until {
                    let snapshot = store.snapshot(&guards, Reads::One).await?;
                    let item = key("item", (noise.next_u64() % rows) as usize);
                    let found = snapshot.get(&item).await?;
                    count += u64::from(found.is_some());
                }
                Ok(count)
            });
        }
        Ok(sum(running).await? / begun.elapsed().as_secs_f64())
    }

    /// Rows per second, in pages of a thousand.
    pub(super) async fn scans(&self) -> Result<f64> {
        let (begun, until) = (Instant::now(), self.until());
        let (guards, mut noise, mut count) = ([guard(0)], SplitMix64::new(3), 0);
        while Instant::now() < until {
            let start = noise.next_u64() % (self.size.rows as u64 - 1_000);
            let range = KeyRange::new(key("item", start as usize), Some("item0".into()));
            let snapshot = self.store.snapshot(&guards, Reads::One).await?;
            let page = snapshot.scan(&range, Direction::Forward, PageLimit::items(1_000)).await?;
            count += page.items.len();
        }
        Ok(count as f64 / begun.elapsed().as_secs_f64())
    }

    /// Rows per second of one load.
    pub(super) async fn loads(&self, round: usize) -> Result<f64> {
        let mut noise = SplitMix64::new(9);
        let space = format!("load-{round}");
        let row = |n| (key(&space, n), value(&mut noise));
        let items: Vec<Item> = (0..self.size.rows / 4).map(row).collect();
        let (begun, rows) = (Instant::now(), items.len());
        let mut loading = self.store.load(vec![guard(0)]);
        for part in items.chunks(2_000) {
            loading.add(part.to_vec()).await?;
        }
        loading.finish().await?;
        Ok(rows as f64 / begun.elapsed().as_secs_f64())
    }

    /// MiB per second of files of 8 MiB.
    pub(super) async fn blocks(&self, _: Size) -> Result<f64> {
        let owner = Owner { container: 1, route: Bytes::from_static(b"route") };
        let piece = Bytes::from(SplitMix64::new(5).bytes(64 * 1024));
        let (begun, until, mut bytes) = (Instant::now(), self.until(), 0);
        while Instant::now() < until {
            let mut writer = self.blocks.create(&owner).await?;
            for _ in 0..128 {
                writer.write(piece.clone()).await?;
            }
            bytes += writer.finish().await?.length;
        }
        Ok(mebibytes(bytes) / begun.elapsed().as_secs_f64())
    }
}

async fn sum(mut running: tokio::task::JoinSet<Result<u64>>) -> Result<f64> {
    let mut all = 0;
    while let Some(done) = running.join_next().await {
        all += done.map_err(failed)??;
    }
    Ok(all as f64)
}
