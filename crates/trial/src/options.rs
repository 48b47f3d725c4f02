//! The command line of a trial: `--name value`, every one of them needed.

use std::path::PathBuf;
use std::str::FromStr;

use crate::Result;

pub struct Options {
    words: Vec<String>,
    /// The program under test.
    pub binary: PathBuf,
    /// Where it keeps its data and its log.
    pub folder: PathBuf,
}

impl Options {
    pub fn read() -> Result<Self> {
        let words = std::env::args().skip(1).collect();
        let mut options = Self { words, binary: PathBuf::new(), folder: PathBuf::new() };
        options.binary = options.value("--binary")?;
        options.folder = options.value("--folder")?;
        Ok(options)
    }

    pub fn value<T: FromStr>(&self, name: &str) -> Result<T> {
        let at = self.words.iter().position(|word| word == name);
        let value = at.and_then(|at| self.words.get(at + 1));
        let value = value.and_then(|value| value.parse().ok());
        value.ok_or(format!("{name} needs a value"))
    }
}
