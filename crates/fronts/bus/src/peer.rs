//! One connection on the side of the bus: the tokens that it has shown, and the one place where its links are told apart.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use lazuli_amqp::{Attaching, Error, Map, Receiving};
use lazuli_bus_shape::{Endpoint, SessionLock};

use crate::access::{self, Claim, Right};
use crate::address::Target;
use crate::error::{Fault, Result, from_core};
use crate::eventhubs::{self, HubAddress};
use crate::limits::{CLAIMS_MAX, EXPIRY_LOOK, REQUEST_BYTES_MAX, REQUEST_CREDIT};
use crate::replies::Replies;
use crate::transaction::Transactions;
use crate::{Front, address, cbs, management, receiver, sender, transaction};

pub(crate) struct Peer {
    pub(crate) front: Arc<Front>,
    /// Whether the connection is one over TLS.
    pub(crate) secure: bool,
    claims: Mutex<Vec<Claim>>,
    pub(crate) replies: Replies,
    pub(crate) transactions: Transactions,
    /// The sessions that links of this connection hold.
    sessions: Mutex<HashMap<SessionKey, SessionLock>>,
}

/// An entity, in lower case, and a session of it.
type SessionKey = (String, String);

impl Peer {
    pub(crate) fn new(front: Arc<Front>, secure: bool, claims: Vec<Claim>) -> Self {
        Self {
            front,
            secure,
            claims: Mutex::new(claims),
            replies: Replies::default(),
            transactions: Transactions::default(),
            sessions: Mutex::default(),
        }
    }

    /// Takes a token that is good. A newer one for the same resource takes the place of the older.
    pub(crate) fn show(&self, claim: Claim) -> Result<()> {
        let mut claims = self.claims.lock().unwrap_or_else(PoisonError::into_inner);
        claims.retain(|one| one.path != claim.path || one.namespace != claim.namespace);
        if claims.len() >= CLAIMS_MAX {
            let now = crate::now_ms();
            claims.retain(|one| one.expires_ms > now);
        }
        if claims.len() >= CLAIMS_MAX {
            return Err(Fault::argument("The connection has shown too many tokens."));
        }
        claims.push(claim);
        Ok(())
    }

    /// The namespace in which this connection may do something, or why it may not.
    pub(crate) fn may(&self, path: &str, right: Right) -> Result<String> {
        let claims = self.claims.lock().unwrap_or_else(PoisonError::into_inner);
        access::allowed(&claims, path, right)
    }

    /// Waits until no token of the connection allows something any more that one allowed, as the service ends links then. A
    /// client that shows a new token in time never gets to know.
    pub(crate) async fn expired(&self, path: &str, right: Right) -> Fault {
        loop {
            let until_ms = {
                let claims = self.claims.lock().unwrap_or_else(PoisonError::into_inner);
                access::allowed_until_ms(&claims, path, right)
            };
            let now = crate::now_ms();
            match until_ms {
                Some(until_ms) if until_ms > now => {
                    let left = Duration::from_millis(until_ms - now).min(EXPIRY_LOOK);
                    tokio::time::sleep(left).await;
                }
                _ => return Fault::unauthorized("ExpiredToken: The token is expired."),
            }
        }
    }

    /// Finds an entity for somebody with a right to it.
    pub(crate) async fn open(&self, path: &str, right: Right) -> Result<Endpoint> {
        let namespace = self.may(path, right)?;
        let address = address::entity(path)?;
        let opened = self.front.bus.open(&namespace, &address).await;
        opened.map_err(|error| match error.kind() {
            lazuli_engine::Kind::NotFound => Fault::entity_not_found(path),
            _ => from_core(error),
        })
    }

    pub(crate) fn hold_session(&self, path: &str, lock: SessionLock) {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.insert((path.to_lowercase(), lock.session_id.clone()), lock);
    }

    pub(crate) fn forget_session(&self, path: &str, session_id: &str) {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.remove(&(path.to_lowercase(), session_id.to_owned()));
    }

    /// The lock on a session that a link of this connection holds.
    pub(crate) fn session(&self, path: &str, session_id: &str) -> Option<SessionLock> {
        let sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.get(&(path.to_lowercase(), session_id.to_owned())).cloned()
    }
}

impl lazuli_amqp::Peer for Peer {
    fn attach(self: Arc<Self>, attaching: Attaching) {
        let sends = attaching.client_sends();
        let attach = &attaching.attach;
        if sends && attach.target.as_ref().is_some_and(|target| target.is_coordinator()) {
            return transaction::serve(self, attaching);
        }
        let end = if sends { &attach.target } else { &attach.source };
        let Some(address) = end.as_ref().and_then(|end| end.address()) else {
            let text = "The link has no address.";
            return attaching.refuse(Error::new(lazuli_amqp::condition::INVALID_FIELD, text));
        };
        let address = address.to_owned();
        match (Target::parse(&address), sends) {
            (Target::Cbs, true) => {
                let channel = attaching.channel();
                let Some(link) = attaching.receive(requests()) else { return };
                tokio::spawn(cbs::serve(self, link, channel));
            }
            (Target::Cbs, false) => self.replies.open(attaching),
            (Target::NamespaceManagement, true) => {
                let channel = attaching.channel();
                let Some(link) = attaching.receive(requests()) else { return };
                tokio::spawn(eventhubs::management::serve(self, link, channel));
            }
            (Target::NamespaceManagement, false) => self.replies.open(attaching),
            (Target::Management(path), true) => {
                tokio::spawn(management::serve(self, attaching, address, path));
            }
            (Target::Management(_), false) => self.replies.open(attaching),
            (Target::Entity(path), true) => drop(tokio::spawn(send_to(self, attaching, path))),
            (Target::Entity(path), false) => {
                drop(tokio::spawn(receive_from(self, attaching, path)));
            }
        }
    }
}

/// Lets a client send to a hub, if there is one at this path, or else to an entity of the bus.
async fn send_to(peer: Arc<Peer>, attaching: Attaching, path: String) {
    match HubAddress::parse(&path) {
        Some(address) if eventhubs::is_hub(&peer, &address).await => {
            eventhubs::sender::serve(peer, attaching, address).await;
        }
        _ => sender::serve(peer, attaching, path).await,
    }
}

/// Lets a client receive from a partition of a hub, if the path is one, or else from an entity of the bus.
async fn receive_from(peer: Arc<Peer>, attaching: Attaching, path: String) {
    match HubAddress::parse(&path) {
        Some(address) if eventhubs::is_hub(&peer, &address).await => {
            eventhubs::receiver::serve(peer, attaching, address).await;
        }
        _ => receiver::serve(peer, attaching, path).await,
    }
}

/// How a link for requests is accepted.
pub(crate) fn requests() -> Receiving {
    Receiving {
        credit: REQUEST_CREDIT,
        message_bytes_max: REQUEST_BYTES_MAX,
        properties: Map::default(),
        capabilities: Vec::new(),
    }
}
