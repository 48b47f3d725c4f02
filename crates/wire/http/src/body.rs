//! The body of a request or a response: either all there, or still coming in.
//!
//! Nothing is read before a handler asks for it, and never more than the handler says it can take, so a body of any size
//! costs no more memory than its reader allows. `collect` is for bodies that must be whole, `chunk` for all others.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body::{Body as _, Frame, SizeHint};
use hyper::body::Incoming;

/// The most of a body that is read only to be thrown away.
pub const DISCARD_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// The longest time that this may take.
pub const DISCARD_TIME_MAX: Duration = Duration::from_secs(2);

pub struct Body(Source);

enum Source {
    Whole(Option<Bytes>),
    Incoming { stream: Incoming, timeout: Duration },
}

/// Why a body could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyError {
    /// Longer than the reader takes.
    TooLarge,
    /// The client sent nothing for too long.
    TimedOut,
    /// The connection broke, or the framing was wrong.
    Broken,
}

impl Body {
    pub fn empty() -> Self {
        Self(Source::Whole(None))
    }

    pub(crate) fn incoming(stream: Incoming, timeout: Duration) -> Self {
        Self(Source::Incoming { stream, timeout })
    }

    /// The length if it is known beforehand: by `Content-Length`, or because the body is all there.
    pub fn length(&self) -> Option<u64> {
        match &self.0 {
            Source::Whole(bytes) => Some(bytes.as_ref().map_or(0, Bytes::len) as u64),
            Source::Incoming { stream, .. } => stream.size_hint().exact(),
        }
    }

    /// The next piece, or `None` at the end.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, BodyError> {
        let (stream, timeout) = match &mut self.0 {
            Source::Whole(bytes) => return Ok(bytes.take()),
            Source::Incoming { stream, timeout } => (stream, *timeout),
        };
        loop {
            let frame = std::future::poll_fn(|cx| Pin::new(&mut *stream).poll_frame(cx));
            match tokio::time::timeout(timeout, frame).await {
                Err(_) => return Err(BodyError::TimedOut),
                Ok(None) => return Ok(None),
                Ok(Some(Err(_))) => return Err(BodyError::Broken),
                Ok(Some(Ok(frame))) => {
                    // Trailers say nothing that the storage protocols use.
                    if let Ok(data) = frame.into_data() {
                        return Ok(Some(data));
                    }
                }
            }
        }
    }

    /// The whole body, if it is no longer than `bytes_max`. The rest of a longer one is thrown away, so that the client
    /// gets to read why; one that says beforehand that it is far longer is not read at all.
    pub async fn collect(mut self, bytes_max: usize) -> Result<Bytes, BodyError> {
        let collected = self.collect_some(bytes_max).await;
        if collected == Err(BodyError::TooLarge) {
            // A client that sends too slowly for this does without the reason.
            let _ = tokio::time::timeout(DISCARD_TIME_MAX, self.discard()).await;
        }
        collected
    }

    async fn discard(&mut self) {
        if self.length().is_some_and(|length| length > DISCARD_BYTES_MAX) {
            return;
        }
        let mut left = DISCARD_BYTES_MAX;
        while let Ok(Some(piece)) = self.chunk().await {
            left = left.saturating_sub(piece.len() as u64);
            if left == 0 {
                return;
            }
        }
    }

    async fn collect_some(&mut self, bytes_max: usize) -> Result<Bytes, BodyError> {
        let declared = self.length();
        if declared.is_some_and(|length| length > bytes_max as u64) {
            return Err(BodyError::TooLarge);
        }
        let Some(first) = self.chunk().await? else {
            return Ok(Bytes::new());
        };
        if first.len() > bytes_max {
            return Err(BodyError::TooLarge);
        }
        if declared == Some(first.len() as u64) {
            return Ok(first);
        }
        let mut whole = BytesMut::from(first);
        while let Some(more) = self.chunk().await? {
            if whole.len() + more.len() > bytes_max {
                return Err(BodyError::TooLarge);
            }
            whole.extend_from_slice(&more);
        }
        Ok(whole.freeze())
    }
}

impl From<Bytes> for Body {
    fn from(bytes: Bytes) -> Self {
        Self(Source::Whole(Some(bytes).filter(|bytes| !bytes.is_empty())))
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.length() {
            Some(length) => write!(f, "Body({length} bytes)"),
            None => write!(f, "Body(of unknown length)"),
        }
    }
}

/// As hyper wants it for responses.
impl http_body::Body for Body {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        match &mut self.get_mut().0 {
            Source::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Source::Incoming { stream, .. } => Pin::new(stream).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Source::Whole(bytes) => bytes.is_none(),
            Source::Incoming { stream, .. } => stream.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Source::Whole(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, Bytes::len) as u64)
            }
            Source::Incoming { stream, .. } => stream.size_hint(),
        }
    }
}
