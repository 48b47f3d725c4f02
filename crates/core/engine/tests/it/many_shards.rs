//! Work over many shards: reference data on each of them (S12), and jobs of many steps (S14).

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::world::{World, item_key, route};
use bytes::Bytes;
use lazuli_engine::steps::{JobState, Step};
use lazuli_engine::{Condition, ItemKey, Transaction, Tx};
use lazuli_shardmap::manager::Cuts;
use lazuli_shardmap::{Container, MapKind, Policies};
use lazuli_store::{Kind, Result};

/// Three points of a list map, each on a shard of its own.
async fn three_points(world: &World) -> Container {
    let container = world.create("c", MapKind::List, Cuts::Empty, Policies::default()).await;
    for (key, shard) in ["a", "b", "c"].iter().zip(world.shard_stores.keys()) {
        world.add_point(&container, key, *shard).await;
    }
    container
}

/// Writes the price of a thing by its shard's copy of the price list.
struct Buy {
    key: ItemKey,
    thing: &'static str,
}

impl Transaction for Buy {
    type Output = Option<Bytes>;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<Option<Bytes>> {
        let price = tx.reference("prices", self.thing.as_bytes()).await?;
        if let Some(price) = &price {
            tx.put(&self.key, price.clone()).await?;
        }
        Ok(price)
    }
}

async fn prices(world: &World, container: &Container) -> Vec<Option<String>> {
    let mut found = Vec::new();
    for key in ["a", "b", "c"] {
        let key = item_key(container, key, "bought");
        let buy = Buy { key: key.clone(), thing: "tea" };
        let price = world.engine.write(container.id, key.route(), buy).await.unwrap();
        let view = world.engine.read(container.id, key.route(), 1).await.unwrap();
        assert_eq!(view.reference("prices", b"tea").await.unwrap(), price);
        found.push(price.map(|price| String::from_utf8(price.to_vec()).unwrap()));
    }
    found
}

#[tokio::test]
async fn reference_data_reaches_every_shard_and_its_staleness_shows() {
    let mut world = World::new(3).await;
    let container = three_points(&world).await;
    assert_eq!(prices(&world, &container).await, [None, None, None]);
    let engine = world.engine.clone();
    assert_eq!(engine.put_reference("prices", b"tea", "5".into()).await.unwrap(), 1);
    let before = engine.reference_spread().await.unwrap();
    assert!(before.iter().all(|spread| (spread.copied, spread.written) == (0, 1)), "{before:?}");
    engine.spread_references().await.unwrap();
    assert_eq!(prices(&world, &container).await, vec![Some("5".to_owned()); 3]);
    for number in 0..500u32 {
        engine.put_reference("prices", &number.to_be_bytes(), "x".into()).await.unwrap();
    }
    engine.put_reference("prices", b"tea", "6".into()).await.unwrap();
    let down = world.down.values().nth(1).unwrap().clone();
    down.0.store(true, Ordering::SeqCst);
    assert!(engine.spread_references().await.is_err());
    down.0.store(false, Ordering::SeqCst);
    assert_eq!(
        prices(&world, &container).await,
        ["6", "5", "6"].map(|price| Some(price.to_owned())),
        "one shard was down and is behind"
    );
    let behind = engine.reference_spread().await.unwrap();
    assert_eq!(behind.iter().filter(|spread| spread.copied < spread.written).count(), 1);
    world.restart().await;
    let new = world.add_shard("shard-4", "here").await;
    world.engine.spread_references().await.unwrap();
    let spread = world.engine.reference_spread().await.unwrap();
    assert_eq!(spread.len(), 4, "a new shard gets everything");
    assert!(spread.iter().all(|spread| spread.copied == 502), "{spread:?}");
    assert!(spread.iter().any(|spread| spread.shard == new));
    world.engine.delete_reference("prices", b"tea").await.unwrap();
    world.engine.spread_references().await.unwrap();
    assert_eq!(prices(&world, &container).await, [None, None, None]);
}

#[tokio::test]
async fn reference_data_is_spread_by_itself_once_the_engine_runs() {
    let mut world = World::new(2).await;
    world.settings.job_interval = Duration::from_millis(10);
    world.restart().await;
    world.engine.start();
    world.engine.put_reference("prices", b"tea", "5".into()).await.unwrap();
    for _ in 0..500 {
        let spread = world.engine.reference_spread().await.unwrap();
        if spread.iter().all(|spread| spread.copied == 1) {
            return;
        }
        world.env.clock.sleep(Duration::from_millis(10)).await;
    }
    panic!("not spread after seconds: {:?}", world.engine.troubles());
}

#[tokio::test]
async fn reference_data_over_its_limits_is_refused() {
    let world = World::new(1).await;
    let put = async |name: &str, key: &[u8], value: Vec<u8>| {
        world.engine.put_reference(name, key, value.into()).await.unwrap_err().kind()
    };
    assert_eq!(put("", b"k", vec![]).await, Kind::Invalid);
    assert_eq!(put(&"n".repeat(201), b"k", vec![]).await, Kind::Invalid);
    assert_eq!(put("n", &[0; 1025], vec![]).await, Kind::Invalid);
    assert_eq!(put("n", b"k", vec![0; 65_537]).await, Kind::TooLarge);
}

fn put(container: &Container, key: &str, condition: Condition) -> Step {
    Step {
        container: container.id,
        route: route(container, key),
        row: "row".into(),
        condition,
        payload: Some(key.to_owned().into()),
    }
}

async fn seen(world: &World, container: &Container) -> [Option<String>; 3] {
    let get = |key| world.get(container, key, "row");
    [get("a").await.unwrap(), get("b").await.unwrap(), get("c").await.unwrap()]
}

fn some(keys: [&str; 3]) -> [Option<String>; 3] {
    keys.map(|key| Some(key.to_owned()))
}

#[tokio::test]
async fn a_job_makes_all_its_writes_and_says_so() {
    let world = World::new(3).await;
    let container = three_points(&world).await;
    let steps = ["a", "b", "c"].map(|key| put(&container, key, Condition::Absent)).to_vec();
    let id = world.engine.submit_job(steps).await.unwrap();
    assert_eq!(world.engine.job(id).await.unwrap().state, JobState::Running);
    world.engine.run_jobs().await.unwrap();
    assert_eq!(seen(&world, &container).await, some(["a", "b", "c"]));
    let job = world.engine.job(id).await.unwrap();
    assert_eq!((job.state, job.made), (JobState::Finished, 3));
    assert!(world.engine.jobs().await.unwrap().is_empty());
    for partition in world.partitions(&container).await {
        let stats = world.engine.partition_stats(partition.id, partition.shard).await.unwrap();
        assert_eq!(stats.counts.items, 1, "the marks are gone");
    }
}

#[tokio::test]
async fn a_job_stops_at_a_step_that_cannot_be_made() {
    let world = World::new(3).await;
    let container = three_points(&world).await;
    world.put(&container, "b", "row", "in the way").await.unwrap();
    let steps = ["a", "b", "c"].map(|key| put(&container, key, Condition::Absent)).to_vec();
    let id = world.engine.submit_job(steps.clone()).await.unwrap();
    world.engine.run_jobs().await.unwrap();
    let job = world.engine.job(id).await.unwrap();
    assert_eq!(job.made, 1);
    let JobState::Stopped { code, .. } = &job.state else { panic!("{job:?}") };
    assert_eq!(code, "item-exists");
    assert_eq!(world.get(&container, "c", "row").await.unwrap(), None);
    let delete = Step { payload: None, condition: Condition::Any, ..steps[1].clone() };
    world.engine.submit_job(vec![delete]).await.unwrap();
    world.engine.run_jobs().await.unwrap();
    world.engine.resume_job(id).await.unwrap();
    world.engine.run_jobs().await.unwrap();
    assert_eq!(world.engine.job(id).await.unwrap().state, JobState::Finished);
    assert_eq!(seen(&world, &container).await, some(["a", "b", "c"]));
    let again = world.engine.submit_job(steps).await.unwrap();
    world.engine.run_jobs().await.unwrap();
    world.engine.abandon_job(again).await.unwrap();
    world.engine.run_jobs().await.unwrap();
    let job = world.engine.job(again).await.unwrap();
    assert_eq!((job.state, job.made), (JobState::Finished, 0));
    assert_eq!(world.engine.resume_job(again).await.unwrap_err().kind(), Kind::NotFound);
}

#[tokio::test]
async fn a_job_waits_for_a_shard_that_is_down() {
    let world = World::new(3).await;
    let container = three_points(&world).await;
    let down = world.down.values().nth(1).unwrap().clone();
    down.0.store(true, Ordering::SeqCst);
    let steps = ["a", "b", "c"].map(|key| put(&container, key, Condition::Any)).to_vec();
    let id = world.engine.submit_job(steps).await.unwrap();
    assert!(world.engine.run_jobs().await.is_err());
    let job = world.engine.job(id).await.unwrap();
    assert_eq!((job.state, job.made), (JobState::Running, 1));
    down.0.store(false, Ordering::SeqCst);
    world.pass(Duration::from_secs(60));
    world.engine.run_jobs().await.unwrap();
    assert_eq!(seen(&world, &container).await, some(["a", "b", "c"]));
}

#[tokio::test]
async fn a_job_survives_a_crash_at_every_commit_and_makes_no_write_twice() {
    let mut crashes = 0;
    for after in [false, true] {
        for at in 1.. {
            let mut world = World::new(3).await;
            let container = three_points(&world).await;
            let steps = ["a", "b", "c"].map(|key| put(&container, key, Condition::Any)).to_vec();
            world.engine.submit_job(steps).await.unwrap();
            let start = world.faults.seen.load(Ordering::SeqCst);
            *world.faults.after.lock().unwrap() = after;
            world.faults.at.store(start + at, Ordering::SeqCst);
            let crashed = world.engine.run_jobs().await.is_err();
            world.restart().await;
            // What the job wrote before the crash belongs to others by now: it must not be written again.
            let mut taken = [false; 3];
            for (key, taken) in ["a", "b", "c"].iter().zip(&mut taken) {
                if world.get(&container, key, "row").await.unwrap().is_some() {
                    world.put(&container, key, "row", "theirs").await.unwrap();
                    *taken = true;
                }
            }
            world.engine.run_jobs().await.unwrap();
            for (key, taken) in ["a", "b", "c"].iter().zip(taken) {
                let found = world.get(&container, key, "row").await.unwrap().unwrap();
                let expected = if taken { "theirs" } else { *key };
                assert_eq!(found, expected, "crash at commit {at}, after: {after}");
            }
            assert!(world.engine.jobs().await.unwrap().is_empty());
            if !crashed {
                break;
            }
            crashes += 1;
        }
    }
    assert!(crashes >= 20, "three steps, three marks and the job's own record, twice: {crashes}");
}
