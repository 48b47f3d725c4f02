//! Links on which replies go back: requests come on one link, and the answer goes out on another one of the same client.

use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use lazuli_amqp::{Attaching, Event, Outgoing, Sending, Terminus};
use tokio::sync::mpsc::{Receiver, Sender, channel};

use crate::address;
use crate::limits::{REPLIES_MAX, REPLY_LINKS_MAX};

/// The links for replies of one connection.
#[derive(Default)]
pub(crate) struct Replies(Mutex<Vec<ReplyLink>>);

struct ReplyLink {
    channel: u16,
    /// By which requests may name it.
    name: String,
    target: Option<String>,
    /// What answers on it.
    source: String,
    messages: Sender<Bytes>,
}

/// Where a request came from and wants its reply.
pub(crate) struct Asked<'a> {
    pub(crate) channel: u16,
    /// The address that the request was sent to.
    pub(crate) address: &'a str,
    pub(crate) reply_to: Option<&'a str>,
}

impl Replies {
    /// Takes a link on which a client wants replies from an address.
    pub(crate) fn open(&self, attaching: Attaching) {
        let text = |end: &Option<Terminus>| {
            end.as_ref().and_then(|end| end.address()).map(|text| address::path(text).to_owned())
        };
        let (messages, replies) = channel(REPLIES_MAX);
        let link = ReplyLink {
            channel: attaching.channel(),
            name: attaching.attach.name.clone(),
            target: text(&attaching.attach.target),
            source: text(&attaching.attach.source).unwrap_or_default(),
            messages,
        };
        let mut links = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        links.retain(|link| !link.messages.is_closed());
        if links.len() >= REPLY_LINKS_MAX {
            return;
        }
        let Some(outgoing) = attaching.send(Sending::default()) else { return };
        links.push(link);
        tokio::spawn(carry(outgoing, replies));
    }

    /// Sends a reply. Without a link to send it on it is dropped, as the service does.
    pub(crate) fn send(&self, asked: &Asked<'_>, message: Bytes) {
        let links = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let path = address::path(asked.address);
        let answers = |link: &&ReplyLink| link.source.eq_ignore_ascii_case(path);
        let is_named = |link: &&ReplyLink| {
            let reply_to = asked.reply_to.map(address::path);
            reply_to.is_some_and(|name| link.target.as_deref() == Some(name) || link.name == name)
        };
        let is_near = |link: &&ReplyLink| link.channel == asked.channel;
        let open = || links.iter().rev().filter(|link| !link.messages.is_closed());
        let found = open()
            .find(|link| answers(link) && is_named(link))
            .or_else(|| open().find(|link| answers(link) && is_near(link)))
            .or_else(|| open().find(answers));
        if let Some(link) = found {
            // A client that asks without reading loses replies when too many wait.
            let _ = link.messages.try_send(message);
        }
    }
}

/// Sends replies as the client takes them.
async fn carry(mut link: Outgoing, mut replies: Receiver<Bytes>) {
    let mut count = 0u64;
    loop {
        if link.drain() && replies.is_empty() {
            link.drained();
        }
        let credit = link.credit();
        tokio::select! {
            biased;
            event = link.next() => match event {
                None => return,
                Some(Event::Flow | Event::Disposition(_)) => {}
            },
            reply = replies.recv(), if credit > 0 => {
                let Some(reply) = reply else { return };
                count += 1;
                let tag = Bytes::copy_from_slice(&count.to_be_bytes());
                link.send(tag, Bytes::new(), reply, true);
            }
        }
    }
}
