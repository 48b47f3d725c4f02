//! Requests about messages.

use lazuli_amqp::{Map, Value};
use lazuli_bus_shape::{LockToken, Message, Outcome, ReceiveMode, Settlement};

use super::Call;
use crate::error::{Fault, Result, from_core};
use crate::message::{overrides, read_one, write};
use crate::request::Reply;

fn stamp(ms: u64) -> Value {
    Value::Timestamp(i64::try_from(ms).unwrap_or(i64::MAX))
}

fn entry(message: &Message, until_ms: Option<u64>) -> Map {
    let bytes = write(message, until_ms).joined();
    Map::default().with_text("message", bytes)
}

pub(super) async fn peek(call: &Call<'_>) -> Result<Reply> {
    let from = call.map.integer("from-sequence-number").unwrap_or(0).cast_unsigned();
    let most = call.count("message-count")?;
    let found = call.bus.peek(&call.endpoint, call.text("session-id"), from, most).await;
    let found = found.map_err(from_core)?;
    if found.is_empty() {
        return Ok(Reply::nothing());
    }
    let bodiless = call.map.get("omit-message-body").and_then(Value::as_bool) == Some(true);
    let messages = found.into_iter().map(|mut message| {
        if bodiless {
            message.body = crate::message::without_body(&message.body);
        }
        Value::Map(entry(&message, None))
    });
    Ok(Reply::ok(Map::default().with_text("messages", Value::List(messages.collect()))))
}

pub(super) async fn receive(call: &Call<'_>) -> Result<Reply> {
    let numbers = call.numbers("sequence-numbers")?;
    let mode = match call.map.integer("receiver-settle-mode") {
        Some(0) => ReceiveMode::ReceiveAndDelete,
        _ => ReceiveMode::PeekLock,
    };
    let session = call.session()?;
    let found = call.bus.receive_deferred(&call.endpoint, session.as_ref(), &numbers, mode).await;
    let messages = found.map_err(from_core)?.into_iter().map(|delivery| {
        let until = delivery.lock.map(|lock| lock.until_ms);
        let mut entry = entry(&delivery.message, until);
        if let Some(lock) = delivery.lock {
            entry = entry.with_text("lock-token", Value::Uuid(lock.token.to_bytes()));
        }
        Value::Map(entry)
    });
    Ok(Reply::ok(Map::default().with_text("messages", Value::List(messages.collect()))))
}

fn tokens(call: &Call<'_>) -> Result<Vec<LockToken>> {
    let token = |value: &Value| value.as_uuid().map(LockToken::from_bytes);
    let tokens: Option<Vec<_>> = call.elements("lock-tokens")?.iter().map(token).collect();
    tokens.ok_or_else(|| Fault::argument("lock-tokens must be UUIDs."))
}

pub(super) async fn renew(call: &Call<'_>) -> Result<Reply> {
    let tokens = tokens(call)?;
    let session = call.session()?;
    let renewed = call.bus.renew(&call.endpoint, session.as_ref(), &tokens).await;
    let renewed: std::result::Result<Vec<u64>, _> =
        renewed.map_err(from_core)?.into_iter().collect();
    let until = renewed.map_err(from_core)?.into_iter().map(stamp).collect();
    Ok(Reply::ok(Map::default().with_text("expirations", Value::Array(until))))
}

pub(super) async fn settle(call: &Call<'_>) -> Result<Reply> {
    let changes = || {
        let map = call.map.get("properties-to-modify").and_then(Value::as_map);
        map.map(overrides).unwrap_or_default()
    };
    let text = |name| call.text(name).map(str::to_owned);
    let outcome = match call.text("disposition-status").unwrap_or_default() {
        "completed" => Outcome::Complete,
        "abandoned" => Outcome::Abandon { changes: changes() },
        // The service's own spelling.
        "defered" => Outcome::Defer { changes: changes() },
        "suspended" => Outcome::DeadLetter {
            reason: text("deadletter-reason"),
            description: text("deadletter-description"),
            changes: changes(),
        },
        other => {
            let text = format!("The disposition status '{other}' is not known.");
            return Err(Fault::argument(text));
        }
    };
    let settlements = tokens(call)?.into_iter();
    let settlements =
        settlements.map(|token| Settlement { token, outcome: outcome.clone() }).collect();
    let session = call.session()?;
    let settled = call.bus.settle(&call.endpoint, session.as_ref(), settlements).await;
    for result in settled.map_err(from_core)? {
        result.map_err(from_core)?;
    }
    Ok(Reply::ok(Map::default()))
}

pub(super) async fn schedule(call: &Call<'_>) -> Result<Reply> {
    let mut messages = Vec::new();
    for one in call.elements("messages")? {
        let bytes = one.as_map().and_then(|map| map.get("message")?.as_binary());
        let bytes = bytes.ok_or_else(|| Fault::argument("A message is missing."))?;
        messages.push(read_one(bytes)?);
    }
    let numbers = call.bus.send(&call.endpoint, messages).await.map_err(from_core)?;
    let numbers = numbers.into_iter().map(|number| Value::Long(number.cast_signed())).collect();
    Ok(Reply::ok(Map::default().with_text("sequence-numbers", Value::Array(numbers))))
}

pub(super) async fn cancel(call: &Call<'_>) -> Result<Reply> {
    let numbers = call.numbers("sequence-numbers")?;
    call.bus.cancel_scheduled(&call.endpoint, &numbers).await.map_err(from_core)?;
    Ok(Reply::ok(Map::default()))
}

pub(super) async fn delete(call: &Call<'_>) -> Result<Reply> {
    let most = call.count("message-count")?;
    let before = call.map.integer("enqueued-time-utc").and_then(|ms| u64::try_from(ms).ok());
    let before = before.unwrap_or(u64::MAX);
    let session = call.text("session-id");
    let deleted = call.bus.delete_messages(&call.endpoint, session, before, most).await;
    let count = i32::try_from(deleted.map_err(from_core)?).unwrap_or(i32::MAX);
    match count {
        0 => Ok(Reply::nothing()),
        _ => Ok(Reply::ok(Map::default().with_text("message-count", count))),
    }
}
