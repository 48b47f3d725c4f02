//! Every item of the former container is compared with the one in the new. What differs may have changed meanwhile, and is compared
//! again after the changes were applied.

use lazuli_console::{Failure, Result};

use super::super::item::Item;
use super::super::service::Asked;
use super::Work;
use super::apply::Hand;

/// The most items that may differ at one time. More are not changes of the last moment.
const DIFFERING_MAX: usize = 10_000;
/// How often items are compared again while writers go on.
const ROUNDS_MAX: usize = 5;

/// An item of the former container: its partition key there, and its id.
pub(super) type Former = (String, String);

impl Work {
    /// Compares all items, and answers those that differ at the moment.
    pub(super) fn verify(&mut self) -> Result<Vec<Former>> {
        let asked = Asked::all(&self.source, "SELECT * FROM c");
        let (mut differing, mut from) = (Vec::new(), None);
        loop {
            let page = self.service.page(&asked, from.as_deref())?;
            let mut lines: Vec<Vec<Item>> = (0..self.parallel).map(|_| Vec::new()).collect();
            for (nth, row) in page.rows.iter().enumerate() {
                let item = Item::parse(row.get().as_bytes()).map_err(Failure::failed)?;
                lines[nth % self.parallel as usize].push(item);
            }
            let compared = self.each_line(lines, |hand, item| hand.compare(&item))?;
            differing.extend(compared.into_iter().flatten());
            check_count(&differing)?;
            self.follow()?;
            match page.next {
                Some(next) => from = Some(next),
                None => break,
            }
        }
        for _ in 0..ROUNDS_MAX {
            if differing.is_empty() {
                break;
            }
            self.follow()?;
            differing = self.again(differing)?;
        }
        Ok(differing)
    }

    /// Compares items again, and answers those that still differ.
    pub(super) fn again(&mut self, differing: Vec<Former>) -> Result<Vec<Former>> {
        let mut lines: Vec<Vec<Former>> = (0..self.parallel).map(|_| Vec::new()).collect();
        for (nth, one) in differing.into_iter().enumerate() {
            lines[nth % self.parallel as usize].push(one);
        }
        let compared = self.each_line(lines, |hand, (key, id)| {
            match hand.service.item(&hand.source, &key, &id)? {
                Some(item) => hand.compare(&item),
                // It was deleted, and so it must be in the new container: the counts tell.
                None => Ok(None),
            }
        })?;
        Ok(compared.into_iter().flatten().collect())
    }

    /// Follows changes until nothing differs, where writers are not held back.
    pub(super) fn settle(&mut self, mut differing: Vec<Former>) -> Result<()> {
        for _ in 0..ROUNDS_MAX {
            self.follow()?;
            differing = self.again(differing)?;
            if differing.is_empty() {
                return Ok(());
            }
        }
        Err(differs(&differing))
    }

    /// Refuses to go on where both containers have another number of items.
    pub(super) fn compare_counts(&mut self) -> Result<()> {
        let (former, new) = (self.service.count(&self.source)?, self.service.count(&self.target)?);
        if former == new {
            return Ok(());
        }
        let message = format!("the former container has {former} items and the new one {new}");
        Err(Failure::failed(message))
    }
}

pub(super) fn differs(differing: &[Former]) -> Failure {
    let first = differing.first().map(|(key, id)| format!("{id:?} of {key}")).unwrap_or_default();
    let count = differing.len();
    Failure::failed(format!("{count} items differ between the containers, the first is {first}"))
}

fn check_count(differing: &[Former]) -> Result<()> {
    if differing.len() > DIFFERING_MAX { Err(differs(differing)) } else { Ok(()) }
}

impl Hand {
    /// Compares an item of the former container with the one in the new; none if they are the same.
    fn compare(&mut self, item: &Item) -> Result<Option<Former>> {
        let (key, id) = self.address(item)?;
        let found = self.service.item(&self.target, &key, &id)?;
        if found.is_some_and(|found| found.is_same(item)) {
            return Ok(None);
        }
        let former = self.from.of(item).map_err(Failure::failed)?;
        Ok(Some((former, id)))
    }
}
