//! Where a fragment is: how the keys of its rows are made.

use bytes::Bytes;
use lazuli_engine::{
    ContainerId, Direction, Error, ItemKey, KeyRange, PREFIX_BYTES, Result, Space, View, after_key,
};
use lazuli_shardmap::record::{Record, decode};

use crate::BusReason;
use crate::rows::{Body, Line, Stored, numbered};

pub(crate) const FORWARD: Direction = Direction::Forward;

// Kinds of rows in BUS_ROWS.
const STATE: u8 = b'F';
const ENTITY: u8 = b'C';
const SUBSCRIPTION: u8 = b'S';
const LINE: u8 = b'L';
const OWNERS: u8 = b'B';
const SESSION_STATE: u8 = b'T';
const WATERMARK: u8 = b'W';
// Kinds of rows in BUS_ORDER.
const RETURNED: u8 = b'R';
const SESSION_ORDER: u8 = b'S';
const READY: u8 = b'N';

/// Where a fragment is: how its keys are made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) container: ContainerId,
    pub(crate) route: Bytes,
    pub(crate) fragment: u16,
}

impl Place {
    pub(crate) fn key(&self, space: Space, row: &[u8]) -> ItemKey {
        ItemKey::new(self.container, space, &self.route, row)
    }

    fn row(&self, kind: u8, rest: &[u8]) -> ItemKey {
        self.key(Space::BUS_ROWS, &[&[kind], rest].concat())
    }

    pub(crate) fn state(&self) -> ItemKey {
        self.row(STATE, &[])
    }

    pub(crate) fn entity(&self) -> ItemKey {
        self.row(ENTITY, &[])
    }

    pub(crate) fn subscription(&self, number: u32) -> ItemKey {
        self.row(SUBSCRIPTION, &number.to_be_bytes())
    }

    pub(crate) fn line(&self, line: Line) -> ItemKey {
        self.row(LINE, &line.bytes())
    }

    pub(crate) fn session_state(&self, line: Line, session: &str) -> ItemKey {
        self.row(SESSION_STATE, &[&line.bytes()[..], session.as_bytes()].concat())
    }

    /// The last number that came here from a line of another fragment.
    pub(crate) fn watermark(&self, source: &[u8]) -> ItemKey {
        self.row(WATERMARK, source)
    }

    pub(crate) fn owners(&self, number: u64) -> ItemKey {
        self.row(OWNERS, &number.to_be_bytes())
    }

    pub(crate) fn message(&self, line: Line, number: u64) -> ItemKey {
        self.key(Space::BUS_MESSAGES, &numbered(line, number))
    }

    pub(crate) fn delivery(&self, line: Line, number: u64) -> ItemKey {
        self.key(Space::BUS_DELIVERIES, &numbered(line, number))
    }

    pub(crate) fn body(&self, number: u64) -> ItemKey {
        self.key(Space::BUS_BODIES, &number.to_be_bytes())
    }

    pub(crate) fn session(&self, line: Line, session: &str) -> ItemKey {
        self.key(Space::BUS_SESSIONS, &[&line.bytes()[..], session.as_bytes()].concat())
    }

    pub(crate) fn returned(&self, line: Line, number: u64) -> ItemKey {
        let row = [&line.bytes()[..], &[RETURNED], &number.to_be_bytes()].concat();
        self.key(Space::BUS_ORDER, &row)
    }

    pub(crate) fn session_order(&self, line: Line, session: &str, number: u64) -> ItemKey {
        // The length in front keeps apart sessions of which one begins like another.
        let length = u16::try_from(session.len()).unwrap_or(u16::MAX).to_be_bytes();
        let row = [
            &line.bytes()[..],
            &[SESSION_ORDER],
            &length,
            session.as_bytes(),
            &number.to_be_bytes(),
        ];
        self.key(Space::BUS_ORDER, &row.concat())
    }

    pub(crate) fn ready(&self, line: Line, number: u64) -> ItemKey {
        let row = [&line.bytes()[..], &[READY], &number.to_be_bytes()].concat();
        self.key(Space::BUS_ORDER, &row)
    }

    pub(crate) fn seen(&self, message_id: &str) -> ItemKey {
        self.key(Space::BUS_SEEN, message_id.as_bytes())
    }

    /// All keys of a space from one to another of the same shape, as `route | row key`; the last one included.
    pub(crate) fn between(first: &ItemKey, last: &ItemKey) -> KeyRange {
        let bare = |key: &ItemKey| key.bytes().slice(PREFIX_BYTES..);
        KeyRange::new(bare(first), Some(after_key(&bare(last))))
    }

    pub(crate) fn messages(&self, line: Line, from: u64) -> KeyRange {
        Self::between(&self.message(line, from), &self.message(line, u64::MAX))
    }

    pub(crate) async fn get<T: Record>(&self, view: &View, key: &ItemKey) -> Result<Option<T>> {
        view.get(key).await?.map(|item| decode(item.payload)).transpose()
    }

    pub(crate) async fn body_in(&self, view: &View, stored: &Stored) -> Result<Bytes> {
        match &stored.body {
            Body::Inline(body) => Ok(body.clone()),
            Body::Apart { at, .. } => {
                let found = view.get(&self.body(*at)).await?;
                found.map(|item| item.payload).ok_or_else(body_lost)
            }
        }
    }
}

pub(crate) fn body_lost() -> Error {
    Error::corrupt("bus-body-lost", "what a message says is not where it should be")
}

pub(crate) fn not_found() -> Error {
    Error::not_found(BusReason::EntityNotFound, "there is no such entity")
}
