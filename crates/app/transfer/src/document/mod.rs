//! Items of containers in and out of files, queries, and containers with another partition key.
//!
//! An export reads pages of a query and writes lines of JSON or rows of CSV ([`export`], `rows`). An import reads them back and
//! writes them by several connections ([`import`], `writer`). [`repartition`] makes a container with another partition key of one
//! that is in use.

mod containers;
mod export;
mod import;
mod item;
mod query;
mod repartition;
mod rows;
mod service;
mod source;
mod writer;

use std::path::PathBuf;

use clap::{Args, ValueEnum};

pub use containers::{create, list, reindex};
pub use export::export;
pub use import::import;
pub use query::query;
pub use repartition::repartition;
pub use service::{Place, place};

use crate::table::PARALLEL_MAX;

/// How items are written in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// One JSON object on each line
    Jsonl,
    /// A header, then one row for each item
    Csv,
}

/// How the rows of a query are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Shown {
    /// Columns, for people
    Table,
    /// One row on each line
    Jsonl,
    /// A header, then one line for each row
    Csv,
}

/// What an import does with an item that exists already.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Mode {
    /// Refuse it
    Create,
    /// Replace it
    Upsert,
}

#[derive(Clone, Debug, Args)]
pub struct Export {
    /// The container, as DATABASE/CONTAINER
    #[arg(value_parser = place, value_name = "DATABASE/CONTAINER")]
    pub place: Place,
    /// The file to write; `-` is standard output
    #[arg(default_value = "-")]
    pub file: PathBuf,
    /// The format of the file [default: csv for files that end so, else jsonl]
    #[arg(long)]
    pub format: Option<Format>,
    /// What to export, such as "SELECT * FROM c WHERE c.total > 10"
    #[arg(long, value_name = "SQL", default_value = "SELECT * FROM c")]
    pub query: String,
    /// Keep what the service adds to items, such as _ts and _etag
    #[arg(long)]
    pub system: bool,
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
    /// The container, as DATABASE/CONTAINER
    #[arg(value_parser = place, value_name = "DATABASE/CONTAINER")]
    pub place: Place,
    /// The file to read; `-` is standard input
    #[arg(default_value = "-")]
    pub file: PathBuf,
    /// The format of the file [default: csv for files that end so, else jsonl]
    #[arg(long)]
    pub format: Option<Format>,
    /// What to do with an item that exists already
    #[arg(long, default_value = "upsert")]
    pub mode: Mode,
    /// How many requests to send at the same time
    #[arg(long, value_name = "N", default_value = "8",
          value_parser = clap::value_parser!(u64).range(1..=PARALLEL_MAX))]
    pub parallel: u64,
    /// Name items that cannot be written and continue, up to a thousand of them
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

#[derive(Clone, Debug, Args)]
pub struct Query {
    /// The container, as DATABASE/CONTAINER
    #[arg(value_parser = place, value_name = "DATABASE/CONTAINER")]
    pub place: Place,
    /// The query, such as "SELECT * FROM c WHERE c.total > @least"
    pub text: String,
    /// A parameter of the query, with its value as JSON: least=10, name='"ann"'
    #[arg(long = "param", value_name = "NAME=JSON")]
    pub parameters: Vec<String>,
    /// Ask one partition key alone, such as '"ann"' or '["tenant",7]'
    #[arg(long, value_name = "JSON")]
    pub key: Option<String>,
    /// How rows are shown [default: a table on a terminal, else jsonl]
    #[arg(long)]
    pub format: Option<Shown>,
    /// The most rows to show
    #[arg(long, value_name = "N", default_value = "1000")]
    pub most: u64,
    /// Say which indexes were used and how much was read
    #[arg(long)]
    pub explain: bool,
}

#[derive(Clone, Debug, Args)]
pub struct Repartition {
    /// The container, as DATABASE/CONTAINER
    #[arg(value_parser = place, value_name = "DATABASE/CONTAINER")]
    pub place: Place,
    /// The path of the new partition key; several make a hierarchical one
    #[arg(long = "key", value_name = "PATH", required = true)]
    pub keys: Vec<String>,
    /// The name that the former container has afterwards; until then the new one has it [default: CONTAINER-former]
    #[arg(long, value_name = "NAME")]
    pub former: Option<String>,
    /// Request units per second of the new container [default: those of the former]
    #[arg(long, value_name = "UNITS")]
    pub throughput: Option<u32>,
    /// Copy, follow and verify, but leave both containers under their names
    #[arg(long)]
    pub no_switch: bool,
    /// Delete the former container when clients have been switched
    #[arg(long, conflicts_with = "no_switch")]
    pub delete_former: bool,
    /// Where to keep the progress [default: DATABASE.CONTAINER.repartition]
    #[arg(long, value_name = "FILE")]
    pub progress: Option<PathBuf>,
    /// How many requests to send at the same time
    #[arg(long, value_name = "N", default_value = "8",
          value_parser = clap::value_parser!(u64).range(1..=PARALLEL_MAX))]
    pub parallel: u64,
    /// Show no progress
    #[arg(long)]
    pub quiet: bool,
}

/// The name of a format or mode, as the command line takes it.
fn name_of(choice: &impl ValueEnum) -> String {
    choice.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}
