//! Requests about sessions.

use lazuli_amqp::{Map, Value};

use super::Call;
use crate::error::{Fault, Result, from_core};
use crate::request::Reply;

/// What a client sends as the time of the last update to mean all sessions that have messages.
const ALL_ACTIVE_MS: i64 = 253_402_300_799_999;

pub(super) async fn renew(call: &Call<'_>) -> Result<Reply> {
    let lock = call.needed_session()?;
    let renewed = call.bus.renew_session(&call.endpoint, &lock).await.map_err(from_core)?;
    let until = Value::Timestamp(i64::try_from(renewed.until_ms).unwrap_or(i64::MAX));
    call.peer.hold_session(call.path, renewed);
    Ok(Reply::ok(Map::default().with_text("expiration", until)))
}

pub(super) async fn state(call: &Call<'_>) -> Result<Reply> {
    let lock = call.needed_session()?;
    let state = call.bus.session_state(&call.endpoint, &lock).await.map_err(from_core)?;
    Ok(Reply::ok(Map::default().with_text("session-state", state)))
}

pub(super) async fn set_state(call: &Call<'_>) -> Result<Reply> {
    let lock = call.needed_session()?;
    let state = match call.map.get("session-state") {
        None | Some(Value::Null) => None,
        Some(Value::Binary(bytes)) => Some(bytes.clone()),
        Some(Value::String(text)) => Some(text.clone().into()),
        Some(_) => return Err(Fault::argument("The state of a session must be bytes.")),
    };
    call.bus.set_session_state(&call.endpoint, &lock, state).await.map_err(from_core)?;
    Ok(Reply::ok(Map::default()))
}

pub(super) async fn list(call: &Call<'_>) -> Result<Reply> {
    let since = call.map.integer("last-updated-time").unwrap_or(i64::MAX);
    let since = (since < ALL_ACTIVE_MS).then(|| u64::try_from(since).unwrap_or(0));
    let skip = call.map.integer("skip").and_then(|skip| usize::try_from(skip).ok()).unwrap_or(0);
    let top = call.count("top")?;
    let found = call.bus.sessions(&call.endpoint, since, skip, top).await.map_err(from_core)?;
    if found.is_empty() {
        return Ok(Reply::nothing());
    }
    let skip = i32::try_from(skip + found.len()).unwrap_or(i32::MAX);
    let ids = found.into_iter().map(Value::String).collect();
    let body = Map::default().with_text("skip", skip).with_text("sessions-ids", Value::Array(ids));
    Ok(Reply::ok(body))
}
