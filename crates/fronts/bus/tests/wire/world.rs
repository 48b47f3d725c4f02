//! The front on a port of its own, with an engine in memory, and a client that says what it is told.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use lazuli_amqp::client::{Client, Heard};
use lazuli_amqp::performative::{Disposition, Performative, RECEIVER, Transfer};
use lazuli_amqp::{
    Body, DeliveryState, Map, Properties, Sections, Terminus, Value, Writer, transaction,
};
use lazuli_azure::auth::{Accounts, Key, Keys};
use lazuli_bus::{Limits, Parts, Published};
use lazuli_bus_shape::{Bus, BusSettings, Description, EntityKind};
use lazuli_engine::{Engine, Settings};
use lazuli_net::{Budget, Listener, Metrics, Stopper, stopper};
use lazuli_shardmap::manager::NewShard;
use lazuli_store::mem::MemStore;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

pub(crate) const NAMESPACE: &str = "dev";
/// The key of the account, whose text signs tokens.
pub(crate) const KEY: &str = "c2VjcmV0";
pub(crate) const RULE: &str = "RootManageSharedAccessKey";

pub(crate) struct World {
    pub(crate) address: std::net::SocketAddr,
    pub(crate) bus: Bus,
    pub(crate) logs: lazuli_log::Logs,
    _stopper: Stopper,
}

impl World {
    /// A server with the queues `one` and `two`.
    pub(crate) async fn start() -> Self {
        let env = lazuli_env::real::env();
        let engine = Engine::on(env, Settings::default(), Arc::new(MemStore::new())).await.unwrap();
        let new = NewShard {
            name: "one".into(),
            location: "one".into(),
            region: "here".into(),
            labels: Default::default(),
        };
        engine.add_shard(&new, Arc::new(MemStore::new())).await.unwrap();
        let logs = lazuli_log::Logs::new(engine.clone(), false);
        let bus = Bus::new(engine, lazuli_bus::reader(), BusSettings::default());
        for name in ["one", "two"] {
            let queue = Description::queue();
            bus.create_entity(NAMESPACE, EntityKind::Queue, name, queue).await.unwrap();
        }
        let accounts = Arc::new(Accounts::new());
        let key = || Key::from_base64(KEY).unwrap();
        accounts.set(NAMESPACE, Keys { first: key(), second: None });
        let metrics = Arc::new(Metrics::new("bus"));
        let published = Published {
            account: NAMESPACE,
            key: Key::from_base64("b3RoZXI=").unwrap(),
            other: Key::from_text("SAS_KEY_VALUE"),
        };
        let kept = logs.clone();
        let parts = Parts {
            logs,
            accounts,
            published: Some(published),
            tokens: Default::default(),
            limits: Limits::default(),
            http: Default::default(),
            budget: Budget::new(1 << 30),
            metrics: metrics.clone(),
        };
        let (protocol, _) = lazuli_bus::protocol(bus.clone(), parts);
        let limits = lazuli_net::Limits::default();
        let any = "127.0.0.1:0".parse().unwrap();
        let listener = Listener::bind(any, None, limits, metrics).await.unwrap();
        let address = listener.address();
        let (stopper, stop) = stopper();
        tokio::spawn(listener.serve(protocol, stop));
        Self { address, bus, logs: kept, _stopper: stopper }
    }

    pub(crate) async fn stream(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Asks the administration: the status and the body of the answer.
    pub(crate) async fn administer(&self, method: &str, path: &str, body: &str) -> (u16, String) {
        self.administer_with(&token("", KEY), method, path, body).await
    }

    pub(crate) async fn administer_with(
        &self,
        token: &str,
        method: &str,
        path: &str,
        body: &str,
    ) -> (u16, String) {
        let mut stream = self.stream().await;
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: {}\r\n\
             connection: close\r\ncontent-length: {}\r\n\r\n{body}",
            token,
            body.len()
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        let answer = String::from_utf8(answer).unwrap();
        let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
        let body = answer.split_once("\r\n\r\n").unwrap().1.to_owned();
        (status, body)
    }

    /// A client that has shown a token for everything.
    pub(crate) async fn client(&self) -> Talk {
        let mut talk = Talk(Client::open(self.stream().await).await.unwrap());
        assert_eq!(talk.put_token(&token("", KEY)).await, 202);
        talk
    }
}

/// A token for a path.
pub(crate) fn token(path: &str, key: &str) -> String {
    token_until(path, RULE, key, u64::MAX / 10_000)
}

/// A token of a rule for a path, until a moment in seconds.
pub(crate) fn token_until(path: &str, rule: &str, key: &str, expires: u64) -> String {
    let resource = format!("sb%3A%2F%2Flocalhost%2F{path}");
    let signature = Key::from_text(key).sign_by_text(&format!("{resource}\n{expires}"));
    let signature = STANDARD.encode(signature).replace('+', "%2B").replace('/', "%2F");
    format!("SharedAccessSignature sr={resource}&sig={signature}&se={expires}&skn={rule}")
}

/// A client that waits for what it wants to hear.
pub(crate) struct Talk(pub(crate) Client<TcpStream>);

impl Talk {
    pub(crate) async fn next(&mut self) -> Heard {
        self.0.flush().await.unwrap();
        let heard = tokio::time::timeout(Duration::from_secs(10), self.0.next()).await;
        heard.expect("nothing came").unwrap()
    }

    /// The next frame for which this is something.
    pub(crate) async fn until<T>(&mut self, wanted: impl Fn(&Heard) -> Option<T>) -> T {
        loop {
            if let Some(found) = wanted(&self.next().await) {
                return found;
            }
        }
    }

    /// Shows a token and answers the status.
    pub(crate) async fn put_token(&mut self, token: &str) -> i64 {
        self.put_token_by(100, token).await
    }

    /// The same by links of this handle and the next one.
    pub(crate) async fn put_token_by(&mut self, handle: u32, token: &str) -> i64 {
        self.0.attach_sender(handle, Terminus::target("$cbs"));
        self.0.attach_receiver(handle + 1, Terminus::source("$cbs"));
        self.0.credit(handle + 1, 0, 10, false);
        let asked = Map::default().with_text("operation", "put-token");
        let properties = Properties { message_id: "t".into(), ..Properties::default() };
        let request = Writer::new().properties(&properties).application_properties(&asked);
        self.transfer(handle, handle, &request.value(&token.into()).finish(), None);
        let reply = self.until(|heard| match &heard.performative {
            Performative::Transfer(_) => Some(heard.payload.clone()),
            _ => None,
        });
        let sections = Sections::split(&reply.await).unwrap();
        assert_eq!(sections.properties().unwrap().correlation_id, Value::from("t"));
        sections.application_properties().unwrap().integer("status-code").unwrap()
    }

    pub(crate) fn transfer(
        &mut self,
        handle: u32,
        id: u32,
        payload: &[u8],
        state: Option<DeliveryState>,
    ) {
        let tag = Some(Bytes::copy_from_slice(&id.to_be_bytes()));
        let transfer = Transfer {
            handle,
            delivery_id: Some(id),
            delivery_tag: tag,
            message_format: Some(0),
            settled: Some(false),
            state,
            ..Transfer::default()
        };
        self.0.transfer(0, &transfer, payload);
    }

    /// Sends a message and answers what the server says of it.
    pub(crate) async fn send(
        &mut self,
        handle: u32,
        id: u32,
        payload: &[u8],
        state: Option<DeliveryState>,
    ) -> DeliveryState {
        self.transfer(handle, id, payload, state);
        self.settled(id).await
    }

    /// What the server says of a delivery, in either direction.
    pub(crate) async fn settled(&mut self, id: u32) -> DeliveryState {
        self.until(|heard| match &heard.performative {
            Performative::Disposition(said) if said.first <= id && id <= said.last.unwrap() => {
                assert_eq!(said.settled, Some(true));
                said.state.clone()
            }
            _ => None,
        })
        .await
    }

    /// Asks the coordinator on a link.
    pub(crate) async fn coordinate(
        &mut self,
        handle: u32,
        id: u32,
        request: &transaction::Request,
    ) -> DeliveryState {
        let message = Writer::new().value(&request.value()).finish();
        self.send(handle, id, &message, None).await
    }

    /// The id and the text of the next message on any link.
    pub(crate) async fn message(&mut self) -> (u32, String) {
        self.until(|heard| match &heard.performative {
            Performative::Transfer(transfer) => {
                let sections = Sections::split(&heard.payload).unwrap();
                let Body::Data(data) = sections.body().unwrap() else { panic!() };
                Some((transfer.delivery_id.unwrap(), String::from_utf8(data.concat()).unwrap()))
            }
            _ => None,
        })
        .await
    }

    pub(crate) fn dispose(&mut self, id: u32, state: DeliveryState) {
        self.0.say(
            0,
            Performative::Disposition(Disposition {
                role: RECEIVER,
                first: id,
                last: Some(id),
                settled: Some(false),
                state: Some(state),
                batchable: None,
            }),
        );
    }

    /// The condition of the error with which the server ends a link.
    pub(crate) async fn refusal(&mut self) -> String {
        self.until(|heard| match &heard.performative {
            Performative::Detach(detach) => Some(detach.error.clone().unwrap().condition.0),
            _ => None,
        })
        .await
    }
}

pub(crate) fn text(text: &str) -> Bytes {
    Writer::new().data(text.as_bytes()).finish()
}
