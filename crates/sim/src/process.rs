//! A simulated process: a group of tasks with their own environment, which can be killed at once.
//!
//! Killing drops every task of it, wherever it waits, and whatever it starts afterwards. What was made durable stays: the
//! servers of `disk.rs` outlive processes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use lazuli_env::{BoxFuture, Env, Points, Spawn};

use crate::clock::{ClockFaults, ProcessClock};
use crate::executor::World;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ProcessId(pub(crate) u64);

impl ProcessId {
    /// The process of the main task of a simulation: never killed.
    pub(crate) const OUTSIDE: Self = Self(0);
}

struct Tasks {
    world: World,
    id: ProcessId,
    life: Life,
}

/// Whether a process is alive, for the servers that it is connected to.
#[derive(Clone)]
pub(crate) struct Life(Arc<AtomicBool>);

impl Life {
    pub(crate) fn is_alive(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Spawn for Tasks {
    fn spawn(&self, name: &'static str, task: BoxFuture<'static, ()>) {
        if self.life.is_alive() {
            self.world.spawn(self.id, name, task);
        }
    }
}

/// A handle on a process. Clones share it.
#[derive(Clone)]
pub struct Process {
    name: &'static str,
    tasks: Arc<Tasks>,
    env: Env,
}

impl Process {
    pub(crate) fn new(world: World, id: ProcessId, name: &'static str, clock: ClockFaults) -> Self {
        let clock = ProcessClock::new(world.timeline.clone(), clock, world.random("clock"));
        let random = world.random("process");
        let tasks = Arc::new(Tasks { world, id, life: Life(Arc::new(AtomicBool::new(true))) });
        let env = Env::new(Arc::new(clock), Arc::new(random), tasks.clone());
        Self { name, tasks, env }
    }

    pub fn env(&self) -> &Env {
        &self.env
    }

    pub fn world(&self) -> &World {
        &self.tasks.world
    }

    pub fn is_alive(&self) -> bool {
        self.tasks.life.is_alive()
    }

    pub(crate) fn life(&self) -> Life {
        self.tasks.life.clone()
    }

    /// Stops all tasks of the process for a while. Then they go on with all that they knew.
    pub fn pause(&self, time: Duration) {
        self.tasks.world.note(|| format!("{} is paused for {time:?}", self.name));
        self.tasks.world.pause(self.tasks.id, time);
    }

    pub fn spawn(&self, name: &'static str, task: BoxFuture<'static, ()>) {
        self.tasks.spawn(name, task);
    }

    /// The same process, with an observer of its durable steps.
    #[must_use]
    pub(crate) fn watched(self, points: Arc<dyn Points>) -> Self {
        Self { env: self.env.watched(points), ..self }
    }

    pub(crate) fn killer(&self) -> Killer {
        Killer { name: self.name, tasks: Arc::downgrade(&self.tasks) }
    }

    /// Kills the process.
    pub fn kill(&self) {
        self.killer().kill();
    }
}

/// Kills a process, for its own tasks.
pub(crate) struct Killer {
    name: &'static str,
    tasks: Weak<Tasks>,
}

impl Killer {
    pub(crate) fn kill(&self) {
        let Some(tasks) = self.tasks.upgrade() else { return };
        tasks.world.note(|| format!("{} is killed", self.name));
        tasks.life.0.store(false, Ordering::Relaxed);
        tasks.world.kill(tasks.id);
    }
}
