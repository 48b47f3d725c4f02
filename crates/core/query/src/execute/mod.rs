//! Execution: items are pushed in, pages of rows come out.
//!
//! The caller reads what the plan names and pushes each item. An execution filters, joins, projects, and then either
//! streams (rows are given as they come, and a page ends when it is full) or gathers (rows are sorted or grouped, and the
//! page is known when all items were pushed). What gathers keeps only what can be on the page it makes: the next page is
//! made from all items again, without the rows up to the last one given. So no state is kept between pages, and memory is
//! bounded by the page. Aggregates are small, so a page of them may end before all items were pushed: its continuation has what
//! was added up.

mod gather;
mod output;
mod page;
mod ranked;
#[cfg(test)]
mod tests;
mod top;

use std::sync::Arc;

use lazuli_value::View;

pub use page::{Page, PageOptions};

use crate::check::Checked;
use crate::continuation::{Continuation, Position};
use crate::error::{ErrorKind, QueryError};
use crate::evaluate::{Context, Flow, Frame, for_each_row};
use crate::limits::{MEMORY_BYTES_MAX, PAGE_ROWS_MAX};
use crate::tree::{Level, Source};
use gather::Gather;

/// Whether more items are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wants {
    More,
    /// The page is full, or the result is complete.
    NoMore,
}

/// One page of a query while it is made.
pub struct Execution {
    checked: Arc<Checked>,
    context: Context,
    options: PageOptions,
    fingerprint: u64,
    /// Rows to skip and to give, of the whole result.
    offset: u64,
    limit: Option<u64>,
    mode: Mode,
    /// The query in FROM that must be complete first.
    before: Option<Box<Execution>>,
    items: u64,
    /// The place of the last item of a query that gathers.
    reached: Vec<u8>,
}

enum Mode {
    Stream(Stream),
    Gather(Gather),
}

/// What a streaming page has so far.
struct Stream {
    rows: Vec<Vec<u8>>,
    bytes: usize,
    /// How far the query has come: to begin with, where the page before ended.
    position: Position,
    /// How many rows of an item that is pushed again were given by the page before.
    resumed: Option<(Vec<u8>, u64)>,
}

impl Stream {
    fn new(position: Position) -> Self {
        let resumed = match &position {
            Position::Item { place, rows: Some(rows) } => Some((place.clone(), *rows)),
            _ => None,
        };
        Self { rows: Vec::new(), bytes: 0, position, resumed }
    }
}

impl Execution {
    /// Begins a page. `is_sorted` says that items will be pushed in the order that the query asks for
    /// ([`Order::Merged`](crate::plan::Order::Merged)).
    pub fn new(
        checked: Arc<Checked>,
        fingerprint: u64,
        context: Context,
        options: PageOptions,
        is_sorted: bool,
        continuation: Option<Continuation>,
    ) -> Result<Self, QueryError> {
        let level = &checked.level;
        let streams =
            level.grouping.is_none() && !level.is_distinct && (level.sort.is_empty() || is_sorted);
        let (mut offset, mut limit) = (level.offset, level.limit);
        let mut position = None;
        if let Some(continuation) = continuation {
            let fits = matches!(continuation.position, Position::Item { .. }) == streams;
            if continuation.fingerprint != fingerprint || !fits {
                return Err(foreign());
            }
            (offset, limit) = (continuation.offset, continuation.limit);
            position = Some(continuation.position);
        }
        let mut reached = Vec::new();
        let mode = match (streams, position) {
            (true, position) => Mode::Stream(Stream::new(position.unwrap_or(Position::START))),
            (false, position) => {
                let (after, sums) = match position {
                    Some(Position::Key(key)) => (Some(key), None),
                    Some(Position::Sums { place, state }) => (None, Some((place, state))),
                    Some(Position::Item { .. }) | None => (None, None),
                };
                let rows = limit.map_or(options.rows, |limit| {
                    options.rows.min(usize::try_from(limit).unwrap_or(usize::MAX))
                });
                let mut gather = Gather::new(level, rows, offset, options.bytes, after);
                if let Some((place, state)) = sums {
                    if checked.before.is_some() || !gather.resume(level, &state, &context)? {
                        return Err(foreign());
                    }
                    reached = place;
                }
                Mode::Gather(gather)
            }
        };
        // The innermost query has the context while it runs, and hands it on.
        let (before, context) = match &checked.before {
            Some(before) => {
                let later = Context::new(context.now_ms, 0);
                (Some(Box::new(Self::complete(before, context)?)), later)
            }
            None => (None, context),
        };
        let items = 0;
        Ok(Self {
            checked,
            context,
            options,
            fingerprint,
            offset,
            limit,
            mode,
            before,
            items,
            reached,
        })
    }

    /// An execution of a query in FROM, whose one page is its whole result.
    fn complete(checked: &Checked, context: Context) -> Result<Self, QueryError> {
        let options =
            PageOptions { rows: usize::MAX, bytes: MEMORY_BYTES_MAX, has_null_extremes: false };
        Self::new(Arc::new(checked.clone()), 0, context, options, false, None)
    }

    /// Whether the query has no FROM, so that no items are pushed but [`push_nothing`](Self::push_nothing) is called.
    pub fn reads_nothing(&self) -> bool {
        let level = match &self.before {
            Some(before) => return before.reads_nothing(),
            None => &self.checked.level,
        };
        level.sources.first() != Some(&Source::Items)
    }

    /// Whether a page may end before all items were pushed. If not, they must be pushed to the end.
    pub fn can_pause(&self) -> bool {
        self.before.is_none()
            && match &self.mode {
                Mode::Stream(_) => true,
                Mode::Gather(gather) => gather.pause().is_some(),
            }
    }

    /// Takes an item and its place in the order of the source, which must tell it apart from all others.
    pub fn push(&mut self, place: &[u8], item: View<'_>) -> Result<Wants, QueryError> {
        self.items += 1;
        if let Some(before) = &mut self.before {
            return match before.push(place, item)? {
                Wants::NoMore if before.limit != Some(0) => Err(too_large()),
                wants => Ok(wants),
            };
        }
        if self.limit == Some(0) {
            return Ok(Wants::NoMore);
        }
        self.context.begin_item();
        let bound = Frame::on(None, Some(item.into()));
        let level = &self.checked.clone().level;
        let sources = match level.sources.split_first() {
            Some((Source::Items, rest)) => rest,
            _ => return Ok(Wants::NoMore),
        };
        match &mut self.mode {
            Mode::Gather(gather) => {
                gather.push(level, sources, place, &bound, &self.context)?;
                self.reached.clear();
                self.reached.extend_from_slice(place);
                Ok(Wants::More)
            }
            Mode::Stream(_) => self.stream(level, sources, place, Some(&bound)),
        }
    }

    /// Makes the row of a query without FROM.
    pub fn push_nothing(&mut self) -> Result<Wants, QueryError> {
        if let Some(before) = &mut self.before {
            return before.push_nothing();
        }
        self.context.begin_item();
        let level = &self.checked.clone().level;
        match &mut self.mode {
            Mode::Gather(gather) => {
                gather.push_rows(level, &level.sources, &[], None, &self.context)?;
                Ok(Wants::More)
            }
            Mode::Stream(_) => self.stream(level, &level.sources, &[], None),
        }
    }

    /// Takes the number of items that the plan's access yields, for plans that count; or a part of it, and the place that
    /// was counted up to.
    pub fn push_count(&mut self, items: u64, place: Option<&[u8]>) {
        if let Mode::Gather(gather) = &mut self.mode {
            gather.push_count(items);
            self.reached = place.unwrap_or_default().to_vec();
        }
    }

    fn stream(
        &mut self,
        level: &Level,
        sources: &[Source],
        place: &[u8],
        frame: Option<&Frame<'_>>,
    ) -> Result<Wants, QueryError> {
        let Mode::Stream(stream) = &mut self.mode else { return Ok(Wants::NoMore) };
        let (offset, limit, options) = (&mut self.offset, &mut self.limit, &self.options);
        let given = match &stream.resumed {
            Some((resumed, rows)) if resumed == place => *rows,
            _ => 0,
        };
        let mut seen = 0;
        let mut inside = None;
        for_each_row(level, sources, frame, &self.context, &mut |row| {
            if seen < given {
                seen += 1;
                return Ok(Flow::Continue);
            }
            if *limit == Some(0) || stream.rows.len() >= options.rows {
                inside = Some(seen);
                return Ok(Flow::Stop);
            }
            let Some(row) = output::encoded(&level.output, row, &self.context)? else {
                seen += 1;
                return Ok(Flow::Continue);
            };
            if *offset > 0 {
                *offset -= 1;
                seen += 1;
                return Ok(Flow::Continue);
            }
            if !stream.rows.is_empty() && stream.bytes + row.len() > options.bytes {
                inside = Some(seen);
                return Ok(Flow::Stop);
            }
            seen += 1;
            *limit = limit.map(|limit| limit - 1);
            stream.bytes += row.len();
            stream.rows.push(row);
            Ok(Flow::Continue)
        })?;
        stream.position = Position::Item { place: place.to_vec(), rows: inside };
        let is_full = inside.is_some() || stream.rows.len() >= options.rows;
        Ok(if is_full || *limit == Some(0) { Wants::NoMore } else { Wants::More })
    }

    /// Pushes the rows of the query in FROM, without those before the start of the page. Whether it came to the end.
    fn push_rows_of(&mut self, before: Execution) -> Result<bool, QueryError> {
        let items = self.items;
        let start = match &self.mode {
            Mode::Stream(stream) => stream.position.clone(),
            Mode::Gather(_) => Position::START,
        };
        let mut is_end = true;
        let (page, context) = before.ended(true)?;
        // Its page is its whole result, or it did not fit.
        if page.continuation.is_some() {
            return Err(too_large());
        }
        self.context = context;
        for (place, row) in (0_u64..).zip(page.rows) {
            let place = place.to_be_bytes();
            if !start.is_behind(&place) {
                let malformed = |_| QueryError::invalid("A row is malformed.");
                let view = View::parse(&row).map_err(malformed)?;
                is_end = self.push(&place, view)? == Wants::More;
            }
            if !is_end {
                break;
            }
        }
        self.items = items;
        Ok(is_end)
    }

    /// Ends the page. `is_end` says that there are no items behind the last one that was pushed.
    pub fn finish(self, is_end: bool) -> Result<Page, QueryError> {
        self.ended(is_end).map(|(page, _)| page)
    }

    fn ended(mut self, is_end: bool) -> Result<(Page, Context), QueryError> {
        if !is_end && !self.can_pause() && self.limit != Some(0) {
            let message = "A query that gathers its rows needs all items before its page can end.";
            return Err(QueryError::invalid(message));
        }
        let is_end = match self.before.take() {
            Some(before) => self.push_rows_of(*before)?,
            None => is_end,
        };
        let level = &self.checked.level;
        match self.mode {
            Mode::Stream(stream) => {
                let is_done = self.limit == Some(0) || (is_end && !stream.position.is_inside());
                let continuation = (!is_done).then_some(Continuation {
                    fingerprint: self.fingerprint,
                    offset: self.offset,
                    limit: self.limit,
                    position: stream.position,
                });
                let page = Page { rows: stream.rows, continuation, items: self.items };
                Ok((page, self.context))
            }
            Mode::Gather(gather) if !is_end && self.limit != Some(0) => {
                let unpaused = || QueryError::invalid("The query cannot be paused here.");
                let state = gather.pause().ok_or_else(unpaused)?;
                let continuation = Some(Continuation {
                    fingerprint: self.fingerprint,
                    offset: self.offset,
                    limit: self.limit,
                    position: Position::Sums { place: self.reached, state },
                });
                let page = Page { rows: Vec::new(), continuation, items: self.items };
                Ok((page, self.context))
            }
            Mode::Gather(gather) => {
                let has_null = self.options.has_null_extremes;
                let result =
                    gather.finish(level, &self.context, self.offset, self.limit, has_null)?;
                let continuation = result.last.map(|(key, given)| Continuation {
                    fingerprint: self.fingerprint,
                    offset: 0,
                    limit: self.limit.map(|limit| limit - given),
                    position: Position::Key(key),
                });
                let page = Page { rows: result.rows, continuation, items: self.items };
                Ok((page, self.context))
            }
        }
    }
}

fn foreign() -> QueryError {
    let message = "The continuation token does not belong to this query.";
    QueryError::new(ErrorKind::Continuation, message)
}

fn too_large() -> QueryError {
    let limit = MEMORY_BYTES_MAX / (1024 * 1024);
    QueryError::too_large(format!("The query in FROM has more rows than fit into {limit} MB."))
}

/// The rows of a page of a query that gathers, within the limits of pages.
fn page_capacity(rows: usize, offset: u64) -> usize {
    let rows = if rows == usize::MAX { rows } else { rows.min(PAGE_ROWS_MAX) };
    rows.saturating_add(usize::try_from(offset).unwrap_or(usize::MAX))
}
