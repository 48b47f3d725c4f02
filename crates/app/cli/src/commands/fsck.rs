//! `lazuli fsck`: asks the running server to check itself, or checks the data folder when no server uses it.

use lazuli_server::endpoints::AdminFile;
use lazuli_server::folder::is_in_use;
use lazuli_server::fsck;
use serde_json::Value;

use crate::args::Target;
use crate::client::{self, Client};
use crate::told::Told;
use lazuli_console::output::{self, cell, rows};
use lazuli_console::{Failure, Result};

pub(crate) fn run(target: &Target, repair: bool) -> Result<()> {
    let settings = client::settings(target)?;
    // A server that was killed leaves its file behind, so it only counts while the folder is locked as well.
    let running = AdminFile::read(&settings.data).told()?.is_some() && is_in_use(&settings.data);
    let report = if target.admin_url().is_some() || running {
        Client::find(target)?.post(&format!("/v1/fsck?repair={repair}"), &Value::Null)?
    } else {
        fsck::offline(&settings, repair).told()?
    };
    let listed = report["findings"].as_array().map_or(0, Vec::len);
    let unlisted = report["findings_unlisted"].as_u64().unwrap_or(0);
    let findings = listed as u64 + unlisted;
    if target.json {
        output::json(&report);
    } else {
        print(&report, findings);
    }
    match findings {
        0 => Ok(()),
        1 => Err(Failure::failed("1 finding")),
        many => Err(Failure::failed(format!("{many} findings"))),
    }
}

fn print(report: &Value, findings: u64) {
    if findings > 0 {
        let columns = ["shard", "code", "key", "message", "hint"];
        output::table(&columns, &rows(&report["findings"], &columns));
    }
    let shards = match report["shards"].as_array().map_or(0, Vec::len) {
        1 => "1 shard".to_owned(),
        many => format!("{many} shards"),
    };
    let [keys, items] = ["keys", "items"].map(|field| cell(&report[field]));
    let files = match report["block_files"].as_u64() {
        None | Some(0) => String::new(),
        Some(1) => " and 1 block file".to_owned(),
        Some(many) => format!(" and {many} block files"),
    };
    match report["block_files_removed"].as_u64() {
        None | Some(0) => {}
        Some(1) => output::line("removed 1 block file that nothing named"),
        Some(many) => output::line(&format!("removed {many} block files that nothing named")),
    }
    let outcome = if findings == 0 { ": nothing is wrong" } else { "" };
    output::line(&format!("checked {keys} keys ({items} items){files} on {shards}{outcome}"));
}
