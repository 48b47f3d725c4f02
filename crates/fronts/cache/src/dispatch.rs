//! The order of the steps of every command, from its arguments to its reply.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use lazuli_keyspace::{Space, slot_of};
use lazuli_resp::{Args, Reply, parse_integer};

use crate::acl::Place;
use crate::blocking::Waiter;
use crate::call::{After, Call};
use crate::command::{Command, Flags, Locks, TABLE, Table};
use crate::failure::Failure;
use crate::limits::{DURABLE_BYTES_MAX, QUEUED_BYTES_MAX};
use crate::server::Server;
use crate::session::{Replies, Session};
use crate::stats::Slow;

/// What the connection has to do after a command.
pub(crate) enum Next {
    Go,
    Close,
    Wait(Arc<Waiter>, Option<u64>),
    Sleep(std::time::Duration),
    Flush,
}

impl Server {
    /// Runs one command of a client and writes its reply.
    pub(crate) fn execute(
        self: &Arc<Self>,
        session: &mut Session,
        args: Args<'_>,
        out: &mut Reply,
    ) -> Next {
        let start = out.bytes.len();
        let began = Instant::now();
        let found = find(&TABLE, args);
        let name = found.as_ref().ok().map(|it| it.name);
        let result = match found {
            Ok(command) => self.admit(session, command, args, out).inspect_err(|_failure| {
                self.stats.by_command[command.number].rejected.fetch_add(1, Ordering::Relaxed);
            }),
            Err(failure) => Err(failure),
        };
        let next = match result {
            Ok(Admitted::Done) => Next::Go,
            Ok(Admitted::Run(command)) => self.run(session, command, args, out, began),
            Err(failure) => {
                if let Some(queue) = &mut session.queue {
                    queue.is_broken = true;
                }
                self.refuse(out, start, &failure);
                Next::Go
            }
        };
        self.forget_caching(session, name);
        match session.replies {
            Replies::On => {}
            Replies::Off | Replies::Skip => out.bytes.truncate(start),
            Replies::SkipNext => {}
        }
        session.replies = match session.replies {
            Replies::SkipNext => Replies::Skip,
            Replies::Skip => Replies::On,
            other => other,
        };
        next
    }

    pub(crate) fn refuse(&self, out: &mut Reply, start: usize, failure: &Failure) {
        out.bytes.truncate(start);
        out.error(&failure.0);
        self.stats.count_error(failure.code());
    }

    /// Everything that is decided before a command runs.
    fn admit(
        self: &Arc<Self>,
        session: &mut Session,
        command: &'static Command,
        args: Args<'_>,
        out: &mut Reply,
    ) -> Result<Admitted, Failure> {
        if !command.takes(args.len()) || command.run.is_none() {
            return Err(wrong_arity(command));
        }
        if session.is_source {
            return self.enqueue(session, command, args, out);
        }
        if session.user.is_none() && !command.has(Flags::NO_AUTH) {
            return Err(Failure::of("NOAUTH Authentication required."));
        }
        self.check_access(command, args)?;
        let place = if session.queue.is_some() { Place::Transaction } else { Place::Client };
        self.check_user(session, command, args, place)?;
        self.check_following(session, command)?;
        if self.is_busy_with_script() && !command.has(Flags::ALLOW_BUSY) {
            return Err(Failure::of(
                "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN \
                 NOSAVE.",
            ));
        }
        if !session.is_resp3 && session.is_subscriber() && !is_for_subscribers(command.name) {
            return Err(Failure::new(format!(
                "ERR Can't execute '{}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / \
                 RESET are allowed in this context",
                command.name.split('|').next().unwrap_or_default()
            )));
        }
        if let Some(node) = session.cluster_node {
            self.check_slots(session, node, command, args)?;
        }
        if command.has(Flags::WRITE) && self.keyspace.is_persistent() {
            if self.keyspace.is_failing() {
                return Err(Failure::of(
                    "MISCONF Errors writing to the store: writes are refused until it takes them \
                     again. Check the log of the server.",
                ));
            }
            // What RESTORE brings becomes many rows: it looks at each of them.
            let is_too_long = |it: &[u8]| it.len() > DURABLE_BYTES_MAX;
            if command.name != "restore" && args.iter().any(is_too_long) {
                return Err(Failure::of("ERR a durable cache takes values up to 8 MiB"));
            }
        }
        if command.has(Flags::DENYOOM) && self.keyspace.memory_max() > 0 && !self.make_room() {
            return Err(Failure::NO_MEMORY);
        }
        self.enqueue(session, command, args, out)
    }

    /// Queues a command up, if the client has begun a transaction.
    fn enqueue(
        &self,
        session: &mut Session,
        command: &'static Command,
        args: Args<'_>,
        out: &mut Reply,
    ) -> Result<Admitted, Failure> {
        if let Some(queue) = &mut session.queue
            && !matches!(command.name, "exec" | "discard" | "multi" | "watch" | "quit" | "reset")
        {
            if command.has(Flags::NO_MULTI) {
                return Err(Failure::of("ERR Command not allowed inside a transaction"));
            }
            let args = args.to_owned();
            queue.bytes += args.bytes();
            if queue.bytes > QUEUED_BYTES_MAX {
                return Err(Failure::of("ERR transaction is too large"));
            }
            queue.commands.push((command, args));
            session.client.queued.store(queue.commands.len() as u32, Ordering::Relaxed);
            out.simple("QUEUED");
            return Ok(Admitted::Done);
        }
        Ok(Admitted::Run(command))
    }

    /// Takes the locks that a command needs, runs it, and settles what it did.
    fn run(
        self: &Arc<Self>,
        session: &mut Session,
        command: &'static Command,
        args: Args<'_>,
        out: &mut Reply,
        began: Instant,
    ) -> Next {
        let start = out.bytes.len();
        let mut space = self.space(session, command, args);
        space.client = session.client.id;
        if session.is_source {
            space.show_expired();
        }
        let (result, after) = self.run_in(session, command, args, out, &mut space, true);
        session.shows_keys |= space.holds_any();
        let next = match after {
            After::Nothing => Next::Go,
            After::Close => Next::Close,
            After::Sleep(time) => Next::Sleep(time),
            After::Flush => Next::Flush,
            After::Block(block) => {
                let timeout_ms = block.timeout_ms;
                let waiter = Arc::new(Waiter::new(session, command, block));
                self.waiters.add(&mut space, waiter.clone());
                Next::Wait(waiter, timeout_ms)
            }
        };
        self.settle(space);
        self.count(session, command, args, began, result.is_err());
        if let Err(failure) = result {
            self.refuse(out, start, &failure);
        }
        next
    }

    /// Runs a command on keys that are locked already.
    pub(crate) fn run_in(
        self: &Arc<Self>,
        session: &mut Session,
        command: &'static Command,
        args: Args<'_>,
        out: &mut Reply,
        space: &mut Space<'_>,
        may_block: bool,
    ) -> (Result<(), Failure>, After) {
        let Some(run) = command.run else { return (Err(wrong_arity(command)), After::Nothing) };
        let after = After::Nothing;
        let server = self;
        let mut call = Call { args, out, space, session, server, command, may_block, after };
        let result = run(&mut call);
        let after = call.after;
        if result.is_ok() {
            self.remember_reads(session, command, args, space);
        }
        (result, after)
    }

    /// The keys that a command may use, locked.
    fn space(&self, session: &Session, command: &'static Command, args: Args<'_>) -> Space<'_> {
        let (keyspace, database) = (&*self.keyspace, session.database);
        let now_ms = keyspace.now_ms();
        if matches!(command.name, "exec" | "unwatch" | "discard" | "reset") {
            return self.space_of_queue(session);
        }
        match self.locks(command, args) {
            Locks::None => keyspace.space(database, now_ms),
            Locks::Key(at) => keyspace.space_of(database, now_ms, args.at(at)),
            Locks::Keys => {
                let mut slots = Vec::new();
                crate::keys::visit(command, args, |at, _| slots.push(slot_of(args.at(at))));
                keyspace.space_of_slots(database, now_ms, slots.into_iter())
            }
            Locks::Cursor => {
                let cursor = parse_cursor(args.at(1)).unwrap_or_default();
                let slot = lazuli_keyspace::cursor_slot(cursor);
                keyspace.space_of_slots(database, now_ms, std::iter::once(slot))
            }
            Locks::All => keyspace.space_of_all(database, now_ms),
        }
    }

    /// Which locks a command needs; all, if its arguments do not say which keys it uses.
    fn locks(&self, command: &'static Command, args: Args<'_>) -> Locks {
        let is_known = || crate::keys::visit(command, args, |_, _| {});
        if command.locks == Locks::Keys && !is_known() { Locks::All } else { command.locks }
    }

    /// The keys of a transaction: those of its commands and those that it watches.
    fn space_of_queue(&self, session: &Session) -> Space<'_> {
        let (keyspace, now_ms) = (&*self.keyspace, self.keyspace.now_ms());
        let mut slots: Vec<u16> = session.watches.keys.iter().map(|it| slot_of(&it.1)).collect();
        for (command, args) in session.queue.iter().flat_map(|it| &it.commands) {
            let args = args.args();
            match self.locks(command, args) {
                Locks::None => {}
                Locks::Key(at) => slots.push(slot_of(args.at(at))),
                Locks::Keys => {
                    crate::keys::visit(command, args, |at, _| slots.push(slot_of(args.at(at))));
                }
                Locks::Cursor | Locks::All => {
                    return keyspace.space_of_all(session.database, now_ms);
                }
            }
        }
        keyspace.space_of_slots(session.database, now_ms, slots.into_iter())
    }

    fn count(
        &self,
        session: &Session,
        command: &'static Command,
        args: Args<'_>,
        began: Instant,
        is_failed: bool,
    ) {
        let took = began.elapsed();
        self.latency.count(command.number, took);
        let event = if command.has(Flags::FAST) { "fast-command" } else { "command" };
        self.latency.took(event, took, self.keyspace.now_ms());
        let micros = took.as_micros() as u64;
        let counts = &self.stats.by_command[command.number];
        counts.calls.fetch_add(1, Ordering::Relaxed);
        counts.micros.fetch_add(micros, Ordering::Relaxed);
        if is_failed {
            counts.failed.fetch_add(1, Ordering::Relaxed);
        }
        session.client.command.store(command.number, Ordering::Relaxed);
        let slower_than = self.config.slow_micros.load(Ordering::Relaxed);
        if micros as i64 >= slower_than && slower_than >= 0 && !command.has(Flags::SKIP_SLOWLOG) {
            let slow = Slow {
                id: 0,
                at_ms: self.keyspace.now_ms(),
                micros,
                args: Vec::new(),
                peer: session.client.peer.to_string(),
                name: session.client.texts().name.clone(),
            };
            let most = self.config.slow_entries.load(Ordering::Relaxed);
            self.stats.remember_slow(args, slow, most);
        }
    }
}

enum Admitted {
    /// It was queued.
    Done,
    Run(&'static Command),
}

/// Runs a command on behalf of another one that holds the locks: a script's.
pub(crate) fn run_nested(
    call: &mut Call<'_, '_>,
    args: Args<'_>,
    out: &mut Reply,
) -> Result<(), Failure> {
    let command = find(&TABLE, args)?;
    if !command.takes(args.len()) {
        return Err(wrong_arity(command));
    }
    if command.has(Flags::NOSCRIPT) || command.run.is_none() {
        return Err(Failure::of("ERR This Redis command is not allowed from script"));
    }
    let server = call.server.clone();
    server.check_access(command, args)?;
    server.check_user(call.session, command, args, Place::Script)?;
    let start = out.bytes.len();
    let (result, _) = server.run_in(call.session, command, args, out, call.space, false);
    if result.is_err() {
        out.bytes.truncate(start);
    }
    result
}

/// The command that the arguments name.
pub(crate) fn find(table: &'static Table, args: Args<'_>) -> Result<&'static Command, Failure> {
    let Some(command) = table.command(args.at(0)) else { return Err(unknown(args)) };
    if command.subcommands.is_empty() {
        return Ok(command);
    }
    let Some(second) = args.get(1) else {
        return if command.run.is_some() { Ok(command) } else { Err(wrong_arity(command)) };
    };
    match table.subcommand(command, second) {
        Some(found) => Ok(found),
        None if command.run.is_some() => Ok(command),
        None => {
            let shown = String::from_utf8_lossy(&second[..second.len().min(128)]).into_owned();
            let name = command.name.to_ascii_uppercase();
            Err(Failure::new(format!("ERR unknown subcommand '{shown}'. Try {name} HELP.")))
        }
    }
}

pub(crate) fn unknown(args: Args<'_>) -> Failure {
    let show = |it: &[u8]| String::from_utf8_lossy(&it[..it.len().min(128)]).into_owned();
    let mut shown = String::new();
    for argument in args.from(1).iter() {
        if shown.len() >= 128 {
            break;
        }
        shown.push_str(&format!("'{}' ", show(argument)));
    }
    let name = show(args.at(0));
    Failure::new(format!("ERR unknown command '{name}', with args beginning with: {shown}"))
}

pub(crate) fn wrong_arity(command: &Command) -> Failure {
    Failure::new(format!("ERR wrong number of arguments for '{}' command", command.name))
}

fn is_for_subscribers(name: &str) -> bool {
    matches!(
        name,
        "subscribe"
            | "unsubscribe"
            | "psubscribe"
            | "punsubscribe"
            | "ssubscribe"
            | "sunsubscribe"
            | "ping"
            | "quit"
            | "reset"
    )
}

/// The cursor of a scan.
pub(crate) fn parse_cursor(text: &[u8]) -> Option<u64> {
    let digits = std::str::from_utf8(text).ok()?;
    match parse_integer(text) {
        Some(_) | None if digits.bytes().all(|it| it.is_ascii_digit()) => digits.parse().ok(),
        _ => None,
    }
}
