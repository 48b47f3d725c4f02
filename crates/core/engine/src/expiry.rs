//! Time to live: expired items are hidden at once and deleted by a sweeper, through their lanes like any other write.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use bytes::{Buf, Bytes};
use lazuli_env::BoxFuture;
use lazuli_shardmap::layout::{self, Space};
use lazuli_shardmap::{ContainerId, ShardId};
use lazuli_store::{Direction, Error, KeyRange, PageLimit, Result, after_key};

use crate::engine::Engine;
use crate::item::{Item, ItemKey};
use crate::shard::LiveShard;
use crate::tx::{Transaction, Tx};

/// A row of the expiry space.
pub(crate) struct Expiry {
    expires_ms: u64,
    pub(crate) key: ItemKey,
}

pub(crate) fn decode(key: &Bytes, mut value: Bytes) -> Result<Expiry> {
    let damaged = || Error::corrupt("bad-expiry", "a row of the expiry space does not decode");
    let (container, _, mut rest) = layout::split(key).ok_or_else(damaged)?;
    if rest.len() < 9 || value.len() != 2 {
        return Err(damaged());
    }
    let (expires_ms, space) = (rest.get_u64(), Space(rest.get_u8()));
    let (route, row) = rest.split_at_checked(value.get_u16().into()).ok_or_else(damaged)?;
    Ok(Expiry { expires_ms, key: ItemKey::new(container, space, route, row) })
}

/// What a shape does when one of its items has expired: it deletes what hangs on the item, in the same transaction.
pub trait Expirer: Send + Sync {
    /// The item is deleted already. Runs inside the lane, perhaps more than once.
    fn expired<'a>(
        &'a self,
        tx: &'a mut Tx<'_>,
        key: &'a ItemKey,
        item: Item,
    ) -> BoxFuture<'a, Result<()>>;
}

/// The expirers of the spaces that have one.
#[derive(Default)]
pub(crate) struct Expirers(Mutex<BTreeMap<Space, Arc<dyn Expirer>>>);

impl Expirers {
    fn get(&self) -> BTreeMap<Space, Arc<dyn Expirer>> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clone()
    }
}

/// The pages of expired items that one sweep of a container works off before it waits for its next turn.
const PAGES_MAX: usize = 32;

/// The writes after which a transaction of the sweep ends: what hangs on one item may be much, and a transaction that is too
/// large would be too large for ever.
const SWEEP_WRITES: usize = 10_000;

/// Deletes what has expired by the time the lane comes to it.
struct Expire {
    expired: Vec<Expiry>,
    expirers: Arc<BTreeMap<Space, Arc<dyn Expirer>>>,
}

impl Transaction for Expire {
    type Output = usize;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<usize> {
        let mut deleted = 0;
        for expiry in &self.expired {
            if tx.writes() > SWEEP_WRITES {
                // The rest is found again by the next sweep.
                break;
            }
            let expirer = self.expirers.get(&expiry.key.space());
            if expirer.is_none() && Space::TENDED.contains(&expiry.key.space()) {
                continue;
            }
            let Some(item) = tx.expire(&expiry.key, expiry.expires_ms).await? else { continue };
            if let Some(expirer) = expirer {
                expirer.expired(tx, &expiry.key, item).await?;
            }
            deleted += 1;
        }
        Ok(deleted)
    }

    fn cost(&self) -> u32 {
        0
    }
}

impl Engine {
    /// Lets a shape have a hand in the end of its items of one space.
    pub fn on_expiry(&self, space: Space, expirer: Arc<dyn Expirer>) {
        let expirers = &self.expirers.0;
        expirers.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).insert(space, expirer);
    }

    /// Deletes expired items of one shard, a bounded number for each container, and says how many.
    pub async fn sweep(&self, id: ShardId) -> Result<usize> {
        let shard = self.shards.get(id)?;
        let expirers = Arc::new(self.expirers.get());
        let mut deleted = 0;
        for container in shard.expiring() {
            let mut after = None;
            for _ in 0..PAGES_MAX {
                let page = self.sweep_page(&shard, container, after, &expirers).await?;
                deleted += page.deleted;
                after = page.last;
                if after.is_none() {
                    break;
                }
            }
        }
        Ok(deleted)
    }

    /// Works off one page of a container's expired items, behind a key of the expiry space.
    async fn sweep_page(
        &self,
        shard: &Arc<LiveShard>,
        container: ContainerId,
        after: Option<Bytes>,
        expirers: &Arc<BTreeMap<Space, Arc<dyn Expirer>>>,
    ) -> Result<SweptPage> {
        // From the page before on, not from the start: a store may have to step over all that was deleted there.
        let start = after.map_or(layout::prefix(container, Space::EXPIRY), |last| after_key(&last));
        let now = self.env.clock.now_ms();
        let end = layout::key(container, Space::EXPIRY, &(now + 1).to_be_bytes());
        let due = KeyRange::new(start, Some(end));
        let limit = PageLimit::items(self.settings.sweep_items);
        let page = shard.store.scan(&due, Direction::Forward, limit).await?;
        let last = page.items.last().map(|(key, _)| key.clone());
        let mut by_route: BTreeMap<Bytes, Vec<Expiry>> = BTreeMap::new();
        for (key, value) in page.items {
            let expiry = decode(&key, value)?;
            let route = Bytes::copy_from_slice(expiry.key.route());
            by_route.entry(route).or_default().push(expiry);
        }
        let mut deleted = 0;
        for (route, expired) in by_route {
            let expire = Expire { expired, expirers: expirers.clone() };
            match self.write(container, &route, expire).await {
                Ok(count) => deleted += count,
                // A partition that is offline or on its way keeps its expired items for the next sweep.
                Err(_) => shard.count_sweep_error(),
            }
        }
        Ok(SweptPage { deleted, last })
    }

    /// Sweeps every shard once.
    pub async fn sweep_all(&self) -> Result<usize> {
        self.sweep_on(&self.shards.all()).await
    }

    pub(crate) async fn sweep_on(&self, shards: &[Arc<LiveShard>]) -> Result<usize> {
        let mut deleted = Ok(0);
        for shard in shards {
            let swept = self.sweep(shard.id).await;
            deleted = deleted.and_then(|total| Ok(total + swept?));
        }
        deleted
    }
}

/// What came of one page.
struct SweptPage {
    deleted: usize,
    /// Its last key, if it had any.
    last: Option<Bytes>,
}
