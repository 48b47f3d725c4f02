//! `lazuli job …`: what goes on in the background, and how it is steered.

use std::io::{IsTerminal, Write};
use std::time::Duration;

use serde_json::{Value, json};

use crate::args::Target;
use crate::args::partition::JobCommand;
use crate::client::Client;
use crate::failure::{Failure, Result};
use crate::output::{self, cell, rows};

/// How often a job that is followed is looked at.
const LOOK: Duration = Duration::from_millis(200);
/// Characters of a progress bar.
const BAR: u64 = 20;

pub(crate) fn run(command: JobCommand) -> Result<()> {
    match command {
        JobCommand::List(target) => list(&target),
        JobCommand::Show { number, target } => show(number, &target),
        JobCommand::Pause { number, target } => steer(number, "pause", "rests", &target),
        JobCommand::Resume { number, target } => steer(number, "resume", "goes on", &target),
        JobCommand::Cancel { number, target } => steer(number, "cancel", "is called off", &target),
    }
}

fn list(target: &Target) -> Result<()> {
    let answer = Client::find(target)?.get("/v1/jobs")?;
    if target.json {
        output::json(&answer);
        return Ok(());
    }
    let columns = ["job", "kind", "partition", "from", "to", "phase", "bytes", "lag", "trouble"];
    output::table(&columns, &rows(&answer["jobs"], &columns));
    Ok(())
}

fn show(number: u64, target: &Target) -> Result<()> {
    let answer = Client::find(target)?.get(&format!("/v1/jobs/{number}"))?;
    if target.json {
        output::json(&answer);
        return Ok(());
    }
    for (name, value) in answer.as_object().into_iter().flatten() {
        output::line(&format!("{name:<18} {}", cell(value)));
    }
    Ok(())
}

fn steer(number: u64, verb: &str, now: &str, target: &Target) -> Result<()> {
    let answer = Client::find(target)?.post(&format!("/v1/jobs/{number}/{verb}"), &json!({}))?;
    output::changed(target.json, &answer, || format!("job {number} {now}"));
    Ok(())
}

/// Waits until a job is over, with its progress on the terminal if there is one.
pub(crate) fn follow(number: u64, target: &Target) -> Result<()> {
    let client = Client::find(target)?;
    let mut terminal = std::io::stderr();
    let shows = terminal.is_terminal() && !target.json;
    loop {
        let job = client.get(&format!("/v1/jobs/{number}"))?;
        let phase = job["phase"].as_str().unwrap_or_default().to_owned();
        if shows {
            // A terminal that is gone does not stop the job.
            let _ = write!(
                terminal,
                "\r\x1b[K{}",
                output::fit(&progress(&job), output::terminal_width())
            );
        }
        if phase == "done" || phase == "cancelled" {
            if shows {
                let _ = writeln!(terminal);
            }
            output::changed(target.json, &job, || summary(&job));
            return match phase.as_str() {
                "done" => Ok(()),
                _ => Err(Failure::failed(format!("job {number} was called off"))),
            };
        }
        std::thread::sleep(LOOK);
    }
}

/// Waits until a job is over, in silence.
pub(crate) fn wait(number: u64, client: &Client) -> Result<()> {
    loop {
        let job = client.get(&format!("/v1/jobs/{number}"))?;
        match job["phase"].as_str().unwrap_or_default() {
            "done" => return Ok(()),
            "cancelled" => return Err(Failure::failed(format!("job {number} was called off"))),
            _ => std::thread::sleep(LOOK),
        }
    }
}

/// How far a job has come, in one line.
pub(crate) fn progress(job: &Value) -> String {
    let number = |name: &str| job[name].as_u64().unwrap_or(0);
    let (bytes, expected) = (number("bytes"), number("bytes_expected").max(1));
    let filled = (bytes.min(expected) * BAR / expected) as usize;
    let bar = format!("{}{}", "█".repeat(filled), "░".repeat(BAR as usize - filled));
    let rate = number("bytes_per_second") as f64 / (1024.0 * 1024.0);
    let eta = job["eta_seconds"].as_u64().map_or(String::new(), |eta| format!(", {eta} s left"));
    let lag = number("lag");
    format!(
        "{bar} {}: {}, {rate:.1} MiB/s, {lag} changes behind{eta}",
        cell(&job["phase"]),
        output::size(bytes)
    )
}

fn summary(job: &Value) -> String {
    let pause = job["pause_us"].as_u64().map_or(String::new(), |pause| {
        format!("; writers waited for {:.1} ms", pause as f64 / 1_000.0)
    });
    let parts = ["partition", "from", "to", "bytes"].map(|part| cell(&job[part]));
    let [partition, from, to, bytes] = parts;
    format!("moved partition {partition} from {from} to {to}: {bytes} bytes copied{pause}")
}
