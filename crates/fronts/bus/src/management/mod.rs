//! Requests about an entity, on the link pair `<entity>/$management`.

mod messages;
mod rules;
mod sessions;

use std::sync::Arc;
use std::time::Instant;

use lazuli_amqp::{Attaching, Delivery, DeliveryState, Map, Value};
use lazuli_bus_shape::{Bus, Endpoint, SessionLock};
use lazuli_net::Outcome;

use crate::access::Right;
use crate::error::{Fault, Result};
use crate::limits::REQUEST_ITEMS_MAX;
use crate::peer::{Peer, requests};
use crate::replies::Asked;
use crate::request::{Reply, Request, Spelling};

const PREFIX: &str = "com.microsoft:";

/// What can be asked for. `operations.toml` has one row for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    PeekMessage,
    ReceiveBySequenceNumber,
    RenewLock,
    UpdateDisposition,
    ScheduleMessage,
    CancelScheduledMessage,
    RenewSessionLock,
    GetSessionState,
    SetSessionState,
    GetMessageSessions,
    AddRule,
    RemoveRule,
    EnumerateRules,
    BatchDeleteMessages,
}

impl Operation {
    pub(crate) const ALL: [(Self, &'static str, &'static str); 14] = [
        (Self::PeekMessage, "peek-message", "PeekMessage"),
        (Self::ReceiveBySequenceNumber, "receive-by-sequence-number", "ReceiveBySequenceNumber"),
        (Self::RenewLock, "renew-lock", "RenewLock"),
        (Self::UpdateDisposition, "update-disposition", "UpdateDisposition"),
        (Self::ScheduleMessage, "schedule-message", "ScheduleMessage"),
        (Self::CancelScheduledMessage, "cancel-scheduled-message", "CancelScheduledMessage"),
        (Self::RenewSessionLock, "renew-session-lock", "RenewSessionLock"),
        (Self::GetSessionState, "get-session-state", "GetSessionState"),
        (Self::SetSessionState, "set-session-state", "SetSessionState"),
        (Self::GetMessageSessions, "get-message-sessions", "GetMessageSessions"),
        (Self::AddRule, "add-rule", "AddRule"),
        (Self::RemoveRule, "remove-rule", "RemoveRule"),
        (Self::EnumerateRules, "enumerate-rules", "EnumerateRules"),
        (Self::BatchDeleteMessages, "batch-delete-messages", "BatchDeleteMessages"),
    ];

    fn parse(text: &str) -> Option<(Self, &'static str)> {
        let word = text.strip_prefix(PREFIX)?;
        let found = Self::ALL.iter().find(|(_, wire, _)| *wire == word);
        found.map(|(operation, _, name)| (*operation, *name))
    }

    /// What a token must allow.
    fn right(self) -> Right {
        match self {
            Self::ScheduleMessage | Self::CancelScheduledMessage => Right::Send,
            Self::AddRule | Self::RemoveRule | Self::EnumerateRules => Right::Manage,
            _ => Right::Listen,
        }
    }
}

/// What an operation needs to know.
struct Call<'a> {
    peer: &'a Peer,
    bus: &'a Bus,
    endpoint: Endpoint,
    path: &'a str,
    namespace: String,
    map: Map,
}

impl Call<'_> {
    fn text(&self, name: &str) -> Option<&str> {
        self.map.text(name)
    }

    /// The lock on the session that the request names, if it names one. It must be held by a link of this connection.
    fn session(&self) -> Result<Option<SessionLock>> {
        let Some(id) = self.text("session-id") else { return Ok(None) };
        let held = self.peer.session(self.path, id);
        held.map(Some).ok_or_else(Fault::session_lock_lost)
    }

    fn needed_session(&self) -> Result<SessionLock> {
        self.session()?.ok_or_else(|| Fault::argument("The request names no session."))
    }

    /// A count, bounded by what one request may ask for.
    fn count(&self, name: &str) -> Result<usize> {
        let count = self.map.integer(name).and_then(|count| usize::try_from(count).ok());
        let count =
            count.ok_or_else(|| Fault::argument(format!("{name} is missing or negative.")))?;
        Ok(count.min(REQUEST_ITEMS_MAX))
    }

    /// The elements of a list, not too many.
    fn elements(&self, name: &str) -> Result<&[Value]> {
        let elements = self.map.get(name).and_then(Value::as_elements);
        let elements = elements.ok_or_else(|| Fault::argument(format!("{name} is missing.")))?;
        match elements.len() {
            1..=REQUEST_ITEMS_MAX => Ok(elements),
            _ => Err(Fault::argument(format!("{name} has 1 to {REQUEST_ITEMS_MAX} elements."))),
        }
    }

    fn numbers(&self, name: &str) -> Result<Vec<u64>> {
        let number = |value: &Value| value.as_integer().map(i64::cast_unsigned);
        let numbers: Option<Vec<u64>> = self.elements(name)?.iter().map(number).collect();
        numbers.ok_or_else(|| Fault::argument(format!("{name} must be whole numbers.")))
    }
}

/// Accepts a link for requests about an entity, and answers them.
pub(crate) async fn serve(peer: Arc<Peer>, attaching: Attaching, address: String, path: String) {
    // Which right is needed depends on the request; here any token for the entity will do.
    let rights = [Right::Listen, Right::Send];
    let allowed = rights.iter().map(|right| peer.may(&path, *right)).find(Result::is_ok);
    if allowed.is_none() {
        let fault = peer.may(&path, Right::Listen).err().unwrap_or_else(|| Fault::argument(""));
        return attaching.refuse(fault.into());
    }
    let right = if peer.may(&path, Right::Listen).is_ok() { Right::Listen } else { Right::Send };
    if let Err(fault) = peer.open(&path, right).await {
        return attaching.refuse(fault.into());
    }
    let channel = attaching.channel();
    let Some(mut link) = attaching.receive(requests()) else { return };
    while let Some(delivery) = link.next().await {
        let (peer, address, path) = (peer.clone(), address.clone(), path.clone());
        // One that takes long must not hold up the others.
        tokio::spawn(async move { answer(&peer, channel, &address, &path, delivery).await });
    }
}

async fn answer(peer: &Peer, channel: u16, address: &str, path: &str, delivery: Delivery) {
    let began = Instant::now();
    let request = Request::read(&delivery.payload);
    let Ok(request) = request else {
        let error = Fault::argument("The request cannot be read.").into();
        return delivery.settle(DeliveryState::rejected(error));
    };
    let (name, result) = match Operation::parse(request.operation()) {
        Some((operation, name)) => (name, run(peer, path, operation, &request).await),
        None => {
            let text = format!("The operation '{}' is not known.", request.operation());
            ("unknown", Err(Fault::not_implemented(text)))
        }
    };
    let outcome = result.as_ref().map_or_else(Fault::outcome, |_| Outcome::Ok);
    peer.front.metrics.observe(name, outcome, began.elapsed());
    let asked = Asked { channel, address, reply_to: request.reply_to.as_deref() };
    let reply = Reply::of(result).message(&request.message_id, Spelling::Camel);
    peer.replies.send(&asked, reply);
    delivery.settle(DeliveryState::Accepted);
}

async fn run(peer: &Peer, path: &str, operation: Operation, request: &Request) -> Result<Reply> {
    let right = operation.right();
    let namespace = peer.may(path, right)?;
    let endpoint = peer.open(path, right).await?;
    let map = request.map();
    let call = Call { peer, bus: &peer.front.bus, endpoint, path, namespace, map };
    match operation {
        Operation::PeekMessage => messages::peek(&call).await,
        Operation::ReceiveBySequenceNumber => messages::receive(&call).await,
        Operation::RenewLock => messages::renew(&call).await,
        Operation::UpdateDisposition => messages::settle(&call).await,
        Operation::ScheduleMessage => messages::schedule(&call).await,
        Operation::CancelScheduledMessage => messages::cancel(&call).await,
        Operation::BatchDeleteMessages => messages::delete(&call).await,
        Operation::RenewSessionLock => sessions::renew(&call).await,
        Operation::GetSessionState => sessions::state(&call).await,
        Operation::SetSessionState => sessions::set_state(&call).await,
        Operation::GetMessageSessions => sessions::list(&call).await,
        Operation::AddRule => rules::add(&call).await,
        Operation::RemoveRule => rules::remove(&call).await,
        Operation::EnumerateRules => rules::list(&call).await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_toml_names_every_operation_with_its_right() {
        let table: toml::Table = include_str!("../../operations.toml").parse().unwrap();
        let rows = table["operation"].as_array().unwrap();
        let field = |row: &toml::Value, name: &str| row[name].as_str().unwrap().to_owned();
        let listed: Vec<(String, String)> = rows
            .iter()
            .filter(|row| field(row, "link") == "$management")
            .map(|row| (field(row, "name"), field(row, "right")))
            .collect();
        let known =
            Operation::ALL.map(|(one, _, name)| (name.to_owned(), one.right().name().to_owned()));
        assert_eq!(listed, known);
        assert!(rows.iter().all(|row| field(row, "status") == "done"));
    }

    #[test]
    fn an_operation_is_known_by_its_whole_name() {
        let (operation, name) = Operation::parse("com.microsoft:peek-message").unwrap();
        assert_eq!((operation, name), (Operation::PeekMessage, "PeekMessage"));
        assert_eq!(Operation::parse("peek-message"), None);
        assert_eq!(Operation::parse("com.microsoft:nothing"), None);
    }
}
