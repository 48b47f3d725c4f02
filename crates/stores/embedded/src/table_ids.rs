//! The numbers by which the engine names tables. Each is in the table itself and is the name of its file, so a table that
//! goes to another store has to keep it, and that store must not have given it to a table of its own, nor ever do so.
//!
//! The engine counts on from its highest number. Here every start counts on from a place of its own, drawn from so many that
//! two stores hardly ever have the same. Where they have it all the same, the table is written anew under another number.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};

use fjall::{AbstractTree, AnyTree, Keyspace};
use lsm_tree::{Table, TableId};

/// How many numbers there are from one place to the next: more than a store writes tables from one start to the next.
const NUMBER_BITS: u32 = 31;
/// How many places there are, in bits. The engine's counters have 63.
const PLACE_BITS: u32 = 32;

/// Has the tables that are written from now on numbered from a new place on.
pub(crate) fn draw(data: &Keyspace) {
    let AnyTree::Standard(tree) = &data.tree else { return };
    let version = tree.current_version();
    // The place of a new store, in which the engine may have begun to write.
    let taken: HashSet<u64> = version.iter_tables().map(|table| place(table.id())).collect();
    let drawn = (0u64..).map(|n| RandomState::new().hash_one(n) >> (u64::BITS - PLACE_BITS));
    let free = drawn.into_iter().find(|place| *place != 0 && !taken.contains(place));
    if let Some(place) = free {
        tree.table_id_counter.set(place << NUMBER_BITS);
    }
}

/// Whether a table of another store may keep its number here.
pub(crate) fn is_free(data: &Keyspace, table: &Table) -> bool {
    let is_same = |known: &Table| known.id() == table.id();
    place(data.tree.next_table_id()) != place(table.id())
        && !data.tree.current_version().iter_tables().any(is_same)
}

fn place(id: TableId) -> u64 {
    id >> NUMBER_BITS
}
