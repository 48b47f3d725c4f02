//! Counting the entries that a plan names, without reading their items.

use bytes::Bytes;
use lazuli_engine::{KeyRange, PageLimit, after_key, yield_now};
use lazuli_query::execute::Execution;

use super::entries::HEAD_BYTES;
use super::entry_run::{ENTRIES_MAX, first_of_set};
use super::query::{QueryResult, Run, behind_entry_kind, entry_place, item_place};
use super::spans::{OrderedSpans, Span, Spans};

/// Entries of one shard that are counted at once. They are not kept, so they may be many.
const ENTRIES_COUNTED: usize = 8_192;

impl Run<'_> {
    /// Pushes how many items the entries stand for, behind a place of the page before, and says whether that was all.
    pub(super) async fn push_count(
        &mut self,
        spans: Spans,
        resume: Option<(Vec<u8>, bool)>,
        execution: &mut Execution,
    ) -> QueryResult<bool> {
        match spans {
            Spans::Ordered(mut ordered) => {
                if let Some((place, again)) = resume {
                    ordered.resume(&behind_entry_kind(&place)?, again)?;
                }
                self.push_count_of(&ordered, execution).await
            }
            Spans::Set(spans) => {
                let from = first_of_set(resume)?;
                self.push_count_of_set(&spans, from, execution).await
            }
        }
    }

    async fn push_count_of(
        &mut self,
        ordered: &OrderedSpans,
        execution: &mut Execution,
    ) -> QueryResult<bool> {
        for span in &ordered.spans {
            let mut keys = span.keys.clone();
            loop {
                let (count, reach) = self.count_all(&keys).await?;
                self.work.entries_read += count;
                let place = reach.as_ref().map(|reach| entry_place(&reach[HEAD_BYTES..]));
                execution.push_count(count, place.as_deref());
                let Some(reach) = reach else { break };
                if self.is_late(execution) {
                    return Ok(false);
                }
                keys.start = after_key(&reach);
                yield_now().await;
            }
        }
        Ok(true)
    }

    /// The same for entries of which an item may have several: it is counted once.
    async fn push_count_of_set(
        &mut self,
        spans: &[Span],
        mut from: Bytes,
        execution: &mut Execution,
    ) -> QueryResult<bool> {
        loop {
            let (items, reach) = self.set(spans, &from, ENTRIES_MAX).await?;
            let place = reach.as_ref().map(|reach| item_place(reach));
            execution.push_count(items.len() as u64, place.as_deref());
            match reach {
                Some(_) if self.is_late(execution) => return Ok(false),
                Some(reach) => from = after_key(&reach),
                None => return Ok(true),
            }
            yield_now().await;
        }
    }

    /// How many entries all shards have, up to where the first of them stopped looking.
    async fn count_all(&self, keys: &KeyRange) -> QueryResult<(u64, Option<Bytes>)> {
        let views = self.views().await?;
        let mut counts = Vec::with_capacity(views.len());
        for view in &views {
            counts.push(view.count_entries(keys, PageLimit::items(ENTRIES_COUNTED)).await?);
        }
        let reach = counts.iter().filter_map(|(_, stopped)| stopped.clone()).min();
        let mut all = 0;
        for (view, (count, stopped)) in views.iter().zip(counts) {
            all += match &reach {
                // It has counted entries behind that place, which the next step counts.
                Some(reach) if stopped.as_ref() != Some(reach) => {
                    let keys = KeyRange::new(keys.start.clone(), Some(after_key(reach)));
                    view.count_entries(&keys, PageLimit::items(ENTRIES_COUNTED)).await?.0
                }
                _ => count,
            };
        }
        Ok((all, reach))
    }

    /// How many entries there are, if there are fewer than `most`; otherwise some number that is not less than that. An item
    /// counts as often as it has entries.
    pub(super) async fn count_up_to(&mut self, spans: &Spans, most: u64) -> QueryResult<u64> {
        let spans = match spans {
            Spans::Set(spans) => spans,
            Spans::Ordered(ordered) => &ordered.spans,
        };
        let mut count = 0;
        for span in spans {
            let mut keys = span.keys.clone();
            while count < most && !keys.is_empty() {
                let (found, reach) = self.count_all(&keys).await?;
                count += found;
                match reach {
                    Some(reach) => keys.start = after_key(&reach),
                    None => break,
                }
                yield_now().await;
            }
        }
        Ok(count)
    }
}
