//! The folders of embedded shards beside an embedded catalog: what they are called, and how those of removed shards go.
//!
//! The folder of a shard that was removed is put aside under another name and deleted once no request uses the store any
//! more, or else at the next start. A file beside it says beforehand that it is about to be removed: whether it was, the
//! catalog knows.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::Duration;

use lazuli_shardmap::{Shard, ShardId};
use lazuli_store::{Error, Result, StoreReason};
use lazuli_store_embedded::{EmbeddedStore, Settings as StoreSettings, Unsure};

use crate::failure;
use crate::folder::write_atomically;
use crate::lineage::Lineage;

/// The end of the name of a folder whose shard was removed.
const REMOVED: &str = ".removed";
/// The end of the name of the file that says that a shard is about to be removed.
const REMOVING: &str = ".removing";
/// How long the store of a removed shard may be in use before its folder is left to the next start, and how often that
/// is looked at.
const UNUSED_WAIT_MAX: Duration = Duration::from_secs(600);
const UNUSED_LOOK: Duration = Duration::from_millis(100);

pub(crate) struct Folders {
    root: PathBuf,
    settings: StoreSettings,
    catalog: Arc<EmbeddedStore>,
    pub(crate) lineage: Lineage,
}

/// Opens a store without holding up other tasks: it may have a journal to read.
pub(crate) async fn open_store(path: &Path, settings: &StoreSettings) -> Result<EmbeddedStore> {
    let (folder, settings) = (path.to_owned(), settings.clone());
    let opening = tokio::task::spawn_blocking(move || EmbeddedStore::open(folder, &settings));
    let store = opening.await.map_err(|error| Error::internal(StoreReason::Panicked, error))??;
    let recovery = store.recovery();
    if let Some(cut) = &recovery.cut {
        tracing::info!(folder = %path.display(), ?cut, "cut off what a crash left half written");
    }
    if let Some(unsure) = &recovery.unsure {
        let Unsure { what, journal, offset, commit } = unsure;
        tracing::warn!(
            folder = %path.display(), journal = %journal.display(), offset, commit,
            "the file lazuli.answered {what}: what was answered from this commit on may be lost, \
             and whether anything was cannot be told"
        );
    }
    Ok(store)
}

impl Folders {
    pub(crate) fn new(
        root: PathBuf,
        settings: StoreSettings,
        catalog: Arc<EmbeddedStore>,
        lineage: Lineage,
    ) -> Self {
        Self { root, settings, catalog, lineage }
    }

    pub(crate) fn catalog(&self) -> &Arc<EmbeddedStore> {
        &self.catalog
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    pub(crate) async fn open(&self, name: &str) -> Result<Arc<EmbeddedStore>> {
        Ok(Arc::new(open_store(&self.path(name), &self.settings).await?))
    }

    /// Refuses a name whose folder is there already.
    pub(crate) fn check_free(&self, name: &str) -> Result<()> {
        let path = self.path(name);
        if path.exists() {
            let message = format!("{} exists; choose another name or delete it", path.display());
            return Err(Error::exists("folder-exists", message));
        }
        Ok(())
    }

    /// Records that a shard is about to be removed, so that its folder is deleted even if the process ends before that.
    pub(crate) fn announce_removal(&self, folder: &str, id: ShardId) -> failure::Result<()> {
        write_atomically(&self.removal(folder, id), "", 0o600)
    }

    /// Puts the folder of a removed shard aside, and has it deleted once its store is not used any more.
    pub(crate) fn remove(
        &self,
        folder: &str,
        id: ShardId,
        users: Weak<EmbeddedStore>,
    ) -> Result<()> {
        self.put_aside(folder, id)?;
        // One that stays does no harm: at the next start there is no folder to put aside.
        let _ = std::fs::remove_file(self.removal(folder, id));
        tokio::spawn(delete_once_unused(self.aside(folder, id), users));
        Ok(())
    }

    fn aside(&self, folder: &str, id: ShardId) -> PathBuf {
        self.path(&format!("{folder}-{id}{REMOVED}"))
    }

    fn removal(&self, folder: &str, id: ShardId) -> PathBuf {
        self.path(&format!("{folder}-{id}{REMOVING}"))
    }

    fn put_aside(&self, folder: &str, id: ShardId) -> Result<()> {
        let path = self.path(folder);
        let aside = self.aside(folder, id);
        match std::fs::rename(&path, &aside) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                let message = format!("cannot rename {}: {error}", path.display());
                Err(Error::internal("file-error", message))
            }
            _ => Ok(()),
        }
    }

    /// Folders beside those with these names.
    pub(crate) fn unknown(&self, names: &[String]) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(&self.root) else { return Vec::new() };
        let folders = entries.flatten().filter(|entry| entry.path().is_dir());
        let found = folders.map(|entry| entry.file_name().to_string_lossy().into_owned());
        found.filter(|name| !name.ends_with(REMOVED) && !names.contains(name)).collect()
    }

    /// Puts aside the folders of shards that were removed when the process before this one ended. What was only about to
    /// be removed stays: the catalog still has it.
    pub(crate) fn finish_removals(&self, shards: &[Shard]) {
        let Ok(entries) = std::fs::read_dir(&self.root) else { return };
        for entry in entries.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let Some((folder, id)) = removal_of(&name) else { continue };
            let is_in_use = shards.iter().any(|it| it.id == id || it.location == folder);
            match if is_in_use { Ok(()) } else { self.put_aside(folder, id) } {
                Ok(()) => drop(std::fs::remove_file(entry.path())),
                Err(error) => tracing::warn!(folder, %error, "cannot put aside"),
            }
        }
    }

    pub(crate) fn delete_removed(&self) {
        let Ok(entries) = std::fs::read_dir(&self.root) else { return };
        for entry in entries.flatten() {
            if entry.file_name().to_string_lossy().ends_with(REMOVED) {
                delete_folder(&entry.path());
            }
        }
    }
}

fn delete_folder(folder: &Path) {
    match std::fs::remove_dir_all(folder) {
        Ok(()) => tracing::info!(?folder, "deleted a removed shard"),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => tracing::warn!(?folder, %error, "cannot delete"),
    }
}

/// Deletes the folder of a removed shard when the last request that uses its store has ended. If that takes too long, it
/// is left to the next start.
async fn delete_once_unused(folder: PathBuf, users: Weak<EmbeddedStore>) {
    let begun = tokio::time::Instant::now();
    while users.strong_count() > 0 {
        if begun.elapsed() > UNUSED_WAIT_MAX {
            return tracing::warn!(?folder, "a removed shard is in use, the next start deletes it");
        }
        tokio::time::sleep(UNUSED_LOOK).await;
    }
    // The files are many, and other tasks do not wait for them.
    let _ = tokio::task::spawn_blocking(move || delete_folder(&folder)).await;
}

/// Whether a folder of this name is that of a shard that was removed.
pub(crate) fn is_removed(name: &str) -> bool {
    name.ends_with(REMOVED)
}

/// The folder and the shard that a file of this name speaks of.
fn removal_of(name: &str) -> Option<(&str, ShardId)> {
    let (folder, id) = name.strip_suffix(REMOVING)?.rsplit_once('-')?;
    Some((folder, ShardId(id.parse().ok()?)))
}
