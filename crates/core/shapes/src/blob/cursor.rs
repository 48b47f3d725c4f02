//! Reading rows for lists: cursors over one space of a partition, page by page with seeks ahead; two of them side by side,
//! which show the past states of a blob before its current one; and containers whose names are hashed.
//!
//! Hashed names (B3): in the routes of such a container each name stands behind one digit of its hash, so that names which
//! only grow are spread over sixteen places of the container. A list reads the sixteen slices and merges them by name.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use lazuli_engine::{
    Container, Direction, Item, KeyRange, PREFIX_BYTES, PageLimit, Result, Space, View, after_key,
    hashed_slice,
};

use super::Blobs;
use super::list::{ListOptions, Listed, Page};

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

    /// Skips everything before the key; pages that were not read yet are not read for it.
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

/// The digits, one for each slice.
const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// The name as it stands in routes.
pub(super) fn spread(name: &str, is_hashed: bool) -> Cow<'_, str> {
    if !is_hashed {
        return Cow::Borrowed(name);
    }
    let slice = hashed_slice(name.as_bytes(), DIGITS.len() as u16);
    let digit = DIGITS.get(usize::from(slice)).copied().unwrap_or(DIGITS[0]);
    Cow::Owned(format!("{}{name}", char::from(digit)))
}

/// The name again.
pub(super) fn gathered(mut name: String, is_hashed: bool) -> String {
    if is_hashed && !name.is_empty() {
        name.remove(0);
    }
    name
}

/// How many entries of a slice are read for a page: its share and some more, because no hash is quite even.
fn share(most: usize) -> usize {
    most.min(2 * most / DIGITS.len() + 16)
}

impl Blobs {
    /// A page of a list as `list` makes it. Places between pages are sort keys without the digit, which stands behind
    /// `inside`. A page can be shorter than it may be, where a slice has more than its share.
    pub(super) async fn list_hashed(
        &self,
        blobs: &Arc<Container>,
        inside: &Bytes,
        options: &ListOptions,
        after: Option<&Bytes>,
    ) -> Result<Page<Listed>> {
        let most = options.most.max(1);
        let of_slice = ListOptions { most: share(most), ..options.clone() };
        let (at, mut rows, mut end) = (inside.len(), Vec::new(), None::<Bytes>);
        for digit in DIGITS {
            let slice: Bytes = [&inside[..], &[*digit][..]].concat().into();
            let after = after.map(|after| {
                let behind = after.get(at..).unwrap_or_default();
                Bytes::from([&slice[..], behind].concat())
            });
            let found = self.rows_of_list(blobs, slice, true, &of_slice, after.as_ref()).await?;
            let without_digit = |key: &Bytes| {
                let behind = key.get(at + 1..).unwrap_or_default();
                Bytes::from([&inside[..], behind].concat())
            };
            rows.extend(found.entries.into_iter().map(|(key, entry)| (without_digit(&key), entry)));
            if let Some(next) = found.next.as_ref().map(without_digit) {
                end = Some(match end {
                    Some(end) => next.min(end),
                    None => next,
                });
            }
        }
        rows.sort_by(|(one, _), (other, _)| one.cmp(other));
        // A folder has blobs in many slices and is listed once.
        rows.dedup_by(|(one, _), (other, _)| one == other);
        if let Some(end) = &end {
            // Behind it a slice may have what was not read.
            rows.retain(|(key, _)| key <= end);
        }
        if rows.len() > most {
            rows.truncate(most);
            end = rows.last().map(|(key, _)| key.clone());
        }
        Ok(Page { entries: rows.into_iter().map(|(_, entry)| entry).collect(), next: end })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_grow_are_spread_and_come_back() {
        let mut counts = std::collections::BTreeMap::new();
        for number in 0..1_600 {
            let name = format!("2026/11/16/{number:06}.jpg");
            let stored = spread(&name, true).into_owned();
            *counts.entry(stored.as_bytes()[0]).or_insert(0) += 1;
            assert_eq!(gathered(stored, true), name);
            assert_eq!(spread(&name, false), name);
            assert_eq!(gathered(name.clone(), false), name);
        }
        assert_eq!(counts.len(), DIGITS.len());
        assert!(counts.values().all(|count| (60..140).contains(count)), "{counts:?}");
    }

    /// Data on disk depends on it.
    #[test]
    fn the_digit_of_a_name_never_changes() {
        let digits: String = ["", "a", "b", "2026/11/16", "ä"]
            .iter()
            .filter_map(|name| spread(name, true).chars().next())
            .collect();
        assert_eq!(digits, "2e5c5");
    }
}
