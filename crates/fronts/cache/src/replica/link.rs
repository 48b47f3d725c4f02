//! The connection to the server that is followed: opened again whenever it ends, and continued where it ended if the other
//! server still knows what came after that.

use std::sync::Arc;
use std::time::Duration;

use lazuli_net::Lease;
use lazuli_resp::{Parser, Reply};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};

use super::{Source, Stage};
use crate::limits::{
    READ_BUFFER_KEPT_BYTES, READ_BYTES, SOURCE_CONNECT_MAX, SOURCE_LINE_BYTES_MAX, SOURCE_PAUSE,
    SOURCE_SILENCE_MAX,
};
use crate::server::Server;
use crate::session::Session;

/// How often the source is told how far this server is.
const ACK_PERIOD: Duration = Duration::from_secs(1);

/// Why a connection to the source ended.
pub(super) enum Ended {
    /// It is tried again.
    Passing(String),
    /// Trying again would end in the same way: until the operator says so it is not.
    ForGood(String),
}

pub(super) fn passing(reason: impl ToString) -> Ended {
    Ended::Passing(reason.to_string())
}

/// This server as the replica of another one, over as many connections as it takes.
pub(super) struct Replica {
    pub(super) server: Arc<Server>,
    source: Source,
    /// Whom the commands of the source are run for: its database and its transaction outlive a connection.
    pub(super) session: Option<Session>,
    pub(super) parser: Parser,
    pub(super) out: Reply,
    /// The history that is followed; empty before the first copy.
    pub(super) id: String,
    pub(super) offset: u64,
}

/// One connection, with what was read from it.
pub(super) struct Wire {
    stream: TcpStream,
    pub(super) buffer: Vec<u8>,
    /// What is before it has been used.
    pub(super) start: usize,
    /// Memory of a large buffer.
    lease: Lease,
}

impl Wire {
    pub(super) fn rest(&self) -> &[u8] {
        &self.buffer[self.start..]
    }

    /// Reads more, with room for at least so many bytes.
    pub(super) async fn read(&mut self, room: usize) -> Result<usize, Ended> {
        if self.start == self.buffer.len() {
            self.buffer.clear();
            self.start = 0;
        } else if self.start > self.buffer.len() / 2 {
            self.buffer.drain(..self.start);
            self.start = 0;
        }
        let wanted = self.buffer.len() + room;
        if wanted > self.buffer.capacity() {
            if wanted > READ_BUFFER_KEPT_BYTES {
                let more = wanted - self.buffer.capacity();
                let held = self.lease.hold(more as u64);
                held.map_err(|_| passing("this server is short of memory"))?;
            }
            self.buffer.reserve(room);
        }
        match timeout(SOURCE_SILENCE_MAX, self.stream.read_buf(&mut self.buffer)).await {
            Ok(Ok(0)) => Err(passing("the source closed the connection")),
            Ok(Ok(count)) => Ok(count),
            Ok(Err(error)) => Err(passing(error)),
            Err(_) => Err(passing("the source was silent for too long")),
        }
    }

    /// The next line that is not empty.
    pub(super) async fn line(&mut self) -> Result<String, Ended> {
        loop {
            if let Some(end) = self.rest().iter().position(|byte| *byte == b'\n') {
                let line = String::from_utf8_lossy(&self.rest()[..end]).trim_end().to_owned();
                self.start += end + 1;
                if !line.is_empty() {
                    return Ok(line);
                }
            } else if self.rest().len() > SOURCE_LINE_BYTES_MAX {
                return Err(passing("the source does not speak the protocol"));
            } else {
                self.read(READ_BYTES).await?;
            }
        }
    }

    pub(super) async fn send(&mut self, words: &[&str]) -> Result<(), Ended> {
        let mut bytes = format!("*{}\r\n", words.len());
        for word in words {
            bytes.push_str(&format!("${}\r\n{word}\r\n", word.len()));
        }
        let sent = timeout(SOURCE_CONNECT_MAX, self.stream.write_all(bytes.as_bytes())).await;
        match sent {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(passing(error)),
            Err(_) => Err(passing("the source does not read")),
        }
    }

    async fn ask(&mut self, words: &[&str]) -> Result<String, Ended> {
        self.send(words).await?;
        self.line().await
    }
}

impl Replica {
    pub(super) fn new(server: Arc<Server>, source: Source) -> Self {
        Self {
            server,
            source,
            session: None,
            parser: Parser::default(),
            out: Reply::default(),
            id: String::new(),
            offset: 0,
        }
    }

    /// Follows the source, over one connection after another; ends only when nothing more can be done.
    pub(super) async fn run(&mut self) {
        loop {
            let Err(ended) = self.connect_and_follow().await;
            let (reason, is_over) = match ended {
                Ended::Passing(reason) => (reason, false),
                Ended::ForGood(reason) => (reason, true),
            };
            let Source { host, port } = &self.source;
            tracing::warn!(host, port, reason, "the cache lost the server that it follows");
            self.server.set_loading(false);
            self.server.replication.note(|status| {
                (status.stage, status.trouble) = (Stage::Connect, Some(reason));
            });
            if is_over {
                std::future::pending::<()>().await;
            }
            tokio::time::sleep(SOURCE_PAUSE).await;
        }
    }

    /// Its end: nothing of it is left among the clients.
    pub(super) fn forget(&mut self) {
        if let Some(mut session) = self.session.take() {
            self.server.forget(&mut session);
        }
    }

    async fn connect_and_follow(&mut self) -> Result<std::convert::Infallible, Ended> {
        self.server.replication.note(|status| status.stage = Stage::Connecting);
        let mut wire = self.connect().await?;
        self.introduce(&mut wire).await?;
        let (id, next) = match self.id.is_empty() {
            true => ("?".to_owned(), "-1".to_owned()),
            false => (self.id.clone(), (self.offset + 1).to_string()),
        };
        let answer = wire.ask(&["PSYNC", &id, &next]).await?;
        let words: Vec<&str> = answer.split(' ').collect();
        match words.as_slice() {
            ["+FULLRESYNC", id, offset] => {
                let offset = offset.parse().map_err(|_| passing("the source gave no offset"))?;
                let id = (*id).to_owned();
                self.server.replication.note(|status| status.stage = Stage::Sync);
                self.load(&mut wire).await?;
                (self.id, self.offset) = (id, offset);
            }
            ["+CONTINUE", changed @ ..] => {
                if let [id] = changed {
                    self.id = (*id).to_owned();
                }
            }
            _ => return Err(passing(format!("the source refuses to be followed: {answer}"))),
        }
        self.server.replication.note(|status| {
            (status.stage, status.trouble) = (Stage::Connected, None);
            (status.id, status.offset) = (self.id.clone(), self.offset);
        });
        self.stream(&mut wire).await
    }

    async fn connect(&mut self) -> Result<Wire, Ended> {
        let Source { host, port } = &self.source;
        let found = timeout(SOURCE_CONNECT_MAX, tokio::net::lookup_host((host.as_str(), *port)));
        let found = found.await.map_err(|_| passing("the name of the source is not found"))?;
        let sources = &self.server.replication.sources;
        let allowed = found.map_err(passing)?.find(|it| sources.allow(host, *it));
        // A name may stand for this very machine, which has to be named with its port.
        let address = allowed.ok_or_else(|| {
            passing("the setting cache-source-hosts does not allow the address of this host")
        })?;
        let stream = timeout(SOURCE_CONNECT_MAX, TcpStream::connect(address)).await;
        let stream = stream.map_err(|_| passing("the source cannot be reached"))?;
        let stream = stream.map_err(passing)?;
        stream.set_nodelay(true).map_err(passing)?;
        if self.session.is_none() {
            let local = stream.local_addr().map_err(passing)?;
            let client = self.server.clients.add(address, local, self.server.keyspace.now_ms());
            let mut session = Session::new(client, local);
            session.is_source = true;
            self.session = Some(session);
        }
        let lease = Lease::new(self.server.budget.clone());
        Ok(Wire { stream, buffer: Vec::new(), start: 0, lease })
    }

    /// Says who this is, and what it understands.
    async fn introduce(&self, wire: &mut Wire) -> Result<(), Ended> {
        let password = self.server.config.value("masterauth");
        if !password.is_empty() {
            let user = self.server.config.value("masteruser");
            let answer = match user.is_empty() {
                true => wire.ask(&["AUTH", &password]).await?,
                false => wire.ask(&["AUTH", &user, &password]).await?,
            };
            if !answer.starts_with('+') {
                return Err(passing(format!("the source does not take the password: {answer}")));
            }
        }
        let answer = wire.ask(&["PING"]).await?;
        if !answer.starts_with('+') {
            return Err(passing(format!("the source does not talk to this server: {answer}")));
        }
        let port = self.session.as_ref().map_or(0, |it| it.local.port()).to_string();
        // Old servers know one or the other of these, and go on without.
        wire.ask(&["REPLCONF", "listening-port", &port]).await?;
        wire.ask(&["REPLCONF", "capa", "eof", "capa", "psync2"]).await?;
        Ok(())
    }

    /// Runs the commands of the source as they come, and says how far this server is.
    async fn stream(&mut self, wire: &mut Wire) -> Result<std::convert::Infallible, Ended> {
        // Half a command of the last connection comes again as a whole.
        self.parser = Parser::default();
        let (mut acknowledged, mut heard) = (Instant::now(), Instant::now());
        loop {
            let is_asked = self.run_commands(wire)?;
            self.server.keyspace.settled().await;
            self.server.replication.note(|status| status.offset = self.offset);
            if is_asked || acknowledged.elapsed() >= ACK_PERIOD {
                wire.send(&["REPLCONF", "ACK", &self.offset.to_string()]).await?;
                acknowledged = Instant::now();
            }
            let room = self.parser.needs().saturating_sub(wire.rest().len()).max(READ_BYTES);
            // Reading can be given up at any time: what came stays in the buffer.
            match timeout(ACK_PERIOD, wire.read(room)).await {
                Ok(read) => {
                    read?;
                    heard = Instant::now();
                    let now_ms = self.server.keyspace.now_ms();
                    self.server.replication.note(|status| status.heard_ms = now_ms);
                }
                Err(_) if heard.elapsed() > SOURCE_SILENCE_MAX => {
                    return Err(passing("the source was silent for too long"));
                }
                Err(_) => {}
            }
        }
    }

    /// Runs all commands that have come whole. Whether the source asks how far this server is.
    fn run_commands(&mut self, wire: &mut Wire) -> Result<bool, Ended> {
        let (mut parser, mut is_asked) = (std::mem::take(&mut self.parser), false);
        loop {
            match parser.parse(wire.rest(), false) {
                Ok(Some(end)) => {
                    is_asked |= self.apply(parser.args(wire.rest()))?;
                    wire.start += end;
                    self.offset += end as u64;
                }
                Ok(None) => {
                    self.parser = parser;
                    return Ok(is_asked);
                }
                Err(error) => return Err(passing(error.text())),
            }
        }
    }
}
