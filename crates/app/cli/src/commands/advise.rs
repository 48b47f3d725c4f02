//! `lazuli advise`: advice on the choice of keys, from the traffic so far.

use serde_json::Value;

use crate::args::Target;
use crate::client::fetch;
use lazuli_console::Result;
use lazuli_console::output::{self, cell};

pub(crate) fn run(target: &Target) -> Result<()> {
    let Some(answer) = fetch(target, "/v1/advice")? else { return Ok(()) };
    let all = answer["advice"].as_array().map_or(&[][..], Vec::as_slice);
    for advice in all {
        let [map, finding, kind] = ["map", "finding", "kind"].map(|field| cell(&advice[field]));
        output::line(&format!("{map}: {finding} ({kind})"));
        list("evidence", &advice["evidence"]);
        list("to do", &advice["remedies"]);
        output::line("");
    }
    // The figures are kept in memory, so a restart resets them.
    let outcome = if all.is_empty() { "nothing to advise; traffic" } else { "traffic" };
    output::line(&format!(
        "{outcome} is watched since the server started, {}",
        cell(&answer["since"])
    ));
    Ok(())
}

/// Lines under one head.
fn list(head: &str, lines: &Value) {
    for (at, text) in lines.as_array().into_iter().flatten().enumerate() {
        let head = if at == 0 { head } else { "" };
        output::line(&format!("  {head:<8}  {}", cell(text)));
    }
}
