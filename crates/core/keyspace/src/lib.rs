//! The keyspace of the cache: keys in 16,384 hash slots, in memory, under locks by ranges of slots (C1, C2).
//!
//! [`Keyspace`] gives a command a [`Space`]: the stripes that its keys are in, locked. All commands change keys through it, so
//! that expiry, eviction, clients that watch or wait, events and rows for the store are handled in one place each. `types`
//! has the types of values with elements, `journal` what makes a keyspace durable.

mod copies;
mod dict;
mod entry;
mod event;
mod eviction;
pub mod fuzzing;
mod garbage;
mod journal;
mod keys;
mod keyspace;
mod loading;
mod log;
pub mod rdb;
mod rows;
mod shelf;
mod slot;
mod space;
mod stripe;
mod survey;
pub mod types;
mod users;
mod value;
mod waiting;
mod whole;

pub use copies::CopyCounts;
pub use dict::{Dict, Keyed, Place};
pub use entry::{Entry, Object};
pub use event::{Class, Event};
pub use eviction::Policy;
pub use journal::{Journal, Persistence};
pub use keys::Expiry;
pub use keyspace::{Keyspace, STRIPES};
pub use log::Log;
pub use shelf::{CONTAINER, Shelf};
pub use slot::{SLOTS, crc16, slot_of};
pub use space::{Effects, Invalid, Space};
pub use stripe::StripeCounts;
pub use survey::{Found, Survey};
pub use users::UserShelf;
pub use value::{BadRow, Kind, Value, WrongType};
pub use whole::{Cleared, DatabaseCounts, cursor_slot};
