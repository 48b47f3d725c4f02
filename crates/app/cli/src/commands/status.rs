//! `lazuli status`: what a running server is doing.

use serde_json::Value;

use crate::args::Target;
use crate::client::fetch;
use lazuli_console::Result;
use lazuli_console::output::{self, cell};

pub(crate) fn run(target: &Target) -> Result<()> {
    let Some(answer) = fetch(target, "/v1/status")? else { return Ok(()) };
    let lines = lines(&answer);
    let width = lines.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    for (name, text) in &lines {
        output::line(&format!("{name:<width$}  {text}"));
    }
    Ok(())
}

/// One line for each field, and for each part of a field that has parts: one for every endpoint, for example.
fn lines(answer: &Value) -> Vec<(String, String)> {
    let mut lines = Vec::new();
    for (name, value) in answer.as_object().into_iter().flatten() {
        match value.as_object().filter(|parts| !parts.is_empty()) {
            Some(parts) => {
                let part =
                    |(part, value): (&String, &Value)| (format!("{name}.{part}"), cell(value));
                lines.extend(parts.iter().map(part));
            }
            None => lines.push((name.clone(), cell(value))),
        }
    }
    lines
}
