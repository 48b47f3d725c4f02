//! A process that leads a move dies at every step; the next one carries the move on.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lazuli_env::{BoxFuture, Points};
use lazuli_sql_control::{Cut, MoveOptions};

use crate::fixture::{NAME, World, fill};
use crate::moves::{Writer, at, must_agree};

/// All points of a move, in order.
const POINTS: &[&str] = &[
    "move-begun",
    "outbox-made",
    "prepared",
    "chunk-copied",
    "copied",
    "pass-brought",
    "passed",
    "caught-up",
    "verified",
    "fenced",
    "drained",
    "committed",
    "target-open",
    "opened",
    "outbox-gone",
    "rows-deleted",
    "cleaned",
    "finished",
];

/// Stops for ever at the nth time that a point is reached.
struct StopAt {
    point: &'static str,
    left: AtomicU64,
    reached: tokio::sync::Notify,
}

impl Points for StopAt {
    fn reach<'a>(&'a self, _work: &'a str, step: &'static str) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            if step == self.point && self.left.fetch_sub(1, Ordering::SeqCst) == 1 {
                self.reached.notify_one();
                std::future::pending::<()>().await;
            }
        })
    }
}

/// What the jobs are at, after a time in which every point is reached.
async fn late(control: &lazuli_sql_control::Control) -> serde_json::Value {
    tokio::time::sleep(Duration::from_secs(60)).await;
    control.jobs(NAME).await.unwrap()
}

/// All counters on both shards, added up.
fn counted(world: &World) -> i64 {
    let sum = "SELECT coalesce(sum(counter), 0) FROM customer";
    ["s1", "s2"].iter().map(|shard| world.sql(shard, sum).parse::<i64>().unwrap()).sum()
}

/// Writes to both halves until it is dropped. A fenced range waits until somebody goes on, so writes to it are given up after
/// a while.
async fn write_on(writer: &mut Writer) {
    let mut nth = 0;
    loop {
        let update = |tenant: u32| {
            let id = 1 + nth % 60;
            format!(
                "UPDATE customer SET counter = counter + 1 WHERE tenant = {tenant} AND id = {id}"
            )
        };
        writer.write(1, &update(1)).await;
        let moving = update(5);
        let _ = tokio::time::timeout(Duration::from_millis(20), writer.write(5, &moving)).await;
        nth += 1;
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// A move that dies at this point while somebody writes.
fn die_at(world: &World, point: &'static str, target: &str) {
    let (left, reached) = (AtomicU64::new(1), tokio::sync::Notify::new());
    let watch = Arc::new(StopAt { point, left, reached });
    let first = world.watched(watch.clone());
    let writing = world.process();
    let mut writer = writing.run(async {
        writing.control.follow(false).await.unwrap();
        Writer::new(world, writing.control.clone()).await
    });
    first.run(async {
        // Long enough for a busy machine: what is tested is the order of steps.
        let options = MoveOptions { pause_limit_ms: 5_000, ..MoveOptions::default() };
        let control = first.control.clone();
        let begun = async { control.begin_move(NAME, &at("5"), target, &options, None).await };
        tokio::select! {
            biased;
            () = watch.reached.notified() => {}
            () = write_on(&mut writer) => {}
            begun = async { begun.await.unwrap(); std::future::pending::<()>().await } => begun,
            shown = late(&control) => panic!("{point} was never reached: {shown}"),
        }
    });
    first.kill();
    writing.kill();
}

#[test]
fn a_process_killed_at_any_point_of_a_move_leaves_it_to_the_next_one() {
    let Some(world) = World::start() else { return };
    let process = world.process();
    process.shop(&world);
    fill(&world, "s1", 8, 60);
    process.run(process.control.split(NAME, &at("1"), &Cut::At("5".into()), None)).unwrap();
    process.kill();
    let mut target = "s2";
    for point in POINTS {
        let before = counted(&world);
        die_at(&world, point, target);
        let second = world.process();
        second.run(async {
            for _ in 0..2000 {
                second.control.follow(true).await.unwrap();
                if second.control.show(NAME).await.unwrap()["jobs"] == serde_json::json!([]) {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            panic!("after {point}: {}", second.control.show(NAME).await.unwrap());
        });
        let held = second.run(second.control.show(NAME)).unwrap();
        let differences = second.run(second.control.differences(NAME, None)).unwrap();
        assert_eq!(differences, [], "after {point}: {held}");
        let (here, away) = if target == "s2" { ("s2", "s1") } else { ("s1", "s2") };
        for table in ["customer", "invoice"] {
            let moved = format!("SELECT count(*) FROM {table} WHERE tenant >= 5");
            let found = (world.sql(here, &moved), world.sql(away, &moved));
            assert_eq!(found, ("240".into(), "0".into()), "{table} after {point}");
        }
        assert!(counted(&world) > before, "after {point}: nobody wrote");
        second.kill();
        target = away;
    }
    must_agree(&world, &[], 480);
}

#[test]
fn a_paused_leader_that_wakes_up_late_does_no_harm() {
    let Some(world) = World::start() else { return };
    let process = world.process();
    process.shop(&world);
    fill(&world, "s1", 4, 30);
    process.kill();
    for point in ["prepared", "chunk-copied", "caught-up", "verified", "fenced", "drained"] {
        let watch = Arc::new(Pause {
            point,
            resume: tokio::sync::Notify::new(),
            reached: tokio::sync::Notify::new(),
        });
        let paused = world.watched(watch.clone());
        let next = world.process();
        let target = match world.sql("s1", "SELECT count(*) FROM customer") == "0" {
            true => "s1",
            false => "s2",
        };
        paused.run(async {
            let options = MoveOptions { pause_limit_ms: 5_000, ..MoveOptions::default() };
            paused.control.begin_move(NAME, &at("1"), target, &options, None).await.unwrap();
            watch.reached.notified().await;
        });
        next.run(async {
            while next.control.show(NAME).await.unwrap()["jobs"] != serde_json::json!([]) {
                next.control.follow(true).await.unwrap();
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        });
        watch.resume.notify_one();
        std::thread::sleep(Duration::from_millis(700));
        let update = "UPDATE customer SET counter = counter + 1";
        let other = if target == "s1" { "s2" } else { "s1" };
        assert_eq!(world.sql(other, "SELECT count(*) FROM customer"), "0", "{point}");
        assert_eq!(world.sql(target, "SELECT count(*) FROM customer"), "120", "{point}");
        world.sql(target, update);
        assert_eq!(next.run(next.control.differences(NAME, None)).unwrap(), [], "{point}");
        paused.kill();
        next.kill();
    }
}

/// Stops at a point until it is told to go on.
struct Pause {
    point: &'static str,
    reached: tokio::sync::Notify,
    resume: tokio::sync::Notify,
}

impl Points for Pause {
    fn reach<'a>(&'a self, _work: &'a str, step: &'static str) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            if step == self.point {
                self.reached.notify_one();
                self.resume.notified().await;
            }
        })
    }
}
