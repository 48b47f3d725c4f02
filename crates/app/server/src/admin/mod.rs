//! The admin API: JSON under `/v1/` behind a token, `/healthz` and `/metrics` without. On loopback only.
//!
//! One request: `routes` (path to operation), the token, one visible `match`, the operation, JSON. Refusals carry a
//! code for programs, a sentence for people, and a hint what to do.

mod accounts;
mod backups;
mod balance;
mod explorer;
mod fronts;
mod history;
mod jobs;
mod maps;
mod messaging;
mod openapi;
mod overview;
mod partition;
mod partitions;
mod portal;
mod refusal;
mod repairs;
mod request;
mod routes;
mod shards;
mod sql;
mod status;

use std::sync::Arc;
use std::time::{Duration, Instant};

use lazuli_http::uri::Query;
use lazuli_http::{Body, BodyError, Request, Response, StatusCode};
use lazuli_net::Outcome;
use lazuli_portal::{Attempts, Tried};
use serde_json::{Map, Value};

pub(crate) use backups::show_status as show_restore;

use crate::advice;
use crate::audit::{Change, Ended, Via};
use crate::health;
use crate::running::Running;
use crate::secret::Secret;
use refusal::{Refusal, Result};
use request::Operation;
use routes::{Access, Route};

/// The largest body of a request. The longest one names a shard and its labels.
const BODY_BYTES_MAX: usize = 64 * 1024;
/// The largest body of a change of which the audit log shows something: that of a message, every sign of it escaped.
const RECORDED_BODY_BYTES_MAX: usize = 512 * 1024;

/// The admin API of one server.
pub(crate) struct Admin {
    running: Arc<Running>,
    token: Secret,
    attempts: Attempts,
}

impl Admin {
    pub(crate) fn new(running: Arc<Running>, token: Secret) -> Self {
        Self { running, token, attempts: Attempts::default() }
    }

    /// Answers one request.
    pub(crate) async fn handle(self: Arc<Self>, request: Request) -> Response {
        let given = request.header("authorization").and_then(|text| text.strip_prefix("Bearer "));
        let via = match given.map(|given| self.try_token(given.trim(), Instant::now())) {
            Some(Tried::Right) => Some(Via::Api),
            Some(Tried::Wait(wait)) => return self.throttled(&request, wait),
            Some(Tried::Wrong) | None => None,
        };
        self.counted(request, via).await
    }

    /// Checks a token. After too many wrong ones all tokens are refused for a while, from the API and the portal alike.
    fn try_token(&self, text: &str, now: Instant) -> Tried {
        if let Some(wait) = self.attempts.wait(now) {
            return Tried::Wait(wait);
        }
        if self.token.matches(text) {
            return Tried::Right;
        }
        self.attempts.count_wrong(now);
        Tried::Wrong
    }

    fn throttled(&self, request: &Request, wait: Duration) -> Response {
        let found = Route::find(request.method.as_str(), &request.path, &request.query);
        let name = found.map_or("unknown", |(route, _)| route.name);
        let refusal = Refusal::too_many_tokens(wait);
        let response = refusal.response().with("retry-after", wait_seconds(wait).to_string());
        self.observe(name, &response, Duration::ZERO);
        response
    }

    /// Answers and counts one request. `via` says how the client has shown the token; none if it has not.
    async fn counted(&self, request: Request, via: Option<Via>) -> Response {
        let began = Instant::now();
        let found = Route::find(request.method.as_str(), &request.path, &request.query);
        let name = found.as_ref().map_or("unknown", |(route, _)| route.name);
        let response = match found {
            Ok((route, operation)) => self.routed(route, operation, request, via).await,
            Err(none) => Refusal::from(none).response(),
        };
        self.observe(name, &response, began.elapsed());
        response
    }

    fn observe(&self, operation: &'static str, response: &Response, took: Duration) {
        self.running.admin.observe(operation, Outcome::Status(response.status.as_u16()), took);
    }

    async fn routed(
        &self,
        route: &'static Route,
        operation: Operation,
        request: Request,
        via: Option<Via>,
    ) -> Response {
        let answered = match (route.access, via) {
            (Access::Open, _) | (Access::Read, Some(_)) => self.answer(operation, request).await,
            (Access::Change, Some(via)) => self.change(route, operation, request, via).await,
            (Access::Read | Access::Change, None) => {
                Err(Refusal::token(request.header("authorization").is_some()))
            }
        };
        let response = answered.unwrap_or_else(|refusal| refusal.response());
        #[cfg(debug_assertions)]
        let response = openapi::checked(route, response).await;
        response
    }

    /// Does what changes something, between the two lines that the audit log has of it.
    async fn change(
        &self,
        route: &'static Route,
        operation: Operation,
        mut request: Request,
        via: Via,
    ) -> Result<Response> {
        let parameters = recorded(route, &mut request).await?;
        let change = Change {
            received_ms: request.received_ms,
            via,
            operation: route.name,
            path: request.path.clone(),
            parameters,
        };
        let begun = self.running.audit.begin(change).await?;
        let answered = self.answer(operation, request).await;
        let ended = match &answered {
            Ok(response) => Ended { status: response.status.as_u16(), code: None },
            Err(refusal) => Ended { status: refusal.status(), code: Some(refusal.code()) },
        };
        begun.end(ended).await;
        answered
    }

    async fn answer(&self, operation: Operation, request: Request) -> Result<Response> {
        let running = &*self.running;
        let value = match operation {
            Operation::Health => return Ok(health_page(running)),
            Operation::Ready => return Ok(ready_page(running)),
            Operation::Metrics => return Ok(metrics(running).await),
            Operation::Status => status::status(running).await?,
            Operation::Overview => overview::overview(running).await?,
            Operation::ShowFront { name, step } => fronts::show(running, &name, step).await?,
            Operation::ShowSettings => running.settings.clone(),
            Operation::ListNodes => running.nodes.list().await?,
            Operation::DrainNode => drain_node(running).await?,
            Operation::ListShards => shards::list(running).await?,
            Operation::AddShard => shards::add(running, &body(request).await?).await?,
            Operation::RemoveShard { name } => shards::remove(running, &name).await?,
            Operation::RepairShard { name } => {
                shards::repair(running, &name, &body(request).await?).await?
            }
            Operation::PreviewRepair { name } => repairs::preview(running, &name).await?,
            Operation::PreviewBlocksRepair => repairs::preview_blocks(running),
            Operation::RepairBlocks => {
                repairs::accept_blocks(running, &body(request).await?).await?
            }
            Operation::ListMaps(filter) => maps::list(running, &filter).await?,
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
            Operation::Backup { id, stale } => return backups::take(running, id, stale).await,
            Operation::Restore(wanted) => {
                backups::restore(&running.restores, request.body, wanted).await?
            }
            Operation::ListRestores => backups::list(running).await?,
            Operation::ShowRestore { number } => backups::show(running, number).await?,
            Operation::DrainShard { name } => partitions::drain(running, &name).await?,
            Operation::FillShard { name } => partitions::fill(running, &name).await?,
            Operation::ShowBalance => balance::state(running).await?,
            Operation::PlanBalance => balance::plan(running).await?,
            Operation::BeginBalance => balance::begin(running).await?,
            Operation::StopBalance => balance::stop(running).await?,
            Operation::ListJobs => jobs::list(running).await?,
            Operation::ShowJob { number } => jobs::show(running, number).await?,
            Operation::SteerJob { number, steer } => jobs::steer(running, number, steer).await?,
            Operation::ListAccounts { keys } => accounts::list(running, keys).await,
            Operation::CreateAccount => accounts::create(running, &body(request).await?).await?,
            Operation::DeleteAccount { name } => accounts::delete(running, &name).await?,
            Operation::RotateKey { name } => {
                accounts::rotate(running, &name, &body(request).await?).await?
            }
            Operation::Check { repair } => running.check(repair).await?.to_json(),
            Operation::Advise => advice::advise(running).await?,
            Operation::Audit { before, most } => running.audit.page(before, most).await?,
            Operation::Sql(operation) => sql::run(running, operation, request).await?,
            Operation::OpenApi => return Ok(openapi::response()),
            Operation::Messaging(wanted) => messaging::run(running, wanted, request).await?,
            Operation::Explore(explore) => {
                return explorer::run(&running.owner, explore, request).await;
            }
        };
        Ok(ok(&value))
    }
}

async fn drain_node(running: &Running) -> Result<Value> {
    running.nodes.drain().await?;
    Ok(running.nodes.list().await?)
}

/// Whole seconds, and one more so that no client comes back too early.
fn wait_seconds(wait: Duration) -> u64 {
    wait.as_secs() + 1
}

/// Whether a load balancer should send requests here. A shard that is away is away for all nodes, so it does not count.
fn ready_page(running: &Running) -> Response {
    match running.nodes.is_draining() {
        false => Response::text(StatusCode::OK, "ready\n"),
        true => Response::text(StatusCode::SERVICE_UNAVAILABLE, "draining\n"),
    }
}

fn health_page(running: &Running) -> Response {
    match health::page(&running.unhealthy()) {
        None => Response::text(StatusCode::OK, "ok\n"),
        Some(reasons) => Response::text(StatusCode::SERVICE_UNAVAILABLE, reasons),
    }
}

async fn metrics(running: &Running) -> Response {
    let text = running.metrics().await;
    Response::new(StatusCode::OK)
        .with("content-type", "text/plain; version=0.0.4; charset=utf-8")
        .with_body(text)
}

/// What the audit log shows of a request beside its path: the parameters of its query, and the fields of its body that
/// the route names. A body that is read for this is put back.
async fn recorded(route: &Route, request: &mut Request) -> Result<Map<String, Value>> {
    let query = Query::parse(&request.query).unwrap_or_default();
    let text = |(name, value): (&str, &str)| (name.to_owned(), Value::from(value));
    let mut shown: Map<String, Value> = query.iter().map(text).collect();
    if route.recorded.is_empty() {
        return Ok(shown);
    }
    let body = std::mem::replace(&mut request.body, Body::empty());
    let bytes = body.collect(RECORDED_BODY_BYTES_MAX).await.map_err(unreadable)?;
    if let Ok(Value::Object(mut fields)) = serde_json::from_slice(&bytes) {
        let take = |name: &&'static str| Some(((*name).to_owned(), fields.remove(*name)?));
        shown.extend(route.recorded.iter().filter_map(take));
    }
    request.body = bytes.into();
    Ok(shown)
}

/// The JSON object that a request carries.
async fn body(request: Request) -> Result<Value> {
    body_up_to(request, BODY_BYTES_MAX).await
}

/// The same, where it may be longer.
async fn body_up_to(request: Request, bytes_max: usize) -> Result<Value> {
    let bytes = request.body.collect(bytes_max).await.map_err(unreadable)?;
    match serde_json::from_slice(&bytes) {
        Ok(value @ Value::Object(_)) => Ok(value),
        _ => Err(Refusal::bad_request("the body must be a JSON object")),
    }
}

fn unreadable(error: BodyError) -> Refusal {
    match error {
        BodyError::TooLarge => Refusal::too_large("the body is too large"),
        BodyError::TimedOut | BodyError::Broken => Refusal::bad_request(error.to_string()),
        BodyError::NoRoom => Refusal::busy(error.to_string()),
    }
}

/// What was asked for.
fn ok(value: &Value) -> Response {
    json_response(StatusCode::OK, value)
}

fn json_response(status: StatusCode, value: &Value) -> Response {
    Response::new(status).with("content-type", "application/json").with_body(format!("{value}\n"))
}
