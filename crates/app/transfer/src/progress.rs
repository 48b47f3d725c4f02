//! The progress file: how far an export or import is, in a file that is complete at any time.
//!
//! It is replaced every second while the work runs, so an interruption of any kind (Ctrl-C, a crash, a power cut) costs at
//! most the last second, which is then repeated.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use lazuli_console::{Failure, Result};
use serde_json::Value;

const SAVE_EVERY: Duration = Duration::from_secs(1);
/// The largest progress file that is read.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

pub(crate) struct Progress {
    /// None if nothing is kept.
    path: Option<PathBuf>,
    /// What the work is: its table, its file format and all that it must have in common with what it goes on with.
    work: Value,
    saved: Instant,
}

/// The file beside another one.
pub(crate) fn beside(file: &Path, ending: &str) -> PathBuf {
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(ending);
    file.with_file_name(name)
}

/// The progress files of one file that are looked at: so many imports of it may be interrupted at once.
const BESIDE_MAX: usize = 100;

impl Progress {
    /// The progress of this work, kept beside a file that other work may have been interrupted with too: where it was
    /// kept before, else where nothing is kept.
    pub(crate) fn of_file(file: &Path, work: Value) -> Self {
        let place = |number: usize| match number {
            1 => beside(file, ".progress"),
            _ => beside(file, &format!(".{number}.progress")),
        };
        let places: Vec<PathBuf> = (1..=BESIDE_MAX).map(place).collect();
        let is_ours = |path: &&PathBuf| kept_work(path).is_some_and(|kept| kept == work);
        let ours = places.iter().find(is_ours);
        let free = || places.iter().find(|path| !path.exists());
        let path = ours.or_else(free).or(places.first()).cloned();
        Self::new(path, work)
    }

    pub(crate) fn new(path: Option<PathBuf>, work: Value) -> Self {
        Self { path, work, saved: Instant::now() }
    }

    /// Whether something was interrupted.
    pub(crate) fn exists(&self) -> bool {
        self.path.as_ref().is_some_and(|path| path.exists())
    }

    /// How far it was; none if there is nothing to resume.
    pub(crate) fn read(&self) -> Result<Option<Value>> {
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
            return Err(wrong(was).hint("repeat the same command, or start again"));
        }
        Ok(Some(kept["at"].take()))
    }

    /// Whether it is time to save.
    pub(crate) fn is_due(&self) -> bool {
        self.path.is_some() && self.saved.elapsed() >= SAVE_EVERY
    }

    pub(crate) fn save(&mut self, at: Value) -> Result<()> {
        if let Some(path) = &self.path {
            let content = serde_json::json!({ "work": self.work, "at": at });
            replace(path, &format!("{content:#}\n")).map_err(|error| {
                Failure::failed(format!("cannot write {}: {error}", path.display()))
            })?;
        }
        self.saved = Instant::now();
        Ok(())
    }

    /// The work is done: there is nothing to resume.
    pub(crate) fn remove(&self) -> Result<()> {
        let Some(path) = self.path.as_ref().filter(|path| path.exists()) else { return Ok(()) };
        std::fs::remove_file(path)
            .map_err(|error| Failure::failed(format!("cannot remove {}: {error}", path.display())))
    }

    /// The hint of a failure that interrupts the work.
    pub(crate) fn hint(&self) -> Option<String> {
        self.exists().then(|| "continue with the same command and --resume".to_owned())
    }
}

/// Replaces a file: a reader finds the old text or the new one, also after a crash.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    File::open(folder)?.sync_all()
}

/// What a progress file says that it is the progress of.
fn kept_work(path: &Path) -> Option<Value> {
    if std::fs::metadata(path).ok()?.len() > FILE_BYTES_MAX {
        return None;
    }
    let mut kept: Value = serde_json::from_str(&std::fs::read_to_string(path).ok()?).ok()?;
    Some(kept["work"].take())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn one_file_may_be_on_its_way_into_several_tables() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.csv");
        let of = |table: &str| Progress::of_file(&file, json!({ "table": table }));
        for (nth, table) in ["a", "b", "c"].iter().enumerate() {
            assert!(!of(table).exists(), "{table} is not kept from beginning");
            of(table).save(json!({ "offset": nth })).unwrap();
        }
        of("a").remove().unwrap();
        assert!(of("b").exists() && of("c").exists() && !of("a").exists());
        assert_eq!(of("c").read().unwrap().unwrap()["offset"], 2);
        assert_eq!(of("b").read().unwrap().unwrap()["offset"], 1);
    }

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
