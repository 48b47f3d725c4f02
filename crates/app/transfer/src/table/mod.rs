//! Tables of an account, and their entities in and out of files.
//!
//! An export reads pages ([`export`]) and writes lines of JSON or rows of CSV (`columns`). An import reads them back
//! (`source`; `layout` for files of other programs), writes them in transactions by several connections (`import`, `writer`).

mod columns;
mod entity;
mod export;
mod import;
mod layout;
mod source;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Args, ValueEnum};
use lazuli_console::{Failure, Result, output};
use lazuli_http::uri::percent_encode;
use serde_json::{Value, json};

use crate::account::Account;
use crate::session::{Call, Session};

pub use export::export;
pub use import::import;

/// Asks for a table with hashed keys. Services other than Lazuli do not know it.
const MAP_HEADER: &str = "x-lazuli-map";
const CONTINUATION: &str = "x-ms-continuation-NextTableName";
/// The most connections of one command.
pub const PARALLEL_MAX: u64 = 64;

/// How entities are written in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// One JSON object on each line
    Jsonl,
    /// A header, then one row for each entity
    Csv,
}

/// What an import does with an entity that exists already.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Mode {
    /// Refuse it
    Insert,
    /// Replace all of it
    Replace,
    /// Write the properties of the file and keep its others
    Merge,
}

/// The name of a format or mode, as the command line takes it.
fn name_of(choice: &impl ValueEnum) -> String {
    choice.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

#[derive(Clone, Debug, Args)]
pub struct Export {
    /// The table
    #[arg(value_parser = table_name)]
    pub table: String,
    /// The file to write; `-` is standard output
    #[arg(default_value = "-")]
    pub file: PathBuf,
    /// The format of the file [default: csv for files that end so, else jsonl]
    #[arg(long)]
    pub format: Option<Format>,
    /// Only entities that match this OData filter, such as "PartitionKey eq 'a' and Total gt 10"
    #[arg(long, value_name = "ODATA")]
    pub filter: Option<String>,
    /// Only these properties and the two keys, with commas between them
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub select: Vec<String>,
    /// Continue an interrupted export of this file; start one if there is none
    #[arg(long)]
    pub resume: bool,
    /// Replace the file if it exists, and discard an interrupted export of it
    #[arg(long, conflicts_with = "resume")]
    pub overwrite: bool,
    /// Show no progress
    #[arg(long)]
    pub quiet: bool,
}

#[derive(Clone, Debug, Args)]
pub struct Import {
    /// The table
    #[arg(value_parser = table_name)]
    pub table: String,
    /// The file to read; `-` is standard input
    #[arg(default_value = "-")]
    pub file: PathBuf,
    /// The format of the file [default: csv for files that end so, else jsonl]
    #[arg(long)]
    pub format: Option<Format>,
    /// The column of a CSV file that becomes the partition key, instead of one named PartitionKey
    #[arg(long, value_name = "COLUMN")]
    pub partition_key: Option<String>,
    /// The column of a CSV file that becomes the row key, instead of one named RowKey
    #[arg(long, value_name = "COLUMN")]
    pub row_key: Option<String>,
    /// What separates the fields of a CSV file: one character, or the word tab [default: ,]
    #[arg(long, value_name = "CHARACTER")]
    pub delimiter: Option<String>,
    /// Types of columns, such as Total=Double,Count=Int32; or guess, which takes each value for what it looks like
    /// [default: text]
    #[arg(long, value_name = "COLUMN=TYPE,…|guess")]
    pub types: Option<String>,
    /// What to do with an entity that exists already
    #[arg(long, default_value = "replace")]
    pub mode: Mode,
    /// Create the table if it does not exist
    #[arg(long)]
    pub create: bool,
    /// How many transactions to send at the same time
    #[arg(long, value_name = "N", default_value = "8",
          value_parser = clap::value_parser!(u64).range(1..=PARALLEL_MAX))]
    pub parallel: u64,
    /// Name entities that cannot be written and continue, up to a thousand of them
    #[arg(long)]
    pub skip_errors: bool,
    /// Continue an interrupted import of this file; start one if there is none
    #[arg(long)]
    pub resume: bool,
    /// Start again, although an import of this file was interrupted
    #[arg(long, conflicts_with = "resume")]
    pub restart: bool,
    /// Where to keep the progress [default: FILE.progress; nowhere for standard input]
    #[arg(long, value_name = "FILE")]
    pub progress: Option<PathBuf>,
    /// Show no progress
    #[arg(long)]
    pub quiet: bool,
}

impl Import {
    /// How the file is laid out. Options that are for CSV alone are refused for others.
    fn layout(&self, format: Format) -> Result<layout::Layout> {
        let Self { partition_key, row_key, delimiter, types, .. } = self;
        let is_plain =
            [partition_key, row_key, delimiter, types].iter().all(|option| option.is_none());
        if format != Format::Csv && !is_plain {
            let message = "--partition-key, --row-key, --delimiter and --types are for CSV files";
            return Err(Failure::usage(message).hint("--format csv says that the file is one"));
        }
        let mut layout = layout::Layout {
            partition_key: partition_key.clone(),
            row_key: row_key.clone(),
            ..layout::Layout::default()
        };
        if let Some(text) = delimiter {
            layout.delimiter = layout::delimiter(text).map_err(Failure::usage)?;
        }
        if let Some(text) = types {
            layout.types = layout::types(text).map_err(Failure::usage)?;
        }
        Ok(layout)
    }
}

/// Reads the name of a table. Refuses names that would change the path of a request.
pub fn table_name(name: &str) -> std::result::Result<String, &'static str> {
    if !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'$') {
        return Ok(name.to_owned());
    }
    Err("the name of a table has letters and digits")
}

/// Whether standard input or output is meant instead of a file.
pub(crate) fn is_standard(file: &Path) -> bool {
    file == Path::new("-")
}

/// The format that was asked for, or the one that the name of the file shows.
fn format_of(asked: Option<Format>, file: &Path) -> Format {
    let is_csv = file.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("csv"));
    asked.unwrap_or(if is_csv { Format::Csv } else { Format::Jsonl })
}

/// Prints the names of all tables.
pub fn list(account: Arc<Account>, json: bool) -> Result<()> {
    let mut session = Session::new(account)?;
    let mut names: Vec<Value> = Vec::new();
    let mut query = String::new();
    loop {
        let answer = session.expect(Call { query: &query, ..Call::new("GET", "/Tables") })?;
        let page: Value = serde_json::from_slice(&answer.body)
            .map_err(|_| Failure::failed("the answer of the service is not JSON"))?;
        let tables = page["value"].as_array().into_iter().flatten();
        names.extend(tables.map(|table| table["TableName"].clone()));
        match answer.header(CONTINUATION) {
            Some(next) => query = format!("NextTableName={}", percent_encode(next)),
            None => break,
        }
    }
    if json {
        output::json(&json!({ "tables": names }));
    } else {
        names.iter().for_each(|name| output::line(&output::cell(name)));
    }
    Ok(())
}

pub fn create(account: Arc<Account>, name: &str, hashed: bool, json: bool) -> Result<()> {
    let body = json!({ "TableName": name }).to_string();
    let hash = [(MAP_HEADER, "hash")];
    let headers = if hashed { &hash[..] } else { &[] };
    let call = Call { body: body.as_bytes(), headers, ..Call::new("POST", "/Tables") };
    Session::new(account)?.expect(call)?;
    output::changed(json, &json!({ "table": name, "hashed": hashed }), || {
        let how = if hashed { ", its partition keys spread by their hash" } else { "" };
        format!("created table {name}{how}")
    });
    Ok(())
}

/// Creates a table unless it exists.
fn ensure(session: &mut Session, name: &str) -> Result<()> {
    let body = json!({ "TableName": name }).to_string();
    let call = Call { body: body.as_bytes(), ..Call::new("POST", "/Tables") };
    session.ensure(call, "TableAlreadyExists")
}

pub fn delete(account: Arc<Account>, name: &str, json: bool) -> Result<()> {
    let path = format!("/Tables('{name}')");
    Session::new(account)?.expect(Call::new("DELETE", &path))?;
    output::changed(json, &json!({ "table": name }), || format!("deleted table {name}"));
    Ok(())
}
