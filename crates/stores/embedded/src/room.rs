//! Free disk space, and which writes are accepted when it is low.
//!
//! A write that fails half-way requires reopening the engine (see `mend`). So a store refuses writes while there
//! still is some space: enough to flush its memtables, to compact tables, and to commit deletions, which free space.
//! If another program fills the disk completely, a preallocated reserve file is deleted.

use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use lazuli_store::{Error, Intake, Shortage, StoreHealth, Write};

use crate::keyspaces::is_data;
use crate::layout::Layout;
use crate::settings::Settings;

/// Below this part of the disk a store is full, within these bounds.
const LEAST_PART: u64 = 20;
const LEAST_BYTES_MIN: u64 = 32 * 1024 * 1024;
const LEAST_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// How much more must be free before it accepts everything again, as a part of the threshold.
const BACK_PART: u64 = 4;
/// With less than this only deletions are accepted.
const SCARCE_BYTES: u64 = 4 * 1024 * 1024;
/// The most that a commit may put that writes only the shard's own rows, as the deletion of a container does.
const OWN_PUT_BYTES_MAX: usize = 16 * 1024;
/// The content of the probe file.
const PROBE_BYTES: usize = 64 * 1024;

pub(crate) struct Room {
    /// The directory of the store, which exists.
    root: PathBuf,
    reserve: PathBuf,
    reserve_bytes: u64,
    /// Whether there is a reserve, as far as is known.
    has_reserve: AtomicBool,
    is_full: AtomicBool,
    /// How much must be free, if it is not derived from the size of the disk.
    least_bytes: AtomicU64,
}

/// The disk's figures.
#[derive(Clone, Copy)]
struct Space {
    free: u64,
    least: u64,
}

impl Space {
    /// How much must be free before everything is accepted again.
    fn back(&self) -> u64 {
        self.least.saturating_add(self.least / BACK_PART)
    }
}

impl Room {
    pub(crate) fn new(layout: &Layout, settings: &Settings) -> Self {
        let room = Self {
            root: layout.root.clone(),
            reserve: layout.reserve(),
            reserve_bytes: settings.reserve_bytes,
            has_reserve: AtomicBool::new(false),
            is_full: AtomicBool::new(false),
            least_bytes: AtomicU64::new(0),
        };
        let found = fs::metadata(&room.reserve).is_ok_and(|it| it.len() == settings.reserve_bytes);
        room.has_reserve.store(found, Ordering::Relaxed);
        room.health();
        room.tend();
        room
    }

    #[cfg(test)]
    pub(crate) fn set_least(&self, bytes: u64) {
        self.least_bytes.store(bytes, Ordering::Relaxed);
    }

    fn space(&self) -> Option<Space> {
        let (free, total) = space_of(&self.root)?;
        let least = match self.least_bytes.load(Ordering::Relaxed) {
            0 => (total / LEAST_PART).clamp(LEAST_BYTES_MIN, LEAST_BYTES_MAX),
            bytes => bytes,
        };
        Some(Space { free, least })
    }

    /// The free space, as far as the system reports it.
    pub(crate) fn shortage(&self) -> Option<Shortage> {
        match self.health() {
            StoreHealth::Full(shortage, _) => Some(shortage),
            StoreHealth::Well | StoreHealth::Failed(_) => None,
        }
    }

    /// Whether the disk is full.
    pub(crate) fn health(&self) -> StoreHealth {
        let Some(space) = self.space() else { return StoreHealth::Well };
        let was_full = self.is_full.load(Ordering::Relaxed);
        let is_full = space.free < if was_full { space.back() } else { space.least };
        if was_full != is_full {
            self.is_full.store(is_full, Ordering::Relaxed);
        }
        if !is_full {
            return StoreHealth::Well;
        }
        let shortage = if space.free < SCARCE_BYTES { Shortage::Scarce } else { Shortage::Tight };
        StoreHealth::Full(shortage, self.full(space))
    }

    fn full(&self, space: Space) -> Error {
        let message = format!(
            "the disk of {} is full: {} MiB free; only deletions are accepted until {} MiB are",
            self.root.display(),
            space.free >> 20,
            space.back().div_ceil(1 << 20)
        );
        Error::unavailable("disk-full", message)
    }

    /// Refuses writes that do not fit.
    pub(crate) fn check(&self, health: &StoreHealth, writes: &[Write]) -> Result<(), Error> {
        let intake = Intake::of(writes);
        // Creating and deleting containers writes little, and deletions begin with it.
        let is_small_own =
            || intake.put_bytes <= OWN_PUT_BYTES_MAX && !writes.iter().any(|it| is_data(it.key()));
        match health {
            StoreHealth::Full(Shortage::Tight, _) if is_small_own() => Ok(()),
            health => health.check(intake),
        }
    }

    /// Releases the reserve when space is nearly used up, and allocates it again when there is plenty.
    pub(crate) fn tend(&self) {
        let Some(space) = self.space() else { return };
        let has_reserve = self.has_reserve.load(Ordering::Relaxed);
        if has_reserve && space.free < SCARCE_BYTES {
            self.release();
        } else if !has_reserve && space.free >= space.back().saturating_add(self.reserve_bytes) {
            // If that fails the store works without it.
            let is_there = self.reserve_bytes > 0 && self.set_aside().is_ok();
            self.has_reserve.store(is_there, Ordering::Relaxed);
        }
    }

    /// Releases the reserve.
    pub(crate) fn release(&self) {
        if self.has_reserve.swap(false, Ordering::Relaxed) {
            let _ = fs::remove_file(&self.reserve);
        }
    }

    #[cfg(target_os = "linux")]
    fn set_aside(&self) -> std::io::Result<()> {
        use rustix::fs::{FallocateFlags, fallocate};
        let file =
            OpenOptions::new().write(true).create(true).truncate(true).open(&self.reserve)?;
        fallocate(&file, FallocateFlags::empty(), 0, self.reserve_bytes)
            .map_err(std::io::Error::from)
            .inspect_err(|_| drop(fs::remove_file(&self.reserve)))
    }

    /// Other systems cannot allocate space without writing it.
    #[cfg(not(target_os = "linux"))]
    fn set_aside(&self) -> std::io::Result<()> {
        Err(std::io::ErrorKind::Unsupported.into())
    }

    /// Whether the disk accepts writes: a small file is written, synced, and removed.
    pub(crate) fn probe(&self) -> std::io::Result<()> {
        use std::io::Write as _;
        let path = self.root.join("probe");
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).open(&path)?;
        let written = file.write_all(&[1; PROBE_BYTES]).and_then(|()| file.sync_all());
        fs::remove_file(&path)?;
        written
    }
}

/// Free space for us, and size of the file system.
#[cfg(unix)]
fn space_of(path: &Path) -> Option<(u64, u64)> {
    let found = rustix::fs::statvfs(path).ok()?;
    let bytes = |blocks: u64| blocks.saturating_mul(found.f_frsize);
    // Some network file systems do not report it.
    (found.f_blocks > 0).then(|| (bytes(found.f_bavail), bytes(found.f_blocks)))
}

#[cfg(not(unix))]
fn space_of(_: &Path) -> Option<(u64, u64)> {
    None
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use bytes::Bytes;
    use lazuli_store::{Result, Store};

    use super::*;
    use crate::store::EmbeddedStore;

    async fn commit(store: &EmbeddedStore, writes: Vec<Write>) -> Result<()> {
        store.begin(vec![]).await?.commit(writes).await
    }

    fn put(key: &'static str, bytes: usize) -> Write {
        Write::Put(key.into(), vec![7; bytes].into())
    }

    /// More than any disk has.
    const ALL: u64 = 1 << 62;

    #[tokio::test]
    async fn a_full_disk_takes_deletions_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let store = EmbeddedStore::open(folder.path(), &Settings::default()).unwrap();
        commit(&store, vec![put("a", 100), put("b", 100)]).await.unwrap();
        store.room().set_least(ALL);
        let refused = commit(&store, vec![put("c", 1)]).await.unwrap_err();
        assert_eq!(refused.code(), "disk-full");
        assert!(matches!(store.health(), StoreHealth::Full(Shortage::Tight, _)));
        let large = vec![Write::Delete("b".into()), put("c", 200_000)];
        assert_eq!(commit(&store, large).await.unwrap_err().code(), "disk-full");
        let items = (0..3_000)
            .map(|n| (Bytes::from(format!("load-{n:04}")), Bytes::from([0; 999].to_vec())));
        let refused = store.ingest(vec![], items.collect()).await.unwrap_err();
        assert_eq!(refused.code(), "disk-full");
        commit(&store, vec![Write::Delete("a".into()), put("figures", 60)]).await.unwrap();
        commit(&store, vec![put("\0\0\0\0own", 60)]).await.unwrap();
        let view = store.snapshot(&[], lazuli_store::Reads::Several).await.unwrap();
        assert_eq!(view.get(b"a").await.unwrap(), None);
        assert!(view.get(b"b").await.unwrap().is_some() && view.get(b"c").await.unwrap().is_none());
        store.room().set_least(1);
        assert!(matches!(store.health(), StoreHealth::Well));
        commit(&store, vec![put("c", 1)]).await.unwrap();
    }

    #[tokio::test]
    async fn the_reserve_is_set_aside_given_up_and_set_aside_again() {
        let folder = tempfile::tempdir().unwrap();
        let store = EmbeddedStore::open(folder.path(), &Settings::default()).unwrap();
        let reserve = folder.path().join("reserve");
        let length = || fs::metadata(&reserve).map(|it| it.len()).unwrap_or(0);
        assert_eq!(length(), Settings::default().reserve_bytes);
        store.room().release();
        assert_eq!(length(), 0);
        store.room().tend();
        assert_eq!(length(), Settings::default().reserve_bytes);
        store.room().release();
        store.room().set_least(ALL);
        store.room().tend();
        assert_eq!(length(), 0, "there is no room to set anything aside");
    }
}
