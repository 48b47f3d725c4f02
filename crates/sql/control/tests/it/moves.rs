//! Moves under writers: nothing lost, nothing twice.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use lazuli_sharded_sql::Databases;
use lazuli_shardmap::KeyPart;
use lazuli_sql_control::{Control, Cut, MoveOptions, Which};
use tokio_postgres::Client;

use crate::fixture::{NAME, World, fill};

pub(crate) fn at(key: &str) -> Which {
    Which::Key { map: "tenants".to_owned(), key: key.to_owned() }
}

/// A writer that routes by the map and counts what was answered.
pub(crate) struct Writer {
    control: Arc<Control>,
    clients: Vec<Client>,
    /// Increments that were answered, by tenant and customer.
    pub(crate) counted: std::collections::BTreeMap<(i64, i64), i64>,
    pub(crate) inserted: Vec<(i64, i64)>,
    pub(crate) deleted: Vec<(i64, i64)>,
    pub(crate) longest: Duration,
    pub(crate) retried: u64,
}

impl Writer {
    pub(crate) async fn new(world: &World, control: Arc<Control>) -> Self {
        let mut clients = Vec::new();
        for name in ["s1", "s2", "s3"] {
            clients.push(world.connect(name).await);
        }
        Self {
            control,
            clients,
            counted: std::collections::BTreeMap::new(),
            inserted: Vec::new(),
            deleted: Vec::new(),
            longest: Duration::ZERO,
            retried: 0,
        }
    }

    fn client(&self, tenant: i64) -> &Client {
        let snapshot = self.control.snapshot(NAME).unwrap();
        let map = snapshot.maps.iter().find(|it| it.name == "tenants").unwrap();
        let place = map.place(&[KeyPart::Int64(tenant)]).unwrap();
        let name = &snapshot.shards[place.shard].name;
        &self.clients[name[1..].parse::<usize>().unwrap() - 1]
    }

    /// Runs a statement where the map says, again and again while the shard says that it is elsewhere.
    pub(crate) async fn write(&mut self, tenant: i64, statement: &str) -> u64 {
        let begun = Instant::now();
        loop {
            let outcome = self.client(tenant).execute(statement, &[]).await;
            match outcome {
                Ok(count) => {
                    self.longest = self.longest.max(begun.elapsed());
                    return count;
                }
                Err(error) => {
                    let code = error.code().map_or("", |it| it.code()).to_owned();
                    assert!(matches!(&*code, "LZ001" | "LZ002"), "{statement}: {error:?}");
                    assert!(begun.elapsed() < Duration::from_secs(30), "{statement}: {error:?}");
                    self.retried += 1;
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            }
        }
    }

    /// One random step.
    pub(crate) async fn step(&mut self, nth: u64, number: i64, tenants: i64, each: i64) {
        let mixed = lazuli_env::mix(nth ^ (number as u64) << 40);
        let tenant = 1 + (mixed % tenants as u64) as i64;
        let customer = 1 + (mixed >> 20) as i64 % each;
        match mixed >> 60 {
            0..10 => {
                let update = format!(
                    "UPDATE customer SET counter = counter + 1 WHERE tenant = {tenant} AND id = {customer}"
                );
                if self.write(tenant, &update).await == 1 {
                    *self.counted.entry((tenant, customer)).or_default() += 1;
                }
            }
            10..13 => {
                let id = 1_000_000 * (number + 1) + nth as i64;
                let insert = format!(
                    "INSERT INTO invoice (tenant, customer, id, cents) VALUES ({tenant}, {customer}, {id}, 7)"
                );
                self.write(tenant, &insert).await;
                self.inserted.push((tenant, id));
            }
            _ => {
                if let Some((tenant, id)) = self.inserted.pop() {
                    let delete =
                        format!("DELETE FROM invoice WHERE tenant = {tenant} AND id = {id}");
                    assert_eq!(self.write(tenant, &delete).await, 1);
                    self.deleted.push((tenant, id));
                }
            }
        }
    }
}

/// Every answered write is there exactly once, over all shards.
pub(crate) fn must_agree(world: &World, writers: &[Writer], rows: u64) {
    let over_all = |query: &str| -> Vec<String> {
        let mut lines = Vec::new();
        for shard in ["s1", "s2"] {
            lines.extend(world.sql(shard, query).lines().map(str::to_owned));
        }
        lines.sort();
        lines
    };
    let customers =
        over_all("SELECT tenant || '/' || id || '=' || counter || ' ' || twice FROM customer");
    assert_eq!(customers.len() as u64, rows, "customers");
    let mut counted = std::collections::BTreeMap::new();
    for writer in writers {
        for (key, count) in &writer.counted {
            *counted.entry(*key).or_insert(0) += count;
        }
    }
    for ((tenant, id), count) in &counted {
        let line = format!("{tenant}/{id}={count} {}", id * 2);
        assert!(customers.contains(&line), "{line}");
    }
    let invoices = over_all("SELECT tenant || '/' || id FROM invoice WHERE cents = 7");
    let mut wanted: Vec<String> = writers
        .iter()
        .flat_map(|writer| &writer.inserted)
        .map(|(tenant, id)| format!("{tenant}/{id}"))
        .collect();
    wanted.sort();
    assert_eq!(invoices, wanted, "invoices");
}

#[test]
fn a_move_under_writers_loses_nothing_and_doubles_nothing() {
    let Some(world) = World::start() else { return };
    let process = world.process();
    process.shop(&world);
    fill(&world, "s1", 20, 200);
    let control = process.control.clone();
    process.run(async {
        let following = control.start(|| true);
        let stop = Arc::new(AtomicBool::new(false));
        let steps = Arc::new(AtomicU64::new(0));
        let mut tasks = Vec::new();
        for number in 0..4 {
            let mut writer = Writer::new(&world, control.clone()).await;
            let (stop, steps) = (stop.clone(), steps.clone());
            tasks.push(tokio::spawn(async move {
                let mut nth = 0;
                while !stop.load(Ordering::Relaxed) {
                    writer.step(nth, number, 20, 200).await;
                    nth += 1;
                    steps.fetch_add(1, Ordering::Relaxed);
                }
                writer
            }));
        }
        let ids = control.split(NAME, &at("1"), &Cut::At("11".into()), None).await.unwrap();
        assert_eq!(ids.len(), 2);
        let options = MoveOptions { pause_limit_ms: 2_000, ..MoveOptions::default() };
        for to in ["s2", "s1", "s2"] {
            let job = control.begin_move(NAME, &at("15"), to, &options, None).await.unwrap();
            let job = control.wait_for(NAME, job).await.unwrap();
            assert_eq!(job.outcome.as_deref(), Some("done"), "{job:?}");
        }
        stop.store(true, Ordering::Relaxed);
        let mut writers = Vec::new();
        for task in tasks {
            writers.push(task.await.unwrap());
        }
        following.abort();
        assert!(steps.load(Ordering::Relaxed) > 100);
        assert!(writers.iter().any(|it| it.retried > 0), "nobody was ever fenced");
        must_agree(&world, &writers, 4000);
        assert_eq!(world.sql("s2", "SELECT count(*), min(tenant) FROM customer"), "2000|11");
        assert_eq!(world.sql("s1", "SELECT count(*), max(tenant) FROM customer"), "2000|10");
        // Nothing of the moves is left.
        let left = "SELECT count(*) FROM pg_class WHERE relname LIKE 'outbox%'; \
                    SELECT count(*) FROM pg_trigger WHERE tgname LIKE 'zz_lazuli_out%'; \
                    SELECT count(*) FROM lazuli.progress";
        for shard in ["s1", "s2"] {
            assert_eq!(world.sql(shard, left), "0\n0\n0", "{shard}");
        }
    });
}

#[test]
fn a_long_transaction_makes_a_move_retreat_and_wait_and_nothing_is_lost() {
    let Some(world) = World::start() else { return };
    let process = world.process();
    process.shop(&world);
    fill(&world, "s1", 4, 20);
    let control = process.control.clone();
    process.run(async {
        let mut holder = world.connect("s1").await;
        let transaction = holder.transaction().await.unwrap();
        transaction
            .batch_execute("UPDATE customer SET counter = counter + 5 WHERE tenant = 1 AND id = 1")
            .await
            .unwrap();
        let options = MoveOptions { pause_limit_ms: 100, ..MoveOptions::default() };
        let job = control.begin_move(NAME, &at("1"), "s2", &options, None).await;
        let job = job.unwrap();
        // The trigger needs a lock that the transaction holds against it, and then the fence does.
        tokio::time::sleep(Duration::from_millis(500)).await;
        let shown = control.show_job(NAME, job).await.unwrap();
        assert!(shown["outcome"].is_null(), "{shown}");
        transaction.commit().await.unwrap();
        let done = control.wait_for(NAME, job).await.unwrap();
        assert_eq!(done.outcome.as_deref(), Some("done"));
        assert_eq!(
            world.sql("s2", "SELECT counter FROM customer WHERE tenant = 1 AND id = 1"),
            "5"
        );
    });
}

#[test]
fn a_cancelled_move_leaves_everything_as_it_was() {
    let Some(world) = World::start() else { return };
    let process = world.process();
    process.shop(&world);
    fill(&world, "s1", 10, 100);
    let control = process.control.clone();
    process.run(async {
        let options = MoveOptions { rows_per_second: Some(500), ..MoveOptions::default() };
        let job = control.begin_move(NAME, &at("1"), "s2", &options, None).await.unwrap();
        while control.show_job(NAME, job).await.unwrap()["step"] != "copy" {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        control.cancel(NAME, job).await.unwrap();
        // A leader that copies at this moment stops at its next write, and the job is taken again.
        loop {
            control.follow(true).await.unwrap();
            if control.show_job(NAME, job).await.unwrap()["outcome"] == "cancelled" {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert_eq!(world.sql("s1", "SELECT count(*) FROM customer"), "1000");
        assert_eq!(world.sql("s2", "SELECT count(*) FROM customer"), "0");
        world.sql("s1", "UPDATE customer SET counter = 1 WHERE tenant = 3");
        let again = MoveOptions::default();
        let job = control.begin_move(NAME, &at("1"), "s2", &again, None).await.unwrap();
        assert_eq!(control.wait_for(NAME, job).await.unwrap().outcome.as_deref(), Some("done"));
        assert_eq!(world.sql("s2", "SELECT sum(counter) FROM customer"), "100");
    });
}

#[test]
fn a_row_of_another_tenant_with_the_same_primary_key_is_never_lost() {
    let Some(world) = World::start() else { return };
    let process = world.process();
    process.shop(&world);
    for shard in ["s1", "s2"] {
        world.sql(
            shard,
            "CREATE TABLE note (id bigint PRIMARY KEY, tenant bigint NOT NULL, body text)",
        );
    }
    let control = process.control.clone();
    process.run(async {
        process.sharded("note", "tenants", &["tenant"]).await;
        control.split(NAME, &at("1"), &Cut::At("2".into()), None).await.unwrap();
        let job = control.begin_move(NAME, &at("2"), "s2", &MoveOptions::default(), None).await;
        control.wait_for(NAME, job.unwrap()).await.unwrap();
        world.sql("s1", "INSERT INTO note VALUES (7, 1, 'first')");
        world.sql("s2", "INSERT INTO note VALUES (7, 2, 'second')");
        let job =
            control.begin_move(NAME, &at("2"), "s1", &MoveOptions::default(), None).await.unwrap();
        let begun = Instant::now();
        loop {
            let shown = control.show_job(NAME, job).await.unwrap();
            if shown["trouble"].as_str().is_some_and(|it| it.contains("note_pkey")) {
                break;
            }
            assert!(begun.elapsed() < Duration::from_secs(20), "{shown}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        world.sql("s2", "UPDATE note SET body = 'changed' WHERE id = 7");
        control.cancel(NAME, job).await.unwrap();
        while control.show_job(NAME, job).await.unwrap()["outcome"].is_null() {
            control.follow(true).await.unwrap();
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(world.sql("s1", "SELECT tenant, body FROM note"), "1|first");
        assert_eq!(world.sql("s2", "SELECT tenant, body FROM note"), "2|changed");
    });
}
