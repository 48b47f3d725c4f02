//! Channels: who listens to what, and messages to all of them.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lazuli_keyspace::{Class, Event};
use lazuli_resp::Reply;

use crate::clients::Client;
use crate::glob;

/// Listeners by channel, then by the id of the client.
type Listeners = BTreeMap<Box<[u8]>, BTreeMap<u64, Arc<Client>>>;

/// The three kinds of subscriptions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Channel,
    Pattern,
    Shard,
}

#[derive(Default)]
pub(crate) struct PubSub {
    channels: Mutex<Listeners>,
    patterns: Mutex<Listeners>,
    shards: Mutex<Listeners>,
}

impl PubSub {
    fn of(&self, kind: Kind) -> MutexGuard<'_, Listeners> {
        let listeners = match kind {
            Kind::Channel => &self.channels,
            Kind::Pattern => &self.patterns,
            Kind::Shard => &self.shards,
        };
        listeners.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn subscribe(&self, kind: Kind, channel: &[u8], client: &Arc<Client>) {
        let mut listeners = self.of(kind);
        listeners.entry(channel.into()).or_default().insert(client.id, client.clone());
    }

    pub(crate) fn unsubscribe(&self, kind: Kind, channel: &[u8], client: u64) {
        let mut listeners = self.of(kind);
        if let Some(clients) = listeners.get_mut(channel) {
            clients.remove(&client);
            if clients.is_empty() {
                listeners.remove(channel);
            }
        }
    }

    /// Sends a message to all who listen to a channel or to a pattern that fits it; how many they are.
    pub(crate) fn publish(&self, channel: &[u8], message: &[u8]) -> usize {
        let mut count = 0;
        if let Some(clients) = self.of(Kind::Channel).get(channel) {
            for client in clients.values() {
                deliver(client, &[b"message", channel, message]);
                count += 1;
            }
        }
        for (pattern, clients) in self.of(Kind::Pattern).iter() {
            if glob::matches(pattern, channel) {
                for client in clients.values() {
                    deliver(client, &[b"pmessage", pattern, channel, message]);
                    count += 1;
                }
            }
        }
        count
    }

    pub(crate) fn publish_sharded(&self, channel: &[u8], message: &[u8]) -> usize {
        let listeners = self.of(Kind::Shard);
        let clients = listeners.get(channel);
        clients.into_iter().flat_map(BTreeMap::values).fold(0, |count, client| {
            deliver(client, &[b"smessage", channel, message]);
            count + 1
        })
    }

    /// Tells of an event of a key, on the channels of keys and of events as `classes` say.
    pub(crate) fn notify(&self, classes: Class, event: &Event) {
        if classes.0 & event.class.0 == 0 {
            return;
        }
        let channel = |kind: &str, end: &[u8]| {
            [format!("__{kind}@{}__:", event.database).as_bytes(), end].concat()
        };
        if classes.0 & Class::KEYSPACE.0 != 0 {
            self.publish(&channel("keyspace", &event.key), event.name.as_bytes());
        }
        if classes.0 & Class::KEYEVENT.0 != 0 {
            self.publish(&channel("keyevent", event.name.as_bytes()), &event.key);
        }
    }

    /// Channels with listeners that fit a pattern.
    pub(crate) fn channels(&self, kind: Kind, pattern: Option<&[u8]>) -> Vec<Box<[u8]>> {
        let listeners = self.of(kind);
        let fits = |it: &[u8]| pattern.is_none_or(|pattern| glob::matches(pattern, it));
        listeners.keys().filter(|it| fits(it)).cloned().collect()
    }

    pub(crate) fn listeners(&self, kind: Kind, channel: &[u8]) -> usize {
        self.of(kind).get(channel).map_or(0, BTreeMap::len)
    }

    /// Visits the channels or patterns that a client listens to.
    pub(crate) fn heard_by(&self, client: u64, kind: Kind, mut visit: impl FnMut(&[u8])) {
        let listeners = self.of(kind);
        let own = listeners.iter().filter(|(_, clients)| clients.contains_key(&client));
        own.for_each(|(channel, _)| visit(channel));
    }

    pub(crate) fn count(&self, kind: Kind) -> usize {
        self.of(kind).len()
    }
}

fn deliver(client: &Client, parts: &[&[u8]]) {
    let is_resp3 = client.is_resp3.load(Ordering::Relaxed);
    client.send(|outbox| {
        let mut reply = Reply { bytes: std::mem::take(outbox), is_resp3 };
        reply.push(parts.len());
        parts.iter().for_each(|part| reply.bulk(part));
        *outbox = reply.bytes;
    });
}
