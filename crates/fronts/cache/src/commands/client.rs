//! CLIENT: what a client says about itself and learns about others.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use lazuli_resp::parse_integer;

use crate::call::{After, Call};
use crate::clients::{Client, NOT_QUEUING};
use crate::command::{Run, TABLE};
use crate::failure::Failure;
use crate::session::Replies;
use crate::tracking::Mode;

pub(super) const RUNS: &[(&str, Run)] = &[
    ("client|getname", getname),
    ("client|id", id),
    ("client|info", info),
    ("client|kill", kill),
    ("client|list", list),
    ("client|no-evict", no_evict),
    ("client|pause", pause),
    ("client|reply", reply),
    ("client|setinfo", setinfo),
    ("client|setname", setname),
    ("client|unblock", unblock),
    ("client|unpause", unpause),
];

fn id(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    call.out.integer(call.session.client.id as i64);
    Ok(())
}

fn getname(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let name = call.session.client.texts().name.clone();
    call.out.bulk_or_null(Some(name.as_bytes()).filter(|it| !it.is_empty()));
    Ok(())
}

/// A text of a client about itself: printable and without blanks, since CLIENT LIST divides fields by them.
fn checked(text: &[u8], what: &str) -> Result<String, Failure> {
    if text.iter().all(u8::is_ascii_graphic) {
        return Ok(String::from_utf8_lossy(text).into_owned());
    }
    let tail = "cannot contain spaces, newlines or special characters.";
    Err(Failure::new(format!("ERR {what} {tail}")))
}

pub(super) fn set_name(call: &mut Call<'_, '_>, name: &[u8]) -> Result<(), Failure> {
    let name = checked(name, "Client names")?;
    call.session.client.texts().name = name;
    Ok(())
}

fn setname(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    set_name(call, call.args.at(2))?;
    call.out.ok();
    Ok(())
}

fn setinfo(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let (option, value) = (call.args.at(2), call.args.at(3));
    let name = String::from_utf8_lossy(option).to_ascii_lowercase();
    match name.as_str() {
        "lib-name" => call.session.client.texts().library = checked(value, "lib-name")?,
        "lib-ver" => call.session.client.texts().library_version = checked(value, "lib-ver")?,
        _ => return Err(Failure::new(format!("ERR Unrecognized option '{name}'"))),
    }
    call.out.ok();
    Ok(())
}

/// The line of a client in CLIENT LIST.
pub(crate) fn line(client: &Client, now_ms: u64) -> String {
    let texts = client.texts().clone();
    let get = |it: &std::sync::atomic::AtomicUsize| it.load(Ordering::Relaxed);
    let queued = client.queued.load(Ordering::Relaxed);
    let multi = if queued == NOT_QUEUING { -1 } else { i64::from(queued) };
    let subscriptions = (get(&client.subscriptions), get(&client.pattern_subscriptions));
    let mut flags = String::new();
    if client.is_blocked.load(Ordering::Relaxed) {
        flags.push('b');
    }
    if queued != NOT_QUEUING {
        flags.push('x');
    }
    if subscriptions.0 + subscriptions.1 > 0 {
        flags.push('P');
    }
    if client.no_evict.load(Ordering::Relaxed) {
        flags.push('e');
    }
    let tracking = client.tracking().clone();
    let redirect = tracking.as_ref().map_or(-1, |it| it.redirect.map_or(0, |client| client as i64));
    if let Some(tracking) = &tracking {
        flags.push('t');
        if tracking.is_broken {
            flags.push('R');
        }
        if tracking.mode == Mode::Broadcast {
            flags.push('B');
        }
    }
    let command = TABLE.commands.get(get(&client.command)).map_or("NULL", |it| it.name);
    format!(
        "id={} addr={} laddr={} fd=0 name={} age={} idle={} flags={} db={} sub={} psub={} ssub={} \
         multi={multi} qbuf=0 qbuf-free=0 argv-mem=0 multi-mem=0 rbs=0 rbp=0 obl=0 oll=0 omem=0 \
         tot-mem=0 events=r cmd={command} user={} redir={redirect} resp={} lib-name={} lib-ver={}",
        client.id,
        client.peer,
        client.local,
        texts.name,
        now_ms.saturating_sub(client.began_ms) / 1000,
        now_ms.saturating_sub(client.active_ms.load(Ordering::Relaxed)) / 1000,
        if flags.is_empty() { "N" } else { &flags },
        get(&client.database),
        subscriptions.0,
        subscriptions.1,
        get(&client.shard_subscriptions),
        texts.user,
        if client.is_resp3.load(Ordering::Relaxed) { 3 } else { 2 },
        texts.library,
        texts.library_version,
    )
}

fn info(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let line = line(&call.session.client, call.now_ms()) + "\n";
    call.out.verbatim("txt", &line);
    Ok(())
}

/// Whether a client is of a kind that CLIENT LIST and CLIENT KILL name.
fn is_kind(client: &Client, kind: &str) -> Option<bool> {
    match kind {
        "normal" => Some(!client.listens()),
        "pubsub" => Some(client.listens()),
        "master" | "replica" | "slave" => Some(false),
        _ => None,
    }
}

fn bad_kind(kind: &str) -> Failure {
    Failure::new(format!("ERR Unknown client type '{kind}'"))
}

fn list(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let now_ms = call.now_ms();
    let mut shown = call.server.clients.list();
    if call.args.is(2, "type") && call.args.len() == 4 {
        let kind = String::from_utf8_lossy(call.args.at(3)).to_ascii_lowercase();
        is_kind(&call.session.client, &kind).ok_or_else(|| bad_kind(&kind))?;
        shown.retain(|client| is_kind(client, &kind) == Some(true));
    } else if call.args.is(2, "id") && call.args.len() > 3 {
        let ids = call.args.from(3).iter().map(|it| {
            let id = parse_integer(it).filter(|it| *it > 0);
            id.ok_or(Failure::of("ERR Invalid client ID"))
        });
        let ids = ids.collect::<Result<Vec<_>, _>>()?;
        shown.retain(|client| ids.contains(&(client.id as i64)));
    } else if call.args.len() > 2 {
        return Err(Failure::SYNTAX);
    }
    let text: String = shown.iter().map(|client| line(client, now_ms) + "\n").collect();
    call.out.verbatim("txt", &text);
    Ok(())
}

type Filter = Box<dyn Fn(&Client) -> bool>;

fn kill(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let args = call.args;
    let own = call.session.client.id;
    if args.len() == 3 {
        let address = String::from_utf8_lossy(args.at(2)).into_owned();
        let all = call.server.clients.list();
        let found = all.iter().find(|it| it.peer.to_string() == address);
        found.ok_or(Failure::of("ERR No such client"))?.kill();
        if found.is_some_and(|it| it.id == own) {
            call.after = After::Close;
        }
        call.out.ok();
        return Ok(());
    }
    let (mut filters, mut skips_me): (Vec<Filter>, bool) = (Vec::new(), true);
    for at in (2..args.len()).step_by(2) {
        let value = args.get(at + 1).ok_or(Failure::SYNTAX)?;
        let text = String::from_utf8_lossy(value).into_owned();
        let filter: Filter = if args.is(at, "id") {
            let text = "ERR client-id should be greater than 0";
            let id = parse_integer(value).filter(|it| *it > 0).ok_or(Failure::of(text))?;
            Box::new(move |it| it.id as i64 == id)
        } else if args.is(at, "addr") {
            Box::new(move |it| it.peer.to_string() == text)
        } else if args.is(at, "laddr") {
            Box::new(move |it| it.local.to_string() == text)
        } else if args.is(at, "type") {
            let kind = text.to_ascii_lowercase();
            is_kind(&call.session.client, &kind).ok_or_else(|| bad_kind(&kind))?;
            Box::new(move |it| is_kind(it, &kind) == Some(true))
        } else if args.is(at, "user") {
            Box::new(move |it| it.texts().user == text)
        } else if args.is(at, "skipme") {
            skips_me = match text.to_ascii_lowercase().as_str() {
                "yes" => true,
                "no" => false,
                _ => return Err(Failure::SYNTAX),
            };
            continue;
        } else {
            return Err(Failure::SYNTAX);
        };
        filters.push(filter);
    }
    let all = call.server.clients.list();
    let fits =
        |it: &&Arc<Client>| filters.iter().all(|filter| filter(it)) && !(skips_me && it.id == own);
    let killed: Vec<_> = all.iter().filter(fits).collect();
    killed.iter().for_each(|it| it.kill());
    if killed.iter().any(|it| it.id == own) {
        call.after = After::Close;
    }
    call.out.count(killed.len());
    Ok(())
}

fn no_evict(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let is_on = match (call.args.is(2, "on"), call.args.is(2, "off")) {
        (true, _) => true,
        (_, true) => false,
        _ => return Err(Failure::SYNTAX),
    };
    call.session.client.no_evict.store(is_on, Ordering::Relaxed);
    call.out.ok();
    Ok(())
}

fn pause(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let text = "ERR timeout is not an integer or out of range";
    let time = parse_integer(call.args.at(2)).ok_or(Failure::of(text))?;
    let time = u64::try_from(time).map_err(|_| Failure::NEGATIVE_TIMEOUT)?;
    let only_writes = call.args.is(3, "write");
    if call.args.len() > 3 && !only_writes && !call.args.is(3, "all") {
        return Err(Failure::SYNTAX);
    }
    call.server.pause(call.now_ms().saturating_add(time), only_writes);
    call.out.ok();
    Ok(())
}

fn unpause(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    call.server.pause(0, false);
    call.out.ok();
    Ok(())
}

fn reply(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    if call.args.is(2, "on") {
        call.session.replies = Replies::On;
        call.out.ok();
    } else if call.args.is(2, "off") {
        call.session.replies = Replies::Off;
    } else if call.args.is(2, "skip") {
        if call.session.replies == Replies::On {
            call.session.replies = Replies::SkipNext;
        }
    } else {
        return Err(Failure::SYNTAX);
    }
    Ok(())
}

fn unblock(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let id = call.integer(2)?;
    let with_error = call.args.is(3, "error");
    if call.args.len() > 3 && !with_error && !call.args.is(3, "timeout") {
        let text = "ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR";
        return Err(Failure::of(text));
    }
    let is_done = u64::try_from(id).is_ok_and(|id| call.server.waiters.unblock(id, with_error));
    call.out.integer(i64::from(is_done));
    Ok(())
}
