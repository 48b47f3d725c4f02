//! A whole run of the server: start, print the ready line, serve until a signal, stop.

use std::io::Write;

use crate::endpoints::ready_line;
use crate::failure::{Failure, Result};
use crate::logging;
use crate::settings::{Durability, Settings};
use crate::signals::Signals;
use crate::start::Server;
use crate::system;

/// Serves until a signal asks to stop. A second signal ends the process at once.
pub fn serve(settings: Settings) -> Result<()> {
    logging::start(settings.log);
    system::make_files_private();
    system::raise_descriptors();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| {
        Failure::new("no-threads", format!("the system gives no threads: {error}"))
    })?;
    let ended = runtime.block_on(run(settings));
    // Whatever still runs in the background has nothing left to answer.
    runtime.shutdown_background();
    ended
}

async fn run(settings: Settings) -> Result<()> {
    let mut signals = Signals::catch()?;
    let relaxed = settings.durability == Durability::Relaxed;
    let server = tokio::select! {
        biased;
        // Nothing was answered yet, so there is nothing to wait for.
        _ = signals.next() => return Ok(()),
        server = Server::start(settings) => server?,
    };
    if relaxed {
        tracing::warn!("durability is relaxed: a crash of the machine may lose the last writes");
    }
    say(&ready_line(server.endpoints(), server.not_started()));
    let signal = signals.next().await;
    tracing::info!(signal, "stopping");
    tokio::select! {
        biased;
        second = signals.next() => {
            Err(Failure::new("stopped-at-once", format!("stopped at once by a second {second}")))
        }
        () = server.stop() => {
            tracing::info!("stopped");
            Ok(())
        }
    }
}

/// Prints a line for a program that waits for it. That standard output is closed is no reason to stop.
fn say(line: &str) {
    let mut out = std::io::stdout();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}
