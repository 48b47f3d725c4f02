//! What there is to type behind `lazuli blob`.

use clap::{Args as ClapArgs, Subcommand};

use super::service::{PARALLEL_MAX, Service, keys_help};

const AFTER_HELP: &str = concat!(
    "az://CONTAINER/NAME is a blob, az://CONTAINER/PREFIX everything below PREFIX/; all else is a local path.\n",
    keys_help!(),
    "\nMore: docs/blob-copy.md"
);

#[derive(Debug, Subcommand)]
pub(crate) enum BlobCommand {
    /// List containers, or the blobs of one with size and time
    #[command(after_help = AFTER_HELP)]
    Ls(Ls),
    /// Copy between local files and blobs, or from blob to blob
    #[command(after_help = AFTER_HELP)]
    Cp(Cp),
    /// Make a target the same as its source, transferring only what differs
    #[command(
        after_help = AFTER_HELP,
        long_about = "Make a target the same as its source, transferring only what differs: in size, or \
                      in Content-MD5; where a blob has none, what is newer at the source is \
                      transferred. Run it again after an interruption: what is there is not sent \
                      again."
    )]
    Sync(Sync),
    /// Remove blobs, with their snapshots
    #[command(after_help = AFTER_HELP)]
    Rm(Rm),
    /// Create a container
    Create {
        /// 3 to 63 lower-case letters, digits and hyphens
        container: String,
        #[command(flatten)]
        service: Service,
    },
    /// Delete a container with all that is in it
    Delete {
        container: String,
        #[command(flatten)]
        service: Service,
    },
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Ls {
    /// az://CONTAINER, or az://CONTAINER/BEGINNING for names that begin so [default: the containers]
    pub(crate) place: Option<String>,
    /// List all names, not only those up to the next slash
    #[arg(long, short)]
    pub(crate) recursive: bool,
    #[command(flatten)]
    pub(crate) service: Service,
}

/// How files and blobs are transferred.
#[derive(Debug, ClapArgs)]
pub(crate) struct Transfer {
    /// Create the container if it is not there
    #[arg(long)]
    pub(crate) create: bool,
    /// Follow symbolic links of folders and files, which are left out otherwise
    #[arg(long)]
    pub(crate) follow_links: bool,
    /// How many requests to have under way at once
    #[arg(long, value_name = "N", default_value = "8",
          value_parser = clap::value_parser!(u64).range(1..=PARALLEL_MAX))]
    pub(crate) parallel: u64,
    /// Only print what would be done
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Do not show how far it is
    #[arg(long)]
    pub(crate) quiet: bool,
    #[command(flatten)]
    pub(crate) service: Service,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Cp {
    /// A file, a folder, or az://CONTAINER/NAME
    pub(crate) source: String,
    /// The same; into it if it is a folder or ends with a slash
    pub(crate) target: String,
    /// Copy everything below a folder or a prefix
    #[arg(long, short)]
    pub(crate) recursive: bool,
    #[command(flatten)]
    pub(crate) transfer: Transfer,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Sync {
    /// A folder, or az://CONTAINER/PREFIX
    pub(crate) source: String,
    /// The same
    pub(crate) target: String,
    /// Remove from the target what is not at the source
    #[arg(long)]
    pub(crate) delete: bool,
    #[command(flatten)]
    pub(crate) transfer: Transfer,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Rm {
    /// az://CONTAINER/NAME
    pub(crate) place: String,
    /// Remove everything below a prefix, or all blobs of a container
    #[arg(long, short)]
    pub(crate) recursive: bool,
    /// How many requests to have under way at once
    #[arg(long, value_name = "N", default_value = "8",
          value_parser = clap::value_parser!(u64).range(1..=PARALLEL_MAX))]
    pub(crate) parallel: u64,
    #[command(flatten)]
    pub(crate) service: Service,
}
