//! A sharded database on three PostgreSQL servers while everything happens to it: mappings are split, merged and moved at
//! random, Lazuli is killed and paused, sessions on shards are ended, shards crash and start again.
//!
//! Writers know of each of their writes whether it was done, was not, or is in doubt; afterwards every row must be there
//! once, counters must have every increment, transactions be whole, and nothing be left prepared. `cargo xtask chaos --sql`
//! runs it for longer.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, RwLock};
use std::time::{Duration, Instant};

use lazuli_client::{Access, Key, Login, ShardedDatabase};
use lazuli_postgres_server::{Server as Postgres, Stop};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::program::{Server, lazuli, stderr};
use crate::shop::PASSWORD;
use crate::writer::{Log, TENANTS, Writer};

const SHARDS: [&str; 3] = ["a", "b", "c"];
const WRITERS: u64 = 8;
/// The seconds of a run without `LAZULI_SQL_CHAOS_SECONDS`.
const SECONDS: u64 = 15;
/// How long jobs and commits may take to come to their end once nothing happens any more.
const HEALING_TIME_MAX: Duration = Duration::from_secs(90);
const SCHEMA: &str = "CREATE TABLE counter (tenant bigint PRIMARY KEY, value bigint NOT NULL DEFAULT 0, \
     paired bigint NOT NULL DEFAULT 0, balance bigint NOT NULL DEFAULT 0); \
     CREATE TABLE event (tenant bigint REFERENCES counter, writer bigint, number bigint, is_paired boolean NOT NULL, \
     PRIMARY KEY (tenant, writer, number))";

/// A small generator of numbers, so that a seed is a run as far as one can be.
pub(crate) struct Chance(pub(crate) u64);

impl Chance {
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) ^ (self.0 >> 7)) % limit
    }
}

struct World {
    postgres: Vec<Postgres>,
    folder: TempDir,
    server: Option<Server>,
    /// Where the endpoint listens now; another port after every start.
    endpoint: Arc<RwLock<String>>,
    runtime: Runtime,
}

impl World {
    fn start() -> Option<Self> {
        let mut postgres = Vec::new();
        for shard in SHARDS {
            let lines = ["fsync=off", "max_prepared_transactions=50"];
            let server = Postgres::start_with(&lines).unwrap()?;
            server.psql("postgres", &format!("CREATE DATABASE {shard}")).unwrap();
            postgres.push(server);
        }
        let folder = tempfile::tempdir().unwrap();
        let (server, endpoint) = (None, Arc::default());
        let runtime = Runtime::new().unwrap();
        let mut world = Self { postgres, folder, server, endpoint, runtime };
        world.serve();
        world.prepare();
        Some(world)
    }

    fn serve(&mut self) {
        let server = Server::start(self.folder.path());
        *self.endpoint.write().unwrap() = server.endpoint("sql");
        self.server = Some(server);
    }

    fn server(&self) -> &Server {
        self.server.as_ref().expect("it is started again after each kill")
    }

    fn prepare(&self) {
        let mut init = vec!["sql".to_owned(), "init".into(), "shop".into()];
        for (shard, postgres) in SHARDS.iter().zip(&self.postgres) {
            init.extend(["--shard".into(), format!("{shard}={}", postgres.address(shard))]);
        }
        let server = self.server();
        server.command(&init.iter().map(String::as_str).collect::<Vec<_>>());
        server.command(&["sql", "ddl", "shop", SCHEMA]);
        let add = ["sql", "map", "add", "shop", "tenants", "--kind", "range", "--key", "bigint"];
        server.command(&[&add[..], &["--on", "a"]].concat());
        for table in ["counter", "event"] {
            let add = ["sql", "table", "add", "shop", table, "--by", "tenant", "--map", "tenants"];
            server.command(&add);
        }
        let mut add = lazuli(self.folder.path(), &["sql", "user", "add", "shop", "ann"]);
        let added = add.env("LAZULI_SQL_PASSWORD", PASSWORD).output().unwrap();
        assert!(added.status.success(), "{}", stderr(&added));
        // Several mappings, so that a move that takes its time does not hold up everything else.
        for at in ["6", "11", "16", "21", "26"] {
            let on = ["sql", "split", "shop", "--map", "tenants", "--key", at, "--at", at];
            server.command(&on);
        }
        let fill = format!("INSERT INTO counter SELECT t FROM generate_series(1, {TENANTS}) t");
        self.postgres[0].psql("a", &fill).unwrap();
    }

    async fn open(url: String, token: String) -> Result<ShardedDatabase, lazuli_client::Error> {
        ShardedDatabase::open(Access::new(&url, &token)?, "shop", Login::default()).await
    }

    /// One change of the map. Refusals are part of life here: the range is busy, or the cut is where there is one already.
    fn change(&self, chance: &mut Chance) -> Result<&'static str, lazuli_client::Error> {
        let token = self.folder.path().join("lazuli-data/admin-token");
        let token = std::fs::read_to_string(token).unwrap();
        let url = format!("http://{}", self.server().endpoint("admin"));
        self.runtime.block_on(async {
            let database = Self::open(url, token).await?;
            let map = database.map("tenants")?;
            let key = Key::from(chance.below(TENANTS) as i64 + 1);
            let mapping = map.mapping_for_key(&key)?;
            let all = map.mappings()?;
            match chance.below(4) {
                0 if all.len() < 10 => map.split(mapping.number, &key, None).await.map(|_| "split"),
                1 => map.merge(mapping.number, None).await.map(|_| "merge"),
                _ => {
                    let to = SHARDS[chance.below(3) as usize];
                    map.begin_move(mapping.number, to, None).await.map(|_| "move")
                }
            }
        })
    }

    /// Something bad.
    fn harm(&mut self, chance: &mut Chance) -> &'static str {
        let victim = chance.below(3) as usize;
        match chance.below(5) {
            0 => {
                let mut server = self.server.take().expect("it runs");
                server.signal("-KILL");
                server.wait();
                drop(server);
                self.serve();
                "kill"
            }
            1 => {
                self.server().signal("-STOP");
                std::thread::sleep(Duration::from_millis(500 + chance.below(1500)));
                self.server().signal("-CONT");
                "pause"
            }
            2 => {
                self.postgres[victim].stop(Stop::Immediate).unwrap();
                self.postgres[victim].begin().unwrap();
                "crash of a shard"
            }
            _ => {
                let end = "SELECT pg_terminate_backend(pid) FROM (SELECT pid FROM pg_stat_activity \
                     WHERE datname = current_database() AND pid <> pg_backend_pid() ORDER BY random() LIMIT 3) x";
                // The shard may be on its way up.
                let _ = self.postgres[victim].psql(SHARDS[victim], end);
                "ended sessions"
            }
        }
    }

    /// Rows of all shards, as one list.
    fn rows(&self, query: &str) -> Vec<Vec<i64>> {
        let mut rows = Vec::new();
        for (shard, postgres) in SHARDS.iter().zip(&self.postgres) {
            let text = postgres.psql(shard, query).unwrap();
            for line in text.lines().filter(|line| !line.is_empty()) {
                rows.push(line.split('|').map(|it| it.parse().unwrap()).collect());
            }
        }
        rows
    }

    /// Waits until no job runs and nothing is prepared.
    fn heal(&self) {
        let begun = Instant::now();
        loop {
            let jobs = self.server().json(&["sql", "status", "shop"])["jobs"].clone();
            let prepared = self.rows("SELECT count(*) FROM pg_prepared_xacts");
            let prepared: i64 = prepared.iter().flatten().sum();
            if jobs.as_array().is_some_and(Vec::is_empty) && prepared == 0 {
                return;
            }
            let log = || self.server().log();
            assert!(
                begun.elapsed() < HEALING_TIME_MAX,
                "{prepared} transactions are prepared, and jobs run: {jobs}\n{}",
                log()
            );
            std::thread::sleep(Duration::from_millis(200));
        }
    }
}

fn setting(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|it| it.parse().ok()).unwrap_or(otherwise)
}

#[test]
fn whatever_happens_every_answered_write_is_there_once_and_nothing_else_is() {
    let Some(mut world) = World::start() else { return };
    let seconds = setting("LAZULI_SQL_CHAOS_SECONDS", SECONDS);
    let seed = setting("LAZULI_SQL_CHAOS_SEED", 7);
    let stop = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = (0..WRITERS)
        .map(|id| {
            let writer = Writer::new(id, seed, world.endpoint.clone(), stop.clone());
            world.runtime.spawn(writer.run())
        })
        .collect();
    let (mut chance, begun) = (Chance(seed), Instant::now());
    let mut happened = std::collections::BTreeMap::<String, u64>::new();
    while begun.elapsed() < Duration::from_secs(seconds) {
        for _ in 0..1 + chance.below(3) {
            let what = world.change(&mut chance).map_or_else(
                |error| format!("refused: {error}").chars().take(60).collect(),
                str::to_owned,
            );
            *happened.entry(what).or_default() += 1;
            std::thread::sleep(Duration::from_millis(chance.below(400)));
        }
        // Moves get somewhere only if there is peace at times.
        if chance.below(2) == 0 {
            *happened.entry(world.harm(&mut chance).to_owned()).or_default() += 1;
        }
        std::thread::sleep(Duration::from_millis(300 + chance.below(1200)));
    }
    stop.store(true, Ordering::Relaxed);
    let logs: Vec<Log> =
        writers.into_iter().map(|it| world.runtime.block_on(it).unwrap()).collect();
    world.heal();
    println!("{seconds} s of chaos with seed {seed}: {happened:?}");
    let total = Log::sum(&logs);
    println!("{total}");
    check(&world, &logs);
    assert_eq!(world.server().command(&["sql", "check", "shop"]).trim(), "everything fits");
    assert!(total.done() > 100 && happened.contains_key("move"), "too little has happened");
}

/// What must hold of the rows on the shards.
fn check(world: &World, logs: &[Log]) {
    let counters = world.rows("SELECT tenant, value, paired, balance FROM counter ORDER BY 1");
    let mut tenants: Vec<i64> = counters.iter().map(|row| row[0]).collect();
    tenants.sort_unstable();
    assert_eq!(tenants, (1..=TENANTS as i64).collect::<Vec<_>>(), "each counter is there once");
    assert_eq!(counters.iter().map(|row| row[3]).sum::<i64>(), 0, "transfers are whole");
    let paired = world.rows("SELECT tenant, count(*) FROM event WHERE is_paired GROUP BY 1");
    for row in &counters {
        let (tenant, value) = (row[0], row[1]);
        let done: i64 = logs.iter().map(|log| log.added(tenant).0).sum();
        let doubtful: i64 = logs.iter().map(|log| log.added(tenant).1).sum();
        assert!(
            (done..=done + doubtful).contains(&value),
            "counter {tenant} is {value}: {done} increments were answered and {doubtful} are in doubt"
        );
        let events = paired.iter().find(|it| it[0] == tenant).map_or(0, |it| it[1]);
        assert_eq!(row[2], events, "transactions of tenant {tenant} are whole");
    }
    let mut rows = world.rows("SELECT tenant, writer, number FROM event");
    let count = rows.len();
    rows.sort_unstable();
    rows.dedup();
    assert_eq!(rows.len(), count, "no row is there twice");
    for log in logs {
        let found = rows.iter().filter(|row| row[1] == log.writer as i64);
        let found: std::collections::BTreeSet<(i64, i64)> =
            found.map(|row| (row[0], row[2])).collect();
        for row in &log.appended {
            assert!(found.contains(row), "writer {}: {row:?} was answered and is lost", log.writer);
        }
        for row in found.difference(&log.appended) {
            let is_known = log.doubtful.contains(row);
            assert!(is_known, "writer {}: {row:?} failed and is there", log.writer);
        }
    }
}
