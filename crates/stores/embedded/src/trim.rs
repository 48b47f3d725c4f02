//! Frees the disk space of dropped tables step by step.
//!
//! The engine deletes the file of a table when it is no longer read, under a lock for which readers and commits
//! wait. For a large file that takes many milliseconds. So a dropped table first gets a second hard link: the engine
//! then only deletes a name, and a background thread truncates the file step by step. It never touches a file that is
//! still the table of its name, nor one that is a table of another store (see `carry`).
//!
//! The store works without it. The rest is freed after the next start.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Result};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::behind::give_way;

/// By how much a file is truncated at once.
const STEP_BYTES: u64 = 1024 * 1024;
/// How often, and for how long, it checks whether the engine has deleted a table. Readers keep it.
const LOOK: Duration = Duration::from_millis(100);
const LOOKING_MAX: Duration = Duration::from_secs(600);
/// The least pause after a step.
const REST_LEAST: Duration = Duration::from_millis(1);

/// A table to free.
struct Kept {
    /// The engine's name of it. While that file exists, and is this one, the table is in use.
    table: PathBuf,
    second: PathBuf,
    file: File,
}

/// Tables to free.
#[derive(Default)]
pub(crate) struct Trim {
    kept: Vec<Kept>,
}

impl Trim {
    /// Gives each table a hard link in the folder. If that fails the table is left to the engine.
    pub(crate) fn keep(folder: &Path, tables: &[Arc<PathBuf>]) -> Self {
        let keep = |table: &PathBuf| {
            let second = folder.join(table.file_name()?);
            // The link of an earlier table with this name, which was not freed yet, is removed.
            let _ = fs::remove_file(&second);
            fs::hard_link(table, &second).ok()?;
            Kept::open(table.clone(), second)
        };
        if cfg!(not(unix)) || fs::create_dir_all(folder).is_err() {
            return Self::default();
        }
        Self { kept: tables.iter().filter_map(|table| keep(table)).collect() }
    }

    /// Tables that an earlier run has left in the folder.
    pub(crate) fn left_in(folder: &Path, tables: &Path) -> Self {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let kept = |entry: fs::DirEntry| Kept::open(tables.join(entry.file_name()), entry.path());
        Self { kept: entries.filter_map(kept).collect() }
    }

    /// Frees them, once nothing else uses them.
    pub(crate) fn start(self) {
        if self.kept.is_empty() {
            return;
        }
        // If no thread can be started they are left to the next start.
        let thread = std::thread::Builder::new().name("lazuli:trim".to_owned());
        let _ = thread.spawn(move || self.run());
    }

    fn run(mut self) {
        give_way();
        let began = Instant::now();
        while !self.kept.is_empty() {
            let let_go = |kept: &mut Kept| matches!(kept.is_in_use(), Ok(false));
            for kept in self.kept.extract_if(.., let_go) {
                // After any failure the link is removed, and with the last link the file.
                if matches!(kept.has_other_names(), Ok(false)) {
                    let _ = make_empty(&kept.file);
                }
                let _ = fs::remove_file(kept.second);
            }
            if began.elapsed() > LOOKING_MAX {
                // The engine frees them when they are no longer read.
                self.kept.drain(..).for_each(|kept| drop(fs::remove_file(kept.second)));
            }
            std::thread::sleep(LOOK);
        }
    }
}

impl Kept {
    fn open(table: PathBuf, second: PathBuf) -> Option<Self> {
        let file = OpenOptions::new().write(true).open(&second).ok()?;
        Some(Self { table, second, file })
    }

    /// Whether the engine still uses the table.
    #[cfg(unix)]
    fn is_in_use(&self) -> Result<bool> {
        use std::os::unix::fs::MetadataExt;
        let file = self.file.metadata()?;
        match fs::symlink_metadata(&self.table) {
            Ok(table) => Ok((table.dev(), table.ino()) == (file.dev(), file.ino())),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Whether it is also a table of another store, or in a backup. Once it is not, it gets no new link: only tables
    /// in use are adopted.
    #[cfg(unix)]
    fn has_other_names(&self) -> Result<bool> {
        use std::os::unix::fs::MetadataExt;
        Ok(self.file.metadata()?.nlink() > 1)
    }

    /// Other systems cannot tell, and no table gets a second link.
    #[cfg(not(unix))]
    fn is_in_use(&self) -> Result<bool> {
        Ok(true)
    }

    #[cfg(not(unix))]
    fn has_other_names(&self) -> Result<bool> {
        Ok(true)
    }
}

fn make_empty(file: &File) -> Result<()> {
    let mut left = file.metadata()?.len();
    while left > 0 {
        let began = Instant::now();
        left = left.saturating_sub(STEP_BYTES);
        file.set_len(left)?;
        std::thread::sleep(began.elapsed().max(REST_LEAST));
    }
    Ok(())
}
