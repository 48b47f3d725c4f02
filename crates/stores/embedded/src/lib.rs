//! The default store: one fjall database, one directory, one committing thread per shard.
//!
//! Reading order: `layout` (files, lock, format), `keyspaces` (which key lies where), `queue` and `committer` (how
//! writes become batches), `state` and `reader` (what readers see), `marker`, `manifest` and `journal` (how a start
//! tells what was never promised from what was lost), `open` (all of it in order),
//! `slot`, `mend`, `room` and `watch` (what happens when the disk fails or is full), `parcel`, `carry` and `adopt` (how
//! tables go from one store to another as they are). `writeback`, `merges` and `trim` keep commits quick beside large
//! writes, merges and deletions, and nothing needs them.

mod adopt;
mod behind;
mod bulk;
mod carry;
mod change;
mod committer;
mod dropping;
mod error;
mod guards;
mod journal;
mod keyspaces;
mod layout;
mod manifest;
mod marker;
mod mend;
mod merges;
mod open;
mod parcel;
mod parts;
mod queue;
mod reader;
mod room;
mod sealed;
mod settings;
mod size;
mod slot;
mod state;
mod store;
mod table_ids;
mod trim;
mod verify;
mod watch;
mod writeback;

pub use journal::Cut;
pub use layout::FORMAT;
pub use open::{Recovery, Unsure};
pub use settings::{Durability, JOURNAL_BYTES_LEAST, RELAXED_SYNC_MS_MAX, Settings};
pub use store::EmbeddedStore;
pub use verify::{Damage, Verification};
