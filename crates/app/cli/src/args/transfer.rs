//! `lazuli table …`, `lazuli blob …` and `lazuli documents …`: the arguments. The options of each operation are `lazuli-transfer`'s.

use clap::Subcommand;
use lazuli_transfer::blob::{Cp, Ls, Rm, Sync};
use lazuli_transfer::document::{self, Place, Query, Repartition, place};
use lazuli_transfer::table::{Export, Import, table_name};

use super::service::{On, Service, keys_help};

const TABLE_AFTER_HELP: &str = concat!(
    keys_help!(),
    "\nInterrupt at any time: --resume continues. Formats: docs/table-import-export.md"
);

const BLOB_AFTER_HELP: &str = concat!(
    "az://CONTAINER/NAME is a blob, az://CONTAINER/PREFIX everything below PREFIX/; all else is a local path.\n",
    keys_help!(),
    "\nMore: docs/blob-copy.md"
);

#[derive(Debug, Subcommand)]
pub(crate) enum TableCommand {
    /// List the tables of an account
    List(#[command(flatten)] Service),
    /// Create a table
    Create {
        /// 3 to 63 letters and digits, beginning with a letter
        #[arg(value_parser = table_name)]
        name: String,
        /// Spread the partition keys by their hash: for keys that grow, such as times. An option of Lazuli
        #[arg(long)]
        hashed: bool,
        #[command(flatten)]
        service: Service,
    },
    /// Delete a table with everything in it
    Delete {
        #[arg(value_parser = table_name)]
        name: String,
        #[command(flatten)]
        service: Service,
    },
    /// Write the entities of a table to a file or to standard output
    #[command(after_help = TABLE_AFTER_HELP)]
    Export(On<Export>),
    /// Write the entities of a file, or of standard input, to a table
    #[command(after_help = TABLE_AFTER_HELP)]
    Import(On<Import>),
}

#[derive(Debug, Subcommand)]
pub(crate) enum BlobCommand {
    /// List containers, or the blobs of one with size and time
    #[command(after_help = BLOB_AFTER_HELP)]
    Ls(On<Ls>),
    /// Copy between local files and blobs, or from blob to blob
    #[command(after_help = BLOB_AFTER_HELP)]
    Cp(On<Cp>),
    /// Make a target the same as its source, transferring only what differs
    #[command(
        after_help = BLOB_AFTER_HELP,
        long_about = "Make a target the same as its source, transferring only what differs: in size, or \
                      in Content-MD5; where a blob has none, what is newer at the source is \
                      transferred. Run it again after an interruption: what is there is not sent \
                      again."
    )]
    Sync(On<Sync>),
    /// Remove blobs, with their snapshots
    #[command(after_help = BLOB_AFTER_HELP)]
    Rm(On<Rm>),
    /// Create a container
    Create {
        /// 3 to 63 lower-case letters, digits and hyphens
        container: String,
        #[command(flatten)]
        service: Service,
    },
    /// Delete a container with everything in it
    Delete {
        container: String,
        #[command(flatten)]
        service: Service,
    },
}

const DOCUMENTS_AFTER_HELP: &str = "Keys are never flags. With --endpoint the key is AZURE_COSMOS_KEY of the environment.\n\
    Interrupt at any time: --resume continues. Formats: docs/document-import-export.md";

const REPARTITION_AFTER_HELP: &str =
    "Kill it at any time: the same command continues. More: docs/document-import-export.md";

#[derive(Debug, Subcommand)]
pub(crate) enum DocumentsCommand {
    /// List the databases and containers of an account
    List(#[command(flatten)] Service),
    /// Create a container, and its database if there is none
    Create {
        #[arg(value_parser = place, value_name = "DATABASE/CONTAINER")]
        place: Place,
        /// The path of the partition key; several make a hierarchical one
        #[arg(long = "key", value_name = "PATH", required = true)]
        keys: Vec<String>,
        /// Request units per second
        #[arg(long, value_name = "UNITS")]
        throughput: Option<u32>,
        #[command(flatten)]
        service: Service,
    },
    /// Write the items of a container, or of a query, to a file or to standard output
    #[command(after_help = DOCUMENTS_AFTER_HELP)]
    Export(On<document::Export>),
    /// Write the items of a file, or of standard input, to a container
    #[command(after_help = DOCUMENTS_AFTER_HELP)]
    Import(On<document::Import>),
    /// Run a query and print its rows
    #[command(after_help = DOCUMENTS_AFTER_HELP)]
    Query(On<Query>),
    /// Give a container that is in use another partition key
    #[command(
        after_help = REPARTITION_AFTER_HELP,
        long_about = "Give a container that is in use another partition key: its items are copied into a \
                      new container, changes are followed, all items are compared, and then the new \
                      one takes the name of the former. Clients are held back for a moment by 429, \
                      which their SDKs wait for."
    )]
    Repartition(On<Repartition>),
    /// Build the index of a container anew, where `lazuli fsck` says that it is not what the items say
    Reindex {
        #[arg(value_parser = place, value_name = "DATABASE/CONTAINER")]
        place: Place,
        /// Do not wait until it is done
        #[arg(long)]
        no_wait: bool,
        #[command(flatten)]
        service: Service,
    },
}
