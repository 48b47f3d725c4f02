//! Request units: what an operation costs, a function of sizes and counts alone, so the same request on the same data always
//! costs the same.
//!
//! The published points are kept: a read of 1 KB costs 1 and of 100 KB 10; a create of 1 KB without indexes 5.5; a replace
//! about twice a create. Between and beyond them the model is ours.

/// A number of request units.
pub(crate) type Units = f64;

/// What the reading of an item costs that is not there, and a refusal by a condition.
pub(crate) const MISS: Units = 1.0;
/// What an operation on a database, container or another resource beside items costs.
pub(crate) const METADATA_READ: Units = 2.0;
pub(crate) const METADATA_WRITE: Units = 4.95;
/// What a query costs at least, and each further physical partition that it asks.
const QUERY: Units = 2.28;
const PARTITION: Units = 2.5;
/// Each item that a query loads, per KB, and each index entry that it reads.
const LOADED_KB: Units = 0.45;
const ENTRY: Units = 0.02;
/// Each row of a query's result, per KB.
const ROW_KB: Units = 0.25;
/// One term of an index that is written.
const TERM: Units = 0.12;
/// What scripts cost per millisecond.
const SCRIPT_MS: Units = 0.25;

const KB: f64 = 1024.0;

/// Costs are told with two digits.
pub(crate) fn rounded(units: Units) -> Units {
    (units * 100.0).round() / 100.0
}

/// A point read: 1 for the first KB, then in a line to 10 for 100 KB.
pub(crate) fn read(bytes: usize) -> Units {
    rounded(1.0 + over_first_kb(bytes) * (9.0 / 99.0))
}

/// A create: 5.5 for the first KB, then in a line to 50 for 100 KB, and the index terms.
pub(crate) fn create(bytes: usize, terms: usize) -> Units {
    rounded(stored(bytes) + terms as f64 * TERM)
}

/// A replace removes the old item and its terms and writes the new ones.
pub(crate) fn replace(before: usize, after: usize, terms: usize) -> Units {
    rounded(stored(before) * 0.9 + stored(after) + terms as f64 * TERM)
}

pub(crate) fn delete(bytes: usize, terms: usize) -> Units {
    rounded(stored(bytes) + terms as f64 * TERM)
}

/// What one page of a query did.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Work {
    pub(crate) partitions: usize,
    pub(crate) items_loaded: u64,
    pub(crate) bytes_loaded: u64,
    pub(crate) index_entries: u64,
    pub(crate) bytes_out: u64,
}

pub(crate) fn query(work: &Work) -> Units {
    let kb = |bytes: u64| bytes as f64 / KB;
    let further = work.partitions.saturating_sub(1) as f64;
    // A small item costs a quarter of a KB all the same.
    let loaded = kb(work.bytes_loaded).max(work.items_loaded as f64 / 4.0);
    rounded(
        QUERY
            + further * PARTITION
            + loaded * LOADED_KB
            + work.index_entries as f64 * ENTRY
            + kb(work.bytes_out) * ROW_KB,
    )
}

/// A page of a feed costs what a query costs that loads the same.
pub(crate) fn feed(items: usize, bytes: usize) -> Units {
    let (items_loaded, bytes_loaded) = (items as u64, bytes as u64);
    query(&Work { partitions: 1, items_loaded, bytes_loaded, ..Work::default() })
}

/// A script costs its time beside its operations.
pub(crate) fn script(milliseconds: u64, operations: Units) -> Units {
    rounded(1.0 + milliseconds as f64 * SCRIPT_MS + operations)
}

fn stored(bytes: usize) -> Units {
    5.5 + over_first_kb(bytes) * (44.5 / 99.0)
}

fn over_first_kb(bytes: usize) -> f64 {
    (bytes as f64 / KB - 1.0).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_points_are_met() {
        assert_eq!((read(1), read(1024), read(100 * 1024)), (1.0, 1.0, 10.0));
        assert_eq!((create(1024, 0), create(100 * 1024, 0)), (5.5, 50.0));
        let ratio = replace(1024, 1024, 0) / create(1024, 0);
        assert!((1.8..=2.1).contains(&ratio), "{ratio}");
    }

    #[test]
    fn more_work_costs_more() {
        let small = Work { partitions: 1, items_loaded: 10, ..Work::default() };
        let wide = Work { partitions: 3, ..small };
        let deep = Work { items_loaded: 1000, bytes_loaded: 1000 * 1024, ..small };
        assert!(query(&small) < query(&wide) && query(&small) < query(&deep));
        assert!(create(1024, 20) > create(1024, 5));
        // A thousand items of 1 KB, returned whole.
        let whole = query(&Work { bytes_out: 1000 * 1024, ..deep });
        assert!((500.0..=1_100.0).contains(&whole), "{whole}");
    }
}
