//! Tokens: a client shows one for each entity that it wants to use, on the link pair `$cbs`.

use std::sync::Arc;
use std::time::Instant;

use lazuli_amqp::{Body, Delivery, DeliveryState, Incoming, Value};
use lazuli_net::Outcome;

use crate::access::{self, Shown};
use crate::error::{Fault, Result};
use crate::peer::Peer;
use crate::replies::Asked;
use crate::request::{Reply, Request, Spelling};

const ADDRESS: &str = "$cbs";

/// Answers requests until the client detaches the link.
pub(crate) async fn serve(peer: Arc<Peer>, mut link: Incoming, channel: u16) {
    while let Some(delivery) = link.next().await {
        answer(&peer, channel, delivery).await;
    }
}

async fn answer(peer: &Peer, channel: u16, delivery: Delivery) {
    let began = Instant::now();
    let request = Request::read(&delivery.payload);
    delivery.settle(DeliveryState::Accepted);
    let Ok(request) = request else { return };
    let result = put(peer, &request).await;
    let outcome = result.as_ref().map_or_else(Fault::outcome, |_| Outcome::Ok);
    peer.front.metrics.observe("PutToken", outcome, began.elapsed());
    let asked = Asked { channel, address: ADDRESS, reply_to: request.reply_to.as_deref() };
    let reply = Reply::of(result).message(&request.message_id, Spelling::Dashes);
    peer.replies.send(&asked, reply);
}

async fn put(peer: &Peer, request: &Request) -> Result<Reply> {
    if request.operation() != "put-token" {
        return Err(Fault::not_implemented("Only put-token is known here."));
    }
    let Body::Value(Value::String(token)) = &request.body else {
        return Err(Fault::argument("The body must be a token."));
    };
    let audience = request.properties.text("name").unwrap_or_default();
    let shown = Shown { token, audience, secure: peer.secure };
    let claim = access::check(&peer.front, &shown).await?;
    peer.show(claim)?;
    Ok(Reply::accepted())
}
