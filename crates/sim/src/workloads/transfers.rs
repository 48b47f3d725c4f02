//! Transfers between the accounts of shardlets, in one partition or in several of one shard.
//!
//! The sum never changes, not even inside one transaction that reads all accounts. Each transfer leaves a note in
//! both shardlets: both or none exist, once, and always if it was answered.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use lazuli_engine::{ItemKey, Transaction, Tx};
use lazuli_store::{Error, Result as StoreResult};

use super::{Built, Client, Workload};
use crate::answer::Answer;
use crate::cluster::{Cluster, Table};
use crate::ensure;
use crate::lock;
use crate::scenario::Found;

const ACCOUNTS: i64 = 6;
const BALANCE: i64 = 100;
const BALANCE_ROW: &[u8] = b"balance";

pub struct Transfers {
    table: Table,
    /// Numbers of the answered transfers, and of those that may have happened.
    done: Mutex<BTreeSet<u64>>,
    unknown: Mutex<BTreeSet<u64>>,
}

struct Open(ItemKey);

impl Transaction for Open {
    type Output = ();

    async fn run(&self, tx: &mut Tx<'_>) -> StoreResult<()> {
        tx.put(&self.0, encode(BALANCE)).await
    }
}

struct Transfer {
    from: [ItemKey; 2],
    to: [ItemKey; 2],
    amount: i64,
}

impl Transaction for Transfer {
    type Output = ();

    async fn run(&self, tx: &mut Tx<'_>) -> StoreResult<()> {
        let (from, to) = (balance(tx, &self.from[0]).await?, balance(tx, &self.to[0]).await?);
        // The first write comes before the refusal, so that the refusal has something to undo.
        tx.put(&self.from[0], encode(from - self.amount)).await?;
        if from < self.amount {
            return Err(Error::precondition("too-poor", "the balance is too low"));
        }
        tx.put(&self.to[0], encode(to + self.amount)).await?;
        tx.put(&self.from[1], Bytes::new()).await?;
        tx.put(&self.to[1], Bytes::new()).await
    }
}

struct Sum(Vec<ItemKey>);

impl Transaction for Sum {
    type Output = i64;

    async fn run(&self, tx: &mut Tx<'_>) -> StoreResult<i64> {
        let mut sum = 0;
        for key in &self.0 {
            sum += balance(tx, key).await?;
        }
        Ok(sum)
    }
}

fn encode(balance: i64) -> Bytes {
    Bytes::copy_from_slice(&balance.to_be_bytes())
}

fn decode(payload: &[u8]) -> i64 {
    payload.try_into().map_or(0, i64::from_be_bytes)
}

async fn balance(tx: &Tx<'_>, key: &ItemKey) -> StoreResult<i64> {
    Ok(tx.get(key).await?.map_or(0, |item| decode(&item.payload)))
}

fn note(number: u64) -> Vec<u8> {
    [b"note", &number.to_be_bytes()[..]].concat()
}

impl Transfers {
    pub async fn setup(cluster: &Cluster) -> Built {
        let table = cluster.create_table("transfers", 0..ACCOUNTS).await?;
        let client = Client::outside(cluster);
        for account in 0..ACCOUNTS {
            let open = || Open(table.key(account, BALANCE_ROW));
            client.write_surely(&table, account, open).await?;
        }
        Ok(Arc::new(Self { table, done: Mutex::default(), unknown: Mutex::default() }))
    }

    async fn transfer(&self, client: &Client, number: u64) -> Found {
        let from = client.random.between(0, ACCOUNTS as u64 - 1) as i64;
        let to = (from + 1 + client.random.between(0, ACCOUNTS as u64 - 2) as i64) % ACCOUNTS;
        let keys = |account| {
            [self.table.key(account, BALANCE_ROW), self.table.key(account, &note(number))]
        };
        let amount = client.random.between(1, 60) as i64;
        let transfer = Transfer { from: keys(from), to: keys(to), amount };
        match client.write_many(&self.table, &[from, to], transfer).await? {
            Answer::Done(()) => _ = lock(&self.done).insert(number),
            Answer::Refused(_) => {}
            Answer::Unknown => _ = lock(&self.unknown).insert(number),
        }
        Ok(())
    }

    async fn sum(&self, client: &Client) -> Found {
        let accounts: Vec<i64> = (0..ACCOUNTS).collect();
        let keys = accounts.iter().map(|account| self.table.key(*account, BALANCE_ROW)).collect();
        // Over several shards this is refused, and only the final check adds up.
        if let Answer::Done(sum) = client.write_many(&self.table, &accounts, Sum(keys)).await? {
            ensure!(sum == ACCOUNTS * BALANCE, "the sum is {sum} in a transaction");
        }
        Ok(())
    }
}

impl Workload for Transfers {
    async fn round(&self, client: &Client, round: u64) -> Found {
        match client.random.chance(150) {
            true => self.sum(client).await,
            false => self.transfer(client, client.number * 1_000_000 + round).await,
        }
    }

    async fn check(&self, client: &Client) -> Found {
        let mut sum = 0;
        let mut notes: Vec<u64> = Vec::new();
        for (account, row, item) in client.scan_surely(&self.table).await? {
            if row == BALANCE_ROW {
                let balance = decode(&item.payload);
                ensure!(balance >= 0, "account {account} has {balance}");
                sum += balance;
            } else {
                let number = row.get(4..).and_then(|bytes| bytes.try_into().ok());
                notes.push(number.map_or(0, u64::from_be_bytes));
            }
        }
        ensure!(sum == ACCOUNTS * BALANCE, "the sum is {sum}");
        for number in &notes {
            let times = notes.iter().filter(|other| *other == number).count();
            ensure!(times == 2, "transfer {number} left {times} notes: half a transaction");
            let tried = lock(&self.done).contains(number) || lock(&self.unknown).contains(number);
            ensure!(tried, "transfer {number} was refused and happened");
        }
        for number in &*lock(&self.done) {
            ensure!(notes.contains(number), "transfer {number} was answered and is lost");
        }
        Ok(())
    }
}
