//! Where a durable keyspace is kept: one container of the catalog whose partition key is the slot.
//!
//! The map is a range map over the numbers of the slots, since the protocol fixes how keys become slots and a hash map would
//! hash once more. A slot is a shardlet: partitions are split, merged and moved at slots. `docs/formats/cache.md` draws the
//! rows.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use lazuli_engine::{
    ContainerId, Cuts, Direction, Engine, Error, ItemKey, KeyPart, KeyRange, KeySchema, KeyType,
    Kind, MapKind, NewContainer, PageLimit, Policies, Result, ShardId, Space, Transaction, Tx,
};
use xxhash_rust::xxh3::xxh3_128;

use crate::garbage::Garbage;
use crate::keyspace::Keyspace;
use crate::loading::Loaded;
use crate::rows::{self, Row};
use crate::slot::{SLOTS, slot_of};

/// The schema tag of the container.
const SCHEMA: &str = "cache/1";
/// The name of the container.
pub const CONTAINER: &str = "cache/0";
/// How many partitions it has at first.
const PARTITIONS: u16 = 16;
/// Keys and elements that are longer are named by their hash.
const NAME_BYTES_MAX: usize = 4096;
/// A transaction of the store ends with the command that reaches this.
const WRITES_ENOUGH: usize = 20_000;
const WRITE_BYTES_ENOUGH: usize = 8 * 1024 * 1024;
/// It ends in the middle of a command that reaches this. A row more is still below the limits of the engine.
const WRITES_MAX: usize = 90_000;
const WRITE_BYTES_MAX: usize = 20 * 1024 * 1024;
/// The most partitions in one transaction.
const PARTITIONS_AT_ONCE_MAX: usize = 64;

pub(crate) const HEAD: u8 = 0;
pub(crate) const ELEMENT: u8 = 1;
/// In the place of a length: the name is the hash of a longer one.
pub(crate) const HASHED: u16 = u16::MAX;
/// In the place of the id of a database: which number each has.
pub(crate) const NUMBERS: u32 = u32::MAX;
/// In the place of the id of a database: a library of functions.
pub(crate) const LIBRARIES: u32 = u32::MAX - 1;

pub struct Shelf {
    engine: Arc<Engine>,
    container: ContainerId,
    schema: KeySchema,
    pub(crate) garbage: Garbage,
}

/// Rows by slot and key, with nothing where a row is deleted.
pub(crate) type RowsToWrite = BTreeMap<(u16, Bytes), Option<Bytes>>;

/// What to write: rows, with nothing where a row is deleted.
pub(crate) struct Write {
    pub(crate) rows: Vec<(ItemKey, Option<Bytes>)>,
}

impl Transaction for Write {
    type Output = ();

    async fn run(&self, tx: &mut Tx<'_>) -> Result<()> {
        for (key, row) in &self.rows {
            match row {
                Some(row) => tx.put(key, row.clone()).await?,
                None => drop(tx.delete(key).await?),
            }
        }
        Ok(())
    }
}

impl Shelf {
    /// Opens the container, which is made if it is not there.
    pub async fn open(engine: Arc<Engine>) -> Result<Self> {
        let schema = KeySchema::one(KeyType::Int32);
        let container = match engine.open(CONTAINER, SCHEMA).await {
            Err(error) if error.kind() == Kind::NotFound => {
                let cut = |it: u16| route(&schema, it * (SLOTS / PARTITIONS));
                let new = NewContainer {
                    name: CONTAINER.to_owned(),
                    kind: MapKind::Range,
                    key: schema.clone(),
                    schema: SCHEMA.to_owned(),
                    placement: Vec::new(),
                    policies: Policies::default(),
                    cuts: Cuts::At((1..PARTITIONS).map(cut).collect::<Result<_>>()?),
                    shards: Vec::new(),
                };
                engine.create_container(&new).await?.id
            }
            opened => opened?.id,
        };
        Ok(Self { engine, container, schema, garbage: Garbage::default() })
    }

    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    fn key(&self, slot: u16, row: &[u8]) -> Result<ItemKey> {
        Ok(ItemKey::new(self.container, Space::ITEMS, &route(&self.schema, slot)?, row))
    }

    /// Which shard each slot is on, as ranges: first slot, last slot, shard.
    pub async fn map(&self) -> Result<Vec<(u16, u16, ShardId)>> {
        let mut ranges: Vec<(u16, u16, ShardId)> = Vec::new();
        for slot in 0..SLOTS {
            let route = route(&self.schema, slot)?;
            let shard = self.engine.router().place(self.container, &route).await?.shard;
            match ranges.last_mut() {
                Some(last) if last.2 == shard => last.1 = slot,
                _ => ranges.push((slot, slot, shard)),
            }
        }
        Ok(ranges)
    }

    /// Writes the rows of a journal, in the order of their commands where it takes several transactions.
    pub(crate) async fn write(&self, journal: &[u8]) -> Result<()> {
        let (mut rows, mut garbage) = (rows::read(journal).peekable(), Vec::new());
        while rows.peek().is_some() {
            self.write_rows(next_transaction(&mut rows, &mut garbage)).await?;
        }
        self.garbage.add(garbage);
        Ok(())
    }

    /// Writes rows, all of a shard in one transaction.
    pub(crate) async fn write_rows(&self, rows: RowsToWrite) -> Result<()> {
        let mut shards: BTreeMap<(ShardId, usize), (BTreeSet<u16>, Write)> = BTreeMap::new();
        let mut partitions: BTreeMap<ShardId, BTreeSet<u64>> = BTreeMap::new();
        for ((slot, row), value) in rows {
            let route = route(&self.schema, slot)?;
            let placed = self.engine.router().place(self.container, &route).await?;
            let of_shard = partitions.entry(placed.shard).or_default();
            of_shard.insert(placed.partition.0);
            let group = (of_shard.len() - 1) / PARTITIONS_AT_ONCE_MAX;
            let (slots, write) = shards
                .entry((placed.shard, group))
                .or_insert_with(|| (BTreeSet::new(), Write { rows: Vec::new() }));
            slots.insert(slot);
            write.rows.push((self.key(slot, &row)?, value));
        }
        for (slots, write) in shards.into_values() {
            let targets =
                slots.iter().map(|slot| Ok((self.container, route(&self.schema, *slot)?)));
            let targets = targets.collect::<Result<Vec<_>>>()?;
            match &targets[..] {
                [(_, route)] => self.engine.write(self.container, route, write).await?,
                _ => self.engine.write_many(&targets, write).await?,
            }
        }
        Ok(())
    }

    /// The rows of a slot that begin with these bytes, up to a limit, and whether these are all.
    pub(crate) async fn find(
        &self,
        slot: u16,
        start: &[u8],
        most: usize,
    ) -> Result<(Vec<Bytes>, bool)> {
        let route = route(&self.schema, slot)?;
        let view = self.engine.read(self.container, &route, 0).await?;
        let range = KeyRange::prefix([&route[..], start].concat());
        let limit = PageLimit::items(most);
        let page = view.scan(Space::ITEMS, &range, Direction::Forward, limit).await?;
        let row = |key: &Bytes| Ok(Bytes::copy_from_slice(self.split(key)?.1));
        let rows = page.items.iter().map(|(key, _)| row(key)).collect::<Result<_>>()?;
        Ok((rows, page.next.is_none()))
    }

    /// Reads everything into an empty keyspace.
    pub async fn load(&self, keyspace: &Keyspace) -> Result<()> {
        let mut slot = 0;
        let mut loaded = Loaded::new(self.numbers().await?, keyspace);
        while slot < SLOTS {
            slot = self.load_partition(slot, keyspace, &mut loaded).await?;
        }
        self.garbage.add(loaded.finish(keyspace));
        Ok(())
    }

    /// Which database each number has, if that was ever written.
    async fn numbers(&self) -> Result<Option<Vec<u32>>> {
        let key = self.key(0, &NUMBERS.to_be_bytes())?;
        let found = self.engine.get(&key, 0).await?;
        Ok(found.map(|item| {
            let ids = item.payload.chunks_exact(4);
            ids.map(|it| u32::from_le_bytes([it[0], it[1], it[2], it[3]])).collect()
        }))
    }

    /// Reads the partition of a slot, from that slot on. The first slot behind it.
    async fn load_partition(
        &self,
        first: u16,
        keyspace: &Keyspace,
        loaded: &mut Loaded,
    ) -> Result<u16> {
        let mut from = route(&self.schema, first)?;
        let mut slot = first;
        loop {
            let view = self.engine.read(self.container, &route(&self.schema, slot)?, 0).await?;
            let end = view.routes().end.clone();
            let range = KeyRange::new(from.clone(), end.clone());
            let page = view.scan(Space::ITEMS, &range, Direction::Forward, PageLimit::MAX).await?;
            drop(view);
            for (key, item) in page.items {
                let row;
                // The partition may be split between two pages, but never within a slot.
                (slot, row) = self.split(&key)?;
                loaded.take(keyspace, slot, row, &item.payload)?;
            }
            match page.next {
                // The last row of a page is not read again: the next one begins right behind it.
                Some(last) => from = [&last[lazuli_engine::PREFIX_BYTES..], &[0]].concat().into(),
                None => {
                    let Some(end) = end else { return Ok(SLOTS) };
                    slot += 1;
                    while slot < SLOTS && route(&self.schema, slot)? < end {
                        slot += 1;
                    }
                    return Ok(slot);
                }
            }
        }
    }

    /// The slot and the row of a key of the store.
    fn split<'k>(&self, key: &'k Bytes) -> Result<(u16, &'k [u8])> {
        let rest = &key[lazuli_engine::PREFIX_BYTES..];
        let (route, row) = MapKind::Range.split(&self.schema, rest)?;
        match MapKind::Range.key(&self.schema, route)?.first() {
            Some(KeyPart::Int32(slot)) if (0..i32::from(SLOTS)).contains(slot) => {
                Ok((*slot as u16, row))
            }
            _ => Err(Error::corrupt("bad-cache-row", "a row of the cache is in no slot")),
        }
    }
}

/// Takes the rows that are written together, the last state of each. They end with a command, unless one has too many.
fn next_transaction<'b>(
    rows: &mut impl Iterator<Item = Row<'b>>,
    garbage: &mut Vec<(u16, Bytes)>,
) -> RowsToWrite {
    let (mut last, mut bytes) = (RowsToWrite::new(), 0);
    for row in rows {
        let mut is_full = last.len() >= WRITES_MAX || bytes >= WRITE_BYTES_MAX;
        match row {
            Row::End => is_full |= last.len() >= WRITES_ENOUGH || bytes >= WRITE_BYTES_ENOUGH,
            Row::Garbage { database, key, generation } => {
                garbage.push((slot_of(key), generation_bytes(database, key, generation)));
            }
            Row::GarbageDatabase { database } => {
                let start = Bytes::copy_from_slice(&database.to_be_bytes());
                garbage.extend((0..SLOTS).map(|slot| (slot, start.clone())));
            }
            row => {
                let (slot, key, value) = encoded(row);
                bytes += key.len() + value.as_ref().map_or(0, Bytes::len);
                last.insert((slot, key), value);
            }
        }
        if is_full {
            break;
        }
    }
    last
}

/// The route of a slot.
fn route(schema: &KeySchema, slot: u16) -> Result<Bytes> {
    MapKind::Range.route(schema, &[KeyPart::Int32(i32::from(slot))])
}

/// A name in a row: itself, or its hash if it is long.
fn put_name(out: &mut BytesMut, name: &[u8]) {
    if name.len() <= NAME_BYTES_MAX {
        out.put_u16(name.len() as u16);
        out.put_slice(name);
    } else {
        out.put_u16(HASHED);
        out.put_u128(xxh3_128(name));
    }
}

/// What all rows of a key begin with.
fn key_bytes(database: u32, key: &[u8]) -> BytesMut {
    let mut bytes = BytesMut::with_capacity(8 + key.len().min(NAME_BYTES_MAX));
    bytes.put_u32(database);
    put_name(&mut bytes, key);
    bytes
}

/// What all rows of the elements of a generation begin with.
fn generation_bytes(database: u32, key: &[u8], generation: u64) -> Bytes {
    let mut bytes = key_bytes(database, key);
    bytes.put_u8(ELEMENT);
    bytes.put_u64(generation);
    bytes.freeze()
}

/// A row for the store: its slot, its key, and its value unless it is deleted. A long name stands in front of the value.
fn encoded(row: Row<'_>) -> (u16, Bytes, Option<Bytes>) {
    let valued = |name: &[u8], value: &[u8]| {
        let long = if name.len() > NAME_BYTES_MAX { name } else { &[] };
        let mut bytes = BytesMut::with_capacity(4 + long.len() + value.len());
        bytes.put_u32(long.len() as u32);
        bytes.put_slice(long);
        bytes.put_slice(value);
        Some(bytes.freeze())
    };
    let head_key = |database, key: &[u8]| {
        let mut bytes = key_bytes(database, key);
        bytes.put_u8(HEAD);
        bytes.freeze()
    };
    let element_key = |database, key: &[u8], generation, element: &[u8]| {
        let mut bytes = key_bytes(database, key);
        bytes.put_u8(ELEMENT);
        bytes.put_u64(generation);
        match element.len() <= NAME_BYTES_MAX {
            // Rows of short elements are in the order of the elements.
            true => {
                bytes.put_u8(0);
                bytes.put_slice(element);
            }
            false => {
                bytes.put_u8(1);
                bytes.put_u128(xxh3_128(element));
            }
        }
        bytes.freeze()
    };
    match row {
        Row::Head { database, key, head } => {
            (slot_of(key), head_key(database, key), valued(key, head))
        }
        Row::Gone { database, key } => (slot_of(key), head_key(database, key), None),
        Row::Element { database, key, generation, element, row } => {
            let name = element_key(database, key, generation, element);
            (slot_of(key), name, valued(element, row))
        }
        Row::ElementGone { database, key, generation, element } => {
            (slot_of(key), element_key(database, key, generation, element), None)
        }
        Row::Numbers { numbers } => (
            0,
            Bytes::copy_from_slice(&NUMBERS.to_be_bytes()),
            Some(Bytes::copy_from_slice(numbers)),
        ),
        Row::Library { name, code } => {
            let value = if code.is_empty() { None } else { valued(name, code) };
            (0, key_bytes(LIBRARIES, name).freeze(), value)
        }
        Row::Garbage { key, .. } => (slot_of(key), Bytes::new(), None),
        Row::GarbageDatabase { .. } | Row::End => (0, Bytes::new(), None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::Rows;

    fn cut(rows: &Rows) -> Vec<usize> {
        let (mut rows, mut garbage) = (rows::read(&rows.bytes).peekable(), Vec::new());
        let mut sizes = Vec::new();
        while rows.peek().is_some() {
            sizes.push(next_transaction(&mut rows, &mut garbage).len());
        }
        sizes
    }

    fn journal(commands: usize, keys: usize, head: &[u8]) -> Rows {
        let mut rows = Rows { is_on: true, bytes: Vec::new() };
        for command in 0..commands {
            for key in 0..keys {
                let key = (command * keys + key).to_be_bytes();
                rows.push(Row::Head { database: 0, key: &key, head });
            }
            rows.push(Row::End);
        }
        rows
    }

    #[test]
    fn transactions_of_the_store_end_with_commands() {
        assert_eq!(cut(&journal(3, 7_000, b"")), [21_000]);
        assert_eq!(cut(&journal(8, 7_000, b"")), [21_000, 21_000, 14_000]);
        assert_eq!(cut(&journal(30, 2, &[0; 1024 * 1024])), [8, 8, 8, 8, 8, 8, 8, 4]);
    }

    #[test]
    fn a_command_too_large_for_one_transaction_is_written_in_several() {
        assert_eq!(cut(&journal(1, 200_000, b"")), [90_001, 90_001, 19_998]);
        let cut = cut(&journal(1, 50, &[0; 1024 * 1024]));
        assert_eq!((cut.iter().sum::<usize>(), cut.len()), (50, 3));
    }
}
