//! Compares the entries of indexes with the items that they follow from. Both are added up for each partition, in whatever
//! order they come: sums of hashes that are equal mean that the entries are.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use lazuli_shardmap::layout::PREFIX_BYTES;
use lazuli_shardmap::{Container, ContainerId, PartitionId};
use lazuli_store::Result;
use xxhash_rust::xxh3::xxh3_64;

use crate::derived::{self, Deriving, Rules, Standing};
use crate::item::{Item, ItemKey};

/// Entries added up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Total {
    count: u64,
    sum: u64,
}

impl Total {
    fn add(&mut self, key: &[u8]) {
        self.count += 1;
        self.sum = self.sum.wrapping_add(xxh3_64(key));
    }
}

#[derive(Default)]
pub(crate) struct EntryCheck {
    /// As the containers were before the snapshot, and after it: what was complete in between was so at both times.
    rules: BTreeMap<ContainerId, Vec<Arc<dyn Rules>>>,
    expected: BTreeMap<PartitionId, Total>,
    found: BTreeMap<PartitionId, Total>,
}

impl EntryCheck {
    pub(crate) fn new(
        deriving: &Deriving,
        containers: [&BTreeMap<ContainerId, Container>; 2],
    ) -> Result<Self> {
        let mut check = Self::default();
        for container in containers.into_iter().flat_map(BTreeMap::values) {
            if let Some(rules) = deriving.rules(container)? {
                check.rules.entry(container.id).or_default().push(rules);
            }
        }
        Ok(check)
    }

    /// Whether entries like this one are all there, and no others.
    fn is_complete(&self, container: ContainerId, entry: &[u8]) -> bool {
        let rules = self.rules.get(&container);
        rules.is_some_and(|rules| {
            rules.iter().all(|rules| rules.standing(entry) == Standing::Complete)
        })
    }

    /// Adds up the entries that an item should have.
    pub(crate) fn expect(
        &mut self,
        owner: PartitionId,
        container: &Container,
        key: &Bytes,
        item: &Item,
    ) -> Result<()> {
        let Some(rules) = self.rules.get(&container.id).and_then(|rules| rules.last()).cloned()
        else {
            return Ok(());
        };
        // A key that does not decode is a finding of its own.
        let Ok((route, _)) = container.kind.split(&container.key, &key[PREFIX_BYTES..]) else {
            return Ok(());
        };
        let key = ItemKey::from_bytes(key.clone(), route.len())?;
        if key.space() != lazuli_shardmap::layout::Space::ITEMS {
            return Ok(());
        }
        for entry in rules.entries(&key, item)? {
            if self.is_complete(container.id, &entry) {
                self.expected.entry(owner).or_default().add(&derived::row(&entry, &key).0);
            }
        }
        Ok(())
    }

    /// Adds up an entry that is there.
    pub(crate) fn found(
        &mut self,
        owner: PartitionId,
        container: ContainerId,
        entry: &[u8],
        key: &[u8],
    ) {
        // A container without any rules has no entries, so what is found is too much.
        if self.is_complete(container, entry) || !self.rules.contains_key(&container) {
            self.found.entry(owner).or_default().add(key);
        }
    }

    /// The partitions whose items and entries do not agree.
    pub(crate) fn differences(&self) -> Vec<(PartitionId, String)> {
        let mut owners: Vec<PartitionId> =
            self.expected.keys().chain(self.found.keys()).copied().collect();
        owners.sort_unstable();
        owners.dedup();
        let total = |totals: &BTreeMap<PartitionId, Total>, id: &PartitionId| {
            totals.get(id).copied().unwrap_or_default()
        };
        let differs = |id: &PartitionId| {
            let (expected, found) = (total(&self.expected, id), total(&self.found, id));
            let message = format!(
                "has {} entries in indexes, its items should have {}",
                found.count, expected.count
            );
            (expected != found).then_some((*id, message))
        };
        owners.iter().filter_map(differs).collect()
    }
}
