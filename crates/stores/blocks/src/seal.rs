//! The seal of the folder: the start that used it last, and a number that grows while files are written. The catalog
//! records both too, and detects an older copy of the folder by them.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use lazuli_store::crc64::crc64;

use crate::layout::{Layout, sync_folder};

const NAME: &str = "lazuli.blocks";
const TITLE: &str = "lazuli blocks 1";

/// The content of the file `lazuli.blocks`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seal {
    /// The number and the token of the last start that used the folder.
    pub start: u64,
    pub token: [u8; 16],
    /// Grows while files are written, every few seconds.
    pub mark: u64,
}

/// The state of a folder of block files before it is opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Look {
    /// None if there is no readable seal, or no folder.
    pub seal: Option<Seal>,
    /// The highest existing generation; 0 if there is none.
    pub last_generation: u64,
}

impl Look {
    pub(crate) fn at(root: &Path) -> io::Result<Self> {
        if !root.is_dir() {
            return Ok(Self::default());
        }
        let seal = match fs::read_to_string(root.join(NAME)) {
            Ok(text) => parse(&text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) if error.kind() == io::ErrorKind::InvalidData => None,
            Err(error) => return Err(error),
        };
        let generations = Layout::open(root)?.generations()?;
        Ok(Self { seal, last_generation: generations.last().copied().unwrap_or(0) })
    }
}

/// Replaces the seal atomically; it is on disk when this returns.
pub(crate) fn write(root: &Path, seal: &Seal) -> io::Result<()> {
    let new = root.join(format!("{NAME}.new"));
    let mut file = File::create(&new)?;
    file.write_all(format(seal).as_bytes())?;
    file.sync_all()?;
    fs::rename(&new, root.join(NAME))?;
    sync_folder(root)
}

fn format(seal: &Seal) -> String {
    let token: String = seal.token.iter().map(|byte| format!("{byte:02x}")).collect();
    let Seal { start, mark, .. } = seal;
    let body = format!("{TITLE}\nstart {start}\ntoken {token}\nmark {mark}\n");
    let sum = crc64(body.as_bytes());
    format!("{body}sum {sum:016x}\n")
}

fn parse(text: &str) -> Option<Seal> {
    let mut lines = text.lines();
    if lines.next() != Some(TITLE) {
        return None;
    }
    let mut field = |name: &str| lines.next()?.strip_prefix(name)?.strip_prefix(' ');
    let start = field("start")?.parse().ok()?;
    let token = u128::from_str_radix(field("token")?, 16).ok()?.to_be_bytes();
    let mark = field("mark")?.parse().ok()?;
    let seal = Seal { start, token, mark };
    // Any change makes the text invalid.
    (format(&seal) == text).then_some(seal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seal_survives_its_file_and_no_change_of_it() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(Look::at(&root.path().join("none")).unwrap(), Look::default());
        assert_eq!(Look::at(root.path()).unwrap(), Look::default());
        let seal = Seal { start: 7, token: [3; 16], mark: 1 << 40 };
        write(root.path(), &Seal { mark: 1, ..seal }).unwrap();
        write(root.path(), &seal).unwrap();
        assert_eq!(Look::at(root.path()).unwrap().seal, Some(seal));
        let text = format(&seal);
        for at in 0..text.len() {
            let mut bytes = text.clone().into_bytes();
            bytes[at] ^= 1;
            fs::write(root.path().join(NAME), bytes).unwrap();
            assert_eq!(Look::at(root.path()).unwrap().seal, None, "{at}");
        }
    }
}
