//! `lazuli cache …`: the arguments.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand, ValueEnum};

use super::Target;

#[derive(Debug, Subcommand)]
pub(crate) enum CacheCommand {
    /// Print which shard and which listener has which slots, for programs that route by themselves
    Map(#[command(flatten)] Place),
    /// Print the biggest and the most used keys. Every key is looked at
    Top {
        /// How many of each
        #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=10_000))]
        count: u64,
        /// Only keys that match this pattern of the service, such as user:*
        #[arg(long = "match", value_name = "PATTERN")]
        pattern: Option<String>,
        #[command(flatten)]
        database: Database,
    },
    /// Print the names of keys
    Scan {
        /// Only keys that match this pattern of the service, such as user:*
        #[arg(long = "match", value_name = "PATTERN")]
        pattern: Option<String>,
        /// Only keys of this type
        #[arg(long = "type", value_name = "TYPE")]
        kind: Option<Kind>,
        /// The most keys
        #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
        limit: u64,
        #[command(flatten)]
        database: Database,
    },
    /// Delete all keys that match a pattern
    Delete {
        /// Which keys, by a pattern of the service, such as user:*
        #[arg(long = "match", value_name = "PATTERN")]
        pattern: String,
        /// Do not ask
        #[arg(long)]
        yes: bool,
        #[command(flatten)]
        database: Database,
    },
    /// Copy the keys of an RDB file, or of a running Redis server, into the cache
    Import(#[command(flatten)] Import),
    /// Write all keys, and libraries of functions, to an RDB file, which Redis 7 and this program read
    Export {
        file: PathBuf,
        /// Replace the file if it is there
        #[arg(long)]
        overwrite: bool,
        /// The version of the file: 12 has hashes with fields that expire, and is read by Redis from 7.4 on
        #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u16).range(10..=12))]
        rdb_version: u16,
        #[command(flatten)]
        place: Place,
    },
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Import {
    /// An RDB file of Redis up to 7.4, or of `lazuli cache export`
    #[arg(required_unless_present = "from", conflicts_with = "from")]
    pub(crate) file: Option<PathBuf>,
    /// Replace keys and functions that are there already, instead of leaving them as they are
    #[arg(long, conflicts_with = "from")]
    pub(crate) replace: bool,
    /// A server to copy, such as redis://localhost:6379, by following it as a replica: everything here is replaced. The
    /// setting cache-source-hosts must name it
    #[arg(long, value_name = "redis://…")]
    pub(crate) from: Option<String>,
    /// Go on following the server after the copy, and refuse writes, until REPLICAOF NO ONE is sent
    #[arg(long, requires = "from")]
    pub(crate) stay: bool,
    /// Do not ask before everything here is replaced
    #[arg(long, requires = "from")]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) place: Place,
}

/// The types of keys.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Kind {
    String,
    List,
    Set,
    Zset,
    Hash,
    Stream,
}

/// One database of the cache.
#[derive(Clone, Debug, ClapArgs)]
pub(crate) struct Database {
    /// Its number
    #[arg(long = "database", value_name = "NUMBER", default_value_t = 0)]
    pub(crate) number: usize,
    #[command(flatten)]
    pub(crate) place: Place,
}

/// The cache of the running server.
#[derive(Clone, Debug, ClapArgs)]
pub(crate) struct Place {
    /// The account whose key opens the cache [default: the first one]
    #[arg(long, value_name = "NAME")]
    pub(crate) account: Option<String>,
    #[command(flatten)]
    pub(crate) target: Target,
}
