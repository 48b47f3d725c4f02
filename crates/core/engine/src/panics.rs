//! Panics inside futures become errors, so that a fault ends one piece of work and not the task that does all of them.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;

use lazuli_store::{Error, Result};

/// Runs a future. A panic inside of it is the error `panicked`.
pub(crate) async fn caught<T>(future: impl Future<Output = Result<T>>) -> Result<T> {
    let mut future = pin!(future);
    poll_fn(move |context| {
        // After a panic the future is never polled again, and what it borrowed is taken back by the caller.
        match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context))) {
            Ok(poll) => poll,
            Err(_) => Poll::Ready(Err(Error::internal("panicked", "a fault of ours: it panicked"))),
        }
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_becomes_an_error() {
        let answer: Result<()> = caught(async { panic!("on purpose") }).await;
        assert_eq!(answer.unwrap_err().code(), "panicked");
        assert_eq!(caught(async { Ok(7) }).await.unwrap(), 7);
    }
}
