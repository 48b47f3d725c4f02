//! What decent clients do.

use std::time::Duration;

use bytes::Bytes;
use lazuli_amqp::client::Client;
use lazuli_amqp::performative::{
    Attach, Begin, Close, Detach, Disposition, Flow, Open, Performative, RECEIVER, Transfer,
};
use lazuli_amqp::{DeliveryState, Limits, Terminus, Writer};
use tokio::io::DuplexStream;

use crate::broker::{open, serve_one};

fn transfer(id: u32, more: bool) -> Transfer {
    Transfer {
        handle: 0,
        delivery_id: Some(id),
        delivery_tag: Some(Bytes::copy_from_slice(&id.to_be_bytes())),
        message_format: Some(0),
        settled: Some(false),
        more: Some(more),
        ..Transfer::default()
    }
}

async fn hear(client: &mut Client<DuplexStream>) -> Performative {
    let heard = tokio::time::timeout(Duration::from_secs(5), client.next()).await;
    heard.expect("nothing came").unwrap().performative
}

async fn attach(client: &mut Client<DuplexStream>) -> Attach {
    client.flush().await.unwrap();
    match hear(client).await {
        Performative::Attach(attach) => *attach,
        other => panic!("{other:?}"),
    }
}

/// A client with a link on which it sends, and the credit that it got.
async fn sender(name: &str) -> (Client<DuplexStream>, crate::broker::Served, u32) {
    let (mut client, served) = open(Limits::default()).await;
    client.attach_sender(0, Terminus::target(name));
    let answer = attach(&mut client).await;
    assert_eq!(answer.target, Some(Terminus::target(name)));
    assert_eq!((answer.max_message_size, answer.rcv_settle_mode), (Some(1_000_000), Some(0)));
    let Performative::Flow(flow) = hear(&mut client).await else { panic!("no credit came") };
    (client, served, flow.link_credit.unwrap())
}

#[tokio::test]
async fn messages_that_are_sent_are_answered_together_and_credit_is_topped_up() {
    let (mut client, served, credit) = sender("q").await;
    assert_eq!(credit, 10);
    for id in 0..8 {
        client.transfer(0, &transfer(id, false), b"message");
    }
    client.flush().await.unwrap();
    let (mut settled, mut flowed) = (0, None);
    while settled < 8 || flowed.is_none() {
        match hear(&mut client).await {
            Performative::Disposition(said) => {
                assert_eq!((said.role, said.settled), (RECEIVER, Some(true)));
                assert_eq!((said.first, said.state), (settled, Some(DeliveryState::Accepted)));
                settled = said.last.unwrap() + 1;
            }
            Performative::Flow(flow) => flowed = Some(flow),
            other => panic!("{other:?}"),
        }
    }
    let flow = flowed.unwrap();
    assert!(flow.delivery_count.unwrap() + flow.link_credit.unwrap() > 10, "{flow:?}");
    assert_eq!(served.broker.queue("q").take().unwrap(), Bytes::from_static(b"message"));
}

#[tokio::test]
async fn a_large_message_is_put_together_and_cut_again() {
    let (mut client, served, _) = sender("q").await;
    let message = Writer::new().data(&vec![7; 300_000]).finish();
    let pieces: Vec<&[u8]> = message.chunks(60_000).collect();
    for (at, piece) in pieces.iter().enumerate() {
        client.transfer(0, &transfer(5, at + 1 < pieces.len()), piece);
    }
    client.flush().await.unwrap();
    let Performative::Disposition(said) = hear(&mut client).await else { panic!() };
    assert_eq!((said.first, said.last), (5, Some(5)));
    client.attach_receiver(1, Terminus::source("q"));
    attach(&mut client).await;
    client.credit(1, 0, 1, false);
    client.flush().await.unwrap();
    let (mut got, mut frames) = (Vec::new(), 0);
    loop {
        let heard = client.next().await.unwrap();
        let Performative::Transfer(part) = heard.performative else { panic!() };
        got.extend_from_slice(&heard.payload);
        frames += 1;
        assert_eq!(part.delivery_id, Some(0));
        if part.more != Some(true) {
            break;
        }
    }
    assert_eq!(got, message);
    assert!(frames > 4, "{frames}");
    drop(served);
}

#[tokio::test]
async fn a_delivery_is_settled_when_the_front_says_so_and_names_its_tag() {
    let (mut client, served) = open(Limits::default()).await;
    served.broker.queue("q").put(Bytes::from_static(b"one"));
    served.broker.queue("q").put(Bytes::from_static(b"two"));
    client.attach_receiver(0, Terminus::source("q"));
    let answer = attach(&mut client).await;
    assert_eq!(answer.source, Some(Terminus::source("q")));
    client.credit(0, 0, 10, false);
    client.flush().await.unwrap();
    for expected in [&b"one"[..], b"two"] {
        let heard = client.next().await.unwrap();
        assert!(matches!(heard.performative, Performative::Transfer(_)));
        assert_eq!(heard.payload, expected);
    }
    client.say(
        0,
        Performative::Disposition(Disposition {
            role: RECEIVER,
            first: 0,
            last: Some(1_000_000),
            settled: Some(false),
            state: Some(DeliveryState::Accepted),
            batchable: None,
        }),
    );
    client.flush().await.unwrap();
    let mut next = 0;
    while next < 2 {
        let Performative::Disposition(said) = hear(&mut client).await else { panic!() };
        assert_eq!((said.role, said.first, said.settled), (!RECEIVER, next, Some(true)));
        next = said.last.unwrap() + 1;
    }
}

#[tokio::test]
async fn credit_that_is_drained_comes_back() {
    let (mut client, served) = open(Limits::default()).await;
    served.broker.queue("q").put(Bytes::from_static(b"one"));
    client.attach_receiver(0, Terminus::source("q"));
    attach(&mut client).await;
    client.credit(0, 0, 7, true);
    client.flush().await.unwrap();
    assert!(matches!(hear(&mut client).await, Performative::Transfer(_)));
    let Performative::Flow(flow) = hear(&mut client).await else { panic!() };
    assert_eq!((flow.handle, flow.drain), (Some(0), Some(true)));
    assert_eq!((flow.delivery_count, flow.link_credit), (Some(7), Some(0)));
    // Credit that comes after it counts from there.
    served.broker.queue("q").put(Bytes::from_static(b"two"));
    client.credit(0, 7, 1, false);
    client.flush().await.unwrap();
    assert!(matches!(hear(&mut client).await, Performative::Transfer(_)));
}

#[tokio::test]
async fn a_refused_link_has_neither_source_nor_target() {
    let (mut client, _served) = open(Limits::default()).await;
    client.attach_receiver(3, Terminus::source("missing"));
    let answer = attach(&mut client).await;
    assert_eq!((answer.source, answer.target, answer.handle), (None, None, 3));
    let Performative::Detach(Detach { handle, closed, error }) = hear(&mut client).await else {
        panic!()
    };
    assert_eq!((handle, closed), (3, Some(true)));
    assert_eq!(error.unwrap().condition.0, "amqp:not-found");
    // Its handle can be used again.
    client.say(0, Performative::Detach(Detach { handle: 3, closed: Some(true), error: None }));
    client.attach_receiver(3, Terminus::source("q"));
    assert!(attach(&mut client).await.source.is_some());
}

#[tokio::test]
async fn a_link_is_given_up_by_the_front_before_the_client_hears_of_its_end() {
    let (mut client, served) = open(Limits::default()).await;
    client.attach_receiver(0, Terminus::source("q"));
    attach(&mut client).await;
    client.say(0, Performative::Detach(Detach { handle: 0, closed: Some(true), error: None }));
    client.flush().await.unwrap();
    let Performative::Detach(detach) = hear(&mut client).await else { panic!() };
    assert_eq!((detach.handle, detach.error), (0, None));
    assert_eq!(*served.broker.left.lock().unwrap(), 1);
    client.attach_receiver(1, Terminus::source("q"));
    attach(&mut client).await;
    client.say(0, Performative::Close(Close::default()));
    client.flush().await.unwrap();
    assert!(matches!(hear(&mut client).await, Performative::End(_)));
    assert!(matches!(hear(&mut client).await, Performative::Close(_)));
    assert_eq!(*served.broker.left.lock().unwrap(), 2);
    served.task.await.unwrap();
}

#[tokio::test]
async fn every_field_is_sent_also_those_without_a_value() {
    let mut out = bytes::BytesMut::new();
    let count =
        |out: &bytes::BytesMut| (out[3], u32::from_be_bytes([out[8], out[9], out[10], out[11]]));
    let all: [(Performative, u32); 7] = [
        (Performative::Open(Open::default()), 10),
        (Performative::Begin(Begin::default()), 8),
        (Performative::Attach(Box::default()), 14),
        (Performative::Flow(Flow::default()), 11),
        (Performative::Transfer(Transfer::default()), 11),
        (Performative::Disposition(Disposition::default()), 6),
        (Performative::Detach(Detach::default()), 3),
    ];
    for (performative, fields) in all {
        out.clear();
        performative.write(&mut out);
        assert_eq!(count(&out), (0xd0, fields), "{performative:?}");
    }
}

#[tokio::test]
async fn a_client_that_asks_for_it_hears_something_all_the_time() {
    let (near, _served) = serve_one(Limits::default());
    let mut client = Client::new(near);
    client.sasl("ANONYMOUS", Bytes::new()).await.unwrap();
    let hello = Client::<DuplexStream>::hello();
    client.say(0, Performative::Open(Open { idle_time_out: Some(400), ..hello }));
    client.flush().await.unwrap();
    assert!(matches!(client.next().await.unwrap().performative, Performative::Open(_)));
    let mut empty = [0; 8];
    for _ in 0..5 {
        let heard = tokio::time::timeout(Duration::from_secs(1), client.header()).await;
        empty = heard.expect("an empty frame comes in time").unwrap();
    }
    assert_eq!(empty, [0, 0, 0, 8, 2, 0, 0, 0]);
}

#[tokio::test]
async fn a_stop_tells_the_client_and_ends() {
    let (mut client, mut served) = open(Limits::default()).await;
    served.stop.take().unwrap().send(()).unwrap();
    let Performative::Close(close) = hear(&mut client).await else { panic!() };
    assert_eq!(close.error.unwrap().condition.0, "amqp:connection:forced");
    client.say(0, Performative::Close(Close::default()));
    client.flush().await.unwrap();
    served.task.await.unwrap();
}

#[tokio::test]
async fn names_and_secrets_are_checked_before_anything_else() {
    let (near, _served) = serve_one(Limits::default());
    let mut client = Client::new(near);
    client.sasl("PLAIN", Bytes::from_static(b"\0me\0secret")).await.unwrap();
    for (mechanism, response) in [("PLAIN", &b"\0me\0wrong"[..]), ("GSSAPI", b"")] {
        let (near, served) = serve_one(Limits::default());
        let mut client = Client::new(near);
        assert!(client.sasl(mechanism, Bytes::from_static(response)).await.is_err());
        served.task.await.unwrap();
    }
}
