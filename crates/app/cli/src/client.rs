//! The admin API of a running server: over a plain connection for each request on loopback, over TLS elsewhere.

use std::io::{self, Read};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use lazuli_console::{Failure, Result, output};
use lazuli_http::client::blocking::{Answer, Connection, Options, Trust};
use lazuli_server::endpoints::AdminFile;
use lazuli_server::secret::Secret;
use lazuli_server::settings::Settings;
use lazuli_server::token;
use lazuli_transfer::session::trusted;
use serde_json::Value;

use crate::args::Target;
use crate::flags::SettingFlags;
use crate::told::Told;

const CONNECT_WAIT: Duration = Duration::from_secs(5);
/// A check of all keys of a server takes the longest.
const ANSWER_WAIT: Duration = Duration::from_secs(3600);
/// The longest answer that is read into memory.
const ANSWER_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// How much of a stream is sent at once.
const PIECE_BYTES: usize = 256 * 1024;

/// A running server's admin API.
pub(crate) struct Client {
    authority: String,
    /// What a connection over TLS trusts; none for a plain one.
    trust: Option<Trust>,
    token: Secret,
    /// Where the token was found, for people.
    token_from: String,
}

impl Client {
    /// Finds the running server: at the address given, else the one that uses the data folder.
    pub(crate) fn find(target: &Target) -> Result<Self> {
        let settings = settings(target)?;
        let url = match target.admin_url() {
            Some(url) => url,
            None => {
                AdminFile::read(&settings.data).told()?.map(|file| file.url).ok_or_else(|| {
                    Failure::failed(format!("no server runs on {}", settings.data.display())).hint(
                        "start one with `lazuli serve`, or name its data folder with --data \
                     or its admin API with --admin",
                    )
                })?
            }
        };
        let (token, token_from) = match settings.admin_token {
            Some(token) => (token, "the setting admin-token".to_owned()),
            None => {
                let kept = token::read(&settings.data).told()?.ok_or_else(|| {
                    Failure::failed("there is no admin token").hint(
                        "name the data folder of the server with --data, \
                         or set LAZULI_ADMIN_TOKEN to its token",
                    )
                })?;
                (kept, token::path(&settings.data).display().to_string())
            }
        };
        let (authority, is_secure) = authority(&url)?;
        let own = own_certificate(&settings.data, settings.tls_files.as_ref());
        let trust = if is_secure { Some(trusted(own.as_deref())?) } else { None };
        Ok(Self { authority, trust, token, token_from })
    }

    /// The address of the server.
    pub(crate) fn url(&self) -> String {
        let scheme = if self.trust.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.authority)
    }

    pub(crate) fn get(&self, path: &str) -> Result<Value> {
        self.send("GET", path, None)
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Result<Value> {
        self.send("POST", path, Some(body))
    }

    pub(crate) fn put(&self, path: &str, body: &Value) -> Result<Value> {
        self.send("PUT", path, Some(body))
    }

    pub(crate) fn delete(&self, path: &str) -> Result<Value> {
        self.send("DELETE", path, None)
    }

    fn send(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Value> {
        let body = body.map(Value::to_string).unwrap_or_default();
        let head = self.head(method, path, body.len() as u64);
        let sent = self.connect().and_then(|mut it| it.exchange(head.as_bytes(), body.as_bytes()));
        self.value(sent.map_err(|error| self.no_answer(&error))?.0)
    }

    /// A body of any length, to be read as it comes.
    pub(crate) fn open(&self, path: &str) -> Result<impl Read + use<>> {
        let failed = |error: io::Error| self.no_answer(&error);
        let mut connection = self.connect().map_err(failed)?;
        connection.send(self.head("GET", path, 0).as_bytes(), b"").map_err(failed)?;
        let head = connection.read_head().map_err(failed)?;
        let status = head.status;
        let mut body = connection.into_body(&head).map_err(failed)?;
        if (200..300).contains(&status) {
            return Ok(body);
        }
        let mut bytes = Vec::new();
        body.by_ref().take(ANSWER_BYTES_MAX).read_to_end(&mut bytes).map_err(failed)?;
        Err(self.refused(&Answer { head, body: bytes }))
    }

    /// Sends a body of this length and reads the answer. `sent` is called with how much was sent so far.
    pub(crate) fn send_stream(
        &self,
        path: &str,
        length: u64,
        body: &mut dyn Read,
        mut sent: impl FnMut(u64),
    ) -> Result<Value> {
        let failed = |error: io::Error| self.no_answer(&error);
        let mut connection = self.connect().map_err(failed)?;
        connection.send(self.head("POST", path, length).as_bytes(), b"").map_err(failed)?;
        let mut piece = vec![0; PIECE_BYTES];
        let mut total = 0;
        while total < length {
            let read = body.read(&mut piece);
            let count = read.map_err(|error| Failure::failed(format!("cannot read: {error}")))?;
            if count == 0 {
                return Err(Failure::failed("the backup became shorter while it was read"));
            }
            // A server that refuses a long body may answer and close before all of it is sent.
            if connection.send(b"", &piece[..count]).is_err() {
                break;
            }
            total += count as u64;
            sent(total);
        }
        self.value(connection.read_answer(true).map_err(failed)?.0)
    }

    fn connect(&self) -> io::Result<Connection> {
        let (connect_wait, answer_wait) = (CONNECT_WAIT, ANSWER_WAIT);
        let body_bytes_max = ANSWER_BYTES_MAX;
        let trust = self.trust.clone();
        let options = Options { connect_wait, answer_wait, body_bytes_max, trust };
        Connection::open(&self.authority, &options)
    }

    /// The head of a request whose body has this length.
    fn head(&self, method: &str, path: &str, length: u64) -> String {
        format!(
            "{method} {path} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\n\
             content-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n",
            self.authority,
            self.token.reveal(),
        )
    }

    /// The JSON of an answer, or why it is a refusal.
    fn value(&self, answer: Answer) -> Result<Value> {
        match answer.status {
            200..300 => Ok(answer.json()),
            _ => Err(self.refused(&answer)),
        }
    }

    fn refused(&self, answer: &Answer) -> Failure {
        let error = &answer.json()["error"];
        let text = |name: &str| error[name].as_str();
        if answer.status == 401 {
            let code = text("code").unwrap_or("token-wrong");
            let message =
                format!("the server at {} does not take this admin token ({code})", self.authority);
            return Failure::failed(message).hint(format!(
                "the token comes from {}; the server's token is in the file admin-token in its \
                 data folder",
                self.token_from
            ));
        }
        let message = match (text("message"), text("code")) {
            (Some(message), Some(code)) => format!("{message} ({code})"),
            _ => format!("the server answered with status {}", answer.status),
        };
        Failure::failed(message).maybe_hint(text("hint"))
    }

    fn no_answer(&self, error: &io::Error) -> Failure {
        if error.kind() == io::ErrorKind::InvalidData {
            let message = format!("no admin API answers at {}: {error}", self.authority);
            return Failure::failed(message);
        }
        Failure::failed(format!("the admin API at {} does not answer: {error}", self.authority))
            .hint("is the server still running? `lazuli serve` starts one")
    }
}

/// Gets an answer to print for people. With `--json` it is printed as it is instead, and there is none.
pub(crate) fn fetch(target: &Target, path: &str) -> Result<Option<Value>> {
    let answer = Client::find(target)?.get(path)?;
    if target.json {
        output::json(&answer);
        return Ok(None);
    }
    Ok(Some(answer))
}

/// The settings that a command finds a server by.
pub(crate) fn settings(target: &Target) -> Result<Settings> {
    let flags = SettingFlags::of_data(target.data.clone(), target.config.clone());
    flags.sources().texts().and_then(|texts| Settings::read(&texts)).told()
}

/// The certificate that the server of this data folder shows, if it is there.
pub(crate) fn own_certificate(data: &Path, given: Option<&(PathBuf, PathBuf)>) -> Option<PathBuf> {
    let own = data.join("tls").join("cert.pem");
    let certificate = given.map_or(own, |(certificate, _)| certificate.clone());
    certificate.is_file().then_some(certificate)
}

/// Host and port of a URL, and whether it is over TLS. What is not must be on this machine: the token would be readable.
fn authority(url: &str) -> Result<(String, bool)> {
    let wrong = || {
        Failure::usage(format!(
            "`{url}` is no address such as http://127.0.0.1:10010 or https://lazuli.example:10011"
        ))
    };
    let (rest, is_secure) = match (url.strip_prefix("https://"), url.strip_prefix("http://")) {
        (Some(rest), _) => (rest, true),
        (None, Some(rest)) => (rest, false),
        (None, None) => return Err(wrong()),
    };
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    let (host, port) = rest.rsplit_once(':').ok_or_else(wrong)?;
    if host.is_empty() || port.parse::<u16>().is_err() {
        return Err(wrong());
    }
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let is_here = host == "localhost" || bare.parse().is_ok_and(|ip: IpAddr| ip.is_loopback());
    if !is_secure && !is_here {
        let failure = Failure::usage("the admin API of another machine is asked over https only");
        return Err(failure.hint("the setting admin-remote lets a server listen for it"));
    }
    Ok((rest.to_owned(), is_secure))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_other_machines_are_asked_over_tls() {
        let read = |url| authority(url).unwrap();
        assert_eq!(read("http://127.0.0.1:7/"), ("127.0.0.1:7".to_owned(), false));
        assert_eq!(read("http://[::1]:7"), ("[::1]:7".to_owned(), false));
        assert_eq!(read("https://lazuli.example:7"), ("lazuli.example:7".to_owned(), true));
        for bad in ["", "127.0.0.1:7", "http://", "http://127.0.0.1", "https://a", "http://a:7"] {
            assert!(authority(bad).is_err(), "{bad}");
        }
    }
}
