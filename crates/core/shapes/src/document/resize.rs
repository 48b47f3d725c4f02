//! More ranges for a container, made in the background: because its throughput asks for them, or because a range is too large.
//!
//! A note in the catalog says which containers there is work for, so that any process finds it, also after a restart. While
//! the note is there, the change of throughput that asked for ranges is pending.

use bytes::Bytes;
use lazuli_engine::{Error, Kind, Known, Middle, Partition, Result, Work};

use super::Documents;
use super::collection::Collection;
use super::key::KeyKind;

/// The names of the notes begin with it; the name of the container follows.
const NOTES: &str = "document-ranges/";
/// The most containers that are worked on in one round.
const NOTES_MAX: usize = 1_000;
/// The most splits of one container in one round. The rest is for the next one.
const SPLITS_MAX: usize = 1_000;
/// How often a note is written anew because it changed meanwhile.
const TRIES_MAX: usize = 8;

fn note_name(container: &str) -> String {
    format!("{NOTES}{container}")
}

/// How many ranges a note asks for; none if it is there because of a range that is too large.
fn wanted(note: &Bytes) -> u32 {
    <[u8; 4]>::try_from(&note[..]).map(u32::from_be_bytes).unwrap_or_default()
}

impl Documents {
    /// Has a container split into so many ranges at least, in the background.
    pub async fn want_ranges(&self, collection: &Collection, ranges: u32) -> Result<()> {
        let name = note_name(&collection.container.name);
        for _ in 0..TRIES_MAX {
            let seen = self.engine.service(&name).await?;
            let most = seen.as_ref().map(wanted).unwrap_or_default().max(ranges);
            let note = Bytes::copy_from_slice(&most.to_be_bytes());
            if self.engine.swap_service(&name, seen.as_ref(), Some(note)).await? {
                return Ok(());
            }
        }
        Err(Error::unavailable("note-busy", "too many others change the ranges of the container"))
    }

    /// The ids of the account's containers that are being split for their throughput.
    pub async fn pending_ranges(&self, account: &str) -> Result<Vec<String>> {
        let names = note_name(&format!("documents/{account}/"));
        let notes = self.engine.services(&names, NOTES_MAX).await?;
        let pending = notes.into_iter().filter(|(_, note)| wanted(note) > 0);
        Ok(pending.map(|(name, _)| name[names.len()..].to_owned()).collect())
    }

    /// A range of the container has more bytes than it may have.
    pub(super) async fn note_large(&self, collection: &Collection) -> Result<()> {
        let name = note_name(&collection.container.name);
        let note = Bytes::copy_from_slice(&0_u32.to_be_bytes());
        // One that is there is worked on anyway.
        self.engine.swap_service(&name, None, Some(note)).await.map(|_| ())
    }

    /// Splits ranges wherever more are wanted, or one is too large. One process at a time does.
    pub async fn resize(&self) -> Result<()> {
        if !self.engine.may(Work::Jobs) {
            return Ok(());
        }
        let mut outcome = Ok(());
        for (name, note) in self.engine.services(NOTES, NOTES_MAX).await? {
            let resized = self.resize_one(&name, &note).await;
            outcome = outcome.and(resized);
        }
        outcome
    }

    async fn resize_one(&self, name: &str, note: &Bytes) -> Result<()> {
        let container = name.trim_start_matches(NOTES);
        let is_done = match self.engine.open(container, super::SCHEMA).await {
            Err(error) if error.kind() == Kind::NotFound => true,
            found => {
                let container = found?;
                let definition = self.rules.definition(&container)?;
                let collection = Collection { container, definition };
                self.divide(&collection, wanted(note) as usize).await?
                    && self.divide_large(&collection).await?
            }
        };
        if is_done {
            self.engine.swap_service(name, Some(note), None).await?;
        }
        Ok(())
    }

    /// Halves the widest range until there are enough, and says whether there are, or cannot be.
    async fn divide(&self, collection: &Collection, ranges: usize) -> Result<bool> {
        for _ in 0..SPLITS_MAX {
            let partitions = self.partitions(collection).await?;
            if partitions.len() >= ranges {
                return Ok(true);
            }
            let cut = match collection.definition.key_kind {
                // Effective keys of the first version are no even numbers: they are cut where the items are.
                KeyKind::V1 => {
                    let Some(largest) = self.largest(&partitions).await? else { return Ok(true) };
                    self.split_if_there(&largest, None).await?
                }
                KeyKind::V2 | KeyKind::Multi => {
                    let Some(widest) = partitions.iter().max_by_key(|one| width(one)) else {
                        return Ok(true);
                    };
                    self.split_if_there(widest, Some(middle(widest))).await?
                }
            };
            match cut {
                Cut::Done => {}
                Cut::Later => return Ok(false),
                Cut::Never => return Ok(true),
            }
        }
        Ok(false)
    }

    /// The range with the most bytes of those that have more than one shardlet.
    async fn largest(&self, partitions: &[Partition]) -> Result<Option<Partition>> {
        let mut largest: Option<(u64, &Partition)> = None;
        for partition in partitions {
            let bytes = self.engine.partition_size(partition.id, partition.shard).await?.bytes;
            if largest.is_none_or(|(most, _)| bytes > most)
                && !self.engine.is_one_shardlet(partition).await?
            {
                largest = Some((bytes, partition));
            }
        }
        Ok(largest.map(|(_, partition)| partition.clone()))
    }

    /// Splits every range that is too large, in the middle of its bytes, and says whether none is left that can be split.
    async fn divide_large(&self, collection: &Collection) -> Result<bool> {
        let limit = self.sizes.sizing.range_bytes_max;
        let mut is_done = true;
        for partition in self.partitions(collection).await? {
            let size = self.engine.partition_size(partition.id, partition.shard).await?;
            if size.bytes <= limit || self.engine.is_one_shardlet(&partition).await? {
                continue;
            }
            match self.split_if_there(&partition, None).await? {
                // Its halves are looked at in the next round, when they are counted.
                Cut::Done | Cut::Later => is_done = false,
                Cut::Never => {}
            }
        }
        Ok(is_done)
    }

    async fn split_if_there(&self, partition: &Partition, at: Option<Bytes>) -> Result<Cut> {
        if at.is_none() && self.engine.is_one_shardlet(partition).await? {
            return Ok(Cut::Never);
        }
        let at = match at {
            Some(at) => Ok(at),
            None => self.engine.middle(partition, Middle::Size).await,
        };
        let split = match at {
            Ok(at) => self.engine.split(Known::from(partition), at).await.map(|_| ()),
            Err(error) => Err(error),
        };
        match split {
            Ok(()) => Ok(Cut::Done),
            Err(error) => match error.kind() {
                // Another process has changed the partition, or it is on its way to another shard.
                Kind::Moved | Kind::NotFound | Kind::Precondition | Kind::Unavailable { .. } => {
                    Ok(Cut::Later)
                }
                _ => Err(error),
            },
        }
    }
}

/// What came of cutting a range.
enum Cut {
    Done,
    /// It cannot be cut at the moment.
    Later,
    /// It has one shardlet.
    Never,
}

/// The bounds of a range as numbers. Hashes have two bits less than their bytes.
fn bounds(partition: &Partition) -> (u128, u128) {
    let number = |bytes: &[u8]| {
        let mut first = [0; 16];
        let length = bytes.len().min(16);
        first[..length].copy_from_slice(&bytes[..length]);
        u128::from_be_bytes(first)
    };
    let (start, end) = (&partition.routes.start, partition.routes.end.as_ref());
    (number(start), end.map_or(1 << 126, |end| number(end)))
}

fn width(partition: &Partition) -> u128 {
    let (min, max) = bounds(partition);
    max.saturating_sub(min)
}

fn middle(partition: &Partition) -> Bytes {
    let (min, max) = bounds(partition);
    Bytes::copy_from_slice(&(min + max.saturating_sub(min) / 2).to_be_bytes())
}

#[cfg(test)]
mod tests {
    use lazuli_engine::{ContainerId, Epoch, KeyRange, PartitionId, PartitionState, ShardId};

    use super::*;

    fn range(start: &[u8], end: Option<Bytes>) -> Partition {
        Partition {
            id: PartitionId(1),
            container: ContainerId(1),
            routes: KeyRange::new(Bytes::copy_from_slice(start), end),
            shard: ShardId(1),
            epoch: Epoch(1),
            state: PartitionState::Online,
        }
    }

    #[test]
    fn ranges_are_halved_in_the_space_of_hashes() {
        let half = middle(&range(b"", None));
        assert_eq!(half[..2], [0x20, 0]);
        let low = range(b"", Some(half.clone()));
        assert_eq!(middle(&low)[0], 0x10);
        let high = range(&half, None);
        assert_eq!(middle(&high)[0], 0x30);
        assert_eq!(width(&low), width(&high));
    }
}
