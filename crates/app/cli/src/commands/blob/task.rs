//! One thing to do: a file or a blob to transfer, or to remove.

use std::fmt;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::address::{Address, Spot};
use super::listing::Entry;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Task {
    Upload {
        file: PathBuf,
        size: u64,
        to: Address,
    },
    Download {
        from: Address,
        entry: Entry,
        /// The folder that is copied into, which `file` lies in.
        root: PathBuf,
        file: PathBuf,
    },
    Copy {
        from: Address,
        to: Address,
        size: u64,
    },
    Remove(Address),
    RemoveFile(PathBuf),
}

impl Task {
    /// How much there is to transfer.
    pub(super) fn bytes(&self) -> u64 {
        match self {
            Self::Upload { size, .. } | Self::Copy { size, .. } => *size,
            Self::Download { entry, .. } => entry.size,
            Self::Remove(_) | Self::RemoveFile(_) => 0,
        }
    }

    fn verb(&self) -> &'static str {
        match self {
            Self::Upload { .. } => "upload",
            Self::Download { .. } => "download",
            Self::Copy { .. } => "copy",
            Self::Remove(_) | Self::RemoveFile(_) => "remove",
        }
    }

    /// What it is done to, and where that goes.
    fn ends(&self) -> (Spot, Option<Spot>) {
        let (local, remote) = (Spot::Local, Spot::Remote);
        match self.clone() {
            Self::Upload { file, to, .. } => (local(file), Some(remote(to))),
            Self::Download { from, file, .. } => (remote(from), Some(local(file))),
            Self::Copy { from, to, .. } => (remote(from), Some(remote(to))),
            Self::Remove(blob) => (remote(blob), None),
            Self::RemoveFile(file) => (local(file), None),
        }
    }

    pub(super) fn to_json(&self) -> Value {
        let (from, to) = self.ends();
        let to = to.map(|to| to.to_string());
        let (action, bytes) = (self.verb(), self.bytes());
        json!({ "action": action, "from": from.to_string(), "to": to, "bytes": bytes })
    }
}

impl fmt::Display for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (from, to) = self.ends();
        write!(f, "{} {from}", self.verb())?;
        to.map_or(Ok(()), |to| write!(f, " to {to}"))
    }
}
