//! A block of a stream: entries in the order of their ids, in one buffer.
//!
//! An entry is the distance of its milliseconds from those of the block's first entry, its sequence number, the number of
//! its texts, and the texts. An entry with the same fields as the first one has 0 texts and then its values alone.

use super::StreamId;

#[derive(Debug, Clone)]
pub(super) struct Block {
    base_ms: u64,
    /// The fields of the entry that the block began with.
    fields: Vec<Box<[u8]>>,
    data: Vec<u8>,
    pub(super) live: usize,
    /// Entries that were here once: a block is full by all that it ever held.
    pub(super) deleted: usize,
    pub(super) last: StreamId,
}

fn write_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn read_number(data: &[u8], at: &mut usize) -> Option<u64> {
    let (mut number, mut shift) = (0_u64, 0);
    loop {
        let byte = *data.get(*at)?;
        *at += 1;
        number |= u64::from(byte & 0x7f).checked_shl(shift)?;
        if byte < 0x80 {
            return Some(number);
        }
        shift += 7;
    }
}

fn read_text<'a>(data: &'a [u8], at: &mut usize) -> Option<&'a [u8]> {
    let length = usize::try_from(read_number(data, at)?).ok()?;
    let text = data.get(*at..at.checked_add(length)?)?;
    *at += length;
    Some(text)
}

/// An entry in a block: its id, its fields and values in turn, and where it lies.
pub(super) struct Found<'a> {
    pub(super) id: StreamId,
    pub(super) texts: Vec<&'a [u8]>,
    begin: usize,
    end: usize,
}

impl Block {
    pub(super) fn new(id: StreamId, texts: &[&[u8]]) -> Self {
        let fields = texts.iter().step_by(2).map(|field| (*field).into()).collect();
        let mut block =
            Self { base_ms: id.ms, fields, data: Vec::new(), live: 0, deleted: 0, last: id };
        block.push(id, texts);
        block
    }

    pub(super) fn bytes(&self) -> usize {
        self.data.len()
    }

    /// Adds an entry with an id above all others.
    pub(super) fn push(&mut self, id: StreamId, texts: &[&[u8]]) {
        write_number(&mut self.data, id.ms - self.base_ms);
        write_number(&mut self.data, id.seq);
        let is_same = texts.len() == self.fields.len() * 2
            && self.fields.iter().zip(texts.iter().step_by(2)).all(|(own, other)| **own == **other);
        let (first, step) = if is_same { (1, 2) } else { (0, 1) };
        write_number(&mut self.data, if is_same { 0 } else { texts.len() as u64 });
        for text in texts.iter().skip(first).step_by(step) {
            write_number(&mut self.data, text.len() as u64);
            self.data.extend_from_slice(text);
        }
        self.live += 1;
        self.last = id;
    }

    fn at(&self, begin: usize) -> Option<Found<'_>> {
        let mut at = begin;
        let ms = self.base_ms + read_number(&self.data, &mut at)?;
        let seq = read_number(&self.data, &mut at)?;
        let count = read_number(&self.data, &mut at)?;
        let mut texts = Vec::new();
        if count == 0 {
            for field in &self.fields {
                texts.push(&**field);
                texts.push(read_text(&self.data, &mut at)?);
            }
        } else {
            for _ in 0..count {
                texts.push(read_text(&self.data, &mut at)?);
            }
        }
        Some(Found { id: StreamId { ms, seq }, texts, begin, end: at })
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Found<'_>> {
        let mut at = 0;
        std::iter::from_fn(move || {
            let found = self.at(at)?;
            at = found.end;
            Some(found)
        })
    }

    pub(super) fn remove(&mut self, id: StreamId) -> bool {
        let Some(found) = self.iter().find(|found| found.id >= id).filter(|found| found.id == id)
        else {
            return false;
        };
        let place = found.begin..found.end;
        self.data.drain(place);
        self.live -= 1;
        self.deleted += 1;
        if self.last == id {
            self.last = self.iter().last().map_or(id, |found| found.id);
        }
        true
    }
}
