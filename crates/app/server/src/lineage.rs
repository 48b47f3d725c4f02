//! Checks at every start and while the server runs that its folders belong together.
//!
//! `lazuli_shardmap::lineage` has the rule. Here it is applied: what each folder says of itself is read before anything is
//! taken into use; then the start gets its number and is written down by catalog and members; and every few seconds, and
//! at a clean stop, each side learns how many commits the other has. What is in doubt is left as it is.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use lazuli_env::Env;
use lazuli_shardmap::ShardId;
use lazuli_shardmap::catalog::Catalog;
use lazuli_shardmap::lineage::{
    Doubt, Member, Standing, Start, Witness, judge, last_start, put_last_start, put_witnesses,
    read_standing, read_witness, write_standing,
};
use lazuli_store::{Error, Result, Store};
use lazuli_store_embedded::EmbeddedStore;
use tokio::sync::Mutex;

/// How often each side learns how far the other has come. A copy that is younger than this and put back after a crash is
/// not told from what it is a copy of.
pub(crate) const FLOORS_INTERVAL: Duration = Duration::from_secs(2);

/// What a shard's folder says of itself, beside what the catalog remembers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Looked {
    pub(crate) witness: Option<Witness>,
    pub(crate) found: Option<Start>,
    pub(crate) doubt: Option<Doubt>,
}

/// How far a store has come, without what is written here: else each record would call for the next one.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    /// Commits that were made here.
    own: u64,
    /// All others, as last recorded.
    others: u64,
}

impl Count {
    fn others_of(self, store: &EmbeddedStore) -> u64 {
        store.commits_synced().saturating_sub(self.own)
    }
}

#[derive(Default)]
struct Counts {
    catalog: Count,
    shards: BTreeMap<ShardId, Count>,
}

pub(crate) struct Lineage {
    env: Env,
    catalog: Arc<Catalog>,
    store: Arc<EmbeddedStore>,
    start: OnceLock<Start>,
    counts: Mutex<Counts>,
}

impl Lineage {
    pub(crate) fn new(env: Env, catalog: Arc<Catalog>, store: Arc<EmbeddedStore>) -> Self {
        let counts = Mutex::default();
        Self { env, catalog, store, start: OnceLock::new(), counts }
    }

    /// Records this start under a number above that of every start that the catalog or a member has recorded.
    pub(crate) async fn begin(&self, highest_seen: u64) -> Result<Start> {
        let last = last_start(&self.catalog).await?.map_or(0, |start| start.number);
        let number = last.max(highest_seen) + 1;
        let start = Start { number, token: self.env.ids.next_id() };
        put_last_start(&self.catalog, &start).await?;
        self.store.settle().await?;
        Ok(*self.start.get_or_init(|| start))
    }

    pub(crate) fn start(&self) -> Result<Start> {
        let none = || Error::internal("no-start", "the start has no number yet");
        self.start.get().copied().ok_or_else(none)
    }

    /// Compares what a member says of itself with what the catalog remembers.
    pub(crate) async fn look(
        &self,
        member: Member,
        standing: Option<Standing>,
        commits: u64,
    ) -> Result<Looked> {
        let witness = read_witness(&self.catalog, member).await?;
        let catalog_commits = self.store.commits_synced();
        let doubt = judge(witness.as_ref(), standing.as_ref(), commits, catalog_commits);
        Ok(Looked { witness, found: standing.map(|it| it.start), doubt })
    }

    /// The same for the store of a shard.
    pub(crate) async fn look_at(
        &self,
        shard: ShardId,
        store: &Arc<EmbeddedStore>,
    ) -> Result<Looked> {
        let rows: Arc<dyn Store> = store.clone();
        let standing = read_standing(&rows).await?;
        self.look(Member::Shard(shard), standing, store.commits_synced()).await
    }

    /// Has the catalog remember by which shards it was found to be an older copy.
    pub(crate) async fn note_older_catalog(&self, shards: &[(ShardId, Looked)]) -> Result<()> {
        let noted = shards.iter().filter_map(|(shard, looked)| {
            let Some(Doubt::OlderCatalogCommits { found, floor }) = looked.doubt else {
                return None;
            };
            let witness = looked.witness.filter(|witness| witness.behind.is_none())?;
            let witness = Witness { behind: Some((found, floor)), ..witness };
            Some((Member::Shard(*shard), Some(witness)))
        });
        put_witnesses(&self.catalog, &noted.collect::<Vec<_>>()).await
    }

    /// The first step of an agreement: the catalog writes down that these members are about to take this start.
    pub(crate) async fn announce(&self, members: &[(Member, Looked)]) -> Result<Start> {
        let start = self.start()?;
        let announced = |(member, looked): &(Member, Looked)| {
            // Floors of what was accepted as it is do not count any more.
            let witness = looked.witness.filter(|_| looked.doubt.is_none()).unwrap_or_default();
            (*member, Some(witness.before(looked.found, start)))
        };
        let witnesses: Vec<_> = members.iter().map(announced).collect();
        put_witnesses(&self.catalog, &witnesses).await?;
        self.store.settle().await?;
        Ok(start)
    }

    /// The third one: these members have taken it, and have this many commits.
    pub(crate) async fn conclude(&self, members: &[(Member, u64)]) -> Result<()> {
        let (start, now_ms) = (self.start()?, self.env.clock.now_ms());
        let witness = |commits: u64| Some(Witness::after(start, commits, now_ms));
        let concluded = members.iter().map(|(member, commits)| (*member, witness(*commits)));
        put_witnesses(&self.catalog, &concluded.collect::<Vec<_>>()).await
    }

    /// All steps for shards that are not in doubt, or were accepted as they are. Answers for each whether it has taken the
    /// start; one that has not is as it was, and its next start finds it so.
    pub(crate) async fn agree(
        &self,
        shards: &[(ShardId, Arc<EmbeddedStore>, Looked)],
    ) -> Result<Vec<Result<()>>> {
        let members = shards.iter().map(|(id, _, looked)| (Member::Shard(*id), *looked));
        let start = self.announce(&members.collect::<Vec<_>>()).await?;
        let standing = Standing { start, catalog_floor: self.store.commits_synced() };
        let mut taken = Vec::new();
        for (_, store, _) in shards {
            let rows: Arc<dyn Store> = store.clone();
            taken.push(write_standing(&rows, &standing).await);
        }
        let (mut counts, mut concluded) = (self.counts.lock().await, Vec::new());
        for ((id, store, _), taken) in shards.iter().zip(&mut taken) {
            if taken.is_ok() {
                *taken = store.settle().await;
            }
            if taken.is_ok() {
                let commits = store.commits_synced();
                concluded.push((Member::Shard(*id), commits));
                counts.shards.insert(*id, Count { own: 0, others: commits });
            }
        }
        self.conclude(&concluded).await?;
        Ok(taken)
    }

    /// Forgets a shard that was removed.
    pub(crate) async fn forget(&self, shard: ShardId) -> Result<()> {
        self.counts.lock().await.shards.remove(&shard);
        put_witnesses(&self.catalog, &[(Member::Shard(shard), None)]).await
    }

    /// Tells each side how far the other has come, where it has. The floor of the block files comes along.
    pub(crate) async fn record(
        &self,
        shards: &[(ShardId, Arc<EmbeddedStore>)],
        blocks: Option<u64>,
    ) -> Result<()> {
        let start = self.start()?;
        let mut counts = self.counts.lock().await;
        let catalog_commits = self.store.commits_synced();
        let catalog_others = counts.catalog.others_of(&self.store);
        let tells_shards = catalog_others != counts.catalog.others;
        let now_ms = self.env.clock.now_ms();
        let mut witnesses = Vec::new();
        for (shard, store) in shards {
            let Some(count) = counts.shards.get_mut(shard) else { continue };
            if tells_shards {
                let rows: Arc<dyn Store> = store.clone();
                let standing = Standing { start, catalog_floor: catalog_commits };
                match write_standing(&rows, &standing).await {
                    Ok(()) => count.own += 1,
                    // A store that takes no writes has trouble of its own, which is told elsewhere.
                    Err(error) => tracing::debug!(%shard, %error, "a shard takes no floor"),
                }
            }
            let others = count.others_of(store);
            if others != count.others {
                count.others = others;
                let witness = Witness::after(start, store.commits_synced(), now_ms);
                witnesses.push((Member::Shard(*shard), Some(witness)));
            }
        }
        if let Some(mark) = blocks {
            witnesses.push((Member::Blocks, Some(Witness::after(start, mark, now_ms))));
        }
        counts.catalog.others = catalog_others;
        if !witnesses.is_empty() {
            put_witnesses(&self.catalog, &witnesses).await?;
            counts.catalog.own += 1;
        }
        Ok(())
    }

    /// Records what is final: the stores are closed, and nothing more will come.
    pub(crate) async fn record_last(
        &self,
        shards: &[(ShardId, Arc<EmbeddedStore>)],
        blocks: Option<u64>,
    ) -> Result<()> {
        let (start, now_ms) = (self.start()?, self.env.clock.now_ms());
        let counts = self.counts.lock().await;
        let agreed = shards.iter().filter(|(shard, _)| counts.shards.contains_key(shard));
        let witness = |commits| Some(Witness::after(start, commits, now_ms));
        let shards = agreed.map(|(id, it)| (Member::Shard(*id), witness(it.commits_synced())));
        let blocks = blocks.map(|mark| (Member::Blocks, witness(mark)));
        put_witnesses(&self.catalog, &shards.chain(blocks).collect::<Vec<_>>()).await
    }

    /// Tells a shard that is about to be closed how far the catalog has come.
    pub(crate) async fn tell_last(&self, store: &Arc<EmbeddedStore>) -> Result<()> {
        let rows: Arc<dyn Store> = store.clone();
        let catalog_floor = self.store.commits_synced();
        write_standing(&rows, &Standing { start: self.start()?, catalog_floor }).await
    }

    /// Whether others have written to the catalog since floors were last recorded.
    pub(crate) async fn is_catalog_changed(&self) -> bool {
        let catalog = self.counts.lock().await.catalog;
        catalog.others_of(&self.store) != catalog.others
    }

    /// Whether something was written since floors were last recorded.
    pub(crate) async fn is_behind(&self, shards: &[(ShardId, Arc<EmbeddedStore>)]) -> bool {
        let counts = self.counts.lock().await;
        let behind = |(shard, store): &(ShardId, Arc<EmbeddedStore>)| {
            let count = counts.shards.get(shard);
            count.is_some_and(|count| count.others_of(store) != count.others)
        };
        let catalog = counts.catalog.others_of(&self.store) != counts.catalog.others;
        catalog || shards.iter().any(behind)
    }
}
