//! Does tasks (a file or a blob to transfer or to remove) with several connections at the same time, in memory for one block
//! each, and counts the outcomes.

use std::fmt;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lazuli_console::progress::{Figures, Meter};
use lazuli_console::{Failure, Result, output};
use serde_json::{Value, json};

use super::address::{BlobAddress, Location};
use super::download::{self, Download};
use super::listing::Entry;
use super::local::{cannot, prepare};
use super::one;
use super::upload::{self, BLOCK_BYTES, Upload};
use crate::account::Account;
use crate::session::Session;

/// After so many failures the rest is given up.
const FAILURES_MAX: u64 = 100;

#[derive(Clone, Copy, Debug)]
pub(super) struct Options {
    pub(super) parallel: u64,
    pub(super) quiet: bool,
    pub(super) follow_links: bool,
    /// Say each thing that was removed.
    pub(super) announce: bool,
}

/// The outcomes of all tasks.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Done {
    /// Done without failure.
    pub(super) items: u64,
    pub(super) bytes: u64,
    pub(super) failed: u64,
    /// There were so many failures that the rest was not tried.
    gave_up: bool,
    pub(super) elapsed: Duration,
}

impl Done {
    /// Fails if anything did.
    pub(super) fn check(&self) -> Result<()> {
        match self.failed {
            0 => Ok(()),
            failed if self.gave_up => {
                Err(Failure::failed(format!("gave up after {failed} failures")))
            }
            failed => Err(Failure::failed(format!("{failed} of {} failed", failed + self.items))),
        }
    }
}

/// A file or a blob to transfer, or to remove.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Task {
    Upload {
        file: PathBuf,
        size: u64,
        to: BlobAddress,
    },
    Download {
        from: BlobAddress,
        entry: Entry,
        /// The folder that is copied into; `file` is in it.
        root: PathBuf,
        file: PathBuf,
    },
    Copy {
        from: BlobAddress,
        to: BlobAddress,
        size: u64,
    },
    Remove(BlobAddress),
    RemoveFile(PathBuf),
}

impl Task {
    /// How much there is to transfer.
    pub(super) fn bytes(&self) -> u64 {
        match self {
            Self::Upload { size, .. } | Self::Copy { size, .. } => *size,
            Self::Download { entry, .. } => entry.size,
            Self::Remove(_) | Self::RemoveFile(_) => 0,
        }
    }

    fn verb(&self) -> &'static str {
        match self {
            Self::Upload { .. } => "upload",
            Self::Download { .. } => "download",
            Self::Copy { .. } => "copy",
            Self::Remove(_) | Self::RemoveFile(_) => "remove",
        }
    }

    /// Its source, and its target if it has one.
    fn ends(&self) -> (Location, Option<Location>) {
        let (local, remote) = (Location::Local, Location::Remote);
        match self.clone() {
            Self::Upload { file, to, .. } => (local(file), Some(remote(to))),
            Self::Download { from, file, .. } => (remote(from), Some(local(file))),
            Self::Copy { from, to, .. } => (remote(from), Some(remote(to))),
            Self::Remove(blob) => (remote(blob), None),
            Self::RemoveFile(file) => (local(file), None),
        }
    }

    pub(super) fn to_json(&self) -> Value {
        let (from, to) = self.ends();
        let to = to.map(|to| to.to_string());
        let (action, bytes) = (self.verb(), self.bytes());
        json!({ "action": action, "from": from.to_string(), "to": to, "bytes": bytes })
    }
}

impl fmt::Display for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (from, to) = self.ends();
        write!(f, "{} {from}", self.verb())?;
        to.map_or(Ok(()), |to| write!(f, " to {to}"))
    }
}

/// What is handed to a connection.
enum Job {
    Whole(Arc<Task>),
    Block(Arc<Upload>, u64, Vec<u8>, Arc<Task>),
    Range(Arc<Download>, u64, u64, Arc<Task>),
}

/// Does all tasks. Names that were refused before are printed and counted as failed.
pub(super) fn run(
    account: &Arc<Account>,
    tasks: Vec<Task>,
    refused: &[String],
    options: Options,
) -> Result<Done> {
    let total = tasks.iter().map(Task::bytes).sum();
    let count = usize::try_from(options.parallel).unwrap_or(1);
    let has_large = tasks.iter().any(is_large);
    let count = if has_large { count } else { count.min(tasks.len().max(1)) };
    let sessions: Vec<Session> =
        (0..count).map(|_| Session::new(Arc::clone(account))).collect::<Result<_>>()?;
    let tally = Tally::new(options, total);
    for reason in refused {
        eprintln!("{reason}");
    }
    let (jobs, taken) = sync_channel(0);
    let taken = Arc::new(Mutex::new(taken));
    std::thread::scope(|scope| {
        for session in sessions {
            let (taken, tally) = (Arc::clone(&taken), &tally);
            scope.spawn(move || Worker { session, tally, options }.run(&taken));
        }
        // Only the workers hold the receiver, so a send fails once all of them have ended.
        drop(taken);
        for task in tasks {
            if tally.is_over() {
                break;
            }
            let task = Arc::new(task);
            if let Err(failure) = hand_out(&task, &jobs, &tally, options) {
                tally.fail_at(&task, failure);
            }
        }
        drop(jobs);
    });
    let done = tally.done();
    Ok(Done { failed: done.failed + refused.len() as u64, ..done })
}

fn is_large(task: &Task) -> bool {
    !matches!(task, Task::Copy { .. }) && task.bytes() > BLOCK_BYTES
}

/// Hands a task to the connections: as a whole, or in the blocks of its file.
fn hand_out(
    task: &Arc<Task>,
    jobs: &SyncSender<Job>,
    tally: &Tally,
    options: Options,
) -> Result<()> {
    let give = |job: Job| !tally.is_over() && jobs.send(job).is_ok();
    match &**task {
        Task::Upload { file, size, to } if is_large(task) => {
            Upload::read(file, *size, to, |upload, index, bytes| {
                give(Job::Block(Arc::clone(upload), index, bytes, Arc::clone(task)))
            })
        }
        Task::Download { from, entry, root, file } if is_large(task) => {
            prepare(root, file, options.follow_links)?;
            let download = Download::begin(from.clone(), entry.clone(), file.clone())?;
            let download = Arc::new(download);
            for (begin, length) in download.ranges() {
                let job = Job::Range(Arc::clone(&download), begin, length, Arc::clone(task));
                if download.has_failed() || !give(job) {
                    break;
                }
            }
            Ok(())
        }
        _ => {
            give(Job::Whole(Arc::clone(task)));
            Ok(())
        }
    }
}

/// One connection.
struct Worker<'a> {
    session: Session,
    tally: &'a Tally,
    options: Options,
}

impl Worker<'_> {
    fn run(mut self, jobs: &Mutex<Receiver<Job>>) {
        loop {
            let next = jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
            match next {
                Err(_) => return,
                Ok(Job::Whole(task)) => match self.whole(&task) {
                    Ok(bytes) => self.tally.add(1, bytes),
                    Err(failure) => self.tally.fail_at(&task, failure),
                },
                Ok(Job::Block(upload, index, bytes, task)) => {
                    let sent = upload.send(&mut self.session, index, &bytes);
                    self.piece(&task, sent, bytes.len() as u64);
                }
                Ok(Job::Range(download, begin, length, task)) => {
                    let fetched = download.fetch(&mut self.session, begin, length);
                    self.piece(&task, fetched, length);
                }
            }
        }
    }

    fn piece(&self, task: &Task, outcome: Result<bool>, bytes: u64) {
        match outcome {
            Ok(is_whole) => self.tally.add(u64::from(is_whole), bytes),
            Err(failure) => self.tally.fail_at(task, failure),
        }
    }

    /// Does a task, and says how many bytes it transferred.
    fn whole(&mut self, task: &Task) -> Result<u64> {
        let session = &mut self.session;
        match task {
            Task::Upload { file, size, to } => {
                upload::whole(session, file, *size, to)?;
                return Ok(*size);
            }
            Task::Download { from, root, file, .. } => {
                prepare(root, file, self.options.follow_links)?;
                return download::whole(session, from, file);
            }
            Task::Copy { from, to, size } => {
                one::copy(session, from, to)?;
                return Ok(*size);
            }
            Task::Remove(blob) => one::remove(session, blob)?,
            Task::RemoveFile(file) => {
                std::fs::remove_file(file).map_err(|error| cannot(file, &error))?;
            }
        }
        if self.options.announce {
            let spot = match task {
                Task::Remove(blob) => Location::Remote(blob.clone()),
                Task::RemoveFile(file) => Location::Local(file.clone()),
                _ => return Ok(0),
            };
            output::line(&format!("removed {spot}"));
        }
        Ok(0)
    }
}

/// The outcomes so far, shared by all connections.
struct Tally(Mutex<Counts>);

struct Counts {
    meter: Meter,
    now: Figures,
    failed: u64,
}

impl Tally {
    fn new(options: Options, total: u64) -> Self {
        let (quiet, now) = (options.quiet, Figures::default());
        let meter = Meter::new("transferred", "blobs", quiet, now, Some(total));
        Self(Mutex::new(Counts { meter, now, failed: 0 }))
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, items: u64, bytes: u64) {
        let counts = &mut *self.counts();
        counts.now.items += items;
        counts.now.bytes += bytes;
        counts.meter.show(counts.now);
    }

    fn fail_at(&self, task: &Task, failure: Failure) {
        let mut counts = self.counts();
        counts.failed += 1;
        counts.meter.clear();
        eprintln!("cannot {task}: {}", failure.reason());
    }

    fn is_over(&self) -> bool {
        self.counts().failed >= FAILURES_MAX
    }

    fn done(&self) -> Done {
        let counts = self.counts();
        counts.meter.finish();
        let Figures { items, bytes } = counts.now;
        let (failed, elapsed) = (counts.failed, counts.meter.elapsed());
        Done { items, bytes, failed, gave_up: failed >= FAILURES_MAX, elapsed }
    }
}
