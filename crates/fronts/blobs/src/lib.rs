//! The Azure Blob storage front: the service's protocol on the blob shape.
//!
//! One request: the account and `Resource` say whom it is sent to, `Operation::parse` what it means, the one `match`
//! below calls the operation, the operation makes one call of the shape, `response` or `error` writes the answer.
//! Contents stream both ways: nothing here holds more than a piece of them. `operations.toml` lists every operation of
//! the service and whether it is done.

mod access;
mod address;
mod append;
mod batch;
mod block_list;
mod blocks;
mod codes;
mod containers;
mod copy;
mod delete;
mod error;
mod etag;
mod filter;
mod find;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod immutability;
mod lake;
mod leases;
pub mod limits;
mod list;
mod listing;
mod names;
mod options;
mod pages;
mod properties;
mod put;
mod range;
mod read;
mod request;
mod response;
mod service;
mod service_properties;
mod snapshots;
mod source;
mod tags;
mod tiers;
mod token;
mod website;

use std::pin::Pin;
use std::sync::{Arc, Mutex};

use lazuli_http::account::Target;
use lazuli_http::auth::Accounts;
use lazuli_http::auth::access::Access;
use lazuli_http::auth::bearer::Tokens;
use lazuli_http::date::{Fraction, TICKS_PER_MILLI, format_iso8601};
use lazuli_http::service::Visitor;
use lazuli_http::storage::{self, Echo};
use lazuli_http::uri::Query;
use lazuli_http::{Body, HeaderMap, Request, Response};
use lazuli_shapes::blob::{BlobAddress, Blobs, ContainerAddress, CustomerKey};

use address::Resource;
use error::{Common, Fault, Result};
pub use limits::Limits;
use request::{BlobOperation, BlobPath, ContainerOperation, Head, Operation, ServiceOperation};
use service_properties::Kept;

/// An answer that is on its way.
pub type Answer = Pin<Box<dyn Future<Output = Response> + Send>>;

/// What a listener of the Blob service calls for each request.
pub fn handler(
    blobs: Blobs,
    accounts: Arc<Accounts>,
    tokens: Tokens,
    limits: Limits,
) -> impl Fn(Request) -> Answer + Clone + Send + Sync + 'static {
    let front = Arc::new(Front { blobs, accounts, tokens, limits, kept: Mutex::default() });
    move |request| {
        let front = front.clone();
        Box::pin(async move { front.answer(request).await })
    }
}

struct Front {
    blobs: Blobs,
    accounts: Arc<Accounts>,
    tokens: Tokens,
    limits: Limits,
    /// The properties of services as they were read last.
    kept: Mutex<Kept>,
}

/// What operations need to know of the request beside their own arguments.
#[derive(Clone)]
struct Call {
    target: Target,
    access: Access,
    /// The key that the client wants contents to be encrypted with.
    key: Option<CustomerKey>,
    version: String,
    request_id: Arc<str>,
    received_ms: u64,
    secure: bool,
    peer: std::net::SocketAddr,
}

impl Call {
    fn container(&self, container: &str) -> ContainerAddress {
        ContainerAddress {
            account: self.target.account.to_string(),
            container: container.to_owned(),
        }
    }

    fn blob(&self, path: &BlobPath) -> BlobAddress {
        BlobAddress {
            account: self.target.account.to_string(),
            container: path.container.clone(),
            name: path.name.clone(),
        }
    }

    /// When the request came, as errors say it.
    fn time(&self) -> String {
        time_text(self.received_ms)
    }
}

impl Front {
    async fn answer(&self, mut request: Request) -> Response {
        let echo = Echo::of(&request);
        let visitor = Visitor::of(&request);
        let received_ms = request.received_ms;
        let mut body = std::mem::replace(&mut request.body, Body::empty());
        let mut account = None;
        let (operation, result) = match self.admit(&request, &body).await {
            Ok((call, operation)) => {
                account = Some(call.target.account.clone());
                let (name, headers) = (operation.name(), &request.headers);
                (Some(name), self.dispatch(&call, operation, headers, &mut body).await)
            }
            Err(fault) => (None, Err(fault)),
        };
        let mut response = match result {
            Ok(response) => response,
            Err(fault) => {
                if let Some(cause) = fault.cause() {
                    tracing::error!(request_id = echo.request_id, cause, "a request failed");
                }
                // So that a client that is still sending gets to read why.
                body.discard().await;
                fault.response(&echo.request_id, &time_text(received_ms))
            }
        };
        response.operation = operation;
        if let (Some(visitor), Some(account)) = (visitor, account)
            && operation != Some(Operation::Preflight.name())
            && let Ok(properties) = self.properties(&account).await
        {
            response = visitor.greet(&properties.common.cors, response);
        }
        echo.apply(response).with("server", "Lazuli").with("x-content-type-options", "nosniff")
    }

    /// Everything that can be said of a request by its head: whom and what it means, and whether it may.
    async fn admit(&self, request: &Request, body: &Body) -> Result<(Call, Operation)> {
        let version = storage::version(&request.headers)
            .map_err(|_| Fault::new(Common::InvalidHeaderValue))?;
        let query = Query::parse(&request.query)?;
        let (target, path) =
            Target::of(request, &self.accounts).ok_or_else(|| Fault::new(Common::InvalidUri))?;
        let head = Head { method: &request.method, headers: &request.headers, query: &query };
        let resource = Resource::parse(path, head)?;
        let is_preflight = request.method == lazuli_http::Method::OPTIONS;
        let mut call = Call {
            key: None,
            version: version.to_owned(),
            request_id: request.id.to_string().into(),
            received_ms: request.received_ms,
            secure: request.secure,
            peer: request.peer,
            access: Access::Anonymous,
            target,
        };
        if website::is_meant(request, &call) && !is_preflight {
            website::check(&request.method)?;
            return Ok((call, Operation::Website(path.to_owned())));
        }
        // Browsers ask beforehand whether they may ask, and sign only what they ask then.
        if !is_preflight {
            let account = call.target.account.clone();
            call.access = access::sender(self, request, &query, &account, &resource).await?;
        }
        let operation = Operation::parse(head, resource, &self.limits)?;
        access::check(self, &call.access, &operation, &call.target.account, version).await?;
        if call.target.secondary && operation.writes() {
            return Err(Fault::new(Common::InsufficientAccountPermissions));
        }
        if operation.has_content() && body.length().is_none() {
            return Err(Fault::new(Common::MissingContentLengthHeader));
        }
        call.key = options::customer_key(head, "x-ms-")?;
        Ok((call, operation))
    }

    async fn dispatch(
        &self,
        call: &Call,
        operation: Operation,
        headers: &HeaderMap,
        body: &mut Body,
    ) -> Result<Response> {
        match operation {
            Operation::Preflight => service::preflight(self, call, headers).await,
            Operation::Website(path) => website::get(self, call, &path, headers).await,
            Operation::DataLake(container) => {
                Err(lake::refuse(self, call, container.as_deref()).await)
            }
            Operation::Service(operation) => self.dispatch_service(call, operation, body).await,
            Operation::Container(container, operation) => {
                self.dispatch_container(call, &container, operation, body).await
            }
            Operation::Blob(path, operation) => {
                self.dispatch_blob(call, &path, *operation, body).await
            }
        }
    }

    async fn dispatch_service(
        &self,
        call: &Call,
        operation: ServiceOperation,
        body: &mut Body,
    ) -> Result<Response> {
        match operation {
            ServiceOperation::GetProperties => service::get_properties(self, call).await,
            ServiceOperation::SetProperties => service::set_properties(self, call, body).await,
            ServiceOperation::Stats => service::stats(call),
            ServiceOperation::Account => Ok(service::account()),
            ServiceOperation::DelegationKey => service::delegation_key(self, call, body).await,
            ServiceOperation::ListContainers(list) => containers::list(self, call, list).await,
            ServiceOperation::Find(find) => find::run(self, call, None, find).await,
            ServiceOperation::Batch { boundary } => {
                Box::pin(batch::run(self, call, None, &boundary, body)).await
            }
        }
    }

    async fn dispatch_container(
        &self,
        call: &Call,
        container: &str,
        operation: ContainerOperation,
        body: &mut Body,
    ) -> Result<Response> {
        match operation {
            ContainerOperation::Create(new) => containers::create(self, call, container, new).await,
            ContainerOperation::Properties { conditions } => {
                containers::properties(self, call, container, &conditions).await
            }
            ContainerOperation::Metadata { conditions } => {
                containers::metadata(self, call, container, &conditions).await
            }
            ContainerOperation::SetMetadata { metadata, conditions } => {
                containers::set_metadata(self, call, container, metadata, &conditions).await
            }
            ContainerOperation::Acl { conditions } => {
                containers::acl(self, call, container, &conditions).await
            }
            ContainerOperation::SetAcl(set) => {
                containers::set_acl(self, call, container, set, body).await
            }
            ContainerOperation::Delete { conditions } => {
                containers::delete(self, call, container, &conditions).await
            }
            ContainerOperation::Restore { name, version } => {
                containers::restore(self, call, container, &name, version).await
            }
            ContainerOperation::Lease { action, conditions } => {
                leases::container(self, call, container, action, &conditions).await
            }
            ContainerOperation::List(list) => list::run(self, call, container, list).await,
            ContainerOperation::Find(find) => find::run(self, call, Some(container), find).await,
            ContainerOperation::Batch { boundary } => {
                Box::pin(batch::run(self, call, Some(container), &boundary, body)).await
            }
            ContainerOperation::Account => Ok(service::account()),
        }
    }

    async fn dispatch_blob(
        &self,
        call: &Call,
        path: &BlobPath,
        operation: BlobOperation,
        body: &mut Body,
    ) -> Result<Response> {
        use BlobOperation as Op;
        match operation {
            Op::Put(put) => put::put(self, call, path, put, body).await,
            Op::PutFromUrl(put) => Box::pin(put::put_from_url(self, call, path, put)).await,
            Op::Get(get) => read::get(self, call, path, get).await,
            Op::Properties { which, conditions } => {
                read::properties(self, call, path, which, &conditions).await
            }
            Op::SetProperties(set) => properties::set(self, call, path, set).await,
            Op::Metadata { which, conditions } => {
                read::metadata(self, call, path, which, &conditions).await
            }
            Op::SetMetadata { metadata, conditions } => {
                properties::set_metadata(self, call, path, metadata, &conditions).await
            }
            Op::Tags { which, conditions } => {
                properties::tags(self, call, path, which, &conditions).await
            }
            Op::SetTags { which, checksums, conditions } => {
                properties::set_tags(self, call, path, which, checksums, &conditions, body).await
            }
            Op::Lease { action, conditions } => {
                leases::blob(self, call, path, action, &conditions).await
            }
            Op::Delete(delete) => delete::run(self, call, path, delete).await,
            Op::Undelete => delete::undelete(self, call, path).await,
            Op::SetTier(set) => tiers::set(self, call, path, set).await,
            Op::SetExpiry { expiry, conditions } => {
                properties::set_expiry(self, call, path, expiry, &conditions).await
            }
            Op::SetImmutability { which, policy, conditions } => {
                immutability::set(self, call, path, which, policy, &conditions).await
            }
            Op::DeleteImmutability { which } => immutability::delete(self, call, path, which).await,
            Op::SetLegalHold { which, hold } => {
                immutability::set_hold(self, call, path, which, hold).await
            }
            Op::Snapshot { metadata, conditions } => {
                snapshots::create(self, call, path, metadata, &conditions).await
            }
            Op::PutBlock(put) => blocks::put(self, call, path, put, body).await,
            Op::PutBlockList(put) => blocks::commit(self, call, path, put, body).await,
            Op::BlockList { which, kind, conditions } => {
                blocks::list(self, call, path, which, kind, &conditions).await
            }
            Op::WritePages(write) => pages::write(self, call, path, write, body).await,
            Op::PageRanges(get) => pages::ranges(self, call, path, get).await,
            Op::Append(append) => append::append(self, call, path, append, body).await,
            Op::Seal { position, conditions } => {
                append::seal(self, call, path, position, &conditions).await
            }
            Op::Account => Ok(service::account()),
            Op::Copy(copy) => Box::pin(copy::start(self, call, path, copy)).await,
            Op::AbortCopy { id, conditions } => {
                copy::abort(self, call, path, &id, &conditions).await
            }
            Op::Query | Op::IncrementalCopy => Err(Fault::new(Common::NotImplemented)),
        }
    }
}

/// A time as errors say it.
fn time_text(ms: u64) -> String {
    let ticks = i64::try_from(ms).unwrap_or(0).saturating_mul(TICKS_PER_MILLI);
    format_iso8601(ticks, Fraction::Seven)
}
