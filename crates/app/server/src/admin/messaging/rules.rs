//! Rules of a whole namespace: names with keys, and what they allow.

use lazuli_bus_shape::AuthorizationRule;
use serde_json::{Value, json};

use super::super::refusal::{Refusal, Result};
use super::maybe_text;
use crate::accounts::new_key;
use crate::running::Running;

/// Without its keys, which are shown once only: to who sets the rule.
fn describe(rule: &AuthorizationRule) -> Value {
    json!({
        "name": rule.name,
        "rights": rule.rights,
        "created_ms": rule.created_ms,
        "modified_ms": rule.modified_ms,
    })
}

pub(super) async fn list(running: &Running, account: &str) -> Result<Value> {
    let rules = running.bus.namespace_rules(account).await?;
    Ok(json!({ "rules": rules.iter().map(describe).collect::<Vec<_>>() }))
}

/// `{"rights": ["Send"], "primary_key": …, "secondary_key": …}`; keys that are not there are made.
pub(super) async fn set(
    running: &Running,
    account: &str,
    name: &str,
    body: &Value,
) -> Result<Value> {
    let wrong = || Refusal::bad_request("rights must be a list of Send, Listen and Manage");
    let rights = body["rights"].as_array().ok_or_else(wrong)?;
    let right = |it: &Value| it.as_str().map(str::to_owned).ok_or_else(wrong);
    let rights: Vec<String> = rights.iter().map(right).collect::<Result<_>>()?;
    let key = |field: &str| match maybe_text(body, field)? {
        Some(key) => Ok(key),
        None => match new_key() {
            Ok(key) => Ok(key.reveal().to_owned()),
            Err(fault) => Err(Refusal::busy(fault.0)),
        },
    };
    let (primary_key, secondary_key) = (key("primary_key")?, key("secondary_key")?);
    let (created_ms, modified_ms) = (0, 0);
    let name = name.to_owned();
    let rule =
        AuthorizationRule { name, rights, primary_key, secondary_key, created_ms, modified_ms };
    running.bus.put_namespace_rule(account, rule.clone()).await?;
    Ok(json!({
        "name": rule.name,
        "rights": rule.rights,
        "primary_key": rule.primary_key,
        "secondary_key": rule.secondary_key,
    }))
}

pub(super) async fn delete(running: &Running, account: &str, name: &str) -> Result<Value> {
    if running.bus.namespace_rule(account, name).await?.is_none() {
        return Err(Refusal::not_found("rule", name, "lazuli bus rules"));
    }
    running.bus.delete_namespace_rule(account, name).await?;
    Ok(json!({ "deleted": name }))
}
