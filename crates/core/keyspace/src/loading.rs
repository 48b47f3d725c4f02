//! Rows of the store become keys again, when a durable keyspace starts.

use std::collections::BTreeSet;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use bytes::{Buf, Bytes};
use lazuli_engine::{Error, Result};

use crate::entry::Entry;
use crate::keyspace::Keyspace;
use crate::shelf::{ELEMENT, HASHED, HEAD, LIBRARIES, NUMBERS};
use crate::value::Value;

/// A head without the value's own part: type, expiry, generation.
const HEAD_BYTES: usize = 17;

/// What has been read so far. Rows come in order: a key's head first, then its elements.
pub(crate) struct Loaded {
    /// The ids of the databases by their numbers.
    numbers: Vec<u32>,
    key: Option<LoadingKey>,
    generation_max: u64,
    id_max: u32,
    garbage: BTreeSet<(u16, Bytes)>,
    libraries: Vec<Vec<u8>>,
}

/// The key whose rows are being read.
struct LoadingKey {
    number: usize,
    /// What its rows begin with.
    start: Bytes,
    key: Vec<u8>,
    expires_at_ms: Option<u64>,
    generation: u64,
    value: Value,
}

fn corrupt() -> Error {
    Error::corrupt("bad-cache-row", "a row of the cache cannot be read")
}

impl Loaded {
    pub(crate) fn new(numbers: Option<Vec<u32>>, keyspace: &Keyspace) -> Self {
        let plain = || (0..keyspace.databases as u32).collect();
        let numbers = numbers.unwrap_or_else(plain);
        let id_max = numbers.iter().copied().max().unwrap_or_default();
        let (garbage, libraries) = (BTreeSet::new(), Vec::new());
        Self { numbers, key: None, generation_max: 0, id_max, garbage, libraries }
    }

    /// Takes the next row.
    pub(crate) fn take(
        &mut self,
        keyspace: &Keyspace,
        slot: u16,
        row: &[u8],
        payload: &Bytes,
    ) -> Result<()> {
        let mut rest = row;
        let id = rest.try_get_u32().map_err(|_| corrupt())?;
        if id == NUMBERS {
            return Ok(());
        }
        if id == LIBRARIES {
            self.libraries.push(valued(payload)?.1.to_vec());
            return Ok(());
        }
        self.id_max = self.id_max.max(id);
        let Some(number) = self.numbers.iter().position(|it| *it == id) else {
            self.garbage.insert((slot, Bytes::copy_from_slice(&id.to_be_bytes())));
            return Ok(());
        };
        let length = rest.try_get_u16().map_err(|_| corrupt())?;
        let length = if length == HASHED { 16 } else { usize::from(length) };
        let (name, mut rest) = rest.split_at_checked(length).ok_or_else(corrupt)?;
        let start = &row[..row.len() - rest.len()];
        match rest.try_get_u8().map_err(|_| corrupt())? {
            HEAD => {
                self.put_key(keyspace);
                let (long, head) = valued(payload)?;
                let key = if long.is_empty() { name } else { long };
                self.key = Some(self.head(number, start, key, head)?);
                Ok(())
            }
            ELEMENT => self.element(slot, row, start, rest, payload),
            _ => Err(corrupt()),
        }
    }

    fn head(&mut self, number: usize, start: &[u8], key: &[u8], head: &[u8]) -> Result<LoadingKey> {
        let (fixed, own) = head.split_first_chunk::<HEAD_BYTES>().ok_or_else(corrupt)?;
        let mut fixed = &fixed[..];
        let (tag, expires, generation) = (fixed.get_u8(), fixed.get_u64_le(), fixed.get_u64_le());
        self.generation_max = self.generation_max.max(generation);
        let mut value = Value::of_tag(tag).map_err(|_| corrupt())?;
        value.load_head(own).map_err(|_| corrupt())?;
        Ok(LoadingKey {
            number,
            start: Bytes::copy_from_slice(start),
            key: key.to_vec(),
            expires_at_ms: Some(expires).filter(|it| *it != 0),
            generation,
            value,
        })
    }

    /// An element belongs to the key before it if that names its generation; otherwise it is garbage.
    fn element(
        &mut self,
        slot: u16,
        row: &[u8],
        start: &[u8],
        mut rest: &[u8],
        payload: &Bytes,
    ) -> Result<()> {
        let generation = rest.try_get_u64().map_err(|_| corrupt())?;
        self.generation_max = self.generation_max.max(generation);
        let before_element = row.len() - rest.len();
        let key = self.key.as_mut().filter(|it| it.start == start && it.generation == generation);
        let Some(key) = key else {
            self.garbage.insert((slot, Bytes::copy_from_slice(&row[..before_element])));
            return Ok(());
        };
        let (_, name) = rest.split_first().ok_or_else(corrupt)?;
        let (long, value) = valued(payload)?;
        let element = if long.is_empty() { name } else { long };
        key.value.load(element, value).map_err(|_| corrupt())
    }

    /// Puts the key that has been read into the keyspace.
    fn put_key(&mut self, keyspace: &Keyspace) {
        let Some(loading) = self.key.take() else { return };
        if loading.value.is_gone() {
            return;
        }
        let LoadingKey { number, key, expires_at_ms, generation, value, .. } = loading;
        let mut space = keyspace.space_of(number, 0, &key);
        let entry = match value {
            Value::String(string) => Entry::string_of(&key, &string, expires_at_ms, space.clock),
            value => Entry::object(&key, value, expires_at_ms, space.clock, generation),
        };
        space.insert(&key, entry);
        space.publish_bytes();
    }

    /// The end of all rows. What is garbage among them.
    pub(crate) fn finish(mut self, keyspace: &Keyspace) -> BTreeSet<(u16, Bytes)> {
        self.put_key(keyspace);
        let mut libraries = keyspace.libraries.lock().unwrap_or_else(PoisonError::into_inner);
        *libraries = std::mem::take(&mut self.libraries);
        drop(libraries);
        keyspace.generation.store(self.generation_max + 1, Ordering::Relaxed);
        keyspace.next_id.store(self.id_max + 1, Ordering::Relaxed);
        let mut space = keyspace.space_of_all(0, 0);
        for stripe in space.stripes() {
            for (place, id) in stripe.databases.iter_mut().zip(&self.numbers) {
                place.id = *id;
            }
        }
        self.garbage
    }
}

/// A value of the store: the long name in front of it, if there is one, and the rest.
fn valued(payload: &[u8]) -> Result<(&[u8], &[u8])> {
    let (length, rest) = payload.split_first_chunk::<4>().ok_or_else(corrupt)?;
    rest.split_at_checked(u32::from_be_bytes(*length) as usize).ok_or_else(corrupt)
}
