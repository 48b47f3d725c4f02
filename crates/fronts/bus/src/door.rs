//! What a client speaks, by its first bytes: AMQP, a WebSocket that carries AMQP, or HTTP.

use std::sync::Arc;

use lazuli_amqp::{Container, Credentials, Error, Opening, Origin, Peer as AmqpPeer};
use lazuli_bus_shape::Bus;
use lazuli_http::{Handler, HttpFront, counted};
use lazuli_net::{BoxFuture, Connection, Protocol};
use tokio::io::AsyncReadExt;
use tokio::time::timeout_at;

use crate::access;
use crate::admin::administration;
use crate::eventhubs::EventHubs;
use crate::limits::GREETING_TIMEOUT;
use crate::peer::Peer;
use crate::{Front, Parts, websocket};

/// What every connection in AMQP begins with.
const AMQP: &[u8] = b"AMQP";

struct Door {
    container: Arc<dyn Container>,
    amqp: Arc<lazuli_amqp::Limits>,
    http: Arc<HttpFront>,
}

pub(crate) fn protocol(bus: Bus, parts: Parts) -> (Arc<dyn Protocol>, Handler) {
    let front = Arc::new(Front {
        bus,
        hubs: EventHubs::new(parts.logs),
        accounts: parts.accounts,
        published: parts.published,
        tokens: parts.tokens,
        limits: parts.limits,
        metrics: parts.metrics.clone(),
    });
    let administration = counted(parts.metrics.clone(), administration(front.clone()));
    let http = HttpFront::new(parts.http, parts.budget, parts.metrics, administration.clone());
    let amqp = front.limits.amqp.clone();
    let container: Arc<dyn Container> = Arc::new(BusContainer(front));
    (Arc::new(Door { container, amqp, http }), administration)
}

impl Protocol for Door {
    fn serve(self: Arc<Self>, connection: Connection) -> BoxFuture<()> {
        Box::pin(serve(self, connection))
    }
}

async fn serve(door: Arc<Door>, mut connection: Connection) {
    let Some(first) = greeting(&mut connection).await else { return };
    connection.stream.unread(&first);
    let origin = Origin { peer: connection.peer, secure: connection.secure };
    let (container, limits) = (door.container.clone(), door.amqp.clone());
    if first == AMQP {
        let Connection { stream, mut stop, .. } = connection;
        return lazuli_amqp::serve(stream, origin, container, limits, stop.stopped()).await;
    }
    let head = match first == *b"GET " {
        true => websocket::head(&mut connection).await,
        false => None,
    };
    match head {
        Some(head) => {
            let Connection { stream, mut stop, .. } = connection;
            let Some(stream) = websocket::upgrade(stream, &head).await else { return };
            lazuli_amqp::serve(stream, origin, container, limits, stop.stopped()).await;
        }
        None => door.http.clone().serve(connection).await,
    }
}

/// The first four bytes; none if the client leaves or is too slow.
async fn greeting(connection: &mut Connection) -> Option<[u8; 4]> {
    let mut first = [0; 4];
    let (stream, stop) = (&mut connection.stream, &mut connection.stop);
    let read = timeout_at(connection.began + GREETING_TIMEOUT, stream.read_exact(&mut first));
    tokio::select! {
        biased;
        () = stop.stopped() => None,
        read = read => {
            read.ok()?.ok()?;
            Some(first)
        }
    }
}

struct BusContainer(Arc<Front>);

impl Container for BusContainer {
    fn id(&self) -> &str {
        "lazuli"
    }

    fn admits(&self, credentials: &Credentials) -> bool {
        match credentials {
            Credentials::Anonymous => true,
            Credentials::Plain { user, password } => {
                access::by_password(&self.0, user, password).is_some()
            }
            // Client certificates are not asked for, so nobody can be known by one.
            Credentials::External => true,
        }
    }

    fn open(&self, opening: Opening<'_>) -> Result<Arc<dyn AmqpPeer>, Error> {
        let claims = match opening.credentials {
            Credentials::Plain { user, password } => {
                access::by_password(&self.0, user, password).into_iter().collect()
            }
            _ => Vec::new(),
        };
        Ok(Arc::new(Peer::new(self.0.clone(), opening.secure, claims)))
    }
}
