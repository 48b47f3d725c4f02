//! Publishing and subscribing.

use std::sync::atomic::Ordering;

use crate::call::Call;
use crate::command::Run;
use crate::failure::Failure;
use crate::pubsub::Kind;
use crate::server::Server;
use crate::session::Session;

pub(super) const RUNS: &[(&str, Run)] = &[
    ("psubscribe", |call| subscribe(call, Kind::Pattern)),
    ("publish", publish),
    ("pubsub|channels", |call| channels(call, Kind::Channel)),
    ("pubsub|numpat", numpat),
    ("pubsub|numsub", |call| numsub(call, Kind::Channel)),
    ("pubsub|shardchannels", |call| channels(call, Kind::Shard)),
    ("pubsub|shardnumsub", |call| numsub(call, Kind::Shard)),
    ("punsubscribe", |call| unsubscribe(call, Kind::Pattern)),
    ("spublish", spublish),
    ("ssubscribe", |call| subscribe(call, Kind::Shard)),
    ("subscribe", |call| subscribe(call, Kind::Channel)),
    ("sunsubscribe", |call| unsubscribe(call, Kind::Shard)),
    ("unsubscribe", |call| unsubscribe(call, Kind::Channel)),
];

/// The channels of one kind that a client listens to.
fn own(session: &mut Session, kind: Kind) -> &mut std::collections::BTreeSet<Box<[u8]>> {
    match kind {
        Kind::Channel => &mut session.channels,
        Kind::Pattern => &mut session.patterns,
        Kind::Shard => &mut session.shard_channels,
    }
}

fn subscribe(call: &mut Call<'_, '_>, kind: Kind) -> Result<(), Failure> {
    if !call.may_block && !call.session.is_resp3 {
        let name = call.command.name.to_ascii_uppercase();
        return Err(Failure::new(format!(
            "ERR {name} isn't allowed for a client that is in a transaction or a script"
        )));
    }
    let word: &[u8] = match kind {
        Kind::Channel => b"subscribe",
        Kind::Pattern => b"psubscribe",
        Kind::Shard => b"ssubscribe",
    };
    for channel in call.args.from(1).iter() {
        if own(call.session, kind).insert(channel.into()) {
            call.server.pubsub.subscribe(kind, channel, &call.session.client);
        }
        confirm(call, word, Some(channel), kind);
    }
    show(call.session);
    Ok(())
}

fn unsubscribe(call: &mut Call<'_, '_>, kind: Kind) -> Result<(), Failure> {
    let word: &[u8] = match kind {
        Kind::Channel => b"unsubscribe",
        Kind::Pattern => b"punsubscribe",
        Kind::Shard => b"sunsubscribe",
    };
    let named: Vec<Box<[u8]>> = match call.args.len() {
        1 => own(call.session, kind).iter().cloned().collect(),
        _ => call.args.from(1).iter().map(Into::into).collect(),
    };
    for channel in &named {
        if own(call.session, kind).remove(channel) {
            call.server.pubsub.unsubscribe(kind, channel, call.session.client.id);
        }
        confirm(call, word, Some(channel), kind);
    }
    if named.is_empty() {
        confirm(call, word, None, kind);
    }
    show(call.session);
    Ok(())
}

fn confirm(call: &mut Call<'_, '_>, word: &[u8], channel: Option<&[u8]>, kind: Kind) {
    call.out.push(3);
    call.out.bulk(word);
    call.out.bulk_or_null(channel);
    let count = match kind {
        Kind::Shard => call.session.shard_channels.len(),
        Kind::Channel | Kind::Pattern => call.session.subscriptions(),
    };
    call.out.count(count);
}

fn show(session: &Session) {
    let client = &session.client;
    client.subscriptions.store(session.channels.len(), Ordering::Relaxed);
    client.pattern_subscriptions.store(session.patterns.len(), Ordering::Relaxed);
    client.shard_subscriptions.store(session.shard_channels.len(), Ordering::Relaxed);
}

impl Server {
    /// Listens to nothing any more.
    pub(crate) fn unsubscribe_all(&self, session: &mut Session) {
        for kind in [Kind::Channel, Kind::Pattern, Kind::Shard] {
            for channel in std::mem::take(own(session, kind)) {
                self.pubsub.unsubscribe(kind, &channel, session.client.id);
            }
        }
        show(session);
    }
}

fn publish(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let count = call.server.pubsub.publish(call.args.at(1), call.args.at(2));
    call.out.count(count);
    Ok(())
}

fn spublish(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let count = call.server.pubsub.publish_sharded(call.args.at(1), call.args.at(2));
    call.out.count(count);
    Ok(())
}

fn channels(call: &mut Call<'_, '_>, kind: Kind) -> Result<(), Failure> {
    let found = call.server.pubsub.channels(kind, call.args.get(2));
    call.out.array(found.len());
    found.iter().for_each(|channel| call.out.bulk(channel));
    Ok(())
}

fn numsub(call: &mut Call<'_, '_>, kind: Kind) -> Result<(), Failure> {
    let named = call.args.from(2);
    call.out.array(2 * named.len());
    for channel in named.iter() {
        call.out.bulk(channel);
        call.out.count(call.server.pubsub.listeners(kind, channel));
    }
    Ok(())
}

fn numpat(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    call.out.count(call.server.pubsub.count(Kind::Pattern));
    Ok(())
}
