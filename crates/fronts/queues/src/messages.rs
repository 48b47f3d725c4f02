//! Operations on messages: put, get, peek, update, delete, clear.

use lazuli_http::{Response, StatusCode};
use lazuli_shapes::queue::{MessageId, NewMessage, Receipt, Update};

use crate::error::{Result, from_core};
use crate::{Call, Front, message, response};

const SECOND_MS: u64 = 1000;

pub(crate) async fn put(
    front: &Front,
    call: &Call,
    queue: &str,
    hidden_seconds: u64,
    lives_seconds: Option<u64>,
    body: &[u8],
) -> Result<Response> {
    let new = NewMessage {
        content: message::read(body, &front.limits)?,
        hidden_ms: hidden_seconds * SECOND_MS,
        lives_ms: lives_seconds.map(|seconds| seconds * SECOND_MS),
    };
    let put = front.queues.put(call.account(), queue, new).await.map_err(from_core)?;
    Ok(response::put(&put))
}

pub(crate) async fn get(
    front: &Front,
    call: &Call,
    queue: &str,
    most: usize,
    hidden_seconds: u64,
) -> Result<Response> {
    let hidden_ms = hidden_seconds * SECOND_MS;
    let received = front.queues.receive(call.account(), queue, most, hidden_ms).await;
    let received = received.map_err(from_core)?;
    front.throttle.spend(call, queue, received.len());
    response::received(&received)
}

pub(crate) async fn peek(front: &Front, call: &Call, queue: &str, most: usize) -> Result<Response> {
    let seen = front.queues.peek(call.account(), queue, most).await.map_err(from_core)?;
    front.throttle.spend(call, queue, seen.len());
    response::peeked(&seen)
}

pub(crate) async fn clear(front: &Front, call: &Call, queue: &str) -> Result<Response> {
    front.queues.clear(call.account(), queue).await.map_err(from_core)?;
    Ok(Response::new(StatusCode::NO_CONTENT))
}

/// Without a body the message goes on saying what it says.
pub(crate) async fn update(
    front: &Front,
    call: &Call,
    queue: &str,
    (id, receipt): (MessageId, Receipt),
    hidden_seconds: u64,
    body: &[u8],
) -> Result<Response> {
    let content = match body.is_empty() {
        true => None,
        false => Some(message::read(body, &front.limits)?),
    };
    let update = Update { hidden_ms: hidden_seconds * SECOND_MS, content };
    let hold = front.queues.update(call.account(), queue, id, receipt, update).await;
    let hold = hold.map_err(from_core)?;
    Ok(Response::new(StatusCode::NO_CONTENT)
        .with("x-ms-popreceipt", hold.receipt.to_string())
        .with("x-ms-time-next-visible", response::time(hold.visible_ms)))
}

pub(crate) async fn delete(
    front: &Front,
    call: &Call,
    queue: &str,
    id: MessageId,
    receipt: Receipt,
) -> Result<Response> {
    let deleted = front.queues.delete_message(call.account(), queue, id, receipt).await;
    deleted.map_err(from_core)?;
    Ok(Response::new(StatusCode::NO_CONTENT))
}
