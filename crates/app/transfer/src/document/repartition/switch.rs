//! Clients are switched: writes to the former container are held back for a moment, the last changes are applied and compared, and
//! both containers exchange their names. Clients that write meanwhile are told to come again, which their SDKs do.

use std::time::{Duration, Instant};

use lazuli_console::{Failure, Result};
use lazuli_http::uri::percent_encode;

use super::Work;
use super::verify::{Former, differs};
use crate::session::{Call, ServiceError};

/// How long writes are held back at the most.
const HOLD: Duration = Duration::from_secs(60);
/// If the last changes take longer than this, writers go on and it is tried again.
const HOLD_USED_MAX: Duration = Duration::from_secs(40);
const TRIES_MAX: usize = 5;
const HEADER: &str = "x-lazuli-switch";

impl Work {
    pub(super) fn switch(&mut self, mut differing: Vec<Former>) -> Result<()> {
        for _ in 0..TRIES_MAX {
            self.follow()?;
            let held = Instant::now();
            self.ask(&format!("hold {}", HOLD.as_secs()))?;
            let done = self.finish(&mut differing, held);
            match done {
                Ok(true) => {
                    self.at.is_switched = true;
                    return self.save();
                }
                // Writers do not wait for whatever went wrong.
                Ok(false) => self.ask("open")?,
                Err(failure) => {
                    self.ask("open")?;
                    return Err(failure);
                }
            }
        }
        Err(Failure::failed("the last changes take too long: writers are too fast"))
    }

    /// Applies what is left while writers wait, compares, and exchanges the names. False if there was not enough time.
    fn finish(&mut self, differing: &mut Vec<Former>, held: Instant) -> Result<bool> {
        self.follow_to_the_end()?;
        *differing = self.again(std::mem::take(differing))?;
        if !differing.is_empty() {
            return Err(differs(differing));
        }
        self.compare_counts()?;
        if held.elapsed() > HOLD_USED_MAX {
            return Ok(false);
        }
        self.ask(&format!("exchange {}", percent_encode(&self.target.container)))?;
        Ok(true)
    }

    /// Asks for a step of the switch. A container that has another id is the new one: then it is done already.
    fn ask(&mut self, step: &str) -> Result<()> {
        let path = self.source.path();
        let rid = self.at.source_rid.clone();
        let headers = [(HEADER, step), ("x-ms-cosmos-intended-collection-rid", rid.as_str())];
        let call = Call { headers: &headers, ..Call::new("POST", &path) };
        let answer = self.service.session.ask(call)?.answer;
        let error = ServiceError::of(&answer);
        match answer.status {
            200..=299 => Ok(()),
            400 if error.substatus == Some(1024) && step.starts_with("exchange") => Ok(()),
            405 => Err(Failure::failed("this service cannot exchange the names of containers")
                .hint("stop the writers and run it with --no-switch")),
            _ => Err(error.failure()),
        }
    }
}
