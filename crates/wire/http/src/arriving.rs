//! A body on its way to us: how slowly it may come in, and what it holds of the budget of memory.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};
use hyper::body::Incoming;
use lazuli_net::{Budget, Lease, NoRoom};

use crate::body::BodyError;

/// A body that another machine is sending.
pub(crate) struct Arriving {
    stream: Incoming,
    pace: Pace,
    received: u64,
    /// None for the answer of another server.
    intake: Option<Arc<Intake>>,
}

/// The body of a request as the connection sees it, while a handler reads it.
#[derive(Debug)]
pub(crate) struct Intake {
    pub(crate) lease: Lease,
    /// Whether it was read to its end.
    ended: AtomicBool,
}

impl Intake {
    pub(crate) fn new(budget: Arc<Budget>) -> Arc<Self> {
        Arc::new(Self { lease: Lease::new(budget), ended: AtomicBool::new(false) })
    }

    pub(crate) fn is_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }
}

/// How slowly a body may come in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// The longest wait for the next piece; also what all waits together may take beyond the rate.
    pub(crate) timeout: Duration,
    /// In bytes per second. Only the time in which a reader waits for the client counts.
    pub(crate) rate_min: u64,
    pub(crate) waited: Duration,
}

impl Pace {
    /// How long the next piece may take, after so many bytes.
    fn patience(&self, received: u64) -> Duration {
        let earned_ms = received.saturating_mul(1_000) / self.rate_min.max(1);
        let allowed = self.timeout.saturating_add(Duration::from_millis(earned_ms));
        allowed.saturating_sub(self.waited).min(self.timeout)
    }
}

impl Arriving {
    pub(crate) fn new(stream: Incoming, pace: Pace, intake: Option<Arc<Intake>>) -> Self {
        Self { stream, pace, received: 0, intake }
    }

    /// How much of it has come in.
    pub(crate) fn received(&self) -> u64 {
        self.received
    }

    /// The next piece, however much is held already.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, BodyError> {
        loop {
            let Some(frame) = self.frame().await? else {
                self.end();
                return Ok(None);
            };
            // Trailers say nothing that the storage protocols use.
            if let Ok(data) = frame.into_data() {
                self.received += data.len() as u64;
                if self.stream.is_end_stream() {
                    self.end();
                }
                return Ok(Some(data));
            }
        }
    }

    async fn frame(&mut self) -> Result<Option<Frame<Bytes>>, BodyError> {
        let patience = self.pace.patience(self.received);
        let began = Instant::now();
        let stream = &mut self.stream;
        let frame = std::future::poll_fn(|cx| Pin::new(&mut *stream).poll_frame(cx));
        let frame = tokio::time::timeout(patience, frame).await;
        self.pace.waited += began.elapsed();
        let frame = frame.map_err(|_| BodyError::TimedOut)?;
        frame.transpose().map_err(|_| BodyError::Broken)
    }

    /// Holds this much of the budget for it.
    pub(crate) fn hold(&self, bytes: u64) -> Result<(), NoRoom> {
        self.intake.as_ref().map_or(Ok(()), |intake| intake.lease.hold(bytes))
    }

    fn end(&self) {
        if let Some(intake) = &self.intake {
            intake.ended.store(true, Ordering::Release);
        }
    }

    /// Gives back what it holds.
    pub(crate) fn release(&self) {
        if let Some(intake) = &self.intake {
            intake.lease.release();
        }
    }

    pub(crate) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        Pin::new(&mut self.stream).poll_frame(cx)
    }

    pub(crate) fn is_end_stream(&self) -> bool {
        self.stream.is_end_stream()
    }

    pub(crate) fn size_hint(&self) -> SizeHint {
        self.stream.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_is_earned_by_bytes_and_used_up_by_waiting() {
        let (timeout, second) = (Duration::from_secs(30), Duration::from_secs(1));
        let pace = |waited: u32| Pace { timeout, rate_min: 1_000, waited: second * waited };
        assert_eq!(pace(0).patience(0), timeout);
        assert_eq!(pace(20).patience(0), second * 10);
        assert_eq!(pace(31).patience(0), Duration::ZERO);
        assert_eq!(pace(31).patience(5_000), second * 4);
        assert_eq!(pace(31).patience(1_000_000), timeout);
        assert_eq!(pace(0).patience(u64::MAX), timeout);
    }
}
