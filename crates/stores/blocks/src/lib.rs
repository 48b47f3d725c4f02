//! Block files: large values as files in a folder of their own, beside the stores of the shards.
//!
//! Reading order: `layout` (folders and names), `tail` (what stands at the end of a file), `generation` and `entries` (ids,
//! and directory entries on their way to the disk), `seal` (what an older copy of the folder is known by), `writer`,
//! `reader` with `pool`, `files` (all of it together). `disk` is where calls that may wait are made, `room` refuses them on
//! a full disk.
//!
//! A file is whole and on disk, its name too, before anybody learns its id; so whatever a row names is there. What a
//! crash leaves behind that no row names is in the folders of earlier generations: [`BlockFiles::unswept`].

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
