//! Accounts: create, show and regenerate keys, delete. Keys are shown only in answer to a form.

use lazuli_http::uri::percent_encode;
use lazuli_http::{Body, HeaderMap, Method, StatusCode};
use maud::html;
use serde_json::{Value, json};

use super::confirm::Confirm;
use super::keys;
use crate::layout::{csrf, list, table, text};
use crate::page::{Fault, Outcome, Part, Result, Visit};

pub(crate) const PATH: &str = "/portal/accounts";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AccountsPage {
    List,
    Create,
    /// The keys of an account, which are shown when they are asked for.
    Keys(String),
    /// A new key in place of the first or the second.
    Rotate(String),
    Delete(String),
}

impl AccountsPage {
    /// The page at these pieces of a path, behind `accounts`.
    pub(crate) fn parse(pieces: &[&str]) -> Option<Self> {
        Some(match *pieces {
            [] => Self::List,
            ["create"] => Self::Create,
            [name, "keys"] => Self::Keys(name.to_owned()),
            [name, "rotate"] => Self::Rotate(name.to_owned()),
            [name, "delete"] => Self::Delete(name.to_owned()),
            _ => return None,
        })
    }

    /// Whether it takes GET, and whether it takes POST.
    pub(crate) fn methods(&self) -> (bool, bool) {
        match self {
            Self::List => (true, false),
            Self::Create | Self::Keys(_) => (false, true),
            Self::Rotate(_) | Self::Delete(_) => (true, true),
        }
    }
}

/// The one table of these pages. A form that was sent makes the change that its page describes.
pub(crate) async fn show(visit: &Visit<'_>, page: &AccountsPage, sent: bool) -> Result {
    match page {
        AccountsPage::List => all(visit).await,
        AccountsPage::Create => create(visit).await,
        AccountsPage::Keys(name) => keys::show(visit, name).await,
        AccountsPage::Rotate(name) if sent => rotate(visit, name).await,
        AccountsPage::Rotate(name) => preview_rotate(visit, name).await,
        AccountsPage::Delete(name) if sent => delete(visit, name).await,
        AccountsPage::Delete(name) => preview_delete(visit, name).await,
    }
}

fn link(name: &str, page: &str) -> String {
    format!("{PATH}/{}/{page}", percent_encode(name))
}

async fn all(visit: &Visit<'_>) -> Result {
    let accounts = visit.api.get(&["v1", "accounts"]).await?;
    let rows = html! {
        @for account in list(&accounts["accounts"]) {
            @let name = text(&account["name"]);
            tr data-account=(name) {
                th.name scope="row" { (name) }
                td { (from(account)) }
                td {
                    form method="post" action=(link(name, "keys")) {
                        (csrf(visit.session))
                        button.quiet type="submit" { "Show the keys of " (name) }
                    }
                }
                td {
                    @if is_changeable(account) {
                        a href=(link(name, "rotate")) aria-label={ "Regenerate a key of " (name) } { "Regenerate a key" } " · "
                        a href=(link(name, "delete")) aria-label={ "Delete " (name) } { "Delete" }
                    } @else { span.muted { "not here" } }
                }
            }
        }
    };
    let body = html! {
        h1 { "Accounts" }
        section.card aria-label="Accounts" { (table("Accounts", &["Account", "From", "Keys", "Change"], rows)) }
        form.inline method="post" action={ (PATH) "/create" } {
            (csrf(visit.session))
            div {
                label for="new" { "New account: 3 to 24 small letters and digits" }
                input #new name="name" required autocomplete="off" minlength="3" maxlength="24";
            }
            button type="submit" { "Create" }
        }
    };
    Outcome::page("Accounts", Part::Accounts, body)
}

fn from(account: &Value) -> &'static str {
    match text(&account["from"]) {
        "setting" => "the settings",
        "published" => "the published one, for development",
        _ => "created here",
    }
}

/// Only what is in the catalog can be changed while the server runs.
fn is_changeable(account: &Value) -> bool {
    account["from"] == "catalog"
}

async fn find(visit: &Visit<'_>, name: &str) -> Result<Value> {
    let accounts = visit.api.get(&["v1", "accounts"]).await?;
    let found = list(&accounts["accounts"]).iter().find(|one| one["name"] == name).cloned();
    let missing = || Fault::new(StatusCode::NOT_FOUND, format!("there is no account {name}"));
    found.ok_or_else(missing)
}

async fn create(visit: &Visit<'_>) -> Result {
    let name = visit.form.get("name");
    visit.api.post(&["v1", "accounts"], &json!({ "name": name })).await?;
    Outcome::done(PATH, format!("The account {name} is there, with two keys of its own."))
}

async fn preview_rotate(visit: &Visit<'_>, name: &str) -> Result {
    find(visit, name).await?;
    let body = html! {
        h1 { "Regenerate a key of " (name) }
        section.card aria-labelledby="effect" {
            h2 #effect { "What it does" }
            p { "The key is replaced by a new one, which is shown once. Programs that use the old one are \
                refused from then on, and shared access signatures made with it end. The other key stays: let \
                programs use that one first." }
            form.actions method="post" action=(link(name, "rotate")) {
                (csrf(visit.session))
                button.danger type="submit" name="key" value="1" { "Regenerate key 1 of " (name) }
                button.danger type="submit" name="key" value="2" { "Regenerate key 2 of " (name) }
                a.button.quiet href=(PATH) { "Leave it as it is" }
            }
        }
    };
    Outcome::page(format!("Regenerate a key of {name}"), Part::Accounts, body)
}

async fn rotate(visit: &Visit<'_>, name: &str) -> Result {
    let number = visit.form.get("key").parse::<u64>().unwrap_or(0);
    let body = json!({ "key": number });
    let done = visit.api.post(&["v1", "accounts", name, "rotate-key"], &body).await?;
    let status = visit.api.get(&["v1", "status"]).await?;
    let key = text(&done[format!("key{number}")]);
    let body = html! {
        h1 { "The new key " (number) " of " (name) }
        p.notice role="status" { "Key " (number) " of " (name) " is replaced." }
        (keys::one(number, name, key, &status["endpoints"]))
        p { a href=(PATH) { "Back to the accounts" } }
    };
    Outcome::page(format!("New key of {name}"), Part::Accounts, body)
}

async fn preview_delete(visit: &Visit<'_>, name: &str) -> Result {
    let account = find(visit, name).await?;
    let confirm = Confirm {
        title: format!("Delete the account {name}"),
        part: Part::Accounts,
        effect: html! {
            p { "The account and its keys are gone, and programs that use them are refused. It is refused as \
                long as a table, container or queue of the account holds anything: delete those first." }
        },
        action: link(name, "delete"),
        fields: &[],
        words: is_changeable(&account).then(|| format!("Delete the account {name}")),
        is_dangerous: true,
        back: PATH,
    };
    confirm.page(visit)
}

async fn delete(visit: &Visit<'_>, name: &str) -> Result {
    let pieces = ["v1", "accounts", name];
    visit.api.send(Method::DELETE, &pieces, &[], HeaderMap::new(), Body::empty()).await?;
    Outcome::done(PATH, format!("The account {name} is deleted."))
}
