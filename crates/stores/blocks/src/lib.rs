//! Block files: large values as files in a folder of their own, beside the stores of the shards.
//!
//! Reading order: `layout` (folders and names), `tail` (the metadata at the end of a file), `generation` and
//! `entries` (ids, and fsync of directory entries), `seal` (detects an older copy of the folder), `writer`, `reader`
//! with `pool`, `files` (all of it together). `disk` runs blocking calls, `room` refuses them on a full disk.
//!
//! A file and its name are complete and on disk before its id is returned; so every file that a row names exists.
//! Files that a crash leaves without a row are in the folders of earlier generations: [`BlockFiles::unswept`].

mod disk;
mod entries;
mod files;
mod generation;
mod layout;
mod pool;
mod reader;
mod room;
mod seal;
mod tail;
mod writer;

pub use files::{BlockFiles, Damaged, Durability};
pub use seal::{Look, Seal};
