//! How far a log is compacted, and since when: its row, and the transaction that writes it.

use std::time::Duration;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use lazuli_engine::{Result, Transaction, Tx};

use crate::hub::LogPlace;
use crate::limits::{HORIZON_STEPS, HORIZONS_MAX};
use crate::rows::{LogState, damaged};

const FORMAT: u8 = 1;
const HEAD_BYTES: usize = 1 + 4 * 8;

/// How far a log is compacted. A log without this row never was.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Cleaned {
    /// In front of this offset every key has one record.
    pub(super) to: u64,
    /// The bytes that were left in front of it.
    pub(super) bytes: u64,
    /// Where the log began then.
    pub(super) from: u64,
    /// How many tombstones were left in front of it.
    pub(super) tombstones: u64,
    /// Up to which offset the log was compacted, and when at the latest. Both grow.
    pub(super) horizons: Vec<(u64, u64)>,
}

impl Cleaned {
    pub(super) fn encode(&self) -> Bytes {
        let mut row = BytesMut::with_capacity(HEAD_BYTES + 16 * self.horizons.len());
        row.put_u8(FORMAT);
        for number in [self.to, self.bytes, self.from, self.tombstones] {
            row.put_u64(number);
        }
        for (to, at_ms) in &self.horizons {
            row.put_u64(*to);
            row.put_u64(*at_ms);
        }
        row.freeze()
    }

    pub(super) fn decode(mut row: Bytes) -> Result<Self> {
        let fits = row.len() >= HEAD_BYTES && (row.len() - HEAD_BYTES).is_multiple_of(16);
        if !fits || row.get_u8() != FORMAT {
            return Err(damaged("how far a log is compacted"));
        }
        let (to, bytes) = (row.get_u64(), row.get_u64());
        let (from, tombstones) = (row.get_u64(), row.get_u64());
        let mut horizons = Vec::new();
        while !row.is_empty() {
            horizons.push((row.get_u64(), row.get_u64()));
        }
        Ok(Self { to, bytes, from, tombstones, horizons })
    }

    /// In front of which offset tombstones have stayed for long enough.
    pub(super) fn ripe(&self, now_ms: u64, life: Duration) -> u64 {
        let is_ripe = |at_ms: u64| at_ms.saturating_add(life.as_millis() as u64) <= now_ms;
        let ripe = self.horizons.iter().filter(|(_, at_ms)| is_ripe(*at_ms));
        ripe.map(|(to, _)| *to).max().unwrap_or(0)
    }

    /// Whether a pass would find enough to do.
    pub(super) fn is_due(
        &self,
        state: &LogState,
        now_ms: u64,
        life: Duration,
        dirty_permille: u32,
    ) -> bool {
        if self.tombstones > 0 && self.ripe(now_ms, life) > 0 {
            return true;
        }
        if state.next <= self.to {
            return false;
        }
        let is_much = |new: u64, all: u64| {
            u128::from(new) * 1_000 >= u128::from(all) * u128::from(dirty_permille)
        };
        let is_new = is_much(state.bytes.saturating_sub(self.bytes), state.bytes);
        // What was deleted since then may have been old or new: the number of records has to do.
        let is_cut = state.first != self.from;
        is_new || (is_cut && is_much(state.next - self.to, state.next - state.first))
    }

    /// Notes a compaction up to an offset. The times are rounded up, so that there are few of them.
    fn note(&mut self, to: u64, now_ms: u64, life: Duration, ripe: u64) {
        // In front of these no tombstone is left but those that have to stay, and none comes there any more.
        self.horizons.retain(|(to, _)| *to > ripe);
        let step = (life.as_millis() as u64 / HORIZON_STEPS).max(1);
        let at_ms = now_ms.checked_next_multiple_of(step).unwrap_or(now_ms);
        match self.horizons.last_mut() {
            Some(last) if last.0 >= to => {}
            Some(last) if last.1 >= at_ms => last.0 = to,
            _ => self.horizons.push((to, at_ms)),
        }
        if self.horizons.len() > HORIZONS_MAX {
            // What it stood for is waited for a little longer.
            self.horizons.remove(0);
        }
    }
}

/// Notes what a pass over a log has done.
pub(super) struct Note {
    pub(super) place: LogPlace,
    pub(super) done: Cleaned,
    pub(super) life: Duration,
    /// In front of which offset the pass let no tombstone stay.
    pub(super) ripe: u64,
}

impl Transaction for Note {
    type Output = ();

    async fn run(&self, tx: &mut Tx<'_>) -> Result<()> {
        let key = self.place.cleaned();
        let old = tx.get(&key).await?;
        let row = old.as_ref().map(|item| Cleaned::decode(item.payload.clone())).transpose()?;
        let mut row = row.unwrap_or_default();
        // Another process may have come further meanwhile.
        if row.to <= self.done.to {
            let Self { done, life, ripe, .. } = self;
            row = Cleaned { horizons: row.horizons, ..done.clone() };
            row.note(done.to, tx.now_ms(), *life, *ripe);
        }
        tx.replace(&key, old.as_ref(), row.encode(), None)
    }

    fn cost(&self) -> u32 {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIFE: Duration = Duration::from_millis(1_600);

    #[test]
    fn tombstones_are_ripe_after_their_life_and_times_are_few() {
        let mut row = Cleaned::default();
        for at in 0..1_000 {
            row.note(at + 1, 10_000 + at, LIFE, 0);
        }
        assert!(row.horizons.len() <= 12, "{:?}", row.horizons);
        assert_eq!(row.ripe(11_599, LIFE), 0);
        // The first record was compacted at 10,000 sharp, all others up to a hundred milliseconds later.
        assert_eq!(row.ripe(11_600, LIFE), 1);
        assert_eq!(row.ripe(11_700, LIFE), 101);
        row.note(2_000, 20_000, LIFE, 1_000);
        assert_eq!(row.horizons, [(2_000, 20_000)]);
        assert_eq!(Cleaned::decode(row.encode()).unwrap(), row);
        assert!(Cleaned::decode(row.encode().slice(1..)).is_err());
    }

    #[test]
    fn a_pass_is_due_when_enough_is_new_or_a_tombstone_is_ripe() {
        let state = LogState { next: 100, bytes: 1_000, ..LogState::default() };
        let due = |row: &Cleaned| row.is_due(&state, 10_000, LIFE, 500);
        assert!(due(&Cleaned::default()));
        let half = Cleaned { to: 90, bytes: 501, ..Cleaned::default() };
        assert!(!due(&half) && due(&Cleaned { bytes: 500, ..half.clone() }));
        let ripe = Cleaned { horizons: vec![(90, 8_000)], ..half.clone() };
        assert!(!due(&ripe) && due(&Cleaned { tombstones: 1, ..ripe }));
        assert!(!due(&Cleaned { to: 100, bytes: 0, ..half }));
    }
}
