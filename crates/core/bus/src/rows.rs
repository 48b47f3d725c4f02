//! The rows of a fragment, byte by byte. `docs/formats/bus.md` draws them.

use bytes::{BufMut, Bytes, BytesMut};
use lazuli_engine::Result;
use lazuli_shardmap::record::Record;

use crate::filter::Value;
use crate::message::{Override, PropertyName, SystemProperty};
use crate::record::{choice, damaged, fields};

/// Which run of messages is meant: whose, and which of its queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Line {
    /// 0: the queue or topic itself; else the number of a subscription.
    pub(crate) owner: u32,
    pub(crate) part: Part,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Part {
    Main,
    DeadLetter,
    /// On their way to another entity.
    Transfer,
    TransferDeadLetter,
    Scheduled,
}

impl Part {
    pub(crate) const ALL: [Self; 5] =
        [Self::Main, Self::DeadLetter, Self::Transfer, Self::TransferDeadLetter, Self::Scheduled];

    fn byte(self) -> u8 {
        self as u8
    }
}

impl Line {
    pub(crate) const BYTES: usize = 5;

    pub(crate) fn new(owner: u32, part: Part) -> Self {
        Self { owner, part }
    }

    pub(crate) fn bytes(self) -> [u8; Self::BYTES] {
        let [a, b, c, d] = self.owner.to_be_bytes();
        [a, b, c, d, self.part.byte()]
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let Some((owner, [part])) = bytes.split_first_chunk::<4>() else {
            return Err(damaged("a line"));
        };
        let part = Part::ALL.get(usize::from(*part)).ok_or_else(|| damaged("a line"))?;
        Ok(Self { owner: u32::from_be_bytes(*owner), part: *part })
    }
}

/// `line | number`.
pub(crate) fn numbered(line: Line, number: u64) -> Vec<u8> {
    [&line.bytes()[..], &number.to_be_bytes()].concat()
}

/// Line and number of such a row.
pub(crate) fn split_numbered(row: &[u8]) -> Result<(Line, u64)> {
    let bad = || damaged("the key of a message");
    let (line, number) = row.split_at_checked(Line::BYTES).ok_or_else(bad)?;
    let number = number.try_into().map_err(|_| bad())?;
    Ok((Line::from_bytes(line)?, u64::from_be_bytes(number)))
}

/// The number at the end of a whole stored key.
pub(crate) fn number_of(key: &[u8]) -> Result<u64> {
    let number = key.last_chunk::<8>().ok_or_else(|| damaged("the key of a message"))?;
    Ok(u64::from_be_bytes(*number))
}

/// What changes with every message that comes or goes, for all lines of a fragment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FragmentState {
    /// The last number that was given out.
    pub(crate) last: u64,
    /// What all messages take up.
    pub(crate) bytes: u64,
    /// No timer is due before.
    pub(crate) timer_ms: u64,
    /// Which change of its entity the fragment knows.
    pub(crate) config: u64,
}

/// What changes with every message of one line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LineState {
    /// Every message from this number on waits, and was never delivered. Lines with sessions do not use it.
    pub(crate) head: u64,
    /// The messages of the line, in any state.
    pub(crate) count: u64,
    /// How many have an entry among those that came back.
    pub(crate) returned: u64,
    /// None of these entries is before this number.
    pub(crate) returned_head: u64,
    /// No session waits before this number.
    pub(crate) ready_head: u64,
    /// Grows whenever something can be received that could not before.
    pub(crate) wakes: u64,
}

/// A message as its row has it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Stored {
    pub(crate) enqueued_ms: u64,
    /// How long it lives, from when it is enqueued.
    pub(crate) lives_ms: Option<u64>,
    pub(crate) expires_ms: Option<u64>,
    pub(crate) scheduled_ms: Option<u64>,
    /// Its number where it was first sent to; 0 in a message that has none yet.
    pub(crate) origin: u64,
    /// How often it was forwarded.
    pub(crate) hops: u8,
    pub(crate) transfer: Transfer,
    pub(crate) message_id: Option<String>,
    pub(crate) session_id: Option<String>,
    pub(crate) partition_key: Option<String>,
    pub(crate) dead_letter_source: Option<String>,
    pub(crate) overrides: Vec<Override>,
    pub(crate) annotations: Bytes,
    pub(crate) body: Body,
}

/// Why a message is on its way to another entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transfer {
    None,
    Forward,
    DeadLetter,
}

/// What a message says, or where that is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Body {
    Inline(Bytes),
    /// The number of the row that has it, and its length.
    Apart {
        at: u64,
        bytes: u32,
    },
}

impl Stored {
    /// What it counts for in the size of the entity.
    pub(crate) fn size(&self) -> u64 {
        let body = match &self.body {
            Body::Inline(body) => body.len() as u64,
            Body::Apart { bytes, .. } => u64::from(*bytes),
        };
        body + self.annotations.len() as u64
    }

    /// The key by which a fragment is chosen.
    pub(crate) fn key(&self) -> Option<&str> {
        self.session_id.as_deref().or(self.partition_key.as_deref())
    }
}

/// That a message was delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DeliveryRow {
    pub(crate) state: DeliveryState,
    /// Whether it is deferred, also while it is locked.
    pub(crate) deferred: bool,
    pub(crate) until_ms: u64,
    /// The write that locked it.
    pub(crate) lock: u64,
    /// The lock of its session at that time; 0 if it has none.
    pub(crate) session: u64,
    /// How often it was delivered.
    pub(crate) count: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeliveryState {
    Locked,
    Waiting,
}

/// A session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SessionRow {
    /// The write that locked it; 0 if it is not locked.
    pub(crate) lock: u64,
    pub(crate) until_ms: u64,
    /// The next message for the receiver that holds the session.
    pub(crate) head: u64,
    /// No message of the session is before this number.
    pub(crate) low: u64,
    /// Its messages that are not deferred.
    pub(crate) count: u64,
    /// Its place among the sessions that wait for a receiver; 0 if it has none.
    pub(crate) ready: u64,
    pub(crate) state_ms: u64,
    pub(crate) has_state: bool,
}

impl SessionRow {
    pub(crate) fn is_locked(&self, now_ms: u64) -> bool {
        self.lock != 0 && self.until_ms > now_ms
    }
}

choice!(Transfer { None = 0, Forward = 1, DeadLetter = 2 });
choice!(DeliveryState { Locked = 1, Waiting = 2 });
choice!(SystemProperty {
    ContentType = 1,
    CorrelationId = 2,
    Label = 3,
    MessageId = 4,
    ReplyTo = 5,
    ReplyToSessionId = 6,
    SessionId = 7,
    To = 8,
    PartitionKey = 9,
});
fields!(FragmentState { last, bytes, timer_ms, config });
fields!(LineState { head, count, returned, returned_head, ready_head, wakes });
fields!(DeliveryRow { state, deferred, until_ms, lock, session, count });
fields!(SessionRow { lock, until_ms, head, low, count, ready, state_ms, has_state });
fields!(Override { name, value });
fields!(Stored {
    enqueued_ms,
    lives_ms,
    expires_ms,
    scheduled_ms,
    origin,
    hops,
    transfer,
    message_id,
    session_id,
    partition_key,
    dead_letter_source,
    overrides,
    annotations,
    body,
});

impl Record for Body {
    fn write(&self, out: &mut BytesMut) {
        match self {
            Self::Inline(body) => {
                out.put_u8(0);
                body.write(out);
            }
            Self::Apart { at, bytes } => {
                out.put_u8(1);
                at.write(out);
                bytes.write(out);
            }
        }
    }

    fn read(input: &mut Bytes) -> Result<Self> {
        match u8::read(input)? {
            0 => Bytes::read(input).map(Self::Inline),
            1 => Ok(Self::Apart { at: u64::read(input)?, bytes: u32::read(input)? }),
            _ => Err(damaged("the body of a message")),
        }
    }
}

impl Record for PropertyName {
    fn write(&self, out: &mut BytesMut) {
        match self {
            Self::System(property) => {
                out.put_u8(1);
                property.write(out);
            }
            Self::User(name) => {
                out.put_u8(2);
                name.write(out);
            }
        }
    }

    fn read(input: &mut Bytes) -> Result<Self> {
        match u8::read(input)? {
            1 => SystemProperty::read(input).map(Self::System),
            2 => String::read(input).map(Self::User),
            _ => Err(damaged("the name of a property")),
        }
    }
}

impl Record for Value {
    fn write(&self, out: &mut BytesMut) {
        match self {
            Self::Boolean(value) => {
                out.put_u8(1);
                value.write(out);
            }
            Self::Integer(value) => {
                out.put_u8(2);
                out.put_i64(*value);
            }
            Self::Double(value) => {
                out.put_u8(3);
                out.put_u64(value.to_bits());
            }
            Self::Text(value) => {
                out.put_u8(4);
                value.write(out);
            }
            Self::DateTime(value) => {
                out.put_u8(5);
                out.put_i64(*value);
            }
            Self::Duration(value) => {
                out.put_u8(6);
                out.put_i64(*value);
            }
            Self::Uuid(value) => {
                out.put_u8(7);
                out.put_slice(value);
            }
            Self::Binary(value) => {
                out.put_u8(8);
                Bytes::copy_from_slice(value).write(out);
            }
        }
    }

    fn read(input: &mut Bytes) -> Result<Self> {
        let number = |input: &mut Bytes| u64::read(input).map(u64::cast_signed);
        Ok(match u8::read(input)? {
            1 => Self::Boolean(bool::read(input)?),
            2 => Self::Integer(number(input)?),
            3 => Self::Double(f64::from_bits(u64::read(input)?)),
            4 => Self::Text(String::read(input)?),
            5 => Self::DateTime(number(input)?),
            6 => Self::Duration(number(input)?),
            7 => {
                let halves = (u64::read(input)?, u64::read(input)?);
                let number = u128::from(halves.0) << 64 | u128::from(halves.1);
                Self::Uuid(number.to_be_bytes())
            }
            8 => Self::Binary(Bytes::read(input)?.to_vec()),
            _ => return Err(damaged("the value of a property")),
        })
    }
}

#[cfg(test)]
mod tests {
    use lazuli_shardmap::record::{decode, encode};

    use super::*;

    #[test]
    fn a_message_survives_its_row_and_damage_is_an_error() {
        let values = [
            Value::Boolean(true),
            Value::Integer(-5),
            Value::Double(-0.5),
            Value::text("é"),
            Value::DateTime(-1),
            Value::Duration(7),
            Value::Uuid([9; 16]),
            Value::Binary(vec![1, 2]),
        ];
        let overrides = values
            .map(|value| Override { name: PropertyName::User("x".to_owned()), value: Some(value) });
        for body in [Body::Inline("body".into()), Body::Apart { at: 5, bytes: 6 }] {
            let stored = Stored {
                enqueued_ms: 1,
                lives_ms: Some(2),
                expires_ms: Some(3),
                scheduled_ms: None,
                origin: 4,
                hops: 1,
                transfer: Transfer::Forward,
                message_id: Some("m".to_owned()),
                session_id: None,
                partition_key: Some("k".to_owned()),
                dead_letter_source: None,
                overrides: overrides.to_vec(),
                annotations: "a".into(),
                body,
            };
            let row = encode(&stored);
            assert_eq!(decode::<Stored>(row.clone()).unwrap(), stored);
            for length in 0..row.len() {
                assert!(decode::<Stored>(row.slice(..length)).is_err());
            }
        }
    }

    #[test]
    fn keys_are_ordered_by_line_then_number() {
        let key = |owner, part, number| numbered(Line::new(owner, part), number);
        assert!(key(1, Part::Main, u64::MAX) < key(1, Part::DeadLetter, 0));
        assert!(key(1, Part::Scheduled, 5) < key(2, Part::Main, 0));
        let (line, number) = split_numbered(&key(7, Part::Transfer, 9)).unwrap();
        assert_eq!((line, number), (Line::new(7, Part::Transfer), 9));
        assert!(split_numbered(&[0; 12]).is_err());
        assert!(Line::from_bytes(&[0, 0, 0, 0, 9]).is_err());
    }
}
