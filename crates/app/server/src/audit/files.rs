//! The files of the audit log: `current.jsonl` and rotated ones. The oldest is deleted.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::failure::{Failure, Result};
use crate::folder::make_folder;

/// A file that has grown to this size is followed by a new one.
const FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// The most files, the current one among them.
const FILES_MAX: usize = 4;
/// The longest line that is read; no line that is written is half as long.
const LINE_BYTES_MAX: u64 = 256 * 1024;

pub(super) struct Files {
    folder: PathBuf,
    current: File,
    bytes: u64,
    next: u64,
}

impl Files {
    pub(super) fn open(folder: &Path) -> Result<Self> {
        make_folder(folder)?;
        let (current, bytes) = open_current(folder).map_err(|error| cannot(&error))?;
        let mut files = Self { folder: folder.to_owned(), current, bytes, next: 1 };
        // The last number stands in the current file, or in the one before if that has just begun.
        let (newest, _) = files.newest_of(2, None, 1)?;
        files.next = newest.first().and_then(|line| line["number"].as_u64()).unwrap_or(0) + 1;
        Ok(files)
    }

    /// Writes a line, and has it on disk when this returns: the first one of a change, which gets a number by it, or the
    /// last one of the change with this number.
    pub(super) fn append(
        &mut self,
        number: Option<u64>,
        mut line: Map<String, Value>,
    ) -> Result<u64> {
        let number = number.unwrap_or(self.next);
        line.insert("number".to_owned(), json!(number));
        let text = format!("{}\n", Value::Object(line));
        self.write(text.as_bytes()).map_err(|error| cannot(&error))?;
        self.next = self.next.max(number + 1);
        Ok(number)
    }

    fn write(&mut self, text: &[u8]) -> io::Result<()> {
        if self.bytes + text.len() as u64 > FILE_BYTES_MAX {
            self.rotate()?;
        }
        let before = self.bytes;
        let written = self.current.write_all(text).and_then(|()| self.current.sync_data());
        match &written {
            Ok(()) => self.bytes += text.len() as u64,
            // Half a line would join the next one.
            Err(_) => self.current.set_len(before)?,
        }
        written
    }

    /// Every file becomes one older, and the oldest goes.
    fn rotate(&mut self) -> io::Result<()> {
        for age in (1..FILES_MAX).rev() {
            let younger = path(&self.folder, age - 1);
            match std::fs::rename(younger, path(&self.folder, age)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        (self.current, self.bytes) = open_current(&self.folder)?;
        File::open(&self.folder)?.sync_all()
    }

    /// The newest changes with numbers below `before`, the newest first, each by its last line; and whether there are older
    /// ones. All files are read: they are few and small.
    pub(super) fn newest(&self, before: Option<u64>, most: usize) -> Result<(Vec<Value>, bool)> {
        self.newest_of(FILES_MAX, before, most)
    }

    /// The same of the youngest files alone.
    fn newest_of(
        &self,
        files: usize,
        before: Option<u64>,
        most: usize,
    ) -> Result<(Vec<Value>, bool)> {
        let mut found: BTreeMap<u64, String> = BTreeMap::new();
        let mut more = false;
        for age in (0..files).rev() {
            let file = match File::open(path(&self.folder, age)) {
                Ok(file) => file,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(cannot(&error)),
            };
            let mut lines = BufReader::new(file);
            while let Some(line) = next_line(&mut lines).map_err(|error| cannot(&error))? {
                let Some(number) = number_of(&line) else { continue };
                if before.is_none_or(|before| number < before) {
                    found.insert(number, line);
                }
                if found.len() > most {
                    found.pop_first();
                    more = true;
                }
            }
        }
        let read = |line: &String| serde_json::from_str(line).ok();
        Ok((found.values().rev().filter_map(read).collect(), more))
    }
}

/// The number of a line. One that was torn by a crash has none.
fn number_of(line: &str) -> Option<u64> {
    let value: Value = serde_json::from_str(line).ok()?;
    value["number"].as_u64()
}

/// The next line, however broken; none at the end. Bytes that are no text become signs that stand for such.
fn next_line(lines: &mut impl BufRead) -> io::Result<Option<String>> {
    let mut line = Vec::new();
    let read = io::Read::take(&mut *lines, LINE_BYTES_MAX).read_until(b'\n', &mut line)?;
    Ok((read > 0).then(|| String::from_utf8_lossy(&line).into_owned()))
}

/// The file that is written now, and its size. What a crash has left of a last line stays on a line of its own.
fn open_current(folder: &Path) -> io::Result<(File, u64)> {
    let path = path(folder, 0);
    let mut file =
        OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(&path)?;
    let mut bytes = file.metadata()?.len();
    let is_torn = bytes > 0 && !ends_a_line(&mut file)?;
    if is_torn {
        file.write_all(b"\n")?;
        bytes += 1;
    }
    Ok((file, bytes))
}

fn ends_a_line(file: &mut File) -> io::Result<bool> {
    use std::io::{Read, Seek, SeekFrom};
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
}

/// The file that this many others are younger than.
fn path(folder: &Path, age: usize) -> PathBuf {
    match age {
        0 => folder.join("current.jsonl"),
        _ => folder.join(format!("older-{age}.jsonl")),
    }
}

fn cannot(error: &io::Error) -> Failure {
    failure(format!("the audit log cannot be used: {error}"))
}

pub(super) fn failure(message: String) -> Failure {
    Failure::new("audit-failed", message).hint(
        "nothing is changed that is not written down; see to the audit folder in the data folder",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> Map<String, Value> {
        Map::from_iter([("text".to_owned(), json!(text))])
    }

    #[test]
    fn full_files_are_followed_by_new_ones_and_the_oldest_is_given_up() {
        let folder = tempfile::tempdir().unwrap();
        let mut files = Files::open(folder.path()).unwrap();
        // As if each file held three lines.
        let written = 3 * FILES_MAX as u64 + 5;
        for n in 1..=written {
            if (n - 1) % 3 == 0 {
                files.bytes = FILE_BYTES_MAX;
            }
            assert_eq!(files.append(None, line(&n.to_string())).unwrap(), n);
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), FILES_MAX);
        let (all, more) = files.newest(None, 1_000).unwrap();
        let numbers: Vec<u64> = all.iter().map(|line| line["number"].as_u64().unwrap()).collect();
        let first = written - numbers.len() as u64 + 1;
        assert_eq!(numbers, (first..=written).rev().collect::<Vec<_>>());
        assert!(!more && first > 1 && first <= 9, "{first}");
        drop(files);
        let mut again = Files::open(folder.path()).unwrap();
        assert_eq!(again.append(None, line("")).unwrap(), written + 1);
    }

    #[test]
    fn a_line_torn_by_a_crash_costs_nothing_but_itself() {
        let folder = tempfile::tempdir().unwrap();
        let mut files = Files::open(folder.path()).unwrap();
        files.append(None, line("one")).unwrap();
        drop(files);
        let current = path(folder.path(), 0);
        let mut bytes = std::fs::read(&current).unwrap();
        bytes.extend_from_slice(b"{\"number\":2,\"text\":\"t\xc3");
        std::fs::write(&current, bytes).unwrap();
        let mut files = Files::open(folder.path()).unwrap();
        assert_eq!(files.append(None, line("two")).unwrap(), 2);
        let (all, _) = files.newest(None, 10).unwrap();
        assert_eq!(
            (all.len(), &all[0]["text"], &all[1]["text"]),
            (2, &json!("two"), &json!("one"))
        );
    }

    #[test]
    fn only_its_owner_may_read_it() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        Files::open(folder.path()).unwrap();
        let mode = std::fs::metadata(path(folder.path(), 0)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}
