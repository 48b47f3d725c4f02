//! The writes of a batch that the store does not have yet, laid over what it has. Each transaction of a batch sees the
//! writes of those before it; one that fails takes back its own and no others.

use std::collections::BTreeMap;
use std::ops::Bound;

use bytes::Bytes;
use lazuli_store::{
    Direction, Intake, KeyRange, Page, PageLimit, Reader, Result, StoreHealth, Write, after_key,
};

/// A key's new value; `None` is a deletion.
type NewValue = Option<Bytes>;

#[derive(Default)]
pub(crate) struct Overlay {
    changes: BTreeMap<Bytes, NewValue>,
    /// What the current transaction has covered up, newest last.
    undo: Vec<(Bytes, Option<NewValue>)>,
    /// What the current transaction puts and deletes.
    intake: Intake,
    bytes: usize,
}

impl Overlay {
    pub(crate) fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Bytes written so far, counting every write.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn write(&mut self, write: Write) {
        self.bytes += write.bytes();
        self.intake.add(&write);
        let (key, change) = match write {
            Write::Put(key, value) => (key, Some(value)),
            Write::Delete(key) => (key, None),
        };
        let covered = self.changes.insert(key.clone(), change);
        self.undo.push((key, covered));
    }

    /// Makes the writes since the last call final for this batch.
    pub(crate) fn keep(&mut self) {
        self.undo.clear();
        self.intake = Intake::default();
    }

    /// Refuses the writes since the last [`Self::keep`], if there are any, where the store cannot take them.
    pub(crate) fn check(&self, health: &StoreHealth) -> Result<()> {
        if self.undo.is_empty() { Ok(()) } else { health.check(self.intake) }
    }

    /// Takes back the writes since the last [`Self::keep`].
    pub(crate) fn take_back(&mut self) {
        self.intake = Intake::default();
        while let Some((key, covered)) = self.undo.pop() {
            match covered {
                Some(change) => self.changes.insert(key, change),
                None => self.changes.remove(&key),
            };
        }
    }

    pub(crate) fn into_writes(self) -> Vec<Write> {
        let writes = self.changes.into_iter().map(|(key, change)| match change {
            Some(value) => Write::Put(key, value),
            None => Write::Delete(key),
        });
        writes.collect()
    }

    /// What was written under this key, if anything was.
    pub(crate) fn written(&self, key: &[u8]) -> Option<&NewValue> {
        self.changes.get(key)
    }

    pub(crate) async fn scan(
        &self,
        base: &dyn Reader,
        range: &KeyRange,
        direction: Direction,
        limit: PageLimit,
    ) -> Result<Page> {
        let mut rest = range.clone();
        loop {
            let below = base.scan(&rest, direction, limit).await?;
            let reach = Self::reach(&rest, &below, direction);
            let more_below = below.more;
            let mut page = self.merge(below, &reach, direction, limit);
            page.more |= more_below;
            if !page.items.is_empty() || !more_below {
                return Ok(page);
            }
            // Everything the base had here is deleted by the overlay: go on behind it.
            match direction {
                Direction::Forward => match reach.end {
                    Some(end) => rest.start = end,
                    None => return Ok(page),
                },
                Direction::Backward => rest.end = Some(reach.start),
            }
        }
    }

    /// The part of the range that a page of the base speaks for.
    fn reach(range: &KeyRange, page: &Page, direction: Direction) -> KeyRange {
        let mut reach = range.clone();
        if let (true, Some((last, _))) = (page.more, page.items.last()) {
            match direction {
                Direction::Forward => reach.end = Some(after_key(last)),
                Direction::Backward => reach.start = last.clone(),
            }
        }
        reach
    }

    fn merge(&self, below: Page, reach: &KeyRange, direction: Direction, limit: PageLimit) -> Page {
        if reach.is_empty() {
            return Page { items: below.items, more: false };
        }
        let end = reach.end.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
        let above = self.changes.range::<Bytes, _>((Bound::Included(&reach.start), end));
        let mut merged: BTreeMap<Bytes, Bytes> = below.items.into_iter().collect();
        for (key, change) in above {
            match change {
                Some(value) => merged.insert(key.clone(), value.clone()),
                None => merged.remove(key),
            };
        }
        match direction {
            Direction::Forward => cut(merged.into_iter(), limit),
            Direction::Backward => cut(merged.into_iter().rev(), limit),
        }
    }
}

fn cut(items: impl Iterator<Item = (Bytes, Bytes)>, limit: PageLimit) -> Page {
    let mut page = Page::default();
    let mut bytes = 0;
    for (key, value) in items {
        let size = key.len() + value.len();
        if limit.is_full(page.items.len(), bytes, size) {
            page.more = true;
            break;
        }
        bytes += size;
        page.items.push((key, value));
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;
    use lazuli_store::Store;
    use lazuli_store::mem::MemStore;

    fn put(key: &str, value: &str) -> Write {
        Write::Put(key.to_owned().into(), value.to_owned().into())
    }

    fn delete(key: &str) -> Write {
        Write::Delete(key.to_owned().into())
    }

    #[test]
    fn a_failed_transaction_takes_back_only_its_own_writes() {
        let mut overlay = Overlay::default();
        overlay.write(put("a", "1"));
        overlay.keep();
        overlay.write(put("a", "2"));
        overlay.write(delete("a"));
        overlay.write(put("b", "1"));
        overlay.take_back();
        assert_eq!(overlay.written(b"a"), Some(&Some("1".into())));
        assert_eq!(overlay.written(b"b"), None);
        assert_eq!(overlay.into_writes(), [put("a", "1")]);
    }

    /// Every page size and direction over a base with every other key, overlaid with puts and deletions, against a map.
    #[tokio::test]
    async fn a_scan_equals_that_of_a_plain_map() {
        let store = MemStore::new();
        let base_writes = (0..60).step_by(2).map(|n| put(&format!("{n:02}"), "base"));
        let txn = store.begin(vec![]).await.unwrap();
        txn.commit(base_writes.collect()).await.unwrap();
        let mut overlay = Overlay::default();
        let mut model: BTreeMap<Bytes, Bytes> =
            (0..60).step_by(2).map(|n| (format!("{n:02}").into(), "base".into())).collect();
        for n in 0..60 {
            let key = format!("{n:02}");
            if n % 3 == 0 || (20..40).contains(&n) {
                overlay.write(delete(&key));
                model.remove(key.as_bytes());
            } else if n % 5 == 0 {
                overlay.write(put(&key, "over"));
                model.insert(key.into(), "over".into());
            }
        }
        let base = store.snapshot(&[], lazuli_store::Reads::Several).await.unwrap();
        let range = KeyRange::new("05", Some("55".into()));
        let expected: Vec<(Bytes, Bytes)> =
            model.into_iter().filter(|(key, _)| range.contains(key)).collect();
        for direction in [Direction::Forward, Direction::Backward] {
            for size in 1..8 {
                let mut rest = range.clone();
                let mut seen = Vec::new();
                loop {
                    let limit = PageLimit::items(size);
                    let page = overlay.scan(&*base, &rest, direction, limit).await.unwrap();
                    let Some((last, _)) = page.items.last().cloned() else { break };
                    seen.extend(page.items);
                    match direction {
                        Direction::Forward => rest.start = after_key(&last),
                        Direction::Backward => rest.end = Some(last),
                    }
                    if !page.more {
                        break;
                    }
                }
                if direction == Direction::Backward {
                    seen.reverse();
                }
                assert_eq!(seen, expected, "{direction:?} in pages of {size}");
            }
        }
    }
}
