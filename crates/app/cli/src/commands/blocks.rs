//! `lazuli blocks …`: repairs the folder of block files.

use serde_json::json;

use crate::args::{BlocksCommand, Target};
use crate::client::{Client, fetch};
use lazuli_console::Result;
use lazuli_console::output::{self, cell};

const PATH: &str = "/v1/blocks/repair";

pub(crate) fn run(command: BlocksCommand) -> Result<()> {
    match command {
        BlocksCommand::Repair { accept: false, target } => preview(&target),
        BlocksCommand::Repair { accept: true, target } => accept(&target),
    }
}

fn preview(target: &Target) -> Result<()> {
    let Some(answer) = fetch(target, PATH)? else { return Ok(()) };
    if answer["in_doubt"] != json!(true) {
        output::line("nothing is wrong with the folder of block files");
        return Ok(());
    }
    output::line(&format!("blocks: {}", cell(&answer["error"])));
    output::line("What is in the folder is served, new files are written, nothing is removed.");
    output::line("- Put the right folder back, or copy its files into this one, and start again.");
    output::line("- `lazuli blocks repair --accept` takes the folder as it is:");
    output::line(&format!("  {}.", cell(&answer["lost"])));
    Ok(())
}

fn accept(target: &Target) -> Result<()> {
    let answer = Client::find(target)?.post(PATH, &json!({ "accept": true }))?;
    output::changed(target.json, &answer, || "took the folder of block files as it is".to_owned());
    Ok(())
}
