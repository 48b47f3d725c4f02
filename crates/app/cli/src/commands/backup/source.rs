//! Where a backup is read from: a file, or a blob in pieces of some mebibytes.

use std::fs::File;
use std::io::{self, Read};

use crate::args::service::Service;
use crate::commands::blob::address::{Address, Spot};
use crate::commands::blob::blobs::stat;
use crate::commands::blob::find;
use crate::commands::blob::local::cannot;
use crate::commands::blob::upload::BLOCK_BYTES;
use crate::commands::remote::session::{Ask, Session};
use crate::failure::{Failure, Result};

/// A backup that is read from its beginning on.
pub(super) struct Source {
    /// Where it is, for people.
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
    from: Address,
    /// All pieces are of one and the same blob, though it may be replaced meanwhile.
    etag: String,
    size: u64,
    fetched: u64,
    piece: io::Cursor<Vec<u8>>,
}

impl Source {
    pub(super) fn open(place: &str, service: &Service) -> Result<Self> {
        match Spot::read(place)? {
            Spot::Local(path) => {
                let file = File::open(&path).map_err(|error| cannot(&path, &error))?;
                let meta = file.metadata().map_err(|error| cannot(&path, &error))?;
                if !meta.is_file() {
                    let message = format!("{} is no file", path.display());
                    return Err(Failure::failed(message));
                }
                Ok(Self { place: place.to_owned(), size: meta.len(), input: Input::File(file) })
            }
            Spot::Remote(from) => {
                let mut session = Session::new(find(service)?)?;
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
        let asked = self.session.expect(Ask { headers: &headers, ..Ask::new("GET", &path) });
        let answer = asked.map_err(|failure| io::Error::other(failure.reason()))?;
        if answer.body.len() as u64 != length {
            return Err(io::Error::other("the service answered with another range"));
        }
        self.fetched += length;
        self.piece = io::Cursor::new(answer.body);
        self.piece.read(buffer)
    }
}
