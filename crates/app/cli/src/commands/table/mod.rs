//! `lazuli table …`: tables of any service that speaks the Tables protocol, and their entities in and out of files.

mod batch;
mod columns;
mod csv;
mod entity;
mod export;
mod frontier;
mod import;
mod pages;
mod progress;
mod source;
mod tables;
mod writer;

use std::path::Path;

use crate::args::table::{Format, TableCommand};
use crate::failure::{Failure, Result};

pub(super) fn run(command: TableCommand) -> Result<()> {
    match command {
        TableCommand::List(service) => tables::list(&service),
        TableCommand::Create { name, hashed, service } => tables::create(&name, hashed, &service),
        TableCommand::Delete { name, service } => tables::delete(&name, &service),
        TableCommand::Export(export) => export::run(&export),
        TableCommand::Import(import) => import::run(&import),
    }
}

/// Whether standard input or output is meant instead of a file.
fn is_standard(file: &Path) -> bool {
    file == Path::new("-")
}

/// The format that was asked for, or the one that the name of the file tells.
fn format_of(asked: Option<Format>, file: &Path) -> Format {
    let is_csv = file.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("csv"));
    asked.unwrap_or(if is_csv { Format::Csv } else { Format::Jsonl })
}

/// Refuses names that would be something else in a path.
fn check_table(name: &str) -> Result<()> {
    if !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'$') {
        return Ok(());
    }
    Err(Failure::usage("the name of a table has letters and digits"))
}
