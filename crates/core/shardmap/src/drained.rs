//! Shards that are to be emptied: the balancer takes everything from them and gives them nothing. It is written down in
//! the catalog, so that it still holds after a restart, until the shard is removed or an operator takes it back.

use std::collections::BTreeSet;

use bytes::Bytes;
use lazuli_store::{Error, KeyRange, Result};

use crate::ShardId;
use crate::catalog::{Catalog, Expected, kinds};

/// The most shards of a catalog that are looked at.
const SHARDS_MAX: usize = 100_000;

/// The shards that are to be emptied.
pub async fn list(catalog: &Catalog) -> Result<BTreeSet<ShardId>> {
    let records = catalog.scan_records(kinds::SHARD_DRAINED, &KeyRange::all(), SHARDS_MAX).await?;
    let id = |key: &Bytes| match <[u8; 4]>::try_from(&key[..]) {
        Ok(bytes) => Ok(ShardId(u32::from_be_bytes(bytes))),
        Err(_) => Err(Error::corrupt("bad-drained", "the key of a drained shard does not decode")),
    };
    records.iter().map(|record| id(&record.key)).collect()
}

/// Writes down that a shard is to be emptied, or that it is not any more.
pub async fn set(catalog: &Catalog, shard: ShardId, is_drained: bool) -> Result<()> {
    let key = Bytes::copy_from_slice(&shard.0.to_be_bytes());
    let kind = kinds::SHARD_DRAINED;
    if is_drained {
        catalog.put_record(kind, key, Bytes::new(), Expected::Anything).await.map(|_| ())
    } else {
        catalog.delete_record(kind, key, Expected::Anything).await
    }
}
