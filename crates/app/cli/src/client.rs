//! Talks to the admin API of a running server: one small request, one JSON answer, over a plain socket.
//!
//! The admin API is on loopback only, so there is no TLS, no pooling and no redirection to know about.

mod stream;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::Duration;

use lazuli_server::endpoints::AdminFile;
use lazuli_server::secret::Secret;
use lazuli_server::settings::Settings;
use lazuli_server::token;
use serde_json::Value;

use crate::args::Target;
use crate::failure::{Failure, Result};
use crate::flags::SettingFlags;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Checking all keys of a server is the longest thing to wait for.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(3600);
/// The longest answer that is read.
const ANSWER_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// A running server's admin API.
pub(crate) struct Client {
    address: SocketAddr,
    authority: String,
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
            None => AdminFile::read(&settings.data)?.map(|file| file.url).ok_or_else(|| {
                Failure::failed(format!("no server runs on {}", settings.data.display())).hint(
                    "start one with `lazuli serve`, or name its data folder with --data \
                     or its admin API with --admin",
                )
            })?,
        };
        let kept = || token::read(&settings.data);
        let file = || token::path(&settings.data).display().to_string();
        let (token, token_from) = match settings.admin_token {
            Some(token) => (token, "the setting admin-token".to_owned()),
            None => (
                kept()?.ok_or_else(|| {
                    Failure::failed("there is no admin token").hint(
                        "name the data folder of the server with --data, \
                     or set LAZULI_ADMIN_TOKEN to its token",
                    )
                })?,
                file(),
            ),
        };
        let (address, authority) = parse(&url)?;
        Ok(Self { address, authority, token, token_from })
    }

    pub(crate) fn get(&self, path: &str) -> Result<Value> {
        self.send("GET", path, None)
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Result<Value> {
        self.send("POST", path, Some(body))
    }

    pub(crate) fn delete(&self, path: &str) -> Result<Value> {
        self.send("DELETE", path, None)
    }

    fn send(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Value> {
        let body = body.map(Value::to_string).unwrap_or_default();
        let request = self.head(method, path, body.len() as u64) + &body;
        let answer = self.exchange(request.as_bytes()).map_err(|error| no_answer(self, &error))?;
        self.understand(&answer)
    }

    /// What a request begins with, whose body has this length.
    fn head(&self, method: &str, path: &str, length: u64) -> String {
        format!(
            "{method} {path} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\n\
             content-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n",
            self.authority,
            self.token.reveal(),
        )
    }

    /// The JSON of an answer, or why it is a refusal.
    fn understand(&self, answer: &[u8]) -> Result<Value> {
        let (status, body) = split(answer).ok_or_else(|| {
            Failure::failed(format!("what answers at {} is no admin API", self.authority))
        })?;
        let value: Value = serde_json::from_slice(body).unwrap_or(Value::Null);
        match status {
            200..300 => Ok(value),
            401 => Err(self.wrong_token(&value)),
            _ => Err(refused(status, &value)),
        }
    }

    /// A request of this client always carries a token, so it is the wrong one.
    fn wrong_token(&self, answer: &Value) -> Failure {
        let code = answer["error"]["code"].as_str().unwrap_or("token-wrong");
        let message =
            format!("the server at {} does not take this admin token ({code})", self.authority);
        Failure::failed(message).hint(format!(
            "the token comes from {}; that of the server is in the file admin-token in its data \
             folder",
            self.token_from
        ))
    }

    fn connect(&self) -> std::io::Result<TcpStream> {
        let stream = TcpStream::connect_timeout(&self.address, CONNECT_TIMEOUT)?;
        stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
        Ok(stream)
    }

    fn exchange(&self, request: &[u8]) -> std::io::Result<Vec<u8>> {
        let mut stream = self.connect()?;
        stream.write_all(request)?;
        let mut answer = Vec::new();
        stream.take(ANSWER_BYTES_MAX).read_to_end(&mut answer)?;
        Ok(answer)
    }
}

fn no_answer(client: &Client, error: &std::io::Error) -> Failure {
    Failure::failed(format!("the admin API at {} does not answer: {error}", client.authority))
        .hint("is the server still running? `lazuli serve` starts one")
}

/// The settings that a command finds a server by.
pub(crate) fn settings(target: &Target) -> Result<Settings> {
    let flags = SettingFlags::of_data(target.data.clone(), target.config.clone());
    Ok(Settings::read(&flags.sources().texts()?)?)
}

fn parse(url: &str) -> Result<(SocketAddr, String)> {
    let wrong = || Failure::usage(format!("`{url}` is no address such as http://127.0.0.1:10010"));
    let rest = url.strip_prefix("http://").ok_or_else(wrong)?;
    let authority = rest.strip_suffix('/').unwrap_or(rest);
    let address = authority.to_socket_addrs().ok().and_then(|mut all| all.next());
    Ok((address.ok_or_else(wrong)?, authority.to_owned()))
}

/// Status and body of an answer. The server closes the connection behind it, so the body is all that is left.
fn split(answer: &[u8]) -> Option<(u16, &[u8])> {
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&answer[..end]).ok()?;
    let status = head.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok()?;
    Some((status, &answer[end + 4..]))
}

fn refused(status: u16, answer: &Value) -> Failure {
    let text = |name: &str| answer["error"][name].as_str();
    let failure = match (text("message"), text("code")) {
        (Some(message), Some(code)) => Failure::failed(format!("{message} ({code})")),
        _ => Failure::failed(format!("the server answered with status {status}")),
    };
    match text("hint") {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_split_into_status_and_body() {
        assert_eq!(split(b"HTTP/1.1 200 OK\r\na: b\r\n\r\n{}"), Some((200, &b"{}"[..])));
        for bad in [&b""[..], b"HTTP/1.1 200", b"SSH-2.0\r\n\r\n", b"HTTP/1.1 \r\n\r\n"] {
            assert_eq!(split(bad), None);
        }
    }

    #[test]
    fn addresses_are_plain_http() {
        assert_eq!(parse("http://127.0.0.1:7/").unwrap().0.port(), 7);
        for bad in ["", "127.0.0.1:7", "https://127.0.0.1:7", "http://", "http://127.0.0.1"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
