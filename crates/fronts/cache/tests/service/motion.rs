//! A slot moves between shards while clients use it: nothing answered is lost, and nobody waits for long.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use lazuli_engine::{Engine, KeyPart, KeySchema, KeyType, MapKind, MoveOptions, ShardId};
use lazuli_keyspace::{CONTAINER, Persistence, slot_of};

use super::harness::{Client, Setup, memory_stores};

/// Begins to move the partition of a slot, and waits until it is there.
pub(super) async fn move_slot(engine: &Arc<Engine>, slot: u16, target: ShardId) {
    let container = engine.manager().catalog().container_named(CONTAINER).await.unwrap().id;
    let schema = KeySchema::one(KeyType::Int32);
    let route = MapKind::Range.route(&schema, &[KeyPart::Int32(i32::from(slot))]).unwrap();
    let place = || async { engine.router().place(container, &route).await.unwrap() };
    let placed = place().await;
    if placed.shard == target {
        return;
    }
    let partition = placed.partition;
    engine.move_partition(partition, target, MoveOptions::default()).await.unwrap();
    for _ in 0..12_000 {
        let moves = engine.manager().catalog().moves().await.unwrap();
        if !moves.iter().any(|it| it.partition == partition) {
            engine.router().forget(container);
            assert_eq!(place().await.shard, target);
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("the move does not end");
}

/// Members of the sorted set that moves. The trial `cache-motion` has a million on real disks.
const MEMBERS: usize = 50_000;
/// Longer than anybody may wait, on machines that do other things as well.
const PAUSE_MAX: Duration = Duration::from_millis(1_500);

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_slot_with_a_large_key_moves_under_load_and_no_write_is_lost() {
    let setup = Setup { stores: memory_stores(2), ..Setup::default() };
    let service = Setup { persistence: Persistence::Always, ..setup }.serve().await;
    let engine = service.engine.clone().unwrap();
    let mut client = Client::connect(service.address).await;
    for first in (0..MEMBERS).step_by(1000) {
        let mut words = vec!["ZADD".to_owned(), "{big}set".to_owned()];
        words.extend((first..first + 1000).flat_map(|it| [it.to_string(), format!("m{it}")]));
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        assert_eq!(client.text(&words).await, "1000");
    }
    let (is_over, longest) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let mut writers = Vec::new();
    for writer in 0..3 {
        let (is_over, longest) = (is_over.clone(), longest.clone());
        let mut client = Client::connect(service.address).await;
        writers.push(tokio::spawn(async move {
            let (member, counter) = (format!("w{writer}"), format!("{{big}}n{writer}"));
            let mut count = 0u64;
            while !is_over.load(Ordering::Relaxed) {
                let began = Instant::now();
                assert_eq!(client.text(&["INCR", &counter]).await, (count + 1).to_string());
                client.text(&["ZINCRBY", "{big}set", "1", &member]).await;
                count += 1;
                let took = u64::try_from(began.elapsed().as_micros()).unwrap();
                longest.fetch_max(took, Ordering::Relaxed);
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            count
        }));
    }
    let slot = slot_of(b"{big}set");
    let shards = engine.manager().catalog().shards().await.unwrap();
    for _ in 0..2 {
        for shard in &shards {
            move_slot(&engine, slot, shard.id).await;
        }
    }
    is_over.store(true, Ordering::Relaxed);
    // A new process reads what the shards have.
    let reopened = Setup { persistence: Persistence::Always, ..Setup::default() };
    let mut counts = Vec::new();
    for writer in writers {
        counts.push(writer.await.unwrap());
    }
    let reopened = reopened.serve_on(engine).await;
    let mut client = Client::connect(reopened.address).await;
    let all = MEMBERS + counts.len();
    assert_eq!(client.text(&["ZCARD", "{big}set"]).await, all.to_string());
    for (writer, count) in counts.iter().enumerate() {
        let counter = format!("{{big}}n{writer}");
        assert_eq!(client.text(&["GET", &counter]).await, count.to_string());
        let score = client.text(&["ZSCORE", "{big}set", &format!("w{writer}")]).await;
        assert_eq!(score, count.to_string());
    }
    let longest = Duration::from_micros(longest.load(Ordering::Relaxed));
    assert!(longest < PAUSE_MAX, "somebody waited for {longest:?}");
}
