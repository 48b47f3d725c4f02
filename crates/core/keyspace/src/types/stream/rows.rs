//! The rows of a stream: one for the stream, and one for each entry, group, consumer and pending entry.

use super::super::log::Unlogged;
use super::group::{GroupLog, Pending};
use super::{Group, Stream, StreamId};
use crate::value::BadRow;

const CONSUMER: u8 = b'c';
const ENTRY: u8 = b'e';
const GROUP: u8 = b'g';
pub(super) const HEADER: [u8; 1] = [b'h'];
const PENDING: u8 = b'p';

pub(super) fn entry(id: StreamId) -> Vec<u8> {
    let mut row = vec![ENTRY];
    row.extend_from_slice(&id.to_bytes());
    row
}

/// Every text behind its length.
pub(super) fn entry_value(texts: &[&[u8]]) -> Vec<u8> {
    let mut value = Vec::new();
    for text in texts {
        value.extend_from_slice(&(text.len() as u32).to_be_bytes());
        value.extend_from_slice(text);
    }
    value
}

pub(super) fn header_value(stream: &Stream) -> Vec<u8> {
    let mut value = stream.last_id.to_bytes().to_vec();
    value.extend_from_slice(&stream.max_deleted_id.to_bytes());
    value.extend_from_slice(&stream.entries_added.to_be_bytes());
    value
}

pub(super) fn group(name: &[u8]) -> Vec<u8> {
    let mut row = vec![GROUP];
    row.extend_from_slice(name);
    row
}

/// Where it is, and the number of entries read plus one, 0 if that is not known.
pub(super) fn group_value(group: &Group) -> Vec<u8> {
    let mut value = group.last_id.to_bytes().to_vec();
    let read = group.entries_read.map_or(0, |read| read + 1);
    value.extend_from_slice(&read.to_be_bytes());
    value
}

fn of_group(tag: u8, group: &[u8]) -> Vec<u8> {
    let mut row = vec![tag];
    row.extend_from_slice(&(group.len() as u32).to_be_bytes());
    row.extend_from_slice(group);
    row
}

pub(super) fn consumer(group: &[u8], name: &[u8]) -> Vec<u8> {
    let mut row = of_group(CONSUMER, group);
    row.extend_from_slice(name);
    row
}

pub(super) fn pending(group: &[u8], id: StreamId) -> Vec<u8> {
    let mut row = of_group(PENDING, group);
    row.extend_from_slice(&id.to_bytes());
    row
}

pub(super) fn pending_value(pending: &Pending) -> Vec<u8> {
    let mut value = pending.delivered_ms.to_be_bytes().to_vec();
    value.extend_from_slice(&pending.deliveries.to_be_bytes());
    value.extend_from_slice(&pending.consumer);
    value
}

fn id_of(bytes: &[u8]) -> Result<(StreamId, &[u8]), BadRow> {
    let (id, rest) = bytes.split_first_chunk::<16>().ok_or(BadRow)?;
    Ok((StreamId::from_bytes(*id), rest))
}

fn number_of(bytes: &[u8]) -> Result<(u64, &[u8]), BadRow> {
    let (number, rest) = bytes.split_first_chunk::<8>().ok_or(BadRow)?;
    Ok((u64::from_be_bytes(*number), rest))
}

fn text_of(bytes: &[u8]) -> Result<(&[u8], &[u8]), BadRow> {
    let (length, rest) = bytes.split_first_chunk::<4>().ok_or(BadRow)?;
    let length = u32::from_be_bytes(*length) as usize;
    rest.split_at_checked(length).ok_or(BadRow)
}

impl Stream {
    pub fn rows(&self, visit: &mut dyn FnMut(&[u8], &[u8])) {
        visit(&HEADER, &header_value(self));
        self.range(StreamId::MIN, StreamId::MAX, false, &mut |id, texts| {
            visit(&entry(id), &entry_value(texts));
            true
        });
        for (name, group) in &self.groups {
            group.each_row(name, visit);
        }
    }

    /// Takes a row. Rows come in the order of their elements.
    pub fn load(&mut self, element: &[u8], value: &[u8]) -> Result<(), BadRow> {
        let mut off = Unlogged;
        let (tag, rest) = element.split_first().ok_or(BadRow)?;
        match *tag {
            b'h' => {
                let (last_id, value) = id_of(value)?;
                let (max_deleted_id, value) = id_of(value)?;
                self.entries_added = number_of(value)?.0;
                (self.last_id, self.max_deleted_id) = (last_id, max_deleted_id);
            }
            ENTRY => {
                let (id, _) = id_of(rest)?;
                if self.len > 0 && id <= self.top_id() {
                    return Err(BadRow);
                }
                let (mut texts, mut value) = (Vec::new(), value);
                while !value.is_empty() {
                    let (text, behind) = text_of(value)?;
                    texts.push(text);
                    value = behind;
                }
                self.append(id, &texts);
            }
            GROUP => {
                let (id, value) = id_of(value)?;
                let read = number_of(value)?.0.checked_sub(1);
                let group = self.groups.entry(rest.to_vec()).or_default();
                group.set_position(id, read, &mut GroupLog::new(rest, &mut off));
            }
            CONSUMER => {
                let (name, consumer) = text_of(rest)?;
                let seen_ms = number_of(value)?.0;
                let group = self.groups.entry(name.to_vec()).or_default();
                group.see(consumer, seen_ms, &mut GroupLog::new(name, &mut off));
            }
            PENDING => {
                let (name, id) = text_of(rest)?;
                let (id, _) = id_of(id)?;
                let (delivered_ms, value) = number_of(value)?;
                let (deliveries, consumer) = number_of(value)?;
                let group = self.groups.get_mut(name).ok_or(BadRow)?;
                let log = &mut GroupLog::new(name, &mut off);
                group.give(id, consumer, delivered_ms, deliveries, log);
            }
            _ => return Err(BadRow),
        }
        Ok(())
    }
}
