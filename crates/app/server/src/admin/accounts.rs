//! Accounts in the admin API.

use serde_json::{Value, json};

use super::maps;
use super::refusal::{Refusal, Result};
use crate::accounts::{Account, KeySlot};
use crate::failure::{Failure, FailureReason};
use crate::registry::Kept;
use crate::running::Running;

/// All accounts; their keys only if asked for.
pub(super) async fn list(running: &Running, keys: bool) -> Value {
    let one = |(account, kept): (Account, Kept)| {
        let mut shown = if keys { with_keys(&account) } else { json!({ "name": account.name }) };
        shown["from"] = match kept {
            Kept::Catalog(_) => json!("catalog"),
            Kept::Setting => json!("setting"),
            Kept::Published => json!("published"),
        };
        shown
    };
    let accounts: Vec<Value> = running.accounts.list().await.into_iter().map(one).collect();
    json!({ "accounts": accounts })
}

/// `{"name": …}` to a new account with its keys.
pub(super) async fn create(running: &Running, body: &Value) -> Result<Value> {
    let name = body["name"].as_str().ok_or_else(|| Refusal::bad_request("name must be text"))?;
    Ok(with_keys(&running.accounts.create(name).await?))
}

/// Deletes an account whose containers hold no items. What a client writes while it is checked is kept, and is there again
/// if the account is created anew.
pub(super) async fn delete(running: &Running, name: &str) -> Result<Value> {
    if let Some(container) = maps::with_items_of(running, name).await? {
        let message = format!("{container} of account {name} holds items");
        let failure = Failure::of(FailureReason::AccountInUse, message);
        return Err(failure.hint("delete its tables, blobs, queues and documents first").into());
    }
    running.accounts.delete(name).await?;
    Ok(json!({ "name": name }))
}

/// `{"key": 1}` or `{"key": 2}` to the account with that key replaced; only the new key is shown.
pub(super) async fn rotate(running: &Running, name: &str, body: &Value) -> Result<Value> {
    let slot = body["key"].as_u64().and_then(KeySlot::of_number);
    let slot = slot.ok_or_else(|| Refusal::bad_request("key must be 1 or 2"))?;
    let mut shown = with_keys(&running.accounts.rotate(name, slot).await?);
    if let Some(fields) = shown.as_object_mut() {
        fields.remove(match slot {
            KeySlot::First => "key2",
            KeySlot::Second => "key1",
        });
    }
    Ok(shown)
}

fn with_keys(account: &Account) -> Value {
    json!({
        "name": account.name,
        "key1": account.key1.reveal(),
        "key2": account.key2.as_ref().map(|key| key.reveal()),
    })
}
