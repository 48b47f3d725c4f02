//! A load that arrives in parts: each is passed to the thread that writes tables at once, so that little of it is in
//! memory. A small load, or one with rows of the shard itself, becomes an ordinary commit.

use bytes::Bytes;
use lazuli_env::BoxFuture;
use lazuli_store::{Error, Item, Loading, Result, Store, Write, check_sorted};

use crate::bulk::Tables;
use crate::keyspaces::is_data;
use crate::reader::check_writes;
use crate::store::EmbeddedStore;

/// Less than this is an ordinary commit: a table costs more than a journal entry.
const LOAD_BYTES_LEAST: usize = 1024 * 1024;

pub(crate) struct Parts<'s> {
    store: &'s EmbeddedStore,
    guards: Vec<Bytes>,
    last: Option<Bytes>,
    /// The parts before it is known whether they become tables.
    gathered: Vec<Item>,
    gathered_bytes: usize,
    tables: Option<Tables>,
}

impl<'s> Parts<'s> {
    pub(crate) fn new(store: &'s EmbeddedStore, guards: Vec<Bytes>) -> Self {
        Self { store, guards, last: None, gathered: vec![], gathered_bytes: 0, tables: None }
    }

    async fn take(&mut self, mut items: Vec<Item>) -> Result<()> {
        self.check(&items)?;
        if let Some((last, _)) = items.last() {
            self.last = Some(last.clone());
        }
        if let Some(tables) = &mut self.tables {
            return tables.add(items).await;
        }
        self.gathered_bytes +=
            items.iter().map(|(key, value)| key.len() + value.len()).sum::<usize>();
        self.gathered.append(&mut items);
        // Rows of the shard itself are few, and could not become visible atomically with tables of another keyspace.
        let only_data = self.gathered.first().is_some_and(|(key, _)| is_data(key));
        if only_data && self.gathered_bytes >= LOAD_BYTES_LEAST {
            // Writing tables would be in vain without the guards.
            self.store.view(&self.guards).await?;
            let mut tables = self.store.write_tables().await?;
            tables.add(std::mem::take(&mut self.gathered)).await?;
            self.tables = Some(tables);
        }
        Ok(())
    }

    fn check(&self, items: &[Item]) -> Result<()> {
        check_sorted(items)?;
        let first = items.first().map(|(key, _)| key);
        if self.last.is_some() && first.is_some() && first <= self.last.as_ref() {
            return Err(Error::invalid("not-sorted", "ingested items must ascend by key"));
        }
        check_writes(&writes(items))
    }

    async fn put(self) -> Result<()> {
        let Self { store, guards, gathered, tables, .. } = self;
        match tables {
            Some(tables) => store.put_tables(guards, tables.finish().await?).await,
            None => {
                let writes = writes(&gathered);
                check_writes(&writes)?;
                store.begin(guards).await?.commit(writes).await
            }
        }
    }
}

fn writes(items: &[Item]) -> Vec<Write> {
    items.iter().map(|(key, value)| Write::Put(key.clone(), value.clone())).collect()
}

impl Loading for Parts<'_> {
    fn add(&mut self, items: Vec<Item>) -> BoxFuture<'_, Result<()>> {
        Box::pin(self.take(items))
    }

    fn finish<'a>(self: Box<Self>) -> BoxFuture<'a, Result<()>>
    where
        Self: 'a,
    {
        Box::pin(self.put())
    }
}
