//! Two nodes on the same stores: a group has one coordinator, and requests of one connection are answered in their order.

#![allow(clippy::unwrap_used, reason = "a panic in a test is the failure report")]

use std::net::SocketAddr;
use std::sync::Arc;

use lazuli_azure::auth::{Accounts, Key, Keys};
use lazuli_engine::{Engine, Settings};
use lazuli_kafka::{Parts, Published};
use lazuli_log::Logs;
use lazuli_net::{Budget, Listener, Metrics, Stopper, stopper};
use lazuli_shardmap::manager::NewShard;
use lazuli_store::mem::MemStore;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const ACCOUNT: &str = "dev";
const KEY: &str = "c2VjcmV0";

const FIND_COORDINATOR: i16 = 10;
const HEARTBEAT: i16 = 12;
const NOT_AVAILABLE: i16 = 15;
const NOT_COORDINATOR: i16 = 16;
const UNKNOWN_MEMBER: i16 = 25;

async fn engine() -> Arc<Engine> {
    let env = lazuli_env::real::env();
    let engine = Engine::on(env, Settings::default(), Arc::new(MemStore::new())).await.unwrap();
    let new = NewShard {
        name: "one".into(),
        location: "one".into(),
        region: "here".into(),
        labels: Default::default(),
    };
    engine.add_shard(&new, Arc::new(MemStore::new())).await.unwrap();
    engine
}

/// A front of its own on an engine that others use too.
async fn node(engine: &Arc<Engine>) -> (SocketAddr, Stopper) {
    let accounts = Arc::new(Accounts::new());
    let key = || Key::from_base64(KEY).unwrap();
    accounts.set(ACCOUNT, Keys { first: key(), second: None });
    let metrics = Arc::new(Metrics::new("kafka"));
    let front = lazuli_kafka::front(Parts {
        logs: Logs::new(engine.clone(), true),
        accounts,
        published: Some(Published { account: ACCOUNT, key: key(), text: "published" }),
        budget: Budget::new(1 << 30),
        metrics: metrics.clone(),
        settings: lazuli_kafka::Settings { auto_create: None },
    });
    let any = "127.0.0.1:0".parse().unwrap();
    let limits = lazuli_net::Limits::default();
    let listener = Listener::bind(any, None, limits, metrics).await.unwrap();
    let address = listener.address();
    let (stopper, stop) = stopper();
    tokio::spawn(listener.serve(front, stop));
    (address, stopper)
}

fn text(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(&(text.len() as i16).to_be_bytes());
    out.extend_from_slice(text.as_bytes());
}

/// A request with this number.
fn request(key: i16, version: i16, number: i32, body: &[u8]) -> Vec<u8> {
    let mut frame = Vec::new();
    frame.extend_from_slice(&key.to_be_bytes());
    frame.extend_from_slice(&version.to_be_bytes());
    frame.extend_from_slice(&number.to_be_bytes());
    text(&mut frame, "test");
    frame.extend_from_slice(body);
    let mut all = (frame.len() as i32).to_be_bytes().to_vec();
    all.extend(frame);
    all
}

fn find(group: &str, number: i32) -> Vec<u8> {
    let mut body = Vec::new();
    text(&mut body, group);
    body.push(0);
    request(FIND_COORDINATOR, 1, number, &body)
}

fn heartbeat(group: &str, number: i32) -> Vec<u8> {
    let mut body = Vec::new();
    text(&mut body, group);
    body.extend_from_slice(&1_i32.to_be_bytes());
    text(&mut body, "member");
    request(HEARTBEAT, 1, number, &body)
}

async fn answer(stream: &mut TcpStream) -> (i32, Vec<u8>) {
    let length = stream.read_i32().await.unwrap();
    let number = stream.read_i32().await.unwrap();
    let mut rest = vec![0; length as usize - 4];
    stream.read_exact(&mut rest).await.unwrap();
    (number, rest)
}

/// The error code behind the throttle time.
fn code(rest: &[u8]) -> i16 {
    i16::from_be_bytes([rest[4], rest[5]])
}

#[tokio::test]
async fn a_group_is_coordinated_by_the_node_that_claimed_it_and_by_no_other() {
    let engine = engine().await;
    let (first, _one) = node(&engine).await;
    let (second, _two) = node(&engine).await;
    let mut first_stream = TcpStream::connect(first).await.unwrap();
    let mut second_stream = TcpStream::connect(second).await.unwrap();
    first_stream.write_all(&find("group", 1)).await.unwrap();
    let (_, found) = answer(&mut first_stream).await;
    assert_eq!(code(&found), 0);
    second_stream.write_all(&find("group", 2)).await.unwrap();
    let (_, refused) = answer(&mut second_stream).await;
    assert_eq!(code(&refused), NOT_AVAILABLE);
    let told = String::from_utf8_lossy(&refused).into_owned();
    assert!(told.contains(&first.to_string()), "it says where the coordinator is: {told}");
    second_stream.write_all(&heartbeat("group", 3)).await.unwrap();
    assert_eq!(code(&answer(&mut second_stream).await.1), NOT_COORDINATOR);
    first_stream.write_all(&heartbeat("group", 4)).await.unwrap();
    assert_eq!(code(&answer(&mut first_stream).await.1), UNKNOWN_MEMBER);
    second_stream.write_all(&find("other", 5)).await.unwrap();
    assert_eq!(code(&answer(&mut second_stream).await.1), 0, "another group is free");
}

#[tokio::test]
async fn requests_that_do_not_wait_for_answers_are_answered_in_their_order() {
    let engine = engine().await;
    let (address, _node) = node(&engine).await;
    let mut stream = TcpStream::connect(address).await.unwrap();
    let all: Vec<u8> = (0..200)
        .flat_map(|number| match number % 2 {
            0 => find("group", number),
            _ => heartbeat("group", number),
        })
        .collect();
    stream.write_all(&all).await.unwrap();
    for number in 0..200 {
        assert_eq!(answer(&mut stream).await.0, number);
    }
}
