//! What the source has changed: its commands, run as those of a client that may do everything.

use lazuli_resp::{Args, OwnedArgs};

use super::link::{Ended, Replica};
use crate::command::{Command, TABLE};
use crate::dispatch::find;
use crate::limits::DURABLE_BYTES_MAX;

impl Replica {
    /// Runs one command of the source. Whether it asks how far this server is.
    pub(super) fn apply(&mut self, args: Args<'_>) -> Result<bool, Ended> {
        if args.is_empty() || (args.is(0, "ping") && args.len() == 1) {
            return Ok(false);
        }
        if args.is(0, "replconf") {
            return Ok(args.is(1, "getack"));
        }
        let name = || String::from_utf8_lossy(args.at(0)).into_owned();
        let command = find(&TABLE, args).map_err(|_| {
            Ended::ForGood(format!("the source sends the command {}, which is not known", name()))
        })?;
        let is_too_long = |it: &[u8]| it.len() > DURABLE_BYTES_MAX;
        if self.server.keyspace.is_persistent() && args.iter().any(is_too_long) {
            let message = format!("{} brings more than a durable cache takes at once", name());
            return Err(Ended::ForGood(message));
        }
        self.execute(command, args)?;
        Ok(false)
    }

    /// The same for a command that is made here.
    pub(super) fn apply_words(&mut self, words: &[&[u8]]) -> Result<(), Ended> {
        let args: OwnedArgs = words.iter().collect();
        self.apply(args.args()).map(drop)
    }

    fn execute(&mut self, command: &'static Command, args: Args<'_>) -> Result<(), Ended> {
        let Some(session) = &mut self.session else { return Ok(()) };
        self.out.bytes.clear();
        self.server.execute(session, args, &mut self.out);
        let Some(refusal) = self.out.bytes.strip_prefix(b"-") else { return Ok(()) };
        let refusal = String::from_utf8_lossy(refusal).trim_end().to_owned();
        if command.name == "select" {
            // All that follows would land in another database.
            return Err(Ended::ForGood(format!("a database of the source is missing: {refusal}")));
        }
        self.server.replication.note(|status| status.refused += 1);
        tracing::warn!(command = command.name, refusal, "a command of the source was refused");
        Ok(())
    }
}
