//! Connections: who the client is, what it speaks, which database it uses.

use std::sync::atomic::Ordering;

use crate::acl::{Place, Reason};
use crate::call::{After, Call};
use crate::clients::NOT_QUEUING;
use crate::command::Run;
use crate::commands::keys::database;
use crate::commands::transactions::forget_watches;
use crate::failure::Failure;
use crate::session::Replies;

pub(super) const RUNS: &[(&str, Run)] = &[
    ("auth", auth),
    ("echo", echo),
    ("hello", hello),
    ("ping", ping),
    ("quit", quit),
    ("reset", reset),
    ("select", select),
    ("readonly", simply_ok),
    ("readwrite", simply_ok),
    ("asking", simply_ok),
];

/// The version of the service whose commands these are.
pub(crate) const VERSION: &str = "7.0.15";

fn simply_ok(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    call.session.is_asking = call.command.name == "asking";
    call.out.ok();
    Ok(())
}

fn ping(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    if call.args.len() > 2 {
        return Err(crate::dispatch::wrong_arity(call.command));
    }
    if call.session.is_subscriber() && !call.session.is_resp3 {
        call.out.array(2);
        call.out.bulk(b"pong");
        call.out.bulk(call.args.at(1));
    } else if let Some(text) = call.args.get(1) {
        call.out.bulk(text);
    } else {
        call.out.simple("PONG");
    }
    Ok(())
}

fn echo(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    call.out.bulk(call.args.at(1));
    Ok(())
}

fn quit(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    call.out.ok();
    call.after = After::Close;
    Ok(())
}

fn select(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let number = call.integer(1)?;
    if call.session.cluster_node.is_some() && number != 0 {
        return Err(Failure::of("ERR SELECT is not allowed in cluster mode"));
    }
    call.session.database = database(call, 1)?;
    call.session.client.database.store(call.session.database, Ordering::Relaxed);
    call.out.ok();
    Ok(())
}

fn auth(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let (user, password) = match call.args.len() {
        2 => (&b"default"[..], call.args.at(1)),
        3 => (call.args.at(1), call.args.at(2)),
        _ => return Err(Failure::SYNTAX),
    };
    authenticate(call, user, password, call.args.len() == 2)?;
    call.out.ok();
    Ok(())
}

fn authenticate(
    call: &mut Call<'_, '_>,
    user: &[u8],
    password: &[u8],
    is_old_form: bool,
) -> Result<(), Failure> {
    let name = String::from_utf8_lossy(user).into_owned();
    match call.server.authenticate(&name, password) {
        Some(user) => {
            call.session.client.texts().user.clone_from(&user.name);
            call.session.user = Some(user);
            Ok(())
        }
        None if is_old_form && call.server.open_user().is_some() => Err(Failure::of(
            "ERR AUTH <password> called without any password configured for the default user. Are \
             you sure your configuration is correct?",
        )),
        None => {
            let client = &call.session.client;
            call.server.report(client, &name, Reason::Auth, Place::Client, call.args.at(0));
            Err(Failure::of("WRONGPASS invalid username-password pair or user is disabled."))
        }
    }
}

fn hello(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let args = call.args;
    let mut version = if call.session.is_resp3 { 3 } else { 2 };
    if let Some(text) = args.get(1) {
        let number = lazuli_resp::parse_integer(text);
        let text = "ERR Protocol version is not an integer or out of range";
        version = number.ok_or(Failure::of(text))?;
        if !(2..=3).contains(&version) {
            return Err(Failure::of("NOPROTO unsupported protocol version"));
        }
    }
    let (mut name, mut at) = (None, 2);
    let mut credentials = None;
    while at < args.len() {
        if args.is(at, "auth") && at + 2 < args.len() {
            credentials = Some((args.at(at + 1), args.at(at + 2)));
            at += 3;
        } else if args.is(at, "setname") && at + 1 < args.len() {
            name = Some(args.at(at + 1));
            at += 2;
        } else {
            let option = String::from_utf8_lossy(args.at(at)).into_owned();
            return Err(Failure::new(format!("ERR Syntax error in HELLO option '{option}'")));
        }
    }
    if let Some((user, password)) = credentials {
        authenticate(call, user, password, false)?;
    }
    if call.session.user.is_none() {
        return Err(Failure::of(
            "NOAUTH HELLO must be called with the client already authenticated, otherwise the \
             HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and \
             select the RESP protocol version at the same time",
        ));
    }
    if let Some(name) = name {
        super::client::set_name(call, name)?;
    }
    call.session.is_resp3 = version == 3;
    call.session.client.is_resp3.store(version == 3, Ordering::Relaxed);
    call.out.is_resp3 = version == 3;
    let mode = if call.session.cluster_node.is_some() { "cluster" } else { "standalone" };
    let out = &mut *call.out;
    out.map(7);
    out.text("server");
    out.text("redis");
    out.text("version");
    out.text(VERSION);
    out.text("proto");
    out.integer(version);
    out.text("id");
    out.integer(call.session.client.id as i64);
    out.text("mode");
    out.text(mode);
    out.text("role");
    out.text(if call.server.replication.is_replica() { "replica" } else { "master" });
    out.text("modules");
    out.array(0);
    Ok(())
}

/// Makes the connection as it was when it was new.
fn reset(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    forget_watches(call);
    let session = &mut *call.session;
    session.queue = None;
    session.client.queued.store(NOT_QUEUING, Ordering::Relaxed);
    call.server.unsubscribe_all(session);
    call.server.track_no_more(&session.client);
    (session.database, session.is_resp3, session.is_monitor) = (0, false, false);
    session.client.database.store(0, Ordering::Relaxed);
    session.client.is_resp3.store(false, Ordering::Relaxed);
    session.replies = Replies::On;
    session.user = None;
    session.client.texts().name.clear();
    call.out.is_resp3 = false;
    call.server.greet(session);
    call.out.simple("RESET");
    Ok(())
}
