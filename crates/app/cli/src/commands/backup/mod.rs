//! `lazuli backup …`, `lazuli partition backup` and `lazuli partition restore`.
//!
//! A backup is one file or one blob. The server sends and receives it over the admin API; the command reads and writes
//! it (`source`, `sink`), and verifies every byte on the way.

mod look;
mod restoring;
mod sink;
mod source;
mod taking;

pub(super) use restoring::restore;
pub(super) use taking::take;

use lazuli_engine::backup::{BackupHead, BackupTotals};
use lazuli_http::date::{Fraction, TICKS_PER_MILLI, format_iso8601};
use serde_json::{Value, json};

use crate::args::backup::BackupCommand;
use lazuli_console::{Failure, Result};

/// The last millisecond of the year 9999, behind which no date is written.
const TIME_MS_MAX: u64 = 253_402_300_799_999;

pub(super) fn run(command: BackupCommand) -> Result<()> {
    match command {
        BackupCommand::Show { backup, service } => look::show(&backup, &service),
        BackupCommand::Verify { backups, quiet, service } => {
            look::verify(&backups, quiet, &service)
        }
    }
}

/// The description in the head of a backup.
fn show_head(place: &str, head: &BackupHead) -> Value {
    let container = &head.container;
    let show = |bound: &[u8]| container.kind.print(&container.key, bound);
    let start = Some(&head.routes.start).filter(|start| !start.is_empty());
    json!({
        "backup": place,
        "map": container.name,
        "key": container.key.to_string(),
        "schema": container.schema,
        "partition": head.partition.0,
        "from": start.map(|start| show(start)),
        "to": head.routes.end.as_ref().map(|end| show(end)),
        "lsn": head.lsn.0,
        "taken": time_text(head.taken_ms),
    })
}

fn add_totals(shown: &mut Value, totals: &BackupTotals) {
    shown["rows"] = json!(totals.rows);
    shown["row_bytes"] = json!(totals.row_bytes);
    shown["files"] = json!(totals.files);
    shown["file_bytes"] = json!(totals.file_bytes);
}

fn time_text(ms: u64) -> String {
    format_iso8601(ms.min(TIME_MS_MAX) as i64 * TICKS_PER_MILLI, Fraction::Shortest)
}

/// The failure of a backup that cannot be parsed.
fn refused(error: &lazuli_engine::Error) -> Failure {
    Failure::failed(format!("{} ({})", error.message(), error.code()))
}
