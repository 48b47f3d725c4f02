//! Permissions of users: what a resource token grants, and the token itself, made anew whenever a permission is shown.

use lazuli_engine::Kind;
use lazuli_shapes::document::Rid;
use lazuli_value::{Object, Value};

use crate::access::{self, Grant, Mode};
use crate::error::{Fault, Result};
use crate::limits::TOKEN_SECONDS_DEFAULT;
use crate::{Call, Front};

/// Checks the body of a permission.
pub(crate) fn checked(mut body: Object) -> Result<Object> {
    let bad =
        || Fault::bad_input("a permission needs a permissionMode (All or Read) and a resource");
    let mode = match body.get("permissionMode") {
        Some(Value::String(mode)) => Mode::parse(mode).ok_or_else(bad)?,
        _ => return Err(bad()),
    };
    match body.get("resource") {
        Some(Value::String(resource)) if !resource.contains('\n') && resource.contains('/') => {}
        _ => return Err(bad()),
    }
    match body.get("resourcePartitionKey") {
        None | Some(Value::Null | Value::Array(_)) => {}
        Some(_) => return Err(Fault::bad_input("the resourcePartitionKey is an array")),
    }
    body.insert("permissionMode", mode.name().into());
    Ok(body)
}

/// What a stored permission grants.
fn grant(body: &Object, rid: &Rid) -> Option<Grant> {
    let text = |name: &str| match body.get(name) {
        Some(Value::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let key = match body.get("resourcePartitionKey") {
        Some(key @ Value::Array(_)) => Some(key.to_json()),
        _ => None,
    };
    let resource = text("resource")?.trim_matches('/').to_owned();
    let permission = rid.to_string();
    Some(Grant { resource, mode: Mode::parse(text("permissionMode")?)?, key, permission })
}

/// Refuses a token whose permission was deleted, or says something else by now.
pub(crate) async fn check_token(front: &Front, account: &str, granted: &Grant) -> Result<()> {
    let ended = || Fault::forbidden("The permission of the authorization token has ended.");
    let rid = Rid::parse(&granted.permission).ok_or_else(ended)?;
    let found = match front.documents.resource_by_rid(account, &rid).await {
        Err(error) if error.kind() == Kind::NotFound => return Err(ended()),
        found => found?,
    };
    match &found.body {
        Value::Object(body) if grant(body, &rid).as_ref() == Some(granted) => Ok(()),
        _ => Err(ended()),
    }
}

/// Adds the token to a permission that is shown. Only the owner of a key sees permissions, so there is nobody to hide it
/// from.
pub(crate) fn add_token(front: &Front, call: &Call, rid: &Rid, shown: &mut Object) {
    let account = &call.sender.account;
    let (Some(grant), Some(keys)) = (grant(shown, rid), front.parts.accounts.get(account)) else {
        return;
    };
    let seconds = u64::from(call.headers.token_seconds.unwrap_or(TOKEN_SECONDS_DEFAULT));
    let expires_s = call.received_ms / 1_000 + seconds;
    shown.insert("_token", access::token(account, &keys, &grant, expires_s).into());
}
