//! The stores that this process has open: that of the catalog, and one per shard.
//!
//! A shard that cannot be opened is down: it is reported, and all others serve. So is one whose folder is in doubt
//! (`admission`). Folders of shards that were removed are put aside under another name and deleted once no request uses the
//! store any more, or else at the next start. A file beside them says beforehand which one is about to be removed: whether
//! it was, the catalog knows.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Duration;

use lazuli_engine::{Engine, Shards};
use lazuli_shardmap::{Shard, ShardId};
use lazuli_store::{Error, Result, Store, StoreHealth, StoreReason};
use lazuli_store_embedded::{EmbeddedStore, Settings as StoreSettings, Unsure};

use crate::admission::{Down, Refusal};
use crate::block_folder::BlockFolder;
use crate::failure;
use crate::folder::write_atomically;
use crate::health::Unhealthy;
use crate::lineage::Lineage;

/// The end of the name of a folder whose shard was removed.
const REMOVED: &str = ".removed";
/// The end of the name of the file that says that a shard is about to be removed.
const REMOVING: &str = ".removing";
/// How long the store of a removed shard may be in use before its folder is left to the next start, and how often that
/// is looked at.
const UNUSED_WAIT_MAX: Duration = Duration::from_secs(600);
const UNUSED_LOOK: Duration = Duration::from_millis(100);
/// The longest name of a shard, which is also that of its folder.
const NAME_CHARS_MAX: usize = 63;

pub(crate) struct Host {
    folder: PathBuf,
    pub(crate) settings: StoreSettings,
    pub(crate) engine: Arc<Engine>,
    catalog: Arc<EmbeddedStore>,
    pub(crate) lineage: Lineage,
    stores: Mutex<BTreeMap<ShardId, Arc<EmbeddedStore>>>,
    down: Mutex<BTreeMap<ShardId, Down>>,
    /// What shards are called that were to be opened.
    names: Mutex<BTreeMap<ShardId, String>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What these locks guard is whole after every statement, so a panic elsewhere does not spoil it.
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
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

impl Host {
    pub(crate) fn new(
        folder: PathBuf,
        settings: StoreSettings,
        engine: Arc<Engine>,
        catalog: Arc<EmbeddedStore>,
    ) -> Self {
        let (stores, down, names) = (Mutex::default(), Mutex::default(), Mutex::default());
        let known = engine.manager().catalog().clone();
        let lineage = Lineage::new(engine.env().clone(), known, catalog.clone());
        Self { folder, settings, engine, catalog, lineage, stores, down, names }
    }

    /// The shards in use.
    pub(crate) fn live(&self) -> &Arc<Shards> {
        self.engine.shards()
    }

    /// Takes a shard into use that was admitted, or notes why it is down.
    pub(crate) fn note(
        &self,
        shard: &Shard,
        outcome: &std::result::Result<Arc<EmbeddedStore>, Down>,
    ) {
        lock(&self.names).insert(shard.id, shard.name.clone());
        match outcome {
            Ok(store) => {
                lock(&self.down).remove(&shard.id);
                lock(&self.stores).insert(shard.id, store.clone());
            }
            Err(down) => drop(lock(&self.down).insert(shard.id, down.clone())),
        }
    }

    /// Refuses a name that cannot be that of a folder, and one whose folder is there already.
    pub(crate) fn check_name(&self, name: &str) -> Result<()> {
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        let starts = name.bytes().next().is_some_and(|byte| byte != b'-');
        if !starts || name.len() > NAME_CHARS_MAX || !name.bytes().all(plain) {
            let message = "a shard's name has 1 to 63 lower-case letters, digits and dashes";
            return Err(Error::invalid("name-unfit", message));
        }
        let path = self.path(name);
        if path.exists() {
            let message = format!("{} exists; choose another name or delete it", path.display());
            return Err(Error::exists("folder-exists", message));
        }
        Ok(())
    }

    /// Records that a shard is about to be removed, so that its folder is deleted even if the process ends before that.
    pub(crate) fn announce_removal(&self, shard: &Shard) -> failure::Result<()> {
        write_atomically(&self.removal(&shard.location, shard.id), "", 0o600)
    }

    /// Takes a removed shard out of use and puts its folder aside.
    pub(crate) fn retire(&self, shard: &Shard) -> Result<()> {
        self.live().retire(shard.id);
        lock(&self.down).remove(&shard.id);
        let store = lock(&self.stores).remove(&shard.id);
        lock(&self.names).remove(&shard.id);
        self.put_aside(&shard.location, shard.id)?;
        // One that stays does no harm: at the next start there is no folder to put aside.
        let _ = std::fs::remove_file(self.removal(&shard.location, shard.id));
        let users = store.as_ref().map(Arc::downgrade).unwrap_or_default();
        tokio::spawn(delete_once_unused(self.aside(&shard.location, shard.id), users));
        Ok(())
    }

    fn aside(&self, location: &str, id: ShardId) -> PathBuf {
        self.path(&format!("{location}-{id}{REMOVED}"))
    }

    fn put_aside(&self, location: &str, id: ShardId) -> Result<()> {
        let path = self.path(location);
        let aside = self.aside(location, id);
        match std::fs::rename(&path, &aside) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                let message = format!("cannot rename {}: {error}", path.display());
                Err(Error::internal("file-error", message))
            }
            _ => Ok(()),
        }
    }

    /// Why a shard is down; none if it is in use.
    pub(crate) fn why_down(&self, id: ShardId) -> Option<Error> {
        lock(&self.down).get(&id).map(|down| down.error.clone())
    }

    /// Why the folder of a shard was not taken, if it is for that that the shard is down.
    pub(crate) fn refusal(&self, id: ShardId) -> Option<Refusal> {
        lock(&self.down).get(&id).and_then(|down| down.refusal.as_deref().cloned())
    }

    /// How many shards are down because their folders are in doubt.
    pub(crate) fn refused(&self) -> usize {
        lock(&self.down).values().filter(|down| down.refusal.is_some()).count()
    }

    /// The stores that do not take everything at the moment.
    pub(crate) fn unhealthy(&self) -> Vec<Unhealthy> {
        let mut found = Vec::new();
        let mut note = |store: &str, state, reason: &Error| {
            found.push(Unhealthy { store: store.to_owned(), state, reason: reason.to_string() });
        };
        let mut look = |name: &str, health: &StoreHealth| {
            if let Some(reason) = health.reason() {
                note(name, health.name(), reason);
            }
        };
        look("catalog", &self.catalog.health());
        let names = lock(&self.names).clone();
        let name = |id: &ShardId| names.get(id).cloned().unwrap_or_else(|| id.to_string());
        let stores = lock(&self.stores).clone();
        stores.iter().for_each(|(id, store)| look(&name(id), &store.health()));
        for (id, down) in lock(&self.down).iter() {
            let state = if down.refusal.is_some() { "refused" } else { "down" };
            note(&name(id), state, &down.error);
        }
        found
    }

    /// The names of all stores.
    pub(crate) fn store_names(&self) -> Vec<String> {
        ["catalog".to_owned()].into_iter().chain(lock(&self.names).values().cloned()).collect()
    }

    pub(crate) fn store(&self, id: ShardId) -> Option<Arc<EmbeddedStore>> {
        lock(&self.stores).get(&id).cloned()
    }

    /// All shards in use.
    pub(crate) fn stores(&self) -> Vec<(ShardId, Arc<EmbeddedStore>)> {
        lock(&self.stores).iter().map(|(id, store)| (*id, store.clone())).collect()
    }

    pub(crate) fn catalog_store(&self) -> &Arc<EmbeddedStore> {
        &self.catalog
    }

    /// Closes all stores, so that the next start is fast. What cannot be closed is logged: nothing answered is lost.
    pub(crate) async fn close_all(&self, blocks: &BlockFolder) {
        let stores = self.stores();
        lock(&self.stores).clear();
        for (id, store) in &stores {
            self.live().remove(*id);
            let told = self.lineage.tell_last(store).await;
            if let Err(error) = told.and(store.close().await) {
                tracing::warn!(shard = %id, %error, "a shard was not closed cleanly");
            }
        }
        let recorded = match blocks.mark().await {
            Ok(mark) => self.lineage.record_last(&stores, mark).await,
            Err(error) => Err(error),
        };
        if let Err(error) = recorded {
            tracing::warn!(%error, "the catalog does not know how far everything has come");
        }
        drop(stores);
        if let Err(error) = self.catalog.close().await {
            tracing::warn!(%error, "the catalog was not closed cleanly");
        }
    }

    /// Folders beside those of shards with these names.
    pub(crate) fn unknown_folders(&self, names: &[String]) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(&self.folder) else { return Vec::new() };
        let folders = entries.flatten().filter(|entry| entry.path().is_dir());
        let found = folders.map(|entry| entry.file_name().to_string_lossy().into_owned());
        found.filter(|name| !name.ends_with(REMOVED) && !names.contains(name)).collect()
    }

    pub(crate) fn path(&self, location: &str) -> PathBuf {
        self.folder.join(location)
    }

    fn removal(&self, location: &str, id: ShardId) -> PathBuf {
        self.path(&format!("{location}-{id}{REMOVING}"))
    }

    /// Puts aside the folders of shards that were removed when the process before this one ended. What was only about to
    /// be removed stays: the catalog still has it.
    pub(crate) fn finish_removals(&self, shards: &[Shard]) {
        let Ok(entries) = std::fs::read_dir(&self.folder) else { return };
        for entry in entries.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let Some((location, id)) = removal_of(&name) else { continue };
            let is_in_use = shards.iter().any(|it| it.id == id || it.location == location);
            match if is_in_use { Ok(()) } else { self.put_aside(location, id) } {
                Ok(()) => drop(std::fs::remove_file(entry.path())),
                Err(error) => tracing::warn!(folder = location, %error, "cannot put aside"),
            }
        }
    }

    pub(crate) fn delete_removed(&self) {
        let Ok(entries) = std::fs::read_dir(&self.folder) else { return };
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
    let (location, id) = name.strip_suffix(REMOVING)?.rsplit_once('-')?;
    Some((location, ShardId(id.parse().ok()?)))
}
