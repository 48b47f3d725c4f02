//! `lazuli audit`: the requested changes and their outcomes.

use lazuli_azure::storage::time_text;
use serde_json::Value;

use crate::args::Target;
use crate::client::Client;
use lazuli_console::Result;
use lazuli_console::output::{self, rows};

pub(crate) fn run(target: &Target, limit: u64, before: Option<u64>) -> Result<()> {
    let before = before.map_or(String::new(), |before| format!("&before={before}"));
    let mut answer = Client::find(target)?.get(&format!("/v1/audit?limit={limit}{before}"))?;
    if target.json {
        output::json(&answer);
        return Ok(());
    }
    for change in answer["changes"].as_array_mut().into_iter().flatten() {
        let time_ms = change["time_ms"].as_u64().unwrap_or(0);
        // To the second: fractions are for programs.
        let time = time_text(time_ms);
        change["time"] = Value::from(time.split('.').next().unwrap_or_default());
    }
    let columns = ["number", "time", "via", "operation", "path", "outcome", "code"];
    output::table(&columns, &rows(&answer["changes"], &columns));
    if let Some(next) = answer["next"].as_u64() {
        output::line(&format!("older ones: lazuli audit --before {next}"));
    }
    Ok(())
}
