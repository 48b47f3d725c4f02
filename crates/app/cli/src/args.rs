//! The command line: every command with its flags and help.

pub(crate) mod backup;
pub(crate) mod cache;
pub(crate) mod messaging;
pub(crate) mod partition;
pub(crate) mod queue;
pub(crate) mod search;
pub(crate) mod service;
pub(crate) mod sql;
pub(crate) mod transfer;

use std::path::PathBuf;
use std::sync::LazyLock;

use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

use crate::flags::SettingFlags;
use crate::simulate;

/// The version, with the commit where the program was built by `cargo xtask dist`, which names it.
pub(crate) static VERSION: LazyLock<String> = LazyLock::new(|| {
    let version = env!("CARGO_PKG_VERSION");
    match option_env!("LAZULI_COMMIT") {
        Some(commit) => format!("{version} (commit {commit})"),
        None => version.to_owned(),
    }
});

/// Lazuli: a partition-first data platform in one binary.
#[derive(Debug, Parser)]
#[command(
    name = "lazuli",
    version = VERSION.as_str(),
    after_help = "Exit codes: 0 done, 1 failed, 2 wrong usage. \
                  Secrets are never flags: set LAZULI_ACCOUNTS and LAZULI_ADMIN_TOKEN instead."
)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Start the server and serve until stopped
    Serve {
        #[command(flatten)]
        settings: SettingFlags,
    },
    /// Print the settings in force and where each comes from
    Config {
        #[command(flatten)]
        settings: SettingFlags,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show what a running server is doing
    Status(#[command(flatten)] Target),
    /// Nodes: the processes of a fleet
    #[command(subcommand)]
    Node(NodeCommand),
    /// Shards: the stores that partitions live on
    #[command(subcommand)]
    Shard(ShardCommand),
    /// Maps: containers and how their keys are spread
    #[command(subcommand)]
    Map(MapCommand),
    /// Partitions: list, split, merge, move, back up and restore them while they are in use
    #[command(subcommand)]
    Partition(partition::PartitionCommand),
    /// Backups of partitions: show and verify them
    #[command(subcommand)]
    Backup(backup::BackupCommand),
    /// Jobs: moves of partitions in the background
    #[command(subcommand)]
    Job(partition::JobCommand),
    /// Accounts and their keys
    #[command(subcommand)]
    Account(AccountCommand),
    /// Containers and their blobs: list, copy, synchronize, remove
    #[command(subcommand)]
    Blob(transfer::BlobCommand),
    /// Containers of documents and their items: import, export, query, another partition key
    #[command(subcommand)]
    Documents(transfer::DocumentsCommand),
    /// Queues and their messages: list, create, put, peek, get, clear
    #[command(subcommand)]
    Queue(queue::QueueCommand),
    /// Keys of the cache: map of slots, biggest keys, scan, delete, import and export
    #[command(subcommand)]
    Cache(cache::CacheCommand),
    /// Sharded SQL databases: shards, maps, tables, online moves, schema changes, checks
    #[command(subcommand)]
    Sql(sql::SqlCommand),
    /// Search indexes: create, load documents, query, keys, partitions
    #[command(subcommand)]
    Search(search::SearchCommand),
    /// Tables and their entities: list, create, delete, export, import
    #[command(subcommand)]
    Table(transfer::TableCommand),
    /// Queues, topics and subscriptions: list, create, delete, send, peek, purge, resubmit dead letters
    #[command(subcommand)]
    Bus(messaging::BusCommand),
    /// Event hubs: list, create, delete, send, follow live, add partitions and consumer groups
    #[command(subcommand)]
    Hub(messaging::HubCommand),
    /// Check every key of every shard and every block file: encoding, ownership, catalog, counts, checksums
    #[command(
        long_about = "Check every key of every shard: that it decodes, that it belongs to a \
                      partition its shard holds, that its container is in the catalog, and that \
                      items and bytes are as many as the partition says. Check every block file: \
                      that those which rows name are there and match their sums, and that rows \
                      name those that are there.\n\nA running server is asked to check itself; \
                      without one the data folder is checked directly."
    )]
    Fsck {
        /// Remove block files that no row refers to
        #[arg(long)]
        repair: bool,
        #[command(flatten)]
        target: Target,
    },
    /// Rebuild a lost catalog
    #[command(subcommand)]
    Catalog(CatalogCommand),
    /// Repair the folder of block files
    #[command(subcommand)]
    Blocks(BlocksCommand),
    /// Advise on the choice of keys, from the traffic so far
    Advise(#[command(flatten)] Target),
    /// List the requested changes, the newest first: when, through what, and the outcome
    Audit {
        /// How many changes
        #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=1000))]
        limit: u64,
        /// Only those before the change of this number
        #[arg(long, value_name = "NUMBER")]
        before: Option<u64>,
        #[command(flatten)]
        target: Target,
    },
    /// Run the balancer on a described fleet in virtual time, and print how even the load becomes
    #[command(after_help = simulate::args::AFTER_HELP)]
    Simulate(simulate::args::Simulate),
    /// Make the load of all shards even: split, merge and move partitions while they are in use
    Rebalance(partition::Rebalance),
    /// Print the address of the portal, and what to log in with
    Portal {
        /// A container to show: its name, or a part of it that no other has
        container: Option<String>,
        #[command(flatten)]
        target: Target,
    },
    /// Print the completion script of a shell
    Completions { shell: Shell },
    /// Write a man page for each command into a folder
    Man {
        /// The folder, created if it does not exist
        folder: PathBuf,
    },
    /// Print the version
    Version,
}

/// Where the running server is, and how to print what it answers.
#[derive(Clone, Debug, ClapArgs)]
pub(crate) struct Target {
    /// The data folder of the server [default: ./lazuli-data]
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// The settings file [default: lazuli.toml if there is one]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// The admin API, such as http://127.0.0.1:10010 [default: LAZULI_ADMIN, or that of the data folder]
    #[arg(long, value_name = "URL")]
    pub(crate) admin: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

impl Target {
    /// The admin API that was named, if one was.
    pub(crate) fn admin_url(&self) -> Option<String> {
        self.admin.clone().or_else(|| std::env::var("LAZULI_ADMIN").ok())
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum CatalogCommand {
    /// Report what a catalog rebuilt from the shards would hold; rebuild it with --accept. No server may run
    Rebuild {
        /// Rebuild the catalog
        #[arg(long)]
        accept: bool,
        #[command(flatten)]
        target: Target,
    },
    /// Move the catalog into a database, for nodes of a fleet. All shards must be in databases, and no server may run
    Move {
        /// The database, without a password
        #[arg(long, value_name = "postgres://…")]
        to: String,
        /// Where the fleet keeps large blobs: postgres://…, az://… or s3://… [default: beside the catalog]
        #[arg(long, value_name = "ADDRESS")]
        blocks: Option<String>,
        #[command(flatten)]
        target: Target,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum BlocksCommand {
    /// Report what is wrong with the folder; accept it as it is with --accept
    Repair {
        /// Accept the folder as it is, although files are missing; until then nothing is removed from it
        #[arg(long)]
        accept: bool,
        #[command(flatten)]
        target: Target,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum NodeCommand {
    /// List all nodes, and the background work that each does
    List(#[command(flatten)] Target),
    /// Prepare the node for its end: others take its background work, and load balancers are told to leave it
    Drain(#[command(flatten)] Target),
}

#[derive(Debug, Subcommand)]
pub(crate) enum ShardCommand {
    /// List all shards
    List(#[command(flatten)] Target),
    /// Add an empty shard to the running server
    Add {
        /// Its name, which must be unique
        name: String,
        /// A PostgreSQL database to keep it in, without a password [default: a folder in the data folder]
        #[arg(long, value_name = "postgres://…")]
        at: Option<String>,
        /// Its region
        #[arg(long, default_value = "local")]
        region: String,
        /// A label for placement rules; may be given more than once
        #[arg(long = "label", value_name = "NAME=VALUE")]
        labels: Vec<String>,
        #[command(flatten)]
        target: Target,
    },
    /// Report what is wrong with a shard; repair it with --keep or --accept
    Repair {
        name: String,
        /// Where catalog and shard differ about what it holds: which one is right; the other's entries are discarded
        #[arg(long)]
        keep: Option<Keep>,
        /// Accept a folder that is refused, such as an older copy; the data that it lacks is lost for good
        #[arg(long, conflicts_with = "keep")]
        accept: bool,
        #[command(flatten)]
        target: Target,
    },
    /// Move everything on a shard to others, so that it can be removed
    Drain {
        name: String,
        /// Return at once instead of waiting for the end
        #[arg(long)]
        detach: bool,
        /// Let the shard take partitions again
        #[arg(long, conflicts_with = "detach")]
        stop: bool,
        #[command(flatten)]
        target: Target,
    },
    /// Remove a shard that holds nothing; one that holds anything is refused
    Remove {
        name: String,
        #[command(flatten)]
        target: Target,
    },
}

/// Which one is right where catalog and shard differ.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Keep {
    Catalog,
    Shard,
}

#[derive(Debug, Subcommand)]
pub(crate) enum MapCommand {
    /// List all maps
    List(#[command(flatten)] Target),
    /// Show one map with its partitions
    Show {
        /// Its container: the name that `lazuli map list` prints, or a part of it that no other has
        name: String,
        #[command(flatten)]
        target: Target,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum AccountCommand {
    /// List all accounts
    List {
        /// Print their keys as well
        #[arg(long)]
        keys: bool,
        #[command(flatten)]
        target: Target,
    },
    /// Create an account with two new keys, and print them
    Create {
        /// 3 to 24 lower-case letters and digits
        name: String,
        #[command(flatten)]
        target: Target,
    },
    /// Delete an account that holds nothing; its keys are refused from then on
    Delete {
        name: String,
        #[command(flatten)]
        target: Target,
    },
    /// Replace one of the two keys of an account, and print the new one
    RotateKey {
        name: String,
        /// Which key
        #[arg(long, value_parser = clap::value_parser!(u64).range(1..=2))]
        key: u64,
        #[command(flatten)]
        target: Target,
    },
}
