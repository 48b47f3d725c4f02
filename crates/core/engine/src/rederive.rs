//! Deriving rows anew, when what a container says about them has changed.

use bytes::Bytes;
use lazuli_shardmap::layout::{PREFIX_BYTES, Space};
use lazuli_shardmap::manager::ContainerUpdate;
use lazuli_shardmap::{Container, ContainerId};
use lazuli_store::{Direction, Error, KeyRange, PageLimit, Result, Write, after_key};

use crate::derived::{self, Standing};
use crate::engine::Engine;
use crate::fanout::{Continuation, FanOut, OnFailure, Order, PartitionScan, RowPage};
use crate::item::{ItemKey, keys_of};
use crate::tx::{Transaction, Tx};
use crate::view::View;

/// Rows that are deleted in one commit.
const DELETE_KEYS: usize = 1_000;
/// What is read at once. The entries of so many items fit in a transaction.
const PAGE: PageLimit = PageLimit { items: 128, bytes: 1024 * 1024 };

/// Writes the entries that items may lack yet. Answers how many of the items were in its partition.
struct DeriveAgain(Vec<ItemKey>);

impl Transaction for DeriveAgain {
    type Output = usize;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<usize> {
        for (done, key) in self.0.iter().enumerate() {
            if tx.claim_of(key).is_err() {
                return Ok(done);
            }
            if let Some(item) = tx.get_raw(key).await? {
                tx.derive_again(key, &item)?;
            }
        }
        Ok(self.0.len())
    }

    fn cost(&self) -> u32 {
        0
    }
}

/// The keys of all items, those that have expired too: they have entries until they are swept away.
struct AllItems;

impl PartitionScan for AllItems {
    type Row = Bytes;

    fn order(&self) -> Order {
        Order::ByRoute
    }

    async fn page(
        &self,
        view: &View,
        after: Option<&Bytes>,
        limit: PageLimit,
    ) -> Result<RowPage<Bytes>> {
        let mut range = view.routes().clone();
        if let Some(after) = after {
            range.start = range.start.max(after_key(after));
        }
        if range.is_empty() {
            return Ok(RowPage { rows: Vec::new(), bytes: 0, next: None });
        }
        let keys = keys_of(view.container(), Space::ITEMS, &range);
        let page = view.reader.scan(&keys, Direction::Forward, limit).await?;
        let last = page.items.last().filter(|_| page.more);
        Ok(RowPage {
            next: last.map(|(key, _)| key.slice(PREFIX_BYTES..)),
            bytes: page.items.iter().map(|(key, value)| key.len() + value.len()).sum(),
            rows: page.items.into_iter().map(|(key, _)| key).collect(),
        })
    }

    fn sort_key(&self, key: &Bytes) -> Result<Bytes> {
        Ok(key.slice(PREFIX_BYTES..))
    }
}

impl Tx<'_> {
    /// Writes the entries of an item that it may lack yet.
    fn derive_again(&mut self, key: &ItemKey, item: &crate::item::Item) -> Result<()> {
        let claim = self.claim_of(key)?;
        let Some(rules) = self.claims[claim].rules.clone() else { return Ok(()) };
        for entry in rules.entries(key, item)? {
            if rules.standing(&entry) == Standing::Building {
                let (key, value) = derived::row(&entry, key);
                self.write(Write::Put(key, value))?;
            }
        }
        Ok(())
    }
}

impl Engine {
    /// Changes what a container says about derived rows. Every write that any process makes after the answer goes by it.
    pub async fn update_rules(&self, update: &ContainerUpdate) -> Result<Container> {
        let (manager, update) = (self.manager.clone(), update.clone());
        let update = async move {
            let updated = manager.update_rules(&update).await?;
            // A shard that does not take its copy now gets it when the server starts again.
            let _ = manager.mirror_container(&updated).await;
            Ok::<_, Error>(updated)
        };
        let updated = self.to_the_end(update).await?;
        self.router.refresh(updated.id, None).await?;
        Ok(updated)
    }

    /// Derives the entries that items may lack, for some items behind a place in the order of `route | row key`. Answers
    /// how many items that were, and where to go on if there are more.
    pub async fn derive_page(
        &self,
        container: ContainerId,
        after: Option<&Bytes>,
    ) -> Result<(usize, Option<Bytes>)> {
        let request = FanOut { routes: KeyRange::all(), limit: PAGE, on_failure: OnFailure::Fail };
        let after = after.map(|after| Continuation::new(container, after.clone()));
        let page = self.fan_out(container, &AllItems, &request, after.as_ref()).await?;
        let known = self.router.container(container).await?;
        let mut keys = Vec::with_capacity(page.rows.len());
        for key in page.rows {
            let (route, _) = known.kind.split(&known.key, &key[PREFIX_BYTES..])?;
            let length = route.len();
            keys.push(ItemKey::from_bytes(key, length)?);
        }
        let items = keys.len();
        while let Some(first) = keys.first() {
            let route = Bytes::copy_from_slice(first.route());
            let done = self.write(container, &route, DeriveAgain(keys.clone())).await?;
            keys.drain(..done.max(1));
        }
        Ok((items, page.next.map(|next| next.position().clone())))
    }

    /// Deletes all entries of a container that begin with these bytes, on every shard. Nobody may write such any more.
    pub async fn delete_entries(&self, container: ContainerId, prefix: &[u8]) -> Result<()> {
        let range = KeyRange::prefix(Bytes::copy_from_slice(prefix));
        // One that this process does not have in use may hold some too, so it fails then.
        for shard in self.manager.catalog().shards().await? {
            let shard = self.shards.get(shard.id)?;
            let keys = keys_of(container, Space::INDEX, &range);
            while shard.store.delete_range(&keys, DELETE_KEYS).await? == DELETE_KEYS {
                crate::join::yield_now().await;
            }
        }
        Ok(())
    }
}
