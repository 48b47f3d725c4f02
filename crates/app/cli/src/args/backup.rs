//! `lazuli backup …`, `lazuli partition backup` and `lazuli partition restore`: the arguments.

use clap::{Args, Subcommand};

use super::service::{Service, keys_help};

pub(crate) const PLACES_HELP: &str = concat!(
    "az://CONTAINER/NAME is a blob, az://CONTAINER/PREFIX a place for blobs; all else is a local path.\n",
    keys_help!(),
    "\nMore: docs/backup.md"
);

#[derive(Debug, Args)]
pub(crate) struct Backup {
    /// Its id, as `lazuli partition list` prints it
    #[arg(required_unless_present = "map", conflicts_with = "map")]
    pub(crate) id: Option<u64>,
    /// All partitions of this map, one after another, each as of its own moment
    #[arg(long, value_name = "NAME")]
    pub(crate) map: Option<String>,
    /// A folder, or az://CONTAINER/PREFIX
    #[arg(long, value_name = "PLACE")]
    pub(crate) to: String,
    /// Let a standby of the shard's database answer, if it has one that can be read: the state is up to a minute old
    #[arg(long)]
    pub(crate) from_standby: bool,
    /// Create the container of blobs if it does not exist; a folder is always created
    #[arg(long)]
    pub(crate) create: bool,
    /// Show no progress
    #[arg(long)]
    pub(crate) quiet: bool,
    #[command(flatten)]
    pub(crate) service: Service,
}

#[derive(Debug, Args)]
pub(crate) struct Restore {
    /// Files, or az://CONTAINER/NAME
    #[arg(required = true, value_name = "BACKUP")]
    pub(crate) backups: Vec<String>,
    /// The map to restore into, created if it does not exist: its name, or the last part of it, such as that of a table
    /// [default: the one that the backup was taken of]
    #[arg(long, value_name = "MAP")]
    pub(crate) into: Option<String>,
    /// Delete the data of the partitions that the backup is restored into
    #[arg(long)]
    pub(crate) replace: bool,
    /// Show no progress
    #[arg(long)]
    pub(crate) quiet: bool,
    #[command(flatten)]
    pub(crate) service: Service,
}

#[derive(Debug, Subcommand)]
pub(crate) enum BackupCommand {
    /// Show the map, partition and LSN of a backup, without reading all of it
    #[command(after_help = PLACES_HELP)]
    Show {
        /// A file, or az://CONTAINER/NAME
        #[arg(value_name = "BACKUP")]
        backup: String,
        #[command(flatten)]
        service: Service,
    },
    /// Read backups completely and verify all checksums
    #[command(after_help = PLACES_HELP)]
    Verify {
        /// Files, or az://CONTAINER/NAME
        #[arg(required = true, value_name = "BACKUP")]
        backups: Vec<String>,
        /// Show no progress
        #[arg(long)]
        quiet: bool,
        #[command(flatten)]
        service: Service,
    },
}
