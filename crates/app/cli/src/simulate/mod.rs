//! `lazuli simulate`: runs the balancer of servers on a drawn or described fleet, in virtual time and without a server.
//!
//! `draw` and `file` make the fleet, `course` runs virtual time, `report` prints.

pub(crate) mod args;
mod course;
mod draw;
mod file;
mod report;

use std::time::Duration;

use args::Simulate;
use course::Course;
use lazuli_console::{Failure, Result};
use report::Report;

const HOUR_MS: u64 = 3_600_000;

pub(crate) fn run(wanted: &Simulate) -> Result<()> {
    let settings = wanted.balance.settings();
    settings.check().map_err(Failure::usage)?;
    let fleet = match &wanted.fleet {
        Some(path) => file::read(path)?,
        None => draw::fleet(wanted)?,
    };
    let mut report = Report::new(wanted.json, &settings, &fleet);
    let mut course = Course::new(fleet, settings, wanted.seed);
    let end_ms = wanted.hours * HOUR_MS;
    let step_ms = millis(wanted.step).max(1);
    let shift_ms = wanted.shift.map(millis);
    let mut next_shift_ms = shift_ms;
    while course.now_ms() < end_ms && !(shift_ms.is_none() && course.is_settled()) {
        let until = (course.now_ms() + step_ms).min(end_ms);
        while let Some(at) = next_shift_ms.filter(|at| *at <= until) {
            course.go_on(at);
            course.shift();
            next_shift_ms = shift_ms.map(|every| at + every);
        }
        course.go_on(until);
        report.step(&course);
    }
    report.end(&course);
    Ok(())
}

fn millis(time: Duration) -> u64 {
    time.as_millis() as u64
}
