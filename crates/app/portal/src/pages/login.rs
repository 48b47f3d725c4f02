//! The way in: the admin token for a session.

use std::time::Instant;

use lazuli_http::{Method, Request, Response, StatusCode};
use maud::html;

use crate::attempts::Tried;
use crate::form::Form;
use crate::route::{ROOT, Route};
use crate::session::Session;
use crate::uri_query;
use crate::{Portal, layout, redirect};

pub(crate) const PATH: &str = "/portal/login";

impl Portal {
    pub(crate) async fn login(&self, request: Request, session: Option<Session>) -> Response {
        if request.method == Method::GET {
            let next = uri_query(&request.query, "next");
            return match session {
                Some(_) => redirect(landing(&next)),
                None => form(StatusCode::OK, &next, None),
            };
        }
        let is_secure = request.secure;
        let Ok(fields) = Form::read(request.body).await else {
            return form(StatusCode::BAD_REQUEST, "", Some("The form could not be read."));
        };
        let (now, next) = (Instant::now(), fields.get("next"));
        match self.api.try_token(fields.get("token").trim(), now) {
            Tried::Right => {}
            Tried::Wrong => {
                return form(StatusCode::FORBIDDEN, next, Some("That is not the admin token."));
            }
            Tried::Wait(wait) => {
                let seconds = wait.as_secs() + 1;
                let message = format!("Too many wrong tokens. Try again in {seconds} seconds.");
                return form(StatusCode::TOO_MANY_REQUESTS, next, Some(&message))
                    .with("retry-after", seconds.to_string());
            }
        }
        match self.sessions.begin(now) {
            Some(session) => {
                let cookie = self.set_cookie(is_secure, &session.id, "");
                redirect(landing(next)).with("set-cookie", cookie)
            }
            None => {
                let message = "The system gives no random bytes, so no session can begin.";
                form(StatusCode::INTERNAL_SERVER_ERROR, next, Some(message))
            }
        }
    }
}

/// The page to go to: the one that was asked for, if it is one of ours.
fn landing(next: &str) -> &str {
    let path = next.split('?').next().unwrap_or(next);
    let plain = next.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
    if plain && Route::parse("GET", path).is_ok() { next } else { ROOT }
}

fn form(status: StatusCode, next: &str, wrong: Option<&str>) -> Response {
    let body = html! {
        h1 { "Log in" }
        form.card method="post" action=(PATH) {
            @if let Some(wrong) = wrong { p.notice.bad role="alert" { (wrong) } }
            label for="token" { "Admin token" }
            input #token type="password" name="token" required autofocus autocomplete="current-password"
                aria-describedby="where";
            p.muted #where { "It is in the file " code { "admin-token" } " in the data folder." }
            input type="hidden" name="next" value=(next);
            button type="submit" { "Log in" }
        }
    };
    crate::html(status, layout::outside("Log in", body))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_login_leads_to_pages_of_the_portal_only() {
        assert_eq!(landing("/portal/?sort=bytes"), "/portal/?sort=bytes");
        for elsewhere in
            ["", "//evil", "https://evil/portal/", "/\\evil", "/v1/status", "/portal/x\r\ny: z"]
        {
            assert_eq!(landing(elsewhere), ROOT, "{elsewhere}");
        }
    }
}
