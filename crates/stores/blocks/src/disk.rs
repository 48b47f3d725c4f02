//! Runs blocking disk calls off the tasks that serve requests, a bounded number at the same time.

use std::io;
use std::sync::Arc;

use lazuli_store::{Error, Result};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

/// Calls at the same time. More of them would only wait for the disk, each in a thread of its own.
const CALLS_MAX: usize = 64;

#[derive(Clone)]
pub(crate) struct Disk {
    calls: Arc<Semaphore>,
}

/// A running call.
pub(crate) struct Call<T>(JoinHandle<Result<T>>);

impl Disk {
    pub(crate) fn new() -> Self {
        Self { calls: Arc::new(Semaphore::new(CALLS_MAX)) }
    }

    /// Starts a call as soon as there is a free slot. It is not cancelled if the caller stops waiting.
    pub(crate) async fn begin<T: Send + 'static>(
        &self,
        call: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<Call<T>> {
        let permit = self.calls.clone().acquire_owned().await;
        let permit =
            permit.map_err(|_| Error::internal("disk-closed", "no more calls are accepted"))?;
        Ok(Call(tokio::task::spawn_blocking(move || {
            let outcome = call();
            drop(permit);
            outcome
        })))
    }

    pub(crate) async fn run<T: Send + 'static>(
        &self,
        call: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.begin(call).await?.outcome().await
    }
}

impl<T> Call<T> {
    pub(crate) async fn outcome(self) -> Result<T> {
        self.0.await.unwrap_or_else(|error| Err(Error::internal("disk-panicked", error)))
    }
}

/// The error of a failed file call: missing or wrong bytes are damage, everything else is the machine's fault.
pub(crate) fn failed(what: impl std::fmt::Display, error: &io::Error) -> Error {
    use io::ErrorKind::{InvalidData, NotFound, QuotaExceeded, StorageFull, UnexpectedEof};
    match error.kind() {
        NotFound => Error::corrupt("block-missing", format!("{what} is missing")),
        InvalidData => Error::corrupt("block-damaged", format!("{what} {error}")),
        UnexpectedEof => Error::corrupt("block-damaged", format!("{what} ends too early")),
        StorageFull | QuotaExceeded => Error::unavailable("disk-full", format!("{what}: {error}")),
        _ => Error::unavailable("block-io", format!("{what}: {error}")),
    }
}
