//! `$management` of a namespace: what hubs and partitions are like.

use std::sync::Arc;
use std::time::Instant;

use lazuli_amqp::{DeliveryState, Incoming, Map, Value};
use lazuli_net::Outcome;

use super::{find, from_log};
use crate::access::Right;
use crate::error::{Fault, Result};
use crate::peer::Peer;
use crate::replies::Asked;
use crate::request::{Reply, Request, Spelling};

const HUB: &str = "com.microsoft:eventhub";
const PARTITION: &str = "com.microsoft:partition";

/// Answers requests until the client leaves.
pub(crate) async fn serve(peer: Arc<Peer>, mut link: Incoming, channel: u16) {
    while let Some(delivery) = link.next().await {
        let began = Instant::now();
        let request = match Request::read(&delivery.payload) {
            Ok(request) => request,
            Err(fault) => {
                delivery.settle(DeliveryState::rejected(fault.into()));
                continue;
            }
        };
        delivery.settle(DeliveryState::Accepted);
        let answered = answer(&peer, &request).await;
        let outcome = answered.as_ref().map_or_else(Fault::outcome, |_| Outcome::Ok);
        peer.front.metrics.observe("ReadHub", outcome, began.elapsed());
        let reply = Reply::of(answered).message(&request.message_id, Spelling::Dashes);
        let reply_to = request.reply_to.as_deref();
        peer.replies.send(&Asked { channel, address: "$management", reply_to }, reply);
    }
}

async fn answer(peer: &Peer, request: &Request) -> Result<Reply> {
    if request.operation() != "READ" {
        return Err(Fault::argument("The only operation here is READ."));
    }
    let name = request.properties.text("name").unwrap_or_default();
    // Publishers and readers both ask.
    let found = match find(peer, name, name, Right::Listen).await {
        Err(fault) if fault.status == 401 => find(peer, name, name, Right::Send).await,
        found => found,
    };
    let (_, hub) = found?;
    match request.properties.text("type").unwrap_or_default() {
        HUB => {
            let ids = (0..hub.settings.partitions).map(|id| Value::String(id.to_string()));
            let body = Map::default()
                .with_text("name", hub.name.as_str())
                .with_text("type", HUB)
                .with_text("created_at", Value::Timestamp(hub.created_ms as i64))
                .with_text("partition_count", Value::Int(hub.settings.partitions as i32))
                .with_text("partition_ids", Value::Array(ids.collect()))
                .with_text("georeplication_factor", Value::Int(1));
            Ok(Reply::ok(Value::Map(body)))
        }
        PARTITION => {
            let id = request.properties.text("partition").unwrap_or_default();
            let partition = id.parse().ok().filter(|it| *it < hub.settings.partitions);
            let text = || format!("The hub {} has no partition {id}.", hub.name);
            let partition = partition
                .ok_or_else(|| Fault::new(404, "com.microsoft:argument-out-of-range", text()))?;
            let state = peer.front.hubs.logs.state(&hub, partition).await.map_err(from_log)?;
            let last = state.next as i64 - 1;
            let body = Map::default()
                .with_text("name", hub.name.as_str())
                .with_text("type", PARTITION)
                .with_text("partition", id)
                .with_text("begin_sequence_number", Value::Long(state.first as i64))
                .with_text("last_enqueued_sequence_number", Value::Long(last))
                .with_text("last_enqueued_offset", last.to_string())
                .with_text("last_enqueued_time_utc", Value::Timestamp(state.last_ms as i64))
                .with_text("is_partition_empty", Value::Bool(state.is_empty()));
            Ok(Reply::ok(Value::Map(body)))
        }
        _ => Err(Fault::argument("The type is a hub or a partition.")),
    }
}
