//! The rows of a queue, byte by byte. `docs/formats/queue.md` draws them.

use std::fmt;
use std::str::FromStr;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use lazuli_engine::{Error, Item, Lsn, Result};

const FORMAT: u8 = 1;
/// Set if what the message says is in a row of its own.
const FLAG_APART: u8 = 1;
/// Stands for "never" where a time of expiry is expected.
const NEVER: u64 = u64::MAX;

fn damaged(what: &str) -> Error {
    Error::corrupt("bad-queue-row", format!("{what} does not decode"))
}

/// A place in the order of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Position {
    pub(super) visible_ms: u64,
    pub(super) number: u64,
}

impl Position {
    /// The first place at a time.
    pub(super) fn at(visible_ms: u64) -> Self {
        Self { visible_ms, number: 0 }
    }

    /// The next place behind this one.
    pub(super) fn next(self) -> Self {
        match self.number.checked_add(1) {
            Some(number) => Self { visible_ms: self.visible_ms, number },
            None => Self::at(self.visible_ms.saturating_add(1)),
        }
    }
}

pub(super) fn message_row(line: u64, number: u64) -> [u8; 16] {
    let mut row = [0; 16];
    row[..8].copy_from_slice(&line.to_be_bytes());
    row[8..].copy_from_slice(&number.to_be_bytes());
    row
}

/// Line and number of the row of a message.
pub(super) fn split_message_row(row: &[u8]) -> Result<(u64, u64)> {
    let mut row = row;
    if row.len() != 16 {
        return Err(damaged("the key of a message"));
    }
    Ok((row.get_u64(), row.get_u64()))
}

/// The line that a row of a doomed one is about.
pub(super) fn split_line_row(row: &[u8]) -> Result<u64> {
    row.try_into().map(u64::from_be_bytes).map_err(|_| damaged("the key of a doomed line"))
}

pub(super) fn order_row(line: u64, position: Position) -> [u8; 24] {
    let mut row = [0; 24];
    row[..8].copy_from_slice(&line.to_be_bytes());
    row[8..16].copy_from_slice(&position.visible_ms.to_be_bytes());
    row[16..].copy_from_slice(&position.number.to_be_bytes());
    row
}

/// A message in the order of its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) position: Position,
    pub(super) expires_ms: Option<u64>,
}

impl Entry {
    /// From a whole stored key, whose last part is the position, and its payload.
    pub(super) fn decode(key: &[u8], mut payload: Bytes) -> Result<Self> {
        let Some((_, mut place)) =
            key.split_last_chunk::<16>().map(|(rest, last)| (rest, &last[..]))
        else {
            return Err(damaged("the key of an entry of the order"));
        };
        if payload.len() != 8 {
            return Err(damaged("an entry of the order"));
        }
        let position = Position { visible_ms: place.get_u64(), number: place.get_u64() };
        Ok(Self { position, expires_ms: Some(payload.get_u64()).filter(|&time| time != NEVER) })
    }

    /// The item that stands for it, to be removed unread: its version does not matter then.
    pub(super) fn item(expires_ms: Option<u64>) -> Item {
        Item {
            version: Lsn::ZERO,
            expires_ms: None,
            written_ms: None,
            payload: Self::payload(expires_ms),
        }
    }

    pub(super) fn payload(expires_ms: Option<u64>) -> Bytes {
        Bytes::copy_from_slice(&expires_ms.unwrap_or(NEVER).to_be_bytes())
    }

    pub(super) fn is_expired(&self, now_ms: u64) -> bool {
        self.expires_ms.is_some_and(|expires_ms| expires_ms <= now_ms)
    }
}

/// What changes with every message that comes or goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct QueueState {
    /// Which run of messages is the queue's. Another one begins when the queue is created and when it is cleared.
    pub(super) line: u64,
    /// See [`super::MessageId`].
    pub(super) salt: u64,
    /// The number of the next message.
    pub(super) next: u64,
    /// The messages that were put and neither deleted nor, having expired, swept away.
    pub(super) count: u64,
    /// No message that anybody may see stands before this place.
    pub(super) head: Position,
    /// No row ever stood in the order at or behind this time.
    pub(super) end_ms: u64,
}

impl QueueState {
    const BYTES: usize = 57;

    /// Takes note of a message at a new place.
    pub(super) fn placed(&mut self, position: Position) {
        self.head = self.head.min(position);
        self.end_ms = self.end_ms.max(position.visible_ms.saturating_add(1));
    }

    pub(super) fn encode(&self) -> Bytes {
        let mut bytes = BytesMut::with_capacity(Self::BYTES);
        bytes.put_u8(FORMAT);
        let Self { line, salt, next, count, head, end_ms } = *self;
        for number in [line, salt, next, count, head.visible_ms, head.number, end_ms] {
            bytes.put_u64(number);
        }
        bytes.freeze()
    }

    pub(super) fn decode(mut bytes: Bytes) -> Result<Self> {
        if bytes.len() != Self::BYTES || bytes.get_u8() != FORMAT {
            return Err(damaged("the state of a queue"));
        }
        Ok(Self {
            line: bytes.get_u64(),
            salt: bytes.get_u64(),
            next: bytes.get_u64(),
            count: bytes.get_u64(),
            head: Position { visible_ms: bytes.get_u64(), number: bytes.get_u64() },
            end_ms: bytes.get_u64(),
        })
    }
}

/// A message as its row has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stored {
    pub(super) inserted_ms: u64,
    /// Where it stands in the order.
    pub(super) visible_ms: u64,
    pub(super) dequeues: u32,
    /// What it says, or none if that is in a row of its own.
    pub(super) content: Option<Bytes>,
}

impl Stored {
    const HEAD_BYTES: usize = 22;

    pub(super) fn encode(&self) -> Bytes {
        let content = self.content.as_deref().unwrap_or_default();
        let mut bytes = BytesMut::with_capacity(Self::HEAD_BYTES + content.len());
        bytes.put_u8(FORMAT);
        bytes.put_u8(if self.content.is_none() { FLAG_APART } else { 0 });
        bytes.put_u64(self.inserted_ms);
        bytes.put_u64(self.visible_ms);
        bytes.put_u32(self.dequeues);
        bytes.put_slice(content);
        bytes.freeze()
    }

    pub(super) fn decode(mut bytes: Bytes) -> Result<Self> {
        let bad = || damaged("a message");
        if bytes.len() < Self::HEAD_BYTES || bytes.get_u8() != FORMAT {
            return Err(bad());
        }
        let is_apart = match bytes.get_u8() {
            0 => false,
            FLAG_APART => true,
            _ => return Err(bad()),
        };
        let (inserted_ms, visible_ms) = (bytes.get_u64(), bytes.get_u64());
        let dequeues = bytes.get_u32();
        if is_apart && !bytes.is_empty() {
            return Err(bad());
        }
        let content = (!is_apart).then_some(bytes);
        Ok(Self { inserted_ms, visible_ms, dequeues, content })
    }
}

/// The name of a message: which queue's it is, and its number there. Prints as a UUID does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageId {
    /// Drawn when the queue was created, so that messages of different queues have different names.
    pub(super) salt: u64,
    pub(super) number: u64,
}

/// The right to a message: which one, and the write that gave the right. The next write of the message ends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Receipt {
    pub(super) number: u64,
    pub(super) version: Lsn,
}

impl Receipt {
    /// The number of the write that gave the right.
    pub fn version(self) -> Lsn {
        self.version
    }
}

/// The text is none that was given out here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotOurs;

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (salt, number) = (self.salt, self.number);
        write!(
            f,
            "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
            salt >> 32,
            (salt >> 16) & 0xffff,
            salt & 0xffff,
            number >> 48,
            number & 0xffff_ffff_ffff
        )
    }
}

impl FromStr for MessageId {
    type Err = NotOurs;

    fn from_str(text: &str) -> Result<Self, NotOurs> {
        let dashes = [8, 13, 18, 23];
        let is_shaped = text.len() == 36
            && text.bytes().enumerate().all(|(at, byte)| (byte == b'-') == dashes.contains(&at));
        if !is_shaped {
            return Err(NotOurs);
        }
        let (salt, number) = halves(&text.replace('-', ""))?;
        Ok(Self { salt, number })
    }
}

impl fmt::Display for Receipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}{:016x}", self.number, self.version.0)
    }
}

impl FromStr for Receipt {
    type Err = NotOurs;

    fn from_str(text: &str) -> Result<Self, NotOurs> {
        let (number, version) = halves(text)?;
        Ok(Self { number, version: Lsn(version) })
    }
}

/// Two numbers of sixteen hexadecimal digits each.
fn halves(digits: &str) -> Result<(u64, u64), NotOurs> {
    // The length is checked first, and every byte is a digit, so that the cut is between two characters.
    if digits.len() != 32 || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(NotOurs);
    }
    let (first, second) = digits.split_at(16);
    let number = |digits| u64::from_str_radix(digits, 16).map_err(|_| NotOurs);
    Ok((number(first)?, number(second)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_survive_their_bytes_and_damage_is_corrupt() {
        let head = Position { visible_ms: 5, number: 6 };
        let state = QueueState { line: 1, salt: 2, next: 3, count: 4, head, end_ms: 7 };
        let row = state.encode();
        assert_eq!(QueueState::decode(row.clone()).unwrap(), state);
        for length in 0..row.len() {
            assert!(QueueState::decode(row.slice(..length)).is_err());
        }
        for content in [None, Some(Bytes::new()), Some("text".into())] {
            let stored = Stored { inserted_ms: 1, visible_ms: 2, dequeues: 3, content };
            let row = stored.encode();
            assert_eq!(Stored::decode(row.clone()).unwrap(), stored);
            for length in 0..Stored::HEAD_BYTES {
                assert!(Stored::decode(row.slice(..length)).is_err());
            }
        }
        assert!(Stored::decode(Bytes::from_static(&[1; 23])).is_err());
        assert!(Entry::decode(&[0; 15], Entry::payload(None)).is_err());
        assert!(Entry::decode(&[0; 24], Bytes::new()).is_err());
        assert!(split_message_row(&[0; 15]).is_err());
    }

    #[test]
    fn an_entry_is_found_at_the_end_of_its_key() {
        let position = Position { visible_ms: 8, number: 9 };
        let key = [b"route".as_slice(), &order_row(1, position)].concat();
        for expires_ms in [None, Some(77)] {
            let entry = Entry::decode(&key, Entry::payload(expires_ms)).unwrap();
            assert_eq!(entry, Entry { position, expires_ms });
        }
    }

    #[test]
    fn places_are_ordered_by_time_then_number() {
        let place = |visible_ms, number| Position { visible_ms, number };
        assert!(place(1, 9) < place(2, 0));
        assert_eq!(place(1, 9).next(), place(1, 10));
        assert_eq!(place(1, u64::MAX).next(), place(2, 0));
        let mut state =
            QueueState { line: 0, salt: 0, next: 0, count: 0, head: place(5, 5), end_ms: 4 };
        state.placed(place(6, 1));
        assert_eq!((state.head, state.end_ms), (place(5, 5), 7));
        state.placed(place(5, 1));
        assert_eq!((state.head, state.end_ms), (place(5, 1), 7));
    }

    #[test]
    fn a_name_survives_its_text() {
        let id = MessageId { salt: 0x0123_4567_89ab_cdef, number: 0x00ff_0000_0000_0042 };
        assert_eq!(id.to_string(), "01234567-89ab-cdef-00ff-000000000042");
        assert_eq!(id.to_string().parse(), Ok(id));
        let receipt = Receipt { number: 7, version: Lsn(9) };
        assert_eq!(receipt.to_string().parse(), Ok(receipt));
    }

    #[test]
    fn any_other_text_is_refused() {
        let texts = ["", "1", "é".repeat(16).as_str(), "+1234567-89ab-cdef-00ff-000000000042"]
            .map(str::to_owned);
        for text in texts {
            assert_eq!(text.parse::<MessageId>(), Err(NotOurs), "{text}");
            assert_eq!(text.parse::<Receipt>(), Err(NotOurs), "{text}");
        }
        assert!("0123456789ab-cdef-00ff-000000000042-01".parse::<MessageId>().is_err());
    }
}
