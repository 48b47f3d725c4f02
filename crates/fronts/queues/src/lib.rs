//! The Azure Queue storage front: the service's protocol on the queue shape.
//!
//! One request: `Address` and `Operation::parse` say whom and what it means, the one `match` below calls the operation,
//! the operation makes one call of the shape, `response` or `error` writes the answer. `operations.toml` lists every
//! operation of the service and whether it is done.

mod access;
mod address;
mod error;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
pub mod limits;
mod message;
mod messages;
mod names;
mod queues;
mod request;
mod response;
mod service;
mod throttle;

use std::pin::Pin;
use std::sync::Arc;

use lazuli_http::auth::Accounts;
use lazuli_http::auth::access::Access;
use lazuli_http::auth::bearer::Tokens;
use lazuli_http::service::Visitor;
use lazuli_http::storage::{self, Echo, time_text};
use lazuli_http::storage_error::CommonCode;
use lazuli_http::uri::Query;
use lazuli_http::{Body, HeaderMap, Method, Request, Response};
use lazuli_shapes::queue::Queues;

use address::Address;
use error::{Fault, Result};
pub use limits::Limits;
use request::Operation;
use throttle::Throttle;

/// An answer that is on its way.
pub type Answer = Pin<Box<dyn Future<Output = Response> + Send>>;

/// What a listener of the Queue service calls for each request.
pub fn handler(
    queues: Queues,
    accounts: Arc<Accounts>,
    tokens: Tokens,
    limits: Limits,
) -> impl Fn(Request) -> Answer + Clone + Send + Sync + 'static {
    let throttle = Throttle::new(limits.messages_per_second_max);
    let front = Arc::new(Front { queues, accounts, tokens, limits, throttle });
    move |request| {
        let front = front.clone();
        Box::pin(async move { front.answer(request).await })
    }
}

struct Front {
    queues: Queues,
    accounts: Arc<Accounts>,
    tokens: Tokens,
    limits: Limits,
    throttle: Throttle,
}

/// What operations need to know of the request beside their own arguments.
struct Call {
    address: Address,
    access: Access,
    version: String,
    received_ms: u64,
}

impl Call {
    fn account(&self) -> &str {
        &self.address.target.account
    }
}

impl Front {
    async fn answer(&self, request: Request) -> Response {
        let echo = Echo::of(&request);
        let (received_ms, visitor) = (request.received_ms, Visitor::of(&request));
        let mut account = None;
        let (operation, result) = match self.admit(&request).await {
            Ok((call, operation)) => {
                account = Some(call.address.target.account.clone());
                let Request { headers, body, .. } = request;
                (Some(operation.name()), self.run(&call, operation, &headers, body).await)
            }
            Err(fault) => (None, Err(fault)),
        };
        let mut response = result.unwrap_or_else(|fault| {
            if let Some(cause) = fault.cause() {
                tracing::error!(request_id = echo.request_id, cause, "a request failed");
            }
            fault.response(&echo.request_id, &time_text(received_ms))
        });
        response.operation = operation;
        let preflight = operation == Some(Operation::Preflight.name());
        if let (Some(visitor), Some(account), false) = (visitor, account, preflight) {
            response = service::greet(self, &account, &visitor, response).await;
        }
        echo.apply(response).with("server", "Lazuli")
    }

    /// Everything that can be said of a request by its head: whom and what it means, and whether it may.
    async fn admit(&self, request: &Request) -> Result<(Call, Operation)> {
        let version = storage::version(&request.headers).map_err(|_| {
            Fault::new(CommonCode::InvalidHeaderValue).detail("HeaderName", "x-ms-version")
        })?;
        let query = Query::parse(&request.query)?;
        let address = Address::of(request, &self.accounts)?;
        // Browsers ask beforehand whether they may ask, and sign only what they ask then.
        let access = match request.method {
            Method::OPTIONS => Access::Owner,
            _ => access::of(self, request, &query, &address).await?,
        };
        let (resource, headers) = (address.resource.clone(), &request.headers);
        let operation = Operation::parse(&request.method, headers, resource, &query, &self.limits)?;
        access::check(&access, &operation)?;
        if address.target.secondary && operation.writes() {
            return Err(Fault::new(CommonCode::InsufficientAccountPermissions));
        }
        let (version, received_ms) = (version.to_owned(), request.received_ms);
        Ok((Call { address, access, version, received_ms }, operation))
    }

    async fn run(
        &self,
        call: &Call,
        operation: Operation,
        headers: &HeaderMap,
        body: Body,
    ) -> Result<Response> {
        if let (Some(queue), "o") = (call.address.resource.queue(), operation.granted_types()) {
            self.throttle.admit(call, queue)?;
        }
        let body = body.collect(self.limits.body_bytes_max).await?;
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
            Operation::ListQueues(query) => queues::list(self, call, query).await,
            Operation::GetServiceProperties => service::get_properties(self, call).await,
            Operation::SetServiceProperties => service::set_properties(self, call, body).await,
            Operation::GetServiceStats => service::stats(call),
            Operation::GetUserDelegationKey => service::user_delegation_key(self, call, body),
            Operation::Preflight => service::preflight(self, call, headers).await,
            Operation::CreateQueue { queue, metadata } => {
                queues::create(self, call, &queue, metadata).await
            }
            Operation::DeleteQueue { queue } => queues::delete(self, call, &queue).await,
            Operation::GetQueueMetadata { queue } => queues::get_metadata(self, call, &queue).await,
            Operation::SetQueueMetadata { queue, metadata } => {
                queues::set_metadata(self, call, &queue, metadata).await
            }
            Operation::GetQueueAcl { queue } => queues::get_acl(self, call, &queue).await,
            Operation::SetQueueAcl { queue } => queues::set_acl(self, call, &queue, body).await,
            Operation::PutMessage { queue, hidden_seconds, lives_seconds } => {
                messages::put(self, call, &queue, hidden_seconds, lives_seconds, body).await
            }
            Operation::GetMessages { queue, most, hidden_seconds } => {
                messages::get(self, call, &queue, most, hidden_seconds).await
            }
            Operation::PeekMessages { queue, most } => {
                messages::peek(self, call, &queue, most).await
            }
            Operation::ClearMessages { queue } => messages::clear(self, call, &queue).await,
            Operation::UpdateMessage { queue, id, receipt, hidden_seconds } => {
                let settled = (id, receipt);
                messages::update(self, call, &queue, settled, hidden_seconds, body).await
            }
            Operation::DeleteMessage { queue, id, receipt } => {
                messages::delete(self, call, &queue, id, receipt).await
            }
        }
    }
}
