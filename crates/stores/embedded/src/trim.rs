//! Freeing the disk under tables that were dropped, little by little.
//!
//! The engine deletes the file of a table when nobody reads it any more, and holds a lock meanwhile for which readers and
//! commits wait. For a large file that takes many milliseconds. So a table that is dropped gets a second name first: what
//! the engine deletes then is only a name, and the file is made shorter step by step by a thread for which nobody waits. It
//! never touches a file that is still the table of its name, nor one that is a table of another store (see `carry`).
//!
//! Nothing depends on it. What was not done when the store ended is done after the next start.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Result};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::behind::give_way;

/// By how much a file is made shorter at once.
const STEP_BYTES: u64 = 1024 * 1024;
/// How often it is looked whether the engine has let go of a table, and for how long. Whoever reads it keeps it.
const LOOK: Duration = Duration::from_millis(100);
const LOOKING_MAX: Duration = Duration::from_secs(600);
/// What is left to others after a step, at least.
const REST_LEAST: Duration = Duration::from_millis(1);

/// A table that is to be freed.
struct Kept {
    /// The name that the engine knows it by. While there is such a file, and it is this one, the table is in use.
    table: PathBuf,
    second: PathBuf,
    file: File,
}

/// Tables that are to be freed.
#[derive(Default)]
pub(crate) struct Trim {
    kept: Vec<Kept>,
}

impl Trim {
    /// Gives each table a second name in the folder. One for which that does not work is left to the engine.
    pub(crate) fn keep(folder: &Path, tables: &[Arc<PathBuf>]) -> Self {
        let keep = |table: &PathBuf| {
            let second = folder.join(table.file_name()?);
            // That of an earlier table with this name, which was not freed yet, is given up.
            let _ = fs::remove_file(&second);
            fs::hard_link(table, &second).ok()?;
            Kept::open(table.clone(), second)
        };
        if cfg!(not(unix)) || fs::create_dir_all(folder).is_err() {
            return Self::default();
        }
        Self { kept: tables.iter().filter_map(|table| keep(table)).collect() }
    }

    /// Those of a folder of tables that the last one who had the store open did not come to free.
    pub(crate) fn left_in(folder: &Path, tables: &Path) -> Self {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let kept = |entry: fs::DirEntry| Kept::open(tables.join(entry.file_name()), entry.path());
        Self { kept: entries.filter_map(kept).collect() }
    }

    /// Frees them, as soon as nobody else has them.
    pub(crate) fn start(self) {
        if self.kept.is_empty() {
            return;
        }
        // Without a thread they are left to the next start.
        let thread = std::thread::Builder::new().name("lazuli:trim".to_owned());
        let _ = thread.spawn(move || self.run());
    }

    fn run(mut self) {
        give_way();
        let began = Instant::now();
        while !self.kept.is_empty() {
            let let_go = |kept: &mut Kept| matches!(kept.is_in_use(), Ok(false));
            for kept in self.kept.extract_if(.., let_go) {
                // Whatever fails: the name goes, and with the last one the file.
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

    /// Whether the engine has not let go of the table yet.
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

    /// Whether it is a table of another store too, or in somebody's backup. Once it is not, nobody gives it a name again:
    /// only tables that are in use go to another store.
    #[cfg(unix)]
    fn has_other_names(&self) -> Result<bool> {
        use std::os::unix::fs::MetadataExt;
        Ok(self.file.metadata()?.nlink() > 1)
    }

    /// Elsewhere there is no way to tell, and no table gets a second name.
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
