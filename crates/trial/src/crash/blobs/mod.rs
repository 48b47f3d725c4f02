//! Blobs: no committed blob may be lost or torn, and no file may stay that nothing refers to.
//!
//! Writers put, overwrite, copy, lease, snapshot and delete blobs of all sizes. At the end everything is deleted, and the
//! block files must go.

mod check;
mod contents;
mod garbage;
mod writers;

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::ops::Range;
use std::path::Path;

use lazuli_trial::client::Client;
use lazuli_trial::server::Server;
use lazuli_trial::{Result, blobs};

use super::{Load, read_all};
use check::Expected;
use writers::Log;

const CONTAINER: &str = "crash";

#[derive(Default)]
pub(crate) struct Blobs {
    expected: Expected,
    answered: BTreeMap<&'static str, usize>,
    in_doubt: usize,
    kept: usize,
    /// Block files that were there before everything was deleted.
    files: usize,
}

impl Load for Blobs {
    type Log = Log;
    const FRONT: &str = "blobs";
    const WRITERS: usize = 16;
    const LIFE_MS: Range<u64> = 50..900;

    fn create(&self, address: SocketAddr) -> Result {
        Client::connect(address)?.expect(blobs::create_container(CONTAINER), &[201]).map(drop)
    }

    fn write(&self, address: SocketAddr, round: u64, writer: usize) -> Result<Log> {
        writers::write(address, round, writer)
    }

    fn settle(&mut self, address: SocketAddr, logs: Vec<Log>) -> Result {
        for log in &logs {
            self.in_doubt += usize::from(log.in_doubt.is_some());
            for kind in &log.answered {
                *self.answered.entry(kind).or_default() += 1;
            }
        }
        for (blobs, kept) in read_all(address, logs, check::read)? {
            self.expected.extend(blobs);
            self.kept += usize::from(kept);
        }
        Ok(())
    }

    fn check_all(&self, address: SocketAddr) -> Result {
        check::everything(address, &self.expected)
    }

    fn finish(&mut self, server: &Server, folder: &Path) -> Result {
        self.files = garbage::collected(server, folder)?;
        Ok(())
    }
}

impl fmt::Display for Blobs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds = self.answered.iter().map(|(kind, count)| format!("{count} {kind}"));
        writeln!(f, "answered: {}", kinds.collect::<Vec<_>>().join(", "))?;
        writeln!(f, "{} in doubt, of which {} were kept", self.in_doubt, self.kept)?;
        writeln!(f, "0 lost, 0 torn: {} blobs read back, byte for byte", self.expected.len())?;
        write!(f, "all {} block files went once their blobs were deleted", self.files)
    }
}
