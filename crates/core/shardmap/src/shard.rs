//! A shard as the catalog knows it.

use std::collections::BTreeMap;

use crate::ShardId;

/// One ordered, transactional store, with where it is and what it is good for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shard {
    pub id: ShardId,
    /// Unique, chosen by people.
    pub name: String,
    /// Where the store is: for embedded shards the name of the directory beside the catalog.
    pub location: String,
    pub region: String,
    pub labels: BTreeMap<String, String>,
    /// Grows with every change of this record.
    pub version: u64,
}
