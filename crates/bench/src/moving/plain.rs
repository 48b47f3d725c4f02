//! What a move is compared with: a file of as many bytes, read, written to another one, and synced.

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use lazuli_store::{Error, Result};

use crate::store::load::Load;

const PIECE_BYTES: usize = 1024 * 1024;

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

/// How long it takes until a copy is on disk.
pub(super) async fn copy(path: &Path) -> Result<Duration> {
    let (from, to) = (path.to_owned(), path.with_extension("copy"));
    let copied = tokio::task::spawn_blocking(move || {
        let copy = || {
            let start = Instant::now();
            let (mut from, mut into) = (File::open(&from)?, File::create(&to)?);
            let mut piece = vec![0; PIECE_BYTES];
            loop {
                let read = from.read(&mut piece)?;
                if read == 0 {
                    break;
                }
                into.write_all(&piece[..read])?;
            }
            into.sync_all()?;
            let took = start.elapsed();
            std::fs::remove_file(&to)?;
            Ok(took)
        };
        copy().map_err(|error: std::io::Error| failed(&from, &error))
    });
    copied.await.map_err(|error| Error::internal("copy", error))?
}

fn failed(path: &Path, error: &std::io::Error) -> Error {
    Error::internal("plain-file", format!("{}: {error}", path.display()))
}
