//! Reference data: small tables that every shard has a copy of, so that a transaction can look things up without leaving
//! its shard (S12).
//!
//! The home of an entry is the catalog, where every write gets the next number and a row in a log ordered by number. Each
//! shard remembers the number up to which it has copied; what lies between the two is its staleness, for all to
//! see. Log and positions are the durable job: spreading goes on after any crash, and a new shard starts at zero. A
//! deleted entry keeps its number and its row in the log, so that every shard hears of it.

use std::sync::Arc;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use lazuli_shardmap::catalog::{Expected, RecordWrite, Versioned, kinds};
use lazuli_shardmap::layout::{self, Space};
use lazuli_shardmap::{ContainerId, MapReason, ShardId};
use lazuli_store::{Direction, Error, KeyRange, Newest, PageLimit, Reader, Result, Store, Write};

use crate::engine::Engine;
use crate::shard::LiveShard;
use crate::tx::Tx;

/// The longest name of a set of reference data.
pub const REFERENCE_NAME_BYTES_MAX: usize = 200;
/// The longest key of an entry.
pub const REFERENCE_KEY_BYTES_MAX: usize = 1_024;
/// The largest value of an entry.
pub const REFERENCE_VALUE_BYTES_MAX: usize = 64 * 1024;
/// Entries that are copied in one commit.
const SPREAD_ENTRIES: usize = 200;
/// How often a write is tried anew when others write reference data at the same time.
const WRITE_TRIES_MAX: usize = 100;

const ROW_POSITION: u8 = 0;
const ROW_COPY: u8 = 1;

/// How far one shard has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spread {
    pub shard: ShardId,
    /// The number of the last write that is copied here.
    pub copied: u64,
    /// The number of the last write there is. The copy is current if both are equal.
    pub written: u64,
}

/// An entry at home: the number of its last write, and its value unless it was deleted.
struct Entry {
    number: u64,
    value: Option<Bytes>,
}

impl Entry {
    fn encode(&self) -> Bytes {
        let value = self.value.as_deref().unwrap_or_default();
        let mut bytes = BytesMut::with_capacity(9 + value.len());
        bytes.put_u64(self.number);
        bytes.put_u8(u8::from(self.value.is_some()));
        bytes.put_slice(value);
        bytes.freeze()
    }

    fn decode(mut bytes: Bytes) -> Result<Self> {
        if bytes.len() < 9 {
            return Err(damaged());
        }
        let number = bytes.get_u64();
        let value = (bytes.get_u8() != 0).then_some(bytes);
        Ok(Self { number, value })
    }
}

fn damaged() -> Error {
    Error::corrupt("bad-reference", "a row of reference data does not decode")
}

/// `length of the name (1) | name | key`.
fn entry_key(name: &str, key: &[u8]) -> Bytes {
    let length = u8::try_from(name.len()).unwrap_or(u8::MAX);
    [&[length], name.as_bytes(), key].concat().into()
}

fn copy_row(entry: &[u8]) -> Bytes {
    layout::key(ContainerId::SYSTEM, Space::REFERENCE, &[&[ROW_COPY], entry].concat())
}

/// Where a shard keeps its copy of an entry.
pub(crate) fn copy_key(name: &str, key: &[u8]) -> Bytes {
    copy_row(&entry_key(name, key))
}

/// The value of a copy as a shard keeps it: `number (8) | value`.
pub(crate) fn value_of(copy: Option<Bytes>) -> Result<Option<Bytes>> {
    match copy {
        None => Ok(None),
        Some(row) if row.len() >= 8 => Ok(Some(row.slice(8..))),
        Some(_) => Err(damaged()),
    }
}

fn position_key(number: u64) -> Bytes {
    let mut key = layout::start(ContainerId::SYSTEM, Space::REFERENCE, 9);
    key.put_u8(ROW_POSITION);
    key.put_u64(number);
    key.freeze()
}

/// The row that says how far a shard has come; none in a store that was never opened. It is the guard of the next step.
async fn position(reader: &dyn Reader) -> Result<Option<u64>> {
    let prefix = layout::key(ContainerId::SYSTEM, Space::REFERENCE, &[ROW_POSITION]);
    let rows = KeyRange::prefix(prefix);
    let page = reader.scan(&rows, Direction::Backward, PageLimit::items(1)).await?;
    let Some((key, _)) = page.items.first() else { return Ok(None) };
    let (_, number) = key.split_last_chunk::<8>().ok_or_else(damaged)?;
    Ok(Some(u64::from_be_bytes(*number)))
}

/// Lets a new shard begin at zero when it is opened. So every step has a guard, the first one too.
pub(crate) async fn begin_copy(store: &dyn Store) -> Result<()> {
    if position(&Newest::of(store)).await?.is_some() {
        return Ok(());
    }
    let txn = store.begin(Vec::new()).await?;
    // Another process may have opened it meanwhile, and copied more.
    if position(&*txn).await?.is_some() {
        return Ok(());
    }
    txn.commit(vec![Write::Put(position_key(0), Bytes::new())]).await
}

impl Tx<'_> {
    /// This shard's copy of an entry of reference data.
    pub async fn reference(&self, name: &str, key: &[u8]) -> Result<Option<Bytes>> {
        let key = copy_key(name, key);
        value_of(self.base.get(&key).await?)
    }
}

impl Engine {
    /// Writes an entry at its home and answers its number. The shards follow by themselves.
    pub async fn put_reference(&self, name: &str, key: &[u8], value: Bytes) -> Result<u64> {
        if value.len() > REFERENCE_VALUE_BYTES_MAX {
            let message = format!("a value of {} bytes", value.len());
            return Err(Error::too_large("reference-too-large", message));
        }
        self.write_reference(name, key, Some(value)).await
    }

    /// Deletes an entry at its home and answers the number of the deletion.
    pub async fn delete_reference(&self, name: &str, key: &[u8]) -> Result<u64> {
        self.write_reference(name, key, None).await
    }

    async fn write_reference(&self, name: &str, key: &[u8], value: Option<Bytes>) -> Result<u64> {
        let fits = (1..=REFERENCE_NAME_BYTES_MAX).contains(&name.len());
        if !fits || key.len() > REFERENCE_KEY_BYTES_MAX {
            return Err(Error::invalid(
                "bad-reference-key",
                "the name or key is too long or empty",
            ));
        }
        let entry = entry_key(name, key);
        for _ in 0..WRITE_TRIES_MAX {
            match self.try_write_reference(&entry, value.clone()).await {
                Err(error) if error.is(MapReason::RecordChanged) => continue,
                Err(error) if error.is(MapReason::RecordExists) => continue,
                outcome => {
                    self.spread_wanted.notify_one();
                    return outcome;
                }
            }
        }
        Err(Error::unavailable("reference-busy", "too many write reference data at once"))
    }

    async fn try_write_reference(&self, entry: &Bytes, value: Option<Bytes>) -> Result<u64> {
        let catalog = self.manager.catalog();
        let head = catalog.get_record(kinds::REFERENCE_HEAD, b"").await?;
        let number = head.as_ref().map(number_of).transpose()?.unwrap_or(0) + 1;
        let old = catalog.get_record(kinds::REFERENCE, entry).await?;
        let put = |kind, key: Bytes, expected, value: Bytes| RecordWrite {
            kind,
            key,
            expected,
            value: Some(value),
        };
        let log_key = |number: u64| Bytes::from([&number.to_be_bytes(), &entry[..]].concat());
        // All writers change the head, so it alone keeps two of them apart.
        let mut writes = vec![
            put(kinds::REFERENCE_HEAD, Bytes::new(), expected(head.as_ref()), number_row(number)),
            put(kinds::REFERENCE, entry.clone(), Expected::Anything, {
                Entry { number, value }.encode()
            }),
            put(kinds::REFERENCE_LOG, log_key(number), Expected::Anything, Bytes::new()),
        ];
        if let Some(old) = old {
            let old = Entry::decode(old.value)?;
            writes.push(RecordWrite {
                kind: kinds::REFERENCE_LOG,
                key: log_key(old.number),
                expected: Expected::Anything,
                value: None,
            });
        }
        catalog.write_records(&writes).await?;
        Ok(number)
    }

    /// How far each shard has come.
    pub async fn reference_spread(&self) -> Result<Vec<Spread>> {
        let head = self.manager.catalog().get_record(kinds::REFERENCE_HEAD, b"").await?;
        let written = head.as_ref().map(number_of).transpose()?.unwrap_or(0);
        let mut spread = Vec::new();
        for shard in self.shards.all() {
            let copied = position(&Newest::of(&*shard.store)).await?.unwrap_or(0);
            spread.push(Spread { shard: shard.id, copied, written });
        }
        Ok(spread)
    }

    /// Copies what is missing to every shard. One that does not answer keeps none of the others from it: the first error
    /// is answered once all were tried.
    pub async fn spread_references(&self) -> Result<()> {
        self.spread_on(&self.shards.all()).await
    }

    pub(crate) async fn spread_on(&self, shards: &[Arc<LiveShard>]) -> Result<()> {
        let mut outcome = Ok(());
        for shard in shards {
            outcome = outcome.and(self.spread_to(shard).await);
        }
        outcome
    }

    async fn spread_to(&self, shard: &LiveShard) -> Result<()> {
        let catalog = self.manager.catalog();
        loop {
            let copied = position(&Newest::of(&*shard.store)).await?.ok_or_else(damaged)?;
            let from = number_row(copied + 1);
            let range = KeyRange::new(from, None);
            let log = catalog.scan_records(kinds::REFERENCE_LOG, &range, SPREAD_ENTRIES).await?;
            let Some(last) = log.last() else { return Ok(()) };
            let reached = log_number(last)?;
            let mut writes = vec![
                Write::Delete(position_key(copied)),
                Write::Put(position_key(reached), Bytes::new()),
            ];
            for row in &log {
                let entry = row.key.slice(8..);
                let home = catalog.get_record(kinds::REFERENCE, &entry).await?;
                let home = home.map(|home| Entry::decode(home.value)).transpose()?;
                writes.push(match home {
                    Some(Entry { number, value: Some(value) }) => {
                        let copy = [&number.to_be_bytes()[..], &value].concat();
                        Write::Put(copy_row(&entry), copy.into())
                    }
                    _ => Write::Delete(copy_row(&entry)),
                });
            }
            let step =
                async { shard.store.begin(vec![position_key(copied)]).await?.commit(writes).await };
            match step.await {
                // Another engine copies to this shard at the same time: go on from its position.
                Err(error) if error.is_moved() => {}
                outcome => outcome?,
            }
        }
    }
}

fn number_row(number: u64) -> Bytes {
    Bytes::copy_from_slice(&number.to_be_bytes())
}

fn number_of(record: &Versioned) -> Result<u64> {
    let bytes: [u8; 8] = record.value[..].try_into().map_err(|_| damaged())?;
    Ok(u64::from_be_bytes(bytes))
}

fn log_number(record: &Versioned) -> Result<u64> {
    let (number, _) = record.key.split_first_chunk::<8>().ok_or_else(damaged)?;
    Ok(u64::from_be_bytes(*number))
}

fn expected(record: Option<&Versioned>) -> Expected {
    record.map_or(Expected::Nothing, |record| Expected::Version(record.version))
}
