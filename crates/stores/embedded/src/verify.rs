//! Reads everything on disk and reports damage. For `lazuli fsck`.
//!
//! Reading finds most damage, because every block has a checksum. This finds the rest: a table that was replaced
//! by another valid one, and damage in parts that are not read.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use fjall::AbstractTree;
use lazuli_store::{KeyRange, Result};
use xxhash_rust::xxh3::Xxh3;

use crate::error::from_io;
use crate::keyspaces::Keyspaces;
use crate::manifest;
use crate::reader::Open;

const CHUNK_BYTES: usize = 1024 * 1024;
const MANIFEST_TRIES_MAX: usize = 5;

/// What was read, and the damage found.
#[derive(Clone, Debug, Default)]
pub struct Verification {
    pub tables: usize,
    pub table_bytes: u64,
    pub items: u64,
    pub damages: Vec<Damage>,
}

/// One damaged part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    pub file: PathBuf,
    pub what: String,
}

pub(crate) fn verify(store: &Path, keyspaces: &Keyspaces, view: &Open<'_>) -> Result<Verification> {
    let mut found = Verification::default();
    // A version keeps its tables on disk while we read them, also during compactions.
    let versions = keyspaces.all().map(|(keyspace, _)| keyspace.tree.current_version());
    for table in versions.iter().flat_map(|version| version.iter_tables()) {
        let (sum, bytes) = sum_of(&table.path)?;
        found.tables += 1;
        found.table_bytes += bytes;
        if sum != table.checksum().into_u128() {
            let what = "the table does not match its sum in the manifest".to_owned();
            found.damages.push(Damage { file: table.path.to_path_buf(), what });
        }
    }
    let mut report = |what: String| found.damages.push(Damage { file: store.to_owned(), what });
    match view.measure(&KeyRange::all(), u64::MAX) {
        Ok(measure) => found.items = measure.items,
        Err(error) => report(error.to_string()),
    }
    if let Err(error) = check_manifests(store) {
        report(error.to_string());
    }
    Ok(found)
}

/// A manifest may be replaced between the two reads of a check, but hardly every time.
fn check_manifests(store: &Path) -> Result<()> {
    let mut result = Ok(());
    for _ in 0..MANIFEST_TRIES_MAX {
        result = manifest::check(store);
        if result.is_ok() {
            break;
        }
    }
    result
}

fn sum_of(path: &Path) -> Result<(u128, u64)> {
    let io = |error: std::io::Error| from_io(path.display(), &error);
    let mut file = File::open(path).map_err(io)?;
    let mut hasher = Xxh3::new();
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut bytes = 0;
    loop {
        match file.read(&mut chunk).map_err(io)? {
            0 => return Ok((hasher.digest128(), bytes)),
            read => {
                hasher.update(&chunk[..read]);
                bytes += read as u64;
            }
        }
    }
}
