//! Small durable records for the engine: reference data, jobs of many steps, whatever needs one place and a version.
//!
//! They have a head of their own, so that a busy job does not make every router look for changes of maps.

use crate::MapReason;
use bytes::Bytes;
use lazuli_env::Id;
use lazuli_store::{Error, KeyRange, Kind, Result, Write, after_prefix};

use super::{CHANGE_TRIES_MAX, Catalog, View, keys, newest};
use crate::record::{decode, encode};

/// How many versions of records are remembered with the id of the write that made them, so that a process whose commit was
/// not answered can look up whether it happened.
const RECORD_LOG_VERSIONS_MAX: u64 = 256;

/// A record with the version that wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Versioned {
    pub key: Bytes,
    pub value: Bytes,
    /// Grows with every write of any record.
    pub version: u64,
}

/// What the writer believes to be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    Anything,
    Nothing,
    Version(u64),
}

/// One write of several that happen together.
#[derive(Clone, Debug)]
pub struct RecordWrite {
    /// Whose record it is: each user of records has a number of its own.
    pub kind: u8,
    pub key: Bytes,
    pub expected: Expected,
    /// None deletes.
    pub value: Option<Bytes>,
}

impl Catalog {
    /// Writes one record and answers its version.
    pub async fn put_record(
        &self,
        kind: u8,
        key: impl Into<Bytes>,
        value: impl Into<Bytes>,
        expected: Expected,
    ) -> Result<u64> {
        let write = RecordWrite { kind, key: key.into(), expected, value: Some(value.into()) };
        self.write_records(&[write]).await
    }

    /// Deletes one record. Deleting what is not there is fine where anything is expected.
    pub async fn delete_record(
        &self,
        kind: u8,
        key: impl Into<Bytes>,
        expected: Expected,
    ) -> Result<()> {
        let write = RecordWrite { kind, key: key.into(), expected, value: None };
        self.write_records(&[write]).await.map(|_| ())
    }

    pub async fn get_record(&self, kind: u8, key: &[u8]) -> Result<Option<Versioned>> {
        let row = View::of(&*self.one().await?).row(&keys::record(kind, key)).await?;
        let key = Bytes::copy_from_slice(key);
        Ok(row.map(|(version, value)| Versioned { key, value, version }))
    }

    /// The records of a kind whose keys are in the range, in order, at most `most`.
    pub async fn scan_records(
        &self,
        kind: u8,
        range: &KeyRange,
        most: usize,
    ) -> Result<Vec<Versioned>> {
        let whole = keys::record(kind, &[]);
        let end = match &range.end {
            Some(end) => Some(keys::record(kind, end)),
            None => after_prefix(&whole),
        };
        let stored = KeyRange::new(keys::record(kind, &range.start), end);
        let snapshot = self.snapshot().await?;
        let rows: Vec<(Bytes, (u64, Bytes))> = View::of(&*snapshot).rows(stored, most).await?;
        let strip = |key: Bytes| key.slice(whole.len()..);
        Ok(rows
            .into_iter()
            .map(|(key, (version, value))| Versioned { key: strip(key), value, version })
            .collect())
    }

    /// Makes all of the writes or none, and answers the version they have. A record that is not as expected is refused
    /// with `record-exists` or `record-changed`.
    pub async fn write_records(&self, writes: &[RecordWrite]) -> Result<u64> {
        let id = self.env.ids.next_id();
        let mut version = self.recording.lock().await;
        // The version of a commit whose outcome is unknown.
        let mut unknown = None;
        for _ in 0..CHANGE_TRIES_MAX {
            let head = keys::numbered(keys::RECORD_HEAD, *version);
            let txn = match self.store.begin(vec![head.clone()]).await {
                Err(error) if error.is_moved() => None,
                begun => Some(begun?),
            };
            // By now that commit is decided, as in `Catalog::change`.
            if let Some(made) = unknown.take()
                && self.recorded_by(made).await? == Some(id)
            {
                *version = made;
                return Ok(made);
            }
            let Some(txn) = txn else {
                *version = self.record_version().await?;
                continue;
            };
            let made = *version + 1;
            let mut batch = vec![
                Write::Delete(head),
                Write::Put(keys::numbered(keys::RECORD_HEAD, made), encode(&Some(id))),
                Write::Put(keys::numbered(keys::RECORD_LOG, made), encode(&id)),
            ];
            if let Some(old) = made.checked_sub(RECORD_LOG_VERSIONS_MAX) {
                batch.push(Write::Delete(keys::numbered(keys::RECORD_LOG, old)));
            }
            for write in writes {
                let key = keys::record(write.kind, &write.key);
                let row = View::of(&*txn).row::<(u64, Bytes)>(&key).await?;
                check(write, row.map(|(version, _)| version))?;
                batch.push(match &write.value {
                    Some(value) => Write::Put(key, encode(&(made, value.clone()))),
                    None => Write::Delete(key),
                });
            }
            match txn.commit(batch).await {
                Ok(()) => {
                    *version = made;
                    return Ok(made);
                }
                Err(error) if error.is_moved() => {}
                Err(error) if matches!(error.kind(), Kind::Unavailable { .. }) => {
                    unknown = Some(made);
                }
                Err(error) => return Err(error),
            }
            *version = self.record_version().await?;
        }
        let message = format!("others wrote records {CHANGE_TRIES_MAX} times meanwhile");
        Err(Error::precondition("catalog-changed", message))
    }

    pub(super) async fn record_version(&self) -> Result<u64> {
        newest(&*self.one().await?, keys::RECORD_HEAD).await
    }

    /// The write that made this version, if the log remembers it.
    async fn recorded_by(&self, version: u64) -> Result<Option<Id>> {
        let row = self.store.get(&keys::numbered(keys::RECORD_LOG, version)).await?;
        row.map(decode).transpose()
    }
}

fn check(write: &RecordWrite, found: Option<u64>) -> Result<()> {
    let name = || String::from_utf8_lossy(&write.key).into_owned();
    match (write.expected, found) {
        (Expected::Anything, _) | (Expected::Nothing, None) => Ok(()),
        (Expected::Version(expected), Some(found)) if expected == found => Ok(()),
        (Expected::Nothing, Some(_)) => {
            Err(Error::exists(MapReason::RecordExists, format!("the record {} exists", name())))
        }
        (Expected::Version(expected), found) => {
            let found = found.map_or("gone".into(), |found| format!("at version {found}"));
            let message = format!("the record {} is {found}, not at {expected}", name());
            Err(Error::precondition(MapReason::RecordChanged, message))
        }
    }
}
