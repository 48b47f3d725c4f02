//! The data types that keys hold: plain structures without clock, chance or keyspace.
//!
//! Small collections are one flat buffer ([`pack::Pack`]); larger ones are tables and ordered structures. When a collection
//! changes from one to the other is what `OBJECT ENCODING` shows, so the bounds are those of Redis 7.0 ([`limits`]).
//! Every change is told element by element ([`ElementLog`]), and a value can be built again from such rows.

pub mod geo;
pub mod hash;
mod hash_of;
pub mod hyperloglog;
pub mod integer;
pub mod kinds;
pub mod limits;
pub mod list;
pub mod log;
pub mod pack;
mod ranks;
pub mod set;
pub mod stream;
pub(crate) mod table;
pub mod zset;

pub use hash::Hash;
pub use hash_of::seed_hashes;
pub use list::List;
pub use log::{ElementLog, Unlogged};
pub use set::Set;
pub use stream::{Stream, StreamId};
pub use zset::SortedSet;

/// Where random choices come from.
pub type Random<'a> = &'a mut dyn FnMut() -> u64;
