//! Reads items from a file, gathers neighbours of one partition key, and sends several requests at the same time.
//!
//! An item that stands in the file twice is written in the order of the file: a batch waits for those under way that hold one
//! of its items. The progress file has the position up to which everything has been answered.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use lazuli_console::progress::{Figures, Meter};
use lazuli_console::{Failure, Result, output};
use serde_json::json;

use super::item::KeyPaths;
use super::service::Service;
use super::source::{Record, Source};
use super::writer::{Batch, Keyed, Order, Outcome, Writer};
use super::{Format, Import, name_of};
use crate::account::Account;
use crate::frontier::{Frontier, Step};
use crate::progress::Progress;
use crate::table::is_standard;

/// The most items that `--skip-errors` leaves out before it gives up.
const SKIPPED_MAX: u64 = 1000;
const BUFFER_BYTES: usize = 256 * 1024;
/// How long to wait for an answer before looking at the clock.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// The format that was asked for, or the one that the name of the file shows.
pub(super) fn format_of(asked: Option<Format>, file: &Path) -> Format {
    let is_csv = file.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("csv"));
    asked.unwrap_or(if is_csv { Format::Csv } else { Format::Jsonl })
}

/// Writes the items of a file, or of standard input, to a container.
pub fn import(account: &Arc<Account>, import: &Import, json: bool) -> Result<()> {
    let format = format_of(import.format, &import.file);
    let is_kept = import.progress.is_some() || !is_standard(&import.file);
    if import.resume && !is_kept {
        return Err(Failure::usage("standard input is resumed only with --progress FILE"));
    }
    let what = json!({
        "import": account.base(), "account": account.name, "container": import.place.shown(),
        "format": name_of(&format), "mode": name_of(&import.mode),
    });
    let progress = match &import.progress {
        None if is_kept => Progress::of_file(&import.file, what),
        path => Progress::new(path.clone(), what),
    };
    if progress.exists() && !import.resume && !import.restart {
        let (file, place) = (import.file.display(), import.place.shown());
        let message = format!("an import of {file} into {place} was interrupted");
        return Err(
            Failure::failed(message).hint("continue with --resume, or start again with --restart")
        );
    }
    let kept = if import.resume { progress.read()? } else { None };
    let (input, total) = open(&import.file)?;
    let mut source = Source::open(input, format)?;
    let mut frontier = Frontier::start();
    if let Some(kept) = &kept {
        frontier = Frontier::from_json(kept)
            .ok_or_else(|| Failure::failed("the progress file is damaged"))?;
        source.skip_to(frontier.position)?;
    }
    let keys = Service::new(account)?.describe(&import.place)?.keys;
    let order = Order {
        place: import.place.clone(),
        mode: import.mode,
        skip_errors: import.skip_errors,
        in_doubt: kept.is_some(),
    };
    let first = Figures { items: frontier.written, bytes: frontier.position.offset };
    let meter = Meter::new("imported", "items", import.quiet, first, total);
    let mut work = Work::start(account, order, import.parallel, keys, frontier, progress, meter)?;
    let done = work.all(source);
    work.meter.finish();
    if work.written == 0 && kept.is_none() {
        // There is nothing to resume.
        work.progress.remove()?;
    } else {
        work.progress.save(work.frontier.to_json())?;
    }
    done.map_err(|failure| failure.maybe_hint(work.progress.hint()))?;
    work.progress.remove()?;
    summary(&work, &import.place.shown(), json);
    Ok(())
}

/// The input, and its size if it has one.
fn open(path: &Path) -> Result<(Box<dyn BufRead + Send>, Option<u64>)> {
    if is_standard(path) {
        return Ok((Box::new(BufReader::with_capacity(BUFFER_BYTES, io::stdin())), None));
    }
    let cannot = |error: io::Error| Failure::failed(format!("{}: {error}", path.display()));
    let file = File::open(path).map_err(cannot)?;
    let meta = file.metadata().map_err(cannot)?;
    let total = meta.is_file().then_some(meta.len());
    Ok((Box::new(BufReader::with_capacity(BUFFER_BYTES, file)), total))
}

fn summary(work: &Work, place: &str, json: bool) {
    let (written, skipped) = (work.frontier.written, work.frontier.skipped);
    let seconds = work.meter.elapsed().as_secs_f64();
    let answer =
        json!({ "container": place, "written": written, "skipped": skipped, "seconds": seconds });
    output::changed(json, &answer, || match skipped {
        0 => format!("imported {written} items into {place}"),
        _ => format!("imported {written} items into {place} and left out {skipped}"),
    });
}

/// An import under way.
struct Work {
    keys: KeyPaths,
    jobs: Option<Sender<Batch>>,
    outcomes: Receiver<Outcome>,
    workers: Vec<JoinHandle<()>>,
    under_way: usize,
    /// Partition key and id of what is under way.
    items: BTreeSet<(String, String)>,
    /// The number of the next batch.
    number: u64,
    skip_errors: bool,
    left_out: u64,
    /// Items that this run has written.
    written: u64,
    failure: Option<(u64, String)>,
    frontier: Frontier,
    progress: Progress,
    meter: Meter,
}

impl Work {
    fn start(
        account: &Arc<Account>,
        order: Order,
        parallel: u64,
        keys: KeyPaths,
        frontier: Frontier,
        mut progress: Progress,
        meter: Meter,
    ) -> Result<Self> {
        // A resumed import must know that something may have been written.
        progress.save(frontier.to_json())?;
        let (jobs, taken) = channel::<Batch>();
        let (answered, outcomes) = channel();
        let taken = Arc::new(Mutex::new(taken));
        let skip_errors = order.skip_errors;
        let order = Arc::new(order);
        let mut workers = Vec::new();
        for _ in 0..parallel {
            let mut writer = Writer { service: Service::new(account)?, order: Arc::clone(&order) };
            let (taken, answered) = (Arc::clone(&taken), answered.clone());
            workers.push(std::thread::spawn(move || {
                loop {
                    let next = taken.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    let Ok(batch) = next else { break };
                    if answered.send(writer.write(batch)).is_err() {
                        break;
                    }
                }
            }));
        }
        let left_out = frontier.skipped;
        Ok(Self {
            keys,
            jobs: Some(jobs),
            outcomes,
            workers,
            under_way: 0,
            items: BTreeSet::new(),
            number: 0,
            skip_errors,
            left_out,
            written: 0,
            failure: None,
            frontier,
            progress,
            meter,
        })
    }

    /// Writes everything, or as much as can be written before the first failure.
    fn all(&mut self, source: Source) -> Result<()> {
        let records = source.spawn();
        let mut batch = Batch::default();
        let mut read = Ok(());
        while self.failure.is_none() {
            match records.recv_timeout(LOOK_EVERY) {
                Ok(Ok(record)) => self.record(&mut batch, record)?,
                Ok(Err(failure)) => {
                    read = Err(failure);
                    break;
                }
                // The input is slow, so what was read does not wait for more.
                Err(RecvTimeoutError::Timeout) => self.dispatch(std::mem::take(&mut batch))?,
                Err(RecvTimeoutError::Disconnected) => break,
            }
            while let Ok(outcome) = self.outcomes.try_recv() {
                self.settle(outcome);
            }
            self.look()?;
        }
        if self.failure.is_none() {
            self.dispatch(batch)?;
        }
        while self.under_way > 0 {
            self.wait()?;
        }
        self.jobs = None;
        for worker in self.workers.drain(..) {
            worker.join().map_err(|_| Failure::failed("a writer broke off"))?;
        }
        match self.failure.take() {
            Some((line, reason)) => Err(Failure::failed(format!("line {line}: {reason}"))),
            None => read,
        }
    }

    /// Puts a record into the open batch; one that does not fit there closes it.
    fn record(&mut self, batch: &mut Batch, record: Record) -> Result<()> {
        let (from, to) = (record.from, record.to);
        let keyed = record.item.and_then(|item| {
            let item = item.plain();
            let id = item.id().ok_or("the item has no id that is a text")?;
            let key = self.keys.of(&item)?;
            Ok(Keyed { from, to, key, id, body: item.text() })
        });
        match keyed {
            Ok(item) => {
                if let Err(item) = batch.add(item) {
                    self.dispatch(std::mem::take(batch))?;
                    // An empty batch takes every item.
                    let _ = batch.add(item);
                }
            }
            Err(reason) => {
                self.dispatch(std::mem::take(batch))?;
                let number = self.next_number();
                if self.skip_errors {
                    self.frontier.take(number, Step { to, written: 0, skipped: 1, whole: true });
                    self.skip(from.line, &reason);
                } else {
                    let step = Step { to: from, written: 0, skipped: 0, whole: false };
                    self.frontier.take(number, step);
                    self.fail(from.line, reason);
                }
            }
        }
        Ok(())
    }

    fn next_number(&mut self) -> u64 {
        self.number += 1;
        self.number - 1
    }

    /// Hands a batch to the writers once there is room and nothing under way has one of its items.
    fn dispatch(&mut self, mut batch: Batch) -> Result<()> {
        if batch.items.is_empty() {
            return Ok(());
        }
        let items = names(&batch);
        // One for each worker, and one that waits for it.
        let most = 2 * self.workers.len();
        while self.under_way >= most || items.iter().any(|item| self.items.contains(item)) {
            self.wait()?;
        }
        batch.number = self.next_number();
        self.items.extend(items);
        self.under_way += 1;
        let sent = self.jobs.as_ref().is_some_and(|jobs| jobs.send(batch).is_ok());
        if sent { Ok(()) } else { Err(Failure::failed("the writers broke off")) }
    }

    /// Waits a moment for the next outcome.
    fn wait(&mut self) -> Result<()> {
        match self.outcomes.recv_timeout(LOOK_EVERY) {
            Ok(outcome) => self.settle(outcome),
            Err(RecvTimeoutError::Timeout) if self.workers.iter().any(JoinHandle::is_finished) => {
                return Err(Failure::failed("a writer broke off"));
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Failure::failed("the writers broke off"));
            }
        }
        self.look()
    }

    /// Saves and shows how far it is, if it is time to.
    fn look(&mut self) -> Result<()> {
        if self.progress.is_due() {
            self.progress.save(self.frontier.to_json())?;
        }
        let Frontier { written: items, position, .. } = self.frontier;
        self.meter.show(Figures { items, bytes: position.offset });
        Ok(())
    }

    fn settle(&mut self, outcome: Outcome) {
        self.under_way -= 1;
        for item in names(&outcome.batch) {
            self.items.remove(&item);
        }
        self.written += outcome.step.written;
        self.frontier.take(outcome.batch.number, outcome.step);
        for (line, reason) in outcome.skipped {
            self.skip(line, &reason);
        }
        if let Some((line, reason)) = outcome.failure {
            self.fail(line, reason);
        }
    }

    /// Names an item that is left out.
    fn skip(&mut self, line: u64, reason: &str) {
        self.meter.clear();
        eprintln!("left out line {line}: {reason}");
        self.left_out += 1;
        if self.left_out > SKIPPED_MAX {
            self.fail(line, format!("this is the {}th item to leave out", SKIPPED_MAX + 1));
        }
    }

    /// Of several failures the first one in the file is reported.
    fn fail(&mut self, line: u64, reason: String) {
        if self.failure.as_ref().is_none_or(|(first, _)| line < *first) {
            self.failure = Some((line, reason));
        }
    }
}

fn names(batch: &Batch) -> Vec<(String, String)> {
    batch.items.iter().map(|item| (item.key.clone(), item.id.clone())).collect()
}
