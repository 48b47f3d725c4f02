//! Where starts are written down: records of the catalog, and one row of a shard's own.

use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use lazuli_store::{Result, Store, Write};

use super::{Member, Standing, Start, Witness};
use crate::ContainerId;
use crate::catalog::{Catalog, Expected, RecordWrite, kinds};
use crate::layout::{self, Space};
use crate::record::{decode, encode};

/// First bytes of the keys of the catalog's records: its own last start, then what it remembers of members.
const OWN: u8 = 0;
const SHARD: u8 = 1;
const BLOCKS: u8 = 2;

fn key_of(member: Member) -> Bytes {
    let mut key = BytesMut::new();
    match member {
        Member::Shard(shard) => {
            key.put_u8(SHARD);
            key.put_u32(shard.0);
        }
        Member::Blocks => key.put_u8(BLOCKS),
    }
    key.freeze()
}

/// The last start that the catalog wrote down for itself.
pub async fn last_start(catalog: &Catalog) -> Result<Option<Start>> {
    let record = catalog.get_record(kinds::START, &[OWN]).await?;
    record.map(|record| decode(record.value)).transpose()
}

pub async fn put_last_start(catalog: &Catalog, start: &Start) -> Result<()> {
    let key = Bytes::from_static(&[OWN]);
    let written = catalog.put_record(kinds::START, key, encode(start), Expected::Anything).await;
    written.map(|_| ())
}

/// What the catalog remembers of a member.
pub async fn read_witness(catalog: &Catalog, member: Member) -> Result<Option<Witness>> {
    let record = catalog.get_record(kinds::START, &key_of(member)).await?;
    record.map(|record| decode(record.value)).transpose()
}

/// Makes the catalog remember this of these members, in one commit. None forgets a member.
pub async fn put_witnesses(
    catalog: &Catalog,
    witnesses: &[(Member, Option<Witness>)],
) -> Result<()> {
    let write = |(member, witness): &(Member, Option<Witness>)| RecordWrite {
        kind: kinds::START,
        key: key_of(*member),
        expected: Expected::Anything,
        value: witness.as_ref().map(encode),
    };
    let writes: Vec<_> = witnesses.iter().map(write).collect();
    if writes.is_empty() { Ok(()) } else { catalog.write_records(&writes).await.map(|_| ()) }
}

fn standing_key() -> Bytes {
    layout::prefix(ContainerId::SYSTEM, Space::STANDING)
}

/// What a shard says of itself.
pub async fn read_standing(store: &Arc<dyn Store>) -> Result<Option<Standing>> {
    store.get(&standing_key()).await?.map(decode).transpose()
}

pub async fn write_standing(store: &Arc<dyn Store>, standing: &Standing) -> Result<()> {
    let writes = vec![Write::Put(standing_key(), encode(standing))];
    store.begin(vec![]).await?.commit(writes).await
}
