//! Named steps of durable work, each right after a commit. After a crash another process may have to continue from there.
//!
//! The work reports each step. A server ignores the reports. The simulator kills the process at a step, or pauses
//! the task, so that every step is tested and not only those that random crashes hit.

use crate::BoxFuture;

/// Observes the steps of durable work.
pub trait Points: Send + Sync {
    /// The step of this work is durable. The work continues when the future completes.
    fn reach<'a>(&'a self, work: &'a str, step: &'static str) -> BoxFuture<'a, ()>;
}

/// Ignores all steps.
pub struct Unwatched;

impl Points for Unwatched {
    fn reach<'a>(&'a self, _work: &'a str, _step: &'static str) -> BoxFuture<'a, ()> {
        Box::pin(std::future::ready(()))
    }
}
