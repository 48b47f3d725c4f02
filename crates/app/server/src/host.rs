//! The stores that this process has open: that of the catalog, and one per shard.
//!
//! A shard that cannot be opened is down: it is reported, and all others serve. Folders of shards that were removed are
//! put aside under another name and deleted once no request uses the store any more, or else at the next start. A file
//! beside them says beforehand which one is about to be removed: whether it was, the catalog knows.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Duration;

use lazuli_engine::{Engine, Shards};
use lazuli_shardmap::local::{Identity, LocalMap};
use lazuli_shardmap::{Shard, ShardId};
use lazuli_store::{Error, Result, Store, StoreHealth};
use lazuli_store_embedded::{EmbeddedStore, Settings as StoreSettings, Unsure};

use crate::failure;
use crate::folder::write_atomically;
use crate::health::Unhealthy;

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
    settings: StoreSettings,
    engine: Arc<Engine>,
    catalog: Arc<EmbeddedStore>,
    stores: Mutex<BTreeMap<ShardId, Arc<EmbeddedStore>>>,
    down: Mutex<BTreeMap<ShardId, Error>>,
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
    let store = opening.await.map_err(|error| Error::internal("store-panicked", error))??;
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
        Self { folder, settings, engine, catalog, stores, down, names }
    }

    /// The shards in use.
    pub(crate) fn live(&self) -> &Arc<Shards> {
        self.engine.shards()
    }

    /// Opens all shards of the catalog. Those that fail are down, and logged.
    pub(crate) async fn open_all(&self) -> Result<()> {
        let shards = self.engine.manager().catalog().shards().await?;
        self.finish_removals(&shards);
        self.delete_removed();
        for shard in &shards {
            if let Err(error) = self.open(shard).await {
                tracing::error!(shard = shard.name, %error, "a shard cannot be opened and is down");
            }
        }
        Ok(())
    }

    /// Opens one shard and takes it into use.
    pub(crate) async fn open(&self, shard: &Shard) -> Result<()> {
        lock(&self.names).insert(shard.id, shard.name.clone());
        let opened = self.attach(shard).await;
        match &opened {
            Ok(()) => lock(&self.down).remove(&shard.id),
            Err(error) => lock(&self.down).insert(shard.id, error.clone()),
        };
        opened
    }

    async fn attach(&self, shard: &Shard) -> Result<()> {
        let catalog = self.engine.manager().catalog();
        let path = self.path(&shard.location);
        let holds = catalog.partition_count(shard.id).await?;
        if holds > 0 && !path.is_dir() {
            // An empty store in its place would look like a shard that has lost everything.
            let message = format!("{} is gone; it held {holds} partitions", path.display());
            return Err(Error::corrupt("shard-gone", message));
        }
        let embedded = Arc::new(open_store(&path, &self.settings).await?);
        let store: Arc<dyn Store> = embedded.clone();
        if holds == 0 {
            let identity = Identity { catalog: catalog.id(), shard: shard.id };
            LocalMap::init(&store, identity).await?;
        }
        self.engine.attach(shard, store).await?;
        lock(&self.stores).insert(shard.id, embedded);
        Ok(())
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

    /// Writes down that a shard is about to be removed, so that its folder goes though nobody may live to put it aside.
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
        lock(&self.down).get(&id).cloned()
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
        lock(&self.down).iter().for_each(|(id, error)| note(&name(id), "down", error));
        found
    }

    /// The names of all stores.
    pub(crate) fn store_names(&self) -> Vec<String> {
        ["catalog".to_owned()].into_iter().chain(lock(&self.names).values().cloned()).collect()
    }

    pub(crate) fn store(&self, id: ShardId) -> Option<Arc<EmbeddedStore>> {
        lock(&self.stores).get(&id).cloned()
    }

    pub(crate) fn catalog_store(&self) -> &Arc<EmbeddedStore> {
        &self.catalog
    }

    /// Closes all stores, so that the next start is fast. What cannot be closed is logged: nothing answered is lost.
    pub(crate) async fn close_all(&self) {
        let stores = std::mem::take(&mut *lock(&self.stores));
        for (id, store) in stores {
            self.live().remove(id);
            if let Err(error) = store.close().await {
                tracing::warn!(shard = %id, %error, "a shard was not closed cleanly");
            }
        }
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

    fn path(&self, location: &str) -> PathBuf {
        self.folder.join(location)
    }

    fn removal(&self, location: &str, id: ShardId) -> PathBuf {
        self.path(&format!("{location}-{id}{REMOVING}"))
    }

    /// Puts aside the folders of shards that were removed when the process before this one ended. What was only about to
    /// be removed stays: the catalog still has it.
    fn finish_removals(&self, shards: &[Shard]) {
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

    fn delete_removed(&self) {
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

/// The folder and the shard that a file of this name speaks of.
fn removal_of(name: &str) -> Option<(&str, ShardId)> {
    let (location, id) = name.strip_suffix(REMOVING)?.rsplit_once('-')?;
    Some((location, ShardId(id.parse().ok()?)))
}
