//! Plans: which items a query reads, by which index ranges, in which order, and what is left to do with them.
//!
//! A plan is plain data. The shape that has the items carries it out: it reads what [`Access`] names, in the order that
//! [`Order`] asks for, and pushes each item once into an `Execution`, which filters, joins,
//! projects, sorts, groups and pages.

mod choose;
mod condition;
mod explain;
mod path;
mod range;
#[cfg(test)]
mod tests;

pub use choose::{plan, plan_in_order};
pub use path::{Path, Step};
pub use range::KeyRange;

use lazuli_value::Value;

/// What is to be read for a query.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Values that the filter fixes for the first paths of the partition key, in their order: no other shardlet has
    /// items that pass. `None` in it is an absent value. Empty if the filter fixes none.
    pub partition_key: Vec<Option<Value>>,
    pub access: Access,
    pub order: Order,
    /// Whether the access yields exactly the items that pass the filter.
    pub is_exact: bool,
    /// Whether the answer is made from the number of items that the access yields, so that no item has to be read:
    /// `Execution::push_count` takes the number.
    pub is_count: bool,
    /// An ORDER BY that no index serves, so that rows are sorted in memory. The service refuses such queries.
    pub unserved_order: Option<UnservedOrder>,
}

/// What an ORDER BY lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnservedOrder {
    /// Its one path is not indexed, or it is no path of the item.
    Path,
    /// There is no composite index of its paths in this order.
    Composite,
}

/// Where items come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Access {
    /// No item can pass.
    Nothing,
    /// The query has no FROM: one row, whatever items there are. Nothing is pushed, `Execution::push_nothing` makes it.
    OneRow,
    /// All items.
    Items,
    /// The items with an entry in these ranges of one index.
    Index(IndexScan),
    /// The items with an entry in any of these, each item once.
    AnyOf(Vec<IndexScan>),
    /// The items with an entry in these ranges of a composite index, in their order, backwards or not.
    Composite { composite: usize, ranges: Vec<KeyRange>, is_descending: bool },
}

/// Ranges of one index.
///
/// An index of a path has one entry for each item and value at that path: `order key of the value | item key`. A path
/// with [`Step::Element`] has one for each element. Absent values have none. Arrays and objects have one that tells no
/// more than which of the two it is, if [`Schema::has_containers`] says so, and none otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexScan {
    pub path: Path,
    /// Ascending and disjoint.
    pub ranges: Vec<KeyRange>,
    /// Read from the end. Only matters if the order does.
    pub is_descending: bool,
    /// Whether the items without a value at the path are wanted too. In the order they come first, or last if it
    /// descends.
    pub has_missing: bool,
}

/// In which order items must be pushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Any order that is the same each time: one partition after another, by item key or by index entry.
    Any,
    /// By index entry over all partitions: their streams are merged by order key and then by item key, both descending
    /// if the scan is.
    Merged,
}

/// A composite index: paths and whether each is descending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Composite {
    pub paths: Vec<(Path, bool)>,
}

/// What a plan has to know about a container.
pub trait Schema {
    /// The paths of the partition key.
    fn partition_key(&self) -> &[Path];

    /// Whether every item with a value other than an array or object at this path has an entry for it.
    fn is_indexed(&self, path: &Path) -> bool;

    /// Whether arrays and objects have an entry that says that they are there.
    fn has_containers(&self) -> bool {
        false
    }

    /// Whether nearly every item has a value of its own at this path, so that equality finds few.
    fn is_selective(&self, _path: &Path) -> bool {
        false
    }

    /// Whether every item has an entry for this path, so that reading the index in its order leaves no item out.
    fn is_everywhere(&self, _path: &Path) -> bool {
        false
    }

    /// Whether the items without a value at a path can be found, as [`IndexScan::has_missing`] asks for.
    fn finds_missing(&self) -> bool {
        false
    }

    /// The composite indexes. Every item has an entry in each, absent values included.
    fn composites(&self) -> &[Composite] {
        &[]
    }

    /// How many entries a scan would read, if that is known.
    fn estimate(&self, _scan: &IndexScan) -> Option<u64> {
        None
    }
}
