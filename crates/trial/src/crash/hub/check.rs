//! The logs as they were read, and what must hold of them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use lazuli_trial::Result;

use super::{PARTITIONS, Sent};

#[derive(Default)]
pub(super) struct Logs {
    /// The tags of each partition, by number.
    stored: [Vec<String>; PARTITIONS],
    /// Where each tag is.
    places: BTreeMap<String, (usize, usize)>,
    sent: Vec<Sent>,
    /// How many of them were checked already.
    checked: usize,
    followed: usize,
}

impl Logs {
    /// The number behind the last one that was read.
    pub(super) fn end(&self, partition: usize) -> usize {
        self.stored[partition].len()
    }

    pub(super) fn published(&mut self, sent: Vec<Sent>) {
        self.sent.extend(sent);
    }

    /// What a reader saw before the server was killed stays: it had been answered.
    pub(super) fn saw(&mut self, partition: usize, seen: Vec<(i64, String)>) -> Result {
        self.followed += seen.len();
        self.stored(partition, seen)
    }

    /// Adds what follows the last number that was read; there is no gap and no repetition.
    pub(super) fn stored(&mut self, partition: usize, seen: Vec<(i64, String)>) -> Result {
        for (number, tag) in seen {
            let log = &mut self.stored[partition];
            if number != log.len() as i64 {
                let expected = log.len();
                return Err(format!("partition {partition}: {number} came, not {expected}"));
            }
            if let Some(other) = self.places.insert(tag.clone(), (partition, log.len())) {
                return Err(format!("{tag} is at {other:?} and at {partition}, {number}"));
            }
            log.push(tag);
        }
        Ok(())
    }

    /// The log still says what it said.
    pub(super) fn same(&self, partition: usize, all: &[(i64, String)]) -> Result {
        let stored = self.stored[partition].iter().enumerate();
        let found = all.iter().map(|(number, tag)| (*number as usize, tag));
        match stored.eq(found) {
            true => Ok(()),
            false => Err(format!("partition {partition} has changed what was read before")),
        }
    }

    /// What was answered is there; what was sent together is there together, side by side, or not at all.
    pub(super) fn check_round(&mut self) -> Result {
        for sent in &self.sent[self.checked..] {
            let places: Vec<_> = sent.tags.iter().filter_map(|tag| self.places.get(tag)).collect();
            if places.is_empty() && !sent.answered {
                continue;
            }
            let is_row =
                places.windows(2).all(|pair| pair[0].0 == pair[1].0 && pair[0].1 + 1 == pair[1].1);
            if places.len() != sent.tags.len() || !is_row {
                return Err(format!("{sent:?} is not where it should be: {places:?}"));
            }
        }
        self.checked = self.sent.len();
        Ok(())
    }

    /// All events of a key are in one partition, in the order in which they were sent; and nothing is there that was not.
    pub(super) fn check_order(&self) -> Result {
        let mut last: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
        for sent in &self.sent {
            let (Some(key), Some(place)) = (&sent.key, self.places.get(&sent.tags[0])) else {
                continue;
            };
            if let Some(before) = last.insert(key, *place)
                && (before.0 != place.0 || before.1 >= place.1)
            {
                return Err(format!("key {key}: {place:?} follows {before:?}"));
            }
        }
        let sent: BTreeSet<&String> = self.sent.iter().flat_map(|sent| &sent.tags).collect();
        match self.places.keys().find(|tag| !sent.contains(tag)) {
            Some(tag) => Err(format!("{tag} was never sent")),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Logs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let answered = self.sent.iter().filter(|sent| sent.answered);
        let answered: usize = answered.map(|sent| sent.tags.len()).sum();
        let (stored, followed) = (self.places.len(), self.followed);
        write!(
            f,
            "{answered} events were answered and {stored} are stored, {followed} were read as \
             they came; no gap, none lost, doubled, torn or out of order"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(key: &str, tags: &[&str], answered: bool) -> Sent {
        let tags = tags.iter().map(|tag| (*tag).to_owned()).collect();
        Sent { key: Some(key.to_owned()), tags, answered }
    }

    fn read(tags: &[&str]) -> Vec<(i64, String)> {
        tags.iter().enumerate().map(|(number, tag)| (number as i64, (*tag).to_owned())).collect()
    }

    #[test]
    fn gaps_repeats_losses_and_a_changed_order_are_found() {
        let mut logs = Logs::default();
        assert!(logs.stored(0, vec![(1, "a".into())]).is_err());
        logs.stored(0, read(&["a", "b", "c"])).unwrap();
        let mut repeated = Logs::default();
        repeated.stored(0, read(&["a"])).unwrap();
        assert!(repeated.stored(1, read(&["a"])).is_err());
        assert!(logs.same(0, &read(&["a", "b"])).is_err());
        logs.same(0, &read(&["a", "b", "c"])).unwrap();
        logs.published(vec![sent("k", &["a", "b"], true), sent("k", &["c"], false)]);
        logs.check_round().unwrap();
        logs.check_order().unwrap();
        logs.published(vec![sent("k", &["gone"], true)]);
        assert!(logs.check_round().is_err());
        let mut other = Logs::default();
        other.stored(0, read(&["b", "a"])).unwrap();
        other.published(vec![sent("k", &["a"], true), sent("k", &["b"], true)]);
        assert!(other.check_order().is_err());
        let mut torn = Logs::default();
        torn.stored(0, read(&["a"])).unwrap();
        torn.published(vec![sent("k", &["a", "b"], false)]);
        assert!(torn.check_round().is_err());
    }
}
