//! `lazuli partition …` and `lazuli job …`: the arguments.

use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use lazuli_server::settings::{parse_bytes, parse_time};

use super::Target;
use super::backup::{Backup, PLACES_HELP, Restore};

#[derive(Debug, Subcommand)]
pub(crate) enum PartitionCommand {
    /// List partitions with their figures
    List {
        /// Only those of this map
        #[arg(long)]
        map: Option<String>,
        /// Only those on this shard
        #[arg(long)]
        shard: Option<String>,
        #[command(flatten)]
        target: Target,
    },
    /// Split a partition in two, in place: no data is copied
    Split(Split),
    /// Merge a partition with its right neighbour on the same shard
    Merge(OnePartition),
    /// Move a partition to another shard while it is in use
    Move(Move),
    /// Take a partition offline: reads and writes are refused
    Offline(OnePartition),
    /// Take a partition online again
    Online(OnePartition),
    /// Make a partition read-only
    Readonly(OnePartition),
    /// Write a snapshot of a partition to a folder or to a container of blobs, while it is in use
    #[command(after_help = PLACES_HELP)]
    Backup(Backup),
    /// Restore backups, into the container that they were taken of or into a new one
    #[command(
        after_help = PLACES_HELP,
        long_about = "Restore backups, into the container that they were taken of or into a new one. \
                      The partitions that hold the routes of a backup are offline until all of it is \
                      there. What was cut short is restored again with the same command."
    )]
    Restore(Restore),
}

#[derive(Debug, Args)]
pub(crate) struct OnePartition {
    /// Its id, as `lazuli partition list` prints it
    pub(crate) id: u64,
    #[command(flatten)]
    pub(crate) target: Target,
}

#[derive(Debug, Args)]
pub(crate) struct OneJob {
    /// Its number, as `lazuli job list` prints it
    pub(crate) number: u64,
    #[command(flatten)]
    pub(crate) target: Target,
}

#[derive(Debug, Args)]
pub(crate) struct Split {
    /// Its id, as `lazuli partition list` prints it
    pub(crate) id: u64,
    /// The key with which the right half begins [default: the middle]
    #[arg(long, value_name = "KEY", conflicts_with_all = ["by", "isolate"])]
    pub(crate) at: Option<String>,
    /// What both halves have the same amount of
    #[arg(long, default_value = "size")]
    pub(crate) by: Middle,
    /// The key whose items get a partition of their own
    #[arg(long, value_name = "KEY", conflicts_with = "by")]
    pub(crate) isolate: Option<String>,
    #[command(flatten)]
    pub(crate) target: Target,
}

/// Where the middle of a partition is.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Middle {
    /// Half of the bytes on each side
    Size,
    /// Half of the requests on each side, as far as they are known
    Load,
}

#[derive(Debug, Args)]
pub(crate) struct Move {
    /// Its id, as `lazuli partition list` prints it
    pub(crate) id: u64,
    /// The shard to move it to
    #[arg(long, value_name = "SHARD")]
    pub(crate) to: String,
    /// Only the items of this key, which get a partition of their own first
    #[arg(long, value_name = "KEY")]
    pub(crate) shardlet: Option<String>,
    /// The longest time that writes may be blocked; a move aims at half a second
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = parse_time)]
    pub(crate) pause_limit: Duration,
    /// The most bytes that are copied in a second [default: no limit]
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    pub(crate) bandwidth: Option<u64>,
    /// Print the number of the job and return instead of waiting for the end
    #[arg(long)]
    pub(crate) detach: bool,
    #[command(flatten)]
    pub(crate) target: Target,
}

#[derive(Debug, Args)]
pub(crate) struct Rebalance {
    /// Print what would be done, with each shard before and after, and change nothing
    #[arg(long)]
    pub(crate) plan: bool,
    /// Print what is being done and what was done, and change nothing
    #[arg(long, conflicts_with = "plan")]
    pub(crate) state: bool,
    /// Return at once instead of waiting for the end
    #[arg(long, conflicts_with_all = ["plan", "state"])]
    pub(crate) detach: bool,
    /// Drop what has not started; moves that are running continue
    #[arg(long, conflicts_with_all = ["plan", "state", "detach"])]
    pub(crate) stop: bool,
    #[command(flatten)]
    pub(crate) target: Target,
}

#[derive(Debug, Subcommand)]
pub(crate) enum JobCommand {
    /// List jobs that are running, and the last finished ones
    List(#[command(flatten)] Target),
    /// Show one job
    Show(OneJob),
    /// Pause a job
    Pause(OneJob),
    /// Resume a job
    Resume(OneJob),
    /// Cancel a job; what it has copied is deleted
    Cancel(OneJob),
}
