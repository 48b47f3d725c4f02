//! The records of sharded databases in the catalog.
//!
//! A change reads everything of one database, edits the draft and writes what differs in one commit that expects the record of
//! the database at the version it was read at. So changes of one database happen one after another, whoever makes them.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use lazuli_shardmap::MapReason;
use lazuli_shardmap::catalog::{Catalog, Expected, RecordWrite, kinds};
use lazuli_store::{Error, KeyRange, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::form::{MappingForm, ModelForm};
use crate::job::Job;

/// How often a change is tried again because somebody else changed the same database.
const TRIES_MAX: usize = 20;
/// The most mappings of one database.
pub(crate) const MAPPINGS_MAX: usize = 100_000;
/// The most jobs of one database that are not finished.
const JOBS_MAX: usize = 10_000;
/// The most sharded databases.
const DATABASES_MAX: usize = 10_000;
/// How many finished jobs are listed.
const FINISHED_MAX: usize = 1_000;

#[derive(Clone)]
pub(crate) struct Book {
    catalog: Arc<Catalog>,
}

/// Everything of one database, to be edited.
#[derive(Clone)]
pub(crate) struct Draft {
    pub(crate) model: ModelForm,
    pub(crate) mappings: BTreeMap<u64, MappingForm>,
    pub(crate) jobs: BTreeMap<u64, Job>,
    /// Jobs that end with this change.
    pub(crate) finished: Vec<Job>,
    version: u64,
}

impl Book {
    pub(crate) fn new(catalog: Arc<Catalog>) -> Self {
        Self { catalog }
    }

    pub(crate) async fn names(&self) -> Result<Vec<String>> {
        let all = KeyRange::all();
        let rows = self.catalog.scan_records(kinds::SQL_DATABASE, &all, DATABASES_MAX).await?;
        Ok(rows.iter().map(|row| String::from_utf8_lossy(&row.key).into_owned()).collect())
    }

    /// Everything of a database; none if there is no such database.
    pub(crate) async fn read(&self, name: &str) -> Result<Option<Draft>> {
        for _ in 0..TRIES_MAX {
            let Some(record) = self.head(name).await? else { return Ok(None) };
            let mappings = self.of(kinds::SQL_MAPPING, name, MAPPINGS_MAX).await?;
            let jobs = self.of(kinds::SQL_JOB, name, JOBS_MAX).await?;
            // All three are of one state only if nothing was changed in between.
            if self.head(name).await?.is_none_or(|again| again.version != record.version) {
                continue;
            }
            let model = decode(&record.value)?;
            let mappings = mappings.into_iter().map(|it: MappingForm| (it.id, it)).collect();
            let jobs = jobs.into_iter().map(|it: Job| (it.number, it)).collect();
            let version = record.version;
            return Ok(Some(Draft { model, mappings, jobs, finished: Vec::new(), version }));
        }
        Err(Error::unavailable("sql-model-busy", format!("database {name} changes all the time")))
    }

    async fn head(&self, name: &str) -> Result<Option<lazuli_shardmap::catalog::Versioned>> {
        self.catalog.get_record(kinds::SQL_DATABASE, name.as_bytes()).await
    }

    async fn of<T: DeserializeOwned>(&self, kind: u8, name: &str, most: usize) -> Result<Vec<T>> {
        let range = KeyRange::prefix(key(name, None));
        let rows = self.catalog.scan_records(kind, &range, most).await?;
        rows.iter().map(|row| decode(&row.value)).collect()
    }

    /// Jobs that are over, the last ones first.
    pub(crate) async fn finished(&self, name: &str) -> Result<Vec<Job>> {
        let mut jobs: Vec<Job> = self.of(kinds::SQL_JOB_FINISHED, name, FINISHED_MAX).await?;
        jobs.reverse();
        Ok(jobs)
    }

    pub(crate) async fn finished_job(&self, name: &str, number: u64) -> Result<Option<Job>> {
        let kind = kinds::SQL_JOB_FINISHED;
        let row = self.catalog.get_record(kind, &key(name, Some(number))).await?;
        row.map(|row| decode(&row.value)).transpose()
    }

    /// Begins a database.
    pub(crate) async fn create(&self, model: &ModelForm) -> Result<()> {
        let (kind, name) = (kinds::SQL_DATABASE, model.name.clone());
        let made = self.catalog.put_record(kind, name, encode(model), Expected::Nothing).await;
        made.map(drop).map_err(|error| match error.is(MapReason::RecordExists) {
            true => {
                let message = format!("there is a sharded database {} already", model.name);
                Error::exists("sql-database-exists", message)
            }
            false => error,
        })
    }

    /// Forgets a database; its shards keep all rows.
    pub(crate) async fn remove(&self, draft: &Draft) -> Result<()> {
        let name = &draft.model.name;
        let gone = |kind, key, expected| RecordWrite { kind, key, expected, value: None };
        let mut writes = vec![gone(
            kinds::SQL_DATABASE,
            Bytes::from(name.clone()),
            Expected::Version(draft.version),
        )];
        for id in draft.mappings.keys() {
            writes.push(gone(kinds::SQL_MAPPING, key(name, Some(*id)), Expected::Anything));
        }
        self.catalog.write_records(&writes).await.map(drop)
    }

    /// Edits a database. `edit` may be called more than once.
    pub(crate) async fn change<T>(
        &self,
        name: &str,
        mut edit: impl FnMut(&mut Draft) -> Result<T>,
    ) -> Result<(T, Draft)> {
        for _ in 0..TRIES_MAX {
            let before = self.read(name).await?.ok_or_else(|| unknown(name))?;
            let mut draft = before.clone();
            let made = edit(&mut draft)?;
            draft.model.version += 1;
            let writes = differences(&before, &draft);
            match self.catalog.write_records(&writes).await {
                Ok(_) => return Ok((made, draft)),
                Err(error) if error.is(MapReason::RecordChanged) => {}
                Err(error) => return Err(error),
            }
        }
        Err(Error::unavailable("sql-model-busy", format!("database {name} changes all the time")))
    }
}

pub(crate) fn unknown(name: &str) -> Error {
    Error::not_found("no-sql-database", format!("there is no sharded database {name}"))
}

impl Draft {
    pub(crate) fn job(&self, number: u64) -> Result<&Job> {
        let missing =
            || Error::not_found("no-sql-job", format!("there is no running job {number}"));
        self.jobs.get(&number).ok_or_else(missing)
    }

    /// A job, if it is still led at this epoch.
    pub(crate) fn led(&mut self, number: u64, epoch: u64) -> Result<&mut Job> {
        let taken = || {
            Error::precondition("sql-job-taken", format!("job {number} is led by another process"))
        };
        self.jobs.get_mut(&number).filter(|job| job.epoch == epoch).ok_or_else(taken)
    }

    pub(crate) fn mapping(&self, id: u64) -> Result<&MappingForm> {
        let missing = || Error::not_found("no-sql-mapping", format!("there is no mapping {id}"));
        self.mappings.get(&id).ok_or_else(missing)
    }
}

fn differences(before: &Draft, after: &Draft) -> Vec<RecordWrite> {
    let name = &after.model.name;
    let mut writes = vec![RecordWrite {
        kind: kinds::SQL_DATABASE,
        key: Bytes::from(name.clone()),
        expected: Expected::Version(before.version),
        value: Some(encode(&after.model)),
    }];
    let mut add = |kind, id: u64, value: Option<Bytes>| {
        let (key, expected) = (key(name, Some(id)), Expected::Anything);
        writes.push(RecordWrite { kind, key, expected, value });
    };
    for (id, mapping) in &after.mappings {
        if before.mappings.get(id) != Some(mapping) {
            add(kinds::SQL_MAPPING, *id, Some(encode(mapping)));
        }
    }
    for id in before.mappings.keys().filter(|id| !after.mappings.contains_key(id)) {
        add(kinds::SQL_MAPPING, *id, None);
    }
    for (number, job) in &after.jobs {
        if before.jobs.get(number) != Some(job) {
            add(kinds::SQL_JOB, *number, Some(encode(job)));
        }
    }
    for number in before.jobs.keys().filter(|number| !after.jobs.contains_key(number)) {
        add(kinds::SQL_JOB, *number, None);
    }
    for job in &after.finished {
        add(kinds::SQL_JOB_FINISHED, job.number, Some(encode(job)));
    }
    writes
}

/// `database 00 number (8)`: names have no zero byte.
fn key(name: &str, number: Option<u64>) -> Bytes {
    let mut key = [name.as_bytes(), &[0]].concat();
    key.extend(number.into_iter().flat_map(u64::to_be_bytes));
    key.into()
}

fn encode(form: &impl Serialize) -> Bytes {
    serde_json::to_vec(form).expect("forms are plain data, which JSON can say").into()
}

fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T> {
    let corrupt = |error| Error::corrupt("sql-model-corrupt", format!("a record of SQL: {error}"));
    serde_json::from_slice(bytes).map_err(corrupt)
}
