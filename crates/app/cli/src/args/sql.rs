//! `lazuli sql …`: the arguments.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand, ValueEnum};

use super::Target;

#[derive(Debug, Subcommand)]
pub(crate) enum SqlCommand {
    /// List the sharded databases
    List(#[command(flatten)] Target),
    /// Make PostgreSQL databases the shards of a new sharded database
    Init {
        /// Its name, by which clients of the SQL endpoint connect
        database: String,
        /// A shard, as NAME=postgres://user@host/database?password_env=VARIABLE; may be given more than once
        #[arg(long = "shard", value_name = "NAME=ADDRESS", required = true)]
        shards: Vec<String>,
        #[command(flatten)]
        target: Target,
    },
    /// Show shards, tables, mappings and running jobs
    Status {
        database: String,
        /// Also rows and bytes of every table on every shard
        #[arg(long)]
        sizes: bool,
        #[command(flatten)]
        target: Target,
    },
    /// Take the triggers off all tables and forget the sharded database; all rows stay
    Forget {
        database: String,
        #[command(flatten)]
        target: Target,
    },
    /// Shards: add, drain, remove, compare and replace them
    #[command(subcommand)]
    Shard(SqlShardCommand),
    /// Maps: which keys live on which shard
    #[command(subcommand)]
    Map(SqlMapCommand),
    /// Tables: sharded, the same on all shards, or on one shard
    #[command(subcommand)]
    Table(SqlTableCommand),
    /// Logins of the SQL endpoint
    #[command(subcommand)]
    User(SqlUserCommand),
    /// Cut a mapping in two, or isolate one key; with --to the upper part moves to another shard
    Split {
        #[command(flatten)]
        on: OnMapping,
        /// The first key of the upper part; in a hash map the number of a slot
        #[arg(long, required_unless_present = "isolate")]
        at: Option<String>,
        /// Give this key a mapping of its own
        #[arg(long, value_name = "KEY", conflicts_with = "at")]
        isolate: Option<String>,
        /// Move the upper part, or the isolated key, to this shard
        #[arg(long, value_name = "SHARD")]
        to: Option<String>,
        #[command(flatten)]
        moving: Moving,
        #[command(flatten)]
        target: Target,
    },
    /// Join a mapping with the one behind it; if that is on another shard, it moves first
    Merge {
        #[command(flatten)]
        on: OnMapping,
        #[command(flatten)]
        moving: Moving,
        #[command(flatten)]
        target: Target,
    },
    /// Move a mapping to another shard while it is in use
    Move {
        #[command(flatten)]
        on: OnMapping,
        #[arg(long, value_name = "SHARD")]
        to: String,
        #[command(flatten)]
        moving: Moving,
        #[command(flatten)]
        target: Target,
    },
    /// Move everything on a shard to the others
    Drain {
        database: String,
        shard: String,
        #[command(flatten)]
        moving: Moving,
        #[command(flatten)]
        target: Target,
    },
    /// Bring a mapping online, offline or into the read-only state
    State {
        #[command(flatten)]
        on: OnMapping,
        #[arg(long)]
        state: MappingState,
        /// Leave sessions alive that were opened for the mapping
        #[arg(long)]
        keep_sessions: bool,
        #[command(flatten)]
        target: Target,
    },
    /// Run a statement that changes the schema on all shards, the canary first
    Ddl {
        database: String,
        /// The statement [default: read from --file]
        #[arg(required_unless_present = "file")]
        statement: Option<String>,
        /// A file with statements
        #[arg(long, short)]
        file: Option<PathBuf>,
        /// The shard that runs it first [default: the first one]
        #[arg(long)]
        canary: Option<String>,
        /// Stop after the canary; `lazuli sql job resume` goes on
        #[arg(long)]
        wait: bool,
        #[command(flatten)]
        target: Target,
    },
    /// Look for rows on the wrong shard, orphans, and reference tables that differ
    Check {
        database: String,
        /// Bring strays home, make reference tables alike, put missing triggers back
        #[arg(long)]
        repair: bool,
        /// Delete rows whose parents are nowhere
        #[arg(long)]
        remove_orphans: bool,
        /// A reference across shards to check: CHILD.COLUMN=PARENT.COLUMN; may be given more than once
        #[arg(long = "reference", value_name = "CHILD.COLUMN=PARENT.COLUMN")]
        references: Vec<String>,
        #[command(flatten)]
        target: Target,
    },
    /// Print ids that are unique over all shards
    NextId {
        database: String,
        #[arg(long, default_value_t = 1)]
        count: u32,
        #[command(flatten)]
        target: Target,
    },
    /// Jobs: moves and schema changes
    #[command(subcommand)]
    Job(SqlJobCommand),
}

/// The mapping that is meant: by its number, or by a key in it.
#[derive(Debug, ClapArgs)]
pub(crate) struct OnMapping {
    pub(crate) database: String,
    /// The number of the mapping
    #[arg(long, required_unless_present = "key")]
    pub(crate) mapping: Option<u64>,
    /// A key in the mapping
    #[arg(long, requires = "map")]
    pub(crate) key: Option<String>,
    /// The map of the key
    #[arg(long)]
    pub(crate) map: Option<String>,
}

/// How rows move.
#[derive(Debug, ClapArgs)]
pub(crate) struct Moving {
    /// The longest time that writers of the range may wait, in milliseconds
    #[arg(long, default_value_t = 500)]
    pub(crate) pause_limit_ms: u64,
    /// The most rows that are copied in a second
    #[arg(long)]
    pub(crate) rows_per_second: Option<u64>,
    /// Return at once instead of waiting for the end
    #[arg(long)]
    pub(crate) detach: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum MappingState {
    Online,
    ReadOnly,
    Offline,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SqlShardCommand {
    /// Add a shard; its tables must be there and empty
    Add {
        database: String,
        /// NAME=postgres://user@host/database?password_env=VARIABLE
        #[arg(value_name = "NAME=ADDRESS")]
        shard: String,
        #[arg(long, default_value = "local")]
        region: String,
        #[command(flatten)]
        target: Target,
    },
    /// Remove a shard that holds nothing
    Remove {
        database: String,
        name: String,
        #[command(flatten)]
        target: Target,
    },
    /// Let a shard take mappings again that was drained
    Fill {
        database: String,
        name: String,
        #[command(flatten)]
        target: Target,
    },
    /// Take a shard's mappings offline, because its database is gone
    Detach {
        database: String,
        name: String,
        #[command(flatten)]
        target: Target,
    },
    /// Give a shard another database, such as a restored copy of its own
    Attach {
        database: String,
        #[arg(value_name = "NAME=ADDRESS")]
        shard: String,
        #[command(flatten)]
        target: Target,
    },
    /// Show where catalog and shards differ; settle it with --keep
    Compare {
        database: String,
        /// Only this shard
        name: Option<String>,
        /// Which side is right
        #[arg(long, requires = "name")]
        keep: Option<super::Keep>,
        #[command(flatten)]
        target: Target,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum SqlMapCommand {
    /// Add a map
    Add {
        database: String,
        name: String,
        #[arg(long)]
        kind: MapKind,
        /// The types of the key's columns, as PostgreSQL names them: bigint, text, uuid …
        #[arg(long, value_delimiter = ',', required = true)]
        key: Vec<String>,
        /// The shard that holds everything at first; without it a hash map is spread over all shards
        #[arg(long, value_name = "SHARD")]
        on: Option<String>,
        #[command(flatten)]
        target: Target,
    },
    /// Remove a map without tables and mappings
    Remove {
        database: String,
        name: String,
        #[command(flatten)]
        target: Target,
    },
    /// Give keys to a shard: one key of a list map, LOW..HIGH of the others
    Assign {
        database: String,
        map: String,
        /// A key, or LOW..HIGH with min and max for the ends
        keys: String,
        #[arg(long)]
        shard: String,
        #[command(flatten)]
        target: Target,
    },
    /// Take keys out of a map; their mapping must be offline
    Unassign {
        #[command(flatten)]
        on: OnMapping,
        #[command(flatten)]
        target: Target,
    },
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum MapKind {
    List,
    Range,
    Hash,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SqlTableCommand {
    /// Shard a table by columns under a map, or keep it alike on all shards, or on one
    Add {
        database: String,
        /// NAME, or SCHEMA.NAME
        table: String,
        /// The columns of the sharding key
        #[arg(long, value_delimiter = ',', requires = "map")]
        by: Vec<String>,
        #[arg(long)]
        map: Option<String>,
        /// The same rows on every shard
        #[arg(long, conflicts_with_all = ["by", "only_on"])]
        reference: bool,
        /// All rows on this shard
        #[arg(long, value_name = "SHARD", conflicts_with = "by")]
        only_on: Option<String>,
        #[command(flatten)]
        target: Target,
    },
    /// Take a table out of the sharded database; its rows stay
    Remove {
        database: String,
        table: String,
        #[command(flatten)]
        target: Target,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum SqlUserCommand {
    /// Let somebody log in at the SQL endpoint; the password is read from LAZULI_SQL_PASSWORD
    Add {
        database: String,
        name: String,
        /// The role on the shards [default: the role of their addresses]
        #[arg(long)]
        role: Option<String>,
        #[command(flatten)]
        target: Target,
    },
    /// Remove a login
    Remove {
        database: String,
        name: String,
        #[command(flatten)]
        target: Target,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum SqlJobCommand {
    /// List jobs that run and the last ones that are over
    List {
        database: String,
        #[command(flatten)]
        target: Target,
    },
    /// Show one job
    Show {
        database: String,
        number: u64,
        #[command(flatten)]
        target: Target,
    },
    /// Call a move off that has not switched yet, or a schema change that has not begun
    Cancel {
        database: String,
        number: u64,
        #[command(flatten)]
        target: Target,
    },
    /// Let a schema change go on that waits after the canary
    Resume {
        database: String,
        number: u64,
        #[command(flatten)]
        target: Target,
    },
}
