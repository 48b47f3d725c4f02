//! A received backup, as a file beside the stores until it is restored: all of it is verified before anything is changed.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use lazuli_engine::Engine;
use lazuli_engine::backup::{
    BackupExaminer, BackupHead, BackupParser, BackupPart, BackupReason, BackupTotals,
};
use lazuli_http::Body;
use lazuli_store::{Error, Result};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::folder::make_folder;

/// Pieces that wait to be written or to be parsed.
const PIECES_WAITING_MAX: usize = 8;
/// What is read of the file at once.
const READ_BYTES: usize = 256 * 1024;

/// A whole backup, on disk until dropped.
pub(super) struct Staged {
    pub(super) head: BackupHead,
    pub(super) totals: BackupTotals,
    path: PathBuf,
}

/// Removes the file whatever happens.
struct Leftover(Option<PathBuf>);

impl Drop for Leftover {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            remove(path);
        }
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        remove(&self.path);
    }
}

fn remove(path: &Path) {
    if let Err(error) = std::fs::remove_file(path)
        && error.kind() != io::ErrorKind::NotFound
    {
        tracing::warn!(path = %path.display(), %error, "cannot remove a backup that was taken in");
    }
}

impl Staged {
    /// Takes a backup in and looks through all of it.
    pub(super) async fn take(
        folder: &Path,
        number: u64,
        mut body: Body,
        engine: &Engine,
    ) -> Result<Self> {
        make_folder(folder).map_err(|failure| Error::internal("file-error", failure.message()))?;
        let path = folder.join(format!("{number}.backup"));
        let mut leftover = Leftover(Some(path.clone()));
        let (sender, writing) = write_behind(path.clone());
        let mut look = Look { parser: BackupParser::new(), head: None, examiner: None };
        let mut outcome = Ok(());
        loop {
            let piece = match body.chunk().await {
                Ok(Some(piece)) => piece,
                Ok(None) => break,
                Err(error) => {
                    let message = format!("the backup cannot be read: {error}");
                    outcome = Err(Error::invalid(BackupReason::Truncated, message));
                    break;
                }
            };
            outcome = look.at(&piece, engine);
            // A writer that has ended says why below.
            if outcome.is_err() || sender.send(piece).await.is_err() {
                break;
            }
        }
        drop(sender);
        let written = writing.await.map_err(|error| Error::internal("file-error", error))?;
        if let Err(error) = outcome {
            body.discard().await;
            return Err(error);
        }
        written.map_err(|error| cannot(&path, &error))?;
        let totals = look.parser.finish()?;
        let head =
            look.head.ok_or_else(|| Error::internal(BackupReason::Damaged, "it has no head"))?;
        leftover.0 = None;
        Ok(Self { head, totals, path })
    }

    /// The parts again, from the file.
    pub(super) fn parts(&self) -> Parts {
        Parts { pieces: read_ahead(self.path.clone()), parser: BackupParser::new() }
    }
}

/// Looks through a backup while it comes.
struct Look {
    parser: BackupParser,
    head: Option<BackupHead>,
    examiner: Option<BackupExaminer>,
}

impl Look {
    fn at(&mut self, piece: &[u8], engine: &Engine) -> Result<()> {
        self.parser.push(piece);
        while let Some(part) = self.parser.next_part()? {
            if let BackupPart::Head(head) = &part {
                self.examiner = Some(engine.examiner(head));
                self.head = Some((**head).clone());
            }
            if let Some(examiner) = &mut self.examiner {
                examiner.look(&part)?;
            }
        }
        Ok(())
    }
}

/// The parts of a backup on disk.
pub(super) struct Parts {
    pieces: mpsc::Receiver<io::Result<Bytes>>,
    parser: BackupParser,
}

impl Parts {
    pub(super) async fn next(&mut self) -> Result<Option<BackupPart>> {
        loop {
            if let Some(part) = self.parser.next_part()? {
                return Ok(Some(part));
            }
            match self.pieces.recv().await {
                Some(Ok(piece)) => self.parser.push(&piece),
                Some(Err(error)) => return Err(Error::internal("file-error", error)),
                None => {
                    self.parser.finish()?;
                    return Ok(None);
                }
            }
        }
    }
}

/// Writes what is sent, on a thread that may wait for the disk.
fn write_behind(path: PathBuf) -> (mpsc::Sender<Bytes>, JoinHandle<io::Result<()>>) {
    let (sender, mut receiver) = mpsc::channel::<Bytes>(PIECES_WAITING_MAX);
    let writing = tokio::task::spawn_blocking(move || {
        let mut options = OpenOptions::new();
        let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&path)?;
        while let Some(piece) = receiver.blocking_recv() {
            file.write_all(&piece)?;
        }
        Ok(())
    });
    (sender, writing)
}

/// Reads a file on a thread of its own, a few pieces ahead of who takes them.
fn read_ahead(path: PathBuf) -> mpsc::Receiver<io::Result<Bytes>> {
    let (sender, receiver) = mpsc::channel(PIECES_WAITING_MAX);
    tokio::task::spawn_blocking(move || {
        let read = File::open(&path).and_then(|mut file| {
            loop {
                let mut piece = vec![0; READ_BYTES];
                let length = file.read(&mut piece)?;
                piece.truncate(length);
                // The receiver is gone, or there is nothing more to send.
                if length == 0 || sender.blocking_send(Ok(piece.into())).is_err() {
                    return Ok(());
                }
            }
        });
        if let Err(error) = read {
            let _ = sender.blocking_send(Err(error));
        }
    });
    receiver
}

fn cannot(path: &Path, error: &io::Error) -> Error {
    Error::internal("file-error", format!("cannot write {}: {error}", path.display()))
}
