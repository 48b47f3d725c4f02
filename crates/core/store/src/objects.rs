//! What a service for objects must do to keep the bytes of big values: bytes under names that are written once.
//!
//! It knows nothing of generations, owners and sums: those are rows of the database beside it. A name is never used for other
//! bytes, so nothing here has to replace anything.

use std::ops::Range;

use bytes::Bytes;
use lazuli_env::BoxFuture;

use crate::Result;

/// The most bytes of an object that are read at once.
pub const OBJECT_READ_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Keeps bytes under names. Parts of a name are separated by `/`.
pub trait Objects: Send + Sync {
    /// Where the objects are, without secrets: written down beside the rows, so that they are looked for nowhere else.
    fn place(&self) -> &str;

    /// Begins an object. A writer that is dropped before its end leaves no object behind.
    fn create<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Box<dyn ObjectWriter>>>;

    /// At most [`OBJECT_READ_BYTES_MAX`] of an object; none if it is not there or too short.
    fn read<'a>(&'a self, name: &'a str, range: Range<u64>)
    -> BoxFuture<'a, Result<Option<Bytes>>>;

    /// Removes an object; one that is not there is fine.
    fn remove<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<()>>;

    /// Names below a folder, behind the one given, by name.
    fn list<'a>(
        &'a self,
        folder: &'a str,
        after: Option<&'a str>,
        most: usize,
    ) -> BoxFuture<'a, Result<Vec<String>>>;
}

/// An object in the making.
pub trait ObjectWriter: Send {
    fn write(&mut self, bytes: Bytes) -> BoxFuture<'_, Result<()>>;

    /// Ends the object. It is as durable as the service makes it when answered.
    fn finish(self: Box<Self>) -> BoxFuture<'static, Result<()>>;
}
