//! The admin API: JSON under `/v1/` behind a token, `/healthz` and `/metrics` without. On loopback only.
//!
//! One request: `routes` (path to operation), the token, one visible `match`, the operation, JSON. Refusals carry a
//! code for programs, a sentence for people, and a hint what to do.

mod accounts;
mod history;
mod jobs;
mod maps;
mod overview;
mod partition;
mod partitions;
mod portal;
mod refusal;
mod request;
mod routes;
mod shards;
mod status;

use std::sync::Arc;
use std::time::Instant;

use lazuli_http::{Request, Response, StatusCode};
use serde_json::Value;

use crate::advice;
use crate::running::Running;
use crate::secret::Secret;
use refusal::{Refusal, Result};
use request::Operation;
use routes::{Access, Route};

/// The largest body of a request. The longest one names a shard and its labels.
const BODY_BYTES_MAX: usize = 64 * 1024;

/// The admin API of one server.
pub(crate) struct Admin {
    running: Arc<Running>,
    token: Secret,
}

impl Admin {
    pub(crate) fn new(running: Arc<Running>, token: Secret) -> Self {
        Self { running, token }
    }

    /// Answers one request.
    pub(crate) async fn handle(self: Arc<Self>, request: Request) -> Response {
        let shown = self.has_token(&request);
        self.counted(request, shown).await
    }

    /// Answers and counts one request of somebody who has shown the token, or has not.
    async fn counted(&self, request: Request, shown: bool) -> Response {
        let began = Instant::now();
        let found = Route::find(request.method.as_str(), &request.path, &request.query);
        let name = found.as_ref().map_or("unknown", |(route, _)| route.name);
        let answered = match found {
            Ok((route, _)) if route.access != Access::Open && !shown => Err(Refusal::token()),
            Ok((_, operation)) => self.answer(operation, request).await,
            Err(none) => Err(none.into()),
        };
        let response = answered.unwrap_or_else(|refusal| refusal.response());
        self.running.requests.observe("admin", name, response.status.as_u16(), began.elapsed());
        response
    }

    async fn answer(&self, operation: Operation, request: Request) -> Result<Response> {
        let running = &*self.running;
        let value = match operation {
            Operation::Health => return Ok(Response::text(StatusCode::OK, "ok\n")),
            Operation::Metrics => return Ok(metrics(running).await),
            Operation::Status => status::status(running).await?,
            Operation::Overview => overview::overview(running).await?,
            Operation::ListShards => shards::list(running).await?,
            Operation::AddShard => shards::add(running, &body(request).await?).await?,
            Operation::RemoveShard { name } => shards::remove(running, &name).await?,
            Operation::RepairShard { name } => {
                shards::repair(running, &name, &body(request).await?).await?
            }
            Operation::ListMaps => maps::list(running).await?,
            Operation::ShowMap { name } => maps::show(running, &name).await?,
            Operation::MapHistory { name, step } => history::map(running, &name, step).await?,
            Operation::ListPartitions(filter) => maps::partitions(running, &filter).await?,
            Operation::ShowPartition { id } => partition::show(running, id).await?,
            Operation::FindMiddle { id, by } => partition::middle(running, id, by).await?,
            Operation::ChangePartition { id, change } => {
                partitions::change(running, id, change, &body(request).await?).await?
            }
            Operation::PartitionHistory { id, step } => {
                history::partition(running, id, step).await?
            }
            Operation::History { step } => history::everything(running, step),
            Operation::DrainShard { name } => partitions::drain(running, &name).await?,
            Operation::ListJobs => jobs::list(running).await?,
            Operation::ShowJob { number } => jobs::show(running, number).await?,
            Operation::SteerJob { number, steer } => jobs::steer(running, number, steer).await?,
            Operation::ListAccounts { keys } => accounts::list(running, keys).await,
            Operation::CreateAccount => accounts::create(running, &body(request).await?).await?,
            Operation::RotateKey { name } => {
                accounts::rotate(running, &name, &body(request).await?).await?
            }
            Operation::Check { repair } => running.check(repair).await?.to_json(),
            Operation::Advise => advice::advise(running).await?,
        };
        Ok(json_response(StatusCode::OK, &value))
    }

    fn has_token(&self, request: &Request) -> bool {
        let given = request.header("authorization").and_then(|text| text.strip_prefix("Bearer "));
        given.is_some_and(|given| self.token.matches(given.trim()))
    }
}

async fn metrics(running: &Running) -> Response {
    let text = running.metrics().await;
    Response::new(StatusCode::OK)
        .with("content-type", "text/plain; version=0.0.4; charset=utf-8")
        .with_body(text)
}

/// The JSON object that a request carries.
async fn body(request: Request) -> Result<Value> {
    let bytes = request.body.collect(BODY_BYTES_MAX).await;
    let bytes = bytes
        .map_err(|error| Refusal::bad_request(format!("the body cannot be read: {error:?}")))?;
    match serde_json::from_slice(&bytes) {
        Ok(value @ Value::Object(_)) => Ok(value),
        _ => Err(Refusal::bad_request("the body must be a JSON object")),
    }
}

fn json_response(status: StatusCode, value: &Value) -> Response {
    Response::new(status).with("content-type", "application/json").with_body(format!("{value}\n"))
}
