//! Layout of block files: folders with a bounded number of files, one for each generation; numbers are never reused.
//!
//! ```text
//! <root>/<generation>/<number>        a file; both numbers as sixteen hexadecimal digits
//! <root>/<generation>/<number>.part   a file in the making; nothing can name it
//! <root>/<generation>/swept           every file here is named by its owner, or was when somebody looked
//! ```
//!
//! Each start begins a generation of its own with its first file, so leftovers of earlier processes are in folders
//! that are no longer written. The highest one stays even when it is empty: it records the numbers used.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use lazuli_store::blocks::BlockId;

const SWEPT: &str = "swept";
const PART: &str = ".part";

#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub(crate) root: PathBuf,
}

/// The contents of a folder.
#[derive(Default)]
pub(crate) struct Contents {
    /// The numbers of the finished files, ascending.
    pub(crate) files: Vec<u64>,
    pub(crate) parts: Vec<PathBuf>,
    pub(crate) is_swept: bool,
}

impl Layout {
    /// Uses this folder, and creates it if missing.
    pub(crate) fn open(root: &Path) -> io::Result<Self> {
        if !root.is_dir() {
            fs::create_dir_all(root)?;
            if let Some(parent) = root.parent().filter(|it| !it.as_os_str().is_empty()) {
                sync_folder(parent)?;
            }
        }
        Ok(Self { root: root.to_owned() })
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn folder(&self, generation: u64) -> PathBuf {
        self.root.join(format!("{generation:016x}"))
    }

    pub(crate) fn file(&self, id: BlockId) -> PathBuf {
        self.folder(id.generation).join(format!("{:016x}", id.number))
    }

    pub(crate) fn part(&self, id: BlockId) -> PathBuf {
        self.folder(id.generation).join(format!("{:016x}{PART}", id.number))
    }

    /// All generations, ascending.
    pub(crate) fn generations(&self) -> io::Result<Vec<u64>> {
        let mut generations = Vec::new();
        for entry in fs::read_dir(&self.root)? {
            generations.extend(entry?.file_name().to_str().and_then(number));
        }
        generations.sort_unstable();
        Ok(generations)
    }

    /// Creates the folder of a new generation.
    pub(crate) fn begin(&self, generation: u64) -> io::Result<()> {
        fs::create_dir(self.folder(generation))?;
        sync_folder(&self.root)
    }

    /// Everything in a folder; nothing if it does not exist.
    pub(crate) fn contents(&self, generation: u64) -> io::Result<Contents> {
        let mut contents = Contents::default();
        let entries = match fs::read_dir(self.folder(generation)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(contents),
            entries => entries?,
        };
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name();
            let Some(name) = name.to_str() else { continue };
            contents.is_swept |= name == SWEPT;
            contents.files.extend(number(name));
            if name.strip_suffix(PART).and_then(number).is_some() {
                contents.parts.push(entry.path());
            }
        }
        contents.files.sort_unstable();
        Ok(contents)
    }

    /// Whether a swept folder has only its mark.
    pub(crate) fn is_empty(&self, generation: u64) -> io::Result<bool> {
        // Two entries are enough to know.
        let entries = fs::read_dir(self.folder(generation))?.take(2);
        let names = entries.map(|entry| entry.map(|it| it.file_name()));
        Ok(names.collect::<io::Result<Vec<_>>>()? == [SWEPT])
    }

    pub(crate) fn is_swept(&self, generation: u64) -> bool {
        self.folder(generation).join(SWEPT).exists()
    }

    pub(crate) fn mark_swept(&self, generation: u64) -> io::Result<()> {
        let path = self.folder(generation);
        File::create(path.join(SWEPT))?;
        sync_folder(&path)
    }

    pub(crate) fn unmark_swept(&self, generation: u64) -> io::Result<()> {
        let path = self.folder(generation);
        if remove_if_there(&path.join(SWEPT))? { sync_folder(&path) } else { Ok(()) }
    }

    /// Removes a folder without files.
    pub(crate) fn remove_folder(&self, generation: u64) -> io::Result<()> {
        let path = self.folder(generation);
        remove_if_there(&path.join(SWEPT))?;
        fs::remove_dir(path)
    }
}

/// Removes a file, and returns whether it existed.
pub(crate) fn remove_if_there(path: &Path) -> io::Result<bool> {
    match fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Syncs the entries of a folder.
pub(crate) fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// The number in one of our file names; none for other names.
fn number(name: &str) -> Option<u64> {
    let ours = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    let is_ours = name.len() == 16 && name.bytes().all(ours);
    if is_ours { u64::from_str_radix(name, 16).ok() } else { None }
}
