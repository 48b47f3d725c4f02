//! A durable cache whose store refuses to write.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lazuli_keyspace::Persistence;
use lazuli_store::faulty::{Fault, FaultyStore, Plan};
use lazuli_store::mem::MemStore;

use super::harness::{Client, Setup};

/// Refuses every commit while it is set.
#[derive(Default)]
struct Switch(AtomicBool);

impl Plan for Switch {
    fn commit(&self) -> Fault {
        if self.0.load(Ordering::Relaxed) { Fault::Before } else { Fault::None }
    }
}

#[tokio::test]
async fn writes_are_refused_while_the_store_refuses_them_and_go_on_afterwards() {
    let switch = Arc::new(Switch::default());
    let env = lazuli_env::real::env();
    let store = FaultyStore::new(Arc::new(MemStore::new()), switch.clone(), env);
    let setup = Setup { stores: vec![Arc::new(store)], ..Setup::default() };
    let service = Setup { persistence: Persistence::Always, ..setup }.serve().await;
    let mut client = Client::connect(service.address).await;
    assert_eq!(client.text(&["SET", "k", "1"]).await, "OK");
    switch.0.store(true, Ordering::Relaxed);
    // The first write finds out: its reply waits for the store.
    let mut waiting = Client::connect(service.address).await;
    waiting.send("SET k 2").await;
    for _ in 0..500 {
        if service.keyspace.is_failing() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let mut other = Client::connect(service.address).await;
    let refused = other.text(&["SET", "l", "1"]).await;
    assert!(refused.starts_with("-MISCONF "), "{refused}");
    assert_eq!(other.text(&["CONFIG", "GET", "appendfsync"]).await, "[appendfsync always]");
    switch.0.store(false, Ordering::Relaxed);
    waiting.expect("+OK\n").await;
    assert_eq!(other.text(&["SET", "l", "1"]).await, "OK");
    assert_eq!(other.text(&["GET", "k"]).await, "2");
}
