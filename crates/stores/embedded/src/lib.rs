//! The default store: one fjall database, one directory, one committing thread per shard.
//!
//! Reading order: `layout` (files, lock, format), `keyspaces` (which keys are where), `queue` and `committer` (how writes
//! become batches), `state` and `reader` (what readers see), `marker`, `manifest` and `journal` (how a start distinguishes
//! unanswered commits from lost ones), `open` (all of it in order), `slot`, `mend`, `room` and `watch` (failed and full
//! disks), `parcel`, `carry` and `adopt` (how a store adopts tables of another without rewriting them). `writeback`,
//! `merges` and `trim` keep commits fast beside large writes, compactions and deletions; the store works without them.

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
