//! What other clients do: they get an error, or are cut off, and take no more than the limits say.

use std::time::Duration;

use bytes::Bytes;
use lazuli_amqp::client::Client;
use lazuli_amqp::performative::{Begin, Open, Performative, Transfer};
use lazuli_amqp::{DeliveryState, Limits, Terminus};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

use crate::broker::{open, serve_one};

async fn condition(client: &mut Client<DuplexStream>) -> String {
    client.flush().await.unwrap();
    loop {
        let heard = tokio::time::timeout(Duration::from_secs(5), client.next()).await;
        let error = match heard.expect("nothing came").unwrap().performative {
            Performative::Close(close) => close.error,
            Performative::End(end) => end.error,
            Performative::Detach(detach) => detach.error,
            _ => continue,
        };
        return error.unwrap().condition.0;
    }
}

#[tokio::test]
async fn what_is_no_frame_ends_the_connection_with_a_reason() {
    for (bytes, expected) in [
        (&b"\xff\xff\xff\xff\x02\x00\x00\x00"[..], "amqp:connection:framing-error"),
        (b"\x00\x00\x00\x08\x01\x00\x00\x00", "amqp:connection:framing-error"),
        (b"\x00\x00\x00\x08\x02\x09\x00\x00", "amqp:connection:framing-error"),
        (b"\x00\x00\x00\x0b\x02\x00\x00\x00\x00\x53\x77", "amqp:decode-error"),
        (b"\x00\x00\x00\x0c\x02\x00\x00\x07\x00\x53\x17\x45", "amqp:not-allowed"),
        (b"\x00\x00\x00\x0c\x02\x00\x00\x00\x00\x53\x40\x45", "amqp:not-allowed"),
    ] {
        let (mut client, _served) = open(Limits::default()).await;
        client.bytes(bytes);
        assert_eq!(condition(&mut client).await, expected, "{bytes:?}");
    }
}

#[tokio::test]
async fn a_delivery_id_that_is_used_twice_ends_the_session_alone() {
    let (mut client, _served) = open(Limits::default()).await;
    client.attach_sender(0, Terminus::target("held"));
    for size in [10, 50_000] {
        let transfer = Transfer {
            delivery_id: Some(7),
            delivery_tag: Some(Bytes::from_static(b"t")),
            more: Some(false),
            ..Transfer::default()
        };
        client.transfer(0, &transfer, &vec![0; size]);
    }
    assert_eq!(condition(&mut client).await, "amqp:not-allowed");
    client.say(0, Performative::Begin(Begin::default()));
    client.flush().await.unwrap();
    assert!(matches!(client.next().await.unwrap().performative, Performative::Begin(_)));
}

/// Messages that never end would hold it for as long as the connection lasts, and nothing counts it.
#[tokio::test]
async fn long_tags_and_long_names_of_transactions_end_the_session() {
    let begun = |tag: usize, state: Option<DeliveryState>| Transfer {
        delivery_id: Some(1),
        delivery_tag: Some(Bytes::from(vec![b't'; tag])),
        more: Some(true),
        state,
        ..Transfer::default()
    };
    let within = |name: usize| {
        let transaction = Bytes::from(vec![b'n'; name]);
        Some(DeliveryState::Transactional { transaction, outcome: None })
    };
    for (transfer, is_fine) in
        [(begun(32, within(32)), true), (begun(33, None), false), (begun(32, within(33)), false)]
    {
        let (mut client, _served) = open(Limits::default()).await;
        client.attach_sender(0, Terminus::target("q"));
        client.transfer(0, &transfer, b"");
        if is_fine {
            client.say(0, Performative::End(Default::default()));
            client.flush().await.unwrap();
            let end = loop {
                if let Performative::End(end) = client.next().await.unwrap().performative {
                    break end;
                }
            };
            assert_eq!(end.error, None);
        } else {
            assert_eq!(condition(&mut client).await, "amqp:invalid-field");
        }
    }
}

#[tokio::test]
async fn a_message_for_which_there_is_no_memory_is_rejected_and_the_next_one_is_taken() {
    let budget = lazuli_net::Budget::new(40_000);
    let other = lazuli_net::Lease::new(budget.clone());
    other.hold(39_000).unwrap();
    let limits = Limits { memory: Some((budget.clone(), "busy")), ..Limits::default() };
    let (mut client, _served) = open(limits).await;
    client.attach_sender(0, Terminus::target("q"));
    let mut states = Vec::new();
    for id in 0..2 {
        let transfer = Transfer {
            delivery_id: Some(id),
            delivery_tag: Some(Bytes::from_static(b"t")),
            ..Transfer::default()
        };
        client.transfer(0, &transfer, &[0; 30_000]);
        client.flush().await.unwrap();
        let state = loop {
            match client.next().await.unwrap().performative {
                Performative::Disposition(said) => break said.state.unwrap(),
                _ => continue,
            }
        };
        states.push(state);
        other.release();
    }
    assert!(
        matches!(&states[0], DeliveryState::Rejected(Some(error)) if error.condition.0 == "busy")
    );
    assert_eq!(states[1], DeliveryState::Accepted);
    assert_eq!(budget.held(), 0);
}

#[tokio::test]
async fn what_is_no_greeting_is_answered_with_ours() {
    let (mut near, served) = serve_one(Limits::default());
    near.write_all(b"AMQP\x00\x00\x09\x01").await.unwrap();
    let mut answer = Vec::new();
    near.read_to_end(&mut answer).await.unwrap();
    assert_eq!(answer, b"AMQP\x00\x01\x00\x00");
    served.task.await.unwrap();
}

#[tokio::test]
async fn a_client_that_says_nothing_is_cut_off() {
    let short = Duration::from_millis(100);
    let limits = || Limits { handshake_timeout: short, idle_timeout: short, ..Limits::default() };
    let (mut near, served) = serve_one(limits());
    assert_eq!(near.read(&mut [0; 8]).await.unwrap(), 0);
    served.task.await.unwrap();
    let (client, served) = open(limits()).await;
    served.task.await.unwrap();
    drop(client);
}

#[tokio::test]
async fn sessions_links_and_sizes_have_limits() {
    let limits = || Limits { sessions_max: 2, links_max: 2, ..Limits::default() };
    let (mut client, _served) = open(limits()).await;
    client.say(2, Performative::Begin(Begin::default()));
    assert_eq!(condition(&mut client).await, "amqp:not-allowed");
    let (mut client, _served) = open(limits()).await;
    client.attach_sender(2, Terminus::target("q"));
    assert_eq!(condition(&mut client).await, "amqp:resource-limit-exceeded");
    let (mut client, _served) = open(limits()).await;
    client.attach_sender(0, Terminus::target("q"));
    client.attach_sender(0, Terminus::target("q"));
    assert_eq!(condition(&mut client).await, "amqp:session:handle-in-use");
    let (mut client, _served) = open(limits()).await;
    client.transfer(0, &Transfer { delivery_id: Some(0), ..Transfer::default() }, b"");
    assert_eq!(condition(&mut client).await, "amqp:session:unattached-handle");
    let (near, _served) = serve_one(limits());
    let mut client = Client::new(near);
    client.sasl("ANONYMOUS", Bytes::new()).await.unwrap();
    let hello = Client::<DuplexStream>::hello();
    client.say(0, Performative::Open(Open { max_frame_size: Some(100), ..hello }));
    assert_eq!(condition(&mut client).await, "amqp:invalid-field");
}

fn piece(handle: u32, id: u32) -> Transfer {
    Transfer { handle, delivery_id: Some(id), more: Some(true), ..Transfer::default() }
}

#[tokio::test]
async fn a_message_that_never_ends_costs_its_link() {
    let (mut client, served) = open(Limits::default()).await;
    client.attach_sender(0, Terminus::target("q"));
    for _ in 0..20 {
        client.transfer(0, &piece(0, 1), &[7; 60_000]);
        client.flush().await.unwrap();
    }
    assert_eq!(condition(&mut client).await, "amqp:link:message-size-exceeded");
    assert!(served.broker.queue("q").take().is_none());
}

#[tokio::test]
async fn many_messages_in_pieces_cost_the_connection() {
    let limits = Limits { partial_bytes_max: 200_000, ..Limits::default() };
    let (mut client, _served) = open(limits).await;
    for handle in 0..10 {
        client.attach_sender(handle, Terminus::target("q"));
        client.transfer(0, &piece(handle, handle), &[7; 60_000]);
        if client.flush().await.is_err() {
            break;
        }
    }
    assert_eq!(condition(&mut client).await, "amqp:resource-limit-exceeded");
}

/// It has all the credit in the world and reads nothing: the front is held back, and other clients don't notice.
#[tokio::test]
async fn a_client_that_does_not_read_holds_the_front_back() {
    let limits = Limits { outgoing_bytes_max: 100_000, ..Limits::default() };
    let (mut client, served) = open(limits).await;
    let queue = served.broker.queue("q");
    for _ in 0..1_000 {
        queue.put(Bytes::from(vec![7; 10_000]));
    }
    client.attach_receiver(0, Terminus::source("q"));
    client.credit(0, 0, 1_000_000, false);
    client.flush().await.unwrap();
    tokio::time::sleep(Duration::from_millis(300)).await;
    let mut left = 0;
    let mut rest = Vec::new();
    while let Some(message) = queue.take() {
        left += 1;
        rest.push(message);
    }
    assert!(left > 900, "{left} of 1,000 messages are left");
    rest.into_iter().for_each(|message| queue.put(message));
    // When it reads again, everything comes.
    let mut got = 0;
    while got < 1_000 {
        let heard = tokio::time::timeout(Duration::from_secs(5), client.next()).await;
        let heard = heard.expect("the rest comes").unwrap();
        got += usize::from(matches!(heard.performative, Performative::Transfer(_)));
    }
}
