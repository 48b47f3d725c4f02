//! Endpoints: entities and subscriptions that were found, and where their fragments are.

use std::sync::Arc;

use bytes::Bytes;
use lazuli_engine::{ContainerId, Error, KeyPart, KeySchema, KeyType, MapKind, Result};
use xxhash_rust::xxh3::xxh3_64;

use crate::BusReason;
use crate::address::{Address, SubQueue};
use crate::description::{Description, EntityKind};
use crate::fragment::Place;
use crate::record::damaged;
use crate::rows::{Line, Part};

/// An entity or subscription that was found, with which of its queues is meant. Cheap to clone. It stays good while the
/// entity lives; when the entity is gone every call answers [`BusReason::EntityNotFound`].
#[derive(Clone, Debug)]
pub struct Endpoint(pub(crate) Arc<Opened>);

#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) namespace: String,
    pub(crate) address: Address,
    pub(crate) container: ContainerId,
    pub(crate) entity: u32,
    pub(crate) kind: EntityKind,
    pub(crate) fragments: u32,
    pub(crate) line: Line,
    pub(crate) description: Description,
}

impl Endpoint {
    pub fn address(&self) -> &Address {
        &self.0.address
    }

    pub fn namespace(&self) -> &str {
        &self.0.namespace
    }

    /// The description at the time when it was opened.
    pub fn description(&self) -> &Description {
        &self.0.description
    }

    /// What the entity is; of a subscription, its topic.
    pub fn kind(&self) -> EntityKind {
        self.0.kind
    }

    /// Whether receivers must accept a session first.
    pub fn has_sessions(&self) -> bool {
        self.0.line.part == Part::Main && self.0.description.requires_session
    }

    pub(crate) fn fragments(&self) -> u32 {
        self.0.fragments
    }

    pub(crate) fn place(&self, fragment: u16) -> Result<Place> {
        let route = fragment_route(self.0.entity, fragment)?;
        Ok(Place { container: self.0.container, route, fragment })
    }

    pub(crate) fn places(&self) -> Result<Vec<Place>> {
        (0..self.0.fragments).map(|at| self.place(at as u16)).collect()
    }

    /// The fragment of a key.
    pub(crate) fn fragment_of(&self, key: &str) -> u16 {
        (xxh3_64(key.as_bytes()) % u64::from(self.0.fragments.max(1))) as u16
    }

    /// Refuses an endpoint from which nothing can be received.
    pub(crate) fn check_receives(&self) -> Result<()> {
        let is_topic = self.0.kind == EntityKind::Topic && self.0.line.owner == 0;
        if is_topic && self.0.line.part == Part::Main {
            let message = "messages of a topic are received from its subscriptions";
            return Err(Error::invalid(BusReason::WrongKind, message));
        }
        Ok(())
    }

    /// Refuses an endpoint to which nothing can be sent.
    pub(crate) fn check_sends(&self) -> Result<()> {
        if self.0.line == Line::new(0, Part::Main) {
            return Ok(());
        }
        let message = "messages are sent to queues and topics";
        Err(Error::invalid(BusReason::WrongKind, message))
    }
}

pub(crate) fn part_of(sub_queue: SubQueue) -> Part {
    match sub_queue {
        SubQueue::Main => Part::Main,
        SubQueue::DeadLetter => Part::DeadLetter,
        SubQueue::TransferDeadLetter => Part::TransferDeadLetter,
    }
}

/// The key of fragments: the number of the entity, and that of the fragment.
pub(crate) fn fragment_schema() -> KeySchema {
    KeySchema::new(vec![KeyType::Int64, KeyType::Int32]).expect("two parts are a key")
}

pub(crate) fn fragment_route(entity: u32, fragment: u16) -> Result<Bytes> {
    let key = [KeyPart::Int64(entity.into()), KeyPart::Int32(fragment.into())];
    MapKind::List.route(&fragment_schema(), &key)
}

/// The number of the fragment that a route is of.
pub(crate) fn fragment_of_route(route: &[u8]) -> Result<u16> {
    match MapKind::List.key(&fragment_schema(), route)?.as_slice() {
        [_, KeyPart::Int32(fragment)] => {
            u16::try_from(*fragment).map_err(|_| damaged("the route of a fragment"))
        }
        _ => Err(damaged("the route of a fragment")),
    }
}
