//! Where the ranges of a container came from.
//!
//! Clients keep the ranges that they were told of, and learn from a new range's ancestors which of these it takes the place
//! of. The map remembers no partition that is gone. So what was told is written down: whatever range is new since then has
//! those ranges as ancestors that held some of its routes.

use bytes::Bytes;
use lazuli_engine::{KeyRange, Partition, PartitionId, Result};

use super::Documents;
use super::collection::{Collection, Range, epk_bound, epk_text};
use lazuli_value::{Object, Value};

/// The attribute that holds the ranges that were told last.
const RANGES: &str = "ranges";

impl Documents {
    /// The ranges of a container, in their order, each with all that it came from.
    pub async fn ranges(&self, collection: &Collection) -> Result<Vec<Range>> {
        let partitions = self.partitions(collection).await?;
        let name = &collection.container.name;
        let text = self.engine.attribute(name, RANGES).await?;
        let told = text.as_deref().map(read).unwrap_or_default();
        let now = follow(&told, &partitions);
        if now != told {
            // Two that write this at once have read the same map, or one of them tells of older ranges, which the next
            // reading puts right.
            self.engine.set_attribute(name, RANGES, Some(&write(&now))).await?;
        }
        Ok(now)
    }
}

/// The ranges of these partitions, with ancestors from those that were told before.
fn follow(told: &[Range], partitions: &[Partition]) -> Vec<Range> {
    let range = |partition: &Partition| {
        if let Some(known) = told.iter().find(|one| one.id == partition.id) {
            return known.clone();
        }
        let mut parents: Vec<PartitionId> = Vec::new();
        for old in told.iter().filter(|old| old.routes().overlaps(&partition.routes)) {
            for parent in old.parents.iter().chain([&old.id]) {
                if !parents.contains(parent) {
                    parents.push(*parent);
                }
            }
        }
        parents.sort_unstable();
        let KeyRange { start, end } = partition.routes.clone();
        Range { id: partition.id, min: start, max: end, parents }
    };
    partitions.iter().map(range).collect()
}

fn write(ranges: &[Range]) -> String {
    let one = |range: &Range| {
        let parents = range.parents.iter().map(|id| Value::Int64(id.0 as i64)).collect();
        let mut object = Object::new();
        object.insert("id", Value::Int64(range.id.0 as i64));
        object.insert("min", epk_text(&range.min).into());
        object.insert("max", range.max_text().into());
        object.insert("parents", Value::Array(parents));
        Value::Object(object)
    };
    Value::Array(ranges.iter().map(one).collect()).to_json()
}

/// What does not decode was never told.
fn read(text: &str) -> Vec<Range> {
    let number = |value: Option<&Value>| match value {
        Some(Value::Int64(number)) => u64::try_from(*number).ok().map(PartitionId),
        _ => None,
    };
    let bound = |value: Option<&Value>| -> Option<Option<Bytes>> {
        match value {
            Some(Value::String(text)) => epk_bound(text).ok(),
            _ => None,
        }
    };
    let one = |value: &Value| {
        let Value::Object(object) = value else { return None };
        let Some(Value::Array(parents)) = object.get("parents") else { return None };
        Some(Range {
            id: number(object.get("id"))?,
            min: bound(object.get("min"))??,
            max: bound(object.get("max"))?,
            parents: parents.iter().map(|one| number(Some(one))).collect::<Option<_>>()?,
        })
    };
    match Value::from_json(text.as_bytes()) {
        Ok(Value::Array(all)) => all.iter().filter_map(one).collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lazuli_engine::{ContainerId, Epoch, PartitionState, ShardId};

    fn partition(id: u64, from: &'static [u8], to: Option<&'static [u8]>) -> Partition {
        Partition {
            id: PartitionId(id),
            container: ContainerId(1),
            routes: KeyRange::new(from, to.map(Bytes::from_static)),
            shard: ShardId(1),
            epoch: Epoch::FIRST,
            state: PartitionState::Online,
        }
    }

    #[test]
    fn a_range_has_all_its_ancestors_whatever_was_told_in_between() {
        let first = follow(&[], &[partition(1, b"", None)]);
        assert!(first[0].parents.is_empty());
        let two = [partition(2, b"", Some(b"\x20")), partition(3, b"\x20", None)];
        let second = follow(&first, &two);
        assert_eq!(second[1].parents, [PartitionId(1)]);
        let three = [
            partition(2, b"", Some(b"\x20")),
            partition(4, b"\x20", Some(b"\x30")),
            partition(5, b"\x30", None),
        ];
        let third = follow(&second, &three);
        assert_eq!(third[0], second[0]);
        assert_eq!(third[1].parents, [PartitionId(1), PartitionId(3)]);
        assert_eq!(read(&write(&third)), third);
        let merged = follow(&third, &[partition(6, b"", None)]);
        assert_eq!(merged[0].parents.len(), 5);
    }
}
