//! Files that are written bit by bit: `FILE.part` holds lines, and `FILE` appears only when all are there.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Seek, SeekFrom};
use std::path::Path;

use lazuli_console::{Failure, Result};

pub(crate) fn cannot_write(error: &io::Error) -> Failure {
    Failure::failed(format!("cannot write: {error}"))
}

pub(crate) fn create(path: &Path) -> Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(true);
    options.open(path).map_err(|error| Failure::failed(format!("{}: {error}", path.display())))
}

/// The lines that are already there, cut off behind the last page that the progress file knows.
pub(crate) fn open_part(path: &Path, bytes: u64) -> Result<File> {
    if bytes == 0 {
        return create(path);
    }
    let cannot = |error: io::Error| Failure::failed(format!("{}: {error}", path.display()));
    let mut file = OpenOptions::new().read(true).write(true).open(path).map_err(cannot)?;
    if file.metadata().map_err(cannot)?.len() < bytes {
        let message = format!("{} is shorter than it was", path.display());
        return Err(Failure::failed(message).hint("start again with --overwrite"));
    }
    file.set_len(bytes).map_err(cannot)?;
    file.seek(SeekFrom::End(0)).map_err(cannot)?;
    Ok(file)
}

pub(crate) fn rename(from: &Path, to: &Path) -> Result<()> {
    std::fs::rename(from, to)
        .map_err(|error| Failure::failed(format!("cannot make {}: {error}", to.display())))
}

pub(crate) fn each_line(lines: &File, mut each: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
    let cannot =
        |error: io::Error| Failure::failed(format!("cannot read what was written: {error}"));
    let mut from = lines;
    from.seek(SeekFrom::Start(0)).map_err(cannot)?;
    let mut input = BufReader::new(from);
    let mut line = Vec::new();
    loop {
        line.clear();
        // We wrote these lines, from pages whose size is bounded.
        if input.read_until(b'\n', &mut line).map_err(cannot)? == 0 {
            return Ok(());
        }
        each(&line)?;
    }
}
