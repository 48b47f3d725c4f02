//! Notes of work that a data model has still to do in the background: records of the catalog, so that any process finds them,
//! also after a restart. A note is replaced or deleted only as it was read, so that nobody takes away what another process
//! has noted meanwhile.

use bytes::Bytes;
use lazuli_shardmap::MapReason;
use lazuli_shardmap::catalog::{Expected, kinds};
use lazuli_store::{KeyRange, Result};

use crate::engine::Engine;

/// What was noted under a name.
#[derive(Clone, Debug)]
pub struct Note {
    pub name: String,
    pub value: Bytes,
    /// The version of the record that it was read from.
    version: u64,
}

impl Engine {
    /// The notes whose names begin with a prefix, by name. They are written with [`Engine::set_service`].
    pub async fn notes(&self, prefix: &str, most: usize) -> Result<Vec<Note>> {
        let range = KeyRange::prefix(Bytes::copy_from_slice(prefix.as_bytes()));
        let catalog = self.manager.catalog();
        let records = catalog.scan_records(kinds::SERVICE, &range, most).await?;
        let noted = records.into_iter().map(|record| Note {
            name: String::from_utf8_lossy(&record.key).into_owned(),
            value: record.value,
            version: record.version,
        });
        Ok(noted.collect())
    }

    /// What fronts and shapes keep about services whose names begin with a prefix, by name.
    pub async fn services(&self, prefix: &str, most: usize) -> Result<Vec<(String, Bytes)>> {
        let notes = self.notes(prefix, most).await?;
        Ok(notes.into_iter().map(|note| (note.name, note.value)).collect())
    }

    /// Replaces what a note says, unless it has changed since it was read. Says whether it has replaced it.
    pub async fn replace_note(&self, note: &mut Note, value: Bytes) -> Result<bool> {
        let (catalog, key) = (self.manager.catalog(), note.name.clone().into_bytes());
        let expected = Expected::Version(note.version);
        match catalog.put_record(kinds::SERVICE, key, value.clone(), expected).await {
            Err(error) if error.is(MapReason::RecordChanged) => Ok(false),
            written => {
                (note.value, note.version) = (value, written?);
                Ok(true)
            }
        }
    }

    /// Deletes a note, unless it has changed since it was read.
    pub async fn delete_note(&self, note: &Note) -> Result<()> {
        let (catalog, key) = (self.manager.catalog(), note.name.clone().into_bytes());
        let expected = Expected::Version(note.version);
        match catalog.delete_record(kinds::SERVICE, key, expected).await {
            Err(error) if error.is(MapReason::RecordChanged) => Ok(()),
            deleted => deleted,
        }
    }
}
