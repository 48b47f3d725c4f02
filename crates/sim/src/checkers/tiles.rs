//! A map tiles its space: no route is in two partitions, and in maps without gaps every route is in one.

use lazuli_shardmap::MapKind;
use lazuli_shardmap::catalog::Entry;

use crate::cluster::Table;
use crate::ensure;
use crate::scenario::Found;

/// Checks the partitions of a table, in the order of their routes.
pub fn check(table: &Table, entries: &[Entry]) -> Found {
    let name = table.name;
    let ranges: Vec<_> = entries.iter().map(|entry| &entry.partition.routes).collect();
    for pair in ranges.windows(2) {
        ensure!(!pair[0].overlaps(pair[1]), "{name}: {:?} and {:?} overlap", pair[0], pair[1]);
        let touch = pair[0].end.as_ref() == Some(&pair[1].start);
        let may_gap = table.kind == MapKind::List;
        ensure!(touch || may_gap, "{name}: a gap between {:?} and {:?}", pair[0], pair[1]);
    }
    if table.kind != MapKind::List {
        let begins = ranges.first().is_some_and(|first| first.start.is_empty());
        let ends = ranges.last().is_some_and(|last| last.end.is_none());
        ensure!(begins && ends, "{name}: the map does not reach from end to end: {ranges:?}");
    }
    Ok(())
}
