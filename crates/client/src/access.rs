//! The admin API: where it is, and the two kinds of requests that are made of it.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use lazuli_http::client::blocking::{Connection, Options, Trust};
use serde_json::Value;

use crate::error::{Error, Result};

/// How long a connection to the admin API may take.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(5);
/// How long it may be silent. Changes of mappings wait for transactions on shards.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(120);
/// The longest answer: a list map may have many mappings.
const ANSWER_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// How the admin API of a Lazuli server is reached.
#[derive(Clone)]
pub struct Access {
    authority: Arc<str>,
    token: Arc<str>,
    trust: Option<Trust>,
}

impl Access {
    /// The admin API of this machine, as `http://127.0.0.1:10010`, with its token.
    pub fn new(url: &str, token: &str) -> Result<Self> {
        let wrong =
            || Error::Invalid(format!("{url} is no address such as http://127.0.0.1:10010"));
        let authority = url.strip_prefix("http://").ok_or_else(wrong)?.trim_end_matches('/');
        let (host, _) = authority.rsplit_once(':').ok_or_else(wrong)?;
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        // The token would be readable on the way.
        if host != "localhost" && !bare.parse().is_ok_and(|ip: IpAddr| ip.is_loopback()) {
            let why = "the admin API of another machine is asked over https only";
            return Err(Error::Invalid(why.to_owned()));
        }
        Ok(Self { authority: authority.into(), token: token.trim().into(), trust: None })
    }

    /// One over TLS, as `https://lazuli.example:10011`, with the certificates to trust.
    pub fn over_tls(url: &str, token: &str, trust: Trust) -> Result<Self> {
        let wrong =
            || Error::Invalid(format!("{url} is no address such as https://lazuli.example:10011"));
        let authority = url.strip_prefix("https://").ok_or_else(wrong)?.trim_end_matches('/');
        Ok(Self { authority: authority.into(), token: token.trim().into(), trust: Some(trust) })
    }

    pub(crate) async fn get(&self, path: &str) -> Result<Value> {
        self.ask("GET", path.to_owned(), String::new()).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Result<Value> {
        self.ask("POST", path.to_owned(), body.to_string()).await
    }

    async fn ask(&self, method: &'static str, path: String, body: String) -> Result<Value> {
        let access = self.clone();
        let asked = tokio::task::spawn_blocking(move || access.exchange(method, &path, &body));
        asked.await.unwrap_or_else(|error| Err(Error::Unavailable(error.to_string())))
    }

    fn exchange(&self, method: &str, path: &str, body: &str) -> Result<Value> {
        let options = Options {
            connect_wait: CONNECT_TIME_MAX,
            answer_wait: ANSWER_TIME_MAX,
            body_bytes_max: ANSWER_BYTES_MAX,
            trust: self.trust.clone(),
        };
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
            self.authority,
            self.token,
            body.len()
        );
        let asked = Connection::open(&self.authority, &options)
            .and_then(|mut connection| connection.exchange(head.as_bytes(), body.as_bytes()));
        let (answer, _) = asked.map_err(|error| {
            Error::Unavailable(format!("the admin API at {}: {error}", self.authority))
        })?;
        let value = answer.json();
        if (200..300).contains(&answer.status) {
            return Ok(value);
        }
        let text = |name: &str| value["error"][name].as_str().unwrap_or_default().to_owned();
        match (answer.status, text("message")) {
            (500.., message) => Err(Error::Unavailable(format!("the admin API: {message}"))),
            (_, message) => Err(Error::Refused { code: text("code"), message }),
        }
    }
}

/// Without the token, so that no log shows it.
impl std::fmt::Debug for Access {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the admin API at {}", self.authority)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_never_sent_in_the_clear_to_another_machine() {
        for good in ["http://127.0.0.1:7", "http://[::1]:7/", "http://localhost:7"] {
            assert!(Access::new(good, "t").is_ok(), "{good}");
        }
        for bad in ["http://lazuli.example:7", "https://127.0.0.1:7", "127.0.0.1:7", "http://a"] {
            assert!(Access::new(bad, "t").is_err(), "{bad}");
        }
        let shown = format!("{:?}", Access::new("http://[::1]:7", "secret").unwrap());
        assert!(!shown.contains("secret"), "{shown}");
    }
}
