//! Requests of the Tables protocol: signed, and tried again where that may help.

use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use lazuli_http::date::format_rfc1123;
use serde_json::Value;
use tokio_rustls::rustls::ClientConfig;

use super::place::{Credential, Place};
use super::transport::{Answer, Connection, trust};
use crate::failure::{Failure, Result};

/// The version of the service that the official SDKs ask for.
const VERSION: &str = "2019-02-02";
/// How often a request is sent before it is given up.
const ATTEMPTS_MAX: u32 = 8;
const BACK_OFF_FIRST: Duration = Duration::from_millis(250);
const BACK_OFF_MAX: Duration = Duration::from_secs(10);
/// The longest wait that a service may ask for.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(60);

/// What to ask; `path` and `query` are escaped, and begin behind the account.
#[derive(Clone, Copy)]
pub(super) struct Ask<'a> {
    pub(super) method: &'a str,
    pub(super) path: &'a str,
    pub(super) query: &'a str,
    pub(super) content_type: &'a str,
    pub(super) header: Option<(&'a str, &'a str)>,
    pub(super) body: &'a [u8],
}

impl<'a> Ask<'a> {
    pub(super) fn new(method: &'a str, path: &'a str) -> Self {
        let (query, content_type) = ("", "application/json");
        Self { method, path, query, content_type, header: None, body: b"" }
    }
}

/// An answer, and whether an earlier attempt may have been carried out without our being told.
pub(super) struct Answered {
    pub(super) answer: Answer,
    pub(super) in_doubt: bool,
}

/// Why the service said no.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) status: u16,
    pub(super) code: String,
    pub(super) message: String,
}

impl Refusal {
    pub(super) fn of(status: u16, body: &[u8]) -> Self {
        let value: Value = serde_json::from_slice(body).unwrap_or(Value::Null);
        let error = &value["odata.error"];
        let code = error["code"].as_str().unwrap_or("no code").to_owned();
        // The first line is the sentence; the others name the request and the time. In transactions it begins with
        // the place of the change.
        let text = error["message"]["value"].as_str().unwrap_or_default();
        let line = text.lines().next().unwrap_or_default();
        let sentence = match line.split_once(':') {
            Some((place, rest)) if place.parse::<u32>().is_ok() => rest,
            _ => line,
        };
        Self { status, code, message: sentence.trim().to_owned() }
    }

    pub(super) fn sentence(&self) -> String {
        if self.message.is_empty() {
            return format!("the service answered with status {} ({})", self.status, self.code);
        }
        format!("{} ({})", self.message.trim_end_matches('.'), self.code)
    }

    pub(super) fn failure(&self) -> Failure {
        Failure::failed(self.sentence())
    }
}

/// Whether asking again may give another answer.
pub(super) fn is_passing(status: u16) -> bool {
    matches!(status, 408 | 429 | 500 | 502 | 503 | 504)
}

/// One connection to a place, opened when it is needed and opened again when it is lost.
pub(super) struct Session {
    place: Arc<Place>,
    trust: Option<Arc<ClientConfig>>,
    connection: Option<Connection>,
}

impl Session {
    pub(super) fn new(place: Arc<Place>) -> Result<Self> {
        let trust = trust(&place)?;
        Ok(Self { place, trust, connection: None })
    }

    /// Asks, and asks again a bounded number of times while the service is busy or cannot be reached.
    pub(super) fn ask(&mut self, ask: Ask<'_>) -> Result<Answered> {
        let mut back_off = BACK_OFF_FIRST;
        let mut in_doubt = false;
        for attempt in 1.. {
            let sent = self.send(ask);
            let (wait, doubtful) = match &sent {
                Ok(answer) if !is_passing(answer.status) => (Duration::ZERO, false),
                Ok(answer) => (retry_after(answer).unwrap_or(back_off), answer.status != 429),
                Err(error) => (back_off, error.kind() != io::ErrorKind::ConnectionRefused),
            };
            match sent {
                Ok(answer) if wait.is_zero() || attempt == ATTEMPTS_MAX => {
                    return Ok(Answered { answer, in_doubt });
                }
                Err(error) if attempt == ATTEMPTS_MAX || !may_pass(&error) => {
                    let message = format!("{} cannot be asked: {error}", self.place.base());
                    return Err(Failure::failed(message));
                }
                _ => {}
            }
            in_doubt |= doubtful;
            std::thread::sleep(wait);
            back_off = (back_off * 2).min(BACK_OFF_MAX);
        }
        Err(Failure::failed("the service does not answer"))
    }

    /// Asks and takes only success for an answer.
    pub(super) fn expect(&mut self, ask: Ask<'_>) -> Result<Answer> {
        let answer = self.ask(ask)?.answer;
        match answer.status {
            200..=299 => Ok(answer),
            status => Err(Refusal::of(status, &answer.body).failure()),
        }
    }

    fn send(&mut self, ask: Ask<'_>) -> io::Result<Answer> {
        let head = self.head(ask);
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => Connection::open(&self.place, self.trust.as_ref())?,
        };
        let (answer, again) = connection.exchange(&head, ask.body)?;
        self.connection = again.then_some(connection);
        Ok(answer)
    }

    fn head(&self, ask: Ask<'_>) -> String {
        let place = &*self.place;
        let seconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let date = format_rfc1123(i64::try_from(seconds).unwrap_or_default());
        let path = format!("{}{}", place.root, ask.path);
        let mut query = ask.query.to_owned();
        let mut authorization = String::new();
        match &place.credential {
            Credential::Key(key) => {
                let signature =
                    STANDARD.encode(key.sign(&format!("{date}\n/{}{path}", place.account)));
                authorization =
                    format!("authorization: SharedKeyLite {}:{signature}\r\n", place.account);
            }
            Credential::Sas(sas) => {
                let between = if query.is_empty() { "" } else { "&" };
                query = format!("{query}{between}{sas}");
            }
        }
        let mark = if query.is_empty() { "" } else { "?" };
        let own = ask.header.map(|(name, value)| format!("{name}: {value}\r\n"));
        format!(
            "{} {path}{mark}{query} HTTP/1.1\r\nhost: {}\r\nx-ms-date: {date}\r\n\
             x-ms-version: {VERSION}\r\ndataserviceversion: 3.0\r\n{authorization}\
             accept: application/json;odata=minimalmetadata\r\nprefer: return-no-content\r\n\
             {}content-type: {}\r\ncontent-length: {}\r\n\r\n",
            ask.method,
            place.authority,
            own.unwrap_or_default(),
            ask.content_type,
            ask.body.len()
        )
    }
}

fn retry_after(answer: &Answer) -> Option<Duration> {
    let seconds = answer.header("retry-after")?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds).clamp(BACK_OFF_FIRST, RETRY_AFTER_MAX))
}

/// A name that nobody knows, a certificate that is not trusted and an answer that is no HTTP stay what they are.
fn may_pass(error: &io::Error) -> bool {
    !matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_one_sentence_and_a_code() {
        let body = br#"{"odata.error":{"code":"EntityAlreadyExists","message":{"lang":"en-US",
            "value":"3:The specified entity already exists.\nRequestId:x\nTime:y"}}}"#;
        let refusal = Refusal::of(409, body);
        assert_eq!(refusal.sentence(), "The specified entity already exists (EntityAlreadyExists)");
        let other = Refusal::of(418, b"<html>");
        assert_eq!(other.sentence(), "the service answered with status 418 (no code)");
    }
}
