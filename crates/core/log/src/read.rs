//! Reading: batches from an offset on, and where an offset, a time or an end is. Reads use snapshots and never wait.

use lazuli_engine::{Direction, Error, KeyRange, PREFIX_BYTES, PageLimit, Result, Space, View};
use lazuli_shardmap::PartitionId;

use crate::Logs;
use crate::hub::{Hub, LogPlace};
use crate::rows::{Batch, LogState, damaged};

/// How much one read answers.
#[derive(Clone, Copy, Debug)]
pub struct ReadLimit {
    /// The first batch is answered however long it is.
    pub bytes: usize,
    pub batches: usize,
}

/// Batches of a log, and where the log begins and ends.
#[derive(Clone, Debug)]
pub struct Page {
    /// The first may begin before the offset that was asked for: it holds that offset.
    pub batches: Vec<Batch>,
    pub state: LogState,
}

/// Where to begin to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// At the first record that is still there.
    First,
    /// Behind the last one.
    End,
    /// At the first record that came at this time or later.
    Time(u64),
}

impl LogPlace {
    pub(crate) async fn state_in(&self, view: &View) -> Result<LogState> {
        let found = view.get(&self.state()).await?;
        Ok(found.map(|item| LogState::decode(item.payload)).transpose()?.unwrap_or_default())
    }

    async fn batches(
        &self,
        view: &View,
        range: &KeyRange,
        direction: Direction,
        limit: PageLimit,
    ) -> Result<Vec<Batch>> {
        let page = view.scan(Space::LOG_BATCHES, range, direction, limit).await?;
        let start = PREFIX_BYTES + self.route.len();
        let batch = |(key, item): (bytes::Bytes, lazuli_engine::Item)| {
            let row = key.get(start..).and_then(|row| row.try_into().ok());
            let first = u64::from_be_bytes(row.ok_or_else(|| damaged("the key of a batch"))?);
            Batch::decode(first, item.payload)
        };
        page.items.into_iter().map(batch).collect()
    }

    /// The batch that holds an offset, or the next one behind it that begins in front of `end`.
    async fn batch_from(&self, view: &View, offset: u64, end: u64) -> Result<Option<Batch>> {
        let holding = self.batch_at(view, offset).await?.filter(|batch| batch.end() > offset);
        if holding.is_some() {
            return Ok(holding);
        }
        let range = KeyRange::new(self.bound(offset), Some(self.bound(end)));
        let one = PageLimit::items(1);
        let found = self.batches(view, &range, Direction::Forward, one).await?;
        Ok(found.into_iter().next())
    }

    /// The last batch that begins at an offset or in front of it.
    pub(crate) async fn batch_at(&self, view: &View, offset: u64) -> Result<Option<Batch>> {
        let range = KeyRange::new(self.bound(0), Some(self.bound(offset.saturating_add(1))));
        let one = PageLimit::items(1);
        let found = self.batches(view, &range, Direction::Backward, one).await?;
        Ok(found.into_iter().next())
    }
}

impl Logs {
    /// Where a log begins and ends.
    pub async fn state(&self, hub: &Hub, partition: u32) -> Result<LogState> {
        let place = hub.log(partition)?;
        let view = self.engine.read(place.container, &place.route, 1).await?;
        place.state_in(&view).await
    }

    /// The partition of the map that keeps a log, by which its figures are known; none if the map is not known here.
    pub async fn partition_id(&self, hub: &Hub, partition: u32) -> Result<Option<PartitionId>> {
        let place = hub.log(partition)?;
        let all = self.engine.router().partitions(place.container, &KeyRange::all()).await?;
        let here = all.into_iter().find(|(routes, _)| routes.contains(&place.route));
        Ok(here.map(|(_, placed)| placed.partition))
    }

    /// Batches from the one that holds `offset` on; from the first one that is still there if the offset is gone.
    pub async fn read(
        &self,
        hub: &Hub,
        partition: u32,
        offset: u64,
        limit: ReadLimit,
    ) -> Result<Page> {
        let place = hub.log(partition)?;
        let view = self.engine.read(place.container, &place.route, 1).await?;
        let state = place.state_in(&view).await?;
        let offset = offset.max(state.first);
        if offset >= state.next {
            return Ok(Page { batches: Vec::new(), state });
        }
        let most = PageLimit { items: limit.batches.max(1), bytes: limit.bytes };
        let end = Some(place.bound(state.next));
        let range = KeyRange::new(place.bound(offset), end.clone());
        let mut batches = place.batches(&view, &range, Direction::Forward, most).await?;
        // Readers go on where a batch ends. One that asks for the middle of a batch costs another look.
        if batches.first().is_none_or(|batch| batch.first > offset)
            && let Some(holding) = place.batch_at(&view, offset).await?
            && holding.end() > offset
        {
            let used = holding.body.len();
            batches.insert(0, holding);
            let mut left = limit.bytes.saturating_sub(used);
            let mut fits = |batch: &Batch| {
                let fits = batch.body.len() <= left;
                left = left.saturating_sub(batch.body.len());
                fits
            };
            let keep = 1 + batches[1..].iter().take_while(|batch| fits(batch)).count();
            batches.truncate(keep.min(limit.batches.max(1)));
        }
        if batches.is_empty() {
            return Err(Error::corrupt("log-gap", "a log lacks records that its state names"));
        }
        Ok(Page { batches, state })
    }

    /// The offset at which to begin, and when the record there came, if there is one.
    pub async fn find(
        &self,
        hub: &Hub,
        partition: u32,
        start: Start,
    ) -> Result<(u64, Option<u64>)> {
        let place = hub.log(partition)?;
        let view = self.engine.read(place.container, &place.route, 1).await?;
        let state = place.state_in(&view).await?;
        match start {
            Start::First if state.is_empty() => Ok((state.first, None)),
            Start::First => Ok((state.first, Some(state.first_ms))),
            Start::End => Ok((state.next, None)),
            Start::Time(time_ms) => seek(&place, &view, state, time_ms).await,
        }
    }
}

/// Batches are in the order of their times, so the first one that is late enough is found by halving.
async fn seek(
    place: &LogPlace,
    view: &View,
    state: LogState,
    time_ms: u64,
) -> Result<(u64, Option<u64>)> {
    if state.is_empty() || state.last_ms < time_ms {
        return Ok((state.next, None));
    }
    let mut found = (state.next, None);
    // Always: every batch before `low` is too early, and those from `high` on begin with the one that was found.
    let (mut low, mut high) = (state.first, state.next);
    while low < high {
        let middle = low + (high - low) / 2;
        let Some(batch) = place.batch_from(view, middle, high).await? else {
            // What was here is gone: nothing lies between the middle and the end.
            high = middle;
            continue;
        };
        if batch.enqueued_ms >= time_ms {
            found = (batch.first.max(state.first), Some(batch.enqueued_ms));
            high = middle.min(batch.first);
        } else {
            low = batch.end();
        }
    }
    Ok(found)
}
