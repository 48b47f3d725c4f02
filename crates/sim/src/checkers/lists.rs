//! Lists to which clients append unique numbers, and what the answers say of them.
//!
//! All lists that were ever read under one key must be prefixes of one list, and a read after an answer must see at
//! least the list of that answer: the order is linearizable over all clients. Answered numbers are in it once,
//! unknown ones at most once, refused ones never.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use crate::answer::Answer;
use crate::ensure;
use crate::lock;
use crate::scenario::Found;

pub type List = Vec<u64>;

#[derive(Default)]
struct Seen {
    /// The longest list that was read.
    longest: List,
    done: BTreeSet<u64>,
    unknown: BTreeSet<u64>,
}

/// What is known of each list, by its number.
#[derive(Default)]
pub struct Lists(Mutex<BTreeMap<i64, Seen>>);

impl Lists {
    fn with<T>(&self, list: i64, use_it: impl FnOnce(&mut Seen) -> T) -> T {
        let mut seen = lock(&self.0);
        use_it(seen.entry(list).or_default())
    }

    /// How long a list is at least, for a request that begins now.
    pub fn least(&self, at: i64) -> usize {
        self.with(at, |seen| seen.longest.len())
    }

    /// Compares a list with the longest one that was read before the request began, and with all others.
    pub fn saw(&self, at: i64, list: List, least: usize) -> Found {
        ensure!(list.len() >= least, "list {at}: {least} were seen before, now {}", list.len());
        self.with(at, |seen| {
            let both = list.len().min(seen.longest.len());
            let same = list[..both] == seen.longest[..both];
            ensure!(same, "list {at} was {:?} for one and {list:?} for another", seen.longest);
            if list.len() > seen.longest.len() {
                seen.longest = list;
            }
            Ok(())
        })
    }

    /// Takes note of the answer to an append: the list with its number.
    pub fn appended(&self, at: i64, number: u64, least: usize, answer: Answer<List>) -> Found {
        match answer {
            Answer::Done(list) => {
                self.with(at, |seen| seen.done.insert(number));
                self.saw(at, list, least + 1)
            }
            Answer::Refused(_) => Ok(()),
            Answer::Unknown => {
                self.with(at, |seen| seen.unknown.insert(number));
                Ok(())
            }
        }
    }

    /// Compares a list as it is in the end with all answers.
    pub fn ended(&self, at: i64, list: List) -> Found {
        let least = self.least(at);
        self.saw(at, list.clone(), least)?;
        let once: BTreeSet<u64> = list.iter().copied().collect();
        ensure!(once.len() == list.len(), "list {at} holds a number twice: {list:?}");
        self.with(at, |seen| {
            let lost: Vec<_> = seen.done.difference(&once).collect();
            ensure!(lost.is_empty(), "list {at}: answered and lost: {lost:?}");
            let known = |number: &&u64| seen.done.contains(number) || seen.unknown.contains(number);
            let wrong = once.iter().find(|number| !known(number));
            ensure!(wrong.is_none(), "list {at}: refused and there: {wrong:?}");
            Ok(())
        })
    }
}
