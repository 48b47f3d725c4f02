//! `lazuli catalog …`: rebuilds a lost catalog from the shards, moves one into a database.

use lazuli_server::{catalog_move, rebuild};
use serde_json::Value;

use crate::args::{CatalogCommand, Target};
use crate::client;
use crate::told::Told;
use lazuli_console::output::{self, cell, rows};
use lazuli_console::{Failure, Result};

pub(crate) fn run(command: CatalogCommand) -> Result<()> {
    match command {
        CatalogCommand::Rebuild { accept, target } => rebuild(accept, &target),
        CatalogCommand::Move { to, blocks, target } => move_to(&to, blocks.as_deref(), &target),
    }
}

fn move_to(to: &str, blocks: Option<&str>, target: &Target) -> Result<()> {
    let moved = catalog_move::offline(&client::settings(target)?, to, blocks).told()?;
    output::changed(target.json, &moved, || {
        let fields = ["rows", "shards", "files", "old"];
        let [rows, shards, files, old] = fields.map(|field| cell(&moved[field]));
        format!(
            "moved the catalog of {shards} shards, {rows} rows, and {files} files of large blobs; \
             the old catalog is in {old}"
        )
    });
    Ok(())
}

fn rebuild(accept: bool, target: &Target) -> Result<()> {
    let found = rebuild::offline(&client::settings(target)?, accept).told()?;
    print(&found, target, accept);
    match found["differences_left"].as_u64().unwrap_or(0) {
        0 => Ok(()),
        left => Err(Failure::failed(format!("{left} differences are left: see `lazuli fsck`"))),
    }
}

fn print(found: &Value, target: &Target, accept: bool) {
    if target.json {
        output::json(found);
        return;
    }
    let columns = ["name", "folder", "partitions", "start"];
    output::table(&columns, &rows(&found["shards"], &columns));
    for problem in found["problems"].as_array().into_iter().flatten() {
        output::line(&format!("- {}", cell(problem)));
    }
    let [maps, partitions, accounts] =
        ["maps", "partitions", "accounts"].map(|field| cell(&found[field]));
    let held = format!("{maps} maps with {partitions} partitions, and {accounts} accounts");
    if accept {
        output::line(&format!("rebuilt a catalog of {held}"));
    } else {
        output::line(&format!("A catalog rebuilt from these shards would hold {held}."));
        output::line("Finished jobs and reference data of the old one are lost with it.");
        output::line("`lazuli catalog rebuild --accept` rebuilds it.");
    }
}
