//! Named places in durable work: right behind a commit from which others may have to go on.
//!
//! Code that does such work says where it is. A server does not listen. The simulator does, and ends the process there,
//! or holds up whoever came by, so that every step is stopped behind at will and not only where chance strikes.

use crate::BoxFuture;

/// Hears where durable work has come to.
pub trait Points: Send + Sync {
    /// The step of this work is durable. The work goes on when the answer comes.
    fn reach<'a>(&'a self, work: &'a str, step: &'static str) -> BoxFuture<'a, ()>;
}

/// Nobody listens.
pub struct Unwatched;

impl Points for Unwatched {
    fn reach<'a>(&'a self, _work: &'a str, _step: &'static str) -> BoxFuture<'a, ()> {
        Box::pin(std::future::ready(()))
    }
}
