//! A flat buffer of byte strings that can be walked from both ends: what small collections and the chunks of lists are.
//!
//! An entry is its length (7 bits a byte, low bits first, the high bit says that more follow), its bytes, and the size
//! of both with the same code but written backwards, so that the entry before any offset is found. There may be unused
//! room in front of the first entry, so that pushing to the front does not move the rest each time.

/// See the module.
#[derive(Debug, Clone, Default)]
pub struct Pack {
    buffer: Vec<u8>,
    /// Where the first entry begins.
    head: usize,
    count: usize,
}

/// The bytes that a number takes.
fn width(mut number: usize) -> usize {
    let mut width = 1;
    while number >= 0x80 {
        number >>= 7;
        width += 1;
    }
    width
}

fn write_number(out: &mut Vec<u8>, mut number: usize) {
    while number >= 0x80 {
        out.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Writes a number into exactly the bytes that it takes.
fn put_number(out: &mut [u8], mut number: usize) {
    for byte in out.iter_mut() {
        *byte = (number & 0x7f) as u8 | 0x80;
        number >>= 7;
    }
    if let Some(last) = out.last_mut() {
        *last &= 0x7f;
    }
}

/// The bytes of a whole entry.
fn entry_size(length: usize) -> usize {
    let front = width(length) + length;
    front + width(front)
}

fn write_entry(out: &mut Vec<u8>, bytes: &[u8]) {
    write_number(out, bytes.len());
    out.extend_from_slice(bytes);
    let front = width(bytes.len()) + bytes.len();
    let begin = out.len();
    write_number(out, front);
    out[begin..].reverse();
}

impl Pack {
    pub fn len(&self) -> usize {
        self.count
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Bytes of all entries with their lengths.
    pub fn bytes(&self) -> usize {
        self.buffer.len() - self.head
    }

    /// Bytes that one more entry would take.
    pub fn size_with(&self, length: usize) -> usize {
        self.bytes() + entry_size(length)
    }

    /// Where walking from the front begins.
    pub fn start(&self) -> usize {
        self.head
    }

    /// Where walking from the front ends.
    pub fn end(&self) -> usize {
        self.buffer.len()
    }

    /// The entry at an offset, and the offset of the one behind it.
    pub fn at(&self, offset: usize) -> Option<(&[u8], usize)> {
        let (mut length, mut shift, mut at) = (0_usize, 0, offset);
        loop {
            let byte = *self.buffer.get(at)?;
            at += 1;
            length |= usize::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                break;
            }
            shift += 7;
        }
        let bytes = self.buffer.get(at..at + length)?;
        let front = at - offset + length;
        Some((bytes, offset + front + width(front)))
    }

    /// The offset of the entry that ends at an offset.
    pub fn before(&self, end: usize) -> Option<usize> {
        if end <= self.head {
            return None;
        }
        let (mut front, mut shift, mut at) = (0_usize, 0, end);
        loop {
            at -= 1;
            let byte = self.buffer[at];
            front |= usize::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                break;
            }
            shift += 7;
        }
        Some(at - front)
    }

    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let mut at = self.head;
        std::iter::from_fn(move || {
            let (bytes, next) = self.at(at)?;
            at = next;
            Some(bytes)
        })
    }

    pub fn iter_back(&self) -> impl Iterator<Item = &[u8]> {
        let mut end = self.end();
        std::iter::from_fn(move || {
            end = self.before(end)?;
            self.at(end).map(|(bytes, _)| bytes)
        })
    }

    /// The offset of an entry by its number, walked to from the nearer end.
    pub fn offset_of(&self, index: usize) -> Option<usize> {
        if index >= self.count {
            return None;
        }
        if index <= self.count / 2 {
            let mut at = self.head;
            for _ in 0..index {
                at = self.at(at)?.1;
            }
            return Some(at);
        }
        let mut end = self.end();
        for _ in index..self.count {
            end = self.before(end)?;
        }
        Some(end)
    }

    pub fn get(&self, index: usize) -> Option<&[u8]> {
        self.at(self.offset_of(index)?).map(|(bytes, _)| bytes)
    }

    pub fn push_back(&mut self, bytes: &[u8]) {
        self.buffer.reserve(entry_size(bytes.len()));
        write_entry(&mut self.buffer, bytes);
        self.count += 1;
    }

    pub fn push_front(&mut self, bytes: &[u8]) {
        let size = entry_size(bytes.len());
        if self.head < size {
            // Room for as much again, so that the rest moves seldom.
            let room = size + self.bytes().min(4096);
            let mut buffer = Vec::with_capacity(room + self.bytes());
            buffer.resize(room, 0);
            buffer.extend_from_slice(&self.buffer[self.head..]);
            self.buffer = buffer;
            self.head = room;
        }
        self.head -= size;
        let body = self.head + width(bytes.len());
        put_number(&mut self.buffer[self.head..body], bytes.len());
        self.buffer[body..body + bytes.len()].copy_from_slice(bytes);
        let back = &mut self.buffer[body + bytes.len()..self.head + size];
        put_number(back, body + bytes.len() - self.head);
        back.reverse();
        self.count += 1;
    }

    /// Puts an entry before the one at an offset.
    pub fn insert_at(&mut self, offset: usize, bytes: &[u8]) {
        if offset == self.buffer.len() {
            return self.push_back(bytes);
        }
        let mut entry = Vec::with_capacity(entry_size(bytes.len()));
        write_entry(&mut entry, bytes);
        self.buffer.splice(offset..offset, entry);
        self.count += 1;
    }

    pub fn remove_at(&mut self, offset: usize) {
        let Some((_, next)) = self.at(offset) else { return };
        self.count -= 1;
        if offset == self.head {
            self.head = next;
            // The unused room is given back when it is the larger part.
            if self.head > self.buffer.len() / 2 {
                self.buffer.drain(..self.head);
                self.head = 0;
            }
        } else {
            self.buffer.drain(offset..next);
        }
        if self.buffer.capacity() > 256 && self.buffer.len() * 4 < self.buffer.capacity() {
            self.buffer.shrink_to(self.buffer.len() * 2);
        }
    }

    pub fn replace_at(&mut self, offset: usize, bytes: &[u8]) {
        let Some((old, next)) = self.at(offset) else { return };
        if old.len() == bytes.len() {
            let begin = offset + width(bytes.len());
            self.buffer[begin..begin + bytes.len()].copy_from_slice(bytes);
            return;
        }
        let mut entry = Vec::with_capacity(entry_size(bytes.len()));
        write_entry(&mut entry, bytes);
        self.buffer.splice(offset..next, entry);
    }

    pub fn pop_front(&mut self) -> Option<Vec<u8>> {
        let bytes = self.at(self.head)?.0.to_vec();
        self.remove_at(self.head);
        Some(bytes)
    }

    pub fn pop_back(&mut self) -> Option<Vec<u8>> {
        let offset = self.before(self.end())?;
        let bytes = self.at(offset)?.0.to_vec();
        self.remove_at(offset);
        Some(bytes)
    }

    /// Cuts off the entries from a number on.
    pub fn split_off(&mut self, index: usize) -> Pack {
        let offset = self.offset_of(index).unwrap_or(self.buffer.len());
        let rest = self.buffer.split_off(offset);
        let count = self.count - index.min(self.count);
        self.count -= count;
        Pack { buffer: rest, head: 0, count }
    }

    /// What the buffer takes in memory.
    pub fn capacity(&self) -> usize {
        self.buffer.capacity()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pack_is_a_deque_of_byte_strings() {
        let mut random = crate::types::table::tests::random(1);
        for _ in 0..300 {
            let mut pack = Pack::default();
            let mut model: Vec<Vec<u8>> = Vec::new();
            for _ in 0..60 {
                let length = [0, 1, 5, 100, 127, 128, 300, 17_000][(random() % 8) as usize];
                let bytes = vec![random() as u8; length];
                let index = random() as usize % (model.len() + 1);
                match random() % 8 {
                    0 => {
                        pack.push_back(&bytes);
                        model.push(bytes);
                    }
                    1 => {
                        pack.push_front(&bytes);
                        model.insert(0, bytes);
                    }
                    2 => {
                        let offset = pack.offset_of(index).unwrap_or(pack.end());
                        pack.insert_at(offset, &bytes);
                        model.insert(index, bytes);
                    }
                    3 if index < model.len() => {
                        pack.remove_at(pack.offset_of(index).unwrap());
                        model.remove(index);
                    }
                    4 if index < model.len() => {
                        pack.replace_at(pack.offset_of(index).unwrap(), &bytes);
                        model[index] = bytes;
                    }
                    5 => {
                        let expected = if model.is_empty() { None } else { Some(model.remove(0)) };
                        assert_eq!(pack.pop_front(), expected);
                    }
                    6 => assert_eq!(pack.pop_back(), model.pop()),
                    _ => {
                        let rest = pack.split_off(index);
                        let expected = model.split_off(index);
                        assert!(rest.iter().eq(expected.iter().map(Vec::as_slice)));
                        for bytes in expected {
                            pack.push_back(&bytes);
                            model.push(bytes);
                        }
                    }
                }
                assert_eq!(pack.len(), model.len());
                assert!(pack.iter().eq(model.iter().map(Vec::as_slice)));
                assert!(pack.iter_back().eq(model.iter().rev().map(Vec::as_slice)));
                for (index, bytes) in model.iter().enumerate() {
                    assert_eq!(pack.get(index), Some(bytes.as_slice()));
                }
            }
        }
    }
}
