//! What the admin API can be asked for: one closed enum, matched without `_`. `routes` says by which requests.

use lazuli_engine::Middle;
use lazuli_history::Step;
use lazuli_shardmap::ContainerId;

use super::explorer::Explore;
use super::messaging::Messaging;
use super::sql::SqlOperation;
use crate::restores::Wanted;

/// Everything that can be asked for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Operation {
    /// Whether the server is up. Needs no token.
    Health,
    /// Figures for Prometheus. Need no token: there is nothing secret in them, and only this machine can ask.
    Metrics,
    Status,
    /// What is kept and what is asked for, summed up.
    Overview,
    /// What a front counts and tells of itself.
    ShowFront {
        name: String,
        step: Step,
    },
    /// The settings in force, secrets masked.
    ShowSettings,
    /// Whether this node takes requests.
    Ready,
    ListNodes,
    DrainNode,
    ListShards,
    AddShard,
    RemoveShard {
        name: String,
    },
    /// Lets catalog or shard win where they differ.
    RepairShard {
        name: String,
    },
    /// What is wrong with a shard's folder, and what taking it as it is would mean.
    PreviewRepair {
        name: String,
    },
    /// The same for the folder of block files.
    PreviewBlocksRepair,
    /// Takes the folder of block files as it is.
    RepairBlocks,
    ListMaps(MapFilter),
    ShowMap {
        name: String,
    },
    /// The last day of a map's figures.
    MapHistory {
        name: String,
        step: Step,
    },
    ListPartitions(PartitionFilter),
    /// A partition with its figures and its neighbour.
    ShowPartition {
        id: u64,
    },
    /// Where a partition would be cut into halves.
    FindMiddle {
        id: u64,
        by: Middle,
    },
    /// The last day of a partition's figures.
    PartitionHistory {
        id: u64,
        step: Step,
    },
    /// The last day of the figures of everything.
    History {
        step: Step,
    },
    /// Splits, merges or moves a partition, or changes its state.
    ChangePartition {
        id: u64,
        change: PartitionChange,
    },
    /// The answer is a backup of the partition.
    Backup {
        id: u64,
        /// Whether a standby may answer, with a state that is a little old.
        stale: bool,
    },
    /// The body is a backup.
    Restore(Wanted),
    ListRestores,
    ShowRestore {
        number: u64,
    },
    /// Begins to move everything away from a shard.
    DrainShard {
        name: String,
    },
    /// Lets a shard take partitions again that was to be emptied.
    FillShard {
        name: String,
    },
    /// What the balancer does and did.
    ShowBalance,
    /// What it would do.
    PlanBalance,
    /// Lets it carry out plans until nothing is left to do.
    BeginBalance,
    /// Gives up what it has not begun.
    StopBalance,
    ListJobs,
    ShowJob {
        number: u64,
    },
    SteerJob {
        number: u64,
        steer: Steer,
    },
    ListAccounts {
        keys: bool,
    },
    CreateAccount,
    DeleteAccount {
        name: String,
    },
    RotateKey {
        name: String,
    },
    Check {
        repair: bool,
    },
    Advise,
    /// The changes that were asked for, newest first, below a number.
    Audit {
        before: Option<u64>,
        most: usize,
    },
    /// Sharded SQL databases.
    Sql(SqlOperation),
    /// What this API is, for programs.
    OpenApi,
    Explore(Explore),
    Messaging(Messaging),
}

/// What can be done to a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PartitionChange {
    Split,
    Merge,
    Move,
    State,
}

/// What can be done about a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Steer {
    Pause,
    Resume,
    Cancel,
}

/// Which maps, and how many of them.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct MapFilter {
    /// The least id of a map on the page: the `next` of the page before.
    pub(super) first: ContainerId,
    /// A part of their names.
    pub(super) name: Option<String>,
    pub(super) limit: usize,
}

/// How many maps one page has unless asked otherwise, and at most.
pub(super) const MAPS_PER_PAGE: usize = 1_000;
pub(super) const MAPS_PER_PAGE_MAX: usize = 10_000;

/// Which partitions, and how many of them.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PartitionFilter {
    pub(super) map: Option<String>,
    pub(super) shard: Option<String>,
    /// The `next` of the page before.
    pub(super) after: Option<String>,
    /// How many are looked at; a page that leaves out those of other shards may have fewer.
    pub(super) limit: usize,
}

/// How many partitions one page has unless asked otherwise, and at most.
pub(super) const PARTITIONS_PER_PAGE: usize = 1_000;
pub(super) const PARTITIONS_PER_PAGE_MAX: usize = 10_000;

/// How many changes one page of the audit log has unless asked otherwise, and at most.
pub(super) const AUDIT_PER_PAGE: usize = 100;
pub(super) const AUDIT_PER_PAGE_MAX: usize = 1_000;

/// Why a request is no operation.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NoOperation {
    Path,
    Method,
    Query,
    Parameter(&'static str),
    UnknownParameter(String),
    RepeatedParameter(String),
}
