//! What the tests share: an engine in memory, a container, and short ways to put and read.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use lazuli_engine::{
    BlockId, Engine, FanOut, ItemScan, KeyRange, OnFailure, PIECE_BYTES_MAX, PageLimit, Result,
    Settings, Space,
};
use lazuli_env::{BoxFuture, Clock, Env};
use lazuli_shapes::blob::{
    BlobAddress, BlobRecord, Blobs, Conditions, ContainerAddress, Content, DeleteOptions,
    DeleteOutcome, NewBlob, NewBlobContainer, Protection, ReadRange, UploadOptions, Which,
};
use lazuli_shardmap::manager::NewShard;
use lazuli_store::blocks::Blocks;
use lazuli_store::mem::MemStore;
use lazuli_store::mem_blocks::MemBlocks;

/// Larger than what is kept in rows.
pub(crate) const BIG: usize = 300_000;

/// The real clock, some time later.
pub(crate) struct Later {
    clock: Arc<dyn Clock>,
    ms: AtomicU64,
}

impl Clock for Later {
    fn now_ms(&self) -> u64 {
        self.clock.now_ms() + self.ms.load(Ordering::Relaxed)
    }

    fn uptime(&self) -> Duration {
        self.clock.uptime() + Duration::from_millis(self.ms.load(Ordering::Relaxed))
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        self.clock.sleep(duration)
    }
}

pub(crate) struct World {
    later: Arc<Later>,
    pub(crate) blobs: Blobs,
    pub(crate) blocks: MemBlocks,
}

pub(crate) fn any() -> Conditions {
    Conditions::default()
}

pub(crate) fn none() -> Protection {
    Protection::default()
}

pub(crate) fn versions() -> Protection {
    Protection { versioning: true, retention_days: None }
}

pub(crate) fn retained() -> Protection {
    Protection { versioning: false, retention_days: Some(7) }
}

pub(crate) fn container(name: &str) -> ContainerAddress {
    ContainerAddress { account: "a".into(), container: name.into() }
}

pub(crate) fn blob(name: &str) -> BlobAddress {
    BlobAddress { account: "a".into(), container: "c".into(), name: name.into() }
}

pub(crate) fn bytes(length: usize, seed: u8) -> Bytes {
    (0..length).map(|n| (n % 241) as u8 ^ seed).collect()
}

impl World {
    /// With the container `c`.
    pub(crate) async fn new() -> Self {
        Self::with(NewBlobContainer::default()).await
    }

    /// The same, and one whose container hashes its names.
    pub(crate) async fn plain_and_hashed() -> [Self; 2] {
        let hashed = NewBlobContainer { is_hashed: true, ..NewBlobContainer::default() };
        [Self::new().await, Self::with(hashed).await]
    }

    async fn with(new: NewBlobContainer) -> Self {
        let world = Self::empty().await;
        world.blobs.create_container(&container("c"), new).await.unwrap();
        world
    }

    pub(crate) async fn empty() -> Self {
        let real = lazuli_env::real::env();
        let later = Arc::new(Later { clock: real.clock, ms: AtomicU64::new(0) });
        let env = Env::new(later.clone(), real.random, real.spawn);
        let catalog = Arc::new(MemStore::new());
        let settings = Settings { outside: lazuli_shapes::blob::outside(), ..Settings::default() };
        let engine = Engine::on(env, settings, catalog).await.unwrap();
        for name in ["one", "two"] {
            let new = NewShard {
                name: name.into(),
                location: name.into(),
                region: "here".into(),
                labels: Default::default(),
            };
            engine.add_shard(&new, Arc::new(MemStore::new())).await.unwrap();
        }
        let blocks = MemBlocks::new();
        Self { later, blobs: Blobs::new(engine, Arc::new(blocks.clone())), blocks }
    }

    pub(crate) async fn content(&self, address: &BlobAddress, bytes: &Bytes) -> Content {
        let options = UploadOptions { md5: true, key: None };
        let mut upload = self.blobs.upload(address, &options).await.unwrap();
        for start in (0..bytes.len()).step_by(50_000) {
            let end = bytes.len().min(start + 50_000);
            upload.write(bytes.slice(start..end)).await.unwrap();
        }
        upload.finish().await.unwrap()
    }

    pub(crate) async fn put(&self, name: &str, bytes: &Bytes) -> BlobRecord {
        self.try_put(name, bytes, &any(), none()).await.unwrap()
    }

    pub(crate) async fn try_put(
        &self,
        name: &str,
        bytes: &Bytes,
        conditions: &Conditions,
        protection: Protection,
    ) -> Result<BlobRecord> {
        let content = self.content(&blob(name), bytes).await;
        let new = NewBlob::default();
        self.blobs.put_block_blob(&blob(name), content, new, conditions, protection).await
    }

    pub(crate) async fn delete(&self, name: &str, protection: Protection) -> Result<DeleteOutcome> {
        self.delete_state(name, Which::Current, DeleteOptions::default(), protection).await
    }

    pub(crate) async fn delete_state(
        &self,
        name: &str,
        which: Which,
        options: DeleteOptions,
        protection: Protection,
    ) -> Result<DeleteOutcome> {
        self.blobs.delete(&blob(name), which, options, &any(), protection).await
    }

    pub(crate) async fn properties(&self, name: &str, which: Which) -> Result<BlobRecord> {
        self.blobs.properties(&blob(name), which, &any(), None).await
    }

    pub(crate) async fn get(&self, name: &str) -> Result<Bytes> {
        self.read(&blob(name), Which::Current, None).await
    }

    pub(crate) async fn read(
        &self,
        address: &BlobAddress,
        which: Which,
        range: Option<ReadRange>,
    ) -> Result<Bytes> {
        let mut read = self.blobs.read(address, which, range, &any(), None).await?;
        let mut bytes = BytesMut::new();
        while let Some(piece) = read.reader.next().await? {
            assert!(!piece.is_empty() && piece.len() <= PIECE_BYTES_MAX);
            bytes.extend_from_slice(&piece);
        }
        assert_eq!(bytes.len() as u64, read.range.end - read.range.start);
        Ok(bytes.freeze())
    }

    /// The ids of all block files.
    pub(crate) async fn files(&self) -> Vec<BlockId> {
        let found = self.blocks.list(None, usize::MAX).await.unwrap();
        found.into_iter().map(|found| found.file.id).collect()
    }

    /// Waits until there are this many block files, which are removed by tasks.
    pub(crate) async fn wait_for_files(&self, count: usize) {
        for _ in 0..1000 {
            if self.blocks.count() == count {
                return;
            }
            tokio::task::yield_now().await;
        }
        assert_eq!(self.blocks.count(), count);
    }

    /// Lets time pass.
    pub(crate) fn pass(&self, ms: u64) {
        self.later.ms.fetch_add(ms, Ordering::Relaxed);
    }

    /// Sets the clock back to what it would be if no time had been let pass.
    pub(crate) fn set_clock_back(&self) {
        self.later.ms.store(0, Ordering::Relaxed);
    }

    pub(crate) fn now_ms(&self) -> u64 {
        self.later.now_ms()
    }

    pub(crate) async fn collect(&self) {
        self.blobs.collect().await.unwrap();
    }

    /// Neither a file nor a row of a blob is left.
    pub(crate) async fn assert_empty(&self) {
        assert_eq!(self.blocks.count(), 0, "files");
        let engine = self.blobs.engine();
        let container = engine.containers("blobs/", None, 1).await.unwrap().remove(0);
        for space in Space::KEY_ORDERED {
            let scan = ItemScan { space: *space, range: KeyRange::all() };
            let request = FanOut {
                routes: KeyRange::all(),
                limit: PageLimit::MAX,
                on_failure: OnFailure::Fail,
            };
            let page = engine.fan_out(container.id, &scan, &request, None).await.unwrap();
            assert_eq!(page.rows.len(), 0, "rows of {space:?}: {:?}", page.rows);
        }
    }
}
