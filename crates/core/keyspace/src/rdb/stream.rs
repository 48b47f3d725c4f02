//! Streams in the manner of RDB: entries in listpacks of a hundred, then the ids and counts of the stream, then its groups.
//!
//! A listpack begins with a master entry: how many entries are there, how many of them are deleted, the fields of the first
//! one. An entry has flags, the distance of its id from the key of its listpack, and its texts, without the fields where they
//! are those of the master entry.

use super::compact::{self, Listpack};
use super::reader::{BadPayload, Reader};
use super::types;
use super::writer::{length, text};
use crate::types::stream::{Group, GroupLog};
use crate::types::{Stream, StreamId, Unlogged};

const DELETED: i64 = 1;
const SAME_FIELDS: i64 = 2;
/// How many entries are put into one listpack, and how many bytes of texts make it full before that.
const LISTPACK_ENTRIES: usize = 100;
const LISTPACK_BYTES: usize = 4096;
/// The most that the texts of all entries may take: fields that stand once in a payload come back with every entry.
const ENTRY_BYTES_MAX: usize = 512 * 1024 * 1024;
/// The number of entries read that is not known.
const UNKNOWN: u64 = u64::MAX;

/// The texts of a listpack, taken one after another.
struct Texts {
    texts: std::vec::IntoIter<Vec<u8>>,
}

impl Texts {
    fn next(&mut self) -> Result<Vec<u8>, BadPayload> {
        self.texts.next().ok_or(BadPayload::Format)
    }

    fn number(&mut self) -> Result<i64, BadPayload> {
        compact::parse(&self.next()?).ok_or(BadPayload::Format)
    }

    /// A number of texts that are still to come.
    fn count(&mut self) -> Result<usize, BadPayload> {
        let count = usize::try_from(self.number()?).ok().filter(|it| *it <= self.texts.len());
        count.ok_or(BadPayload::Format)
    }
}

pub(super) fn read(reader: &mut Reader<'_>, kind: u8) -> Result<Stream, BadPayload> {
    let (mut stream, mut room) = (Stream::default(), ENTRY_BYTES_MAX);
    for _ in 0..reader.count()? {
        let key = reader.text()?;
        let key = StreamId::from_bytes(key.try_into().map_err(|_| BadPayload::Format)?);
        let texts = compact::listpack(&reader.text()?)?;
        read_listpack(&mut stream, key, texts, &mut room)?;
    }
    let count = reader.count()? as u64;
    let last_id = read_id(reader)?;
    if count != stream.len() || last_id < stream.last_id {
        return Err(BadPayload::Format);
    }
    stream.last_id = last_id;
    stream.entries_added = count;
    if kind != types::STREAM {
        // The first id follows from the entries.
        read_id(reader)?;
        stream.max_deleted_id = read_id(reader)?;
        stream.entries_added = reader.count()? as u64;
    }
    for _ in 0..reader.count()? {
        read_group(&mut stream, reader, kind)?;
    }
    Ok(stream)
}

fn read_id(reader: &mut Reader<'_>) -> Result<StreamId, BadPayload> {
    Ok(StreamId { ms: reader.count()? as u64, seq: reader.count()? as u64 })
}

fn read_listpack(
    stream: &mut Stream,
    key: StreamId,
    texts: Vec<Vec<u8>>,
    room: &mut usize,
) -> Result<(), BadPayload> {
    let mut texts = Texts { texts: texts.into_iter() };
    let (live, deleted) = (texts.count()?, texts.count()?);
    let count = texts.count()?;
    let mut fields = Vec::with_capacity(count);
    for _ in 0..count {
        fields.push(texts.next()?);
    }
    texts.number()?;
    let mut met = 0;
    for _ in 0..live.checked_add(deleted).ok_or(BadPayload::Format)? {
        let flags = texts.number()?;
        let id = StreamId {
            ms: key.ms.wrapping_add_signed(texts.number()?),
            seq: key.seq.wrapping_add_signed(texts.number()?),
        };
        let mut entry = Vec::new();
        let has_same = flags & SAME_FIELDS != 0;
        let count = if has_same { fields.len() } else { texts.count()? };
        let mut same = fields.iter().filter(|_| has_same);
        for _ in 0..count {
            entry.push(same.next().cloned().map_or_else(|| texts.next(), Ok)?);
            entry.push(texts.next()?);
        }
        texts.number()?;
        if flags & DELETED != 0 {
            continue;
        }
        if id <= stream.last_id || entry.is_empty() {
            return Err(BadPayload::Format);
        }
        let bytes = entry.iter().map(Vec::len).sum();
        *room = room.checked_sub(bytes).ok_or(BadPayload::Format)?;
        let entry: Vec<&[u8]> = entry.iter().map(Vec::as_slice).collect();
        stream.add(id, &entry, &mut Unlogged);
        met += 1;
    }
    if met == live && texts.texts.len() == 0 { Ok(()) } else { Err(BadPayload::Format) }
}

fn read_group(stream: &mut Stream, reader: &mut Reader<'_>, kind: u8) -> Result<(), BadPayload> {
    let name = reader.text()?;
    let last_id = read_id(reader)?;
    let entries_read = match kind {
        types::STREAM => stream.entries_up_to(last_id),
        _ => Some(reader.count()? as u64).filter(|it| *it != UNKNOWN),
    };
    if entries_read == Some(UNKNOWN)
        || !stream.add_group(&name, last_id, entries_read, &mut Unlogged)
    {
        return Err(BadPayload::Format);
    }
    let mut pending = Vec::new();
    for _ in 0..reader.count()? {
        let id = StreamId::from_bytes(reader.array()?);
        pending.push((id, u64::from_le_bytes(reader.array()?), reader.count()? as u64));
    }
    pending.sort_unstable_by_key(|it| it.0);
    let read = stream.with_group(&name, &mut Unlogged, |group, log| {
        let mut given = 0;
        for _ in 0..reader.count()? {
            given += read_consumer(group, log, reader, kind, &pending)?;
        }
        // Everything that is pending is so for one consumer.
        let is_whole = given == pending.len() && group.pending().len() == pending.len();
        if is_whole { Ok(()) } else { Err(BadPayload::Format) }
    });
    read.unwrap_or(Err(BadPayload::Format))
}

/// Reads a consumer, and says how many entries are pending for it.
fn read_consumer(
    group: &mut Group,
    log: &mut GroupLog<'_>,
    reader: &mut Reader<'_>,
    kind: u8,
    pending: &[(StreamId, u64, u64)],
) -> Result<usize, BadPayload> {
    let name = reader.text()?;
    let seen_ms = u64::from_le_bytes(reader.array()?);
    if kind == types::STREAM_3 {
        // When it last was given something; what it was seen at is later.
        reader.take(8)?;
    }
    if !group.see(&name, seen_ms, log) {
        return Err(BadPayload::Format);
    }
    let count = reader.count()?;
    for _ in 0..count {
        let id = StreamId::from_bytes(reader.array()?);
        let found = pending.binary_search_by_key(&id, |it| it.0);
        let (_, delivered_ms, deliveries) = pending[found.map_err(|_| BadPayload::Format)?];
        group.give(id, &name, delivered_ms, deliveries, log);
    }
    Ok(count)
}

pub(super) fn write(out: &mut Vec<u8>, stream: &Stream) {
    let mut listpacks = Listpacks::default();
    stream.range(StreamId::MIN, StreamId::MAX, false, &mut |id, texts| {
        listpacks.add(id, texts);
        true
    });
    let listpacks = listpacks.finish();
    length(out, listpacks.len());
    for (key, listpack) in listpacks {
        text(out, &key.to_bytes());
        text(out, &listpack);
    }
    length(out, stream.len() as usize);
    write_id(out, stream.last_id);
    write_id(out, stream.first_id());
    write_id(out, stream.max_deleted_id);
    length(out, stream.entries_added as usize);
    length(out, stream.groups().len());
    for (name, group) in stream.groups() {
        write_group(out, name, group);
    }
}

fn write_id(out: &mut Vec<u8>, id: StreamId) {
    length(out, id.ms as usize);
    length(out, id.seq as usize);
}

fn write_group(out: &mut Vec<u8>, name: &[u8], group: &Group) {
    text(out, name);
    write_id(out, group.last_id);
    length(out, group.entries_read.unwrap_or(UNKNOWN) as usize);
    length(out, group.pending().len());
    for (id, pending) in group.pending() {
        out.extend_from_slice(&id.to_bytes());
        out.extend_from_slice(&pending.delivered_ms.to_le_bytes());
        length(out, pending.deliveries as usize);
    }
    length(out, group.consumers().len());
    for (name, consumer) in group.consumers() {
        text(out, name);
        out.extend_from_slice(&consumer.seen_ms.to_le_bytes());
        length(out, consumer.pending().len());
        consumer.pending().iter().for_each(|id| out.extend_from_slice(&id.to_bytes()));
    }
}

/// Entries on their way into listpacks.
#[derive(Default)]
struct Listpacks {
    done: Vec<(StreamId, Vec<u8>)>,
    entries: Vec<(StreamId, Vec<Vec<u8>>)>,
    bytes: usize,
}

impl Listpacks {
    fn add(&mut self, id: StreamId, texts: &[&[u8]]) {
        self.bytes += texts.iter().map(|it| it.len()).sum::<usize>();
        self.entries.push((id, texts.iter().map(|it| it.to_vec()).collect()));
        if self.entries.len() >= LISTPACK_ENTRIES || self.bytes >= LISTPACK_BYTES {
            self.close();
        }
    }

    fn close(&mut self) {
        let entries = std::mem::take(&mut self.entries);
        self.bytes = 0;
        let Some((key, first)) = entries.first() else { return };
        let fields: Vec<&Vec<u8>> = first.iter().step_by(2).collect();
        let mut listpack = Listpack::new();
        listpack.number(entries.len() as i64);
        listpack.number(0);
        listpack.number(fields.len() as i64);
        fields.iter().for_each(|field| listpack.text(field));
        listpack.number(0);
        for (id, texts) in &entries {
            let own = texts.iter().step_by(2);
            let has_same = texts.len() == fields.len() * 2 && own.eq(fields.iter().copied());
            listpack.number(if has_same { SAME_FIELDS } else { 0 });
            listpack.number(id.ms.wrapping_sub(key.ms) as i64);
            listpack.number(id.seq.wrapping_sub(key.seq) as i64);
            let count = texts.len() / 2;
            if has_same {
                texts.iter().skip(1).step_by(2).for_each(|text| listpack.text(text));
                listpack.number(count as i64 + 3);
            } else {
                listpack.number(count as i64);
                texts.iter().for_each(|text| listpack.text(text));
                listpack.number(2 * count as i64 + 4);
            }
        }
        self.done.push((*key, listpack.finish()));
    }

    fn finish(mut self) -> Vec<(StreamId, Vec<u8>)> {
        self.close();
        self.done
    }
}
