//! What a client says of a message that it holds, and the answer to it.

use bytes::Bytes;
use lazuli_amqp::{DeliveryState, Map, Modified, Said};
use lazuli_bus_shape::{DEAD_LETTER_DESCRIPTION, DEAD_LETTER_REASON, LockToken, Outcome};

use crate::error::{Fault, Result};
use crate::message::overrides;

/// The tag of a delivery: the lock token as a GUID, whose first three parts .NET writes with the lowest byte first.
pub(crate) fn tag(token: LockToken) -> Bytes {
    Bytes::copy_from_slice(&swapped(token.to_bytes()))
}

/// The token of a tag.
pub(crate) fn token(tag: &[u8]) -> Option<LockToken> {
    tag.try_into().ok().map(|bytes| LockToken::from_bytes(swapped(bytes)))
}

fn swapped(mut bytes: [u8; 16]) -> [u8; 16] {
    bytes[..4].reverse();
    bytes[4..6].reverse();
    bytes[6..8].reverse();
    bytes
}

/// What the client said, with the transaction in which it said it.
pub(crate) struct Meant {
    pub(crate) outcome: Outcome,
    pub(crate) transaction: Option<Bytes>,
    /// What the client is answered if it is done.
    pub(crate) answer: DeliveryState,
}

pub(crate) fn read(said: &Said) -> Result<Meant> {
    let accepted = DeliveryState::Accepted;
    let (state, transaction) = match said.state.as_deref().unwrap_or(&accepted) {
        DeliveryState::Transactional { transaction, outcome } => {
            (outcome.as_deref().unwrap_or(&accepted), Some(transaction.clone()))
        }
        other => (other, None),
    };
    let (outcome, answer) = outcome(state)?;
    let answer = match &transaction {
        Some(transaction) => DeliveryState::Transactional {
            transaction: transaction.clone(),
            outcome: Some(Box::new(answer)),
        },
        None => answer,
    };
    Ok(Meant { outcome, transaction, answer })
}

fn outcome(state: &DeliveryState) -> Result<(Outcome, DeliveryState)> {
    Ok(match state {
        DeliveryState::Accepted => (Outcome::Complete, state.clone()),
        DeliveryState::Released => (Outcome::Release, state.clone()),
        DeliveryState::Modified(modified) => {
            let Modified { undeliverable_here, message_annotations, .. } = modified;
            let changes = overrides(message_annotations);
            let outcome = match undeliverable_here {
                Some(true) => Outcome::Defer { changes },
                _ => Outcome::Abandon { changes },
            };
            // Without the properties, which the client knows and which may be long.
            let answer = Modified { message_annotations: Map::default(), ..modified.clone() };
            (outcome, DeliveryState::Modified(answer))
        }
        DeliveryState::Rejected(error) => {
            let mut info = error.as_ref().map(|error| error.info.clone()).unwrap_or_default();
            let mut text = |name: &str| {
                let text = info.text(name).map(str::to_owned);
                info.remove(name);
                text
            };
            let reason = text(DEAD_LETTER_REASON);
            let description = text(DEAD_LETTER_DESCRIPTION)
                .or_else(|| error.as_ref().and_then(|error| error.description.clone()));
            let changes = overrides(&info);
            // With an error in it, some clients would take the answer for a refusal.
            let answer = DeliveryState::Rejected(None);
            (Outcome::DeadLetter { reason, description, changes }, answer)
        }
        DeliveryState::Received(_)
        | DeliveryState::Declared(_)
        | DeliveryState::Transactional { .. } => {
            return Err(Fault::argument("This says nothing of what becomes of the message."));
        }
    })
}

#[cfg(test)]
mod tests {
    use lazuli_amqp::Error;

    use super::*;

    #[test]
    fn a_tag_is_the_token_as_dotnet_writes_it() {
        let bytes: [u8; 16] = std::array::from_fn(|at| at as u8);
        let token = LockToken::from_bytes(bytes);
        let tag = tag(token);
        assert_eq!(&tag[..], [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15]);
        assert_eq!(super::token(&tag), Some(token));
        assert_eq!(super::token(b"short"), None);
    }

    fn said(state: DeliveryState) -> Meant {
        let tag = Bytes::new();
        read(&Said { id: 0, tag, state: Some(std::sync::Arc::new(state)), settled: false }).unwrap()
    }

    #[test]
    fn a_dead_letter_has_its_reason_and_is_answered_without_an_error() {
        let mut error = Error::new("com.microsoft:dead-letter", "said");
        error.info = Map::default().with("DeadLetterReason", "bad").with("extra", 5);
        let meant = said(DeliveryState::Rejected(Some(error)));
        let Outcome::DeadLetter { reason, description, changes } = meant.outcome else { panic!() };
        assert_eq!((reason.as_deref(), description.as_deref()), (Some("bad"), Some("said")));
        assert_eq!(changes.len(), 1);
        assert_eq!(meant.answer, DeliveryState::Rejected(None));
    }

    #[test]
    fn a_modified_message_is_abandoned_or_deferred() {
        let modified = |here| {
            let undeliverable_here = Some(here);
            DeliveryState::Modified(Modified { undeliverable_here, ..Modified::default() })
        };
        assert_eq!(said(modified(false)).outcome, Outcome::Abandon { changes: Vec::new() });
        assert_eq!(said(modified(true)).outcome, Outcome::Defer { changes: Vec::new() });
        assert_eq!(said(DeliveryState::Released).outcome, Outcome::Release);
        assert_eq!(said(DeliveryState::Accepted).outcome, Outcome::Complete);
    }
}
