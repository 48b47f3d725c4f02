//! Restores: a backup is received as the body of a request and verified to its end. Only then it is written into its
//! partitions, in a task that is not cancelled when the client disconnects.

mod staging;
mod target;
mod told;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lazuli_engine::Engine;
use lazuli_engine::backup::{BackupHead, BackupTotals, Restore, RestoreProgress, RestoreTarget};
use lazuli_http::Body;
use lazuli_store::{Error, Result};
use tokio::sync::oneshot;

use crate::registry::Registry;
use staging::Staged;
use target::resolve;
pub(crate) use told::{elsewhere, tell};

/// The restores that may be under way at once.
const RUNNING_MAX: usize = 4;
/// The restores that are over and still remembered, the newest ones.
const REMEMBERED_MAX: usize = 100;

lazuli_store::reasons! {
    /// Why a restore does not begin.
    pub(crate) enum RestoreReason {
        AccountNotFound = "account-not-found",
        /// Another restore writes to the same partitions.
        Running = "restore-running",
    }
}

/// What is asked for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// The container, or the last part of its name; none for the one that the backup was taken of.
    pub(crate) into: Option<String>,
    pub(crate) replace: bool,
}

/// How far a restore has come.
#[derive(Clone, Debug)]
pub(crate) enum Phase {
    Clearing,
    Loading,
    Verifying,
    Done,
    /// Its partitions are offline.
    Failed(Error),
}

/// A restore as the admin API shows it.
#[derive(Clone, Debug)]
pub(crate) struct Status {
    pub(crate) number: u64,
    pub(crate) head: BackupHead,
    pub(crate) map: String,
    pub(crate) partitions: Vec<u64>,
    pub(crate) phase: Phase,
    pub(crate) progress: RestoreProgress,
    pub(crate) totals: BackupTotals,
}

impl Status {
    fn is_running(&self) -> bool {
        matches!(self.phase, Phase::Clearing | Phase::Loading | Phase::Verifying)
    }
}

/// The restores of this process.
pub(crate) struct Restores {
    folder: PathBuf,
    engine: Arc<Engine>,
    accounts: Arc<Registry>,
    /// Whether other nodes number their restores too.
    is_fleet: bool,
    known: Mutex<RestoreBook>,
}

#[derive(Default)]
struct RestoreBook {
    last: u64,
    /// Names of containers that backups are on their way to.
    targets: Vec<String>,
    restores: BTreeMap<u64, Status>,
}

impl Restores {
    /// Removes what an earlier process was given and did not finish: its partitions wait for another restore.
    pub(crate) fn open(
        folder: &Path,
        engine: Arc<Engine>,
        accounts: Arc<Registry>,
        is_fleet: bool,
    ) -> Self {
        let folder = folder.join("restoring");
        match std::fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                tracing::warn!(%error, "cannot remove what an earlier restore left behind");
            }
            _ => {}
        }
        Self { folder, engine, accounts, is_fleet, known: Mutex::default() }
    }

    fn known(&self) -> MutexGuard<'_, RestoreBook> {
        // What this lock guards is whole after every statement, so a panic elsewhere does not spoil it.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All restores that are remembered, the newest first.
    pub(crate) fn list(&self) -> Vec<Status> {
        self.known().restores.values().rev().cloned().collect()
    }

    pub(crate) fn get(&self, number: u64) -> Option<Status> {
        self.known().restores.get(&number).cloned()
    }

    /// Takes a backup in. Answers when its partitions are offline and it goes on by itself; what is refused or damaged has
    /// changed nothing.
    pub(crate) async fn begin(self: &Arc<Self>, body: Body, wanted: Wanted) -> Result<Status> {
        let number = self.number().await?;
        let staged = Staged::take(&self.folder, number, body, &self.engine).await?;
        let target = resolve(&staged.head.container, &wanted, &self.accounts).await?;
        let turn = self.turn(&target.name)?;
        let (begun, answer) = oneshot::channel();
        let restores = self.clone();
        tokio::spawn(async move {
            restores.run(number, staged, target, begun).await;
            drop(turn);
        });
        match answer.await {
            Ok(begun) => begun,
            Err(_) => Err(Error::unavailable("stopping", "the restore ended before it answered")),
        }
    }

    async fn number(&self) -> Result<u64> {
        if self.is_fleet {
            return told::next_number(self.engine.manager().catalog()).await;
        }
        let mut known = self.known();
        known.last += 1;
        Ok(known.last)
    }

    /// The right to restore into a container, until dropped.
    fn turn(self: &Arc<Self>, name: &str) -> Result<Turn> {
        let mut known = self.known();
        if known.targets.iter().any(|other| other == name) {
            let message = format!("another restore into {name} is under way");
            return Err(Error::precondition(RestoreReason::Running, message));
        }
        if known.targets.len() >= RUNNING_MAX {
            let message = format!("{RUNNING_MAX} restores are under way, which is the most");
            return Err(Error::unavailable("too-many-restores", message));
        }
        known.targets.push(name.to_owned());
        Ok(Turn { restores: self.clone(), name: name.to_owned() })
    }

    async fn run(
        &self,
        number: u64,
        staged: Staged,
        target: RestoreTarget,
        begun: oneshot::Sender<Result<Status>>,
    ) {
        let restore = match self.engine.begin_restore(staged.head.clone(), &target).await {
            Ok(restore) => restore,
            Err(error) => {
                // The client may have disconnected.
                let _ = begun.send(Err(error));
                return;
            }
        };
        let status = Status {
            number,
            head: staged.head.clone(),
            map: target.name.clone(),
            partitions: restore.partitions().iter().map(|partition| partition.id.0).collect(),
            phase: Phase::Clearing,
            progress: RestoreProgress::default(),
            totals: staged.totals,
        };
        let (map, partition, lsn) = (&status.map, status.head.partition.0, status.head.lsn.0);
        tracing::info!(restore = number, map, of = partition, lsn, "began a restore");
        self.remember(status.clone());
        let _ = begun.send(Ok(status));
        match self.apply(number, restore, &staged).await {
            Ok(progress) => {
                let RestoreProgress { rows, bytes } = progress;
                tracing::info!(restore = number, rows, bytes, "restored a backup");
                self.note(number, Phase::Done, Some(progress));
            }
            Err(error) => {
                tracing::error!(restore = number, %error, "a restore failed; it stays offline");
                self.note(number, Phase::Failed(error), None);
            }
        }
    }

    async fn apply(
        &self,
        number: u64,
        restore: Restore,
        staged: &Staged,
    ) -> Result<RestoreProgress> {
        let mut restore = restore;
        restore.clear().await?;
        self.note(number, Phase::Loading, None);
        let loaded = self.load(number, &mut restore, staged).await;
        if let Err(error) = loaded {
            restore.give_up().await;
            return Err(error);
        }
        self.note(number, Phase::Verifying, Some(restore.progress()));
        restore.finish().await
    }

    async fn load(&self, number: u64, restore: &mut Restore, staged: &Staged) -> Result<()> {
        let mut parts = staged.parts();
        while let Some(part) = parts.next().await? {
            restore.take(part).await?;
            self.note(number, Phase::Loading, Some(restore.progress()));
        }
        Ok(())
    }

    fn remember(&self, status: Status) {
        let mut known = self.known();
        known.restores.insert(status.number, status);
        while known.restores.len() > REMEMBERED_MAX {
            let Some(over) = known.restores.values().find(|it| !it.is_running()) else { return };
            let number = over.number;
            known.restores.remove(&number);
        }
    }

    fn note(&self, number: u64, phase: Phase, progress: Option<RestoreProgress>) {
        if let Some(status) = self.known().restores.get_mut(&number) {
            status.phase = phase;
            status.progress = progress.unwrap_or(status.progress);
        }
    }
}

/// Held while a restore into a container is under way.
struct Turn {
    restores: Arc<Restores>,
    name: String,
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.restores.known().targets.retain(|name| *name != self.name);
    }
}
