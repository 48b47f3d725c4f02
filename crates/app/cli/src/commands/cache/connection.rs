//! One connection to the cache of the running server.

use std::io::{Read, Write};
use std::net::IpAddr;
use std::time::Duration;

use lazuli_console::{Failure, Result};
use lazuli_http::client::blocking::{Connection, Options};
use lazuli_resp::{Answer, read_answer};
use lazuli_transfer::session::trusted;
use serde_json::Value;

use crate::args::cache::Place;
use crate::client::{Client, own_certificate, settings};

/// A server that sends nothing for this long is given up.
const ANSWER_WAIT: Duration = Duration::from_secs(120);
/// The longest answer that is read into memory.
const ANSWER_BYTES_MAX: usize = 1024 * 1024 * 1024;
const READ_BYTES: usize = 64 * 1024;

trait Both: Read + Write {}

impl<T: Read + Write> Both for T {}

pub(super) struct Cache {
    stream: Box<dyn Both>,
    received: Vec<u8>,
    /// What is before it has been taken.
    start: usize,
    /// Where it listens.
    pub(super) authority: String,
}

impl Cache {
    /// Finds the cache of the running server, and says who asks.
    pub(super) fn find(place: &Place) -> Result<(Self, Client)> {
        let admin = Client::find(&place.target)?;
        let status = admin.get("/v1/status")?;
        let url = |name: &str| status["endpoints"][name].as_str();
        let url = url("cache").ok_or_else(|| {
            Failure::failed("the server does not serve the cache")
                .hint("the settings cache-port and services say whether it does")
        })?;
        let (scheme, authority) = url.split_once("://").unwrap_or(("redis", url));
        let listed = admin.get("/v1/accounts?keys=true")?;
        let key = key_of(&listed, place.account.as_deref())?;
        let settings = settings(&place.target)?;
        let is_secure = scheme == "rediss";
        if !is_secure && !is_here(authority) {
            let failure = Failure::failed("the cache of another machine is asked over TLS only");
            return Err(failure.hint("start the server with cache-tls only"));
        }
        let own = own_certificate(&settings.data, settings.tls_files.as_ref());
        let trust = if is_secure { Some(trusted(own.as_deref())?) } else { None };
        let options = Options { answer_wait: ANSWER_WAIT, trust, ..Options::default() };
        let connection = Connection::open(authority, &options)
            .map_err(|error| Failure::failed(format!("cannot connect to {authority}: {error}")))?;
        let stream = Box::new(connection.into_stream());
        let authority = authority.to_owned();
        let mut cache = Self { stream, received: Vec::new(), start: 0, authority };
        cache.ask(&[b"AUTH", key.as_bytes()])?;
        Ok((cache, admin))
    }

    /// Sends one command and takes its answer; an error is a failure.
    pub(super) fn ask(&mut self, words: &[&[u8]]) -> Result<Answer> {
        self.send(std::iter::once(words))?;
        match self.receive()? {
            Answer::Error(text) => {
                let text = String::from_utf8_lossy(&text);
                Err(Failure::failed(format!("the cache answered: {text}")))
            }
            answer => Ok(answer),
        }
    }

    /// Sends commands, whose answers are to be taken one by one.
    pub(super) fn send<'c>(
        &mut self,
        commands: impl Iterator<Item = &'c [&'c [u8]]>,
    ) -> Result<()> {
        let mut bytes = Vec::new();
        for command in commands {
            bytes.extend_from_slice(format!("*{}\r\n", command.len()).as_bytes());
            for word in command {
                bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
                bytes.extend_from_slice(word);
                bytes.extend_from_slice(b"\r\n");
            }
        }
        let sent = self.stream.write_all(&bytes).and_then(|()| self.stream.flush());
        sent.map_err(|error| self.lost(&error))
    }

    pub(super) fn receive(&mut self) -> Result<Answer> {
        let mut wanted = 1;
        loop {
            let rest = &self.received[self.start..];
            if rest.len() >= wanted {
                let read = read_answer(rest);
                let read = read.map_err(|_| Failure::failed("the server does not speak RESP"))?;
                if let Some((answer, length)) = read {
                    self.start += length;
                    return Ok(answer);
                }
                // A long answer is looked at a few times, not at every read.
                wanted = bulk_bytes(rest).unwrap_or(rest.len() + 1);
            }
            if wanted > ANSWER_BYTES_MAX {
                return Err(Failure::failed("an answer of the cache is too long"));
            }
            self.read()?;
        }
    }

    fn read(&mut self) -> Result<()> {
        if self.start > 0 {
            self.received.drain(..self.start);
            self.start = 0;
        }
        let before = self.received.len();
        self.received.resize(before + READ_BYTES, 0);
        let read = self.stream.read(&mut self.received[before..]);
        self.received.truncate(before + *read.as_ref().unwrap_or(&0));
        match read {
            Ok(0) => Err(Failure::failed("the server closed the connection")),
            Ok(_) => Ok(()),
            Err(error) => Err(self.lost(&error)),
        }
    }

    fn lost(&self, error: &std::io::Error) -> Failure {
        Failure::failed(format!("the cache at {} does not answer: {error}", self.authority))
    }

    pub(super) fn select(&mut self, database: usize) -> Result<()> {
        self.ask(&[b"SELECT", database.to_string().as_bytes()]).map(drop)
    }

    /// A field of INFO.
    pub(super) fn info(&mut self, section: &str) -> Result<Vec<(String, String)>> {
        let (Answer::Bulk(text) | Answer::Verbatim(_, text)) =
            self.ask(&[b"INFO", section.as_bytes()])?
        else {
            return Err(Failure::failed("the server answered INFO in an unknown form"));
        };
        let text = String::from_utf8_lossy(&text).into_owned();
        let fields = text.lines().filter_map(|line| line.split_once(':'));
        Ok(fields.map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
    }
}

/// The length of an answer that begins as a bulk string, as far as its head says.
fn bulk_bytes(bytes: &[u8]) -> Option<usize> {
    let end = bytes.iter().take(32).position(|byte| *byte == b'\n')?;
    let digits = std::str::from_utf8(bytes.strip_prefix(b"$")?.get(..end - 1)?).ok()?;
    digits.trim().parse::<usize>().ok()?.checked_add(end + 3)
}

/// The first key of an account.
fn key_of(listed: &Value, account: Option<&str>) -> Result<String> {
    let mut accounts = listed["accounts"].as_array().into_iter().flatten();
    let found = accounts.find(|one| account.is_none_or(|name| one["name"] == name));
    let key = found.and_then(|one| ["key1", "key2"].iter().find_map(|key| one[*key].as_str()));
    key.map(str::to_owned).ok_or_else(|| {
        Failure::failed("the server has no such account").hint("`lazuli account list` lists them")
    })
}

/// Whether an authority is on this machine, where an access key may be sent without TLS.
fn is_here(authority: &str) -> bool {
    let host = authority.rsplit_once(':').map_or(authority, |(host, _)| host);
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    bare == "localhost" || bare.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_of_a_bulk_string_is_that_of_all_its_bytes() {
        let whole = b"$11\r\nhello world\r\n";
        assert_eq!(bulk_bytes(&whole[..7]), Some(whole.len()));
        assert_eq!(
            (bulk_bytes(b"*2\r\n"), bulk_bytes(b"$1"), bulk_bytes(b"$\r\n")),
            (None, None, None)
        );
    }

    #[test]
    fn keys_are_sent_in_the_clear_to_this_machine_only() {
        assert!(is_here("127.0.0.1:6379") && is_here("[::1]:6379") && is_here("localhost:1"));
        assert!(!is_here("10.0.0.1:6379") && !is_here("cache.example:6379"));
    }
}
