//! What a shard's store must do, and nothing more: ordered keys, snapshots, atomic durable commits.
//!
//! A store knows keys, values, ranges and transactions. It knows no partitions, no conditions, no time to live: those are
//! decided once, above it. The one help it gives to what is above is the **guard**: a key that must still exist at the
//! moment a transaction is applied. The engine guards every write with the row of the local map that says "this shard
//! holds this partition at this epoch", so a writer with an old map can never write, whatever happened in between.
//!
//! `suite` states the contract as cases that run on every store; `mem` is the store that tests and the simulator use.
//! Values too big for a store are files beside it: `blocks`, with a suite and a version in memory of its own.

pub mod blocks;
pub mod blocks_suite;
pub mod crc64;
pub mod error;
pub mod faulty;
pub mod health;
pub mod limits;
pub mod mem;
pub mod mem_blocks;
pub mod range;
pub mod suite;

use std::any::Any;
use std::ops::ControlFlow;

use bytes::Bytes;
use lazuli_env::BoxFuture;

pub use error::{Error, Kind, Result};
pub use health::{Intake, Shortage, StoreHealth};
pub use range::{KeyRange, after_key, after_prefix};

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

/// How far a store came with dropping a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dropped {
    /// All that it can drop is gone.
    All,
    /// A part is gone, and there is more: ask again.
    Part,
    /// The store is busy with what it holds there: ask again in a moment.
    NotNow,
}

/// What one store holds in some ranges, as that store keeps it, on its way to another. Only the stores know what is in it.
pub struct Parcel(Box<dyn Any + Send>);

impl Parcel {
    pub fn new(content: impl Any + Send) -> Self {
        Self(Box::new(content))
    }

    /// What is in it, for a store that keeps things in this way too.
    pub fn open<T: Any>(self) -> Option<T> {
        self.0.downcast().ok().map(|content| *content)
    }
}

/// What became of the wish for a parcel.
pub enum Packed {
    Parcel(Parcel),
    /// The store is busy with what it holds: ask again in a moment.
    NotNow,
    /// Reading rows and loading them elsewhere is the only way, or not worse than any other.
    Nothing,
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
pub trait Txn: Reader {
    /// Applies all writes or none. Answers once they are durable. Fails with [`Kind::Moved`], writing nothing, if a guard
    /// is gone by then. After any other error the writes may have happened.
    fn commit(self: Box<Self>, writes: Vec<Write>) -> BoxFuture<'static, Result<()>>;
}

/// A shard's store. Whoever uses it makes sure that no two open transactions write the same keys; the store promises
/// atomicity, durability, snapshots and guards.
pub trait Store: Send + Sync {
    /// The state after some moment between call and return, with everything that was answered before the call.
    fn snapshot(&self) -> Box<dyn Reader>;

    /// Opens a transaction on the newest state. Fails with [`Kind::Moved`] if a guard key does not exist.
    fn begin(&self, guards: Vec<Bytes>) -> BoxFuture<'_, Result<Box<dyn Txn>>>;

    /// Puts many items, strictly ascending by key, at bulk speed: all or none, as a transaction does, and durable when
    /// answered. Fails with [`Kind::Moved`], writing nothing, if a guard does not exist by then. After any other error they
    /// may be there.
    fn ingest(&self, guards: Vec<Bytes>, items: Vec<Item>) -> BoxFuture<'_, Result<()>>;

    /// The same for items that come one part after another. A store that cannot take them as they come gathers them.
    fn load(&self, guards: Vec<Bytes>) -> Box<dyn Loading + '_> {
        Box::new(Gathered { store: self, guards, items: Vec::new() })
    }

    /// What the ranges, which ascend and do not meet, hold at one moment between call and return, for another store to take
    /// over without anybody going through it row by row.
    fn pack<'a>(&'a self, _ranges: &'a [KeyRange]) -> BoxFuture<'a, Result<Packed>> {
        Box::pin(std::future::ready(Ok(Packed::Nothing)))
    }

    /// Takes over what a parcel holds, durable when answered. Says no, changing nothing, if it comes from a store of another
    /// kind, or if something is in the way: an item in one of the ranges, or the remains of one.
    ///
    /// It is for ranges that nobody reads meanwhile, and that nobody puts into but who holds the guards. It need not happen
    /// at one moment: after an error, [`Kind::Moved`] among them, which is a guard that was gone before the end, any part of
    /// it may be there.
    fn unpack(&self, _guards: Vec<Bytes>, _parcel: Parcel) -> BoxFuture<'_, Result<bool>> {
        Box::pin(std::future::ready(Ok(false)))
    }

    /// Deletes up to `keys_max` keys of the range, lowest first, and says how many. Durable when answered, atomic for
    /// what it counts. Called again and again until it answers less than `keys_max`.
    fn delete_range<'a>(
        &'a self,
        range: &'a KeyRange,
        keys_max: usize,
    ) -> BoxFuture<'a, Result<usize>>;

    /// Lets go of as much of the range as costs next to nothing, however much that is, and says how far it came. Fails with
    /// [`Kind::Moved`], changing nothing, if a guard does not exist by then.
    ///
    /// It is for ranges that nobody reads or puts into any more: any part of it may stay, and what was deleted there may
    /// come to light again. Whoever asks deletes afterwards what is left.
    fn drop_range<'a>(
        &'a self,
        guards: Vec<Bytes>,
        range: &'a KeyRange,
    ) -> BoxFuture<'a, Result<Dropped>>;

    /// Roughly how many bytes the range takes up on disk.
    fn size<'a>(&'a self, range: &'a KeyRange) -> BoxFuture<'a, Result<u64>>;

    /// What it can take at the moment. Costs next to nothing.
    fn health(&self) -> StoreHealth {
        StoreHealth::Well
    }

    /// Writes out what makes the next start fast. Nothing answered depends on it.
    fn close(&self) -> BoxFuture<'_, Result<()>>;
}

/// Items on their way into a store, of which nothing is there before the end. Dropped before that, they are forgotten.
pub trait Loading: Send {
    /// Takes the next items, which ascend and lie behind all before them.
    fn add(&mut self, items: Vec<Item>) -> BoxFuture<'_, Result<()>>;

    /// Puts all of them, with the promises of [`Store::ingest`].
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
        Box::pin(async move { self.store.ingest(self.guards, self.items).await })
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
