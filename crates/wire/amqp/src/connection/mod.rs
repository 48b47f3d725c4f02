//! One connection: a single task owns the socket and the state of all sessions and links.
//!
//! Invariants: nothing is locked, and handles of the front reach the task over one channel; frames are gathered and
//! written together; while a client reads too slowly, or has too much unsettled, nothing more is read from it.

mod ending;
mod handshake;
mod incoming;
mod links;
mod machine;
mod outgoing;

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval};

use crate::limits::{Limits, READ_BYTES};
use crate::link::{Attaching, Command, ConnectionHandle, Shared};
use crate::performative::Open;
use crate::sasl::Credentials;
use crate::state::Error;
use machine::Machine;

/// How much is gathered before no more commands and frames are looked at until some of it is written.
const OUT_BYTES_HIGH: usize = 256 * 1024;
/// The most commands that are handled before the socket gets its turn.
const COMMANDS_AT_ONCE_MAX: usize = 1_000;
/// The longest time between two looks at the clock.
const TICK: Duration = Duration::from_secs(5);
/// What an idle connection keeps of its buffers.
const IDLE_BUFFER_BYTES: usize = 4 * 1024;

/// What a server of AMQP is made of: it lets connections in.
pub trait Container: Send + Sync + 'static {
    /// How the server calls itself.
    fn id(&self) -> &str;

    /// Whether these credentials are good. Called once, before the connection is open.
    fn admits(&self, credentials: &Credentials) -> bool;

    /// A connection is opened: what answers its links from now on, or why it is closed at once.
    fn open(&self, opening: Opening<'_>) -> Result<Arc<dyn Peer>, Error>;
}

/// One connection on the side of the front. It is dropped when the connection ends.
pub trait Peer: Send + Sync + 'static {
    /// The client wants a link. Called in the task of the connection, so it must not wait: what takes time is spawned.
    fn attach(self: Arc<Self>, attaching: Attaching);
}

/// A connection that is being opened.
#[derive(Debug)]
pub struct Opening<'a> {
    pub credentials: &'a Credentials,
    /// What the client sent.
    pub open: &'a Open,
    pub peer: SocketAddr,
    /// Whether it came over TLS.
    pub secure: bool,
    pub connection: ConnectionHandle,
}

/// Where a connection comes from.
#[derive(Clone, Copy, Debug)]
pub struct Origin {
    pub peer: SocketAddr,
    pub secure: bool,
}

/// Serves one connection until its end, or until `stop` is done and the client was told so.
pub async fn serve<S>(
    stream: S,
    origin: Origin,
    container: Arc<dyn Container>,
    limits: Arc<Limits>,
    stop: impl Future<Output = ()>,
) where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut io = Io { stream, input: BytesMut::new(), read_bytes: IDLE_BUFFER_BYTES };
    let (sender, commands) = unbounded_channel();
    let shared = Arc::new(Shared {
        commands: sender,
        limits: limits.clone(),
        queued_bytes: AtomicUsize::new(0),
        starved: AtomicBool::new(false),
    });
    let mut stop = std::pin::pin!(stop);
    let greeted = tokio::select! {
        biased;
        () = stop.as_mut() => return,
        greeted = tokio::time::timeout(
            limits.handshake_timeout,
            handshake::run(&mut io, origin, &*container, &shared),
        ) => greeted,
    };
    // A client that left, was too slow or was refused has been told what there is to tell.
    let Ok(Ok(machine)) = greeted else { return };
    let ticks = tick(machine.idle_timeout_of_client(), limits.idle_timeout);
    let now = Instant::now();
    let mut driver = Driver { io, machine, commands, ticks, heard: now, wrote: now };
    // What the client has sent without waiting for our answers came with them.
    driver.handle_input();
    let mut stopping = false;
    poll_fn(|cx| {
        if !stopping && stop.as_mut().poll(cx).is_ready() {
            stopping = true;
            driver.machine.close_for_stop();
        }
        driver.poll(cx)
    })
    .await;
}

/// How often a connection looks at the clock, if the client wants to hear something within one time, and we within another.
fn tick(theirs: Option<Duration>, ours: Duration) -> Interval {
    let often = theirs.unwrap_or(TICK).min(ours) / 4;
    let mut ticks = interval(often.clamp(Duration::from_millis(50), TICK));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

/// The socket and what was read from it and not looked at.
struct Io<S> {
    stream: S,
    input: BytesMut,
    /// How much is read at once; it grows while the client sends as much.
    read_bytes: usize,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Io<S> {
    /// Reads once, however much there is. Zero at the end.
    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let before = self.input.len();
        self.input.resize(before + self.read_bytes, 0);
        let mut buffer = ReadBuf::new(&mut self.input[before..]);
        let polled = Pin::new(&mut self.stream).poll_read(cx, &mut buffer);
        let count = buffer.filled().len();
        self.input.truncate(before + count);
        ready!(polled)?;
        if count == self.read_bytes {
            self.read_bytes = (self.read_bytes * 4).min(READ_BYTES);
        }
        Poll::Ready(Ok(count))
    }

    /// Writes until everything is written or the client reads no more. True if something was written.
    fn poll_write(&mut self, cx: &mut Context<'_>, out: &mut BytesMut) -> io::Result<bool> {
        let mut wrote = false;
        while !out.is_empty() {
            match Pin::new(&mut self.stream).poll_write(cx, out) {
                Poll::Ready(Ok(0)) => return Err(io::ErrorKind::WriteZero.into()),
                Poll::Ready(Ok(count)) => out.advance(count),
                Poll::Ready(Err(error)) => return Err(error),
                Poll::Pending => break,
            }
            wrote = true;
        }
        match Pin::new(&mut self.stream).poll_flush(cx) {
            Poll::Ready(Err(error)) => Err(error),
            _ => Ok(wrote),
        }
    }
}

struct Driver<S> {
    io: Io<S>,
    machine: Machine,
    commands: UnboundedReceiver<Command>,
    ticks: Interval,
    /// When something was last read, and when last written.
    heard: Instant,
    wrote: Instant,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Driver<S> {
    /// Ready when the connection has ended.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            let commanded = self.take_commands(cx);
            let read = match self.take_frames(cx) {
                Ok(read) => read,
                Err(_) => return Poll::Ready(()),
            };
            self.machine.finish_turn();
            match self.io.poll_write(cx, &mut self.machine.out) {
                Ok(true) => self.wrote = Instant::now(),
                Ok(false) => {}
                Err(_) => return Poll::Ready(()),
            }
            let pumped = self.machine.out.len() < OUT_BYTES_HIGH && self.machine.pump_all();
            if self.machine.is_over() && self.machine.out.is_empty() {
                return Pin::new(&mut self.io.stream).poll_shutdown(cx).map(drop);
            }
            if self.ticks.poll_tick(cx).is_ready() {
                if self.look_at_clock() {
                    return Poll::Ready(());
                }
                continue;
            }
            if !commanded && !read && !pumped {
                return Poll::Pending;
            }
        }
    }

    fn take_commands(&mut self, cx: &mut Context<'_>) -> bool {
        let mut any = false;
        for _ in 0..COMMANDS_AT_ONCE_MAX {
            if self.machine.out.len() >= OUT_BYTES_HIGH {
                break;
            }
            // The machine holds a sender itself, so the channel does not end.
            let Poll::Ready(Some(command)) = self.commands.poll_recv(cx) else { break };
            self.machine.command(command);
            any = true;
        }
        any
    }

    /// Reads once and handles all frames that are complete. False if nothing came; an error if the client has left.
    fn take_frames(&mut self, cx: &mut Context<'_>) -> io::Result<bool> {
        if self.machine.out.len() >= OUT_BYTES_HIGH || !self.machine.reads() {
            return Ok(false);
        }
        match self.io.poll_read(cx) {
            Poll::Pending => return Ok(false),
            Poll::Ready(Ok(0)) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Poll::Ready(Ok(_)) => self.heard = Instant::now(),
            Poll::Ready(Err(error)) => return Err(error),
        }
        self.handle_input();
        Ok(true)
    }

    fn handle_input(&mut self) {
        let used = self.machine.frames(&self.io.input);
        self.io.input.advance(used);
    }

    /// True if the connection is to be given up.
    fn look_at_clock(&mut self) -> bool {
        let limits = self.machine.limits();
        let (now, idle) = (Instant::now(), limits.idle_timeout);
        if !self.machine.out.is_empty() && now - self.wrote > limits.write_timeout {
            return true;
        }
        // Twice the time that the client was told, as the specification advises. A connection that does not read by
        // its own will cannot tell whether the client is silent.
        if self.machine.reads() && now - self.heard > idle * 2 {
            return true;
        }
        if self.machine.out.is_empty() && now - self.wrote > TICK {
            self.machine.out = BytesMut::new();
        }
        if self.io.input.is_empty() && now - self.heard > TICK {
            self.io.input = BytesMut::new();
            self.io.read_bytes = IDLE_BUFFER_BYTES;
        }
        self.machine.tick(now, self.wrote)
    }
}
