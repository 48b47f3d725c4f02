//! The directory of a store: its lock, its format, and its atomic creation.
//!
//! ```text
//! <path>/lock            held while the store is open; says by whom
//! <path>/reserve         space set aside, given up when the disk is full, see `room`
//! <path>/probe           written to see whether the disk takes writes, and removed at once
//! <path>/store/          the engine's own directory, and in it files of ours:
//!        store/lazuli.format     which format, and the id of the store
//!        store/lazuli.answered   see `marker`
//!        store/lazuli.torn       what was last cut off a journal, see `journal`
//!        store/lazuli.dropped/   tables of which only the disk is to be freed, see `trim`
//! <path>/store.new/      a store that is being created; never opened, replaced by the next attempt
//! ```
//!
//! `store/` appears by one rename once everything in it is on disk, so a missing file in it is damage.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::hash::{BuildHasher, Hasher};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use lazuli_store::{Error, Result, StoreReason};
use xxhash_rust::xxh3::xxh3_64;

use crate::error::from_io;
use crate::keyspaces::DATA;
use crate::marker::StoreId;

/// The format that this code writes, and the only one that it reads.
pub const FORMAT: u32 = 2;

const FORMAT_TITLE: &str = "lazuli embedded store";

pub(crate) struct Layout {
    pub(crate) root: PathBuf,
}

impl Layout {
    pub(crate) fn new(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.root.join("store")
    }

    pub(crate) fn unfinished(&self) -> PathBuf {
        self.root.join("store.new")
    }

    pub(crate) fn reserve(&self) -> PathBuf {
        self.root.join("reserve")
    }

    pub(crate) fn answered(&self) -> PathBuf {
        self.store().join("lazuli.answered")
    }

    pub(crate) fn torn(&self) -> PathBuf {
        self.store().join("lazuli.torn")
    }

    /// Relative to the given engine directory.
    pub(crate) fn dropped_in(folder: &Path) -> PathBuf {
        folder.join("lazuli.dropped")
    }

    /// The tables of `data`, relative to the engine's directory.
    pub(crate) fn tables_in(folder: &Path) -> PathBuf {
        folder.join(format!("keyspaces/{}/tables", DATA.1))
    }

    pub(crate) fn format_in(folder: &Path) -> PathBuf {
        folder.join("lazuli.format")
    }

    /// Locks the store for this process. The lock is held as long as the returned file.
    pub(crate) fn lock(&self) -> Result<File> {
        let path = self.root.join("lock");
        let io = |error: &std::io::Error| from_io(path.display(), error);
        fs::create_dir_all(&self.root).map_err(|error| io(&error))?;
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(|error| io(&error))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(self.locked(&mut file)),
            Err(TryLockError::Error(error)) => return Err(io(&error)),
        }
        let owner = format!("{}\n", std::process::id());
        let written = file.set_len(0).and_then(|()| file.write_all(owner.as_bytes()));
        written.map_err(|error| io(&error))?;
        Ok(file)
    }

    fn locked(&self, file: &mut File) -> Error {
        let mut owner = String::new();
        // The owner's id is optional: the refusal works without it.
        let _ = file.take(20).read_to_string(&mut owner);
        let owner = match owner.trim() {
            "" => "another process".to_owned(),
            id => format!("process {id}"),
        };
        let path = self.root.display();
        Error::unavailable(
            StoreReason::Locked,
            format!("{path} is in use by {owner}: stop it, or choose another directory"),
        )
    }

    /// The id of the existing store, or none if there is no store yet.
    pub(crate) fn identify(&self) -> Result<Option<StoreId>> {
        let folder = self.store();
        let exists = folder.try_exists().map_err(|error| from_io(folder.display(), &error))?;
        if !exists {
            return Ok(None);
        }
        let path = Self::format_in(&folder);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let message = format!("{} is missing: this is not a Lazuli store", path.display());
                return Err(Error::corrupt("format-unknown", message));
            }
            Err(error) => return Err(from_io(path.display(), &error)),
        };
        parse_format(&text).map_err(|error| error.context(path.display())).map(Some)
    }

    /// Renames the unfinished folder, which `fill` has completed, to the final one.
    pub(crate) fn create(&self, fill: impl FnOnce(&Path) -> Result<()>) -> Result<StoreId> {
        let folder = self.unfinished();
        let io = |error: std::io::Error| from_io(folder.display(), &error);
        if folder.try_exists().map_err(io)? {
            fs::remove_dir_all(&folder).map_err(io)?;
        }
        fs::create_dir(&folder).map_err(io)?;
        fill(&folder)?;
        let id = new_id();
        write_synced(&Self::format_in(&folder), format_text(&id).as_bytes()).map_err(io)?;
        sync_folder(&folder).map_err(io)?;
        fs::rename(&folder, self.store()).map_err(io)?;
        sync_folder(&self.root).map_err(io)?;
        Ok(id)
    }
}

fn write_synced(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut file = File::create_new(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

pub(crate) fn sync_folder(path: &Path) -> std::io::Result<()> {
    if cfg!(windows) { Ok(()) } else { File::open(path)?.sync_all() }
}

/// Sixteen random bytes. Not a secret: they only have to differ between stores.
fn new_id() -> StoreId {
    let mut id = StoreId::default();
    for half in id.chunks_mut(8) {
        let mut hasher = std::collections::hash_map::RandomState::new().build_hasher();
        hasher.write_u32(std::process::id());
        half.copy_from_slice(&hasher.finish().to_be_bytes());
    }
    id
}

fn format_text(id: &StoreId) -> String {
    let id: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
    let body = format!("{FORMAT_TITLE}\nformat {FORMAT}\nid {id}\n");
    let sum = xxh3_64(body.as_bytes());
    format!("{body}sum {sum:016x}\n")
}

fn parse_format(text: &str) -> Result<StoreId> {
    let unknown = |what: &str| Error::corrupt("format-unknown", what);
    let mut lines = text.lines();
    if lines.next() != Some(FORMAT_TITLE) {
        return Err(unknown("the first line is not that of a store"));
    }
    let format = lines.next().and_then(|line| line.strip_prefix("format "));
    match format.and_then(|format| format.parse::<u32>().ok()) {
        Some(FORMAT) => {}
        Some(other) => {
            let newer = if other > FORMAT { "a newer" } else { "an older" };
            let message = format!(
                "format {other} is {newer} one than {FORMAT}: use the Lazuli that wrote it"
            );
            return Err(Error::invalid("format-unknown", message));
        }
        None => return Err(unknown("it names no format")),
    }
    let id = lines.next().and_then(|line| line.strip_prefix("id ")).and_then(parse_id);
    let id = id.ok_or_else(|| unknown("it names no id"))?;
    if text != format_text(&id) {
        return Err(unknown("its sum does not match: the file is damaged"));
    }
    Ok(id)
}

fn parse_id(text: &str) -> Option<StoreId> {
    if text.len() != 32 || !text.is_ascii() {
        return None;
    }
    let mut id = StoreId::default();
    for (at, byte) in id.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).ok()?;
    }
    Some(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_file_survives_the_round_trip_and_no_flipped_byte() {
        let id = new_id();
        let text = format_text(&id);
        assert_eq!(parse_format(&text).unwrap(), id);
        for at in 0..text.len() {
            let mut bytes = text.clone().into_bytes();
            bytes[at] ^= 1;
            let flipped = String::from_utf8(bytes).unwrap();
            assert_eq!(parse_format(&flipped).unwrap_err().code(), "format-unknown", "{at}");
        }
    }

    #[test]
    fn other_formats_are_refused() {
        for (other, age) in [(FORMAT - 1, "an older"), (FORMAT + 1, "a newer")] {
            let ours = format!("format {FORMAT}");
            let text = format_text(&new_id()).replace(&ours, &format!("format {other}"));
            let refused = parse_format(&text).unwrap_err();
            assert_eq!(refused.code(), "format-unknown");
            assert!(
                refused.message().contains(&format!("format {other} is {age} one")),
                "{refused}"
            );
        }
    }

    #[test]
    fn ids_differ() {
        assert_ne!(new_id(), new_id());
    }
}
