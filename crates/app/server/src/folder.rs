//! The data folder: who may use it, what is in it, and how its small files are written.
//!
//! ```text
//! lazuli-data/
//!   format        the version of this layout; others are refused
//!   lazuli.lock   held by the one process that uses the folder
//!   admin-token   the token of the admin API          (only its owner may read it)
//!   admin.json    where the admin API of the running server is
//!   audit/        what the admin API was asked to change (only its owner may read it)
//!   tls/          the self-signed certificate and key (only its owner may read them)
//!   catalog/      the store of the catalog (`catalog.rebuilding/` while one is made again)
//!   shards/NAME/  the store of each shard
//!   blocks/       large values, as files beside the stores
//!   restoring/    backups that are being restored; emptied at every start
//! ```
//!
//! A node of a fleet has a folder too, with `format` (which says so), `lazuli.lock`, `admin-token`, `admin.json` and
//! `restoring/`. What it loses with it is made again.

use std::fs::{File, OpenOptions, Permissions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::failure::{Failure, Result};
use crate::system;

/// The version of the layout that this program writes and reads.
const FORMAT: &str = "lazuli data 1\n";
/// What stands there in the folder of a node of a fleet.
const NODE_FORMAT: &str = "lazuli node 1\n";
/// The largest of the small files that are read here.
const SMALL_FILE_BYTES_MAX: u64 = 1024 * 1024;

/// The data folder, in use by this process until dropped.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    _lock: File,
}

impl Folder {
    /// Opens the folder, or makes it.
    pub fn open(path: &Path) -> Result<Self> {
        make_folder(path)?;
        let folder = Self { path: path.to_owned(), _lock: lock(path)? };
        folder.check_format()?;
        system::close_to_others(path).map_err(|error| cannot("make private", path, &error))?;
        Ok(folder)
    }

    /// Opens the folder of a node of a fleet, or makes it. It holds nothing that is missed.
    pub fn open_for_node(path: &Path) -> Result<Self> {
        make_folder(path)?;
        let folder = Self { path: path.to_owned(), _lock: lock(path)? };
        let format = path.join("format");
        match read_small(&format)? {
            Some(text) if text == NODE_FORMAT => {}
            None => write_atomically(&format, NODE_FORMAT, 0o644)?,
            Some(_) => {
                let message = format!("{} holds data of a server that is alone", path.display());
                return Err(Failure::new("data-not-of-node", message)
                    .hint("give the node a folder of its own with --data; nothing is kept in it"));
            }
        }
        Ok(folder)
    }

    /// Opens the folder of a server that is alone, or was until its catalog began to move.
    pub(crate) fn open_to_leave(path: &Path) -> Result<Self> {
        match read_small(&path.join("format"))? {
            Some(text) if text == NODE_FORMAT => Self::open_for_node(path),
            _ => Self::open_existing(path),
        }
    }

    /// From now on this is the folder of a node.
    pub(crate) fn mark_as_left(&self) -> Result<()> {
        write_atomically(&self.path.join("format"), NODE_FORMAT, 0o644)
    }

    /// Opens a folder that must be there already.
    pub fn open_existing(path: &Path) -> Result<Self> {
        if path.join("format").is_file() {
            return Self::open(path);
        }
        Err(Failure::new("no-data", format!("{} holds no data of Lazuli", path.display()))
            .hint("name the data folder with --data"))
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn catalog(&self) -> PathBuf {
        self.path.join("catalog")
    }

    pub fn shards(&self) -> PathBuf {
        self.path.join("shards")
    }

    pub fn blocks(&self) -> PathBuf {
        self.path.join("blocks")
    }

    fn check_format(&self) -> Result<()> {
        let path = self.path.join("format");
        match read_small(&path)? {
            Some(text) if text == FORMAT => Ok(()),
            Some(text) if text == NODE_FORMAT => Err(Failure::new(
                "data-of-node",
                format!("{} is the folder of a node of a fleet", self.path.display()),
            )
            .hint("name the catalog of the fleet with --catalog, or another folder with --data")),
            Some(text) => Err(Failure::new(
                "unknown-format",
                format!(
                    "{} says `{}`, this version knows `{}`",
                    path.display(),
                    text.trim(),
                    FORMAT.trim()
                ),
            )
            .hint("use the version of Lazuli that wrote this data")),
            None => write_atomically(&path, FORMAT, 0o644),
        }
    }
}

/// Makes a folder that only its owner may look into, unless it exists.
pub(crate) fn make_folder(path: &Path) -> Result<()> {
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.map_err(|error| cannot("make", path, &error))
}

fn lock(path: &Path) -> Result<File> {
    let path = path.join("lazuli.lock");
    let opened = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
    let mut file = opened.map_err(|error| cannot("open", &path, &error))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let holder = holder(&mut file);
            let folder = path.parent().unwrap_or(&path).display();
            return Err(Failure::new("data-in-use", format!("{folder} is in use by {holder}"))
                .hint("stop that process, or use another folder with --data"));
        }
        Err(TryLockError::Error(error)) => return Err(cannot("lock", &path, &error)),
    }
    // The number is only there to be read by people: what counts is the lock.
    let written = file.set_len(0).and_then(|()| write!(file, "{}", std::process::id()));
    written.map_err(|error| cannot("write", &path, &error))?;
    Ok(file)
}

/// Whether a process uses the folder just now.
pub fn is_in_use(path: &Path) -> bool {
    let file = OpenOptions::new().read(true).open(path.join("lazuli.lock"));
    file.is_ok_and(|file| matches!(file.try_lock(), Err(TryLockError::WouldBlock)))
}

fn holder(file: &mut File) -> String {
    let mut text = String::new();
    match file.take(32).read_to_string(&mut text) {
        Ok(_) if !text.trim().is_empty() => format!("process {}", text.trim()),
        _ => "another process".to_owned(),
    }
}

/// The text of a small file; none if there is no such file.
pub fn read_small(path: &Path) -> Result<Option<String>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(cannot("read", path, &error)),
    };
    let mut text = String::new();
    let read = file.take(SMALL_FILE_BYTES_MAX).read_to_string(&mut text);
    read.map_err(|error| cannot("read", path, &error))?;
    Ok(Some(text))
}

/// Writes a file so that a reader finds all of the text or none, and a crash leaves the old or the new one.
pub fn write_atomically(path: &Path, text: &str, mode: u32) -> Result<()> {
    write_new(path, text, mode, true).map_err(|error| cannot("write", path, &error))
}

/// The same for what only holds while this process runs: a reader finds all of the text or none, and after a crash of the
/// machine it means nothing any more. So there is no fsync.
pub(crate) fn write_for_this_run(path: &Path, text: &str, mode: u32) -> Result<()> {
    write_new(path, text, mode, false).map_err(|error| cannot("write", path, &error))
}

fn write_new(path: &Path, text: &str, mode: u32, is_synced: bool) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let new = path.with_file_name(name);
    // A leftover of a crash may have other permissions, so it is not written into.
    match std::fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&new)?;
    // What the process does not give to others by itself, it gives here.
    file.set_permissions(Permissions::from_mode(mode))?;
    file.write_all(text.as_bytes())?;
    if !is_synced {
        return std::fs::rename(&new, path);
    }
    file.sync_all()?;
    std::fs::rename(&new, path)?;
    match path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        Some(folder) => File::open(folder)?.sync_all(),
        None => File::open(".")?.sync_all(),
    }
}

fn cannot(what: &str, path: &Path, error: &io::Error) -> Failure {
    Failure::new("file-error", format!("cannot {what} {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_in_use_is_refused_and_free_again_afterwards() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("data");
        let folder = Folder::open(&path).unwrap();
        assert!(is_in_use(&path) && !is_in_use(parent.path()));
        let refused = Folder::open(&path).unwrap_err();
        assert_eq!(refused.code(), "data-in-use");
        assert!(refused.to_string().contains(&format!("process {}", std::process::id())));
        drop(folder);
        assert!(!is_in_use(&path));
        Folder::open_existing(&path).unwrap();
    }

    #[test]
    fn an_unknown_format_and_a_foreign_folder_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Folder::open_existing(folder.path()).unwrap_err().code(), "no-data");
        std::fs::write(folder.path().join("format"), "lazuli data 2\n").unwrap();
        assert_eq!(Folder::open(folder.path()).unwrap_err().code(), "unknown-format");
    }

    #[test]
    fn the_folder_of_a_node_and_that_of_a_server_that_is_alone_are_not_mixed_up() {
        let parent = tempfile::tempdir().unwrap();
        let (node, alone) = (parent.path().join("node"), parent.path().join("alone"));
        drop(Folder::open_for_node(&node).unwrap());
        drop(Folder::open_for_node(&node).unwrap());
        assert_eq!(Folder::open(&node).unwrap_err().code(), "data-of-node");
        drop(Folder::open(&alone).unwrap());
        assert_eq!(Folder::open_for_node(&alone).unwrap_err().code(), "data-not-of-node");
    }

    #[test]
    fn files_are_replaced_as_a_whole_with_their_permissions() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        std::fs::write(&path, "old and readable").unwrap();
        write_atomically(&path, "new", 0o600).unwrap();
        assert_eq!(read_small(&path).unwrap().as_deref(), Some("new"));
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        assert_eq!(read_small(&folder.path().join("none")).unwrap(), None);
    }
}
