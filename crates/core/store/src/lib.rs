//! What a shard's store must do, and nothing more: ordered keys, snapshots, atomic durable commits.
//!
//! A store knows keys, values, ranges and transactions. It knows no partitions, no conditions, no time to live: those are
//! decided once, above it. The one help it gives to what is above is the **guard**: a key that must exist in the state that
//! a snapshot shows, and at the moment a transaction is applied. The engine guards reads and writes with the row of the
//! local map that says "this shard holds this partition at this epoch". So a process with a stale map can neither read nor
//! write there.
//!
//! `suite` states the contract as cases that run on every store; `mem` is the store that tests and the simulator use;
//! `handover` is what a store may be able to do beyond the contract. Values too large for a store are files beside it:
//! `blocks`, with a suite and a version in memory of its own.

pub mod blocks;
pub mod blocks_suite;
pub mod crc64;
pub mod error;
pub mod faulty;
pub mod handover;
pub mod health;
pub mod limits;
pub mod mem;
pub mod mem_blocks;
pub mod newest;
pub mod objects;
pub mod range;
pub mod stale;
pub mod suite;

use std::ops::ControlFlow;

use bytes::Bytes;
use lazuli_env::BoxFuture;

pub use error::{Error, Kind, Reason, Result, StoreReason};
pub use handover::{Dropped, Handover, Packed, Parcel};
pub use health::{Intake, Shortage, StoreHealth};
pub use newest::Newest;
pub use range::{KeyRange, after_key, after_prefix};
pub use stale::Copies;

/// Which way a scan walks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    Forward,
    Backward,
}

/// How much one page of a scan may hold. A page always holds at least one item if there is one.
#[derive(Clone, Copy, Debug)]
pub struct PageLimit {
    pub items: usize,
    pub bytes: usize,
}

impl PageLimit {
    pub const MAX: Self = Self { items: limits::PAGE_ITEMS_MAX, bytes: limits::PAGE_BYTES_MAX };

    pub const fn items(items: usize) -> Self {
        Self { items, bytes: limits::PAGE_BYTES_MAX }
    }

    /// Whether a page that holds this much must end before an item of `next` bytes.
    pub fn is_full(&self, items: usize, bytes: usize, next: usize) -> bool {
        let most_items = self.items.clamp(1, limits::PAGE_ITEMS_MAX);
        let most_bytes = self.bytes.min(limits::PAGE_BYTES_MAX);
        items >= most_items || (items > 0 && bytes + next > most_bytes)
    }
}

/// One key with its value.
pub type Item = (Bytes, Bytes);

/// A stretch of a scan, in the direction asked for.
#[derive(Debug, Default)]
pub struct Page {
    pub items: Vec<Item>,
    /// Whether the range holds more behind the last item.
    pub more: bool,
}

/// What a walk does with an item that it comes across, and whether it goes on behind it.
pub type Visit<'a> = dyn FnMut(Bytes, Bytes) -> Result<ControlFlow<()>> + Send + 'a;

/// One write of a commit. Of two writes to one key the later one counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Write {
    Put(Bytes, Bytes),
    Delete(Bytes),
}

impl Write {
    pub fn key(&self) -> &Bytes {
        match self {
            Self::Put(key, _) | Self::Delete(key) => key,
        }
    }

    pub fn bytes(&self) -> usize {
        match self {
            Self::Put(key, value) => key.len() + value.len(),
            Self::Delete(key) => key.len(),
        }
    }
}

/// How many reads a snapshot is for. A store on a server answers one read in one round trip, and keeps a connection and old
/// versions of rows for as long as several may come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reads {
    /// One `get`, `scan` or `walk`.
    One,
    /// Several within [`limits::SNAPSHOT_LIFE_MAX`]. A later read fails with `snapshot-too-old`: take a new snapshot and go
    /// on behind the last key.
    Several,
    /// Any number, for as long as it takes. Only for work in the background that can be put off: a store may refuse it with
    /// `snapshot-refused`, or end it early with `snapshot-too-old`.
    Long,
}

/// An unchanging view of a store. Keep it short: it holds back the collection of old versions.
pub trait Reader: Send + Sync {
    fn get<'a>(&'a self, key: &'a [u8]) -> BoxFuture<'a, Result<Option<Bytes>>>;

    fn scan<'a>(
        &'a self,
        range: &'a KeyRange,
        direction: Direction,
        limit: PageLimit,
    ) -> BoxFuture<'a, Result<Page>>;

    /// Shows the items of such a page one after another, for those who keep few of them, and says whether the range holds
    /// more behind the last one that was shown. An item that ends the walk counts as one with more behind it.
    fn walk<'a>(
        &'a self,
        range: &'a KeyRange,
        direction: Direction,
        limit: PageLimit,
        visit: &'a mut Visit<'_>,
    ) -> BoxFuture<'a, Result<bool>> {
        Box::pin(async move {
            let page = self.scan(range, direction, limit).await?;
            for (key, value) in page.items {
                if visit(key, value)?.is_break() {
                    return Ok(true);
                }
            }
            Ok(page.more)
        })
    }
}

/// A transaction reads the state it began on, without its own writes: those are the engine's until `commit` hands them over.
/// Dropped without a commit, it ends and has written nothing.
pub trait Txn: Reader {
    /// Applies all writes or none. Answers once they are durable. Fails with [`Kind::Moved`], writing nothing, if a guard
    /// is gone by then. After any other error the writes may have happened, or may happen later; by the time that the next
    /// transaction with one of the guards begins, it is decided.
    fn commit(self: Box<Self>, writes: Vec<Write>) -> BoxFuture<'static, Result<()>>;
}

/// A shard's store. Several processes may have the same one open, if it is of a kind that allows it.
pub trait Store: Send + Sync {
    /// The state at some moment between call and return, with everything that was answered before the call. Every guard
    /// key exists in that very state, or the answer is [`Kind::Moved`].
    ///
    /// For [`Reads::One`] a store may do all of it together with the read: then the state is that of a moment before the
    /// read's answer, and it is the read that answers `Moved`.
    fn snapshot<'a>(
        &'a self,
        guards: &'a [Bytes],
        reads: Reads,
    ) -> BoxFuture<'a, Result<Box<dyn Reader>>>;

    /// The same where an old state will do: one that the store has had at most [`limits::STALENESS_MAX`] ago, so that a copy of
    /// the store can answer. Guards are checked in that very state. A copy that lacks one may only be behind, so the newest
    /// state is asked before the answer is [`Kind::Moved`].
    fn stale_snapshot<'a>(
        &'a self,
        guards: &'a [Bytes],
        reads: Reads,
    ) -> BoxFuture<'a, Result<Box<dyn Reader>>> {
        self.snapshot(guards, reads)
    }

    /// What is known of the copies that such reads use; none if the store has none. Costs next to nothing.
    fn copies(&self) -> Option<Copies> {
        None
    }

    /// Opens a transaction on the newest state. Fails with [`Kind::Moved`] if a guard key does not exist.
    ///
    /// Of transactions of different processes that share a guard, one is open at a time: `begin` waits until the other has
    /// ended, for a bounded time, and then sees what it wrote. Transactions without guards exclude each other likewise;
    /// they are for what happens once, such as initialising a store, and must read first whether it has happened. A
    /// commit that deletes a guard waits for the open transactions that have it.
    ///
    /// Within one process the callers keep to this by themselves, whatever the store: a partition's lane, the lock of the
    /// local map and that of the catalog let one transaction at a time use their guard. So a store that only one process
    /// can open, such as the embedded one, needs no locks.
    fn begin(&self, guards: Vec<Bytes>) -> BoxFuture<'_, Result<Box<dyn Txn>>>;

    /// Takes many items, strictly ascending by key, part after part, and puts them at bulk speed: all or none, as a
    /// transaction does. A store that cannot take them as they come gathers them for one commit.
    fn load(&self, guards: Vec<Bytes>) -> Box<dyn Loading + '_> {
        Box::new(Gathered { store: self, guards, items: Vec::new() })
    }

    /// Deletes up to `keys_max` keys of the range, lowest first, and says how many. Durable when answered, atomic for
    /// what it counts. Called again and again until it answers less than `keys_max`.
    fn delete_range<'a>(
        &'a self,
        range: &'a KeyRange,
        keys_max: usize,
    ) -> BoxFuture<'a, Result<usize>>;

    /// Roughly how many bytes the range takes up on disk.
    fn size<'a>(&'a self, range: &'a KeyRange) -> BoxFuture<'a, Result<u64>>;

    /// Moving and dropping whole ranges without reading their rows, if the store can.
    fn handover(&self) -> Option<&dyn Handover> {
        None
    }

    /// What it can take at the moment. Costs next to nothing.
    fn health(&self) -> StoreHealth {
        StoreHealth::Well
    }

    /// Writes out what makes the next start fast. Nothing answered depends on it.
    fn close(&self) -> BoxFuture<'_, Result<()>>;

    /// One value of the newest state.
    fn get<'a>(&'a self, key: &'a [u8]) -> BoxFuture<'a, Result<Option<Bytes>>> {
        Box::pin(async move { self.snapshot(&[], Reads::One).await?.get(key).await })
    }

    /// One page of the newest state.
    fn scan<'a>(
        &'a self,
        range: &'a KeyRange,
        direction: Direction,
        limit: PageLimit,
    ) -> BoxFuture<'a, Result<Page>> {
        Box::pin(async move {
            let snapshot = self.snapshot(&[], Reads::One).await?;
            snapshot.scan(range, direction, limit).await
        })
    }

    /// A walk along one page of the newest state.
    fn walk<'a>(
        &'a self,
        range: &'a KeyRange,
        direction: Direction,
        limit: PageLimit,
        visit: &'a mut Visit<'_>,
    ) -> BoxFuture<'a, Result<bool>> {
        Box::pin(async move {
            let snapshot = self.snapshot(&[], Reads::One).await?;
            snapshot.walk(range, direction, limit, visit).await
        })
    }

    /// Loads items that are there already.
    fn ingest(&self, guards: Vec<Bytes>, items: Vec<Item>) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            let mut loading = self.load(guards);
            loading.add(items).await?;
            loading.finish().await
        })
    }
}

/// Items on their way into a store, of which nothing is there before the end. Dropped before that, they are forgotten.
pub trait Loading: Send {
    /// Takes the next items, which ascend and lie behind all before them.
    fn add(&mut self, items: Vec<Item>) -> BoxFuture<'_, Result<()>>;

    /// Puts all of them, durable when answered. Fails with [`Kind::Moved`], writing nothing, if a guard does not exist by
    /// then. After any other error they may be there, as after [`Txn::commit`].
    fn finish<'a>(self: Box<Self>) -> BoxFuture<'a, Result<()>>
    where
        Self: 'a;
}

struct Gathered<'s, S: Store + ?Sized> {
    store: &'s S,
    guards: Vec<Bytes>,
    items: Vec<Item>,
}

impl<S: Store + ?Sized> Loading for Gathered<'_, S> {
    fn add(&mut self, mut items: Vec<Item>) -> BoxFuture<'_, Result<()>> {
        self.items.append(&mut items);
        Box::pin(std::future::ready(Ok(())))
    }

    fn finish<'a>(self: Box<Self>) -> BoxFuture<'a, Result<()>>
    where
        Self: 'a,
    {
        Box::pin(async move {
            let Self { store, guards, items } = *self;
            check_sorted(&items)?;
            let writes = items.into_iter().map(|(key, value)| Write::Put(key, value)).collect();
            store.begin(guards).await?.commit(writes).await
        })
    }
}

/// Refuses items that cannot be ingested.
pub fn check_sorted(items: &[Item]) -> Result<()> {
    match items.is_sorted_by(|a, b| a.0 < b.0) {
        true => Ok(()),
        false => Err(Error::invalid("not-sorted", "ingested items must ascend by key")),
    }
}

/// Refuses what is over the named limits, before anything is written.
pub fn check_sizes(writes: &[Write]) -> Result<()> {
    let mut total = 0;
    for write in writes {
        if write.key().len() > limits::KEY_BYTES_MAX {
            let length = write.key().len();
            return Err(Error::too_large("key-too-large", format!("a key of {length} bytes")));
        }
        if let Write::Put(_, value) = write
            && value.len() > limits::VALUE_BYTES_MAX
        {
            let length = value.len();
            return Err(Error::too_large("value-too-large", format!("a value of {length} bytes")));
        }
        total += write.bytes();
    }
    if total > limits::COMMIT_BYTES_MAX {
        return Err(Error::too_large("commit-too-large", format!("a commit of {total} bytes")));
    }
    Ok(())
}
