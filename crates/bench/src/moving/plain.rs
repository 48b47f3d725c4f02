//! What a move is compared with: a file of as many bytes, read, written to another one, and synced.

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use lazuli_store::{Error, Result};

use crate::store::load::Load;

const PIECE_BYTES: usize = 1024 * 1024;
/// Small beside what a disk writes in a millisecond.
const GENTLE_PIECE_BYTES: usize = 128 * 1024;

/// Makes the file that is copied, of the same text as the items.
pub(super) fn fill(path: &Path, bytes: u64) -> Result<()> {
    let load = Load::new(1);
    let make = || {
        let mut file = std::io::BufWriter::new(File::create(path)?);
        let (mut written, mut number) = (0, 0);
        while written < bytes {
            let value = load.value(number);
            file.write_all(&value)?;
            written += value.len() as u64;
            number += 1;
        }
        file.into_inner()?.sync_all()
    };
    make().map_err(|error| failed(path, &error))
}

/// How long it takes until a copy is on disk. It stays there, as does what a move writes: what was just deleted is
/// written again far more quickly than what is new.
pub(super) async fn copy(path: &Path, to: &str) -> Result<Duration> {
    run(path, to, |from, into| {
        let mut piece = vec![0; PIECE_BYTES];
        loop {
            match from.read(&mut piece)? {
                0 => return into.sync_all(),
                read => into.write_all(&piece[..read])?,
            }
        }
    })
    .await
}

/// The same as gently as can be: evenly over at least this time, and in small pieces, each of which is synced
/// before the next is read.
pub(super) async fn copy_gently(path: &Path, to: &str, least: Duration) -> Result<()> {
    run(path, to, move |from, into| {
        let bytes = from.metadata()?.len();
        let (start, mut copied) = (Instant::now(), 0);
        let mut piece = vec![0; GENTLE_PIECE_BYTES];
        loop {
            let read = from.read(&mut piece)?;
            if read == 0 {
                return Ok(());
            }
            into.write_all(&piece[..read])?;
            into.sync_data()?;
            copied += read as u64;
            let due = least.mul_f64(copied as f64 / bytes as f64);
            std::thread::sleep(due.saturating_sub(start.elapsed()));
        }
    })
    .await
    .map(|_| ())
}

async fn run(
    path: &Path,
    to: &str,
    copy: impl FnOnce(&mut File, &mut File) -> std::io::Result<()> + Send + 'static,
) -> Result<Duration> {
    let (from, to) = (path.to_owned(), path.with_extension(to));
    let copied = tokio::task::spawn_blocking(move || {
        let copied = || {
            let start = Instant::now();
            copy(&mut File::open(&from)?, &mut File::create(&to)?)?;
            Ok(start.elapsed())
        };
        copied().map_err(|error: std::io::Error| failed(&from, &error))
    });
    copied.await.map_err(|error| Error::internal("copy", error))?
}

fn failed(path: &Path, error: &std::io::Error) -> Error {
    Error::internal("plain-file", format!("{}: {error}", path.display()))
}
