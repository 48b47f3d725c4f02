//! The source of a backup: a file, or a blob in pieces of 8 MiB.

use std::fs::File;
use std::io::{self, Read};

use lazuli_console::{Failure, Result};
use lazuli_transfer::blob::{BLOCK_BYTES, BlobAddress, Location, cannot, stat};
use lazuli_transfer::session::{Call, Session};

use crate::args::service::Service;

/// A backup that is being read.
pub(super) struct Source {
    /// Its location, for messages.
    pub(super) place: String,
    pub(super) size: u64,
    input: Input,
}

enum Input {
    File(File),
    Blob(Box<BlobInput>),
}

struct BlobInput {
    session: Session,
    from: BlobAddress,
    /// All pieces are of one version of the blob, although it may be replaced meanwhile.
    etag: String,
    size: u64,
    fetched: u64,
    piece: io::Cursor<Vec<u8>>,
}

impl Source {
    pub(super) fn open(place: &str, service: &Service) -> Result<Self> {
        match Location::read(place)? {
            Location::Local(path) => {
                let file = File::open(&path).map_err(|error| cannot(&path, &error))?;
                let meta = file.metadata().map_err(|error| cannot(&path, &error))?;
                if !meta.is_file() {
                    let message = format!("{} is not a file", path.display());
                    return Err(Failure::failed(message));
                }
                Ok(Self { place: place.to_owned(), size: meta.len(), input: Input::File(file) })
            }
            Location::Remote(from) => {
                let mut session = Session::new(service.blobs()?)?;
                let found = stat(&mut session, &from)?;
                let found =
                    found.ok_or_else(|| Failure::failed(format!("there is no blob {from}")))?;
                let (etag, size) = (found.etag, found.size);
                let piece = io::Cursor::new(Vec::new());
                let blob = BlobInput { session, from, etag, size, fetched: 0, piece };
                Ok(Self { place: place.to_owned(), size, input: Input::Blob(Box::new(blob)) })
            }
        }
    }
}

impl Read for Source {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.input {
            Input::File(file) => file.read(buffer),
            Input::Blob(blob) => blob.read(buffer),
        }
    }
}

impl Read for BlobInput {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.piece.read(buffer)?;
        if count > 0 || self.fetched == self.size || buffer.is_empty() {
            return Ok(count);
        }
        let length = BLOCK_BYTES.min(self.size - self.fetched);
        let path = self.from.path();
        let range = format!("bytes={}-{}", self.fetched, self.fetched + length - 1);
        let headers = [("x-ms-range", range.as_str()), ("if-match", &self.etag)];
        let asked = self.session.expect(Call { headers: &headers, ..Call::new("GET", &path) });
        let answer = asked.map_err(|failure| io::Error::other(failure.reason()))?;
        if answer.body.len() as u64 != length {
            return Err(io::Error::other("the service answered with another range"));
        }
        self.fetched += length;
        self.piece = io::Cursor::new(answer.body);
        self.piece.read(buffer)
    }
}
