//! The front of documents: Cosmos DB for NoSQL over its gateway protocol, on the document shape.
//!
//! One request: `Target::parse` says what is addressed, `access` who sent it, `Operation::parse` what is asked for; the one
//! `match` below calls the operation, the operation makes one call of the shape, `response` or `error` writes the response.
//! `operations.toml` lists every operation of the service and whether it is done.

mod access;
mod account;
mod address;
mod attempt;
mod batch;
mod budget;
mod changes;
mod charge;
mod condition;
mod containers;
mod definition;
mod error;
mod feed;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod grants;
mod headers;
mod items;
pub mod limits;
mod offers;
mod patch;
mod permissions;
mod plan;
mod query;
mod ranges;
mod request;
mod resolve;
mod resources;
mod response;
mod scripts;
mod session;
mod throughput;

use std::sync::Arc;

use lazuli_azure::auth::Accounts;
use lazuli_http::{Api, Handler, Request, Response, serve_api};
use lazuli_scripts::Scripts;
use lazuli_shapes::document::Documents;
use lazuli_value::{Object, Value};

pub use access::Published;
use access::Sender;
use address::{Address, Target};
use error::{Fault, Result};
use headers::Headers;
pub use limits::Limits;
use request::Operation;
use resources::Place;
use throughput::Remembered;

/// What the front is put together from.
pub struct Parts {
    pub accounts: Arc<Accounts>,
    /// The key that emulators publish, where it is taken.
    pub published: Option<Published>,
    /// The certificate of the listener (PEM).
    pub certificate: Option<String>,
    pub limits: Limits,
}

/// The handler of the service.
pub fn handler(documents: Documents, parts: Parts) -> Handler {
    let (remembered, scripts) = (Remembered::default(), Scripts::default());
    serve_api(Front { documents, parts, remembered, scripts })
}

struct Front {
    documents: Documents,
    parts: Parts,
    remembered: Remembered,
    scripts: Scripts,
}

/// What operations need to know of the request beside their own arguments.
struct Call {
    sender: Sender,
    headers: Headers,
    received_ms: u64,
    only_reads: bool,
}

impl Call {
    /// Whether the request leaves everything as it is.
    fn reads(&self) -> bool {
        self.only_reads
    }
}

impl Front {
    /// A name that no other item has, for scripts that leave it to the server.
    fn fresh_id(&self) -> String {
        self.documents.engine().env().ids.next_id().to_string()
    }

    /// The body of a request that is an object.
    async fn body(&self, request: &mut Request) -> Result<Object> {
        let body = request.take_body().collect(self.parts.limits.item_bytes_max).await?;
        match items::parse(&body)? {
            Value::Object(body) => Ok(body),
            _ => Err(Fault::bad_request("The body must be a JSON object.")),
        }
    }
}

impl Api for Front {
    type Call = Call;
    type Operation = Operation;
    type Fault = Fault;

    const DISCARDS_BODY: bool = true;

    async fn admit(&self, request: &Request) -> Result<(Call, Operation)> {
        let target = Target::parse(&request.path)?;
        let sender = match target.address {
            // It proves who the server is to clients that have not connected yet.
            Address::Certificate => Sender { account: String::new(), grant: None },
            _ => {
                let published = self.parts.published.as_ref();
                access::check(request, &target, &self.parts.accounts, published)?
            }
        };
        let headers = Headers::parse(&request.headers)?;
        let operation = Operation::parse(&request.method, target.address.clone(), &headers)?;
        grants::check(self, &sender, &operation, &target, &headers).await?;
        let (received_ms, only_reads) = (request.received_ms, operation.only_reads());
        Ok((Call { sender, headers, received_ms, only_reads }, operation))
    }

    fn name(operation: &Operation) -> &'static str {
        operation.name()
    }

    async fn run(
        &self,
        call: &Call,
        operation: Operation,
        request: &mut Request,
    ) -> Result<Response> {
        match operation {
            Operation::ReadAccount => Ok(account::read(&call.sender.account, request)),
            Operation::ReadCertificate => account::certificate(self.parts.certificate.as_deref()),
            Operation::Resource { verb, kind, feed, id } => {
                let place = Place { kind, feed: &feed, id: id.as_deref() };
                Box::pin(resources::run(self, call, verb, &place, request)).await
            }
            Operation::ReadRanges(container) => ranges::read(self, call, &container).await,
            Operation::SwitchContainer(container) => {
                containers::switch(self, call, &container).await
            }
            Operation::RebuildIndex(container) => {
                containers::rebuild_index(self, call, &container).await
            }
            Operation::ListItems(container) => feed::list(self, call, &container).await,
            Operation::ReadItem { container, id } => items::read(self, call, &container, &id).await,
            Operation::DeleteItem { container, id } => {
                items::delete(self, call, &container, &id).await
            }
            Operation::ReadChanges(container) => changes::read(self, call, &container).await,
            Operation::DeletePartition(container) => {
                items::delete_partition(self, call, &container).await
            }
            Operation::ExecuteProcedure { .. }
            | Operation::CreateItem(_)
            | Operation::UpsertItem(_)
            | Operation::QueryItems(_)
            | Operation::PlanQuery(_)
            | Operation::RunBatch(_)
            | Operation::ReplaceItem { .. }
            | Operation::PatchItem { .. } => self.run_with_body(call, operation, request).await,
        }
    }

    fn refuse(&self, request: &Request, fault: &Fault) -> Response {
        response::refusal(request, fault)
    }

    fn cause(fault: &Fault) -> Option<&str> {
        fault.cause()
    }

    fn finish(&self, request: &Request, response: Response) -> Response {
        response::finish(request, response)
    }
}

impl Front {
    /// The operations whose body is read as a whole before they begin.
    async fn run_with_body(
        &self,
        call: &Call,
        operation: Operation,
        request: &mut Request,
    ) -> Result<Response> {
        let bytes_max = match operation {
            Operation::RunBatch(_) => self.parts.limits.batch_bytes_max,
            _ => self.parts.limits.item_bytes_max,
        };
        let body = request.take_body().collect(bytes_max).await?;
        match operation {
            Operation::CreateItem(container) => {
                items::create(self, call, &container, &body, false).await
            }
            Operation::UpsertItem(container) => {
                items::create(self, call, &container, &body, true).await
            }
            Operation::ReplaceItem { container, id } => {
                items::replace(self, call, &container, &id, &body).await
            }
            Operation::PatchItem { container, id } => {
                items::patch(self, call, &container, &id, &body).await
            }
            Operation::RunBatch(container) => batch::run(self, call, &container, &body).await,
            Operation::QueryItems(container) => query::run(self, call, &container, &body).await,
            Operation::PlanQuery(container) => plan::read(self, call, &container, &body).await,
            Operation::ExecuteProcedure { container, id } => {
                scripts::execute(self, call, &container, &id, &body).await
            }
            _ => Err(Fault::internal("an operation without a body was taken for one with")),
        }
    }
}
