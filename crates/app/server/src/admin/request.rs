//! Paths of the admin API to operations: one closed enum, matched without `_`.

use lazuli_http::uri::{Query, percent_decode};

/// Everything that can be asked for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Operation {
    /// Whether the server is up. Needs no token.
    Health,
    /// Figures for Prometheus. Need no token: there is nothing secret in them, and only this machine can ask.
    Metrics,
    Status,
    ListShards,
    AddShard,
    RemoveShard {
        name: String,
    },
    /// Lets catalog or shard win where they differ.
    RepairShard {
        name: String,
    },
    ListMaps,
    ShowMap {
        name: String,
    },
    ListPartitions(PartitionFilter),
    /// Splits, merges or moves a partition, or changes its state.
    ChangePartition {
        id: u64,
        change: PartitionChange,
    },
    /// Begins to move everything away from a shard.
    DrainShard {
        name: String,
    },
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
    RotateKey {
        name: String,
    },
    Check {
        repair: bool,
    },
    Advise,
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
const PARTITIONS_PER_PAGE: usize = 1_000;
const PARTITIONS_PER_PAGE_MAX: usize = 10_000;

/// Why a request is no operation.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NoOperation {
    Path,
    Method,
    Query,
    Parameter(&'static str),
}

impl Operation {
    pub(super) fn parse(method: &str, path: &str, query: &str) -> Result<Self, NoOperation> {
        let pieces: Vec<&str> = path.split('/').skip(1).collect();
        let decode = |piece: &str| match percent_decode(piece) {
            Ok(text) => Ok(text.into_owned()),
            Err(_) => Err(NoOperation::Path),
        };
        let query = Query::parse(query).map_err(|_| NoOperation::Query)?;
        match (pieces.as_slice(), method) {
            (["healthz"], "GET") => Ok(Self::Health),
            (["metrics"], "GET") => Ok(Self::Metrics),
            (["v1", "status"], "GET") => Ok(Self::Status),
            (["v1", "shards"], "GET") => Ok(Self::ListShards),
            (["v1", "shards"], "POST") => Ok(Self::AddShard),
            (["v1", "shards", name], "DELETE") => Ok(Self::RemoveShard { name: decode(name)? }),
            (["v1", "shards", name, "repair"], "POST") => {
                Ok(Self::RepairShard { name: decode(name)? })
            }
            (["v1", "maps"], "GET") => Ok(Self::ListMaps),
            (["v1", "maps", name], "GET") => Ok(Self::ShowMap { name: decode(name)? }),
            (["v1", "partitions"], "GET") => list_partitions(&query),
            (["v1", "shards", name, "drain"], "POST") => {
                Ok(Self::DrainShard { name: decode(name)? })
            }
            (["v1", "partitions", id, change], "POST") => change_partition(id, change),
            (["v1", "jobs"], "GET") => Ok(Self::ListJobs),
            (["v1", "jobs", number], "GET") => {
                Ok(Self::ShowJob { number: number.parse().map_err(|_| NoOperation::Path)? })
            }
            (["v1", "jobs", number, steer], "POST") => steer_job(number, steer),
            (["v1", "accounts"], "GET") => {
                Ok(Self::ListAccounts { keys: query.get("keys") == Some("true") })
            }
            (["v1", "accounts"], "POST") => Ok(Self::CreateAccount),
            (["v1", "accounts", name, "rotate-key"], "POST") => {
                Ok(Self::RotateKey { name: decode(name)? })
            }
            (["v1", "fsck"], "POST") => {
                Ok(Self::Check { repair: query.get("repair") == Some("true") })
            }
            (["v1", "advice"], "GET") => Ok(Self::Advise),
            (
                ["healthz" | "metrics"]
                | [
                    "v1",
                    "status" | "shards" | "maps" | "partitions" | "jobs" | "accounts" | "fsck"
                    | "advice",
                ]
                | ["v1", "shards" | "maps" | "jobs", _]
                | ["v1", "shards", _, "repair" | "drain"]
                | ["v1", "partitions", _, "split" | "merge" | "move" | "state"]
                | ["v1", "jobs", _, "pause" | "resume" | "cancel"]
                | ["v1", "accounts", _, "rotate-key"],
                _,
            ) => Err(NoOperation::Method),
            _ => Err(NoOperation::Path),
        }
    }

    /// The word by which the operation is counted.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Health => "health",
            Self::Metrics => "metrics",
            Self::Status => "status",
            Self::ListShards => "list-shards",
            Self::AddShard => "add-shard",
            Self::RemoveShard { .. } => "remove-shard",
            Self::RepairShard { .. } => "repair-shard",
            Self::ListMaps => "list-maps",
            Self::ShowMap { .. } => "show-map",
            Self::ListPartitions(_) => "list-partitions",
            Self::ChangePartition { change, .. } => match change {
                PartitionChange::Split => "split-partition",
                PartitionChange::Merge => "merge-partitions",
                PartitionChange::Move => "move-partition",
                PartitionChange::State => "set-partition-state",
            },
            Self::DrainShard { .. } => "drain-shard",
            Self::ListJobs => "list-jobs",
            Self::ShowJob { .. } => "show-job",
            Self::SteerJob { .. } => "steer-job",
            Self::ListAccounts { .. } => "list-accounts",
            Self::CreateAccount => "create-account",
            Self::RotateKey { .. } => "rotate-key",
            Self::Check { .. } => "fsck",
            Self::Advise => "advise",
        }
    }

    pub(super) fn needs_token(&self) -> bool {
        !matches!(self, Self::Health | Self::Metrics)
    }
}

fn change_partition(id: &str, change: &str) -> Result<Operation, NoOperation> {
    let id = id.parse().map_err(|_| NoOperation::Path)?;
    let change = match change {
        "split" => PartitionChange::Split,
        "merge" => PartitionChange::Merge,
        "move" => PartitionChange::Move,
        "state" => PartitionChange::State,
        _ => return Err(NoOperation::Path),
    };
    Ok(Operation::ChangePartition { id, change })
}

fn steer_job(number: &str, steer: &str) -> Result<Operation, NoOperation> {
    let number = number.parse().map_err(|_| NoOperation::Path)?;
    let steer = match steer {
        "pause" => Steer::Pause,
        "resume" => Steer::Resume,
        "cancel" => Steer::Cancel,
        _ => return Err(NoOperation::Path),
    };
    Ok(Operation::SteerJob { number, steer })
}

fn list_partitions(query: &Query<'_>) -> Result<Operation, NoOperation> {
    // An empty parameter is none.
    let text = |name: &str| query.get(name).filter(|text| !text.is_empty()).map(str::to_owned);
    let limit = match text("limit") {
        Some(text) => text.parse().map_err(|_| NoOperation::Parameter("limit"))?,
        None => PARTITIONS_PER_PAGE,
    };
    Ok(Operation::ListPartitions(PartitionFilter {
        map: text("map"),
        shard: text("shard"),
        after: text("after"),
        limit: limit.clamp(1, PARTITIONS_PER_PAGE_MAX),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_name_operations_and_their_parameters() {
        let parse = Operation::parse;
        assert_eq!(parse("GET", "/healthz", ""), Ok(Operation::Health));
        assert_eq!(
            parse("DELETE", "/v1/shards/shard-0001", ""),
            Ok(Operation::RemoveShard { name: "shard-0001".to_owned() })
        );
        assert_eq!(
            parse("GET", "/v1/maps/tables%2Fa%2Fb", ""),
            Ok(Operation::ShowMap { name: "tables/a/b".to_owned() })
        );
        assert_eq!(
            parse("GET", "/v1/partitions", "after=7&map=tables%2Fx&shard="),
            Ok(Operation::ListPartitions(PartitionFilter {
                map: Some("tables/x".to_owned()),
                shard: None,
                after: Some("7".to_owned()),
                limit: PARTITIONS_PER_PAGE,
            }))
        );
        assert_eq!(
            parse("POST", "/v1/partitions/7/move", ""),
            Ok(Operation::ChangePartition { id: 7, change: PartitionChange::Move })
        );
        assert_eq!(
            parse("POST", "/v1/jobs/9/cancel", ""),
            Ok(Operation::SteerJob { number: 9, steer: Steer::Cancel })
        );
        assert_eq!(
            parse("GET", "/v1/accounts", "keys=true"),
            Ok(Operation::ListAccounts { keys: true })
        );
    }

    #[test]
    fn what_is_no_operation_says_why() {
        let parse = Operation::parse;
        assert_eq!(parse("POST", "/v1/advice", ""), Err(NoOperation::Method));
        assert_eq!(parse("PUT", "/v1/shards", ""), Err(NoOperation::Method));
        assert_eq!(parse("GET", "/v1/partitions/7/move", ""), Err(NoOperation::Method));
        assert_eq!(parse("POST", "/v1/partitions/x/move", ""), Err(NoOperation::Path));
        assert_eq!(parse("POST", "/v1/jobs/7/explode", ""), Err(NoOperation::Path));
        assert_eq!(parse("GET", "/v1/nothing", ""), Err(NoOperation::Path));
        assert_eq!(parse("GET", "", ""), Err(NoOperation::Path));
        assert_eq!(parse("GET", "/v1/partitions", "limit=x"), Err(NoOperation::Parameter("limit")));
    }

    #[test]
    fn only_health_and_metrics_need_no_token() {
        assert!(!Operation::Health.needs_token() && !Operation::Metrics.needs_token());
        assert!(Operation::Status.needs_token() && Operation::CreateAccount.needs_token());
    }
}
