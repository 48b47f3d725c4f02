//! From addresses to places: which shardlet of the engine holds a container or a blob.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use lazuli_engine::{Container, Error, ItemKey, KeyPart, Result, Space};

use super::address::{BlobAddress, ContainerAddress, Place};
use super::container::ContainerRecord;
use super::hashed::spread;
use super::limits::CONTAINER_FRESH_MS;
use super::{Blobs, codes};

/// A container as a request found it, and when.
pub(super) struct Found {
    pub(super) record: ContainerRecord,
    /// The engine's container of the account's blobs.
    pub(super) blobs: Arc<Container>,
    seen: Duration,
}

impl Found {
    pub(super) fn place(&self, address: &BlobAddress) -> Result<Place> {
        let name = spread(&address.name, self.record.is_hashed);
        let route = blob_route(&self.blobs, &address.container, self.record.generation, &name)?;
        Ok(Place { container: self.blobs.id, route })
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
    pub(super) async fn find(&self, address: &ContainerAddress) -> Result<Found> {
        let seen = self.engine.env().clock.uptime();
        let directory = self.directory(&address.account).await?.ok_or_else(no_container)?;
        let key = record_key(&directory, &address.container)?;
        let view = self.engine.read(directory.id, key.route(), 1).await?;
        let item = view.get(&key).await?.ok_or_else(no_container)?;
        let record = ContainerRecord::decode(item.payload)?;
        let blobs = self.contents(&address.account).await?.ok_or_else(no_container)?;
        Ok(Found { record, blobs, seen })
    }

    pub(super) async fn find_place(&self, address: &BlobAddress) -> Result<Place> {
        self.find(&address.container()).await?.place(address)
    }

    /// Makes sure that a container which was looked at a while ago is still the same one. What is written into one that
    /// is deleted a moment later was written before; what is written long after it would never be collected.
    pub(super) async fn check_fresh(&self, found: &Found, address: &BlobAddress) -> Result<()> {
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
    Error::not_found(codes::CONTAINER_NOT_FOUND, "there is no such container")
}

pub(super) fn no_blob() -> Error {
    Error::not_found(codes::BLOB_NOT_FOUND, "there is no such blob")
}
