//! What the keeper of big values must do: files of bytes that never change, beside the shards' stores.
//!
//! A file is written before the commit that names it and removed after the commit that names it no more. Nothing here
//! knows who names a file: rows of the shards do. So a crash between the two leaves files that no row names, and
//! whoever opens the keeper again finds them by comparing its list with the rows.
//!
//! [`crate::blocks_suite`] states the contract as cases; [`crate::mem_blocks`] is the one for tests.

use std::fmt;
use std::ops::Range;

use bytes::Bytes;
use lazuli_env::BoxFuture;

use crate::Result;

/// The most bytes that a reader hands out at once.
pub const PIECE_BYTES_MAX: usize = 256 * 1024;

/// The name of a file. Never used twice, also not after a crash: generations grow with every start of the keeper.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockId {
    /// Which opening of the keeper made it.
    pub generation: u64,
    /// Its number within the generation.
    pub number: u64,
}

impl fmt::Display for BlockId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.generation, self.number)
    }
}

impl fmt::Debug for BlockId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The shardlet that a file is written for: its container and its route. For people and for checks; nothing is decided
/// by it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Owner {
    pub container: u32,
    pub route: Bytes,
}

/// A file that is on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockFile {
    pub id: BlockId,
    pub length: u64,
    /// CRC-64/NVME of all its bytes.
    pub crc64: u64,
}

/// A file as the keeper finds it when it looks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundFile {
    pub file: BlockFile,
    pub owner: Owner,
}

/// Keeps big values as files.
pub trait Blocks: Send + Sync {
    /// Begins a file for a shardlet. A writer that is dropped before its end leaves no file behind.
    fn create<'a>(&'a self, owner: &'a Owner) -> BoxFuture<'a, Result<Box<dyn BlockWriter>>>;

    /// A file of another shardlet with the same bytes, on disk when answered.
    fn copy<'a>(
        &'a self,
        file: &'a BlockFile,
        owner: &'a Owner,
    ) -> BoxFuture<'a, Result<BlockFile>>;

    /// Reads a range of a file's bytes. A file that is missing or has another length is `Corrupt`, and so is one whose
    /// bytes do not match the sum, which is checked when all of them are read.
    fn read<'a>(
        &'a self,
        file: &'a BlockFile,
        range: Range<u64>,
    ) -> BoxFuture<'a, Result<Box<dyn BlockReader>>>;

    /// Removes a file; one that is not there is fine. Who has begun to read it may still fail to read on.
    fn remove(&self, id: BlockId) -> BoxFuture<'_, Result<()>>;

    /// The same on the word of a row: the file goes only if it was written for the shardlet whose row names it. A file
    /// that says that it is another one, or another shardlet's, stays.
    fn remove_of<'a>(&'a self, owner: &'a Owner, id: BlockId) -> BoxFuture<'a, Result<()>>;

    /// Whether rows may still name a file that this process has written. Not so once others may have taken the process for
    /// gone, and its unnamed files with it.
    fn may_be_named(&self, _id: BlockId) -> bool {
        true
    }

    /// The finished files behind the one given, by id.
    fn list(&self, after: Option<BlockId>, most: usize) -> BoxFuture<'_, Result<Vec<FoundFile>>>;
}

/// A file in the making.
pub trait BlockWriter: Send {
    fn write(&mut self, bytes: Bytes) -> BoxFuture<'_, Result<()>>;

    /// Ends the file. It is on disk, together with its name, when answered.
    fn finish(self: Box<Self>) -> BoxFuture<'static, Result<BlockFile>>;
}

/// Pieces of at most [`PIECE_BYTES_MAX`], none of them empty, until the range is read.
pub trait BlockReader: Send {
    fn next(&mut self) -> BoxFuture<'_, Result<Option<Bytes>>>;
}
