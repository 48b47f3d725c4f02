//! The Azure Tables front: the service's protocol on the record shape.
//!
//! One request: `Address` and `Operation::parse` say whom and what it means, the one `match` below calls the operation,
//! the operation makes one call of the shape, `response` or `error` writes the answer. `operations.toml` lists every
//! operation of the service and whether it is done.

mod access;
mod address;
mod entities;
mod entity;
mod entity_writer;
mod error;
mod etag;
mod filter;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
pub mod limits;
mod names;
mod query;
mod request;
mod response;
mod service;
mod tables;
mod token;
mod transaction;

use std::pin::Pin;
use std::sync::Arc;

use lazuli_http::auth::Accounts;
use lazuli_http::auth::bearer::Tokens;
use lazuli_http::service::Visitor;
use lazuli_http::storage::{self, Echo, time_text};
use lazuli_http::uri::Query;
use lazuli_http::{Body, HeaderMap, HeaderValue, Method, Request, Response};
use lazuli_shapes::record::Records;

use access::Access;
use address::Address;
use error::{Code, ErrorFormat, Fault, Result};
pub use limits::Limits;
pub use request::MAP_HEADER;
use request::{Head, Operation, Wishes};

/// An answer that is on its way.
pub type Answer = Pin<Box<dyn Future<Output = Response> + Send>>;

/// The container that a table of this name is; none if no table can have the name.
pub fn container_of(account: &str, table: &str) -> Option<String> {
    names::check_table(table).is_ok().then(|| tables::container(account, table))
}

/// What a listener of the Table service calls for each request.
pub fn handler(
    records: Records,
    accounts: Arc<Accounts>,
    tokens: Tokens,
    limits: Limits,
) -> impl Fn(Request) -> Answer + Clone + Send + Sync + 'static {
    let front = Arc::new(Front { records, accounts, tokens, limits });
    move |request| {
        let front = front.clone();
        Box::pin(async move { front.answer(request).await })
    }
}

struct Front {
    records: Records,
    accounts: Arc<Accounts>,
    tokens: Tokens,
    limits: Limits,
}

/// What operations need to know of the request beside their own arguments.
#[derive(Clone)]
struct Call {
    address: Address,
    access: Access,
    wishes: Wishes,
    /// The request's name, as errors repeat it.
    request_id: Arc<str>,
    /// The number of a request inside of a batch, by which its answer is known.
    content_id: Option<HeaderValue>,
    received_ms: u64,
}

impl Call {
    /// When the request came, as errors say it.
    fn time(&self) -> String {
        time_text(self.received_ms)
    }
}

impl Front {
    async fn answer(&self, mut request: Request) -> Response {
        let echo = Echo::of(&request);
        let visitor = Visitor::of(&request);
        let mut account = None;
        let (operation, result) = match self.admit(&request).await {
            Ok((call, operation)) => {
                account = Some(call.address.target.account.clone());
                let body = std::mem::replace(&mut request.body, Body::empty());
                let name = operation.name();
                (Some(name), self.run(&call, operation, &request.headers, body).await)
            }
            Err(fault) => (None, Err(fault)),
        };
        let mut response = result.unwrap_or_else(|fault| {
            if let Some(cause) = fault.cause() {
                tracing::error!(request_id = echo.request_id, cause, "a request failed");
            }
            let time = time_text(request.received_ms);
            fault.response(error_format(&request), &echo.request_id, &time)
        });
        response.operation = operation;
        let preflight = operation == Some(Operation::Preflight.name());
        if let (Some(visitor), Some(account), false) = (visitor, account, preflight) {
            response = service::greet(self, &account, &visitor, response).await;
        }
        echo.apply(response).with("server", "Lazuli").with("x-content-type-options", "nosniff")
    }

    /// Everything that can be said of a request by its head: whom and what it means, and whether it may.
    async fn admit(&self, request: &Request) -> Result<(Call, Operation)> {
        storage::version(&request.headers).map_err(|_| Fault::new(Code::InvalidHeaderValue))?;
        let query = Query::parse(&request.query)?;
        let address = Address::of(request, &self.accounts)?;
        // Browsers ask beforehand whether they may ask, and sign only what they ask then.
        let access = match request.method {
            Method::OPTIONS => Access::Owner,
            _ => Access::of(self, request, &query, &address).await?,
        };
        let resource = address.resource.clone();
        let head = Head { method: &request.method, headers: &request.headers };
        let operation = Operation::parse(head, resource, &query, &self.limits)?;
        access.check(&operation)?;
        if address.target.secondary && operation.writes() {
            return Err(Fault::new(Code::InsufficientAccountPermissions));
        }
        let wishes = match operation.is_json() {
            true => Wishes::of(head, &query)?,
            false => Wishes::NONE,
        };
        let (request_id, received_ms) = (request.id.to_string().into(), request.received_ms);
        let call = Call { address, access, wishes, request_id, content_id: None, received_ms };
        Ok((call, operation))
    }

    async fn run(
        &self,
        call: &Call,
        operation: Operation,
        headers: &HeaderMap,
        body: Body,
    ) -> Result<Response> {
        let bytes_max = match operation {
            Operation::EntityGroupTransaction { .. } => self.limits.transaction_bytes_max,
            _ => self.limits.body_bytes_max,
        };
        let body = body.collect(bytes_max).await?;
        self.dispatch(call, operation, headers, &body).await
    }

    async fn dispatch(
        &self,
        call: &Call,
        operation: Operation,
        headers: &HeaderMap,
        body: &[u8],
    ) -> Result<Response> {
        match operation {
            Operation::QueryTables(query) => tables::query(self, call, query).await,
            Operation::CreateTable { kind } => tables::create(self, call, kind, body).await,
            Operation::GetTable { table } => tables::get(self, call, &table).await,
            Operation::DeleteTable { table } => tables::delete(self, call, &table).await,
            Operation::GetEntity { key, select } => {
                entities::get(self, call, &key, select.as_deref()).await
            }
            Operation::QueryEntities { table, query } => {
                query::query(self, call, &table, query).await
            }
            Operation::WriteEntity(write) => entities::write(self, call, write, body).await,
            Operation::EntityGroupTransaction { boundary } => {
                transaction::run(self, call, &boundary, body).await
            }
            Operation::GetTableAcl { table } => tables::get_acl(self, call, &table).await,
            Operation::SetTableAcl { table } => tables::set_acl(self, call, &table, body).await,
            Operation::GetServiceProperties => service::get_properties(self, call).await,
            Operation::SetServiceProperties => service::set_properties(self, call, body).await,
            Operation::GetServiceStats => service::stats(call),
            Operation::Preflight => service::preflight(self, call, headers).await,
        }
    }
}

/// What a refusal of this request looks like. Operations on components answer in XML, so there it is what a client gets
/// that asks for nothing.
fn error_format(request: &Request) -> ErrorFormat {
    let query = Query::parse(&request.query).unwrap_or_default();
    let head = Head { method: &request.method, headers: &request.headers };
    let usual = if query.get("comp").is_some() { ErrorFormat::Xml } else { ErrorFormat::Json };
    head.accept(&query).and_then(ErrorFormat::parse).unwrap_or(usual)
}
