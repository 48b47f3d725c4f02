//! Who a request comes from, and what it may do.

use lazuli_http::Request;
use lazuli_http::auth::Refusal;
use lazuli_http::auth::access::{Access, Sender, Service};
use lazuli_http::auth::service_sas::Resource;
use lazuli_http::uri::Query;

use crate::address::Address;
use crate::error::{Fault, Result};
use crate::request::Operation;
use crate::{Front, queues};

pub(crate) async fn of(
    front: &Front,
    request: &Request,
    query: &Query<'_>,
    address: &Address,
) -> Result<Access> {
    let account = &*address.target.account;
    let sender =
        Sender::of(request, query, account, &front.accounts, Service::QUEUE, front.tokens)?;
    let signature = match sender {
        Sender::Known(access) => return Ok(access),
        Sender::Bearer(signature) => signature,
    };
    // A queue's signature says nothing of the service itself.
    let queue = address.resource.queue().ok_or(Refusal::WrongSignature)?;
    let policy = match signature.policy() {
        None => None,
        Some(id) => match queues::policies(front, account, queue).await {
            Ok(policies) => policies.into_iter().find(|policy| policy.id == id),
            // A queue that is not there has no policies either; who has no access need not learn which it is.
            Err(fault) if !fault.is_ours() => None,
            Err(fault) => return Err(fault),
        },
    };
    Ok(signature.check(Resource::Queue(queue), policy.as_ref())?)
}

/// Refuses an operation that is not granted.
pub(crate) fn check(access: &Access, operation: &Operation) -> Result<()> {
    match operation.need() {
        Some(need) => access.check(need, operation.granted_types()).map_err(Fault::new),
        // Whoever asks for a key must say who it is, which the operation sees to.
        None => Ok(()),
    }
}
