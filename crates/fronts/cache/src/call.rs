//! One call of a command: its arguments, the keys that it may use, where its reply goes, and who asks.

use std::sync::Arc;

use lazuli_keyspace::Space;
use lazuli_resp::{Args, OwnedArgs, Reply, parse_double, parse_integer};

use crate::command::Command;
use crate::failure::Failure;
use crate::limits::{DURABLE_BYTES_MAX, STRING_BYTES_MAX, TIMEOUT_S_MAX};
use crate::server::Server;
use crate::session::Session;

pub(crate) struct Call<'c, 'k> {
    /// The name of the command and what follows it.
    pub(crate) args: Args<'c>,
    /// A command that fails must not have written anything before: what it wrote is taken back.
    pub(crate) out: &'c mut Reply,
    /// The keys that the command's key specs name are locked.
    pub(crate) space: &'c mut Space<'k>,
    pub(crate) session: &'c mut Session,
    pub(crate) server: &'c Arc<Server>,
    pub(crate) command: &'static Command,
    /// Whether the client may wait: not in a transaction, not in a script.
    pub(crate) may_block: bool,
    /// What the connection does when the command has ended.
    pub(crate) after: After,
}

#[derive(Default)]
pub(crate) enum After {
    #[default]
    Nothing,
    /// The reply is sent, then the connection is closed.
    Close,
    /// Nothing was written: the client waits for keys.
    Block(Block),
    /// The reply is held back for so long.
    Sleep(std::time::Duration),
    /// The reply is held back until all that was written is on disk.
    Flush,
}

/// What a client waits for. The command is run again when one of the keys changes.
pub(crate) struct Block {
    pub(crate) keys: Vec<Box<[u8]>>,
    /// None waits for ever.
    pub(crate) timeout_ms: Option<u64>,
    /// The command as it is run again.
    pub(crate) args: OwnedArgs,
    pub(crate) on_timeout: Null,
}

/// What a client gets when its time is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Null {
    Array,
}

impl Null {
    pub(crate) fn write(self, out: &mut Reply) {
        match self {
            Self::Array => out.null_array(),
        }
    }
}

impl<'c> Call<'c, '_> {
    pub(crate) fn now_ms(&self) -> u64 {
        self.space.now_ms
    }

    /// The longest string: shorter where strings are rows of the store.
    pub(crate) fn string_bytes_max(&self) -> usize {
        if self.server.keyspace.is_persistent() { DURABLE_BYTES_MAX } else { STRING_BYTES_MAX }
    }

    /// The integer at this place.
    pub(crate) fn integer(&self, index: usize) -> Result<i64, Failure> {
        parse_integer(self.args.at(index)).ok_or(Failure::NOT_INTEGER)
    }

    pub(crate) fn double(&self, index: usize) -> Result<f64, Failure> {
        parse_double(self.args.at(index)).ok_or(Failure::NOT_FLOAT)
    }

    /// The time-out at this place, given in seconds: none waits for ever.
    pub(crate) fn timeout_ms(&self, index: usize) -> Result<Option<u64>, Failure> {
        let seconds = parse_double(self.args.at(index)).ok_or(Failure::BAD_TIMEOUT)?;
        if seconds.is_infinite() || seconds > TIMEOUT_S_MAX {
            return Err(Failure::BAD_TIMEOUT);
        }
        if seconds < 0.0 {
            return Err(Failure::NEGATIVE_TIMEOUT);
        }
        Ok(Some((seconds * 1000.0).ceil() as u64).filter(|it| *it > 0))
    }

    /// The client waits for one of these keys, and the command is run again with the same arguments; where it may not wait it
    /// gets what it would get at the end of its time. To be called last, when nothing was written.
    pub(crate) fn block<'a>(
        &mut self,
        keys: impl Iterator<Item = &'a [u8]>,
        timeout_ms: Option<u64>,
        on_timeout: Null,
    ) {
        let args = self.args.to_owned();
        self.block_with(keys, timeout_ms, on_timeout, args);
    }

    /// The same with other arguments: places that were relative to now are fixed in them.
    pub(crate) fn block_with<'a>(
        &mut self,
        keys: impl Iterator<Item = &'a [u8]>,
        timeout_ms: Option<u64>,
        on_timeout: Null,
        args: OwnedArgs,
    ) {
        if !self.may_block {
            return on_timeout.write(self.out);
        }
        let keys = keys.map(Into::into).collect();
        self.after = After::Block(Block { keys, timeout_ms, args, on_timeout });
    }
}
