//! Who is let in, by which way.

use bytes::Bytes;
use lazuli_amqp::client::Client;
use lazuli_amqp::performative::{Begin, Performative};
use lazuli_amqp::{DeliveryState, Terminus};
use lazuli_bus_shape::AuthorizationRule;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::world::{KEY, NAMESPACE, RULE, Talk, World, text, token, token_until};

#[tokio::test]
async fn a_token_opens_what_it_is_for_and_nothing_else() {
    let world = World::start().await;
    let mut talk = Talk(Client::open(world.stream().await).await.unwrap());
    talk.0.attach_sender(0, Terminus::target("one"));
    assert_eq!(talk.refusal().await, "amqp:unauthorized-access");
    assert_eq!(talk.put_token(&token("one", KEY)).await, 202);
    talk.0.attach_sender(1, Terminus::target("amqps://localhost:5672/ONE"));
    assert_eq!(talk.send(1, 7, &text("a"), None).await, DeliveryState::Accepted);
    talk.0.attach_sender(2, Terminus::target("two"));
    assert_eq!(talk.refusal().await, "amqp:unauthorized-access");
}

#[tokio::test]
async fn tokens_that_are_not_good_are_refused() {
    let world = World::start().await;
    let good = token("one", KEY);
    let expired = good.replace(&format!("se={}", u64::MAX / 10_000), "se=1700000000");
    // The published key of emulators is good only as long as the account has its own published one.
    for bad in [token("one", "WRONG"), token("one", "SAS_KEY_VALUE"), expired, "a.b.c".to_owned()] {
        let mut talk = Talk(Client::open(world.stream().await).await.unwrap());
        assert_eq!(talk.put_token(&bad).await, 401, "{bad}");
    }
}

#[tokio::test]
async fn a_link_ends_with_its_token_unless_a_new_one_is_shown() {
    let world = World::start().await;
    world.logs.create_hub(NAMESPACE, "hub", &lazuli_log::HubSettings::new(1)).await.unwrap();
    let mut talk = Talk(Client::open(world.stream().await).await.unwrap());
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let soon = now.as_secs() + 2;
    for (handle, path) in [(100, "one"), (102, "two"), (104, "hub")] {
        let token = token_until(path, RULE, KEY, soon);
        assert_eq!(talk.put_token_by(handle, &token).await, 202);
    }
    talk.0.attach_sender(0, Terminus::target("one"));
    talk.0.attach_receiver(1, Terminus::source("two"));
    talk.0.attach_sender(2, Terminus::target("hub/Partitions/0"));
    talk.0.attach_receiver(3, Terminus::source("hub/ConsumerGroups/$Default/Partitions/0"));
    assert_eq!(talk.send(0, 7, &text("a"), None).await, DeliveryState::Accepted);
    // One of them is renewed in time.
    assert_eq!(talk.put_token_by(106, &token("one", KEY)).await, 202);
    let mut ended = std::collections::BTreeSet::new();
    while ended.len() < 3 {
        ended.insert(
            talk.until(|heard| match &heard.performative {
                Performative::Detach(detach) => {
                    let condition = &detach.error.as_ref().unwrap().condition.0;
                    assert_eq!(condition, "amqp:unauthorized-access");
                    Some(detach.handle)
                }
                _ => None,
            })
            .await,
        );
    }
    assert_eq!(ended.into_iter().collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(talk.send(0, 8, &text("b"), None).await, DeliveryState::Accepted);
}

#[tokio::test]
async fn a_rule_of_the_namespace_allows_what_it_names_and_no_more() {
    let world = World::start().await;
    let rule = |name: &str, right: &str| AuthorizationRule {
        name: name.to_owned(),
        rights: vec![right.to_owned()],
        primary_key: format!("the first key of {name}"),
        secondary_key: format!("the second key of {name}"),
        created_ms: 0,
        modified_ms: 0,
    };
    for (name, right) in [("sender", "Send"), ("listener", "Listen"), ("manager", "Manage")] {
        world.bus.put_namespace_rule(NAMESPACE, rule(name, right)).await.unwrap();
    }
    let far = u64::MAX / 10_000;
    let shown =
        |name: &str, which: &str| token_until("", name, &format!("the {which} key of {name}"), far);
    let mut talk = Talk(Client::open(world.stream().await).await.unwrap());
    assert_eq!(talk.put_token(&shown("sender", "third")).await, 401);
    assert_eq!(talk.put_token_by(102, &shown("nobody", "first")).await, 401);
    assert_eq!(talk.put_token_by(104, &shown("sender", "second")).await, 202);
    talk.0.attach_sender(0, Terminus::target("one"));
    assert_eq!(talk.send(0, 7, &text("a"), None).await, DeliveryState::Accepted);
    talk.0.attach_receiver(1, Terminus::source("one"));
    assert_eq!(talk.refusal().await, "amqp:unauthorized-access");

    let mut talk = Talk(Client::open(world.stream().await).await.unwrap());
    assert_eq!(talk.put_token(&shown("listener", "first")).await, 202);
    talk.0.attach_receiver(0, Terminus::source("one"));
    talk.0.credit(0, 0, 1, false);
    assert_eq!(talk.message().await.1, "a");
    talk.0.attach_sender(1, Terminus::target("one"));
    assert_eq!(talk.refusal().await, "amqp:unauthorized-access");

    // The administration is for those who may manage.
    let get = async |token: &str| world.administer_with(token, "GET", "/one", "").await.0;
    assert_eq!(get(&shown("listener", "first")).await, 401);
    assert_eq!(get(&shown("manager", "first")).await, 200);
    world.bus.delete_namespace_rule(NAMESPACE, "manager").await.unwrap();
    assert_eq!(get(&shown("manager", "first")).await, 401);
    let gone = world.bus.delete_namespace_rule(NAMESPACE, "manager").await.unwrap_err();
    assert_eq!(gone.kind(), lazuli_engine::Kind::NotFound);
    let names: Vec<_> = world.bus.namespace_rules(NAMESPACE).await.unwrap();
    assert_eq!(names.iter().map(|it| &*it.name).collect::<Vec<_>>(), ["listener", "sender"]);
    for bad in [rule("", "Send"), rule("a/b", "Send"), rule("a", "Read"), {
        AuthorizationRule { primary_key: "short".to_owned(), ..rule("a", "Send") }
    }] {
        assert!(world.bus.put_namespace_rule(NAMESPACE, bad).await.is_err());
    }
}

#[tokio::test]
async fn a_rule_and_its_key_open_everything() {
    let world = World::start().await;
    let mut client = Client::new(world.stream().await);
    let plain = format!("\0RootManageSharedAccessKey\0{KEY}");
    client.sasl("PLAIN", Bytes::from(plain)).await.unwrap();
    client.say(0, Performative::Open(Client::<tokio::net::TcpStream>::hello()));
    client.say(0, Performative::Begin(Begin { incoming_window: 100, ..Begin::default() }));
    client.attach_sender(0, Terminus::target("one"));
    let mut talk = Talk(client);
    assert_eq!(talk.send(0, 0, &text("a"), None).await, DeliveryState::Accepted);
    let mut client = Client::new(world.stream().await);
    let wrong = Bytes::from_static(b"\0RootManageSharedAccessKey\0wrong");
    assert!(client.sasl("PLAIN", wrong).await.is_err());
}

#[tokio::test]
async fn what_is_missing_is_refused_by_its_name() {
    let world = World::start().await;
    let mut talk = world.client().await;
    for (handle, address) in [(0, "missing"), (1, "one/Subscriptions/s"), (2, "")] {
        talk.0.attach_receiver(handle, Terminus::source(address));
        assert_eq!(talk.refusal().await, "amqp:not-found", "{address}");
    }
}

/// A frame of a client, with a mask of zeros.
fn framed(bytes: &[u8]) -> Vec<u8> {
    let mut frame = vec![0x82, 0x80 | bytes.len() as u8, 0, 0, 0, 0];
    frame.extend_from_slice(bytes);
    frame
}

#[tokio::test]
async fn amqp_goes_through_a_websocket() {
    let world = World::start().await;
    let mut stream = world.stream().await;
    let head = "GET /$servicebus/websocket HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n\
                Connection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
                Sec-WebSocket-Protocol: AMQPWSB10\r\nSec-WebSocket-Version: 13\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(&framed(b"AMQP\x03\x01\x00\x00")).await.unwrap();
    let mut got = Vec::new();
    while !got.windows(8).any(|eight| eight == b"AMQP\x03\x01\x00\x00") {
        assert!(stream.read_buf(&mut got).await.unwrap() > 0, "{got:?}");
    }
    assert!(got.starts_with(b"HTTP/1.1 101 "));
}

#[tokio::test]
async fn another_request_is_answered_by_http() {
    let world = World::start().await;
    for head in ["GET /queue HTTP/1.1\r\nHost: localhost\r\n\r\n", "PUT /q HTTP/1.0\r\n\r\n"] {
        let mut stream = world.stream().await;
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut first = [0; 9];
        stream.read_exact(&mut first).await.unwrap();
        assert!(first.starts_with(b"HTTP/1."), "{head}");
    }
}
