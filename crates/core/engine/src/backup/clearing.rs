//! Deleting what the routes of a restore hold, before the backup comes in its place.

use bytes::Bytes;
use lazuli_shardmap::layout::{PREFIX_BYTES, Space};
use lazuli_store::blocks::Owner;
use lazuli_store::{Direction, KeyRange, PageLimit, Result, Write, after_key};

use super::filed::Filed;
use super::restore::Restore;
use crate::derived;
use crate::garbage::{clean_keys, is_by_time_in};
use crate::item::{Item, keys_of};
use crate::stats::Counts;

/// What is read at once to find the files that rows name.
const PAGE: PageLimit = PageLimit { items: 1_024, bytes: 1024 * 1024 };

impl Restore {
    /// Deletes what the partitions hold among the routes of the backup.
    pub async fn clear(&self) -> Result<()> {
        for at in 0..self.taken.partitions.len() {
            self.forget_figures(at).await?;
            let inside = self.taken.partitions[at].routes.intersect(&self.head.routes);
            if let Some(filed) = &self.filed {
                for space in filed.spaces() {
                    self.remove_files(at, &**filed, *space, &inside).await?;
                }
            }
            self.delete_rows(at, &inside).await?;
        }
        Ok(())
    }

    /// Figures that say that they are no more than estimates, with the number behind which the clock goes on.
    async fn forget_figures(&self, at: usize) -> Result<()> {
        let (shard, id) = (&self.shards[at], self.taken.partitions[at].id);
        let txn = shard.store.begin(vec![self.guard(at)]).await?;
        let mut counts = Counts::read(&*txn, id).await?.unwrap_or_default();
        (counts.exact, counts.estimated) = (false, true);
        counts.last_lsn = counts.last_lsn.max(self.head.lsn);
        shard.lsns.push_past(counts.last_lsn);
        txn.commit(vec![Write::Put(Counts::key(id), counts.encode())]).await
    }

    /// Files go before the rows that name them: what is cut short in between is found by the next restore.
    async fn remove_files(
        &self,
        at: usize,
        filed: &dyn Filed,
        space: Space,
        inside: &KeyRange,
    ) -> Result<()> {
        let mut keys = keys_of(self.container.id, space, inside);
        loop {
            // While the guard exists only this restore writes here.
            let txn = self.shards[at].store.begin(vec![self.guard(at)]).await?;
            let page = txn.scan(&keys, Direction::Forward, PAGE).await?;
            let Some((last, _)) = page.items.last() else { return Ok(()) };
            keys.start = after_key(last);
            for (key, value) in page.items {
                let behind = &key[PREFIX_BYTES..];
                let (route, row) = self.container.kind.split(&self.container.key, behind)?;
                let route = key.slice_ref(route);
                let owner = Owner { container: self.container.id.0, route };
                for id in filed.ids(space, row, Item::decode(value)?.payload)? {
                    filed.blocks().remove_of(&owner, id).await?;
                }
            }
            if !page.more {
                return Ok(());
            }
        }
    }

    async fn delete_rows(&self, at: usize, inside: &KeyRange) -> Result<()> {
        let (shard, guard): (_, Bytes) = (&self.shards[at], self.guard(at));
        for space in Space::KEY_ORDERED {
            let keys = keys_of(self.container.id, *space, inside);
            clean_keys(shard, &guard, keys, |_, _| true).await?;
        }
        for space in Space::TIME_ORDERED {
            let keys = keys_of(self.container.id, *space, &KeyRange::all());
            clean_keys(shard, &guard, keys, |key, _| is_by_time_in(key, inside)).await?;
        }
        let keys = derived::all_keys(self.container.id);
        let is_inside = |key: &[u8], value: &[u8]| derived::is_in(key, value, inside);
        clean_keys(shard, &guard, keys, is_inside).await?;
        Ok(())
    }
}
