//! The progress file: how far an interrupted export or import was, in a file that is whole at any time.
//!
//! It is written anew every second while the work goes on, so whatever ends the program (Ctrl-C, a crash, a power cut)
//! costs at most the last second, which is then done again.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use lazuli_server::folder::write_atomically;
use serde_json::Value;

use crate::failure::{Failure, Result};

const SAVE_EVERY: Duration = Duration::from_secs(1);
/// The largest progress file that is read.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

pub(super) struct Progress {
    /// None if nothing is kept.
    path: Option<PathBuf>,
    /// What the work is: its table, its file format and all that it must have in common with what it goes on with.
    work: Value,
    saved: Instant,
}

/// The file beside another one.
pub(super) fn beside(file: &Path, ending: &str) -> PathBuf {
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(ending);
    file.with_file_name(name)
}

impl Progress {
    pub(super) fn new(path: Option<PathBuf>, work: Value) -> Self {
        Self { path, work, saved: Instant::now() }
    }

    /// Whether something was interrupted.
    pub(super) fn exists(&self) -> bool {
        self.path.as_ref().is_some_and(|path| path.exists())
    }

    /// How far it was; none if there is nothing to go on with.
    pub(super) fn read(&self) -> Result<Option<Value>> {
        let Some(path) = self.path.as_ref().filter(|path| path.exists()) else { return Ok(None) };
        let wrong = |what: String| Failure::failed(format!("{}: {what}", path.display()));
        let length = std::fs::metadata(path).map_err(|error| wrong(error.to_string()))?.len();
        if length > FILE_BYTES_MAX {
            return Err(wrong("this is no progress file".to_owned()));
        }
        let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
        let mut kept: Value = serde_json::from_str(&text).unwrap_or(Value::Null);
        if kept["work"] != self.work {
            let was = format!("it is the progress of something else: {}", kept["work"]);
            return Err(wrong(was).hint("ask for the same again, or begin anew"));
        }
        Ok(Some(kept["at"].take()))
    }

    /// Whether it is time to save.
    pub(super) fn is_due(&self) -> bool {
        self.path.is_some() && self.saved.elapsed() >= SAVE_EVERY
    }

    pub(super) fn save(&mut self, at: Value) -> Result<()> {
        if let Some(path) = &self.path {
            let content = serde_json::json!({ "work": self.work, "at": at });
            write_atomically(path, &format!("{content:#}\n"), 0o600)?;
        }
        self.saved = Instant::now();
        Ok(())
    }

    /// There is nothing to go on with any more.
    pub(super) fn remove(&self) -> Result<()> {
        let Some(path) = self.path.as_ref().filter(|path| path.exists()) else { return Ok(()) };
        std::fs::remove_file(path)
            .map_err(|error| Failure::failed(format!("cannot remove {}: {error}", path.display())))
    }

    /// What to tell somebody whose work was interrupted here.
    pub(super) fn hint(&self) -> Option<String> {
        self.exists().then(|| "go on with the same command and --resume".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_the_same_work_goes_on() {
        let folder = tempfile::tempdir().unwrap();
        let path = beside(&folder.path().join("a.csv"), ".progress");
        assert_eq!(path.file_name().unwrap(), "a.csv.progress");
        let of = |table: &str| Progress::new(Some(path.clone()), json!({ "table": table }));
        assert!(of("a").read().unwrap().is_none());
        of("a").save(json!({ "offset": 7 })).unwrap();
        assert_eq!(of("a").read().unwrap().unwrap()["offset"], 7);
        assert!(of("b").read().is_err());
        std::fs::write(&path, "{").unwrap();
        assert!(of("a").read().is_err());
        of("a").remove().unwrap();
        assert!(!of("a").exists());
        let nowhere = Progress::new(None, json!({}));
        assert!(!nowhere.is_due() && nowhere.read().unwrap().is_none());
    }
}
