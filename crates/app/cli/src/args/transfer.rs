//! `lazuli table …` and `lazuli blob …`: the arguments. The options of each operation are `lazuli-transfer`'s.

use clap::Subcommand;
use lazuli_transfer::blob::{Cp, Ls, Rm, Sync};
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
