//! Where a value ends, without making it: files are read value by value, and most of them only go on to somewhere else.

use super::reader::{BadPayload, Reader};
use super::types;

/// Passes a text of any form.
pub(super) fn text(reader: &mut Reader<'_>) -> Result<(), BadPayload> {
    let bytes = match reader.length()? {
        Ok(length) => length,
        Err(0) => 1,
        Err(1) => 2,
        Err(2) => 4,
        Err(3) => {
            let short = reader.count()?;
            reader.count()?;
            short
        }
        Err(_) => return Err(BadPayload::Format),
    };
    reader.take(bytes).map(drop)
}

fn texts(reader: &mut Reader<'_>, of_each: usize) -> Result<(), BadPayload> {
    for _ in 0..reader.count()? {
        for _ in 0..of_each {
            text(reader)?;
        }
    }
    Ok(())
}

/// Passes the value of a type.
pub(super) fn value(reader: &mut Reader<'_>, kind: u8) -> Result<(), BadPayload> {
    match kind {
        types::STRING
        | types::HASH_ZIPMAP
        | types::LIST_ZIPLIST
        | types::SET_INTSET
        | types::SET_LISTPACK
        | types::ZSET_ZIPLIST
        | types::ZSET_LISTPACK
        | types::HASH_ZIPLIST
        | types::HASH_LISTPACK => text(reader),
        types::LIST | types::SET | types::LIST_QUICKLIST => texts(reader, 1),
        types::HASH => texts(reader, 2),
        types::ZSET => {
            for _ in 0..reader.count()? {
                text(reader)?;
                let length = reader.byte()?;
                // The highest three stand for numbers that have no digits.
                reader.take(if length < 253 { usize::from(length) } else { 0 })?;
            }
            Ok(())
        }
        types::ZSET_2 => {
            for _ in 0..reader.count()? {
                text(reader)?;
                reader.take(8)?;
            }
            Ok(())
        }
        types::LIST_QUICKLIST_2 => {
            for _ in 0..reader.count()? {
                reader.count()?;
                text(reader)?;
            }
            Ok(())
        }
        types::HASH_TIMES => {
            reader.take(8)?;
            for _ in 0..reader.count()? {
                reader.count()?;
                text(reader)?;
                text(reader)?;
            }
            Ok(())
        }
        types::HASH_LISTPACK_TIMES => {
            reader.take(8)?;
            text(reader)
        }
        types::STREAM | types::STREAM_2 | types::STREAM_3 => stream(reader, kind),
        _ => Err(BadPayload::Format),
    }
}

fn counts(reader: &mut Reader<'_>, numbers: usize) -> Result<(), BadPayload> {
    (0..numbers).try_for_each(|_| reader.count().map(drop))
}

fn stream(reader: &mut Reader<'_>, kind: u8) -> Result<(), BadPayload> {
    texts(reader, 2)?;
    // How many entries and the last id; then the first one, the highest deleted one, and how many were ever added.
    counts(reader, if kind == types::STREAM { 3 } else { 8 })?;
    for _ in 0..reader.count()? {
        text(reader)?;
        counts(reader, if kind == types::STREAM { 2 } else { 3 })?;
        for _ in 0..reader.count()? {
            reader.take(24)?;
            reader.count()?;
        }
        for _ in 0..reader.count()? {
            text(reader)?;
            reader.take(if kind == types::STREAM_3 { 16 } else { 8 })?;
            let pending = reader.count()?;
            reader.take(pending.checked_mul(16).ok_or(BadPayload::Format)?)?;
        }
    }
    Ok(())
}

/// Passes what a module of Redis has kept beside the keys: parts of known kinds up to an end.
pub(super) fn module(reader: &mut Reader<'_>) -> Result<(), BadPayload> {
    // The module, and whether this comes before or behind the keys.
    counts(reader, 3)?;
    loop {
        match reader.count()? {
            0 => return Ok(()),
            1 | 2 => counts(reader, 1)?,
            3 => drop(reader.take(4)?),
            4 => drop(reader.take(8)?),
            5 => text(reader)?,
            _ => return Err(BadPayload::Format),
        }
    }
}
