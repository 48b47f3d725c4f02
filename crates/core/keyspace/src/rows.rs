//! What commands changed, as rows for the store, in the order in which it took effect.
//!
//! Each database has an id, which is another one after it has been cleared. A key is one row, its head, with type, expiry and,
//! for strings, the value; each element of a collection is a row of its own under the key and the generation that the head
//! names. So deleting or replacing a key of any size changes one row: elements of other generations are garbage, which is
//! deleted later.

/// One changed row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Row<'b> {
    /// The key is this from now on.
    Head {
        database: u32,
        key: &'b [u8],
        head: &'b [u8],
    },
    /// The key is gone.
    Gone {
        database: u32,
        key: &'b [u8],
    },
    Element {
        database: u32,
        key: &'b [u8],
        generation: u64,
        element: &'b [u8],
        row: &'b [u8],
    },
    ElementGone {
        database: u32,
        key: &'b [u8],
        generation: u64,
        element: &'b [u8],
    },
    /// Nothing refers to the elements of this generation any more.
    Garbage {
        database: u32,
        key: &'b [u8],
        generation: u64,
    },
    /// Nothing refers to the rows of this database any more.
    GarbageDatabase {
        database: u32,
    },
    /// A library of functions is this from now on; it is gone if it has no code.
    Library {
        name: &'b [u8],
        code: &'b [u8],
    },
    /// The databases of all numbers, four bytes each.
    Numbers {
        numbers: &'b [u8],
    },
    /// The end of a command or transaction: what stands in front of it is written together.
    End,
}

const HEAD: u8 = 1;
const GONE: u8 = 2;
const ELEMENT: u8 = 3;
const ELEMENT_GONE: u8 = 4;
const GARBAGE: u8 = 5;
const GARBAGE_DATABASE: u8 = 6;
const NUMBERS: u8 = 7;
const END: u8 = 8;
const LIBRARY: u8 = 9;

/// What is put behind the rows of a command or transaction.
pub(crate) const END_BYTES: &[u8] = &[END];

/// Rows in one buffer. Without persistence nothing is put into it.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    pub(crate) is_on: bool,
    pub(crate) bytes: Vec<u8>,
}

impl Rows {
    pub(crate) fn push(&mut self, row: Row<'_>) {
        if !self.is_on {
            return;
        }
        match row {
            Row::Head { database, key, head } => self.write(HEAD, database, 0, &[key, head]),
            Row::Gone { database, key } => self.write(GONE, database, 0, &[key]),
            Row::Element { database, key, generation, element, row } => {
                self.write(ELEMENT, database, generation, &[key, element, row]);
            }
            Row::ElementGone { database, key, generation, element } => {
                self.write(ELEMENT_GONE, database, generation, &[key, element]);
            }
            Row::Garbage { database, key, generation } => {
                self.write(GARBAGE, database, generation, &[key]);
            }
            Row::GarbageDatabase { database } => {
                self.write(GARBAGE_DATABASE, database, 0, &[]);
            }
            Row::Library { name, code } => self.write(LIBRARY, 0, 0, &[name, code]),
            Row::Numbers { numbers } => self.write(NUMBERS, 0, 0, &[numbers]),
            Row::End => self.bytes.extend_from_slice(END_BYTES),
        }
    }

    fn write(&mut self, tag: u8, database: u32, generation: u64, parts: &[&[u8]]) {
        self.bytes.push(tag);
        self.bytes.extend_from_slice(&database.to_le_bytes());
        self.bytes.extend_from_slice(&generation.to_le_bytes());
        for part in parts {
            self.bytes.extend_from_slice(&(part.len() as u32).to_le_bytes());
            self.bytes.extend_from_slice(part);
        }
    }
}

/// Reads the rows of a buffer back. The buffer never leaves the process: it is whole.
pub(crate) fn read(mut bytes: &[u8]) -> impl Iterator<Item = Row<'_>> {
    std::iter::from_fn(move || {
        let (&tag, rest) = bytes.split_first()?;
        if tag == END {
            bytes = rest;
            return Some(Row::End);
        }
        let (database, rest) = rest.split_first_chunk::<4>()?;
        let database = u32::from_le_bytes(*database);
        let (generation, mut rest) = rest.split_first_chunk::<8>()?;
        let generation = u64::from_le_bytes(*generation);
        let mut part = || {
            let (length, after) = rest.split_first_chunk::<4>()?;
            let (part, after) = after.split_at_checked(u32::from_le_bytes(*length) as usize)?;
            rest = after;
            Some(part)
        };
        let row = match tag {
            HEAD => Row::Head { database, key: part()?, head: part()? },
            GONE => Row::Gone { database, key: part()? },
            ELEMENT => {
                let (key, element, row) = (part()?, part()?, part()?);
                Row::Element { database, key, generation, element, row }
            }
            ELEMENT_GONE => {
                let (key, element) = (part()?, part()?);
                Row::ElementGone { database, key, generation, element }
            }
            GARBAGE => Row::Garbage { database, key: part()?, generation },
            GARBAGE_DATABASE => Row::GarbageDatabase { database },
            NUMBERS => Row::Numbers { numbers: part()? },
            LIBRARY => Row::Library { name: part()?, code: part()? },
            _ => return None,
        };
        bytes = rest;
        Some(row)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_read_as_they_were_written() {
        let all = [
            Row::Head { database: 1, key: b"k", head: b"head" },
            Row::Element { database: 0, key: b"", generation: 9, element: b"e", row: b"" },
            Row::ElementGone { database: 2, key: b"k", generation: 8, element: b"e" },
            Row::Garbage { database: 3, key: b"k", generation: 7 },
            Row::Gone { database: 4, key: b"k" },
            Row::GarbageDatabase { database: 5 },
            Row::End,
            Row::Numbers { numbers: &[1, 0] },
            Row::Library { name: b"lib", code: b"" },
        ];
        let mut rows = Rows { is_on: true, bytes: Vec::new() };
        all.iter().for_each(|row| rows.push(*row));
        assert_eq!(read(&rows.bytes).collect::<Vec<_>>(), all);
    }
}
