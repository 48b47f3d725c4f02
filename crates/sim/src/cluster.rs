//! One catalog, some shards, and several processes that serve them at the same time.
//!
//! Each process has an engine with a router, lanes and local maps of its own, and a clock of its own. It is paused, killed, and
//! started again on what the stores still hold. A request goes to any process that is up. One learns of another's changes
//! only from the stores, so there is always a stale map about.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lazuli_engine::Engine;
use lazuli_env::Random;
use lazuli_store::{Error, Kind, Result as StoreResult};
use tokio::sync::{Notify, oneshot};

use crate::ClockFaults;
use crate::client::Request;
use crate::disk::DECIDED_MAX;
use crate::executor::World;
use crate::faults::{Planted, StoreFaults};
use crate::lock;
use crate::open::{self, AllFaults, Disks};
use crate::points::{Left, Saboteur};
use crate::process::Process;
use crate::random::Seeded;
use crate::settings::Settings;
pub use crate::table::Table;

/// How long a client waits before it looks again whether a process is up.
const LOOK: Duration = Duration::from_millis(5);
/// The longest time after which a client disconnects.
const HANG_UP_MICROS_MAX: u64 = 20_000;

/// Which process a request goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whom {
    Any,
    /// The one that does the background work.
    First,
}

struct Server {
    process: Process,
    engine: Arc<Engine>,
}

/// The place of one process after another.
#[derive(Default)]
struct Slot {
    server: Mutex<Option<Server>>,
    /// The process that is starting, so that a crash ends it too.
    starting: Mutex<Option<Process>>,
    /// Tells that the process has ended at a point.
    ended: Arc<Notify>,
}

struct Shared {
    disks: Disks,
    slots: Vec<Slot>,
    has_faults: AtomicBool,
    tables: Mutex<Vec<Table>>,
    random: Seeded,
    /// Where work is stopped during the faults.
    sabotage: Option<Arc<Left>>,
}

#[derive(Clone)]
pub struct Cluster {
    pub world: World,
    pub settings: Arc<Settings>,
    shared: Arc<Shared>,
}

impl Cluster {
    /// A new cluster without faults.
    pub async fn start(world: &World, settings: Settings) -> Result<Self, String> {
        let shared = Shared {
            disks: Disks::new(world, settings.shards),
            slots: (0..settings.processes).map(|_| Slot::default()).collect(),
            has_faults: AtomicBool::new(false),
            tables: Mutex::default(),
            random: world.random("cluster"),
            sabotage: settings.sabotage.map(|sabotage| Arc::new(Left::new(sabotage))),
        };
        let cluster =
            Self { world: world.clone(), settings: Arc::new(settings), shared: Arc::new(shared) };
        cluster.restart_all().await;
        Ok(cluster)
    }

    pub fn disks(&self) -> &Disks {
        &self.shared.disks
    }

    /// Whether stores that are opened from now on have faults.
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

    /// The numbers of the places for processes.
    pub(crate) fn slots(&self) -> Range<usize> {
        0..self.shared.slots.len()
    }

    /// Kills the process at this place, or the one that is starting there.
    pub(crate) fn crash(&self, slot: usize) {
        let Slot { server, starting, .. } = &self.shared.slots[slot];
        let server = lock(server).take();
        let starting = lock(starting).take();
        for process in server.map(|server| server.process).into_iter().chain(starting) {
            process.kill();
        }
    }

    /// Pauses the process at this place, if one is up.
    pub(crate) fn pause(&self, slot: usize, time: Duration) {
        if let Some(server) = &*lock(&self.shared.slots[slot].server) {
            server.process.pause(time);
        }
    }

    /// Kills all processes, and starts new ones at the same time.
    pub async fn restart_all(&self) {
        self.slots().for_each(|slot| self.crash(slot));
        // Commits of the dead may still come.
        self.world.sleep(DECIDED_MAX).await;
        let starters = self.world.process("starters", ClockFaults::default());
        let mut started = Vec::new();
        for slot in self.slots() {
            let (ready, up) = oneshot::channel();
            let cluster = self.clone();
            let body = async move {
                cluster.restart(slot).await;
                let _ = ready.send(());
            };
            starters.spawn("starter", Box::pin(body));
            started.push(up);
        }
        for up in started {
            let _ = up.await;
        }
    }

    /// Starts a process on what the stores hold, again and again until it comes up. Some starts are cut off by a crash.
    pub(crate) async fn restart(&self, slot: usize) {
        self.crash(slot);
        let Slot { server, starting, .. } = &self.shared.slots[slot];
        loop {
            if self.settings.processes == 1 {
                // A store that one process has to itself is opened after the last commit of the one before.
                self.world.sleep(DECIDED_MAX).await;
            }
            let process = self.process(slot);
            *lock(starting) = Some(process.clone());
            let (ready, started) = oneshot::channel();
            let opening = open::open(
                process.clone(),
                self.shared.disks.clone(),
                self.settings.clone(),
                self.faults(),
                slot == 0 || self.settings.all_work(),
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
                Ok(Ok(engine)) if process.is_alive() => {
                    lock(starting).take();
                    *lock(server) = Some(Server { process, engine });
                    self.world.note(|| format!("process {slot} is up"));
                    return;
                }
                Ok(Err(error)) => {
                    self.world.note(|| format!("process {slot} does not start: {error}"));
                }
                Ok(Ok(_)) | Err(_) => {
                    self.world.note(|| format!("process {slot} died at its start"));
                }
            }
            process.kill();
            self.world.sleep(LOOK).await;
        }
    }

    /// A process that is to serve at this place.
    fn process(&self, slot: usize) -> Process {
        let process = self.world.process("server", self.settings.clock);
        match &self.shared.sabotage {
            Some(left) if self.has_faults() => {
                let saboteur = Saboteur {
                    left: left.clone(),
                    ended: self.shared.slots[slot].ended.clone(),
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

    /// Answers when the process at this place has ended at a point.
    pub(crate) async fn ended_at_a_point(&self, slot: usize) {
        self.shared.slots[slot].ended.notified().await;
    }

    /// The engine of the first process or of any that is up, once there is one.
    async fn engine(&self, whom: Whom) -> (Process, Arc<Engine>) {
        loop {
            let slots = match whom {
                Whom::First => &self.shared.slots[..1],
                Whom::Any => &self.shared.slots,
            };
            let up = slots.iter().filter_map(|slot| {
                let server = lock(&slot.server);
                server.as_ref().map(|server| (server.process.clone(), server.engine.clone()))
            });
            let up: Vec<_> = up.collect();
            if !up.is_empty() {
                return self.shared.random.pick(&up).clone();
            }
            self.world.sleep(LOOK).await;
        }
    }

    /// Runs a request as a task of a process. None if the process died or the client hung up before there was an answer.
    /// When the outcome is unknown, the answer comes after the time in which it is decided.
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
                // A process drops a request whose client is gone, wherever it waits.
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
        let is_unknown = |error: &Error| matches!(error.kind(), Kind::Unavailable { .. });
        if answer.as_ref().is_none_or(|answer| answer.as_ref().is_err_and(is_unknown))
            && self.has_faults()
        {
            self.world.sleep(DECIDED_MAX).await;
        }
        answer
    }

    /// A table whose shardlets have the numbers of the range, divided into partitions over all shards.
    pub async fn create_table(
        &self,
        name: &'static str,
        shardlets: Range<i64>,
    ) -> Result<Table, String> {
        self.create(name, shardlets, false).await
    }

    /// The same with a change feed, which other tables have only for some seeds.
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

    /// Takes note of a container that a workload has made, so that its map is changed too.
    pub fn adopt(&self, table: Table) {
        lock(&self.shared.tables).push(table);
    }

    pub fn tables(&self) -> Vec<Table> {
        lock(&self.shared.tables).clone()
    }
}
