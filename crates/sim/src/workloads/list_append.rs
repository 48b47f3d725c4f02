//! Lists to which clients append unique numbers: `checkers::lists` says what must hold of them.

use std::sync::Arc;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use lazuli_engine::{ItemKey, Transaction, Tx};
use lazuli_store::Result as StoreResult;

use super::{Built, Client, Workload};
use crate::answer::Answer;
use crate::checkers::lists::{List, Lists};
use crate::cluster::{Cluster, Table};
use crate::scenario::Found;

const LISTS: i64 = 3;

pub struct ListAppend {
    table: Table,
    lists: Lists,
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
        Ok(Arc::new(Self { table, lists: Lists::default() }))
    }

    async fn append(&self, client: &Client, at: i64, number: u64) -> Found {
        let least = self.lists.least(at);
        let append = Append { key: self.table.key(at, b""), number };
        let answer = client.write(&self.table, at, append).await?;
        self.lists.appended(at, number, least, answer)
    }

    async fn read(&self, client: &Client, at: i64) -> Found {
        let least = self.lists.least(at);
        match client.get(&self.table, at, b"").await? {
            Answer::Done(found) => {
                let list = found.map_or(List::new(), |item| decode(item.payload));
                self.lists.saw(at, list, least)
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
            let found = client.get_surely(&self.table, at, b"").await?;
            self.lists.ended(at, found.map_or(List::new(), |item| decode(item.payload)))?;
        }
        Ok(())
    }
}
