//! How a move stands: what is durable beside the data, what is told to people while it runs, what is remembered of it.

use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use lazuli_shardmap::record::Record;
use lazuli_shardmap::{Move, MoveStage};
use lazuli_store::{Error, Result};

use crate::stats::Size;

pub(super) fn lock(status: &Mutex<MoveStatus>) -> MutexGuard<'_, MoveStatus> {
    status.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// What a move is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Waits for its turn, or until an operator resumes it.
    Waiting,
    Copying,
    CatchingUp,
    Verifying,
    Fenced,
    /// The partition has arrived; what it left behind is being deleted.
    Retiring,
    /// It was called off; what was copied is being deleted.
    CleaningUp,
}

impl Phase {
    /// What is durable when the leader has written something in this phase, as the name of a point.
    pub(super) fn written(self) -> &'static str {
        match self {
            Self::Waiting => "waited",
            Self::Copying => "copied a part",
            Self::CatchingUp => "caught up a part",
            Self::Verifying => "verified",
            Self::Fenced => "brought the rest",
            Self::Retiring => "retired a part",
            Self::CleaningUp => "cleaned a part",
        }
    }
}

/// A move as an operator sees it.
#[derive(Clone, Debug)]
pub struct MoveStatus {
    pub moving: Move,
    pub phase: Phase,
    /// Copied so far, and how much there was when the copy began.
    pub items: u64,
    pub bytes: u64,
    pub bytes_expected: u64,
    /// Bytes copied a second, by this engine.
    pub rate: u64,
    /// Changes that the last pass of catching up brought over.
    pub lag: u64,
    /// For how long writers would have to wait, judged by the last pass.
    pub pause_predicted: Option<Duration>,
    /// What kept it from going on, the last time.
    pub trouble: Option<Error>,
}

impl MoveStatus {
    pub(crate) fn at_rest(moving: Move) -> Self {
        let phase = match moving.stage {
            MoveStage::Copying => Phase::Waiting,
            MoveStage::Fenced => Phase::Fenced,
            MoveStage::Arrived => Phase::Retiring,
            MoveStage::Cancelled | MoveStage::Cleared => Phase::CleaningUp,
        };
        Self {
            moving,
            phase,
            items: 0,
            bytes: 0,
            bytes_expected: 0,
            rate: 0,
            lag: 0,
            pause_predicted: None,
            trouble: None,
        }
    }
}

/// What moves have done since the engine began.
#[derive(Clone, Copy, Debug, Default)]
pub struct MoveStats {
    pub under_way: usize,
    pub begun: u64,
    pub arrived: u64,
    pub cancelled: u64,
    /// How often a fence stood for too long and was taken down again.
    /// Of those that began, how many had all that was there handed over as it was kept.
    pub handed_over: u64,
    pub reopened: u64,
    /// Writes that had to wait for a fence.
    pub fenced_writes: u64,
    /// How often a move was given up for the moment and tried again.
    pub retries: u64,
    pub bytes: u64,
    pub pause_longest: Duration,
    pub pause_total: Duration,
}

/// How a move ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Arrived,
    Cancelled,
}

/// What is remembered of a move that is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished {
    pub moving: Move,
    pub outcome: Outcome,
    pub ended_ms: u64,
    /// For how long writers had to wait, if the engine that finished it knows.
    pub pause: Option<Duration>,
    pub bytes: u64,
}

impl Record for Finished {
    fn write(&self, out: &mut BytesMut) {
        self.moving.write(out);
        self.ended_ms.write(out);
        let pause = self.pause.map(|pause| u64::try_from(pause.as_micros()).unwrap_or(u64::MAX));
        pause.write(out);
        self.bytes.write(out);
    }

    fn read(input: &mut Bytes) -> Result<Self> {
        let moving = Move::read(input)?;
        let outcome = match moving.stage {
            MoveStage::Arrived => Outcome::Arrived,
            _ => Outcome::Cancelled,
        };
        let ended_ms = u64::read(input)?;
        let pause = Option::<u64>::read(input)?.map(Duration::from_micros);
        Ok(Self { moving, outcome, ended_ms, pause, bytes: u64::read(input)? })
    }
}

/// How far the data has come: the row `0 | PROGRESS | move` on the target, written in the same commits as the data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Progress {
    /// Whether the target has taken over all that the source held, as it was kept there.
    pub(crate) is_handed_over: bool,
    /// The last key that was copied, or found on the target after that; none before the first.
    pub(crate) copied_to: Bytes,
    pub(crate) is_copied: bool,
    /// Whether source and target were found equal after the copy.
    pub(crate) is_verified: bool,
    /// The last row of the space `MOVING` that was brought over.
    pub(crate) position: Bytes,
    /// What was copied, change records among it.
    pub(crate) items: u64,
    pub(crate) bytes: u64,
    /// What the target holds of the partition in rows, as figures of partitions are counted.
    pub(crate) held: Size,
}

const PROGRESS_FORMAT: u8 = 3;
/// Before anything was handed over.
const PROGRESS_FORMAT_2: u8 = 2;

impl Progress {
    /// Notes that a row of the target is replaced.
    pub(super) fn hold(&mut self, key_bytes: usize, old: Option<&Bytes>, new: Option<&Bytes>) {
        // A row that is taken away was counted when it came.
        if let Some(old) = old {
            self.held.items = self.held.items.saturating_sub(1);
            self.held.bytes = self.held.bytes.saturating_sub((key_bytes + old.len()) as u64);
        }
        if let Some(new) = new {
            self.held.items += 1;
            self.held.bytes += (key_bytes + new.len()) as u64;
        }
    }

    pub(crate) fn encode(&self) -> Bytes {
        let mut out = BytesMut::new();
        out.put_u8(PROGRESS_FORMAT);
        self.is_handed_over.write(&mut out);
        self.copied_to.write(&mut out);
        self.is_copied.write(&mut out);
        self.is_verified.write(&mut out);
        self.position.write(&mut out);
        self.items.write(&mut out);
        self.bytes.write(&mut out);
        self.held.items.write(&mut out);
        self.held.bytes.write(&mut out);
        out.freeze()
    }

    pub(crate) fn decode(mut row: Bytes) -> Result<Self> {
        let format = if row.is_empty() { 0 } else { row.get_u8() };
        let input = &mut row;
        let is_handed_over = match format {
            PROGRESS_FORMAT => bool::read(input)?,
            PROGRESS_FORMAT_2 => false,
            _ => {
                let message = "the progress of a move does not decode";
                return Err(Error::corrupt("bad-progress", message));
            }
        };
        Ok(Self {
            is_handed_over,
            copied_to: Bytes::read(input)?,
            is_copied: bool::read(input)?,
            is_verified: bool::read(input)?,
            position: Bytes::read(input)?,
            items: u64::read(input)?,
            bytes: u64::read(input)?,
            held: Size { items: u64::read(input)?, bytes: u64::read(input)?, outside: 0 },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_survives_its_row_and_damage_is_refused() {
        let progress = Progress {
            is_handed_over: true,
            copied_to: "key".into(),
            is_copied: true,
            is_verified: false,
            position: "position".into(),
            items: 3,
            bytes: 99,
            held: Size { items: 2, bytes: 98, outside: 0 },
        };
        let row = progress.encode();
        assert_eq!(Progress::decode(row.clone()).unwrap(), progress);
        for length in 0..row.len() {
            assert!(Progress::decode(row.slice(..length)).is_err());
        }
        // Moves go on that were begun before.
        let earlier: Bytes = [&[PROGRESS_FORMAT_2], &row[2..]].concat().into();
        let is_handed_over = false;
        assert_eq!(Progress::decode(earlier).unwrap(), Progress { is_handed_over, ..progress });
    }
}
