//! Batches of actions: one transaction for each partition that some of their documents are in, all at the same time.
//!
//! A batch is not atomic, as with the service. Actions on one key keep their order, because a key is in one partition.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use lazuli_engine::{Error, KeyRange, Lsn, PartitionId, Result, Transaction, Tx};
use tokio::sync::oneshot;

use crate::index::route_of;
use crate::{Action, Index, Indexes, Outcome};

/// What became of one action of a batch.
#[derive(Clone, Debug)]
pub struct Written {
    pub outcome: Result<Outcome>,
    /// Where the document is, and the number of the write: a text index that has passed it shows it.
    pub route: Bytes,
    pub lsn: Lsn,
}

/// Actions of one partition, with their places in the batch.
struct Group {
    route: Bytes,
    actions: Vec<(usize, Action)>,
}

struct Apply {
    index: Arc<Index>,
    actions: Arc<Vec<(usize, Action)>>,
}

impl Transaction for Apply {
    /// None means that the map has changed, and some of the documents are in another partition by now: nothing is written.
    /// The number is zero where no action has written anything: the partition never commits that one, and nobody must wait for it.
    type Output = Option<(Vec<Outcome>, Lsn)>;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<Self::Output> {
        for (_, action) in self.actions.iter() {
            if tx.partition_of(&self.index.item(&action.key)?).is_err() {
                return Ok(None);
            }
        }
        let (mut outcomes, mut has_written) = (Vec::with_capacity(self.actions.len()), false);
        for (_, action) in self.actions.iter() {
            let (outcome, is_written) = action.run(tx, &self.index).await?;
            outcomes.push(outcome);
            has_written |= is_written;
        }
        Ok(Some((outcomes, if has_written { tx.lsn() } else { Lsn::ZERO })))
    }

    fn cost(&self) -> u32 {
        let bytes: usize = self.actions.iter().map(|(_, action)| action.document.len()).sum();
        u32::try_from(bytes.div_ceil(1024).max(1)).unwrap_or(u32::MAX)
    }
}

impl Indexes {
    /// Runs all actions. Answered when what they wrote is on disk; who derives a text index is told then.
    pub async fn write(&self, index: &Arc<Index>, actions: Vec<Action>) -> Result<Vec<Written>> {
        let mut written = Vec::with_capacity(actions.len());
        for action in &actions {
            let outcome = Err(Error::unavailable("stopping", "the write was not answered"));
            written.push(Written { outcome, route: route_of(&action.key)?, lsn: Lsn::ZERO });
        }
        let mut answers = Vec::new();
        for group in self.groups(index, actions, &written).await? {
            let (reply, answer) = oneshot::channel();
            let (indexes, index) = (self.clone(), index.clone());
            // A task of its own: it goes on also if the caller goes away before the commit.
            let task = async move {
                let _ = reply.send(indexes.write_group(&index, group).await);
            };
            self.engine.env().spawn.spawn("index documents", Box::pin(task));
            answers.push(answer);
        }
        for answer in answers {
            for (place, outcome, lsn) in answer.await.unwrap_or_default() {
                (written[place].outcome, written[place].lsn) = (outcome, lsn);
            }
        }
        Ok(written)
    }

    /// The actions by the partitions that the map has now.
    async fn groups(
        &self,
        index: &Index,
        actions: Vec<Action>,
        written: &[Written],
    ) -> Result<Vec<Group>> {
        let map = self.engine.router().partitions(index.id(), &KeyRange::all()).await?;
        let mut groups: BTreeMap<Option<PartitionId>, Group> = BTreeMap::new();
        for (place, action) in actions.into_iter().enumerate() {
            let route = &written[place].route;
            let held = map.iter().find(|(routes, _)| routes.contains(route));
            let partition = held.map(|(_, placed)| placed.partition);
            let group = groups.entry(partition);
            let group =
                group.or_insert_with(|| Group { route: route.clone(), actions: Vec::new() });
            group.actions.push((place, action));
        }
        Ok(groups.into_values().collect())
    }

    async fn write_group(
        &self,
        index: &Arc<Index>,
        group: Group,
    ) -> Vec<(usize, Result<Outcome>, Lsn)> {
        let actions = Arc::new(group.actions);
        let apply = Apply { index: index.clone(), actions: actions.clone() };
        let answer = self.engine.write(index.id(), &group.route, apply).await;
        let done = match answer {
            Ok(Some((outcomes, lsn))) => {
                let places = actions.iter().map(|(place, _)| *place);
                places.zip(outcomes).map(|(place, outcome)| (place, Ok(outcome), lsn)).collect()
            }
            Err(error) => {
                let failed = |(place, _): &(usize, Action)| (*place, Err(error.clone()), Lsn::ZERO);
                actions.iter().map(failed).collect()
            }
            Ok(None) => self.write_singly(index, &actions).await,
        };
        self.wakes.tell(index.id());
        done
    }

    /// One by one, in order, because the partition was split between the look at the map and the write.
    async fn write_singly(
        &self,
        index: &Arc<Index>,
        actions: &[(usize, Action)],
    ) -> Vec<(usize, Result<Outcome>, Lsn)> {
        let mut done = Vec::with_capacity(actions.len());
        for (place, action) in actions {
            let one = Arc::new(vec![(*place, action.clone())]);
            let apply = Apply { index: index.clone(), actions: one };
            let answer = match route_of(&action.key) {
                Ok(route) => self.engine.write(index.id(), &route, apply).await,
                Err(error) => Err(error),
            };
            let moved = || Error::unavailable("map-changed", "the map changes; try again");
            match answer.and_then(|found| found.ok_or_else(moved)) {
                Ok((outcomes, lsn)) => {
                    let outcome = outcomes.into_iter().next().ok_or_else(moved);
                    done.push((*place, outcome, lsn));
                }
                Err(error) => done.push((*place, Err(error), Lsn::ZERO)),
            }
        }
        done
    }
}
