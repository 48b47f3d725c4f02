//! The routes of the admin API: one table that says which requests there are, what each needs, and which operation it is.
//!
//! A new operation is a variant of `Operation`, a row here, and an entry in `docs/admin-api/openapi.json`.

use lazuli_engine::Middle;
use lazuli_history::Step;
use lazuli_http::uri::{Query, percent_decode};
use lazuli_shardmap::ContainerId;

use super::request::{
    AUDIT_PER_PAGE, AUDIT_PER_PAGE_MAX, MAPS_PER_PAGE, MAPS_PER_PAGE_MAX, MapFilter, NoOperation,
    Operation, PARTITIONS_PER_PAGE, PARTITIONS_PER_PAGE_MAX, PartitionChange, PartitionFilter,
    Steer,
};
use super::{explorer, messaging, sql};
use crate::restores::Wanted;

/// One kind of request.
#[derive(Debug)]
pub(super) struct Route {
    pub(super) method: &'static str,
    /// A piece in braces stands for whatever a request has there, percent-encoded.
    pub(super) path: &'static str,
    /// The parameters that its query may have.
    pub(super) parameters: &'static [&'static str],
    /// The fields of its body that the audit log shows. Only what is named here is: bodies may hold what users store.
    pub(super) recorded: &'static [&'static str],
    /// The word by which it is counted and documented.
    pub(super) name: &'static str,
    pub(super) access: Access,
    operation: Make,
}

type Make = fn(&Given<'_, '_>) -> Result<Operation, NoOperation>;

/// Who may send a request, and what it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// Everybody who reaches the port.
    Open,
    /// Needs the token. Nothing is changed.
    Read,
    /// Needs the token. The change is recorded in the audit log.
    Change,
}

/// Every route, those of the explorer, of messaging and of sharded SQL among them.
pub(super) fn all() -> impl Iterator<Item = &'static Route> {
    ROUTES.iter().chain(explorer::ROUTES).chain(messaging::ROUTES).chain(sql::ROUTES)
}

const ROUTES: &[Route] = &[
    open("/healthz", "health", |_| Ok(Operation::Health)),
    open("/readyz", "ready", |_| Ok(Operation::Ready)),
    open("/metrics", "metrics", |_| Ok(Operation::Metrics)),
    read("/v1/status", "status", |_| Ok(Operation::Status)),
    read("/v1/overview", "overview", |_| Ok(Operation::Overview)),
    read("/v1/fronts/{name}", "show-front", |given| {
        Ok(Operation::ShowFront { name: given.text("name")?, step: step(given)? })
    })
    .taking(&["step"]),
    read("/v1/settings", "show-settings", |_| Ok(Operation::ShowSettings)),
    read("/v1/nodes", "list-nodes", |_| Ok(Operation::ListNodes)),
    change("POST", "/v1/node/drain", "drain-node", |_| Ok(Operation::DrainNode)),
    read("/v1/shards", "list-shards", |_| Ok(Operation::ListShards)),
    change("POST", "/v1/shards", "add-shard", |_| Ok(Operation::AddShard))
        .recording(&["name", "region", "labels"]),
    change("DELETE", "/v1/shards/{name}", "remove-shard", |given| {
        Ok(Operation::RemoveShard { name: given.text("name")? })
    }),
    change("POST", "/v1/shards/{name}/repair", "repair-shard", |given| {
        Ok(Operation::RepairShard { name: given.text("name")? })
    })
    .recording(&["keep", "accept"]),
    read("/v1/shards/{name}/repair", "preview-repair", |given| {
        Ok(Operation::PreviewRepair { name: given.text("name")? })
    }),
    read("/v1/blocks/repair", "preview-blocks-repair", |_| Ok(Operation::PreviewBlocksRepair)),
    change("POST", "/v1/blocks/repair", "repair-blocks", |_| Ok(Operation::RepairBlocks))
        .recording(&["accept"]),
    change("POST", "/v1/shards/{name}/drain", "drain-shard", |given| {
        Ok(Operation::DrainShard { name: given.text("name")? })
    }),
    change("DELETE", "/v1/shards/{name}/drain", "fill-shard", |given| {
        Ok(Operation::FillShard { name: given.text("name")? })
    }),
    read("/v1/rebalance", "show-balance", |_| Ok(Operation::ShowBalance)),
    read("/v1/rebalance/plan", "plan-balance", |_| Ok(Operation::PlanBalance)),
    change("POST", "/v1/rebalance", "begin-balance", |_| Ok(Operation::BeginBalance)),
    change("DELETE", "/v1/rebalance", "stop-balance", |_| Ok(Operation::StopBalance)),
    read("/v1/maps", "list-maps", list_maps).taking(&["after", "name", "limit"]),
    read("/v1/maps/{name}", "show-map", |given| {
        Ok(Operation::ShowMap { name: given.text("name")? })
    }),
    read("/v1/maps/{name}/history", "map-history", |given| {
        Ok(Operation::MapHistory { name: given.text("name")?, step: step(given)? })
    })
    .taking(&["step"]),
    read("/v1/partitions", "list-partitions", list_partitions)
        .taking(&["map", "shard", "after", "limit"]),
    read("/v1/partitions/{id}", "show-partition", |given| {
        Ok(Operation::ShowPartition { id: given.number("id")? })
    }),
    read("/v1/partitions/{id}/middle", "find-middle", find_middle).taking(&["by"]),
    read("/v1/partitions/{id}/history", "partition-history", |given| {
        Ok(Operation::PartitionHistory { id: given.number("id")?, step: step(given)? })
    })
    .taking(&["step"]),
    read("/v1/partitions/{id}/backup", "backup-partition", |given| {
        Ok(Operation::Backup { id: given.number("id")?, stale: given.flag("stale")? })
    })
    .taking(&["stale"]),
    read("/v1/restores", "list-restores", |_| Ok(Operation::ListRestores)),
    change("POST", "/v1/restores", "restore", |given| {
        let into = given.parameter("into").map(str::to_owned);
        Ok(Operation::Restore(Wanted { into, replace: given.flag("replace")? }))
    })
    .taking(&["into", "replace"]),
    read("/v1/restores/{number}", "show-restore", |given| {
        Ok(Operation::ShowRestore { number: given.number("number")? })
    }),
    read("/v1/history", "history", |given| Ok(Operation::History { step: step(given)? }))
        .taking(&["step"]),
    change("POST", "/v1/partitions/{id}/split", "split-partition", |given| {
        change_partition(given, PartitionChange::Split)
    })
    .recording(&["at", "isolate", "by"]),
    change("POST", "/v1/partitions/{id}/merge", "merge-partitions", |given| {
        change_partition(given, PartitionChange::Merge)
    }),
    change("POST", "/v1/partitions/{id}/move", "move-partition", |given| {
        change_partition(given, PartitionChange::Move)
    })
    .recording(&["to", "shardlet", "pause_limit_ms", "bytes_per_second"]),
    change("POST", "/v1/partitions/{id}/state", "set-partition-state", |given| {
        change_partition(given, PartitionChange::State)
    })
    .recording(&["state"]),
    read("/v1/jobs", "list-jobs", |_| Ok(Operation::ListJobs)),
    read("/v1/jobs/{number}", "show-job", |given| {
        Ok(Operation::ShowJob { number: given.number("number")? })
    }),
    change("POST", "/v1/jobs/{number}/pause", "pause-job", |given| steer(given, Steer::Pause)),
    change("POST", "/v1/jobs/{number}/resume", "resume-job", |given| steer(given, Steer::Resume)),
    change("POST", "/v1/jobs/{number}/cancel", "cancel-job", |given| steer(given, Steer::Cancel)),
    read("/v1/accounts", "list-accounts", |given| {
        Ok(Operation::ListAccounts { keys: given.flag("keys")? })
    })
    .taking(&["keys"]),
    change("POST", "/v1/accounts", "create-account", |_| Ok(Operation::CreateAccount))
        .recording(&["name"]),
    change("DELETE", "/v1/accounts/{name}", "delete-account", |given| {
        Ok(Operation::DeleteAccount { name: given.text("name")? })
    }),
    change("POST", "/v1/accounts/{name}/rotate-key", "rotate-key", |given| {
        Ok(Operation::RotateKey { name: given.text("name")? })
    })
    .recording(&["key"]),
    change("POST", "/v1/fsck", "fsck", |given| {
        Ok(Operation::Check { repair: given.flag("repair")? })
    })
    .taking(&["repair"]),
    read("/v1/advice", "advise", |_| Ok(Operation::Advise)),
    read("/v1/audit", "audit", |given| {
        let before = given.parameter("before").map(str::parse).transpose();
        let before = before.map_err(|_| NoOperation::Parameter("before"))?;
        let most = given.limit("limit", AUDIT_PER_PAGE, AUDIT_PER_PAGE_MAX)?;
        Ok(Operation::Audit { before, most })
    })
    .taking(&["before", "limit"]),
    read("/v1/openapi.json", "openapi", |_| Ok(Operation::OpenApi)),
];

const fn open(path: &'static str, name: &'static str, operation: Make) -> Route {
    Route::new("GET", path, name, Access::Open, operation)
}

pub(super) const fn read(path: &'static str, name: &'static str, operation: Make) -> Route {
    Route::new("GET", path, name, Access::Read, operation)
}

pub(super) const fn change(
    method: &'static str,
    path: &'static str,
    name: &'static str,
    operation: Make,
) -> Route {
    Route::new(method, path, name, Access::Change, operation)
}

impl Route {
    const fn new(
        method: &'static str,
        path: &'static str,
        name: &'static str,
        access: Access,
        operation: Make,
    ) -> Self {
        Self { method, path, parameters: &[], recorded: &[], name, access, operation }
    }

    pub(super) const fn taking(mut self, parameters: &'static [&'static str]) -> Self {
        self.parameters = parameters;
        self
    }

    pub(super) const fn recording(mut self, fields: &'static [&'static str]) -> Self {
        self.recorded = fields;
        self
    }

    /// The route of a request, and the operation that it asks for.
    pub(super) fn find(
        method: &str,
        path: &str,
        query: &str,
    ) -> Result<(&'static Self, Operation), NoOperation> {
        let pieces: Vec<&str> = path.split('/').collect();
        let here = || all().filter(|route| route.is_at(&pieces));
        let Some(route) = here().find(|route| route.method == method) else {
            return Err(here().next().map_or(NoOperation::Path, |_| NoOperation::Method));
        };
        let query = Query::parse(query).map_err(|_| NoOperation::Query)?;
        let mut seen: Vec<&str> = Vec::new();
        for (name, _) in query.iter() {
            if !route.parameters.contains(&name) {
                return Err(NoOperation::UnknownParameter(name.to_owned()));
            }
            if seen.contains(&name) {
                return Err(NoOperation::RepeatedParameter(name.to_owned()));
            }
            seen.push(name);
        }
        let operation = (route.operation)(&Given { route, pieces: &pieces, query: &query })?;
        Ok((route, operation))
    }

    fn is_at(&self, pieces: &[&str]) -> bool {
        let mut left = pieces.iter();
        let fits = |piece: &str| {
            left.next().is_some_and(|given| match is_named(piece) {
                true => !given.is_empty(),
                false => piece == *given,
            })
        };
        self.path.split('/').all(fits) && left.next().is_none()
    }
}

/// Whether a piece of a route's path stands for another.
fn is_named(piece: &str) -> bool {
    piece.starts_with('{')
}

/// What a request has where its route leaves it open.
pub(super) struct Given<'r, 'q> {
    route: &'static Route,
    pieces: &'r [&'q str],
    query: &'r Query<'q>,
}

impl Given<'_, '_> {
    /// The piece of the path with this name.
    pub(super) fn text(&self, name: &'static str) -> Result<String, NoOperation> {
        let mut places = self.route.path.split('/').zip(self.pieces);
        let found = places.find(|(piece, _)| piece.trim_matches(['{', '}']) == name);
        let (_, piece) = found.ok_or(NoOperation::Path)?;
        percent_decode(piece).map(Into::into).map_err(|_| NoOperation::Path)
    }

    fn number(&self, name: &'static str) -> Result<u64, NoOperation> {
        self.text(name)?.parse().map_err(|_| NoOperation::Path)
    }

    /// A parameter of the query. An empty one is none.
    pub(super) fn parameter(&self, name: &'static str) -> Option<&str> {
        debug_assert!(self.route.parameters.contains(&name), "{name} must be in the table");
        self.query.get(name).filter(|text| !text.is_empty())
    }

    /// A parameter that must be there, be it empty.
    pub(super) fn required(&self, name: &'static str) -> Result<&str, NoOperation> {
        debug_assert!(self.route.parameters.contains(&name), "{name} must be in the table");
        self.query.get(name).ok_or(NoOperation::Parameter(name))
    }

    pub(super) fn flag(&self, name: &'static str) -> Result<bool, NoOperation> {
        match self.parameter(name) {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(_) => Err(NoOperation::Parameter(name)),
        }
    }

    /// A number from one to `most`; a larger one counts as `most`.
    pub(super) fn limit(
        &self,
        name: &'static str,
        otherwise: usize,
        most: usize,
    ) -> Result<usize, NoOperation> {
        let given = self.parameter(name).map(str::parse).transpose();
        let given = given.map_err(|_| NoOperation::Parameter(name))?;
        Ok(given.unwrap_or(otherwise).clamp(1, most))
    }
}

/// How fine a history is asked for; the finest unless said otherwise.
fn step(given: &Given<'_, '_>) -> Result<Step, NoOperation> {
    match given.parameter("step") {
        None => Ok(Step::TenSeconds),
        Some(name) => Step::of_name(name).ok_or(NoOperation::Parameter("step")),
    }
}

fn change_partition(
    given: &Given<'_, '_>,
    change: PartitionChange,
) -> Result<Operation, NoOperation> {
    Ok(Operation::ChangePartition { id: given.number("id")?, change })
}

fn find_middle(given: &Given<'_, '_>) -> Result<Operation, NoOperation> {
    let by = match given.parameter("by") {
        None | Some("size") => Middle::Size,
        Some("load") => Middle::Load,
        Some(_) => return Err(NoOperation::Parameter("by")),
    };
    Ok(Operation::FindMiddle { id: given.number("id")?, by })
}

fn steer(given: &Given<'_, '_>, steer: Steer) -> Result<Operation, NoOperation> {
    Ok(Operation::SteerJob { number: given.number("number")?, steer })
}

fn list_maps(given: &Given<'_, '_>) -> Result<Operation, NoOperation> {
    let after = given.parameter("after").map(str::parse).transpose();
    let after = after.map_err(|_| NoOperation::Parameter("after"))?;
    Ok(Operation::ListMaps(MapFilter {
        first: ContainerId(after.unwrap_or(0)),
        name: given.parameter("name").map(str::to_owned),
        limit: given.limit("limit", MAPS_PER_PAGE, MAPS_PER_PAGE_MAX)?,
    }))
}

fn list_partitions(given: &Given<'_, '_>) -> Result<Operation, NoOperation> {
    let text = |name| given.parameter(name).map(str::to_owned);
    Ok(Operation::ListPartitions(PartitionFilter {
        map: text("map"),
        shard: text("shard"),
        after: text("after"),
        limit: given.limit("limit", PARTITIONS_PER_PAGE, PARTITIONS_PER_PAGE_MAX)?,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(method: &str, path: &str, query: &str) -> Result<Operation, NoOperation> {
        Route::find(method, path, query).map(|(_, operation)| operation)
    }

    #[test]
    fn paths_name_operations_and_their_parameters() {
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
            parse("GET", "/v1/partitions/7/history", "step=10m"),
            Ok(Operation::PartitionHistory { id: 7, step: Step::TenMinutes })
        );
        assert_eq!(
            parse("GET", "/v1/maps/tables%2Fx/history", ""),
            Ok(Operation::MapHistory { name: "tables/x".to_owned(), step: Step::TenSeconds })
        );
        let backup = |stale| Ok(Operation::Backup { id: 7, stale });
        assert_eq!(parse("GET", "/v1/partitions/7/backup", ""), backup(false));
        assert_eq!(parse("GET", "/v1/partitions/7/backup", "stale=true"), backup(true));
        let wanted = Wanted { into: Some("tables/a/b".to_owned()), replace: true };
        assert_eq!(
            parse("POST", "/v1/restores", "into=tables%2Fa%2Fb&replace=true"),
            Ok(Operation::Restore(wanted))
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
        assert_eq!(parse("POST", "/v1/advice", ""), Err(NoOperation::Method));
        assert_eq!(parse("PUT", "/v1/shards", ""), Err(NoOperation::Method));
        assert_eq!(parse("GET", "/v1/partitions/7/move", ""), Err(NoOperation::Method));
        assert_eq!(parse("POST", "/v1/partitions/x/move", ""), Err(NoOperation::Path));
        assert_eq!(parse("POST", "/v1/jobs/7/explode", ""), Err(NoOperation::Path));
        for path in ["/v1/nothing", "", "/", "/v1", "/v1/status/", "//v1/status", "/v1/maps/"] {
            assert_eq!(parse("GET", path, ""), Err(NoOperation::Path), "{path}");
        }
    }

    #[test]
    fn no_parameter_is_passed_over() {
        assert_eq!(parse("GET", "/v1/partitions", "limit=x"), Err(NoOperation::Parameter("limit")));
        let by = Err(NoOperation::Parameter("by"));
        assert_eq!(parse("GET", "/v1/partitions/7/middle", "by=luck"), by);
        assert_eq!(parse("GET", "/v1/history", "step=1h"), Err(NoOperation::Parameter("step")));
        assert_eq!(parse("GET", "/v1/accounts", "keys=yes"), Err(NoOperation::Parameter("keys")));
        let unknown = NoOperation::UnknownParameter("kes".to_owned());
        assert_eq!(parse("GET", "/v1/accounts", "kes=true"), Err(unknown));
        let repeated = NoOperation::RepeatedParameter("keys".to_owned());
        assert_eq!(parse("GET", "/v1/accounts", "keys=true&keys=false"), Err(repeated));
    }

    #[test]
    fn no_two_routes_take_the_same_request_or_have_the_same_name() {
        let bare = |path: &str| -> Vec<String> {
            let piece = |piece: &str| if is_named(piece) { "{}" } else { piece }.to_owned();
            path.split('/').map(piece).collect()
        };
        for (at, one) in all().enumerate() {
            for other in all().skip(at + 1) {
                assert_ne!(one.name, other.name);
                let (left, right) = (bare(one.path), bare(other.path));
                assert!(one.method != other.method || left != right, "{} twice", one.path);
            }
        }
    }

    #[test]
    fn only_health_readiness_and_metrics_need_no_token() {
        let open = all().filter(|route| route.access == Access::Open);
        let names: Vec<&str> = open.map(|route| route.name).collect();
        assert_eq!(names, ["health", "ready", "metrics"]);
    }
}
