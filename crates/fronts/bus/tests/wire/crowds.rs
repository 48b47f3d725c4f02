//! A thousand connections at once, and among them some that are slow or mean no good: the others do not notice.

use std::time::{Duration, Instant};

use lazuli_amqp::client::Client;
use lazuli_amqp::frame::{AMQP_HEADER, SASL_HEADER};
use lazuli_amqp::{DeliveryState, Terminus};
use tokio::io::AsyncWriteExt;
use tokio::task::JoinSet;

use crate::world::{KEY, Talk, World, text, token};

const CONNECTIONS: usize = 1_000;
/// How long one send may take in the crowd: generous, because machines that run tests are busy.
const SEND_MAX: Duration = Duration::from_secs(20);

/// Files that this process may have open.
fn files_max() -> usize {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"));
    let first = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    first.unwrap_or(1_024)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_clients_send_and_those_who_mean_no_good_hinder_nobody() {
    let world = World::start().await;
    // Both ends of a connection are files of this process.
    let count = CONNECTIONS.min(files_max().saturating_sub(200) / 2);
    let mut hostile = Vec::new();
    for nth in 0..60 {
        let mut stream = world.stream().await;
        match nth % 4 {
            // Says nothing.
            0 => {}
            // Greets, and then says nothing.
            1 => stream.write_all(&SASL_HEADER).await.unwrap(),
            // Announces a frame that never comes.
            2 => {
                stream.write_all(&AMQP_HEADER).await.unwrap();
                stream.write_all(&[0, 0, 0xff, 0xff, 2, 0, 0, 0]).await.unwrap();
            }
            // Announces one that is larger than all memory.
            _ => {
                stream.write_all(&AMQP_HEADER).await.unwrap();
                stream.write_all(&[0xff; 64]).await.unwrap();
            }
        }
        hostile.push(stream);
    }
    // One takes messages and never reads them.
    let mut greedy = world.client().await;
    greedy.0.attach_receiver(0, Terminus::source("two"));
    greedy.0.credit(0, 0, 1_000_000, false);
    greedy.0.flush().await.unwrap();
    let began = Instant::now();
    let mut clients = JoinSet::new();
    for nth in 0..count {
        let address = world.address;
        clients.spawn(async move {
            let stream = tokio::net::TcpStream::connect(address).await.unwrap();
            let mut talk = Talk(Client::open(stream).await.unwrap());
            assert_eq!(talk.put_token(&token("", KEY)).await, 202);
            let queue = if nth % 2 == 0 { "one" } else { "two" };
            talk.0.attach_sender(0, Terminus::target(queue));
            let began = Instant::now();
            assert_eq!(talk.send(0, 1, &text("hello"), None).await, DeliveryState::Accepted);
            // The connection stays open until all have sent.
            (talk, began.elapsed())
        });
    }
    let mut open = Vec::new();
    let mut longest = Duration::ZERO;
    while let Some(client) = clients.join_next().await {
        let (talk, took) = client.unwrap();
        longest = longest.max(took);
        open.push(talk);
    }
    assert_eq!(open.len(), count);
    assert!(longest < SEND_MAX, "a send took {longest:?}");
    println!("{count} connections sent after {:?}, the slowest in {longest:?}", began.elapsed());
    // The first ones still can.
    let last = open.first_mut().unwrap();
    assert_eq!(last.send(0, 2, &text("again"), None).await, DeliveryState::Accepted);
    drop((hostile, greedy));
}
