//! The Azure Queue storage front: the service's protocol on the queue shape.
//!
//! One request: `Resource::parse` and `Operation::parse` say what is addressed and what is asked for, the one `match` below
//! calls the operation, the operation makes one call of the shape, `response` or `error` writes the response. The steps
//! around these are those of every storage front (`lazuli_azure::front`). `operations.toml` lists every operation of the
//! service and whether it is done.

mod address;
mod error;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
pub mod limits;
mod messages;
mod queues;
mod request;
mod response;
mod throttle;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use lazuli_azure::Operation as _;
use lazuli_azure::acl::StoredPolicy;
use lazuli_azure::auth::access::{Service, Signature};
use lazuli_azure::auth::bearer::Tokens;
use lazuli_azure::auth::service_sas::{self, ServiceGrant};
use lazuli_azure::auth::{Accounts, Refusal};
use lazuli_azure::front::{self, Base, Storage, StorageService};
use lazuli_azure::properties::Properties;
use lazuli_azure::service;
use lazuli_http::uri::Query;
use lazuli_http::{Handler, Request, Response, StatusCode, serve_api};
use lazuli_shapes::queue::Queues;

use address::Resource;
use error::{Code, Fault, Result, from_core};
pub use limits::Limits;
use request::Operation;
use throttle::Throttle;

/// The handler of the Queue service.
pub fn handler(queues: Queues, accounts: Arc<Accounts>, tokens: Tokens, limits: Limits) -> Handler {
    let front = |queues| Front {
        queues,
        base: Base::new(accounts.clone(), tokens),
        throttle: Throttle::new(limits.messages_per_second_max),
        limits: limits.clone(),
    };
    serve_api(Storage::new(front(queues.clone()), front(queues.allowing_stale())))
}

struct Front {
    queues: Queues,
    base: Base<Properties>,
    limits: Limits,
    throttle: Throttle,
}

/// What operations need to know of the request beside their own arguments.
type Call = lazuli_azure::Call<ServiceGrant>;

impl StorageService for Front {
    const SERVICE: Service = Service::QUEUE;
    const NO_SNIFF: bool = false;

    type Resource = Resource;
    type Operation = Operation;
    type Code = Code;
    type Grant = ServiceGrant;
    type Own = ();
    type Properties = Properties;

    fn staleness(&self) -> Duration {
        self.queues.engine().staleness()
    }

    fn base(&self) -> &Base<Properties> {
        &self.base
    }

    fn resource(&self, path: &str, _: &Request, _: &Query<'_>) -> Result<Resource> {
        Resource::parse(path)
    }

    async fn grant(&self, signature: &Signature<'_>, resource: &Resource) -> Result<ServiceGrant> {
        // A queue's signature says nothing of the service itself.
        let queue = resource.queue().ok_or(Refusal::WrongSignature)?;
        let policy = front::policy_of(self, signature, queue).await?;
        Ok(signature.check(service_sas::Resource::Queue(queue), policy.as_ref())?)
    }

    async fn policies(&self, account: &str, queue: &str) -> Result<Vec<StoredPolicy>> {
        queues::policies(self, account, queue).await
    }

    fn operation(
        &self,
        request: &Request,
        resource: Resource,
        query: &Query<'_>,
    ) -> Result<Operation> {
        Operation::parse(&request.method, &request.headers, resource, query, &self.limits)
    }

    async fn check(&self, call: &Call, operation: &Operation) -> Result<()> {
        match operation.row().need {
            Some(need) => call.access.check(need, operation.granted_types()).map_err(Fault::new),
            // The operation itself checks that the request has a token.
            None => Ok(()),
        }
    }

    async fn dispatch(
        &self,
        call: &Call,
        operation: Operation,
        request: &mut Request,
    ) -> Result<Response> {
        if let Some(queue) = operation.throttled_queue() {
            self.throttle.admit(call, queue, self.queues.engine())?;
        }
        let body = request.take_body().collect(self.limits.body_bytes_max).await?;
        match operation {
            Operation::ListQueues(query) => queues::list(self, call, query).await,
            Operation::GetServiceProperties => service::get_properties(self, call).await,
            Operation::SetServiceProperties => service::set_properties(self, call, &body).await,
            Operation::GetServiceStats => service::stats(self, call),
            Operation::GetUserDelegationKey => service::user_delegation_key(self, call, &body),
            Operation::Preflight => service::preflight(self, call, &request.headers).await,
            Operation::CreateQueue { queue, metadata } => {
                queues::create(self, call, &queue, metadata).await
            }
            Operation::DeleteQueue { queue } => queues::delete(self, call, &queue).await,
            Operation::GetQueueMetadata { queue } => queues::get_metadata(self, call, &queue).await,
            Operation::SetQueueMetadata { queue, metadata } => {
                queues::set_metadata(self, call, &queue, metadata).await
            }
            Operation::GetQueueAcl { queue } => queues::get_acl(self, call, &queue).await,
            Operation::SetQueueAcl { queue } => queues::set_acl(self, call, &queue, &body).await,
            Operation::PutMessage { queue, hidden_seconds, lives_seconds } => {
                messages::put(self, call, &queue, hidden_seconds, lives_seconds, &body).await
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
                messages::update(self, call, &queue, settled, hidden_seconds, &body).await
            }
            Operation::DeleteMessage { queue, id, receipt } => {
                messages::delete(self, call, &queue, id, receipt).await
            }
        }
    }

    fn xml(status: StatusCode, document: String) -> Response {
        response::document(status, document)
    }

    async fn stored(&self, name: String) -> Result<Option<Bytes>> {
        self.queues.service(&name).await.map_err(from_core)
    }

    async fn store(&self, name: String, document: Bytes) -> Result<()> {
        self.queues.set_service(&name, document).await.map_err(from_core)
    }
}
