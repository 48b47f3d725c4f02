//! Runs procedures and triggers on threads of their own, so that a script that computes for seconds holds up no task of
//! the server, and so that a caller is free again when its time is over, whatever the script does.

use std::sync::Arc;

use tokio::sync::{Semaphore, mpsc, oneshot};

use crate::call::{Answer, Host};
use crate::error::ScriptError;
use crate::limits::{Limits, THREAD_STACK_BYTES, THREADS_MAX};
use crate::run::{Input, Outcome, Run, Step};

/// Where scripts run. One for a process.
pub struct Scripts {
    /// A script has a permit until its thread ends. A thread that does not notice its deadline keeps it.
    permits: Arc<Semaphore>,
    limits: Limits,
}

impl Default for Scripts {
    fn default() -> Self {
        Self::new(THREADS_MAX, Limits::default())
    }
}

impl Scripts {
    /// At most so many scripts at the same time, each within the limits.
    pub fn new(threads: usize, limits: Limits) -> Self {
        Self { permits: Arc::new(Semaphore::new(threads)), limits }
    }

    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Runs a script to its end. On `Ok` the host's transaction may be committed, on `Err` it must be rolled back.
    ///
    /// If the future is dropped, the script ends at its next call of the host, or at its deadline.
    pub async fn run(
        &self,
        source: Arc<str>,
        input: Input,
        host: &mut impl Host,
    ) -> Result<Outcome, ScriptError> {
        let (steps, mut taken_steps) = mpsc::channel(1);
        let (answers, given_answers) = std::sync::mpsc::sync_channel(1);
        let limits = self.limits.clone();
        self.spawn(move || play(&source, input, &limits, &steps, &given_answers)).await?;
        self.in_time(attend(&mut taken_steps, &answers, host)).await
    }

    /// Whether a text can be a script: it compiles, and holds a function. What stands outside of functions is run.
    pub async fn check(&self, source: Arc<str>) -> Result<(), ScriptError> {
        let (answer, found) = oneshot::channel();
        let limits = self.limits.clone();
        self.spawn(move || {
            let _ = answer.send(crate::check(&source, &limits));
        })
        .await?;
        self.in_time(async { found.await.unwrap_or_else(|_| Err(gone())) }).await
    }

    /// Starts something on a thread as soon as one may be started.
    async fn spawn(&self, work: impl FnOnce() + Send + 'static) -> Result<(), ScriptError> {
        let permit = Arc::clone(&self.permits).acquire_owned();
        let permit = match tokio::time::timeout(self.limits.time, permit).await {
            Ok(Ok(permit)) => permit,
            Ok(Err(_)) | Err(_) => return Err(ScriptError::Busy),
        };
        let work = move || {
            work();
            drop(permit);
        };
        let thread =
            std::thread::Builder::new().name("script".to_owned()).stack_size(THREAD_STACK_BYTES);
        let spawned = thread.spawn(work);
        spawned.map(drop).map_err(|error| ScriptError::Engine(error.to_string()))
    }

    /// Waits for a thread as long as it may take, and for the time in which it should notice its deadline.
    async fn in_time<T>(
        &self,
        work: impl Future<Output = Result<T, ScriptError>>,
    ) -> Result<T, ScriptError> {
        let time_max = self.limits.time.saturating_add(self.limits.grace);
        tokio::time::timeout(time_max, work).await.unwrap_or(Err(ScriptError::Time))
    }
}

fn gone() -> ScriptError {
    ScriptError::Engine("the thread of the script is gone".to_owned())
}

/// The side of the caller: performs calls until the script has ended.
async fn attend(
    steps: &mut mpsc::Receiver<Result<Step, ScriptError>>,
    answers: &std::sync::mpsc::SyncSender<Answer>,
    host: &mut impl Host,
) -> Result<Outcome, ScriptError> {
    loop {
        match steps.recv().await {
            Some(Ok(Step::Call(call))) => {
                let answer = host.perform(call).await;
                // The thread has at most one call open, so there is room. If it is gone, the next `recv` says so.
                let _ = answers.try_send(answer);
            }
            Some(Ok(Step::Done(outcome))) => return Ok(outcome),
            Some(Err(error)) => return Err(error),
            None => return Err(gone()),
        }
    }
}

/// The side of the thread: runs the script from call to call.
fn play(
    source: &str,
    input: Input,
    limits: &Limits,
    steps: &mpsc::Sender<Result<Step, ScriptError>>,
    answers: &std::sync::mpsc::Receiver<Answer>,
) {
    let (mut run, mut step) = match Run::start(source, input, limits) {
        Ok(started) => started,
        Err(error) => {
            let _ = steps.blocking_send(Err(error));
            return;
        }
    };
    loop {
        let is_done = matches!(step, Step::Done(_));
        if steps.blocking_send(Ok(step)).is_err() || is_done {
            return;
        }
        // The sender is dropped when the caller has given up, which ends the wait.
        let Ok(answer) = answers.recv() else { return };
        step = match run.resume(answer) {
            Ok(step) => step,
            Err(error) => {
                let _ = steps.blocking_send(Err(error));
                return;
            }
        };
    }
}
