//! `lazuli node …`: the processes of a fleet.

use lazuli_azure::storage::time_text;
use serde_json::{Value, json};

use crate::args::{NodeCommand, Target};
use crate::client::{Client, fetch};
use lazuli_console::Result;
use lazuli_console::output::{self, rows};

pub(crate) fn run(command: NodeCommand) -> Result<()> {
    match command {
        NodeCommand::List(target) => list(&target),
        NodeCommand::Drain(target) => drain(&target),
    }
}

fn list(target: &Target) -> Result<()> {
    let Some(mut answer) = fetch(target, "/v1/nodes")? else { return Ok(()) };
    for node in answer["nodes"].as_array_mut().into_iter().flatten() {
        let started = node["started_ms"].as_u64().map(time_text);
        let started = started.as_deref().and_then(|time| time.split('.').next());
        node["started"] = json!(started);
        let work: Vec<&str> =
            node["work"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        node["work"] = json!(work.join(", "));
    }
    let columns = ["name", "state", "started", "version", "work", "id"];
    output::table(&columns, &rows(&answer["nodes"], &columns));
    Ok(())
}

fn drain(target: &Target) -> Result<()> {
    let answer = Client::find(target)?.post("/v1/node/drain", &json!({}))?;
    output::changed(target.json, &answer, || {
        "the node does no background work any more and says that it is not ready".to_owned()
    });
    Ok(())
}
