//! Cleans up block files while the server runs: leftovers of a crash once, garbage periodically.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lazuli_shapes::blob::Blobs;
use lazuli_store::Result;
use tokio::task::JoinHandle;

use crate::block_folder::BlockFolder;

/// The files that were removed since the start, because nothing named them any more.
#[derive(Debug, Default)]
pub(crate) struct Removed(AtomicU64);

impl Removed {
    pub(crate) fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn add(&self, files: u64) {
        self.0.fetch_add(files, Ordering::Relaxed);
    }
}

pub(crate) struct Keeper {
    pub(crate) blobs: Blobs,
    pub(crate) folder: Arc<BlockFolder>,
    pub(crate) removed: Arc<Removed>,
}

impl Keeper {
    /// Begins to look after the files, until the task is aborted.
    pub(crate) fn start(self, interval: Duration) -> JoinHandle<()> {
        tokio::spawn(async move {
            let mut is_swept = false;
            loop {
                // Rows and files that do not belong together say nothing about which files are garbage.
                if self.folder.doubt().is_some() {
                    tokio::time::sleep(interval).await;
                    continue;
                }
                if !is_swept {
                    match self.sweep().await {
                        Ok(()) => is_swept = true,
                        // A shard may be down; what was looked through already stays so.
                        Err(error) => tracing::warn!(%error, "cannot sweep block files yet"),
                    }
                }
                match self.blobs.collect().await {
                    Ok(collected) => self.removed.add(collected.files),
                    Err(error) => tracing::warn!(%error, "cannot collect garbage of blobs yet"),
                }
                tokio::time::sleep(interval).await;
            }
        })
    }

    /// Removes the files of earlier processes that no row names. Each generation is looked through once.
    async fn sweep(&self) -> Result<()> {
        let files = self.folder.files();
        for generation in files.unswept().await? {
            let swept = self.blobs.sweep(generation).await?;
            files.swept(generation).await?;
            self.removed.add(swept.removed);
            if swept.removed > 0 {
                let (looked, removed) = (swept.files, swept.removed);
                tracing::info!(generation, looked, removed, "removed files that nothing named");
            }
        }
        Ok(())
    }
}
