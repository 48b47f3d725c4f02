//! Rows of garbage: what nothing names any more, and what must be looked at again some day.

use bytes::Bytes;
use lazuli_engine::{BlockId, Result};

use super::codec::{Reader, Writer, damaged};

/// What a row of garbage says.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Garbage {
    /// A content whose pieces are to be taken apart.
    Content(u64),
    /// Files, and cells, to be removed.
    Files(Vec<BlockId>),
    /// Blocks that no commit has named.
    Session(u64),
    /// Of a page blob: former pieces of this content may be needed by no state any more.
    Former(u64),
    /// From this time on something of the blob may be over: a retention, an expiry, a copy.
    Due(u64),
    /// From this time on the blocks of a session may have waited too long.
    Idle { session: u64, due_ms: u64 },
}

impl Garbage {
    pub(super) fn encode(&self) -> Bytes {
        let mut to = Writer::new();
        let mut numbers = |kind: u8, numbers: &[u64]| {
            to.u8(kind);
            for number in numbers {
                to.u64(*number);
            }
        };
        match self {
            Self::Content(id) => numbers(1, &[*id]),
            Self::Files(files) => {
                numbers(2, &[]);
                for file in files {
                    to.u64(file.generation);
                    to.u64(file.number);
                }
            }
            Self::Session(session) => numbers(3, &[*session]),
            Self::Former(content) => numbers(4, &[*content]),
            Self::Due(ms) => numbers(5, &[*ms]),
            Self::Idle { session, due_ms } => numbers(6, &[*session, *due_ms]),
        }
        to.finish()
    }

    pub(super) fn decode(bytes: Bytes) -> Result<Self> {
        let mut from = Reader::new(bytes);
        Ok(match from.u8()? {
            1 => Self::Content(from.u64()?),
            2 => {
                let mut files = Vec::new();
                while !from.is_empty() {
                    files.push(BlockId { generation: from.u64()?, number: from.u64()? });
                }
                Self::Files(files)
            }
            3 => Self::Session(from.u64()?),
            4 => Self::Former(from.u64()?),
            5 => Self::Due(from.u64()?),
            6 => Self::Idle { session: from.u64()?, due_ms: from.u64()? },
            _ => return Err(damaged()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn garbage_survives_its_row_and_damage_is_an_error() {
        let file = |number| BlockId { generation: 1, number };
        for garbage in [
            Garbage::Content(1),
            Garbage::Files(vec![file(2), file(3)]),
            Garbage::Session(4),
            Garbage::Former(5),
            Garbage::Due(6),
            Garbage::Idle { session: 7, due_ms: 8 },
        ] {
            let row = garbage.encode();
            assert_eq!(Garbage::decode(row.clone()).unwrap(), garbage);
            assert!(Garbage::decode(row.slice(..row.len() - 1)).is_err());
        }
        assert!(Garbage::decode(Bytes::from_static(&[9])).is_err());
    }
}
