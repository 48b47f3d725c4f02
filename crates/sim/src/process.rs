//! A simulated process: a group of tasks with their own surroundings, which can be killed at once.
//!
//! Killing drops every task of it, wherever it waits, and whatever it starts afterwards. What was made durable stays;
//! that is the business of the disks in `store.rs`.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use lazuli_env::{BoxFuture, Env, Points, Spawn};

use crate::clock::{ClockFaults, ProcessClock};
use crate::executor::World;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ProcessId(pub(crate) u64);

impl ProcessId {
    /// Where the main task of a simulation runs: never killed.
    pub(crate) const OUTSIDE: Self = Self(0);
}

struct Tasks {
    world: World,
    id: ProcessId,
    alive: AtomicBool,
}

impl Spawn for Tasks {
    fn spawn(&self, name: &'static str, task: BoxFuture<'static, ()>) {
        if self.alive.load(Ordering::Relaxed) {
            self.world.spawn(self.id, name, task);
        }
    }
}

/// A handle on a process. Clones mean the same one.
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
        let tasks = Arc::new(Tasks { world, id, alive: AtomicBool::new(true) });
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
        self.tasks.alive.load(Ordering::Relaxed)
    }

    pub fn spawn(&self, name: &'static str, task: BoxFuture<'static, ()>) {
        self.tasks.spawn(name, task);
    }

    /// The same process, with somebody who hears where its durable work has come to.
    #[must_use]
    pub(crate) fn watched(self, points: Arc<dyn Points>) -> Self {
        Self { env: self.env.watched(points), ..self }
    }

    pub(crate) fn killer(&self) -> Killer {
        Killer { name: self.name, tasks: Arc::downgrade(&self.tasks) }
    }

    /// Ends the process here and now.
    pub fn kill(&self) {
        self.killer().kill();
    }
}

/// What ends a process, for those who are a part of it.
pub(crate) struct Killer {
    name: &'static str,
    tasks: Weak<Tasks>,
}

impl Killer {
    pub(crate) fn kill(&self) {
        let Some(tasks) = self.tasks.upgrade() else { return };
        tasks.world.note(|| format!("{} is killed", self.name));
        tasks.alive.store(false, Ordering::Relaxed);
        tasks.world.kill(tasks.id);
    }
}
