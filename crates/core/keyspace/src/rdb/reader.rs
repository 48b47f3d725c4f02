//! Values from bytes that come from the network or a file: whatever is wrong with them is told, and nothing is allocated that the
//! bytes do not pay for.

use super::{compact, stream, types};
use crate::types::list::End;
use crate::types::{Hash, List, Set, SortedSet, Unlogged};
use crate::value::Value;

/// Why a payload was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadPayload {
    /// Its version or its checksum is wrong.
    Envelope,
    Format,
    /// It ends too early: more may come, where it is read in pieces.
    Short,
}

/// The most bytes that a compressed text may expand to.
const EXPANDED_BYTES_MAX: usize = 512 * 1024 * 1024;
/// How many times longer a text can be than its compressed form.
const EXPANSION_MAX: usize = 300;

pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    pub(super) fn at(&self) -> usize {
        self.at
    }

    pub(super) fn take(&mut self, count: usize) -> Result<&'a [u8], BadPayload> {
        let end = self.at.checked_add(count).ok_or(BadPayload::Format)?;
        let taken = self.bytes.get(self.at..end).ok_or(BadPayload::Short)?;
        self.at = end;
        Ok(taken)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], BadPayload> {
        self.take(N)?.try_into().map_err(|_| BadPayload::Format)
    }

    pub(super) fn byte(&mut self) -> Result<u8, BadPayload> {
        self.array::<1>().map(|[byte]| byte)
    }

    /// A length, or what stands in its place for a text of a special form.
    pub(super) fn length(&mut self) -> Result<Result<usize, u8>, BadPayload> {
        let first = self.byte()?;
        let wide = |number: u64| usize::try_from(number).map_err(|_| BadPayload::Format);
        Ok(match first >> 6 {
            0 => Ok(usize::from(first & 0x3f)),
            1 => Ok(usize::from(first & 0x3f) << 8 | usize::from(self.byte()?)),
            2 if first == 0x80 => Ok(wide(u64::from(u32::from_be_bytes(self.array()?)))?),
            2 if first == 0x81 => Ok(wide(u64::from_be_bytes(self.array()?))?),
            2 => return Err(BadPayload::Format),
            _ => Err(first & 0x3f),
        })
    }

    pub(super) fn count(&mut self) -> Result<usize, BadPayload> {
        self.length()?.map_err(|_| BadPayload::Format)
    }

    pub(super) fn text(&mut self) -> Result<Vec<u8>, BadPayload> {
        let number = |number: i64| crate::types::integer::text(number).to_vec();
        match self.length()? {
            Ok(length) => self.take(length).map(<[u8]>::to_vec),
            Err(0) => Ok(number(i64::from(self.byte()? as i8))),
            Err(1) => Ok(number(i64::from(i16::from_le_bytes(self.array()?)))),
            Err(2) => Ok(number(i64::from(i32::from_le_bytes(self.array()?)))),
            Err(3) => {
                let (short, length) = (self.count()?, self.count()?);
                let packed = self.take(short)?;
                if length > EXPANDED_BYTES_MAX || length > packed.len() * EXPANSION_MAX {
                    return Err(BadPayload::Format);
                }
                compact::expand(packed, length)
            }
            Err(_) => Err(BadPayload::Format),
        }
    }

    /// A score as old versions wrote it: as a text behind its length.
    fn old_score(&mut self) -> Result<f64, BadPayload> {
        match self.byte()? {
            253 => Err(BadPayload::Format),
            254 => Ok(f64::INFINITY),
            255 => Ok(f64::NEG_INFINITY),
            length => score(self.take(usize::from(length))?),
        }
    }
}

fn score(text: &[u8]) -> Result<f64, BadPayload> {
    let number = std::str::from_utf8(text).ok().and_then(|text| text.parse::<f64>().ok());
    number.filter(|number| !number.is_nan()).ok_or(BadPayload::Format)
}

/// The value of a type. Nothing may be left over, and no value may be empty.
pub(super) fn value(kind: u8, bytes: &[u8]) -> Result<Value, BadPayload> {
    let mut reader = Reader::new(bytes);
    let found = match kind {
        types::STRING => Value::String(reader.text()?),
        types::LIST | types::LIST_ZIPLIST | types::LIST_QUICKLIST | types::LIST_QUICKLIST_2 => {
            Value::List(list(&mut reader, kind)?)
        }
        types::SET | types::SET_INTSET | types::SET_LISTPACK => Value::Set(set(&mut reader, kind)?),
        types::HASH | types::HASH_ZIPMAP | types::HASH_ZIPLIST | types::HASH_LISTPACK => {
            Value::Hash(hash(&mut reader, kind)?)
        }
        types::HASH_TIMES => Value::Hash(hash_times(&mut reader)?),
        types::HASH_LISTPACK_TIMES => Value::Hash(hash_listpack_times(&mut reader)?),
        types::STREAM | types::STREAM_2 | types::STREAM_3 => {
            Value::Stream(Box::new(stream::read(&mut reader, kind)?))
        }
        types::ZSET | types::ZSET_2 | types::ZSET_ZIPLIST | types::ZSET_LISTPACK => {
            Value::Sorted(zset(&mut reader, kind)?)
        }
        _ => return Err(BadPayload::Format),
    };
    if reader.at != bytes.len() || found.is_gone() {
        return Err(BadPayload::Format);
    }
    Ok(found)
}

fn list(reader: &mut Reader<'_>, kind: u8) -> Result<List, BadPayload> {
    let mut list = List::default();
    let mut push = |item: &[u8]| list.push(End::Back, item, &mut Unlogged);
    match kind {
        types::LIST => {
            for _ in 0..reader.count()? {
                push(&reader.text()?);
            }
        }
        types::LIST_ZIPLIST => {
            compact::ziplist(&reader.text()?)?.iter().for_each(|item| push(item));
        }
        types::LIST_QUICKLIST => {
            for _ in 0..reader.count()? {
                compact::ziplist(&reader.text()?)?.iter().for_each(|item| push(item));
            }
        }
        _ => {
            for _ in 0..reader.count()? {
                let is_plain = reader.count()? == 1;
                let node = reader.text()?;
                if is_plain {
                    push(&node);
                } else {
                    compact::listpack(&node)?.iter().for_each(|item| push(item));
                }
            }
        }
    }
    Ok(list)
}

fn set(reader: &mut Reader<'_>, kind: u8) -> Result<Set, BadPayload> {
    let mut set = Set::default();
    let mut add = |member: &[u8]| match set.add(member, &mut Unlogged) {
        true => Ok(()),
        false => Err(BadPayload::Format),
    };
    match kind {
        types::SET => {
            for _ in 0..reader.count()? {
                add(&reader.text()?)?;
            }
        }
        types::SET_INTSET => {
            compact::intset(&reader.text()?)?.iter().try_for_each(|member| add(member))?;
        }
        _ => compact::listpack(&reader.text()?)?.iter().try_for_each(|member| add(member))?,
    }
    Ok(set)
}

type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

/// The texts of a compact form in pairs.
fn pairs(texts: Vec<Vec<u8>>) -> Result<Pairs, BadPayload> {
    if !texts.len().is_multiple_of(2) {
        return Err(BadPayload::Format);
    }
    let mut texts = texts.into_iter();
    Ok(std::iter::from_fn(|| texts.next().zip(texts.next())).collect())
}

fn hash(reader: &mut Reader<'_>, kind: u8) -> Result<Hash, BadPayload> {
    let mut hash = Hash::default();
    let mut set = |field: &[u8], content: &[u8]| match hash.set(field, content, &mut Unlogged) {
        true => Ok(()),
        false => Err(BadPayload::Format),
    };
    if kind == types::HASH {
        for _ in 0..reader.count()? {
            let (field, content) = (reader.text()?, reader.text()?);
            set(&field, &content)?;
        }
        return Ok(hash);
    }
    let packed = reader.text()?;
    let texts = match kind {
        types::HASH_ZIPLIST => compact::ziplist(&packed)?,
        types::HASH_ZIPMAP => compact::zipmap(&packed)?,
        _ => compact::listpack(&packed)?,
    };
    for (field, content) in pairs(texts)? {
        set(&field, &content)?;
    }
    Ok(hash)
}

/// A hash with fields that expire: each has its distance from the first end, plus one, or zero if it stays.
fn hash_times(reader: &mut Reader<'_>) -> Result<Hash, BadPayload> {
    let first_ms = u64::from_le_bytes(reader.array()?);
    let mut hash = Hash::default();
    for _ in 0..reader.count()? {
        let distance = reader.count()? as u64;
        let (field, content) = (reader.text()?, reader.text()?);
        let at_ms = match distance.checked_sub(1) {
            Some(more) => first_ms.checked_add(more).ok_or(BadPayload::Format)?,
            None => 0,
        };
        set_field(&mut hash, &field, &content, at_ms)?;
    }
    Ok(hash)
}

/// The same in a listpack: field, value and end in turn.
fn hash_listpack_times(reader: &mut Reader<'_>) -> Result<Hash, BadPayload> {
    reader.take(8)?;
    let texts = compact::listpack(&reader.text()?)?;
    let mut hash = Hash::default();
    for field in texts.chunks(3) {
        let [name, content, at] = field else { return Err(BadPayload::Format) };
        let at_ms = compact::parse(at).and_then(|at| u64::try_from(at).ok());
        set_field(&mut hash, name, content, at_ms.ok_or(BadPayload::Format)?)?;
    }
    Ok(hash)
}

/// Adds a field, which must be new; it stays if its time is zero.
fn set_field(hash: &mut Hash, field: &[u8], content: &[u8], at_ms: u64) -> Result<(), BadPayload> {
    if !hash.set(field, content, &mut Unlogged) {
        return Err(BadPayload::Format);
    }
    if at_ms > 0 {
        hash.set_expiry(field, at_ms, &mut Unlogged);
    }
    Ok(())
}

fn zset(reader: &mut Reader<'_>, kind: u8) -> Result<SortedSet, BadPayload> {
    let mut zset = SortedSet::default();
    let mut set = |member: &[u8], score: f64| {
        let is_new = !score.is_nan() && zset.set(member, score, &mut Unlogged);
        if is_new { Ok(()) } else { Err(BadPayload::Format) }
    };
    if kind == types::ZSET || kind == types::ZSET_2 {
        for _ in 0..reader.count()? {
            let member = reader.text()?;
            let score = match kind {
                types::ZSET => reader.old_score()?,
                _ => f64::from_le_bytes(reader.array()?),
            };
            set(&member, score)?;
        }
        return Ok(zset);
    }
    let packed = reader.text()?;
    let texts = match kind {
        types::ZSET_ZIPLIST => compact::ziplist(&packed)?,
        _ => compact::listpack(&packed)?,
    };
    for (member, text) in pairs(texts)? {
        set(&member, score(&text)?)?;
    }
    Ok(zset)
}
