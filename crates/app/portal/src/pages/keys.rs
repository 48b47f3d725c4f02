//! The keys of one account, in connection strings. They are shown on this page only, after a click.

use lazuli_http::StatusCode;
use maud::{Markup, html};
use serde_json::Value;

use super::overview::connection_string;
use crate::layout::list;
use crate::page::{Fault, Outcome, Part, Result, Visit};

pub(crate) async fn show(visit: &Visit<'_>, account: &str) -> Result {
    let status = visit.api.get(&["v1", "status"]).await?;
    let all = visit.api.get_with(&["v1", "accounts"], &[("keys", "true")]).await?;
    let Some(found) = list(&all["accounts"]).iter().find(|one| one["name"] == account) else {
        let message = format!("there is no account {account}");
        return Err(Fault::new(StatusCode::NOT_FOUND, message));
    };
    let body = html! {
        h1 { "Keys of " (account) }
        p.muted { "Anyone who has one of these keys can read and change everything in this account." }
        @for (number, name) in (1..).zip(["key1", "key2"]) {
            @if let Some(key) = found[name].as_str() { (one(number, account, key, &status["endpoints"])) }
        }
        p { a href=(super::accounts::PATH) { "To the accounts" } }
    };
    Outcome::page(format!("Keys of {account}"), Part::Accounts, body)
}

pub(crate) fn one(number: u64, account: &str, key: &str, endpoints: &Value) -> Markup {
    let (key_id, string_id) = (format!("key-{number}"), format!("string-{number}"));
    html! {
        section.card aria-labelledby={ "head-" (number) } {
            h2 id={ "head-" (number) } { "Key " (number) }
            div.copyable {
                code id=(key_id) { (key) }
                button.quiet type="button" data-copy=(key_id) hidden { "Copy the key" }
            }
            h3 { "Connection string" }
            div.copyable {
                code id=(string_id) { (connection_string(account, key, endpoints)) }
                button.quiet type="button" data-copy=(string_id) hidden { "Copy the connection string" }
            }
        }
    }
}
