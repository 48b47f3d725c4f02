//! What there is to type behind `lazuli table`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand, ValueEnum};

use super::service::{PARALLEL_MAX, Service, keys_help};

#[derive(Debug, Subcommand)]
pub(crate) enum TableCommand {
    /// List the tables of an account
    List(#[command(flatten)] Service),
    /// Create a table
    Create {
        /// 3 to 63 letters and digits, beginning with a letter
        name: String,
        /// Spread the partition keys by their hash: for keys that grow, such as times. An option of Lazuli
        #[arg(long)]
        hashed: bool,
        #[command(flatten)]
        service: Service,
    },
    /// Delete a table with all that is in it
    Delete {
        name: String,
        #[command(flatten)]
        service: Service,
    },
    /// Write the entities of a table to a file or to standard output
    #[command(after_help = AFTER_HELP)]
    Export(Export),
    /// Write the entities of a file, or of standard input, to a table
    #[command(after_help = AFTER_HELP)]
    Import(Import),
}

const AFTER_HELP: &str = concat!(
    keys_help!(),
    "\nInterrupt at any time: --resume goes on. Formats: docs/table-import-export.md"
);

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// One JSON object on each line
    Jsonl,
    /// A header, then one row for each entity
    Csv,
}

impl Format {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Jsonl => "jsonl",
            Self::Csv => "csv",
        }
    }
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Export {
    /// The table
    pub(crate) table: String,
    /// The file to write; `-` is standard output
    #[arg(default_value = "-")]
    pub(crate) file: PathBuf,
    /// How to write them [default: csv for files that end so, else jsonl]
    #[arg(long)]
    pub(crate) format: Option<Format>,
    /// Only entities that fit this OData filter, such as "PartitionKey eq 'a' and Total gt 10"
    #[arg(long, value_name = "ODATA")]
    pub(crate) filter: Option<String>,
    /// Only these properties beside the two keys, with commas between them
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) select: Vec<String>,
    /// Go on where an interrupted export of this file was; begin if there is none
    #[arg(long)]
    pub(crate) resume: bool,
    /// Replace the file if it is there, and give up an interrupted export of it
    #[arg(long, conflicts_with = "resume")]
    pub(crate) overwrite: bool,
    /// Do not show how far it is
    #[arg(long)]
    pub(crate) quiet: bool,
    #[command(flatten)]
    pub(crate) service: Service,
}

/// What an import does where an entity is already there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mode {
    /// Refuse it
    Insert,
    /// Replace all of it
    Replace,
    /// Write the properties of the file and keep its others
    Merge,
}

impl Mode {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Insert => "insert",
            Self::Replace => "replace",
            Self::Merge => "merge",
        }
    }
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Import {
    /// The table
    pub(crate) table: String,
    /// The file to read; `-` is standard input
    #[arg(default_value = "-")]
    pub(crate) file: PathBuf,
    /// How it is written [default: csv for files that end so, else jsonl]
    #[arg(long)]
    pub(crate) format: Option<Format>,
    /// What to do where an entity is already there
    #[arg(long, default_value = "replace")]
    pub(crate) mode: Mode,
    /// Create the table if it is not there
    #[arg(long)]
    pub(crate) create: bool,
    /// How many transactions to have under way at once
    #[arg(long, value_name = "N", default_value = "8",
          value_parser = clap::value_parser!(u64).range(1..=PARALLEL_MAX))]
    pub(crate) parallel: u64,
    /// Name entities that cannot be written and go on, up to a thousand of them
    #[arg(long)]
    pub(crate) skip_errors: bool,
    /// Go on where an interrupted import of this file was; begin if there is none
    #[arg(long)]
    pub(crate) resume: bool,
    /// Begin anew, though an import of this file was interrupted
    #[arg(long, conflicts_with = "resume")]
    pub(crate) restart: bool,
    /// Where to keep how far it is [default: FILE.progress; nowhere for standard input]
    #[arg(long, value_name = "FILE")]
    pub(crate) progress: Option<PathBuf>,
    /// Do not show how far it is
    #[arg(long)]
    pub(crate) quiet: bool,
    #[command(flatten)]
    pub(crate) service: Service,
}
