//! `lazuli status`: what a running server is doing.

use serde_json::Value;

use crate::args::Target;
use crate::client::Client;
use crate::failure::Result;
use crate::output::{self, cell};

pub(crate) fn run(target: &Target) -> Result<()> {
    let answer = Client::find(target)?.get("/v1/status")?;
    if target.json {
        output::json(&answer);
        return Ok(());
    }
    if let Value::Object(fields) = &answer {
        let width = fields.keys().map(String::len).max().unwrap_or(0);
        for (name, value) in fields {
            output::line(&format!("{name:<width$}  {}", cell(value)));
        }
    }
    Ok(())
}
