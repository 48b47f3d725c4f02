//! Calls that may wait for the disk, off the tasks that serve others: a bounded number at the same time.

use std::io;
use std::sync::Arc;

use lazuli_store::{Error, Result};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

/// Calls at the same time. More of them would only wait for the disk in threads of their own.
const CALLS_MAX: usize = 64;

#[derive(Clone)]
pub(crate) struct Disk {
    calls: Arc<Semaphore>,
}

/// A call under way.
pub(crate) struct Call<T>(JoinHandle<Result<T>>);

impl Disk {
    pub(crate) fn new() -> Self {
        Self { calls: Arc::new(Semaphore::new(CALLS_MAX)) }
    }

    /// Begins a call as soon as it is its turn. It runs to its end even if nobody waits for it.
    pub(crate) async fn begin<T: Send + 'static>(
        &self,
        call: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<Call<T>> {
        let permit = self.calls.clone().acquire_owned().await;
        let permit =
            permit.map_err(|_| Error::internal("disk-closed", "no more calls are taken"))?;
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

/// What a failed call on a file means: bytes that are not there or not right are damage, all else is the machine's trouble.
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
