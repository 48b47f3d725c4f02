//! Advice: what the traffic since the start says about the choice of keys, with the evidence and what to do. One file
//! per kind of advice; each looks at the engine's figures and says nothing while they do not suffice.

mod monotonic;

use std::time::Duration;

use lazuli_env::Clock;
use lazuli_http::date::{Fraction, TICKS_PER_SECOND, format_iso8601};
use lazuli_store::Result;
use serde_json::{Value, json};

use crate::running::Running;

/// One thing that could be better.
pub(crate) struct Advice {
    /// What kind of advice it is, for programs.
    kind: &'static str,
    /// The map it is about.
    map: String,
    /// What goes on, in one line.
    finding: String,
    /// What shows it: a sentence for each figure.
    evidence: Vec<String>,
    /// The figures themselves, for programs.
    figures: Value,
    /// What helps, the best first.
    remedies: Vec<String>,
}

impl Advice {
    fn to_json(&self) -> Value {
        json!({
            "kind": self.kind,
            "map": self.map,
            "finding": self.finding,
            "evidence": self.evidence,
            "figures": self.figures,
            "remedies": self.remedies,
        })
    }
}

/// All advice there is, and since when the traffic was watched: what is counted is kept in memory.
pub(crate) async fn advise(running: &Running) -> Result<Value> {
    let mut all = Vec::new();
    all.extend(monotonic::advise(running).await?);
    let all: Vec<Value> = all.iter().map(Advice::to_json).collect();
    let clock = &*running.engine.env().clock;
    Ok(json!({ "advice": all, "since": time_of(clock, Duration::ZERO) }))
}

/// A moment of the clock's uptime as people write it, to the second.
fn time_of(clock: &dyn Clock, uptime: Duration) -> String {
    let ago = clock.uptime().saturating_sub(uptime);
    let seconds = (clock.now_ms() / 1_000).saturating_sub(ago.as_secs());
    let ticks = i64::try_from(seconds).unwrap_or(0).saturating_mul(TICKS_PER_SECOND);
    format_iso8601(ticks, Fraction::Shortest)
}
