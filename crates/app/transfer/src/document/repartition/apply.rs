//! Changes of single items in the new container, several at the same time, those of one id in their order.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use lazuli_console::{Failure, Result};

use super::super::item::{Item, KeyPaths};
use super::super::service::{Asked, Place, Service};
use super::Work;
use crate::account::Account;
use crate::session::ServiceError;

/// What is to be done in the new container.
pub(super) enum Task {
    /// The item as it is now, and as it was before if that is known.
    Put { item: Item, previous: Option<Item> },
    /// The item that was deleted, as it was.
    Delete(Item),
    /// An item with this id was deleted, and nothing more is known of it.
    Gone(String),
}

impl Task {
    fn id(&self) -> Option<String> {
        match self {
            Self::Put { item, .. } | Self::Delete(item) => item.id(),
            Self::Gone(id) => Some(id.clone()),
        }
    }
}

impl Work {
    pub(super) fn apply(&mut self, tasks: Vec<Task>) -> Result<()> {
        let mut lines: Vec<Vec<Task>> = (0..self.parallel).map(|_| Vec::new()).collect();
        for task in tasks {
            let mut hasher = DefaultHasher::new();
            task.id().hash(&mut hasher);
            let line = (hasher.finish() % self.parallel) as usize;
            lines[line].push(task);
        }
        self.each_line(lines, |hand, task| hand.apply(task)).map(|_| ())
    }

    /// Works off lines of tasks, each in its order, and answers what came of all of them.
    pub(super) fn each_line<T: Send, R: Send>(
        &self,
        lines: Vec<Vec<T>>,
        run: impl Fn(&mut Hand, T) -> Result<R> + Sync,
    ) -> Result<Vec<R>> {
        let run = &run;
        let results: Vec<Result<Vec<R>>> = std::thread::scope(|scope| {
            let threads: Vec<_> = lines
                .into_iter()
                .filter(|line| !line.is_empty())
                .map(|line| {
                    scope.spawn(move || {
                        let mut hand = Hand::new(self)?;
                        line.into_iter().map(|task| run(&mut hand, task)).collect()
                    })
                })
                .collect();
            let broken = || Err(Failure::failed("a writer broke off"));
            threads.into_iter().map(|one| one.join().unwrap_or_else(|_| broken())).collect()
        });
        let mut all = Vec::new();
        for result in results {
            all.extend(result?);
        }
        Ok(all)
    }
}

/// One connection with what it must know.
pub(super) struct Hand {
    pub(super) service: Service,
    pub(super) source: Place,
    pub(super) target: Place,
    pub(super) from: KeyPaths,
    pub(super) to: KeyPaths,
}

impl Hand {
    fn new(work: &Work) -> Result<Self> {
        let account: &Arc<Account> = &work.account;
        Ok(Self {
            service: Service::new(account)?,
            source: work.source.clone(),
            target: work.target.clone(),
            from: work.from.clone(),
            to: work.to.clone(),
        })
    }

    fn apply(&mut self, task: Task) -> Result<()> {
        match task {
            Task::Put { item, previous } => {
                let (key, id) = self.address(&item)?;
                if let Some(previous) = previous {
                    let (former, _) = self.address(&previous)?;
                    if former != key {
                        self.service.delete(&self.target, &former, &id)?;
                    }
                }
                self.put(&item, &key, &id)
            }
            Task::Delete(item) => {
                let (key, id) = self.address(&item)?;
                self.service.delete(&self.target, &key, &id)
            }
            Task::Gone(id) => self.remove(&id),
        }
    }

    /// Partition key and id of an item in the new container.
    pub(super) fn address(&self, item: &Item) -> Result<(String, String)> {
        let id = item.id().ok_or_else(|| Failure::failed("an item without an id"))?;
        let key = self.to.of(item).map_err(|reason| {
            let message = format!("the item {id:?} cannot be placed by the new key: {reason}");
            Failure::failed(message)
        })?;
        Ok((key, id))
    }

    /// Writes an item. Two items of the former container that would be one in the new are a failure.
    fn put(&mut self, item: &Item, key: &str, id: &str) -> Result<()> {
        let body = item.text();
        let sent = self.service.put(&self.target, key, &body, false)?;
        match sent.answer.status {
            200..=299 => return Ok(()),
            409 => {}
            _ => return Err(ServiceError::of(&sent.answer).failure()),
        }
        if let Some(found) = self.service.item(&self.target, key, id)? {
            let key_of = |item: &Item| self.from.of(item).map_err(Failure::failed);
            let (ours, theirs) = (key_of(item)?, key_of(&found)?);
            if ours != theirs && self.is_there(&theirs, id, key)? {
                let message = format!(
                    "the items {id:?} of the partition keys {ours} and {theirs} would both be \
                     {id:?} of {key}: the new key does not tell them apart"
                );
                return Err(Failure::failed(message));
            }
        }
        let sent = self.service.put(&self.target, key, &body, true)?;
        match sent.answer.status {
            200..=299 => Ok(()),
            _ => Err(ServiceError::of(&sent.answer).failure()),
        }
    }

    /// Whether the former container has this item now, and it has this place in the new one.
    fn is_there(&mut self, former: &str, id: &str, key: &str) -> Result<bool> {
        match self.service.item(&self.source, former, id)? {
            Some(item) => Ok(self.address(&item)?.0 == key),
            None => Ok(false),
        }
    }

    /// Deletes the items of an id that the former container no longer has.
    fn remove(&mut self, id: &str) -> Result<()> {
        let mut asked = Asked::all(&self.target, "");
        asked.body = serde_json::json!({
            "query": "SELECT * FROM c WHERE c.id = @id",
            "parameters": [{ "name": "@id", "value": id }],
        })
        .to_string();
        let mut from = None;
        loop {
            let page = self.service.page(&asked, from.as_deref())?;
            for row in &page.rows {
                let item = Item::parse(row.get().as_bytes()).map_err(Failure::failed)?;
                let (key, id) = self.address(&item)?;
                let former = self.from.of(&item).map_err(Failure::failed)?;
                if !self.is_there(&former, &id, &key)? {
                    self.service.delete(&self.target, &key, &id)?;
                }
            }
            match page.next {
                Some(next) => from = Some(next),
                None => return Ok(()),
            }
        }
    }
}
