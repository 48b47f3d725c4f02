//! The sharded databases of this process: snapshots for routers, and the jobs that it leads.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};
use std::time::Duration;

use lazuli_env::Env;
use lazuli_sharded_sql::{Databases, Refreshed, Snapshot};
use lazuli_shardmap::catalog::Catalog;
use lazuli_store::{Error, Result};
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep};

use crate::book::{Book, Draft, unknown};
use crate::form::ShardForm;
use crate::job::{Job, Work};
use crate::link::Link;
use crate::{apply, ddl, mover};

/// How often the catalog is read for changes that other processes made, and for jobs that are left.
const FOLLOW_INTERVAL: Duration = Duration::from_secs(1);
/// How long a job waits after an error before it goes on.
const RETRY_INTERVAL: Duration = Duration::from_millis(500);
/// How long a statement may hold on to an old snapshot before a move reports it. It goes on waiting.
const OLD_SNAPSHOT_TIME_MAX: Duration = Duration::from_secs(30);
/// How often it is looked whether old snapshots are dropped.
const OLD_SNAPSHOT_LOOK: Duration = Duration::from_millis(2);

/// How many moves work at the same time; the others wait between two steps.
const MOVES_AT_ONCE: usize = 4;

pub struct Control {
    pub(crate) book: Book,
    pub(crate) env: Env,
    published: RwLock<HashMap<String, Arc<Snapshot>>>,
    /// Snapshots that were replaced and may still be in use.
    older: Mutex<Vec<Weak<Snapshot>>>,
    /// Jobs that a task of this process leads.
    led: Mutex<HashSet<(String, u64)>>,
    /// What jobs did last and what hinders them, for people.
    pub(crate) told: Mutex<HashMap<(String, u64), Told>>,
    /// Steps of moves at the same time: each has a connection to two shards.
    moving: Semaphore,
    /// Whether other processes share the catalog. Their statements could not be waited for, so they serve no sharded databases.
    is_shared: bool,
}

/// What is known of a running job beyond its record.
#[derive(Clone, Debug, Default)]
pub(crate) struct Told {
    pub(crate) rows: u64,
    pub(crate) changes: u64,
    /// Changes that wait on the source.
    pub(crate) behind: u64,
    pub(crate) rows_per_second: f64,
    pub(crate) trouble: Option<String>,
}

impl Control {
    pub fn new(catalog: Arc<Catalog>, env: Env, is_shared: bool) -> Arc<Self> {
        Arc::new(Self {
            book: Book::new(catalog),
            env,
            published: RwLock::default(),
            older: Mutex::default(),
            led: Mutex::default(),
            told: Mutex::default(),
            moving: Semaphore::new(MOVES_AT_ONCE),
            is_shared,
        })
    }

    /// Reads all databases, and follows them from now on. `leads` says whether this process carries out jobs.
    pub fn start(
        self: &Arc<Self>,
        leads: impl Fn() -> bool + Send + 'static,
    ) -> tokio::task::JoinHandle<()> {
        let control = self.clone();
        tokio::spawn(async move {
            loop {
                if let Err(error) = control.follow(leads()).await {
                    tracing::warn!(%error, "sharded databases cannot be read from the catalog");
                }
                sleep(FOLLOW_INTERVAL).await;
            }
        })
    }

    /// Takes in what others changed, and takes over jobs that nobody here leads.
    pub async fn follow(self: &Arc<Self>, leads: bool) -> Result<()> {
        let names = self.book.names().await?;
        for name in &names {
            let Some(draft) = self.book.read(name).await? else { continue };
            self.publish(&draft)?;
            if leads {
                for number in draft.jobs.keys() {
                    self.lead(name, *number);
                }
            }
        }
        let mut published = self.published.write().unwrap_or_else(PoisonError::into_inner);
        published.retain(|name, _| names.contains(name));
        Ok(())
    }

    /// Makes a state of the catalog what routers see, unless they see a newer one.
    pub(crate) fn publish(&self, draft: &Draft) -> Result<Arc<Snapshot>> {
        let name = &draft.model.name;
        let current = self.snapshot(name);
        if let Some(current) = current.filter(|it| it.version >= draft.model.version) {
            return Ok(current);
        }
        let made = Arc::new(draft.model.snapshot(draft.mappings.values())?);
        let mut published = self.published.write().unwrap_or_else(PoisonError::into_inner);
        match published.get(name) {
            Some(current) if current.version >= made.version => return Ok(current.clone()),
            Some(current) => {
                let mut older = lock(&self.older);
                older.retain(|it| it.strong_count() > 0);
                older.push(Arc::downgrade(current));
            }
            None => {}
        }
        published.insert(name.clone(), made.clone());
        Ok(made)
    }

    /// Waits until no statement uses a snapshot from before `version`. No other process serves the database.
    pub(crate) async fn wait_for_older(&self, name: &str, version: u64) {
        let begun = Instant::now();
        let mut is_told = false;
        loop {
            let is_old = |it: &Weak<Snapshot>| {
                it.upgrade().is_some_and(|it| it.name == name && it.version < version)
            };
            if !lock(&self.older).iter().any(is_old) {
                return;
            }
            if begun.elapsed() > OLD_SNAPSHOT_TIME_MAX && !is_told {
                tracing::warn!(database = name, "a statement that began before a move still runs");
                is_told = true;
            }
            sleep(OLD_SNAPSHOT_LOOK).await;
        }
    }

    /// Everything of a database as the catalog has it now.
    pub(crate) async fn read(&self, name: &str) -> Result<Draft> {
        self.book.read(name).await?.ok_or_else(|| unknown(name))
    }

    /// Edits a database and shows routers the result.
    pub(crate) async fn change<T>(
        &self,
        name: &str,
        edit: impl FnMut(&mut Draft) -> Result<T>,
    ) -> Result<(T, Draft)> {
        let (made, draft) = self.book.change(name, edit).await?;
        self.publish(&draft)?;
        Ok((made, draft))
    }

    /// Refuses to serve where several processes do: a move could not wait for statements of the others.
    pub(crate) fn must_be_alone(&self) -> Result<()> {
        match self.is_shared {
            false => Ok(()),
            true => Err(Error::invalid(
                "sql-on-a-fleet",
                "sharded databases are served by a server with a data folder of its own, not by a fleet",
            )),
        }
    }

    pub(crate) async fn link(&self, shard: &ShardForm) -> Result<Link> {
        Link::open(shard).await
    }

    /// Starts a task that carries a job to its end, unless there is one.
    pub(crate) fn lead(self: &Arc<Self>, name: &str, number: u64) {
        let id = (name.to_owned(), number);
        if !lock(&self.led).insert(id.clone()) {
            return;
        }
        let control = self.clone();
        tokio::spawn(async move {
            let (name, number) = &id;
            control.carry(name, *number).await;
            lock(&control.led).remove(&id);
            lock(&control.told).remove(&id);
        });
    }

    /// Takes a job and goes on with it until it is over or another process takes it.
    async fn carry(self: &Arc<Self>, name: &str, number: u64) {
        let mut epoch = None;
        loop {
            let outcome = async {
                let epoch = match epoch {
                    Some(epoch) => epoch,
                    None => *epoch.insert(self.take(name, number).await?),
                };
                self.step(name, number, epoch).await
            };
            match outcome.await {
                Ok(true) => return,
                Ok(false) => {}
                Err(error) if matches!(error.code(), "sql-job-taken" | "no-sql-job") => return,
                Err(error) => {
                    tracing::warn!(database = name, job = number, %error, "a job has trouble");
                    self.tell(name, number, |told| told.trouble = Some(error.to_string()));
                    sleep(RETRY_INTERVAL).await;
                }
            }
        }
    }

    /// Becomes the leader of a job: whoever led it before can write no more.
    async fn take(&self, name: &str, number: u64) -> Result<u64> {
        let take = |draft: &mut Draft| {
            draft.job(number)?;
            let job = draft.jobs.get_mut(&number).expect("it was found just now");
            job.epoch += 1;
            Ok(job.epoch)
        };
        Ok(self.change(name, take).await?.0)
    }

    /// Goes on with a job by one step; true when it is over.
    async fn step(self: &Arc<Self>, name: &str, number: u64, epoch: u64) -> Result<bool> {
        let mut draft = self.read(name).await?;
        let job = draft.led(number, epoch)?.clone();
        match &job.work {
            Work::Change(_) => apply::finish(self, &draft, &job).await,
            Work::Move(_) => {
                let _turn = self.moving.acquire().await;
                mover::step(self, &draft, &job).await
            }
            Work::Ddl(_) => ddl::step(self, &draft, &job).await,
        }
    }

    /// Waits until a job is over, and says how it ended.
    pub async fn wait_for(&self, name: &str, number: u64) -> Result<Job> {
        loop {
            if let Some(job) = self.book.finished_job(name, number).await? {
                return Ok(job);
            }
            self.read(name).await?.job(number)?;
            sleep(Duration::from_millis(20)).await;
        }
    }

    pub(crate) fn tell(&self, name: &str, number: u64, edit: impl FnOnce(&mut Told)) {
        edit(lock(&self.told).entry((name.to_owned(), number)).or_default());
    }

    pub(crate) fn told(&self, name: &str, number: u64) -> Told {
        lock(&self.told).get(&(name.to_owned(), number)).cloned().unwrap_or_default()
    }

    pub(crate) async fn reached(&self, job: u64, step: &'static str) {
        self.env.points.reach(&job.to_string(), step).await;
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Databases for Control {
    fn snapshot(&self, name: &str) -> Option<Arc<Snapshot>> {
        self.published.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    fn refresh<'a>(&'a self, name: &'a str) -> Refreshed<'a> {
        Box::pin(async move {
            match self.book.read(name).await {
                Ok(Some(draft)) => self.publish(&draft).ok(),
                Ok(None) => None,
                Err(error) => {
                    tracing::warn!(%error, "a sharded database cannot be read from the catalog");
                    self.snapshot(name)
                }
            }
        })
    }

    fn names(&self) -> Vec<String> {
        let published = self.published.read().unwrap_or_else(PoisonError::into_inner);
        let mut names: Vec<String> = published.keys().cloned().collect();
        names.sort();
        names
    }
}

/// A job that must not go on as it is.
pub(crate) fn refused(code: &'static str, message: impl std::fmt::Display) -> Error {
    Error::precondition(code, message)
}
