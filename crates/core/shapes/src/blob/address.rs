//! Addresses as fronts name them, the keys of a blob's rows, and the way from one to the other: which shardlet of the engine
//! holds a container or a blob.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use lazuli_engine::{
    Container, ContainerId, Error, ItemKey, KeyPart, KeyRange, Lsn, Owner, Result, Space,
    after_prefix,
};

use super::cursor::spread;
use super::limits::CONTAINER_FRESH_MS;
use super::record::ContainerRecord;
use super::{BlobReason, Blobs};

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ContainerAddress {
    pub account: String,
    pub container: String,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BlobAddress {
    pub account: String,
    pub container: String,
    pub name: String,
}

impl BlobAddress {
    pub fn container(&self) -> ContainerAddress {
        ContainerAddress { account: self.account.clone(), container: self.container.clone() }
    }
}

/// Which state of a blob.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Which {
    #[default]
    Current,
    Snapshot(Lsn),
    Version(Lsn),
}

/// Ticks of 100 ns in a millisecond.
const MILLI_TICKS: u64 = 10_000;

/// The number of a write as a moment with seven digits of fraction: ticks of 100 ns since the Unix epoch. No two numbers
/// give the same moment, and later ones give later ones.
pub fn ticks_of(lsn: Lsn) -> u64 {
    lsn.millis() * MILLI_TICKS + u64::from(lsn.counter())
}

/// The number that stands behind a moment; none if no number does.
pub fn lsn_of(ticks: u64) -> Option<Lsn> {
    let millis = ticks / MILLI_TICKS;
    if millis >= 1 << 41 {
        return None;
    }
    let lsn = Lsn(Lsn::at_ms(millis).0 + ticks % MILLI_TICKS);
    (lsn.millis() == millis).then_some(lsn)
}

/// Where the rows of one blob are.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct BlobPlace {
    pub(super) container: ContainerId,
    pub(super) route: Bytes,
}

/// What a row of [`Space::BLOB_PAST`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(super) enum Past {
    Snapshot = 1,
    Version = 2,
    /// The blob itself, deleted where deletions are kept for a while.
    Deleted = 3,
}

/// The bit that tells pieces that only older states of a page blob have from those that it has now, and cells from contents.
const FORMER: u64 = 1 << 63;

impl BlobPlace {
    pub(super) fn key(&self, space: Space, row: &[u8]) -> ItemKey {
        ItemKey::new(self.container, space, &self.route, row)
    }

    pub(super) fn current(&self) -> ItemKey {
        self.key(Space::ITEMS, &[])
    }

    pub(super) fn past(&self, kind: Past, time: Lsn) -> ItemKey {
        let mut row = [0; 9];
        row[..8].copy_from_slice(&time.0.to_be_bytes());
        row[8] = kind as u8;
        self.key(Space::BLOB_PAST, &row)
    }

    /// A block that waits for a commit; without an id, what is known of all blocks of the session.
    pub(super) fn block(&self, session: u64, id: &[u8]) -> ItemKey {
        self.key(Space::BLOB_BLOCKS, &[&session.to_be_bytes(), id].concat())
    }

    /// The bytes of a block that is too small for a file.
    pub(super) fn cell(&self, number: u64) -> ItemKey {
        self.key(Space::BLOB_PIECES, &(number | FORMER).to_be_bytes())
    }

    pub(super) fn piece(&self, content: u64, offset: u64) -> ItemKey {
        self.key(Space::BLOB_PIECES, &two(content, offset))
    }

    /// A piece that was at the offset until `until`.
    pub(super) fn former(&self, content: u64, offset: u64, until: Lsn) -> ItemKey {
        let row = [&two(content, offset | FORMER)[..], &until.0.to_be_bytes()[..]].concat();
        self.key(Space::BLOB_PIECES, &row)
    }

    pub(super) fn shared_content(&self, content: u64) -> ItemKey {
        self.key(Space::BLOB_SHARED, &content.to_be_bytes())
    }

    pub(super) fn shared_file(&self, file: lazuli_engine::BlockId) -> ItemKey {
        self.key(Space::BLOB_SHARED, &two(file.generation, file.number))
    }

    pub(super) fn garbage(&self, time: Lsn, number: u32) -> ItemKey {
        let row = [&time.0.to_be_bytes()[..], &number.to_be_bytes()[..]].concat();
        self.key(Space::BLOB_GARBAGE, &row)
    }

    /// What says when a session of blocks is to be looked at. The numbers of other garbage begin at 1.
    pub(super) fn idle(&self, session: u64) -> ItemKey {
        self.garbage(Lsn(session), 0)
    }

    /// All rows of this blob, as a range of `route | row key` in whichever space.
    pub(super) fn rows(&self) -> KeyRange {
        self.range(&[])
    }

    /// The rows that begin so.
    pub(super) fn range(&self, start: &[u8]) -> KeyRange {
        let start = [&self.route[..], start].concat();
        let end = after_prefix(&start);
        KeyRange::new(start, end)
    }

    /// The pieces that a content has now, from those that begin at the offset on, up to those that begin at `to`.
    pub(super) fn pieces(&self, content: u64, from: u64, to: u64) -> KeyRange {
        let at = |offset: u64| [&self.route[..], &two(content, offset)[..]].concat();
        KeyRange::new(at(from), Some(at(to.min(FORMER)).into()))
    }

    /// The pieces that a content had once.
    pub(super) fn former_pieces(&self, content: u64, from: u64, to: u64) -> KeyRange {
        let at = |offset: u64| [&self.route[..], &two(content, offset | FORMER)[..]].concat();
        KeyRange::new(at(from), Some(at(to.min(FORMER - 1)).into()))
    }

    pub(super) fn owner(&self) -> Owner {
        Owner { container: self.container.0, route: self.route.clone() }
    }
}

fn two(first: u64, second: u64) -> [u8; 16] {
    let mut row = [0; 16];
    row[..8].copy_from_slice(&first.to_be_bytes());
    row[8..].copy_from_slice(&second.to_be_bytes());
    row
}

/// The last eight or so bytes of a row key as a number.
pub(super) fn number_at(row: &[u8], at: usize) -> Option<u64> {
    let bytes = row.get(at..at + 8)?;
    Some(u64::from_be_bytes(bytes.try_into().ok()?))
}

/// The offset in the key of a piece.
pub(super) fn offset_of(row: &[u8]) -> Option<u64> {
    number_at(row, 8).map(|offset| offset & !FORMER)
}

/// A container as a request found it, and when.
pub(super) struct FoundContainer {
    pub(super) record: ContainerRecord,
    /// The engine's container of the account's blobs.
    pub(super) blobs: Arc<Container>,
    seen: Duration,
}

impl FoundContainer {
    pub(super) fn place(&self, address: &BlobAddress) -> Result<BlobPlace> {
        let name = spread(&address.name, self.record.is_hashed);
        let route = blob_route(&self.blobs, &address.container, self.record.generation, &name)?;
        Ok(BlobPlace { container: self.blobs.id, route })
    }
}

pub(super) fn blob_route(
    blobs: &Container,
    container: &str,
    generation: i64,
    name: &str,
) -> Result<Bytes> {
    let key = [
        KeyPart::Text(container.to_owned()),
        KeyPart::Int64(generation),
        KeyPart::Text(name.to_owned()),
    ];
    blobs.kind.route(&blobs.key, &key)
}

/// Container, generation and name again from a route. Of a container whose names are hashed it is the name behind its digit.
pub(super) fn names_of(blobs: &Container, route: &[u8]) -> Result<(String, i64, String)> {
    let parts = blobs.kind.key(&blobs.key, route)?;
    match <[KeyPart; 3]>::try_from(parts) {
        Ok([KeyPart::Text(container), KeyPart::Int64(generation), KeyPart::Text(name)]) => {
            Ok((container, generation, name))
        }
        _ => Err(Error::corrupt("bad-blob-key", "the key of a blob does not decode")),
    }
}

/// The row of the container's record among the account's containers.
pub(super) fn record_key(directory: &Container, name: &str) -> Result<ItemKey> {
    let route = directory.kind.route(&directory.key, &[KeyPart::Text(name.to_owned())])?;
    Ok(ItemKey::new(directory.id, Space::ITEMS, &route, &[]))
}

impl Blobs {
    /// The container, or the refusal that there is none.
    pub(super) async fn find(&self, address: &ContainerAddress) -> Result<FoundContainer> {
        let seen = self.engine.env().clock.uptime();
        let directory = self.directory(&address.account).await?.ok_or_else(no_container)?;
        let key = record_key(&directory, &address.container)?;
        let item = self.engine.get(&key, 1).await?.ok_or_else(no_container)?;
        let record = ContainerRecord::decode(item.payload)?;
        let blobs = self.contents(&address.account).await?.ok_or_else(no_container)?;
        Ok(FoundContainer { record, blobs, seen })
    }

    pub(super) async fn find_place(&self, address: &BlobAddress) -> Result<BlobPlace> {
        self.find(&address.container()).await?.place(address)
    }

    /// Makes sure that a container which was looked at a while ago is still the same one. What is written into one that
    /// is deleted a moment later was written before; what is written long after it would never be collected.
    pub(super) async fn check_fresh(
        &self,
        found: &FoundContainer,
        address: &BlobAddress,
    ) -> Result<()> {
        let age = self.engine.env().clock.uptime().saturating_sub(found.seen);
        if age < Duration::from_millis(CONTAINER_FRESH_MS) {
            return Ok(());
        }
        let again = self.find(&address.container()).await?;
        if again.record.generation == found.record.generation {
            Ok(())
        } else {
            Err(no_container())
        }
    }
}

pub(super) fn no_container() -> Error {
    Error::not_found(BlobReason::ContainerNotFound, "there is no such container")
}

pub(super) fn no_blob() -> Error {
    Error::not_found(BlobReason::BlobNotFound, "there is no such blob")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_a_moment_and_comes_back_from_it() {
        let mut last = 0;
        for lsn in
            [Lsn::at_ms(1), Lsn(Lsn::at_ms(1).0 + 1), Lsn(Lsn::at_ms(2).0 - 1), Lsn::at_ms(2)]
        {
            assert!(ticks_of(lsn) > last);
            last = ticks_of(lsn);
            assert_eq!(lsn_of(last), Some(lsn));
        }
        assert_eq!(lsn_of(MILLI_TICKS + 4096), None);
        assert_eq!(lsn_of(u64::MAX), None);
    }
}
