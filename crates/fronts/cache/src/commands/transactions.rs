//! Transactions: MULTI queues commands up, EXEC runs them with nobody in between, WATCH makes that depend on keys.

use std::sync::atomic::Ordering;

use crate::acl::Place;
use crate::call::{After, Call};
use crate::clients::NOT_QUEUING;
use crate::command::Run;
use crate::failure::Failure;
use crate::session::Queue;

pub(super) const RUNS: &[(&str, Run)] = &[
    ("discard", discard),
    ("exec", exec),
    ("multi", multi),
    ("unwatch", unwatch),
    ("watch", watch),
];

fn multi(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    if call.session.queue.is_some() {
        return Err(Failure::of("ERR MULTI calls can not be nested"));
    }
    call.session.queue = Some(Queue::default());
    call.session.client.queued.store(0, Ordering::Relaxed);
    call.out.ok();
    Ok(())
}

fn discard(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    if call.session.queue.take().is_none() {
        return Err(Failure::of("ERR DISCARD without MULTI"));
    }
    call.session.client.queued.store(NOT_QUEUING, Ordering::Relaxed);
    forget_watches(call);
    call.out.ok();
    Ok(())
}

fn watch(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    if call.session.queue.is_some() {
        return Err(Failure::of("ERR WATCH inside MULTI is not allowed"));
    }
    for key in call.args.from(1).iter() {
        let named = (call.space.database, key.into());
        // A key whose time has come is gone for this client from the start.
        call.space.exists(key);
        if !call.session.watches.keys.contains(&named) {
            call.space.watch(key, call.session.watches.flag.clone());
            call.session.watches.keys.push(named);
        }
    }
    call.out.ok();
    Ok(())
}

fn unwatch(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    forget_watches(call);
    call.out.ok();
    Ok(())
}

/// Watches nothing any more. The stripes of the watched keys are locked.
pub(super) fn forget_watches(call: &mut Call<'_, '_>) {
    let watches = std::mem::take(&mut call.session.watches);
    let database = call.space.database;
    for (number, key) in watches.keys {
        call.space.database = number;
        call.space.unwatch(&key, &watches.flag);
    }
    call.space.database = database;
}

fn exec(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let Some(queue) = call.session.queue.take() else {
        return Err(Failure::of("ERR EXEC without MULTI"));
    };
    call.session.client.queued.store(NOT_QUEUING, Ordering::Relaxed);
    let database = call.space.database;
    // Keys that are watched and whose time has come count as changed.
    for (number, key) in call.session.watches.keys.clone() {
        call.space.database = number;
        call.space.exists(&key);
    }
    call.space.database = database;
    let is_changed = call.session.watches.flag.load(Ordering::Relaxed);
    forget_watches(call);
    if queue.is_broken {
        let text = "EXECABORT Transaction discarded because of previous errors.";
        return Err(Failure::of(text));
    }
    if is_changed {
        call.out.null_array();
        return Ok(());
    }
    call.out.array(queue.commands.len());
    let server = call.server.clone();
    for (command, args) in &queue.commands {
        let start = call.out.bytes.len();
        let args = args.args();
        let allowed = server.check_user(call.session, command, args, Place::Exec);
        let (result, _) = match allowed {
            Err(failure) => (Err(failure), After::Nothing),
            Ok(()) => server.run_in(call.session, command, args, call.out, call.space, false),
        };
        call.space.database = call.session.database;
        let counts = &server.stats.by_command[command.number];
        counts.calls.fetch_add(1, Ordering::Relaxed);
        if let Err(failure) = result {
            counts.failed.fetch_add(1, Ordering::Relaxed);
            server.refuse(call.out, start, &failure);
        }
    }
    Ok(())
}
