//! `lazuli account …`: accounts and their keys.

use lazuli_http::uri::percent_encode;
use serde_json::json;

use crate::args::{AccountCommand, Target};
use crate::client::{Client, fetch};
use lazuli_console::Result;
use lazuli_console::output::{self, cell, rows};

pub(crate) fn run(command: AccountCommand) -> Result<()> {
    match command {
        AccountCommand::List { keys, target } => list(keys, &target),
        AccountCommand::Create { name, target } => create(&name, &target),
        AccountCommand::Delete { name, target } => delete(&name, &target),
        AccountCommand::RotateKey { name, key, target } => rotate_key(&name, key, &target),
    }
}

fn list(keys: bool, target: &Target) -> Result<()> {
    let path = format!("/v1/accounts?keys={keys}");
    let Some(answer) = fetch(target, &path)? else { return Ok(()) };
    let columns = ["name", "from", "key1", "key2"];
    let shown = if keys { &columns[..] } else { &columns[..2] };
    output::table(shown, &rows(&answer["accounts"], shown));
    Ok(())
}

fn create(name: &str, target: &Target) -> Result<()> {
    let answer = Client::find(target)?.post("/v1/accounts", &json!({ "name": name }))?;
    output::changed(target.json, &answer, || {
        let [name, first, second] = ["name", "key1", "key2"].map(|field| cell(&answer[field]));
        format!("created account {name}\nkey1  {first}\nkey2  {second}")
    });
    Ok(())
}

fn delete(name: &str, target: &Target) -> Result<()> {
    let path = format!("/v1/accounts/{}", percent_encode(name));
    let answer = Client::find(target)?.delete(&path)?;
    output::changed(target.json, &answer, || format!("deleted account {name}"));
    Ok(())
}

fn rotate_key(name: &str, key: u64, target: &Target) -> Result<()> {
    let path = format!("/v1/accounts/{}/rotate-key", percent_encode(name));
    let answer = Client::find(target)?.post(&path, &json!({ "key": key }))?;
    output::changed(target.json, &answer, || {
        let field = format!("key{key}");
        let new = cell(&answer[field.as_str()]);
        format!(
            "replaced key {key} of account {name}; the old one is refused from now on\n{field}  {new}"
        )
    });
    Ok(())
}
