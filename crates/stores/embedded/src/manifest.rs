//! Checks the engine's small files before it opens them, because it treats some damage there as an unfinished job: it
//! deletes a keyspace without a manifest, and never verifies the checksum of a manifest.
//!
//! ```text
//! version                   "FJL" 3
//! keyspaces/<n>/current     manifest number (8, little-endian) | xxh3-128 of the manifest (16) | 0
//! keyspaces/<n>/v<number>   the manifest: which tables make up the keyspace
//! ```
//!
//! Keyspace 0 is the engine's own, the others are ours.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use lazuli_store::{Error, Result};
use xxhash_rust::xxh3::xxh3_128;

use crate::keyspaces::{DATA, OWN};
use crate::layout::sync_folder;

const VERSION: &[u8] = b"FJL\x03";
const CURRENT_BYTES: usize = 25;

/// Fails unless the engine's files are complete.
pub(crate) fn check(store: &Path) -> Result<()> {
    let version = store.join("version");
    if read(&version)? != VERSION {
        return Err(damaged(&version, "this is not the version of the engine that we use"));
    }
    for keyspace in [0, DATA.1, OWN.1] {
        check_keyspace(&store.join("keyspaces").join(keyspace.to_string()))?;
    }
    Ok(())
}

/// Rewrites the files that name the current manifest of each keyspace. After a failed fsync the page cache may have
/// bytes that the disk does not have, and another fsync would not write them.
pub(crate) fn settle(store: &Path) -> Result<()> {
    for keyspace in [0, DATA.1, OWN.1] {
        let folder = store.join("keyspaces").join(keyspace.to_string());
        let current = folder.join("current");
        let bytes = read(&current)?;
        let io = |error: std::io::Error| crate::error::from_io(current.display(), &error);
        replace(&folder, &current, &bytes).map_err(io)?;
    }
    Ok(())
}

fn replace(folder: &Path, path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let new = folder.join("lazuli.current");
    let mut file = File::create(&new)?;
    file.write_all(bytes).and_then(|()| file.sync_all())?;
    fs::rename(&new, path)?;
    sync_folder(folder)
}

fn check_keyspace(folder: &Path) -> Result<()> {
    let current = folder.join("current");
    let bytes = read(&current)?;
    let Ok(bytes) = <[u8; CURRENT_BYTES]>::try_from(bytes) else {
        return Err(damaged(&current, "its length is wrong"));
    };
    let number = little_endian(&bytes[..8]);
    let manifest = folder.join(format!("v{number}"));
    if xxh3_128(&read(&manifest)?) != little_endian(&bytes[8..24]) || bytes[24] != 0 {
        return Err(damaged(
            &manifest,
            &format!("it does not match its sum in {}", current.display()),
        ));
    }
    Ok(())
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => damaged(path, "it is missing"),
        _ => crate::error::from_io(path.display(), &error),
    })
}

fn damaged(path: &Path, what: &str) -> Error {
    Error::corrupt("manifest-damaged", format!("{} is damaged: {what}", path.display()))
}

fn little_endian(bytes: &[u8]) -> u128 {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u128::from(*byte))
}
