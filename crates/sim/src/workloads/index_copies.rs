//! Copies of a derived index, each a plain map in place of files behind the same follower, as nodes of a fleet have them.
//!
//! A copy stores what it has together with its position as text, and goes on from there. Now and then what it took in since
//! is lost, as in a crash, or it is put back from an older state, or given up so that deletions do not wait for it. Whether
//! it lacks deletions that were forgotten meanwhile it must notice itself.

use std::collections::BTreeMap;
use std::sync::Mutex;

use bytes::Bytes;
use lazuli_engine::KeyRange;
use lazuli_index::{Deletion, DocumentChange, Follower, Indexes, Positions, Step};

use super::Client;
use super::indexes::{ACCOUNT, INDEX};
use crate::answer::Answer;
use crate::faults::Planted;
use crate::scenario::Found;
use crate::{ensure, lock};

const NAMES: [&str; 2] = ["first", "second"];
/// How often in a thousand steps each of these happens to a copy.
const CRASH_PER_MILLE: u64 = 150;
const PUT_BACK_PER_MILLE: u64 = 50;
const COMMIT_PER_MILLE: u64 = 400;
/// How many commits in a thousand are kept as the older state.
const KEEP_PER_MILLE: u64 = 300;
/// How many commits in a thousand end with the copy being given up.
const GIVE_UP_PER_MILLE: u64 = 100;

type Documents = BTreeMap<String, Bytes>;

/// What a copy has on its disk. The text of the positions is none before the first commit.
#[derive(Clone, Default)]
struct Stored {
    documents: Documents,
    positions: String,
}

#[derive(Default)]
struct Kept {
    /// False after a start, until it is known whether the stored state is of use.
    is_open: bool,
    documents: Documents,
    positions: Positions,
    committed: Stored,
    older: Stored,
    /// Deletions that were taken in since the last commit, and those that are to be forgotten, with the positions of the
    /// commit that has them.
    fresh: Vec<Deletion>,
    waiting: Option<(Positions, Vec<Deletion>)>,
}

pub(super) struct Copies {
    /// None while a client feeds it.
    all: [Mutex<Option<Kept>>; NAMES.len()],
    planted: Planted,
}

impl Copies {
    pub(super) fn new(planted: Planted) -> Self {
        let all = [(); NAMES.len()].map(|()| Mutex::new(Some(Kept::default())));
        Self { all, planted }
    }

    /// Takes one step with some copy, unless another client has it.
    pub(super) async fn follow_one(&self, client: &Client) -> Found {
        let at = client.random.index(NAMES.len());
        self.follow(client, at, true).await.map(|_| ())
    }

    /// What each copy has, once all have caught up.
    pub(super) async fn caught_up(
        &self,
        client: &Client,
        steps_max: usize,
    ) -> Result<Vec<(&'static str, Documents)>, String> {
        let mut all = Vec::new();
        for (at, name) in NAMES.into_iter().enumerate() {
            let mut steps = 0;
            while self.follow(client, at, false).await? {
                steps += 1;
                ensure!(steps < steps_max, "copy {name} does not come to an end");
            }
            let kept = lock(&self.all[at]).take().unwrap_or_default();
            all.push((name, kept.documents));
        }
        Ok(all)
    }

    /// Takes one step with a copy, and says whether there is more.
    async fn follow(&self, client: &Client, at: usize, is_hurt: bool) -> Result<bool, String> {
        let Some(mut kept) = lock(&self.all[at]).take() else { return Ok(true) };
        if is_hurt {
            kept.hurt(client);
        }
        let stepped = self.step(client, NAMES[at], &mut kept).await;
        *lock(&self.all[at]) = Some(kept);
        stepped
    }

    async fn step(
        &self,
        client: &Client,
        name: &'static str,
        kept: &mut Kept,
    ) -> Result<bool, String> {
        let looks = self.planted != Planted::StaleCopies;
        if !kept.is_open && !self.open(client, kept, looks).await? {
            return Ok(true);
        }
        let before = kept.positions.clone();
        let step = move |engine| async move {
            let indexes = Indexes::new(engine, true);
            let index = indexes.index(ACCOUNT, INDEX).await?;
            let (routes, positions) = (KeyRange::all(), before.clone());
            let mut follower = Follower::new(indexes.clone(), index.clone(), routes, positions);
            let step = follower.step().await?;
            let is_stale = looks && indexes.is_stale(ACCOUNT, &index, &before).await?;
            Ok((step, follower.positions().clone(), is_stale))
        };
        let more = match client.ask("follow", step).await? {
            Answer::Done((_, _, true)) => {
                *kept = Kept::default();
                return Ok(true);
            }
            Answer::Done((step, positions, false)) => kept.take_in(step, positions),
            Answer::Unknown => return Ok(true),
            Answer::Refused(error) => return Err(format!("following was refused: {error}")),
        };
        if client.random.chance(COMMIT_PER_MILLE) {
            kept.commit(client);
            self.tell(client, name, kept).await?;
        }
        Ok(more)
    }

    /// Looks whether the stored state can be gone on with. Says whether it is known.
    async fn open(&self, client: &Client, kept: &mut Kept, looks: bool) -> Result<bool, String> {
        let Some(positions) = Positions::from_text(&kept.committed.positions) else {
            return Err("stored positions cannot be read".to_owned());
        };
        let stored = positions.clone();
        let look = move |engine| async move {
            let indexes = Indexes::new(engine, true);
            let index = indexes.index(ACCOUNT, INDEX).await?;
            indexes.is_stale(ACCOUNT, &index, &stored).await
        };
        match client.ask("look at a stored copy", look).await? {
            Answer::Done(true) if looks => *kept = Kept::default(),
            Answer::Done(_) => {
                (kept.documents, kept.positions) = (kept.committed.documents.clone(), positions);
            }
            Answer::Unknown | Answer::Refused(_) => return Ok(false),
        }
        kept.is_open = true;
        Ok(true)
    }

    /// Announces a commit, or gives the copy up, and forgets deletions that all have.
    async fn tell(&self, client: &Client, name: &'static str, kept: &mut Kept) -> Found {
        let committed = kept.positions.clone();
        let is_given_up = client.random.chance(GIVE_UP_PER_MILLE);
        let waiting = kept.waiting.clone();
        let tell = move |engine| async move {
            let indexes = Indexes::new(engine, true);
            let index = indexes.index(ACCOUNT, INDEX).await?;
            match is_given_up {
                true => indexes.forget_copy(ACCOUNT, &index, name).await?,
                false => indexes.announce_copy(ACCOUNT, &index, name, &committed).await?,
            }
            match waiting {
                Some((positions, deletions)) => {
                    indexes.forget_deletions(ACCOUNT, &index, &positions, &deletions).await
                }
                None => Ok(false),
            }
        };
        match client.ask("forget deletions", tell).await? {
            Answer::Done(true) => kept.waiting = None,
            Answer::Done(false) | Answer::Unknown => {}
            Answer::Refused(error) => return Err(format!("forgetting was refused: {error}")),
        }
        Ok(())
    }
}

impl Kept {
    /// A crash, or an older state that is put back.
    fn hurt(&mut self, client: &Client) {
        if client.random.chance(PUT_BACK_PER_MILLE) {
            self.committed = self.older.clone();
        } else if !client.random.chance(CRASH_PER_MILLE) {
            return;
        }
        let (committed, older) = (self.committed.clone(), self.older.clone());
        *self = Self { committed, older, ..Self::default() };
    }

    fn take_in(&mut self, step: Step, positions: Positions) -> bool {
        for DocumentChange { key, document } in step.changes {
            match document {
                Some(text) => drop(self.documents.insert(key, text)),
                None => drop(self.documents.remove(&key)),
            }
        }
        self.fresh.extend(step.deletions);
        self.positions = positions;
        step.more
    }

    fn commit(&mut self, client: &Client) {
        let (documents, positions) = (self.documents.clone(), self.positions.to_text());
        self.committed = Stored { documents, positions };
        if client.random.chance(KEEP_PER_MILLE) {
            self.older = self.committed.clone();
        }
        if self.waiting.is_none() && !self.fresh.is_empty() {
            self.waiting = Some((self.positions.clone(), std::mem::take(&mut self.fresh)));
        }
    }
}
