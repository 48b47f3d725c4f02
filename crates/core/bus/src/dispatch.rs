//! Sending: which fragment a message goes to, and all fragments of a call side by side (M3).

use std::collections::BTreeMap;

use lazuli_engine::{BoxFuture, Error, MapReason, Result, join_all};

use crate::BusReason;
use crate::bus::{Bus, gone};
use crate::endpoint::Endpoint;
use crate::fragment::not_found;
use crate::limits::SEND_MESSAGES_MAX;
use crate::message::NewMessage;
use crate::send::{Send, check_message};

/// Places in a request, and what came of the messages there.
type Sent = (Vec<usize>, Result<Vec<u64>>);

/// Whether nothing was written because the partition is out of use.
fn is_down(error: &Error) -> bool {
    let down = [MapReason::PartitionOffline, MapReason::PartitionReadOnly, MapReason::ShardDown];
    down.into_iter().any(|reason| error.is(reason))
}

impl Bus {
    /// Sends messages and answers their sequence numbers. Those of one fragment are sent in one transaction: where there is
    /// one fragment, or all messages have one key, it is all or none. Scheduled ones answer the number to cancel them by.
    pub async fn send(&self, to: &Endpoint, messages: Vec<NewMessage>) -> Result<Vec<u64>> {
        self.send_each(to, messages).await?.into_iter().collect()
    }

    /// The same with an answer for each message, so that a caller knows which ones to send again.
    pub async fn send_each(
        &self,
        to: &Endpoint,
        messages: Vec<NewMessage>,
    ) -> Result<Vec<Result<u64>>> {
        to.check_sends()?;
        if messages.len() > SEND_MESSAGES_MAX {
            let message = format!("more than {SEND_MESSAGES_MAX} messages at once");
            return Err(Error::too_large(BusReason::MessageTooLarge, message));
        }
        messages.iter().try_for_each(check_message)?;
        let mut answers: Vec<Result<u64>> = messages.iter().map(|_| Ok(0)).collect();
        let mut keyed: BTreeMap<u16, Vec<(usize, NewMessage)>> = BTreeMap::new();
        let mut free = Vec::new();
        for (at, message) in messages.into_iter().enumerate() {
            match self.fragment_for(to, &message) {
                Some(fragment) => keyed.entry(fragment).or_default().push((at, message)),
                None => free.push((at, message)),
            }
        }
        let mut parts: Vec<BoxFuture<'_, Sent>> = Vec::new();
        for (fragment, messages) in keyed {
            parts.push(Box::pin(self.send_part(to, Some(fragment), messages)));
        }
        if !free.is_empty() {
            parts.push(Box::pin(self.send_part(to, None, free)));
        }
        for (at, sent) in join_all(parts).await {
            match sent {
                Ok(numbers) => {
                    at.into_iter().zip(numbers).for_each(|(at, number)| answers[at] = Ok(number));
                }
                Err(error) => at.into_iter().for_each(|at| answers[at] = Err(error.clone())),
            }
        }
        Ok(answers)
    }

    /// Sends messages to one fragment, or to any, and answers their places in the request beside what came of it.
    async fn send_part(
        &self,
        to: &Endpoint,
        fragment: Option<u16>,
        messages: Vec<(usize, NewMessage)>,
    ) -> Sent {
        let (at, messages): (Vec<_>, Vec<_>) = messages.into_iter().unzip();
        let sent = match fragment {
            Some(fragment) => self.send_to(to, fragment, messages).await,
            None => self.send_free(to, messages).await,
        };
        (at, sent)
    }

    /// The fragment that a message must go to, if it must (M3).
    fn fragment_for(&self, to: &Endpoint, message: &NewMessage) -> Option<u16> {
        if to.fragments() == 1 {
            return Some(0);
        }
        let key = message.session_id.as_ref().or(message.partition_key.as_ref());
        let id = message.message_id.as_ref();
        let id = id.filter(|_| to.description().requires_duplicate_detection);
        key.or(id).map(|key| to.fragment_of(key))
    }

    async fn send_to(
        &self,
        to: &Endpoint,
        fragment: u16,
        messages: Vec<NewMessage>,
    ) -> Result<Vec<u64>> {
        self.used(to);
        let place = to.place(fragment)?;
        let (shared, seed) = (self.shared.clone(), self.engine.env().random.next_u64());
        let send = Send { shared, place: place.clone(), messages, seed };
        let sent = self.engine.write(place.container, &place.route, send).await;
        let (sent, woken) = sent.map_err(gone)?;
        self.shared.fire(place.container, to.0.entity, woken);
        Ok(sent)
    }

    /// Sends messages without a key to the fragment whose turn it is, or the next one that is in use.
    async fn send_free(&self, to: &Endpoint, messages: Vec<NewMessage>) -> Result<Vec<u64>> {
        let fragments = u64::from(to.fragments());
        let turn = self.shared.turn();
        let mut refused = None;
        for nth in 0..fragments {
            let fragment = (turn.wrapping_add(nth) % fragments) as u16;
            match self.send_to(to, fragment, messages.clone()).await {
                Err(error) if is_down(&error) => refused = Some(error),
                sent => return sent,
            }
        }
        Err(refused.unwrap_or_else(not_found))
    }
}
