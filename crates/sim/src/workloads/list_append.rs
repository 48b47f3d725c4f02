//! Lists to which clients append unique numbers.
//!
//! All lists that were ever read under one key must be prefixes of one list, and a read after an answer must see at
//! least the list of that answer: the order is linearizable over all clients. Answered numbers are in it once,
//! unknown ones at most once, refused ones never.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use bytes::{Buf, BufMut, Bytes, BytesMut};
use lazuli_engine::{ItemKey, Transaction, Tx};
use lazuli_store::Result as StoreResult;

use super::{Built, Client, Workload};
use crate::answer::Answer;
use crate::cluster::{Cluster, Table};
use crate::ensure;
use crate::lock;
use crate::scenario::Found;

const LISTS: i64 = 3;

type List = Vec<u64>;

#[derive(Default)]
struct Seen {
    /// The longest list that was read.
    longest: List,
    done: BTreeSet<u64>,
    unknown: BTreeSet<u64>,
}

pub struct ListAppend {
    table: Table,
    seen: Mutex<BTreeMap<i64, Seen>>,
}

struct Append {
    key: ItemKey,
    number: u64,
}

impl Transaction for Append {
    type Output = List;

    async fn run(&self, tx: &mut Tx<'_>) -> StoreResult<List> {
        let mut list = tx.get(&self.key).await?.map_or(List::new(), |item| decode(item.payload));
        list.push(self.number);
        tx.put(&self.key, encode(&list)).await?;
        Ok(list)
    }
}

fn encode(list: &[u64]) -> Bytes {
    let mut bytes = BytesMut::with_capacity(8 * list.len());
    list.iter().for_each(|number| bytes.put_u64(*number));
    bytes.freeze()
}

fn decode(mut payload: Bytes) -> List {
    let mut list = List::new();
    while payload.len() >= 8 {
        list.push(payload.get_u64());
    }
    list
}

impl ListAppend {
    pub async fn setup(cluster: &Cluster) -> Built {
        let table = cluster.create_table("list_append", 0..LISTS).await?;
        let seen = (0..LISTS).map(|list| (list, Seen::default())).collect();
        Ok(Arc::new(Self { table, seen: Mutex::new(seen) }))
    }

    fn with<T>(&self, list: i64, use_it: impl FnOnce(&mut Seen) -> T) -> T {
        let mut seen = lock(&self.seen);
        use_it(seen.entry(list).or_default())
    }

    /// Compares a list with the longest one that was read before the request began, and with all others.
    fn saw(&self, at: i64, list: List, least: usize) -> Found {
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

    async fn append(&self, client: &Client, at: i64, number: u64) -> Found {
        let least = self.with(at, |seen| seen.longest.len());
        let append = Append { key: self.table.key(at, b""), number };
        match client.write(&self.table, at, append).await? {
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

    async fn read(&self, client: &Client, at: i64) -> Found {
        let least = self.with(at, |seen| seen.longest.len());
        match client.get(&self.table, at, b"").await? {
            Answer::Done(found) => {
                self.saw(at, found.map_or(List::new(), |item| decode(item.payload)), least)
            }
            Answer::Refused(_) | Answer::Unknown => Ok(()),
        }
    }
}

impl Workload for ListAppend {
    async fn round(&self, client: &Client, round: u64) -> Found {
        let at = client.random.between(0, LISTS as u64 - 1) as i64;
        match client.random.chance(300) {
            true => self.read(client, at).await,
            false => self.append(client, at, client.number * 1_000_000 + round).await,
        }
    }

    async fn check(&self, client: &Client) -> Found {
        for at in 0..LISTS {
            let least = self.with(at, |seen| seen.longest.len());
            let found = client.get_surely(&self.table, at, b"").await?;
            let list = found.map_or(List::new(), |item| decode(item.payload));
            self.saw(at, list.clone(), least)?;
            let once: BTreeSet<u64> = list.iter().copied().collect();
            ensure!(once.len() == list.len(), "list {at} holds a number twice: {list:?}");
            self.with(at, |seen| {
                let lost: Vec<_> = seen.done.difference(&once).collect();
                ensure!(lost.is_empty(), "list {at}: answered and lost: {lost:?}");
                let known =
                    |number: &&u64| seen.done.contains(number) || seen.unknown.contains(number);
                let wrong = once.iter().find(|number| !known(number));
                ensure!(wrong.is_none(), "list {at}: refused and there: {wrong:?}");
                Ok(())
            })?;
        }
        Ok(())
    }
}
