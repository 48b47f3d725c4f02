//! One catalog, some shards, and a server that is killed and started again on what their disks still hold.
//!
//! The server has two engines over the same lanes, each with a router of its own: a request goes to either. What the one
//! changes, the other only learns by being told `Moved`, so there is always a stale router about.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use lazuli_engine::Engine;
use lazuli_env::Random;
use lazuli_store::Result as StoreResult;
use tokio::sync::oneshot;

use crate::client::Request;
use crate::executor::World;
use crate::faults::{Planted, StoreFaults};
use crate::open::{self, AllFaults, Disks};
use crate::points::{Left, Saboteur};
use crate::process::Process;
use crate::random::Seeded;
use crate::settings::Settings;
pub use crate::table::Table;

/// How long a client waits before it looks again whether the server is up.
const LOOK: Duration = Duration::from_millis(5);
/// The longest that a client that hangs up has waited before.
const HANG_UP_MICROS_MAX: u64 = 20_000;

/// Which engine a request goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whom {
    Any,
    /// The one that does the background work.
    First,
}

struct Server {
    process: Process,
    engines: Vec<Arc<Engine>>,
}

struct Shared {
    disks: Disks,
    server: Mutex<Option<Server>>,
    /// Who is starting, so that a crash meets it too.
    starting: Mutex<Option<Process>>,
    has_faults: AtomicBool,
    tables: Mutex<Vec<Table>>,
    random: Seeded,
    /// Where work is stopped while there are faults.
    sabotage: Option<Arc<Left>>,
}

#[derive(Clone)]
pub struct Cluster {
    pub world: World,
    pub settings: Arc<Settings>,
    shared: Arc<Shared>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl Cluster {
    /// A new cluster without faults.
    pub async fn start(world: &World, settings: Settings) -> Result<Self, String> {
        let shared = Shared {
            disks: Disks::new(world, settings.shards),
            server: Mutex::default(),
            starting: Mutex::default(),
            has_faults: AtomicBool::new(false),
            tables: Mutex::default(),
            random: world.random("cluster"),
            sabotage: settings.sabotage.map(|sabotage| Arc::new(Left::new(sabotage))),
        };
        let cluster =
            Self { world: world.clone(), settings: Arc::new(settings), shared: Arc::new(shared) };
        cluster.restart().await;
        Ok(cluster)
    }

    pub fn disks(&self) -> &Disks {
        &self.shared.disks
    }

    /// Whether the stores that are opened from now on have faults.
    pub fn set_faults(&self, has_faults: bool) {
        self.shared.has_faults.store(has_faults, Ordering::Relaxed);
    }

    fn has_faults(&self) -> bool {
        self.shared.has_faults.load(Ordering::Relaxed)
    }

    fn faults(&self) -> AllFaults {
        let draw = || match self.has_faults() {
            true => self.settings.store_faults(&self.shared.random),
            false => StoreFaults::default(),
        };
        let catalog = StoreFaults { planted: Planted::Nothing, ..draw() };
        AllFaults { catalog, shards: self.disks().shards.iter().map(|_| draw()).collect() }
    }

    /// Kills the server, or who is about to become it.
    pub fn crash(&self) {
        let server = lock(&self.shared.server).take();
        let starting = lock(&self.shared.starting).take();
        for process in server.map(|server| server.process).into_iter().chain(starting) {
            process.kill();
        }
    }

    /// Starts the server on what the disks hold, again and again until it comes up. Some starts are cut off by a crash.
    pub async fn restart(&self) {
        self.crash();
        loop {
            let process = self.process();
            *lock(&self.shared.starting) = Some(process.clone());
            let (ready, started) = oneshot::channel();
            let opening = open::open(
                process.clone(),
                self.shared.disks.clone(),
                self.settings.clone(),
                self.faults(),
            );
            let body = async move { _ = ready.send(opening.await) };
            process.spawn("open", Box::pin(body));
            if self.has_faults()
                && self.settings.crash_every.is_some()
                && self.shared.random.chance(200)
            {
                let micros = self.shared.random.between(0, 20_000);
                self.world.sleep(Duration::from_micros(micros)).await;
                process.kill();
            }
            match started.await {
                Ok(Ok(engines)) if process.is_alive() => {
                    lock(&self.shared.starting).take();
                    *lock(&self.shared.server) = Some(Server { process, engines });
                    self.world.note(|| "the server is up".to_owned());
                    return;
                }
                Ok(Err(error)) => self.world.note(|| format!("the server does not start: {error}")),
                Ok(Ok(_)) | Err(_) => self.world.note(|| "the server died at its start".to_owned()),
            }
            process.kill();
            self.world.sleep(LOOK).await;
        }
    }

    /// A process that is to become the server.
    fn process(&self) -> Process {
        let process = self.world.process("server", self.settings.clock);
        match &self.shared.sabotage {
            Some(left) if self.has_faults() => {
                let saboteur = Saboteur {
                    left: left.clone(),
                    world: self.world.clone(),
                    random: self.world.random("sabotage"),
                    disks: self.disks().clone(),
                    killer: process.killer(),
                };
                process.watched(Arc::new(saboteur))
            }
            _ => process,
        }
    }

    /// Answers when a process has ended because of where it was.
    pub(crate) async fn ended_at_a_point(&self) {
        match &self.shared.sabotage {
            Some(left) => left.ended.notified().await,
            None => std::future::pending().await,
        }
    }

    /// The first of the server's engines or any, once it is up.
    async fn engine(&self, whom: Whom) -> (Process, Arc<Engine>) {
        loop {
            if let Some(server) = &*lock(&self.shared.server) {
                let engine = match whom {
                    Whom::First => &server.engines[0],
                    Whom::Any => self.shared.random.pick(&server.engines),
                };
                return (server.process.clone(), engine.clone());
            }
            self.world.sleep(LOOK).await;
        }
    }

    /// Runs a request as a task of the server. None if the server died or the client hung up before there was an answer.
    pub async fn call<T: Send + 'static>(
        &self,
        name: &'static str,
        request: Request<T>,
        whom: Whom,
        may_hang_up: bool,
    ) -> Option<StoreResult<T>> {
        let (process, engine) = self.engine(whom).await;
        let (answer, mut answered) = oneshot::channel();
        let (hang_up, hung_up) = oneshot::channel::<()>();
        let body = async move {
            let request = request(engine);
            tokio::select! {
                biased;
                // The server drops a request whose client is gone, wherever it waits.
                _ = hung_up => {}
                result = request => drop(answer.send(result)),
            }
        };
        process.spawn(name, Box::pin(body));
        if may_hang_up && self.shared.random.chance(self.settings.hang_up_per_mille) {
            let micros = self.shared.random.below(HANG_UP_MICROS_MAX);
            let patience = self.world.sleep(Duration::from_micros(micros));
            return tokio::select! {
                biased;
                answer = &mut answered => answer.ok(),
                () = patience => {
                    drop(hang_up);
                    None
                }
            };
        }
        let answer = answered.await.ok();
        drop(hang_up);
        answer
    }

    /// A table whose shardlets have the numbers of the range, cut into partitions over all shards.
    pub async fn create_table(
        &self,
        name: &'static str,
        shardlets: Range<i64>,
    ) -> Result<Table, String> {
        self.create(name, shardlets, false).await
    }

    /// The same with a change feed, which other tables only have if the seed draws it.
    pub async fn create_table_with_feed(
        &self,
        name: &'static str,
        shardlets: Range<i64>,
    ) -> Result<Table, String> {
        self.create(name, shardlets, true).await
    }

    async fn create(
        &self,
        name: &'static str,
        shardlets: Range<i64>,
        has_feed: bool,
    ) -> Result<Table, String> {
        let table = Table::create(self, name, shardlets, has_feed, &self.shared.random).await?;
        lock(&self.shared.tables).push(table.clone());
        Ok(table)
    }

    /// Takes note of a container that somebody else has made, so that its map is changed too.
    pub fn adopt(&self, table: Table) {
        lock(&self.shared.tables).push(table);
    }

    pub fn tables(&self) -> Vec<Table> {
        lock(&self.shared.tables).clone()
    }
}
