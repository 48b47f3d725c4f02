//! Sharded SQL databases over the admin API: routes, and the change that each action makes.
//!
//! Changes come as `POST /v1/sql/{database}/{action}` with a JSON object. The body of an action is read by its own form, so
//! a field that is missing or of the wrong type is refused before anything is done.

mod actions;

use lazuli_http::Request;
use serde_json::{Value, json};

use super::refusal::Result;
use super::request::{NoOperation, Operation};
use super::routes::{Given, Route, change, read};
use crate::running::Running;

/// What can be asked of sharded SQL databases.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SqlOperation {
    List,
    Init,
    Show { database: String },
    Sizes { database: String },
    Jobs { database: String },
    Job { database: String, number: u64 },
    Differences { database: String, shard: Option<String> },
    Act { database: String, action: String },
}

type Made = std::result::Result<Operation, NoOperation>;

/// What the audit log shows of the changes: names and bounds, never a statement, a password or an address.
const RECORDED: &[&str] = &[
    "name", "map", "kind", "key", "on", "shard", "to", "low", "high", "mapping", "at", "isolate",
    "state", "job", "repair", "keep", "count", "columns", "owner",
];

pub(super) const ROUTES: &[Route] = &[
    read("/v1/sql", "list-sql", |_| made(SqlOperation::List)),
    change("POST", "/v1/sql", "init-sql", |_| made(SqlOperation::Init)).recording(&["name"]),
    read("/v1/sql/{database}", "show-sql", |given| {
        made(SqlOperation::Show { database: database(given)? })
    }),
    read("/v1/sql/{database}/sizes", "sql-sizes", |given| {
        made(SqlOperation::Sizes { database: database(given)? })
    }),
    read("/v1/sql/{database}/jobs", "sql-jobs", |given| {
        made(SqlOperation::Jobs { database: database(given)? })
    }),
    read("/v1/sql/{database}/jobs/{number}", "sql-job", |given| {
        let number = given.text("number")?.parse().map_err(|_| NoOperation::Path)?;
        made(SqlOperation::Job { database: database(given)?, number })
    }),
    read("/v1/sql/{database}/differences", "sql-differences", |given| {
        let shard = given.parameter("shard").map(str::to_owned);
        made(SqlOperation::Differences { database: database(given)?, shard })
    })
    .taking(&["shard"]),
    change("POST", "/v1/sql/{database}/{action}", "change-sql", |given| {
        made(SqlOperation::Act { database: database(given)?, action: given.text("action")? })
    })
    .recording(RECORDED),
];

fn made(operation: SqlOperation) -> Made {
    Ok(Operation::Sql(operation))
}

fn database(given: &Given<'_, '_>) -> std::result::Result<String, NoOperation> {
    given.text("database")
}

/// Does one operation.
pub(super) async fn run(
    running: &Running,
    operation: SqlOperation,
    request: Request,
) -> Result<Value> {
    let sql = &running.sql;
    Ok(match operation {
        SqlOperation::List => sql.list().await?,
        SqlOperation::Init => actions::init(sql, super::body(request).await?).await?,
        SqlOperation::Show { database } => sql.show(&database).await?,
        SqlOperation::Sizes { database } => sql.sizes(&database).await?,
        SqlOperation::Jobs { database } => sql.jobs(&database).await?,
        SqlOperation::Job { database, number } => sql.show_job(&database, number).await?,
        SqlOperation::Differences { database, shard } => {
            let found = sql.differences(&database, shard.as_deref()).await?;
            json!({ "differences": found })
        }
        SqlOperation::Act { database, action } => {
            actions::act(sql, &database, &action, super::body(request).await?).await?
        }
    })
}
