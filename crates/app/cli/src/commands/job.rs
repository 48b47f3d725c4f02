//! `lazuli job …`: moves in the background, and how they are paused, resumed and cancelled.

use std::time::Duration;

use serde_json::{Value, json};

use crate::args::Target;
use crate::args::partition::{JobCommand, OneJob};
use crate::client::{Client, fetch};
use lazuli_console::output::{self, cell, rows};
use lazuli_console::progress::{Screen, bar};
use lazuli_console::{Failure, Result};

/// How often a job that is waited for is polled.
const LOOK: Duration = Duration::from_millis(200);
/// Characters of a progress bar.
const BAR: usize = 20;

pub(crate) fn run(command: JobCommand) -> Result<()> {
    match command {
        JobCommand::List(target) => list(&target),
        JobCommand::Show(OneJob { number, target }) => show(number, &target),
        JobCommand::Pause(job) => steer(&job, "pause", "is paused"),
        JobCommand::Resume(job) => steer(&job, "resume", "continues"),
        JobCommand::Cancel(job) => steer(&job, "cancel", "is being cancelled"),
    }
}

fn list(target: &Target) -> Result<()> {
    let Some(answer) = fetch(target, "/v1/jobs")? else { return Ok(()) };
    let columns = ["job", "kind", "partition", "from", "to", "phase", "bytes", "lag", "trouble"];
    output::table(&columns, &rows(&answer["jobs"], &columns));
    Ok(())
}

fn show(number: u64, target: &Target) -> Result<()> {
    let path = format!("/v1/jobs/{number}");
    let Some(answer) = fetch(target, &path)? else { return Ok(()) };
    for (name, value) in answer.as_object().into_iter().flatten() {
        output::line(&format!("{name:<18} {}", cell(value)));
    }
    Ok(())
}

fn steer(OneJob { number, target }: &OneJob, verb: &str, now: &str) -> Result<()> {
    let answer = Client::find(target)?.post(&format!("/v1/jobs/{number}/{verb}"), &json!({}))?;
    output::changed(target.json, &answer, || format!("job {number} {now}"));
    Ok(())
}

/// Waits until a job is over, with its progress on the terminal if there is one.
pub(crate) fn follow(number: u64, target: &Target) -> Result<()> {
    let screen = Screen::new(target.json);
    let job = wait(number, &Client::find(target)?, |job| screen.show(&[progress(job)]));
    screen.finish();
    let (job, outcome) = job?;
    output::changed(target.json, &job, || summary(&job));
    outcome
}

/// Waits until a job is over and returns it with its outcome. `each` is called with every state in between.
pub(crate) fn wait(
    number: u64,
    client: &Client,
    each: impl Fn(&Value),
) -> Result<(Value, Result<()>)> {
    loop {
        let job = client.get(&format!("/v1/jobs/{number}"))?;
        each(&job);
        match job["phase"].as_str().unwrap_or_default() {
            "done" => return Ok((job, Ok(()))),
            "cancelled" => {
                let failure = Failure::failed(format!("job {number} was cancelled"));
                return Ok((job, Err(failure)));
            }
            _ => std::thread::sleep(LOOK),
        }
    }
}

/// How far a job is, in one line.
pub(crate) fn progress(job: &Value) -> String {
    let number = |name: &str| job[name].as_u64().unwrap_or(0);
    let (bytes, lag) = (number("bytes"), number("lag"));
    let bar = bar(bytes, number("bytes_expected").max(1), BAR);
    let rate = number("bytes_per_second") as f64 / (1024.0 * 1024.0);
    let eta = job["eta_seconds"].as_u64().map_or(String::new(), |eta| format!(", {eta} s left"));
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
