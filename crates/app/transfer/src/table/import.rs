//! Reads entities from a file, gathers neighbours into transactions, and sends several at the same time.
//!
//! An entity that stands in the file twice is written in the order of the file: a batch waits for those under way that
//! hold one of its keys. The progress file has the position up to which everything has been answered.

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

use super::layout::Layout;
use super::source::{Record, Source};
use super::writer::{Batch, Item, Order, Outcome, Writer};
use super::{Import, ensure, format_of, is_standard, name_of};
use crate::account::Account;
use crate::frontier::{Frontier, Step};
use crate::progress::Progress;
use crate::session::Session;

/// The most entities that `--skip-errors` leaves out before it gives up.
const SKIPPED_MAX: u64 = 1000;
const BUFFER_BYTES: usize = 256 * 1024;
/// How long to wait for an answer before looking at the clock.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Writes the entities of a file, or of standard input, to a table.
pub fn import(account: &Arc<Account>, import: &Import, json: bool) -> Result<()> {
    let format = format_of(import.format, &import.file);
    let layout = import.layout(format)?;
    let is_kept = import.progress.is_some() || !is_standard(&import.file);
    if import.resume && !is_kept {
        return Err(Failure::usage("standard input is resumed only with --progress FILE"));
    }
    let what = json!({
        "import": account.base(), "account": account.name, "table": import.table,
        "format": name_of(&format), "mode": name_of(&import.mode),
    });
    let mut what = what;
    if layout.json() != Layout::default().json() {
        what["layout"] = layout.json();
    }
    let progress = match &import.progress {
        None if is_kept => Progress::of_file(&import.file, what),
        path => Progress::new(path.clone(), what),
    };
    if progress.exists() && !import.resume && !import.restart {
        let (file, table) = (import.file.display(), &import.table);
        let message = format!("an import of {file} into {table} was interrupted");
        return Err(
            Failure::failed(message).hint("continue with --resume, or start again with --restart")
        );
    }
    let kept = if import.resume { progress.read()? } else { None };
    let (input, total) = open(&import.file)?;
    let mut source = Source::open(input, format, &layout)?;
    let mut frontier = Frontier::start();
    if let Some(kept) = &kept {
        frontier = Frontier::from_json(kept)
            .ok_or_else(|| Failure::failed("the progress file is damaged"))?;
        source.skip_to(frontier.position)?;
    }
    if import.create {
        ensure(&mut Session::new(Arc::clone(account))?, &import.table)?;
    }
    let order = Order {
        base: account.base(),
        table: import.table.clone(),
        mode: import.mode,
        skip_errors: import.skip_errors,
        in_doubt: kept.is_some(),
    };
    let first = Figures { items: frontier.written, bytes: frontier.position.offset };
    let meter = Meter::new("imported", "entities", import.quiet, first, total);
    let mut work = Work::start(account, order, import.parallel, frontier, progress, meter)?;
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
    summary(&work, &import.table, json);
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

fn summary(work: &Work, table: &str, json: bool) {
    let (written, skipped) = (work.frontier.written, work.frontier.skipped);
    let seconds = work.meter.elapsed().as_secs_f64();
    let answer =
        json!({ "table": table, "written": written, "skipped": skipped, "seconds": seconds });
    output::changed(json, &answer, || match skipped {
        0 => format!("imported {written} entities into {table}"),
        _ => format!("imported {written} entities into {table} and left out {skipped}"),
    });
}

/// An import under way.
struct Work {
    jobs: Option<Sender<Batch>>,
    outcomes: Receiver<Outcome>,
    workers: Vec<JoinHandle<()>>,
    /// The most batches under way: one for each worker, and one that waits for it.
    batches_max: usize,
    under_way: usize,
    /// The keys of what is under way.
    keys: BTreeSet<(String, String)>,
    /// The number of the next batch.
    number: u64,
    skip_errors: bool,
    left_out: u64,
    /// Entities that this run has written.
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
            let session = Session::new(Arc::clone(account))?;
            let mut writer = Writer { session, order: Arc::clone(&order) };
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
        let batches_max = 2 * workers.len();
        let (keys, under_way, number) = (BTreeSet::new(), 0, 0);
        let (jobs, left_out) = (Some(jobs), frontier.skipped);
        Ok(Self {
            jobs,
            outcomes,
            workers,
            batches_max,
            under_way,
            keys,
            number,
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
        match record.entity {
            Ok(entity) => {
                if let Err(item) = batch.add(Item { from, to, entity }) {
                    self.dispatch(std::mem::take(batch))?;
                    // An empty batch takes every entity.
                    let _ = batch.add(item);
                }
            }
            Err(reason) => {
                self.dispatch(std::mem::take(batch))?;
                let line = from.line;
                let number = self.next_number();
                if self.skip_errors {
                    self.frontier.take(number, Step { to, written: 0, skipped: 1, whole: true });
                    self.skip(line, &reason);
                } else {
                    let step = Step { to: from, written: 0, skipped: 0, whole: false };
                    self.frontier.take(number, step);
                    self.fail(line, reason);
                }
            }
        }
        Ok(())
    }

    fn next_number(&mut self) -> u64 {
        self.number += 1;
        self.number - 1
    }

    /// Hands a batch to the writers once there is room and nothing under way has one of its keys.
    fn dispatch(&mut self, mut batch: Batch) -> Result<()> {
        if batch.items.is_empty() {
            return Ok(());
        }
        let keys = keys(&batch);
        while self.under_way >= self.batches_max || keys.iter().any(|key| self.keys.contains(key)) {
            self.wait()?;
        }
        batch.number = self.next_number();
        self.keys.extend(keys);
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
        for key in keys(&outcome.batch) {
            self.keys.remove(&key);
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

    /// Names an entity that is left out.
    fn skip(&mut self, line: u64, reason: &str) {
        self.meter.clear();
        eprintln!("left out line {line}: {reason}");
        self.left_out += 1;
        if self.left_out > SKIPPED_MAX {
            self.fail(line, format!("this is the {}th entity to leave out", SKIPPED_MAX + 1));
        }
    }

    /// Of several failures the first one in the file is reported.
    fn fail(&mut self, line: u64, reason: String) {
        if self.failure.as_ref().is_none_or(|(first, _)| line < *first) {
            self.failure = Some((line, reason));
        }
    }
}

fn keys(batch: &Batch) -> Vec<(String, String)> {
    let key = |item: &Item| (item.entity.partition.clone(), item.entity.row.clone());
    batch.items.iter().map(key).collect()
}
