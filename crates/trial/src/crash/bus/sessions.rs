//! Sessions: two workers send numbered messages, others take a session, and work it off for a while.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use lazuli_amqp::Terminus;
use lazuli_trial::amqp::Bus;
use lazuli_trial::{Result, alive};

use super::workers::{Worker, is_taken, message, until_killed};
use super::{Event, How, LOCK_MS, SESSIONS};

/// Sessions that a sender begins in a round.
const SESSIONS_EACH: usize = 6;
/// How often a holder receives before it lets the session go.
const TURNS_MAX: usize = 4;
const WAIT_MS: u32 = 200;

pub(super) fn send(address: SocketAddr, round: u64, worker: usize) -> Result<Vec<Event>> {
    until_killed(address, round, worker, |worker| {
        let sender = alive!(worker.bus.sender(Terminus::target(SESSIONS)));
        let mut next = [0_u64; SESSIONS_EACH];
        loop {
            let which = worker.random.below(SESSIONS_EACH);
            let (number, session) = (next[which], format!("{}-{which}", worker.prefix));
            next[which] += 1;
            let tag = format!("{session}/{number:06}");
            let payload = message(&tag, None, Some(&session));
            let answered = is_taken(worker.bus.send(sender, &payload)?)?;
            let session = Some((session, number));
            worker.events.push(Event::Sent { queue: SESSIONS, tag, session, answered });
            if !answered {
                return Ok(None);
            }
        }
    })
}

pub(super) fn receive(address: SocketAddr, round: u64, worker: usize) -> Result<Vec<Event>> {
    let number = round * 1_000_000 + worker as u64 * 10_000;
    until_killed(address, round, worker, |worker| {
        for hold in number.. {
            alive!(hold_one(worker, hold));
        }
        Ok(Some(()))
    })
}

/// Takes the next session, works on it, and lets it go. Says whether there was one.
fn hold_one(worker: &mut Worker, hold: u64) -> Result<Option<bool>> {
    let Some(mut link) = alive!(worker.bus.next_session(SESSIONS, WAIT_MS)) else {
        return Ok(Some(false));
    };
    let session = link.session.clone().ok_or("a link was given no session")?;
    let (until_ms, at) = (link.held_until_ms, Instant::now());
    worker.events.push(Event::Held { session, hold, until_ms, at });
    let began = Instant::now();
    for _ in 0..=worker.random.below(TURNS_MAX) {
        // A session that is held for too long is lost, and its link ended.
        if began.elapsed() > Duration::from_millis(LOCK_MS / 2) {
            break;
        }
        for message in alive!(worker.receive(&mut link, SESSIONS, hold)) {
            // What is given back comes again before all that follows it, so it ends the turn.
            if worker.random.below(16) == 0 {
                alive!(worker.settle(SESSIONS, &message, hold, How::GivenBack));
                break;
            }
            alive!(worker.settle(SESSIONS, &message, hold, How::Completed));
        }
        if link.ended.is_some() {
            return Ok(Some(true));
        }
    }
    worker.events.push(Event::Left { hold, at: Instant::now() });
    alive!(worker.bus.detach(&link));
    Ok(Some(true))
}

/// Works off all sessions.
pub(super) fn drain(address: SocketAddr) -> Result<Vec<Event>> {
    let gone = || "the server went away while its sessions were worked off".to_owned();
    let bus = Bus::connect(address)?.ok_or_else(gone)?;
    let random = lazuli_env::SplitMix64::new(0);
    let mut worker = Worker { bus, random, events: Vec::new(), prefix: String::new(), count: 0 };
    let mut hold = u64::MAX / 2;
    // As long as locks of the last round may hold, and a bit.
    let wait_ms = (LOCK_MS + 500) as u32;
    while let Some(mut link) = worker.bus.next_session(SESSIONS, wait_ms)?.ok_or_else(gone)? {
        hold += 1;
        let session = link.session.clone().ok_or("a link was given no session")?;
        let (until_ms, at) = (link.held_until_ms, Instant::now());
        worker.events.push(Event::Held { session, hold, until_ms, at });
        loop {
            let messages = worker.receive(&mut link, SESSIONS, hold)?.ok_or_else(gone)?;
            if messages.is_empty() || link.ended.is_some() {
                break;
            }
            for message in messages {
                worker.settle(SESSIONS, &message, hold, How::Completed)?.ok_or_else(gone)?;
            }
        }
        if link.ended.is_some() {
            continue;
        }
        worker.events.push(Event::Left { hold, at: Instant::now() });
        worker.bus.detach(&link)?.ok_or_else(gone)?;
    }
    Ok(worker.events)
}
