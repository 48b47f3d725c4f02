//! The engine's numbers of tables. The number is in the table itself and is the name of its file, so an adopted table
//! has to keep it, and the adopting store must never use it for a table of its own.
//!
//! The engine continues from its highest number. Here every start continues from a random base, so that two stores
//! hardly ever have the same. If they do, the table is rewritten under another number.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};

use fjall::{AbstractTree, AnyTree, Keyspace};
use lsm_tree::{Table, TableId};

/// How many numbers there are from one base to the next: more than a store writes tables in one run.
const NUMBER_BITS: u32 = 31;
/// The number of bases, in bits. The engine's counters have 63.
const PLACE_BITS: u32 = 32;

/// Numbers all further tables from a new base.
pub(crate) fn draw(data: &Keyspace) {
    let AnyTree::Standard(tree) = &data.tree else { return };
    let version = tree.current_version();
    // The base of a new store, in which the engine may have begun to write.
    let taken: HashSet<u64> = version.iter_tables().map(|table| place(table.id())).collect();
    let drawn = (0u64..).map(|n| RandomState::new().hash_one(n) >> (u64::BITS - PLACE_BITS));
    let free = drawn.into_iter().find(|place| *place != 0 && !taken.contains(place));
    if let Some(place) = free {
        tree.table_id_counter.set(place << NUMBER_BITS);
    }
}

/// Whether an adopted table may keep its number here.
pub(crate) fn is_free(data: &Keyspace, table: &Table) -> bool {
    let is_same = |known: &Table| known.id() == table.id();
    place(data.tree.next_table_id()) != place(table.id())
        && !data.tree.current_version().iter_tables().any(is_same)
}

fn place(id: TableId) -> u64 {
    id >> NUMBER_BITS
}
