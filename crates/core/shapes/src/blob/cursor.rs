//! Cursors: rows of one space of a partition one after another, read in pages, with seeks ahead; and two of them side by
//! side, which show the past states of each thing before its current one.

use std::collections::VecDeque;

use bytes::{BufMut, Bytes, BytesMut};
use lazuli_engine::{
    Container, Direction, Item, KeyRange, PREFIX_BYTES, PageLimit, Result, Space, View, after_key,
};

/// Ends the sort key of a current state, which follows all past states of its blob, and of a group of names, which follows
/// all of them: no encoded text has this byte where it stands.
pub(super) const LAST: u8 = 0xff;

/// One row.
pub(super) struct Row {
    /// None for the current state, otherwise the row key of the past one.
    pub(super) past: Option<Bytes>,
    pub(super) route: Bytes,
    pub(super) item: Item,
}

impl Row {
    /// Where it stands in the order of past and current states.
    pub(super) fn sort_key(&self) -> Bytes {
        let end: &[u8] = self.past.as_deref().unwrap_or(&[LAST]);
        [&self.route[..], end].concat().into()
    }
}

struct Cursor<'a> {
    container: &'a Container,
    space: Space,
    range: KeyRange,
    rows: VecDeque<Row>,
    is_done: bool,
}

impl<'a> Cursor<'a> {
    fn new(container: &'a Container, space: Space, range: KeyRange) -> Self {
        Self { container, space, range, rows: VecDeque::new(), is_done: false }
    }

    async fn peek(&mut self, view: &View, limit: PageLimit) -> Result<Option<&Row>> {
        while self.rows.is_empty() && !self.is_done {
            let page = view.scan(self.space, &self.range, Direction::Forward, limit).await?;
            match page.next {
                Some(last) => self.range.start = after_key(&last.slice(PREFIX_BYTES..)),
                None => self.is_done = true,
            }
            for (key, item) in page.items {
                let behind = key.slice(PREFIX_BYTES..);
                let (route, row) = self.container.kind.split(&self.container.key, &behind)?;
                let past = (self.space != Space::ITEMS).then(|| behind.slice_ref(row));
                self.rows.push_back(Row { past, route: behind.slice_ref(route), item });
            }
        }
        Ok(self.rows.front())
    }

    /// Leaves out whatever stands before the key, without reading it where it has not been read.
    fn seek(&mut self, key: &Bytes) {
        while self.rows.front().is_some_and(|row| row.route < *key) {
            self.rows.pop_front();
        }
        if self.rows.is_empty() && self.range.start < *key {
            self.range.start = key.clone();
        }
    }
}

/// Current states, and past ones where they are wanted, in their order.
pub(super) struct States<'a> {
    current: Cursor<'a>,
    past: Option<Cursor<'a>>,
}

impl<'a> States<'a> {
    /// The states of a range of routes, behind a sort key.
    pub(super) fn new(
        container: &'a Container,
        range: &KeyRange,
        after: Option<&Bytes>,
        with_past: bool,
    ) -> Self {
        let (mut of_current, mut of_past) = (range.clone(), range.clone());
        if let Some(after) = after {
            let behind = after_key(after);
            // Behind a past state the current one of the same blob is still to come.
            let current = match container.kind.split(&container.key, after) {
                Ok((route, row)) if row != [LAST] => after.slice_ref(route),
                _ => behind.clone(),
            };
            of_current.start = of_current.start.max(current);
            of_past.start = of_past.start.max(behind);
        }
        let past = with_past.then(|| Cursor::new(container, Space::BLOB_PAST, of_past));
        Self { current: Cursor::new(container, Space::ITEMS, of_current), past }
    }

    pub(super) async fn next(&mut self, view: &View, limit: PageLimit) -> Result<Option<Row>> {
        let current = self.current.peek(view, limit).await?;
        if let Some(past) = &mut self.past {
            let first = match (past.peek(view, limit).await?, current) {
                (Some(past), Some(current)) => past.route <= current.route,
                (past, None) => past.is_some(),
                (None, Some(_)) => false,
            };
            if first {
                return Ok(past.rows.pop_front());
            }
        }
        Ok(self.current.rows.pop_front())
    }

    pub(super) fn seek(&mut self, key: &Bytes) {
        self.current.seek(key);
        if let Some(past) = &mut self.past {
            past.seek(key);
        }
    }
}

/// The bytes with which the routes of all names begin that begin with `start`.
pub(super) fn text_prefix(before: &[u8], start: &str) -> Bytes {
    let mut bytes = BytesMut::with_capacity(before.len() + start.len());
    bytes.put_slice(before);
    for byte in start.bytes() {
        bytes.put_u8(byte);
        if byte == 0 {
            bytes.put_u8(0xff);
        }
    }
    bytes.freeze()
}
