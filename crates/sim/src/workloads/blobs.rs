//! Clients that put, overwrite, append to, snapshot, copy, read and delete blobs while the collector runs.
//!
//! Every content that is read is complete, and a client's own blob holds its last put. In the end, after the sweep of
//! a start, every file that a row names exists; when all blobs are deleted and collected, no file and no row is left.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use lazuli_engine::{BlockId, Engine, KeySchema, KeyType, MapKind};
use lazuli_env::Random;
use lazuli_shapes::blob::{
    Blobs, Conditions, ContainerAddress, NewBlobContainer, Protection, Which,
};
use lazuli_shardmap::ContainerId;
use lazuli_shardmap::layout::{self, Space};
use lazuli_store::blocks::Blocks;
use lazuli_store::mem_blocks::MemBlocks;
use lazuli_store::{Error, KeyRange, Kind, Result as StoreResult};

use super::blob_requests::{
    LOG, append, content, copy, delete, put, put_blocks, read, snapshot, tags_of,
};
use super::{Built, Client, Workload};
use crate::answer::Answer;
use crate::client::{Asked, Request};
use crate::cluster::{Cluster, Table};
use crate::ensure;
use crate::lock;
use crate::scenario::Found;

const CONTAINER: &str = "blobs/sim";
/// Blobs that all clients share.
const SHARED: u64 = 2;
/// Contents of this many words are in rows.
const WORDS_SMALL: u64 = 40;
/// Contents of this many words are files.
const WORDS_LARGE: u64 = 9_000;

/// What a client's own blob may hold: nothing, or the content with a tag.
type Possible = BTreeSet<Option<u64>>;

/// The shape of a process, and the engine that identifies the process.
type Shape = (Weak<Engine>, Blobs);

pub struct BlobFiles {
    id: ContainerId,
    /// Survives crashes, like the shards' disks.
    files: MemBlocks,
    /// The shape of the running process. Only it knows the pins of readers.
    shape: Arc<Mutex<Option<Shape>>>,
    own: Mutex<Vec<Possible>>,
}

fn own_name(client: &Client) -> String {
    format!("own-{}", client.number)
}

impl BlobFiles {
    pub async fn setup(cluster: &Cluster) -> Built {
        let client = Client::outside(cluster).of_first_process();
        let own = vec![[None].into(); cluster.settings.clients as usize];
        let workload = Self {
            id: ContainerId(0),
            files: MemBlocks::new(),
            shape: Arc::default(),
            own: Mutex::new(own),
        };
        let create = |blobs: Blobs| async move {
            let address = ContainerAddress { account: "sim".into(), container: "c".into() };
            match blobs.create_container(&address, NewBlobContainer::default()).await {
                Err(error) if error.kind() == Kind::Exists => Ok(()),
                answer => answer.map(|_| ()),
            }
        };
        workload.ask_surely(&client, "create a container", create).await?;
        let find = |blobs: Blobs| async move {
            Ok(blobs.engine().manager().catalog().container_named(CONTAINER).await?.id)
        };
        let id = workload.ask_surely(&client, "find the blobs", find).await?;
        cluster.adopt(Table {
            name: CONTAINER,
            id,
            kind: MapKind::Range,
            schema: KeySchema::new(vec![KeyType::Text, KeyType::Int64, KeyType::Text])
                .map_err(|error| error.to_string())?,
            shardlets: 0..0,
        });
        Ok(Arc::new(Self { id, ..workload }))
    }

    fn request<T, F>(&self, what: impl FnOnce(Blobs) -> F + Send + 'static) -> Request<T>
    where
        T: Send + 'static,
        F: Future<Output = StoreResult<T>> + Send + 'static,
    {
        let (shape, files) = (self.shape.clone(), self.files.clone());
        Box::new(move |engine| {
            let mut held = lock(&shape);
            let is_same = |(known, _): &Shape| {
                known.upgrade().is_some_and(|known| Arc::ptr_eq(&known, &engine))
            };
            if !held.as_ref().is_some_and(is_same) {
                let blobs = Blobs::new(engine.clone(), Arc::new(files.reopen()));
                *held = Some((Arc::downgrade(&engine), blobs));
            }
            let blobs = held.as_ref().map(|(_, blobs)| blobs.clone());
            drop(held);
            Box::pin(async move {
                match blobs {
                    Some(blobs) => what(blobs).await,
                    None => Err(Error::internal("no-shape", "the shape has just been made")),
                }
            })
        })
    }

    async fn ask<T, F>(
        &self,
        client: &Client,
        name: &'static str,
        what: impl FnOnce(Blobs) -> F + Send + 'static,
    ) -> Asked<T>
    where
        T: Send + 'static,
        F: Future<Output = StoreResult<T>> + Send + 'static,
    {
        client.ask(name, self.request(what)).await
    }

    async fn ask_surely<T, F>(
        &self,
        client: &Client,
        name: &'static str,
        what: impl Fn(Blobs) -> F + Clone + Send + 'static,
    ) -> Result<T, String>
    where
        T: Send + 'static,
        F: Future<Output = StoreResult<T>> + Send + 'static,
    {
        client.ask_surely(name, || self.request(what.clone())).await
    }

    fn own(&self) -> MutexGuard<'_, Vec<Possible>> {
        lock(&self.own)
    }

    /// Puts something into the client's own blob, or deletes it.
    async fn change_own(&self, client: &Client, tag: u64) -> Found {
        let name = own_name(client);
        let words = if client.random.chance(400) { WORDS_LARGE } else { WORDS_SMALL };
        let bytes = content(tag, words);
        let (new, answer) = match client.random.below(4) {
            0 => (
                None,
                self.ask(client, "delete", move |blobs| async move { delete(&blobs, &name).await })
                    .await?,
            ),
            1 => (
                Some(tag),
                self.ask(client, "put blocks", move |blobs| async move {
                    put_blocks(&blobs, &name, bytes).await
                })
                .await?,
            ),
            _ => (
                Some(tag),
                self.ask(
                    client,
                    "put",
                    move |blobs| async move { put(&blobs, &name, bytes).await },
                )
                .await?,
            ),
        };
        let mut own = self.own();
        let possible = &mut own[client.number as usize];
        match answer {
            Answer::Done(()) => *possible = [new].into(),
            Answer::Refused(error) => return Err(format!("a change was refused: {error}")),
            Answer::Unknown => drop(possible.insert(new)),
        }
        Ok(())
    }

    async fn look_at_own(&self, client: &Client) -> Found {
        let name = own_name(client);
        let possible = self.own()[client.number as usize].clone();
        let look = move |blobs: Blobs| async move { read(&blobs, &name, Which::Current).await };
        let found = match self.ask(client, "read own", look).await? {
            Answer::Done(bytes) => tags_of(bytes)?.first().copied(),
            Answer::Refused(error) if error.kind() == Kind::NotFound => None,
            Answer::Refused(error) => return Err(format!("a read was refused: {error}")),
            Answer::Unknown => return Ok(()),
        };
        ensure!(possible.contains(&found), "own blob holds {found:?}, not one of {possible:?}");
        Ok(())
    }

    async fn use_shared(&self, client: &Client, tag: u64) -> Found {
        let name = format!("shared-{}", client.random.below(SHARED));
        let own = own_name(client);
        let words = if client.random.chance(400) { WORDS_LARGE } else { WORDS_SMALL };
        let bytes = content(tag, words);
        let what = client.random.below(8);
        let work = move |blobs: Blobs| async move {
            match what {
                0 => put(&blobs, &name, bytes).await,
                1 => put_blocks(&blobs, &name, bytes).await,
                2 => append(&blobs, bytes).await,
                3 => snapshot(&blobs, &name).await,
                4 => delete(&blobs, &name).await,
                5 => copy(&blobs, &own, &name).await,
                6 => blobs.collect().await.map(|_| ()),
                _ => {
                    for name in [name.as_str(), LOG] {
                        let bytes = match read(&blobs, name, Which::Current).await {
                            Err(error) if error.kind() == Kind::NotFound => continue,
                            bytes => bytes?,
                        };
                        tags_of(bytes).map_err(|wrong| Error::internal("torn-blob", wrong))?;
                    }
                    Ok(())
                }
            }
        };
        match self.ask(client, "use a shared blob", work).await? {
            // Other clients delete it, and two may commit blocks at once.
            Answer::Refused(error) => match error.kind() {
                Kind::NotFound | Kind::Invalid => Ok(()),
                _ => Err(format!("something was refused: {error}")),
            },
            Answer::Done(()) | Answer::Unknown => Ok(()),
        }
    }
}

impl Workload for BlobFiles {
    /// What is being read is known to one process, and so is the one that collects. A client that waits for its answers
    /// knows what its own blob holds.
    fn client(client: Client) -> Client {
        client.of_first_process().patient()
    }

    async fn round(&self, client: &Client, round: u64) -> Found {
        let tag = client.number << 16 | round;
        match client.random.below(3) {
            0 => self.change_own(client, tag).await,
            1 => self.look_at_own(client).await,
            _ => self.use_shared(client, tag).await,
        }
    }

    /// Every file that a row names exists, and in the end none is left.
    async fn check(&self, client: &Client) -> Found {
        let client = &client.clone().of_first_process();
        let generation = self.files.reopen().generation();
        let sweep = move |blobs: Blobs| async move {
            for earlier in 1..generation {
                blobs.sweep(earlier).await?;
            }
            let mut named = BTreeSet::new();
            let mut files = blobs.named_files().await?;
            while let Some(page) = files.next().await? {
                named.extend(page.into_iter().map(|it| it.file.id));
            }
            Ok(named)
        };
        let named: BTreeSet<BlockId> = self.ask_surely(client, "sweep", sweep).await?;
        let there = self.files.list(None, usize::MAX).await.map_err(|error| error.to_string())?;
        let there: BTreeSet<BlockId> = there.into_iter().map(|found| found.file.id).collect();
        let missing: Vec<_> = named.difference(&there).collect();
        ensure!(missing.is_empty(), "rows name the files {missing:?}, which are gone");
        let owners = client.cluster.settings.clients;
        for number in 0..owners {
            let mut owner = client.clone();
            owner.number = number;
            self.look_at_own(&owner).await?;
        }
        let clear = move |blobs: Blobs| async move {
            for number in 0..owners {
                delete(&blobs, &format!("own-{number}")).await?;
            }
            for number in 0..SHARED {
                delete(&blobs, &format!("shared-{number}")).await?;
            }
            delete(&blobs, LOG).await?;
            let address = ContainerAddress { account: "sim".into(), container: "c".into() };
            let (any, none) = (Conditions::default(), Protection::default());
            match blobs.delete_container(&address, &any, none).await {
                Err(error) if error.kind() != Kind::NotFound => return Err(error),
                _ => {}
            }
            blobs.collect().await
        };
        self.ask_surely(client, "clear", clear).await?;
        let left = self.files.count();
        ensure!(left == 0, "{left} files are left");
        for space in Space::KEY_ORDERED {
            let keys = KeyRange::prefix(layout::prefix(self.id, *space));
            let disks = &client.cluster.disks().shards;
            let rows: usize = disks.iter().map(|disk| disk.items(&keys).len()).sum();
            ensure!(rows == 0, "{rows} rows are left in {space:?}");
        }
        Ok(())
    }
}
