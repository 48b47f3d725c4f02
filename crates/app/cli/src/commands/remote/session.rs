//! Requests to a service: signed, and tried again where that may help.

use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use lazuli_http::xml;
use serde_json::Value;
use tokio_rustls::rustls::ClientConfig;

use super::place::Place;
use super::sign;
use super::transport::{Answer, Connection, trust};
use crate::failure::{Failure, Result};

/// How often a request is sent before it is given up.
const ATTEMPTS_MAX: u32 = 8;
const BACK_OFF_FIRST: Duration = Duration::from_millis(250);
const BACK_OFF_MAX: Duration = Duration::from_secs(10);
/// The longest wait that a service may ask for.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(60);

/// What to ask; `path` and `query` are escaped, and begin behind the account.
#[derive(Clone, Copy)]
pub(in crate::commands) struct Ask<'a> {
    pub(in crate::commands) method: &'a str,
    pub(in crate::commands) path: &'a str,
    pub(in crate::commands) query: &'a str,
    /// Empty for the usual one of the protocol.
    pub(in crate::commands) content_type: &'a str,
    pub(in crate::commands) headers: &'a [(&'a str, &'a str)],
    pub(in crate::commands) body: &'a [u8],
}

impl<'a> Ask<'a> {
    pub(in crate::commands) fn new(method: &'a str, path: &'a str) -> Self {
        Self { method, path, query: "", content_type: "", headers: &[], body: b"" }
    }
}

/// An answer, and whether an earlier attempt may have been carried out without our being told.
pub(in crate::commands) struct Answered {
    pub(in crate::commands) answer: Answer,
    pub(in crate::commands) in_doubt: bool,
}

/// Why the service said no.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::commands) struct Refusal {
    pub(in crate::commands) status: u16,
    pub(in crate::commands) code: String,
    pub(in crate::commands) message: String,
}

impl Refusal {
    pub(in crate::commands) fn of(answer: &Answer) -> Self {
        let told = json_error(&answer.body).or_else(|| xml_error(&answer.body));
        let (code, text) = told.unwrap_or_default();
        let header = answer.header("x-ms-error-code").unwrap_or("no code");
        let code = if code.is_empty() { header.to_owned() } else { code };
        // The first line is the sentence; the others name the request and the time. In transactions it begins with
        // the place of the change.
        let line = text.lines().next().unwrap_or_default();
        let sentence = match line.split_once(':') {
            Some((place, rest)) if place.parse::<u32>().is_ok() => rest,
            _ => line,
        };
        Self { status: answer.status, code, message: sentence.trim().to_owned() }
    }

    pub(in crate::commands) fn sentence(&self) -> String {
        if self.message.is_empty() {
            return format!("the service answered with status {} ({})", self.status, self.code);
        }
        format!("{} ({})", self.message.trim_end_matches('.'), self.code)
    }

    pub(in crate::commands) fn failure(&self) -> Failure {
        Failure::failed(self.sentence())
    }
}

/// Code and message of an error as the Table service tells it.
fn json_error(body: &[u8]) -> Option<(String, String)> {
    let value: Value = serde_json::from_slice(body).ok()?;
    let error = &value["odata.error"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    Some((text(&error["code"]), text(&error["message"]["value"])))
}

/// And as the Blob service does.
fn xml_error(body: &[u8]) -> Option<(String, String)> {
    let root = xml::parse(body).ok().filter(|root| root.name == "Error")?;
    let text = |name: &str| root.child_text(name).unwrap_or_default().to_owned();
    Some((text("Code"), text("Message")))
}

/// Whether asking again may give another answer.
pub(in crate::commands) fn is_passing(status: u16) -> bool {
    matches!(status, 408 | 429 | 500 | 502 | 503 | 504)
}

/// One connection to a place, opened when it is needed and opened again when it is lost.
pub(in crate::commands) struct Session {
    place: Arc<Place>,
    trust: Option<Arc<ClientConfig>>,
    connection: Option<Connection>,
}

impl Session {
    pub(in crate::commands) fn new(place: Arc<Place>) -> Result<Self> {
        let trust = trust(&place)?;
        Ok(Self { place, trust, connection: None })
    }

    pub(in crate::commands) fn place(&self) -> &Place {
        &self.place
    }

    /// Asks, and asks again a bounded number of times while the service is busy or cannot be reached.
    pub(in crate::commands) fn ask(&mut self, ask: Ask<'_>) -> Result<Answered> {
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
    pub(in crate::commands) fn expect(&mut self, ask: Ask<'_>) -> Result<Answer> {
        let answer = self.ask(ask)?.answer;
        match answer.status {
            200..=299 => Ok(answer),
            _ => Err(Refusal::of(&answer).failure()),
        }
    }

    fn send(&mut self, ask: Ask<'_>) -> io::Result<Answer> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let head = sign::head(&self.place, ask, i64::try_from(now).unwrap_or_default())?;
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => Connection::open(&self.place, self.trust.as_ref())?,
        };
        let (answer, again) = connection.exchange(&head, ask.body)?;
        self.connection = again.then_some(connection);
        Ok(answer)
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

    fn answer(status: u16, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Answer { status, headers: headers.collect(), body: body.to_vec() }
    }

    #[test]
    fn refusals_are_one_sentence_and_a_code() {
        let body = br#"{"odata.error":{"code":"EntityAlreadyExists","message":{"lang":"en-US",
            "value":"3:The specified entity already exists.\nRequestId:x\nTime:y"}}}"#;
        let refusal = Refusal::of(&answer(409, &[], body));
        assert_eq!(refusal.sentence(), "The specified entity already exists (EntityAlreadyExists)");
        let other = Refusal::of(&answer(418, &[], b"<html>"));
        assert_eq!(other.sentence(), "the service answered with status 418 (no code)");
        let body = b"<?xml version=\"1.0\"?><Error><Code>BlobNotFound</Code>\
            <Message>The specified blob does not exist.\nRequestId:x\nTime:y</Message></Error>";
        let blob = Refusal::of(&answer(404, &[], body));
        assert_eq!(blob.sentence(), "The specified blob does not exist (BlobNotFound)");
        let bare = Refusal::of(&answer(404, &[("x-ms-error-code", "BlobNotFound")], b""));
        assert_eq!(bare.sentence(), "the service answered with status 404 (BlobNotFound)");
    }
}
