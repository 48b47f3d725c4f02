//! What a store may be able to do beyond the contract: give whole ranges to another store of its kind, or drop them, without
//! reading their rows. Of our stores the embedded one can, with its SSTables.

use std::any::Any;

use bytes::Bytes;
use lazuli_env::BoxFuture;

use crate::{KeyRange, Result};

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

/// What one store holds in some ranges, in that store's own form. Only stores of the same kind can read it.
pub struct Parcel(Box<dyn Any + Send>);

impl Parcel {
    pub fn new(content: impl Any + Send) -> Self {
        Self(Box::new(content))
    }

    /// The content, for a store of the same kind.
    pub fn open<T: Any>(self) -> Option<T> {
        self.0.downcast().ok().map(|content| *content)
    }
}

/// The answer to a request for a parcel.
pub enum Packed {
    Parcel(Parcel),
    /// The store is busy with what it holds: ask again in a moment.
    NotNow,
    /// Copying the rows is the only way, or costs no more.
    Nothing,
}

pub trait Handover: Send + Sync {
    /// What the ranges, which ascend and do not meet, hold at one moment between call and return.
    fn pack<'a>(&'a self, ranges: &'a [KeyRange]) -> BoxFuture<'a, Result<Packed>>;

    /// Takes over what a parcel holds, durable when answered. Answers false, changing nothing, if it comes from a store of
    /// another kind, or if one of the ranges holds an item or a tombstone.
    ///
    /// It is for ranges that are not read meanwhile and that only the owner of the guards writes to. It need not happen at
    /// one moment: after an error any part of it may be there. [`crate::Kind::Moved`] means that a guard was gone before
    /// the end.
    fn unpack(&self, guards: Vec<Bytes>, parcel: Parcel) -> BoxFuture<'_, Result<bool>>;

    /// Drops as much of the range as costs next to nothing, however much that is, and says how far it came. Fails with
    /// [`crate::Kind::Moved`], changing nothing, if a guard does not exist by then.
    ///
    /// It is for ranges that are no longer read or written: any part may stay, and deleted rows may reappear. The caller
    /// deletes afterwards what is left.
    fn drop_range<'a>(
        &'a self,
        guards: Vec<Bytes>,
        range: &'a KeyRange,
    ) -> BoxFuture<'a, Result<Dropped>>;
}
