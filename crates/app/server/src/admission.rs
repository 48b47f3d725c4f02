//! Decides whether the folder of a shard may be used: it must be this shard of this catalog, and neither may be an older
//! copy. All folders are inspected first; then the start gets its number and the folders are opened, one by one.
//!
//! A refused folder is closed and left unchanged, so that the operator can replace it by the right one.

use std::fmt;
use std::sync::Arc;

use lazuli_shardmap::lineage::Doubt;
use lazuli_shardmap::local::{Identity, LocalMap};
use lazuli_shardmap::{Shard, ShardId};
use lazuli_store::{Error, Result, Store};
use lazuli_store_embedded::EmbeddedStore;

use crate::host::{Host, open_store};
use crate::lineage::Looked;

/// Why a shard is down.
#[derive(Clone, Debug)]
pub(crate) struct Down {
    pub(crate) error: Error,
    /// Set if its folder could be opened and was not taken.
    pub(crate) refusal: Option<Box<Refusal>>,
}

/// Why a folder is not taken.
#[derive(Clone, Debug)]
pub(crate) enum Refusal {
    /// It or the catalog is an older copy.
    Doubt(Doubt),
    /// It is that of another shard, or of another catalog's. The text says whose.
    Other(String),
}

/// A shard's store, open and looked at, and not in use yet.
pub(crate) struct Candidate {
    store: Arc<EmbeddedStore>,
    looked: Looked,
}

impl Refusal {
    pub(crate) fn code(&self) -> &'static str {
        match self {
            Self::Doubt(doubt) => doubt.code(),
            Self::Other(_) => "folder-of-other",
        }
    }

    fn down(self, shard: &Shard) -> Down {
        let error = Error::unavailable(
            self.code(),
            format!(
                "{self}. Nothing of it is served or changed: put the right folder back and start \
                 again, or see `lazuli shard repair {}`",
                shard.name
            ),
        );
        Down { error, refusal: Some(Box::new(self)) }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Doubt(doubt) => doubt.fmt(f),
            Self::Other(whose) => write!(f, "the folder is that of {whose}"),
        }
    }
}

impl From<Error> for Down {
    fn from(error: Error) -> Self {
        Self { error, refusal: None }
    }
}

impl Host {
    /// Opens all shards of the catalog, and begins the start. Those that fail are down, and logged. `highest_start` is the
    /// highest one that was seen elsewhere.
    /// Answers why the catalog is an older copy, if a shard says so.
    pub(crate) async fn open_all(&self, highest_start: u64) -> Result<Option<Doubt>> {
        let shards = self.engine.manager().catalog().shards().await?;
        let (mut candidates, mut highest) = (Vec::new(), highest_start);
        for shard in &shards {
            let candidate = self.look(shard).await;
            let found = candidate.as_ref().ok().and_then(|it| it.looked.found);
            highest = highest.max(found.map_or(0, |start| start.number));
            candidates.push(candidate);
        }
        self.lineage.begin(highest).await?;
        let doubts = candidates.iter().flatten().filter_map(|it| it.looked.doubt);
        let older_catalog = doubts.into_iter().find(Doubt::is_about_catalog);
        // A catalog that is older than its shards does not know which of them were removed.
        if older_catalog.is_none() {
            self.finish_removals(&shards);
            self.delete_removed();
        }
        self.note_older_catalog(&shards, &candidates).await?;
        self.agree(&shards, &candidates).await?;
        for (shard, candidate) in shards.iter().zip(candidates) {
            if let Err(error) = self.decide(shard, candidate).await {
                tracing::error!(shard = shard.name, %error, "a shard is down");
            }
        }
        Ok(older_catalog)
    }

    /// Has the catalog remember that it was found to be older than these shards: it is used all the same, for others.
    async fn note_older_catalog(
        &self,
        shards: &[Shard],
        candidates: &[std::result::Result<Candidate, Down>],
    ) -> Result<()> {
        let both = shards.iter().zip(candidates);
        let looked =
            both.filter_map(|(it, candidate)| Some((it.id, candidate.as_ref().ok()?.looked)));
        self.lineage.note_older_catalog(&looked.collect::<Vec<_>>()).await
    }

    /// Lets the catalog and all shards that are not in doubt write this start down.
    async fn agree(
        &self,
        shards: &[Shard],
        candidates: &[std::result::Result<Candidate, Down>],
    ) -> Result<()> {
        let both = shards.iter().zip(candidates);
        let members = both.filter_map(|(shard, candidate)| {
            let Candidate { store, looked } = candidate.as_ref().ok()?;
            looked.doubt.is_none().then(|| (shard.id, store.clone(), *looked))
        });
        let members: Vec<_> = members.collect();
        let taken = self.lineage.agree(&members).await?;
        for ((shard, ..), taken) in members.iter().zip(taken) {
            // It is no copy of anything, so what it holds can be read all the same.
            if let Err(error) = taken {
                tracing::warn!(%shard, %error, "a shard could not write its start down");
            }
        }
        Ok(())
    }

    /// Opens one shard and takes it into use, unless its folder is in doubt.
    pub(crate) async fn open(&self, shard: &Shard) -> Result<()> {
        let candidates = [self.look(shard).await];
        self.agree(std::slice::from_ref(shard), &candidates).await?;
        let [candidate] = candidates;
        self.decide(shard, candidate).await
    }

    /// Takes the folder of a shard into use as it is, though it is in doubt.
    pub(crate) async fn accept(&self, shard: &Shard) -> Result<()> {
        let Candidate { store, looked } = self.look(shard).await.map_err(|down| down.error)?;
        let taken = self.lineage.agree(&[(shard.id, store.clone(), looked)]).await?;
        taken.into_iter().collect::<Result<()>>()?;
        let looked = Looked { doubt: None, ..looked };
        self.decide(shard, Ok(Candidate { store, looked })).await
    }

    async fn decide(
        &self,
        shard: &Shard,
        candidate: std::result::Result<Candidate, Down>,
    ) -> Result<()> {
        let outcome = match candidate {
            Ok(Candidate { looked: Looked { doubt: Some(doubt), .. }, .. }) => {
                Err(Refusal::Doubt(doubt).down(shard))
            }
            Ok(Candidate { store, .. }) => {
                let rows: Arc<dyn Store> = store.clone();
                self.engine.attach(shard, rows).await.map(|()| store).map_err(Down::from)
            }
            Err(down) => Err(down),
        };
        self.note(shard, &outcome);
        outcome.map(drop).map_err(|down| down.error)
    }

    /// Opens the store of a shard and compares it with what the catalog remembers of it.
    async fn look(&self, shard: &Shard) -> std::result::Result<Candidate, Down> {
        let catalog = self.engine.manager().catalog();
        let path = self.path(&shard.location);
        let holds = catalog.partition_count(shard.id).await?;
        if holds > 0 && !path.is_dir() {
            // An empty store in its place would look like a shard that has lost everything.
            let message = format!("{} is gone; it held {holds} partitions", path.display());
            return Err(Error::corrupt("shard-gone", message).into());
        }
        let store = Arc::new(open_store(&path, &self.settings).await?);
        let rows: Arc<dyn Store> = store.clone();
        let identity = Identity { catalog: catalog.id(), shard: shard.id };
        match LocalMap::identify(&rows).await? {
            Some(found) if found != identity => {
                let whose = self.name_of(found).await?;
                return Err(Refusal::Other(whose).down(shard));
            }
            // Nothing was ever written to it, and nothing is missed.
            None if holds == 0 => {
                LocalMap::init(&rows, identity).await?;
                return Ok(Candidate { store, looked: Looked::default() });
            }
            _ => {}
        }
        let looked = self.lineage.look_at(shard.id, &store).await?;
        Ok(Candidate { store, looked })
    }

    /// Whose folder it is, for people.
    async fn name_of(&self, identity: Identity) -> Result<String> {
        let catalog = self.engine.manager().catalog();
        if identity.catalog != catalog.id() {
            return Ok(format!("a shard of another catalog ({})", identity.catalog));
        }
        let shards = catalog.shards().await?;
        let found = shards.into_iter().find(|shard| shard.id == identity.shard);
        Ok(match found {
            Some(shard) => format!("shard {}", shard.name),
            None => format!("the shard with id {}, which was removed", identity.shard),
        })
    }

    /// Forgets what was remembered of a shard that was removed.
    pub(crate) async fn forget(&self, id: ShardId) -> Result<()> {
        self.lineage.forget(id).await
    }
}
