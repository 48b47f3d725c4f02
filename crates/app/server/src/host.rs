//! The stores that this process has open: that of the catalog, and one per shard.
//!
//! A shard that cannot be opened is down: it is reported, and all others serve. So is one whose folder is in doubt
//! (`admission`). Where a shard lives is its home (`home`): a folder beside the catalog (`folders`), or a database.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use lazuli_engine::{Engine, Shards};
use lazuli_shardmap::{Shard, ShardId};
use lazuli_store::{Error, Result, Store, StoreHealth};
use lazuli_store_embedded::EmbeddedStore;

use crate::admission::{Down, Refusal};
use crate::block_folder::BlockFolder;
use crate::failure;
use crate::folders::Folders;
use crate::health::Unhealthy;
use crate::home::{Home, Opened};

/// The longest name of a shard, which may also be that of its folder.
const NAME_CHARS_MAX: usize = 63;

pub(crate) struct Host {
    pub(crate) engine: Arc<Engine>,
    catalog: Arc<dyn Store>,
    /// Where embedded shards are; none on a node of a fleet, which has no folders of its own.
    folders: Option<Folders>,
    stores: Mutex<BTreeMap<ShardId, Opened>>,
    down: Mutex<BTreeMap<ShardId, Down>>,
    /// What shards are called that were to be opened.
    names: Mutex<BTreeMap<ShardId, String>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What these locks guard is whole after every statement, so a panic elsewhere does not spoil it.
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl Host {
    /// The host of the one process that has the catalog open.
    pub(crate) fn alone(engine: Arc<Engine>, folders: Folders) -> Self {
        let catalog = folders.catalog().clone();
        Self::new(engine, catalog, Some(folders))
    }

    /// The host of one of several processes.
    pub(crate) fn of_fleet(engine: Arc<Engine>, catalog: Arc<dyn Store>) -> Self {
        Self::new(engine, catalog, None)
    }

    fn new(engine: Arc<Engine>, catalog: Arc<dyn Store>, folders: Option<Folders>) -> Self {
        let (stores, down, names) = (Mutex::default(), Mutex::default(), Mutex::default());
        Self { engine, catalog, folders, stores, down, names }
    }

    /// The folders of embedded shards, if this process has some.
    pub(crate) fn folders(&self) -> Option<&Folders> {
        self.folders.as_ref()
    }

    /// The same where an embedded shard needs them.
    pub(crate) fn need_folders(&self) -> Result<&Folders> {
        let message = "a node of a fleet keeps nothing in folders: a shard needs the address of a \
                       database (`lazuli shard add NAME --at postgres://…`)";
        self.folders.as_ref().ok_or_else(|| Error::invalid("no-folders", message))
    }

    /// The shards in use.
    pub(crate) fn live(&self) -> &Arc<Shards> {
        self.engine.shards()
    }

    /// Takes a shard into use that was admitted, or notes why it is down.
    pub(crate) fn note(&self, shard: &Shard, outcome: &std::result::Result<Opened, Down>) {
        lock(&self.names).insert(shard.id, shard.name.clone());
        match outcome {
            Ok(store) => {
                lock(&self.down).remove(&shard.id);
                lock(&self.stores).insert(shard.id, store.clone());
            }
            Err(down) => drop(lock(&self.down).insert(shard.id, down.clone())),
        }
    }

    /// Refuses a name that no shard may have, and a place that cannot be its home.
    pub(crate) fn check_new(&self, name: &str, location: &str) -> Result<()> {
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        let starts = name.bytes().next().is_some_and(|byte| byte != b'-');
        if !starts || name.len() > NAME_CHARS_MAX || !name.bytes().all(plain) {
            let message = "a shard's name has 1 to 63 lower-case letters, digits and dashes";
            return Err(Error::invalid("name-unfit", message));
        }
        match Home::of(location)? {
            Home::Folder(folder) => self.need_folders()?.check_free(&folder),
            Home::Server(_) => Ok(()),
        }
    }

    /// Records that a shard is about to be removed, so that nothing of it stays even if the process ends before that.
    pub(crate) fn announce_removal(&self, shard: &Shard) -> failure::Result<()> {
        match (Home::of(&shard.location)?, &self.folders) {
            (Home::Folder(folder), Some(folders)) => folders.announce_removal(&folder, shard.id),
            _ => Ok(()),
        }
    }

    /// Takes a shard out of use that the catalog does not know any more.
    pub(crate) fn let_go(&self, id: ShardId) -> Option<Opened> {
        self.live().retire(id);
        lock(&self.down).remove(&id);
        lock(&self.names).remove(&id);
        lock(&self.stores).remove(&id)
    }

    /// Takes a removed shard out of use and has its store deleted.
    pub(crate) async fn retire(&self, shard: &Shard) -> Result<()> {
        let opened = self.let_go(shard.id);
        match (Home::of(&shard.location)?, opened) {
            (Home::Folder(folder), opened) => {
                let users = opened.as_ref().and_then(Opened::folder).map(Arc::downgrade);
                drop(opened);
                self.need_folders()?.remove(&folder, shard.id, users.unwrap_or_default())
            }
            (Home::Server(_), Some(opened)) => opened.clear().await,
            // The database is away: what is in it is found again when the place is used for another shard.
            (Home::Server(_), None) => Ok(()),
        }
    }

    /// The shards that are known here, in use or down.
    pub(crate) fn known(&self) -> Vec<ShardId> {
        lock(&self.names).keys().copied().collect()
    }

    /// Why a shard is down; none if it is in use.
    pub(crate) fn why_down(&self, id: ShardId) -> Option<Error> {
        lock(&self.down).get(&id).map(|down| down.error.clone())
    }

    /// The shards that are down and may come back by themselves.
    pub(crate) fn down_for_now(&self) -> Vec<ShardId> {
        let down = lock(&self.down);
        down.iter().filter(|(_, down)| down.refusal.is_none()).map(|(id, _)| *id).collect()
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
        stores.iter().for_each(|(id, opened)| look(&name(id), &opened.store().health()));
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

    pub(crate) fn opened(&self, id: ShardId) -> Option<Opened> {
        lock(&self.stores).get(&id).cloned()
    }

    /// All shards in use.
    pub(crate) fn all_opened(&self) -> Vec<(ShardId, Opened)> {
        lock(&self.stores).iter().map(|(id, opened)| (*id, opened.clone())).collect()
    }

    /// Those of them that are in folders.
    pub(crate) fn embedded(&self) -> Vec<(ShardId, Arc<EmbeddedStore>)> {
        let all = lock(&self.stores);
        all.iter().filter_map(|(id, opened)| Some((*id, opened.folder()?.clone()))).collect()
    }

    /// Closes all stores, so that the next start is fast. What cannot be closed is logged: nothing answered is lost.
    pub(crate) async fn close_all(&self, blocks: Option<&BlockFolder>) {
        let (embedded, all) = (self.embedded(), self.all_opened());
        lock(&self.stores).clear();
        for (id, opened) in all {
            self.live().remove(id);
            let told = match (&opened, &self.folders) {
                (Opened::Folder(store), Some(folders)) => folders.lineage.tell_last(store).await,
                _ => Ok(()),
            };
            if let Err(error) = told.and(opened.store().close().await) {
                tracing::warn!(shard = %id, %error, "a shard was not closed cleanly");
            }
        }
        if let (Some(folders), Some(blocks)) = (&self.folders, blocks) {
            let recorded = match blocks.mark().await {
                Ok(mark) => folders.lineage.record_last(&embedded, mark).await,
                Err(error) => Err(error),
            };
            if let Err(error) = recorded {
                tracing::warn!(%error, "the catalog does not know how far everything has come");
            }
        }
        drop(embedded);
        if let Err(error) = self.catalog.close().await {
            tracing::warn!(%error, "the catalog was not closed cleanly");
        }
    }
}
