//! Freeing the disk under tables that were dropped, little by little.
//!
//! The engine deletes the file of a table when nobody reads it any more, and holds a lock meanwhile for which readers and
//! commits wait. For a large file that takes many milliseconds. So a table that is dropped gets a second name first: what
//! the engine deletes then is only a name, and the file is made shorter step by step by a thread for which nobody waits.
//!
//! Nothing depends on it. What was not done when the store ended is done after the next start.

use std::fs::{self, File, OpenOptions};
use std::io::Result;
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

/// Files that are to be freed.
#[derive(Default)]
pub(crate) struct Trim {
    files: Vec<(PathBuf, File)>,
}

impl Trim {
    /// Gives each table a second name in the folder. One for which that does not work is left to the engine.
    pub(crate) fn keep(folder: &Path, tables: &[Arc<PathBuf>]) -> Self {
        let keep = |table: &Path| {
            let path = folder.join(table.file_name()?);
            // One of an earlier table of this name, which was not freed yet, goes at once.
            let _ = fs::remove_file(&path);
            fs::hard_link(table, &path).ok()?;
            open(path)
        };
        if cfg!(not(unix)) || fs::create_dir_all(folder).is_err() {
            return Self::default();
        }
        Self { files: tables.iter().filter_map(|table| keep(table)).collect() }
    }

    /// Those that the last one who had the store open did not come to free.
    pub(crate) fn left_in(folder: &Path) -> Self {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        Self { files: entries.filter_map(|entry| open(entry.path())).collect() }
    }

    /// Frees them, one after another, as soon as they have no other name.
    pub(crate) fn start(self) {
        if self.files.is_empty() {
            return;
        }
        // Without a thread they are left to the next start.
        let thread = std::thread::Builder::new().name("lazuli:trim".to_owned());
        let _ = thread.spawn(move || self.run());
    }

    fn run(mut self) {
        give_way();
        let began = Instant::now();
        while !self.files.is_empty() {
            let is_free = |(_, file): &mut (_, File)| matches!(has_other_name(file), Ok(false));
            for (path, file) in self.files.extract_if(.., is_free) {
                // Whatever fails: the name goes, and with it the file.
                let _ = make_empty(&file);
                let _ = fs::remove_file(path);
            }
            if began.elapsed() > LOOKING_MAX {
                // The engine frees it when it is no longer read.
                self.files.drain(..).for_each(|(path, _)| drop(fs::remove_file(path)));
            }
            std::thread::sleep(LOOK);
        }
    }
}

fn open(path: PathBuf) -> Option<(PathBuf, File)> {
    let file = OpenOptions::new().write(true).open(&path).ok()?;
    Some((path, file))
}

#[cfg(unix)]
fn has_other_name(file: &File) -> Result<bool> {
    Ok(std::os::unix::fs::MetadataExt::nlink(&file.metadata()?) > 1)
}

/// Elsewhere there is no way to tell, and no table gets a second one.
#[cfg(not(unix))]
fn has_other_name(_: &File) -> Result<bool> {
    Ok(false)
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
