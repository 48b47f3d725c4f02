//! The seeded executor: one thread, and the seed picks which ready task runs next.
//!
//! A [`World`] holds the tasks of all simulated processes, their time line, the one source of randomness and the
//! trace. It needs nothing of tokio's runtime; `tokio::sync` works in it because its wakers are plain wakers.
//!
//! Invariant: a world depends only on its seed, so the same seed always gives the same schedule.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use lazuli_env::BoxFuture;

use crate::clock::{ClockFaults, Timeline};
use crate::lock;
use crate::process::{Process, ProcessId};
use crate::random::Seeded;
use crate::trace::Trace;

/// The most steps of one simulation; more means that some task loops forever.
pub const STEPS_MAX: u64 = 5_000_000;
/// The most virtual time of one simulation; more means that the main task waits forever.
pub const TIME_MAX: Duration = Duration::from_secs(24 * 60 * 60);
/// The longest delay of a task.
const PAUSE_MICROS_MAX: u64 = 100_000;

/// Why a simulation did not finish.
#[derive(Debug, PartialEq, Eq)]
pub enum Stuck {
    /// No task is ready and none sleeps (deadlock).
    Deadlock { waiting: Vec<&'static str> },
    /// The steps are used up.
    Runaway { ready: Vec<&'static str> },
    /// The time is used up.
    Late { waiting: Vec<&'static str> },
}

impl fmt::Display for Stuck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Deadlock { waiting } => {
                write!(f, "deadlock: nothing is ready and nothing sleeps; waiting: {waiting:?}")
            }
            Self::Runaway { ready } => {
                write!(f, "runaway: not done after {STEPS_MAX} steps; ready: {ready:?}")
            }
            Self::Late { waiting } => {
                write!(f, "late: not done after {TIME_MAX:?} of virtual time; waiting: {waiting:?}")
            }
        }
    }
}

struct Task {
    process: ProcessId,
    name: &'static str,
    /// Taken out while it runs.
    future: Option<BoxFuture<'static, ()>>,
    waker: Arc<TaskWaker>,
}

#[derive(Default)]
struct Tasks {
    all: BTreeMap<u64, Task>,
    /// Woken tasks, each once. The seed picks among them.
    ready: Vec<u64>,
    next: u64,
    next_process: u64,
    /// Until when processes are paused.
    paused: BTreeMap<ProcessId, Duration>,
}

struct TaskWaker {
    id: u64,
    queued: AtomicBool,
    tasks: Arc<Mutex<Tasks>>,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        if !self.queued.swap(true, Ordering::Relaxed) {
            let mut tasks = lock(&self.tasks);
            if tasks.all.contains_key(&self.id) {
                tasks.ready.push(self.id);
            }
        }
    }
}

/// Enqueues a task again after a pause, and ignores other wakers meanwhile.
struct Resume {
    id: u64,
    tasks: Arc<Mutex<Tasks>>,
}

impl Wake for Resume {
    fn wake(self: Arc<Self>) {
        let mut tasks = lock(&self.tasks);
        if tasks.all.contains_key(&self.id) {
            tasks.ready.push(self.id);
        }
    }
}

/// One simulation. Clones share it.
#[derive(Clone)]
pub struct World {
    tasks: Arc<Mutex<Tasks>>,
    trace: Arc<Mutex<Trace>>,
    schedule: Arc<Seeded>,
    /// How often in a thousand times a picked task is delayed, as on a busy machine.
    pauses_per_mille: u64,
    random: Arc<Seeded>,
    pub(crate) timeline: Timeline,
}

impl World {
    pub fn new(seed: u64) -> Self {
        let random = Seeded::new(seed);
        let schedule = random.fork("schedule");
        Self {
            tasks: Arc::default(),
            trace: Arc::default(),
            pauses_per_mille: *schedule.pick(&[0, 0, 2, 20]),
            schedule: Arc::new(schedule),
            random: Arc::new(random),
            timeline: Timeline::default(),
        }
    }

    /// A source of randomness for the part called `label`.
    pub fn random(&self, label: &str) -> Seeded {
        self.random.fork(label)
    }

    pub fn now(&self) -> Duration {
        self.timeline.now()
    }

    pub fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        self.timeline.sleep(duration)
    }

    /// A new process with a wrong clock within the bounds of `clock`.
    pub fn process(&self, name: &'static str, clock: ClockFaults) -> Process {
        let id = {
            let mut tasks = self.tasks();
            tasks.next_process += 1;
            ProcessId(tasks.next_process)
        };
        Process::new(self.clone(), id, name, clock)
    }

    fn tasks(&self) -> MutexGuard<'_, Tasks> {
        lock(&self.tasks)
    }

    pub(crate) fn trace(&self) -> MutexGuard<'_, Trace> {
        lock(&self.trace)
    }

    /// Adds an event to the log, if one is kept.
    pub fn note(&self, text: impl FnOnce() -> String) {
        let now = self.now();
        self.trace().event(now, text);
    }

    pub fn keep_log(&self) {
        self.trace().keep_log();
    }

    pub fn take_log(&self) -> Vec<String> {
        self.trace().take_log()
    }

    /// The hash of everything that happened so far.
    pub fn trace_hash(&self) -> u64 {
        self.trace().hash()
    }

    pub(crate) fn spawn(
        &self,
        process: ProcessId,
        name: &'static str,
        future: BoxFuture<'static, ()>,
    ) {
        let mut tasks = self.tasks();
        let id = tasks.next;
        tasks.next += 1;
        let waker = TaskWaker { id, queued: AtomicBool::new(true), tasks: self.tasks.clone() };
        let task = Task { process, name, future: Some(future), waker: Arc::new(waker) };
        tasks.all.insert(id, task);
        tasks.ready.push(id);
    }

    /// Runs a task that belongs to no process, such as one of a server.
    pub(crate) fn serve(&self, task: BoxFuture<'static, ()>) {
        self.spawn(ProcessId::OUTSIDE, "server", task);
    }

    /// Runs no task of a process for a while.
    pub(crate) fn pause(&self, process: ProcessId, time: Duration) {
        let until = self.now() + time;
        self.tasks().paused.insert(process, until);
    }

    /// Drops all tasks of a process at once, wherever they wait.
    pub(crate) fn kill(&self, process: ProcessId) {
        let mut tasks = self.tasks();
        let (dead, alive): (BTreeMap<_, _>, _) = std::mem::take(&mut tasks.all)
            .into_iter()
            .partition(|(_, task)| task.process == process);
        tasks.all = alive;
        tasks.paused.remove(&process);
        tasks.ready.retain(|id| !dead.contains_key(id));
        // Dropping runs code of the tasks, which may take this lock.
        drop(tasks);
        drop(dead);
    }

    /// Runs until `main` is done. All other tasks are dropped then.
    pub fn run<T: Send + 'static>(
        &self,
        main: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, Stuck> {
        let _end = End(self);
        let done = Arc::new(Mutex::new(None));
        let slot = done.clone();
        let main = Box::pin(async move {
            let value = main.await;
            *lock(&slot) = Some(value);
        });
        self.spawn(ProcessId::OUTSIDE, "main", main);
        for _ in 0..STEPS_MAX {
            if !self.step() && !self.timeline.jump() {
                return Err(Stuck::Deadlock { waiting: self.names(|_| true) });
            }
            if let Some(value) = lock(&done).take() {
                return Ok(value);
            }
            if self.now() > TIME_MAX {
                return Err(Stuck::Late { waiting: self.names(|_| true) });
            }
        }
        Err(Stuck::Runaway { ready: self.names(|task| task.waker.queued.load(Ordering::Relaxed)) })
    }

    fn names(&self, of: impl Fn(&Task) -> bool) -> Vec<&'static str> {
        self.tasks().all.values().filter(|task| of(task)).map(|task| task.name).collect()
    }

    /// Runs one ready task to its next await; false if none is ready.
    fn step(&self) -> bool {
        let Some((id, waker, mut future)) = self.pick() else { return false };
        let polled = future.as_mut().poll(&mut Context::from_waker(&Waker::from(waker)));
        let ended = {
            let mut tasks = self.tasks();
            match (polled, tasks.all.get_mut(&id)) {
                (Poll::Pending, Some(task)) => {
                    task.future = Some(future);
                    None
                }
                // Done, or its process was killed while it ran.
                _ => Some((tasks.all.remove(&id), future)),
            }
        };
        drop(ended);
        self.timeline.step();
        true
    }

    fn pick(&self) -> Option<(u64, Arc<TaskWaker>, BoxFuture<'static, ()>)> {
        let mut tasks = self.tasks();
        while !tasks.ready.is_empty() {
            let at = self.schedule.index(tasks.ready.len());
            let id = tasks.ready.swap_remove(at);
            // A task may have ended since it was woken.
            let Some(task) = tasks.all.get(&id) else { continue };
            let process = task.process;
            let paused = tasks.paused.get(&process).map(|until| until.saturating_sub(self.now()));
            let paused = paused.filter(|pause| !pause.is_zero());
            if paused.is_some() || self.schedule.chance(self.pauses_per_mille) {
                let drawn = || Duration::from_micros(self.schedule.between(1, PAUSE_MICROS_MAX));
                let pause = paused.unwrap_or_else(drawn);
                let resume = Resume { id, tasks: self.tasks.clone() };
                self.timeline.wake_after(pause, Waker::from(Arc::new(resume)));
                continue;
            }
            let Some(task) = tasks.all.get_mut(&id) else { continue };
            let Some(future) = task.future.take() else { continue };
            task.waker.queued.store(false, Ordering::Relaxed);
            let picked = (id, task.waker.clone(), future);
            drop(tasks);
            self.trace().number(id);
            return Some(picked);
        }
        None
    }
}

/// Drops all tasks when a run ends, also by a panic: they hold the world that holds them.
struct End<'a>(&'a World);

impl Drop for End<'_> {
    fn drop(&mut self) {
        loop {
            let mut tasks = self.0.tasks();
            let all = std::mem::take(&mut tasks.all);
            tasks.ready.clear();
            drop(tasks);
            if all.is_empty() {
                return;
            }
        }
    }
}
