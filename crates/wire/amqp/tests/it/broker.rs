//! A container with queues in memory, in a few lines: what a front looks like.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use lazuli_amqp::client::Client;
use lazuli_amqp::{
    Attaching, Container, Credentials, DeliveryState, Error, Event, Incoming, Limits, Opening,
    Origin, Outgoing, Peer, Receiving, Sending, condition, serve,
};
use tokio::io::DuplexStream;
use tokio::sync::{Notify, oneshot};

#[derive(Default)]
pub(crate) struct Broker {
    queues: Mutex<HashMap<String, Arc<Queue>>>,
    /// How many outgoing links have let go.
    pub(crate) left: Arc<Mutex<usize>>,
}

#[derive(Default)]
pub(crate) struct Queue {
    messages: Mutex<VecDeque<Bytes>>,
    grown: Notify,
}

impl Queue {
    pub(crate) fn put(&self, message: Bytes) {
        self.messages.lock().unwrap().push_back(message);
        self.grown.notify_one();
    }

    pub(crate) fn take(&self) -> Option<Bytes> {
        self.messages.lock().unwrap().pop_front()
    }
}

impl Broker {
    pub(crate) fn queue(&self, name: &str) -> Arc<Queue> {
        self.queues.lock().unwrap().entry(name.to_owned()).or_default().clone()
    }
}

/// The broker as the peers of its connections hold it.
pub(crate) struct Front(pub(crate) Arc<Broker>);

impl Container for Front {
    fn id(&self) -> &str {
        "broker"
    }

    fn admits(&self, credentials: &Credentials) -> bool {
        match credentials {
            Credentials::Plain { user, password } => (&**user, &**password) == ("me", "secret"),
            _ => true,
        }
    }

    fn open(&self, opening: Opening<'_>) -> Result<Arc<dyn Peer>, Error> {
        match opening.open.hostname.as_deref() {
            Some("elsewhere") => Err(Error::new(condition::NOT_FOUND, "There is no such host.")),
            _ => Ok(Arc::new(Front(self.0.clone()))),
        }
    }
}

impl Peer for Front {
    fn attach(self: Arc<Self>, attaching: Attaching) {
        let end = match attaching.client_sends() {
            true => &attaching.attach.target,
            false => &attaching.attach.source,
        };
        let Some(name) = end.as_ref().and_then(|end| end.address()).map(str::to_owned) else {
            return attaching.refuse(Error::new(condition::INVALID_FIELD, "There is no address."));
        };
        if name == "missing" {
            return attaching.refuse(Error::new(condition::NOT_FOUND, "There is no such queue."));
        }
        let queue = self.0.queue(&name);
        if attaching.client_sends() {
            let receiving = Receiving {
                credit: 10,
                message_bytes_max: 1_000_000,
                properties: Default::default(),
                capabilities: Vec::new(),
            };
            let Some(link) = attaching.receive(receiving) else { return };
            tokio::spawn(store(link, queue));
        } else {
            let Some(link) = attaching.send(Sending::default()) else { return };
            tokio::spawn(give(link, queue, self.0.left.clone()));
        }
    }
}

async fn store(mut link: Incoming, queue: Arc<Queue>) {
    while let Some(delivery) = link.next().await {
        queue.put(delivery.payload.clone());
        delivery.settle(DeliveryState::Accepted);
    }
}

async fn give(mut link: Outgoing, queue: Arc<Queue>, left: Arc<Mutex<usize>>) {
    let mut count = 0u32;
    loop {
        while link.credit() > 0
            && let Some(message) = queue.take()
        {
            count += 1;
            let tag = Bytes::copy_from_slice(&count.to_be_bytes());
            link.send(tag, Bytes::new(), message, false);
        }
        if link.drain() && link.credit() > 0 {
            link.drained();
        }
        tokio::select! {
            biased;
            event = link.next() => match event {
                None => break,
                Some(Event::Flow) => {}
                Some(Event::Disposition(said)) => {
                    let state = said.state.as_deref().unwrap_or(&DeliveryState::Released).clone();
                    link.confirm(said.id, state);
                }
            },
            () = queue.grown.notified() => {}
        }
    }
    *left.lock().unwrap() += 1;
}

/// A connection in the middle, and what ends it from the side of the server.
pub(crate) struct Served {
    pub(crate) broker: Arc<Broker>,
    pub(crate) stop: Option<oneshot::Sender<()>>,
    pub(crate) task: tokio::task::JoinHandle<()>,
}

pub(crate) fn serve_one(limits: Limits) -> (DuplexStream, Served) {
    let (near, far) = tokio::io::duplex(64 * 1024);
    let broker = Arc::new(Broker::default());
    let front: Arc<dyn Container> = Arc::new(Front(broker.clone()));
    let (stop, stopped) = oneshot::channel::<()>();
    let origin = Origin { peer: ([127, 0, 0, 1], 1).into(), secure: false };
    let stopped = async move {
        let _ = stopped.await;
    };
    let task = tokio::spawn(serve(far, origin, front, Arc::new(limits), stopped));
    (near, Served { broker, stop: Some(stop), task })
}

pub(crate) async fn open(limits: Limits) -> (Client<DuplexStream>, Served) {
    let (near, served) = serve_one(limits);
    (Client::open(near).await.unwrap(), served)
}
