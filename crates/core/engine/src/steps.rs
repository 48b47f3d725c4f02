//! Multi-step jobs: writes over several shards that are all made in the end, one step after another (S14).
//!
//! The job is a record in the catalog. A step is one write in its own partition, and leaves a mark beside the item in the
//! same commit; the engine that goes on with the job after a crash sees the mark and does not make the write again. When all
//! steps are made the marks are deleted, and the job is kept among the finished ones for a while. A step whose condition
//! does not hold stops the job where it is, for its owner to see: what was written before stays written.

use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use lazuli_env::Id;
use lazuli_shardmap::ContainerId;
use lazuli_shardmap::catalog::{Catalog, Expected, RecordWrite, Versioned, kinds};
use lazuli_shardmap::layout::Space;
use lazuli_shardmap::record::{Record, decode, encode};
use lazuli_store::{Error, KeyRange, Kind, Result};

use crate::condition::Condition;
use crate::engine::Engine;
use crate::item::ItemKey;
use crate::lsn::Lsn;
use crate::tx::{Transaction, Tx};

/// The most steps of one job.
pub const JOB_STEPS_MAX: usize = 1_000;
/// The most that the payloads of one job take up together.
pub const JOB_BYTES_MAX: usize = 4 * 1024 * 1024;
/// How many finished jobs are remembered; beyond it the oldest are forgotten.
pub const JOBS_FINISHED_MAX: usize = 1_000;
/// How many unfinished jobs one look at the list brings.
const JOBS_PAGE: usize = 1_000;

/// One write of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    pub container: ContainerId,
    pub route: Bytes,
    pub row: Bytes,
    pub condition: Condition,
    /// None deletes.
    pub payload: Option<Bytes>,
}

/// How a job stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobState {
    /// Steps are being made.
    Running,
    /// The step after the last one that was made cannot be made. [`Engine::resume_job`] tries it again.
    Stopped { code: String, message: String },
    /// No step is to be made any more; the marks are being deleted.
    Closing,
    /// Finished: all steps are made, or those before `made` if the job was abandoned.
    Finished,
}

/// A job as its owner sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    pub id: Id,
    pub steps: Vec<Step>,
    /// How many steps are made.
    pub made: u32,
    pub state: JobState,
}

impl Record for Step {
    fn write(&self, out: &mut BytesMut) {
        self.container.write(out);
        self.route.write(out);
        self.row.write(out);
        let (tag, version) = match self.condition {
            Condition::Any => (0u8, 0),
            Condition::Absent => (1, 0),
            Condition::Present => (2, 0),
            Condition::Version(lsn) => (3, lsn.0),
        };
        out.put_u8(tag);
        out.put_u64(version);
        self.payload.write(out);
    }

    fn read(input: &mut Bytes) -> Result<Self> {
        let container = ContainerId::read(input)?;
        let (route, row) = (Bytes::read(input)?, Bytes::read(input)?);
        let condition = match (u8::read(input)?, u64::read(input)?) {
            (0, 0) => Condition::Any,
            (1, 0) => Condition::Absent,
            (2, 0) => Condition::Present,
            (3, version) => Condition::Version(Lsn(version)),
            _ => return Err(Error::corrupt("bad-job", "a job's condition does not decode")),
        };
        Ok(Self { container, route, row, condition, payload: Option::read(input)? })
    }
}

impl Record for Job {
    fn write(&self, out: &mut BytesMut) {
        out.put_slice(&self.id.to_bytes());
        self.steps.write(out);
        self.made.write(out);
        match &self.state {
            JobState::Running => out.put_u8(0),
            JobState::Stopped { code, message } => {
                out.put_u8(1);
                code.write(out);
                message.write(out);
            }
            JobState::Closing => out.put_u8(2),
            JobState::Finished => out.put_u8(3),
        }
    }

    fn read(input: &mut Bytes) -> Result<Self> {
        let (id, steps, made) = (Id::read(input)?, Vec::read(input)?, u32::read(input)?);
        let state = match u8::read(input)? {
            0 => JobState::Running,
            1 => JobState::Stopped { code: String::read(input)?, message: String::read(input)? },
            2 => JobState::Closing,
            3 => JobState::Finished,
            _ => return Err(Error::corrupt("bad-job", "a job's state does not decode")),
        };
        Ok(Self { id, steps, made, state })
    }
}

/// The mark that a step leaves: `container | MARKS | route | job id (16) | step (4)`, in the step's own partition, so
/// that it moves with it.
fn mark(job: Id, number: u32, step: &Step) -> ItemKey {
    let row = [&job.to_bytes()[..], &number.to_be_bytes()].concat();
    ItemKey::new(step.container, Space::MARKS, &step.route, &row)
}

/// Makes one step, unless its mark is there or the job does not need it any more.
struct MakeStep {
    catalog: Arc<Catalog>,
    job: Id,
    number: u32,
    step: Step,
}

impl Transaction for MakeStep {
    type Output = ();

    async fn run(&self, tx: &mut Tx<'_>) -> Result<()> {
        let mark = mark(self.job, self.number, &self.step);
        if tx.get(&mark).await?.is_some() {
            return Ok(());
        }
        if !self.is_wanted().await? {
            return Ok(());
        }
        let Step { container, route, row, condition, payload } = &self.step;
        let key = ItemKey::new(*container, Space::ITEMS, route, row);
        tx.check(&key, *condition).await?;
        match payload {
            Some(payload) => tx.put(&key, payload.clone()).await?,
            None => {
                tx.delete(&key).await?;
            }
        }
        tx.put(&mark, Bytes::new()).await
    }
}

impl MakeStep {
    /// Whether the step is still to be made. Without its mark it may be one that another process has made, in a job that is
    /// over by now: marks are deleted at its end. The job's record says so before the first mark is deleted, and that
    /// deletion cannot come in between, because it needs this partition.
    async fn is_wanted(&self) -> Result<bool> {
        let record = self.catalog.get_record(kinds::JOB, &self.job.to_bytes()).await?;
        let Some(record) = record else { return Ok(false) };
        let job: Job = decode(record.value)?;
        Ok(job.state == JobState::Running && job.made <= self.number)
    }
}

/// Deletes the mark of a step.
struct DropMark(ItemKey);

impl Transaction for DropMark {
    type Output = ();

    async fn run(&self, tx: &mut Tx<'_>) -> Result<()> {
        tx.delete(&self.0).await.map(|_| ())
    }

    fn cost(&self) -> u32 {
        0
    }
}

impl Engine {
    /// Takes a job on. Once this answers, all its writes are made in the end, also after a crash, or the job says which
    /// one could not be.
    pub async fn submit_job(&self, steps: Vec<Step>) -> Result<Id> {
        let bytes: usize =
            steps.iter().map(|step| step.payload.as_ref().map_or(0, Bytes::len)).sum();
        if steps.is_empty() || steps.len() > JOB_STEPS_MAX || bytes > JOB_BYTES_MAX {
            let message = format!("a job of {} steps and {bytes} bytes", steps.len());
            return Err(Error::too_large("job-too-large", message));
        }
        let id = self.env.ids.next_id();
        let job = Job { id, steps, made: 0, state: JobState::Running };
        let catalog = self.manager.catalog();
        let key = Bytes::copy_from_slice(&id.to_bytes());
        catalog.put_record(kinds::JOB, key, encode(&job), Expected::Nothing).await?;
        self.jobs_wanted.notify_one();
        Ok(id)
    }

    /// A job, unless it was finished so long ago that it is forgotten.
    pub async fn job(&self, id: Id) -> Result<Job> {
        let catalog = self.manager.catalog();
        match catalog.get_record(kinds::JOB_FINISHED, &id.to_bytes()).await? {
            Some(record) => decode(record.value),
            None => Ok(self.stored_job(id).await?.1),
        }
    }

    /// All jobs that are not finished, oldest first.
    pub async fn jobs(&self) -> Result<Vec<Job>> {
        let catalog = self.manager.catalog();
        let records = catalog.scan_records(kinds::JOB, &KeyRange::all(), JOBS_PAGE).await?;
        records.into_iter().map(|record| decode(record.value)).collect()
    }

    /// Lets a stopped job try its step again.
    pub async fn resume_job(&self, id: Id) -> Result<()> {
        let (version, mut job) = self.stopped_job(id).await?;
        job.state = JobState::Running;
        self.store_job(version, &job).await?;
        self.jobs_wanted.notify_one();
        Ok(())
    }

    /// Gives a stopped job up: what it has written stays, what it has not is never written.
    pub async fn abandon_job(&self, id: Id) -> Result<()> {
        let (version, mut job) = self.stopped_job(id).await?;
        job.state = JobState::Closing;
        self.store_job(version, &job).await?;
        self.jobs_wanted.notify_one();
        Ok(())
    }

    /// Goes on with every job. Each gets as far as it can; the first error is answered once all were tried.
    pub async fn run_jobs(&self) -> Result<()> {
        let _turn = self.jobs_turn.lock().await;
        let mut outcome = Ok(());
        for job in self.jobs().await? {
            outcome = outcome.and(self.run_job(job.id).await);
        }
        outcome
    }

    async fn run_job(&self, id: Id) -> Result<()> {
        let (mut version, mut job) = self.stored_job(id).await?;
        while job.state == JobState::Running {
            let Some(step) = job.steps.get(job.made as usize).cloned() else {
                job.state = JobState::Closing;
                version = self.store_job(version, &job).await?;
                break;
            };
            let (container, route) = (step.container, step.route.clone());
            let catalog = self.manager.catalog().clone();
            let make = MakeStep { catalog, job: id, number: job.made, step };
            match self.write(container, &route, make).await {
                Ok(()) => job.made += 1,
                Err(error) if is_passing(&error) => return Err(error),
                Err(error) => {
                    let (code, message) = (error.code().to_owned(), error.message().to_owned());
                    job.state = JobState::Stopped { code, message };
                }
            }
            version = self.store_job(version, &job).await?;
        }
        if job.state == JobState::Closing { self.finish_job(version, job).await } else { Ok(()) }
    }

    /// Deletes the marks and puts the job among the finished ones.
    async fn finish_job(&self, version: u64, mut job: Job) -> Result<()> {
        for (number, step) in (0..job.made).zip(&job.steps) {
            let drop_mark = DropMark(mark(job.id, number, step));
            match self.write(step.container, &step.route, drop_mark).await {
                // Where the container is gone, so is the mark.
                Err(error) if error.kind() == Kind::NotFound => {}
                outcome => outcome?,
            }
        }
        job.state = JobState::Finished;
        let key = Bytes::copy_from_slice(&job.id.to_bytes());
        let write = |kind, expected, value| RecordWrite { kind, key: key.clone(), expected, value };
        let catalog = self.manager.catalog();
        catalog
            .write_records(&[
                write(kinds::JOB, Expected::Version(version), None),
                write(kinds::JOB_FINISHED, Expected::Anything, Some(encode(&job))),
            ])
            .await?;
        self.forget_jobs().await
    }

    /// Forgets the oldest finished jobs beyond the number that is kept.
    async fn forget_jobs(&self) -> Result<()> {
        let catalog = self.manager.catalog();
        let most = JOBS_FINISHED_MAX + 1;
        let kept = catalog.scan_records(kinds::JOB_FINISHED, &KeyRange::all(), most).await?;
        if let (true, Some(oldest)) = (kept.len() == most, kept.into_iter().next()) {
            catalog.delete_record(kinds::JOB_FINISHED, oldest.key, Expected::Anything).await?;
        }
        Ok(())
    }

    async fn stopped_job(&self, id: Id) -> Result<(u64, Job)> {
        let (version, job) = self.stored_job(id).await?;
        if matches!(job.state, JobState::Stopped { .. }) {
            return Ok((version, job));
        }
        Err(Error::precondition("job-not-stopped", format!("job {id} is at work")))
    }

    async fn stored_job(&self, id: Id) -> Result<(u64, Job)> {
        let record = self.manager.catalog().get_record(kinds::JOB, &id.to_bytes()).await?;
        let missing = || Error::not_found("job-not-found", format!("there is no job {id}"));
        let Versioned { version, value, .. } = record.ok_or_else(missing)?;
        Ok((version, decode(value)?))
    }

    async fn store_job(&self, version: u64, job: &Job) -> Result<u64> {
        let key = Bytes::copy_from_slice(&job.id.to_bytes());
        let expected = Expected::Version(version);
        self.manager.catalog().put_record(kinds::JOB, key, encode(job), expected).await
    }
}

/// Whether trying again later, without anybody's doing, may help.
fn is_passing(error: &Error) -> bool {
    match error.kind() {
        Kind::Throttled { .. } | Kind::Unavailable { .. } | Kind::Moved => true,
        Kind::NotFound
        | Kind::Exists
        | Kind::Precondition
        | Kind::Invalid
        | Kind::TooLarge
        | Kind::Corrupt
        | Kind::Internal => false,
    }
}
