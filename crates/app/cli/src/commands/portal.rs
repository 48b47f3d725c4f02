//! `lazuli portal`: where the portal is, and what to log in with.

use lazuli_console::{Result, output};
use lazuli_http::uri::percent_encode;
use lazuli_server::token;
use serde_json::json;

use super::map::container;
use crate::args::Target;
use crate::client::{Client, settings};

pub(crate) fn run(shown: Option<&str>, target: &Target) -> Result<()> {
    let client = Client::find(target)?;
    let mut url = format!("{}/portal", client.url());
    if let Some(part) = shown {
        let name = container(&client, part)?;
        url.push_str(&format!("/containers/{}", percent_encode(&name)));
    }
    let settings = settings(target)?;
    let file = settings.admin_token.is_none().then(|| token::path(&settings.data));
    let answer = json!({ "url": url, "token_file": file });
    output::changed(target.json, &answer, || match &file {
        Some(file) => format!("{url}\nlog in with the token in {}", file.display()),
        None => format!("{url}\nlog in with the token of the setting admin-token"),
    });
    Ok(())
}
