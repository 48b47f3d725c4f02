//! Writers and a reader with caches that may be old. They ask the catalog only when a shard has sent them away.

use super::model::{Model, Step, Variant};
use super::state::{LOG, Reader, Reading, RowState, State, Writer};

impl Model {
    pub(crate) fn client_steps(&self, state: &State, steps: &mut Vec<(Step, State)>) {
        for index in 0..state.writers.len() {
            let me = state.writers[index];
            if usize::from(me.done) == self.scripts[index].len() {
                continue;
            }
            let step =
                if me.checked { self.commit(state, index) } else { self.check(state, index) };
            steps.extend(step);
        }
        if self.has_reader {
            steps.extend(self.read_step(state));
        }
    }

    /// A writer asks the shard that its cache names. A fenced partition makes it wait: there is no step.
    fn check(&self, state: &State, index: usize) -> Option<(Step, State)> {
        let me = state.writers[index];
        let row = state.shards[usize::from(me.shard)].row;
        let mut next = *state;
        let writer = index as u8;
        if !row.is_at(me.epoch) {
            next.writers[index] =
                Writer { shard: state.catalog.owner, epoch: state.catalog.epoch, ..me };
            return (next != *state).then_some((Step::WriterIsMoved { writer }, next));
        }
        if row.state == RowState::Fenced {
            return None;
        }
        let mut me = Writer { checked: true, records: row.state == RowState::Sending, ..me };
        if self.variant == Variant::NumberedAtCheck && me.records {
            me.lsn = new_lsn(&mut next)?;
        }
        next.writers[index] = me;
        Some((Step::WriterChecks { writer }, next))
    }

    /// The commit succeeds if the row is still there at this moment: its key holds the epoch, not the state.
    fn commit(&self, state: &State, index: usize) -> Option<(Step, State)> {
        let me = state.writers[index];
        let mut next = *state;
        let writer = index as u8;
        let rest = Writer { checked: false, records: false, lsn: 0, ..me };
        let guard = state.shards[usize::from(me.shard)].row.is_at(me.epoch);
        if !guard && self.variant != Variant::NoDrain {
            next.writers[index] = rest;
            return Some((Step::WriterIsRefused { writer }, next));
        }
        let write = self.scripts[index][usize::from(me.done)];
        if me.records {
            let lsn = if me.lsn == 0 { new_lsn(&mut next)? } else { me.lsn };
            next.log[usize::from(lsn)] = write.key as u8 + 1;
        }
        next.shard(me.shard).data[write.key] = write.value;
        next.truth[write.key] = write.value;
        next.writers[index] = Writer { done: me.done + 1, ..rest };
        Some((Step::WriterCommits { writer }, next))
    }

    /// A reader takes its snapshot first and checks second, so what it sees was the shard's to show.
    fn read_step(&self, state: &State) -> Option<(Step, State)> {
        let me = state.reader;
        let shard = state.shards[usize::from(me.shard)];
        let matches = shard.row.is_at(me.epoch);
        let fresh = shard.data == state.truth;
        let mut next = *state;
        let step = match me.reading {
            Reading::Wrong => return None,
            Reading::Rest if self.variant == Variant::ReaderChecksFirst && matches => {
                next.reader.reading = Reading::Checked;
                Step::ReaderChecks
            }
            Reading::Rest if self.variant != Variant::ReaderChecksFirst => {
                next.reader.reading = if fresh { Reading::Fresh } else { Reading::Stale };
                Step::ReaderTakesSnapshot
            }
            Reading::Checked => {
                next.reader.reading = if fresh { Reading::Rest } else { Reading::Wrong };
                Step::ReaderTakesSnapshot
            }
            Reading::Fresh | Reading::Stale if matches => {
                let wrong = me.reading == Reading::Stale;
                next.reader.reading = if wrong { Reading::Wrong } else { Reading::Rest };
                Step::ReaderChecks
            }
            Reading::Rest | Reading::Fresh | Reading::Stale => {
                let (shard, epoch) = (state.catalog.owner, state.catalog.epoch);
                next.reader = Reader { shard, epoch, reading: Reading::Rest };
                Step::ReaderIsMoved
            }
        };
        Some((step, next))
    }
}

fn new_lsn(state: &mut State) -> Option<u8> {
    state.lsn += 1;
    (usize::from(state.lsn) < LOG).then_some(state.lsn)
}
