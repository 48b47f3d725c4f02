//! SIGTERM and SIGINT: the first one asks for a graceful stop, the second one ends the process at once.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::failure::{Failure, Result};

/// The signals that stop a server, from now on caught by us.
pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    pub(crate) fn catch() -> Result<Self> {
        let catch = |kind| {
            signal(kind).map_err(|error| {
                Failure::new("no-signals", format!("signals cannot be caught: {error}"))
            })
        };
        let terminate = catch(SignalKind::terminate())?;
        Ok(Self { terminate, interrupt: catch(SignalKind::interrupt())? })
    }

    /// Waits for the next signal and says which one it was.
    pub(crate) async fn next(&mut self) -> &'static str {
        tokio::select! {
            biased;
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}
