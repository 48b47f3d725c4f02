//! Receiving: messages as they come, with credit for as many as are wanted.

use std::time::Duration;

use bytes::Bytes;
use lazuli_amqp::performative::{Detach, Performative, Transfer};
use lazuli_amqp::{Body, Sections};

use super::{Answer, Bus, Delivered, Receiver};
use crate::{Result, alive};

impl Bus {
    /// Receives what there is, up to so many messages. A link that the server ends says so in [`Receiver::ended`].
    pub fn receive(&mut self, receiver: &mut Receiver, most: u32) -> Answer<Vec<Delivered>> {
        self.frames.credit(receiver.handle, receiver.count, most, true);
        let mut messages = Vec::new();
        loop {
            let handle = receiver.handle;
            let heard = self.until(|heard| match &heard.performative {
                Performative::Transfer(transfer) if transfer.handle == handle => {
                    Some(read(transfer, &heard.payload).map(Part::Message))
                }
                Performative::Flow(flow)
                    if flow.handle == Some(handle) && flow.drain == Some(true) =>
                {
                    Some(Ok(Part::End(flow.delivery_count)))
                }
                Performative::Detach(detach) if detach.handle == handle => {
                    let error = detach.error.as_ref().map(|error| error.condition.0.clone());
                    Some(Ok(Part::Ended(error.unwrap_or_default())))
                }
                _ => None,
            });
            match alive!(heard) {
                Part::Message(message) => {
                    messages.push(message);
                    // Credit that is used up is not given back.
                    if messages.len() == most as usize {
                        receiver.count = receiver.count.wrapping_add(most);
                        return Ok(Some(messages));
                    }
                }
                Part::End(count) => {
                    receiver.count = count.unwrap_or(receiver.count.wrapping_add(most));
                    return Ok(Some(messages));
                }
                Part::Ended(why) => {
                    receiver.ended = Some(why);
                    let detach = Detach { handle, closed: Some(true), error: None };
                    self.frames.say(0, Performative::Detach(detach));
                    self.free.push(handle);
                    return Ok(Some(messages));
                }
            }
        }
    }

    /// Gives credit on a link, and waits for the next message on it: none if nothing comes for this long.
    pub fn wait_one(
        &mut self,
        receiver: &mut Receiver,
        wait: Duration,
    ) -> Answer<Option<Delivered>> {
        self.frames.credit(receiver.handle, receiver.count, 1, false);
        let frames = &mut self.frames;
        let next = async {
            frames.flush().await?;
            loop {
                let Ok(heard) = tokio::time::timeout(wait, frames.next()).await else {
                    return std::io::Result::Ok(None);
                };
                let heard = heard?;
                if matches!(heard.performative, Performative::Transfer(_)) {
                    return Ok(Some(heard));
                }
            }
        };
        match self.runtime.block_on(next) {
            Err(_) => Ok(None),
            Ok(None) => Ok(Some(None)),
            Ok(Some(heard)) => {
                receiver.count = receiver.count.wrapping_add(1);
                let Performative::Transfer(transfer) = &heard.performative else { return Ok(None) };
                read(transfer, &heard.payload).map(|message| Some(Some(message)))
            }
        }
    }
}

/// What comes while messages are received.
enum Part {
    Message(Delivered),
    /// There is nothing more; the server has counted so many deliveries.
    End(Option<u32>),
    Ended(String),
}

fn read(transfer: &Transfer, payload: &Bytes) -> Result<Delivered> {
    let bad = |error| format!("a message does not decode: {error:?}");
    let sections = Sections::split(payload).map_err(bad)?;
    let annotations = sections.message_annotations().map_err(bad)?;
    let Body::Data(data) = sections.body().map_err(bad)? else {
        return Err("a message has no data".to_owned());
    };
    let until = annotations.integer("x-opt-locked-until").unwrap_or(0);
    Ok(Delivered {
        id: transfer.delivery_id.unwrap_or(0),
        sequence_number: annotations.integer("x-opt-sequence-number").unwrap_or(-1),
        locked_until_ms: until.max(0).unsigned_abs(),
        delivery_count: sections.header().map_err(bad)?.delivery_count.unwrap_or(0),
        text: String::from_utf8_lossy(&data.concat()).into_owned(),
    })
}
