//! One connection: whatever has arrived is parsed and run in order, and all replies are sent at once.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use lazuli_net::{Connection, Lease, Stop, Stream};
use lazuli_resp::{Parser, Reply};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use crate::Front;
use crate::blocking::Waiter;
use crate::dispatch::Next;
use crate::limits::{
    READ_BUFFER_KEPT_BYTES, READ_BYTES, REPLY_BUFFER_KEPT_BYTES, REPLY_BYTES_SENT_AT,
    SEND_TIME_MAX, STORE_TIME_MAX, STRANGER_TIME_MAX,
};
use crate::server::Server;
use crate::session::Session;

/// The connection is over.
struct Ended;

pub(crate) async fn serve(front: Arc<Front>, connection: Connection) {
    let Connection { stream, peer, stop, .. } = connection;
    let Ok(local) = stream.local_address() else { return };
    let server = front.server.clone();
    let client = server.clients.add(peer, local, server.keyspace.now_ms());
    server.stats.connections.fetch_add(1, Ordering::Relaxed);
    let mut session = Session::new(client, local);
    session.cluster_node = front.cluster_node;
    server.greet(&mut session);
    let mut line = Line {
        lease: Lease::new(server.budget.clone()),
        server,
        stream,
        stop,
        session,
        parser: Parser::default(),
        buffer: Vec::new(),
        start: 0,
        out: Reply::default(),
    };
    let _ended = line.run().await;
    line.server.forget(&mut line.session);
}

struct Line {
    server: Arc<Server>,
    stream: Stream,
    stop: Stop,
    session: Session,
    parser: Parser,
    /// What was read; commands before `start` have been run.
    buffer: Vec<u8>,
    start: usize,
    out: Reply,
    /// Memory of large requests.
    lease: Lease,
}

impl Line {
    async fn run(&mut self) -> Result<(), Ended> {
        loop {
            self.run_commands().await?;
            let replies = self.out.bytes.len();
            self.session.client.collect(&mut self.out.bytes);
            // Messages may tell of changed keys.
            self.session.shows_keys |= self.out.bytes.len() > replies;
            self.send().await?;
            if self.session.client.is_killed() {
                return Err(Ended);
            }
            self.make_room()?;
            self.wait_for_more().await?;
        }
    }

    /// Runs all commands that have come whole.
    async fn run_commands(&mut self) -> Result<(), Ended> {
        let mut count = 0;
        loop {
            let is_stranger = self.session.user.is_none();
            let parsed = self.parser.parse(&self.buffer[self.start..], is_stranger);
            let end = match parsed {
                Ok(Some(end)) => end,
                Ok(None) => break,
                Err(error) => {
                    self.out.error(&error.text());
                    let _ = self.send().await;
                    return Err(Ended);
                }
            };
            let args = self.parser.args(&self.buffer[self.start..]);
            if args.is_empty() {
                self.start += end;
                continue;
            }
            if args.at(0).eq_ignore_ascii_case(b"post") || args.at(0).eq_ignore_ascii_case(b"host:")
            {
                // A browser was made to send commands to us.
                return Err(Ended);
            }
            while let Some(pause) = self.server.paused_for(args) {
                tokio::time::sleep(pause).await;
            }
            while let Some(pause) = self.server.held_by_script() {
                tokio::time::sleep(pause).await;
            }
            let now_ms = self.server.keyspace.now_ms();
            self.server.monitors.show(&self.session.client, self.session.database, now_ms, args);
            let next = self.server.execute(&mut self.session, args, &mut self.out);
            self.start += end;
            count += 1;
            if !matches!(next, Next::Go) {
                self.after(next).await?;
            }
            if self.out.bytes.len() > REPLY_BYTES_SENT_AT {
                self.send().await?;
            }
            if self.session.client.is_killed() {
                break;
            }
        }
        if count > 0 {
            let client = &self.session.client;
            client.active_ms.store(self.server.keyspace.now_ms(), Ordering::Relaxed);
            client.commands.fetch_add(count, Ordering::Relaxed);
            self.server.stats.commands.fetch_add(count, Ordering::Relaxed);
        }
        Ok(())
    }

    /// What has to wait for something before the next command.
    async fn after(&mut self, next: Next) -> Result<(), Ended> {
        match next {
            Next::Go => {}
            Next::Close => {
                self.send().await?;
                return Err(Ended);
            }
            Next::Sleep(time) => tokio::time::sleep(time).await,
            Next::Flush => self.server.keyspace.flush().await,
            Next::Wait(waiter, timeout_ms) => {
                self.send().await?;
                let waited = self.wait(&waiter, timeout_ms).await;
                self.server.wait_no_more(&waiter);
                waited?;
            }
        }
        Ok(())
    }

    /// Waits until the client is served, its time is over, or it leaves.
    async fn wait(&mut self, waiter: &Arc<Waiter>, timeout_ms: Option<u64>) -> Result<(), Ended> {
        let client = self.session.client.clone();
        client.is_blocked.store(true, Ordering::Relaxed);
        let deadline = timeout_ms.map(|it| tokio::time::Instant::now() + Duration::from_millis(it));
        let over = async {
            match deadline {
                Some(deadline) => tokio::time::sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        tokio::pin!(over);
        let result = loop {
            self.buffer.reserve(READ_BYTES);
            tokio::select! {
                biased;
                () = waiter.served() => break Ok(()),
                () = &mut over => break Ok(()),
                () = self.stop.stopped() => break Err(Ended),
                () = client.woken() => {
                    if client.is_killed() {
                        break Err(Ended);
                    }
                    let mut mail = Vec::new();
                    client.collect(&mut mail);
                    if self.stream.write_all(&mail).await.is_err() {
                        break Err(Ended);
                    }
                }
                read = self.stream.read_buf(&mut self.buffer),
                    if self.buffer.len() - self.start < READ_BUFFER_KEPT_BYTES =>
                {
                    if !matches!(read, Ok(1..)) {
                        break Err(Ended);
                    }
                }
            }
        };
        client.is_blocked.store(false, Ordering::Relaxed);
        self.session.shows_keys = true;
        match waiter.end() {
            Some(reply) => self.out.bytes.extend_from_slice(&reply),
            None => waiter.on_timeout.write(&mut self.out),
        }
        result
    }

    /// Sends all replies, once what they tell of is as durable as promised.
    async fn send(&mut self) -> Result<(), Ended> {
        if self.out.bytes.is_empty() {
            return Ok(());
        }
        let settled = timeout(STORE_TIME_MAX, async {
            // A refusal must reach the client also while the store takes nothing.
            if self.session.shows_keys {
                self.server.keyspace.settled().await;
            }
            if self.session.users_until > 0 {
                self.server.acl.kept(self.session.users_until).await;
            }
        });
        let began = std::time::Instant::now();
        let is_settled = settled.await.is_ok();
        let now_ms = self.server.keyspace.now_ms();
        self.server.latency.took("aof-fsync-always", began.elapsed(), now_ms);
        if !is_settled {
            return Err(Ended);
        }
        let sent = timeout(SEND_TIME_MAX, async {
            self.stream.write_all(&self.out.bytes).await?;
            self.stream.flush().await
        });
        if !matches!(sent.await, Ok(Ok(()))) {
            return Err(Ended);
        }
        (self.session.shows_keys, self.session.users_until) = (false, 0);
        self.out.bytes.clear();
        if self.out.bytes.capacity() > REPLY_BUFFER_KEPT_BYTES {
            self.out.bytes = Vec::new();
        }
        Ok(())
    }

    /// Forgets what has been run, and makes room for what the parser knows to come.
    fn make_room(&mut self) -> Result<(), Ended> {
        if self.start == self.buffer.len() {
            self.buffer.clear();
            if self.buffer.capacity() > READ_BUFFER_KEPT_BYTES {
                self.buffer = Vec::new();
                self.lease = Lease::new(self.server.budget.clone());
            }
        } else if self.start > 0 {
            self.buffer.drain(..self.start);
        }
        self.start = 0;
        let wanted = self.parser.needs().max(self.buffer.len() + READ_BYTES);
        if wanted > self.buffer.capacity() {
            if wanted > READ_BUFFER_KEPT_BYTES {
                let more = wanted - self.buffer.capacity();
                self.lease.hold(more as u64).map_err(|_| Ended)?;
            }
            self.buffer.reserve(wanted - self.buffer.len());
        }
        Ok(())
    }

    /// Waits for bytes, messages or the end.
    async fn wait_for_more(&mut self) -> Result<(), Ended> {
        let client = self.session.client.clone();
        let idle_s = self.server.config.idle_s.load(Ordering::Relaxed);
        let patience = match &self.session.user {
            None => Some(STRANGER_TIME_MAX),
            Some(_) if idle_s > 0 && !self.session.is_subscriber() => {
                Some(Duration::from_secs(idle_s as u64))
            }
            Some(_) => None,
        };
        let over = async {
            match patience {
                Some(patience) => tokio::time::sleep(patience).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            read = self.stream.read_buf(&mut self.buffer) => match read {
                Ok(1..) => Ok(()),
                _ => Err(Ended),
            },
            () = client.woken() => Ok(()),
            () = self.stop.stopped() => Err(Ended),
            () = over => Err(Ended),
        }
    }
}
