//! The body of a request or a response: all there, still coming in, or made while it is sent.
//!
//! Nothing is read before a handler asks for it, and never more than the handler says it can take, so a body of any size
//! costs no more memory than its reader allows. `collect` is for bodies that must be whole, `chunk` for all others.
//! A body that is made while it is sent is asked for its next piece when the client has room for it.
//! What a request's body takes is held of the process's [`Budget`](lazuli_net::Budget) until its handler is done.

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body::{Frame, SizeHint};
use hyper::body::Incoming;

use lazuli_net::budget::STREAM_BYTES;
use lazuli_net::{Lease, NoRoom};

use crate::arriving::{Arriving, Intake, Pace};

/// The most of a body that is read only to be thrown away.
pub const DISCARD_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// The longest time that this may take.
pub const DISCARD_TIME_MAX: Duration = Duration::from_secs(2);

/// How much is allocated at first for a body whose length is unknown.
const COLLECT_BYTES_MIN: usize = 16 * 1024;

pub struct Body {
    source: Source,
    /// What an answer that is made while it is sent holds of the budget.
    _held: Option<Lease>,
}

enum Source {
    Whole(Option<Bytes>),
    Incoming(Box<Arriving>),
    /// The lock is never taken: it lets the body be shared between threads, though its pieces are not.
    Made {
        length: Option<u64>,
        /// How much of the length is still to be made.
        left: Option<u64>,
        pieces: Mutex<Box<dyn Pieces>>,
    },
}

/// Why a body could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyError {
    /// Longer than the reader takes.
    TooLarge,
    /// The client sent nothing for too long, or too little altogether.
    TimedOut,
    /// There is no memory for it in the budget of this process.
    NoRoom,
    /// The connection broke, or the framing was wrong. Of a body that is made: its source failed, or did not keep to the
    /// length that it had promised.
    Broken,
}

impl fmt::Display for BodyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooLarge => "the body is too large",
            Self::TimedOut => "the body did not come in time",
            Self::NoRoom => "there is no room for the body now",
            Self::Broken => "the body broke off",
        })
    }
}

impl std::error::Error for BodyError {}

impl From<NoRoom> for BodyError {
    fn from(NoRoom: NoRoom) -> Self {
        Self::NoRoom
    }
}

impl From<Source> for Body {
    fn from(source: Source) -> Self {
        Self { source, _held: None }
    }
}

impl Body {
    pub fn empty() -> Self {
        Source::Whole(None).into()
    }

    /// A body of this length that is made piece by piece: `next` is called with the source whenever there is room for
    /// another piece, and gives the source back with it. If it fails, or the pieces do not add up to the length, the
    /// connection breaks, so that no client takes a part for the whole.
    pub fn made<S, N, F>(length: u64, source: S, next: N) -> Self
    where
        S: Send + 'static,
        N: Fn(S) -> F + Send + 'static,
        F: Future<Output = Result<Option<(Bytes, S)>, BodyError>> + Send + 'static,
    {
        Self::unfold(Some(length), source, next)
    }

    /// The same for a body that ends when its source does. Its length is not known beforehand, so it is sent in chunks.
    pub fn streamed<S, N, F>(source: S, next: N) -> Self
    where
        S: Send + 'static,
        N: Fn(S) -> F + Send + 'static,
        F: Future<Output = Result<Option<(Bytes, S)>, BodyError>> + Send + 'static,
    {
        Self::unfold(None, source, next)
    }

    fn unfold<S, N, F>(length: Option<u64>, source: S, next: N) -> Self
    where
        S: Send + 'static,
        N: Fn(S) -> F + Send + 'static,
        F: Future<Output = Result<Option<(Bytes, S)>, BodyError>> + Send + 'static,
    {
        let pieces = Unfold { source: Some(source), next, running: None };
        let pieces: Mutex<Box<dyn Pieces>> = Mutex::new(Box::new(pieces));
        Source::Made { length, left: length, pieces }.into()
    }

    pub(crate) fn incoming(stream: Incoming, pace: Pace, intake: Option<Arc<Intake>>) -> Self {
        Source::Incoming(Box::new(Arriving::new(stream, pace, intake))).into()
    }

    /// The memory that an answer with this body takes while it is sent.
    pub(crate) fn bytes_in_memory(&self) -> u64 {
        match &self.source {
            Source::Whole(bytes) => bytes.as_ref().map_or(0, Bytes::len) as u64,
            Source::Incoming(_) => STREAM_BYTES,
            Source::Made { length, .. } => length.unwrap_or(0).min(STREAM_BYTES),
        }
    }

    /// The same body, which gives back what it holds of a budget once it is sent.
    pub(crate) fn holding(self, lease: Lease) -> Self {
        match self.source {
            Source::Whole(Some(bytes)) => {
                let bytes = Bytes::from_owner(HeldBytes { bytes, _lease: lease });
                Source::Whole(Some(bytes)).into()
            }
            source => Self { source, _held: Some(lease) },
        }
    }

    /// The length if it is known beforehand: by `Content-Length`, by the handler that makes it, or because it is all there.
    pub fn length(&self) -> Option<u64> {
        match &self.source {
            Source::Whole(bytes) => Some(bytes.as_ref().map_or(0, Bytes::len) as u64),
            Source::Incoming(arriving) => arriving.size_hint().exact(),
            Source::Made { length, .. } => *length,
        }
    }

    /// The next piece, or `None` at the end.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, BodyError> {
        let piece = self.next_piece().await?;
        if let Source::Incoming(arriving) = &self.source {
            arriving.hold(arriving.received().min(STREAM_BYTES))?;
        }
        Ok(piece)
    }

    async fn next_piece(&mut self) -> Result<Option<Bytes>, BodyError> {
        match &mut self.source {
            Source::Whole(bytes) => Ok(bytes.take()),
            Source::Incoming(arriving) => arriving.next().await,
            Source::Made { left, pieces, .. } => {
                std::future::poll_fn(|cx| poll_made(left, pieces, cx)).await.transpose()
            }
        }
    }

    /// The whole body, if it is no longer than `bytes_max`. The rest of a longer one is thrown away, so that the client
    /// gets to read why; one that says beforehand that it is far longer is not read at all.
    pub async fn collect(mut self, bytes_max: usize) -> Result<Bytes, BodyError> {
        let collected = self.collect_some(bytes_max).await;
        if matches!(collected, Err(BodyError::TooLarge | BodyError::NoRoom)) {
            self.discard().await;
        }
        collected
    }

    /// Throws away what is still to come, within limits, so that a client that is still sending gets to read why it was
    /// refused. One that sends too slowly for this does without the reason.
    pub async fn discard(&mut self) {
        let _ = tokio::time::timeout(DISCARD_TIME_MAX, self.discard_some()).await;
    }

    async fn discard_some(&mut self) {
        if let Source::Incoming(arriving) = &self.source {
            arriving.release();
        }
        if self.length().is_some_and(|length| length > DISCARD_BYTES_MAX) {
            return;
        }
        let mut left = DISCARD_BYTES_MAX;
        while let Ok(Some(piece)) = self.next_piece().await {
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
        let most = declared.map_or(bytes_max, |length| length as usize);
        let mut whole = BytesMut::new();
        self.append(&mut whole, &first, most)?;
        drop(first);
        while let Some(more) = self.chunk().await? {
            if whole.len() + more.len() > bytes_max {
                return Err(BodyError::TooLarge);
            }
            self.append(&mut whole, &more, most)?;
        }
        Ok(whole.freeze())
    }

    /// Adds a piece to what is collected. Room is made in steps that double, none of them beyond `most` without need, and
    /// held of the budget before it is made.
    fn append(&self, whole: &mut BytesMut, piece: &[u8], most: usize) -> Result<(), BodyError> {
        let needed = whole.len() + piece.len();
        if needed > whole.capacity() {
            let doubled = (whole.capacity() * 2).max(COLLECT_BYTES_MIN).min(most);
            let capacity = doubled.max(needed);
            if let Source::Incoming(arriving) = &self.source {
                arriving.hold(capacity as u64)?;
            }
            whole.reserve(capacity - whole.len());
        }
        whole.extend_from_slice(piece);
        Ok(())
    }
}

/// Bytes that hold a part of a budget until their last owner drops them.
struct HeldBytes {
    bytes: Bytes,
    _lease: Lease,
}

impl AsRef<[u8]> for HeldBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl From<Bytes> for Body {
    fn from(bytes: Bytes) -> Self {
        Source::Whole(Some(bytes).filter(|bytes| !bytes.is_empty())).into()
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

/// Where the pieces of a body come from.
trait Pieces: Send {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BodyError>>>;
}

/// A source that is either at rest or working on its next piece. Neither means that it has ended.
struct Unfold<S, N, F> {
    source: Option<S>,
    next: N,
    running: Option<Pin<Box<F>>>,
}

impl<S, N, F> Pieces for Unfold<S, N, F>
where
    S: Send,
    N: Fn(S) -> F + Send,
    F: Future<Output = Result<Option<(Bytes, S)>, BodyError>> + Send,
{
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BodyError>>> {
        if let Some(source) = self.source.take() {
            self.running = Some(Box::pin((self.next)(source)));
        }
        let Some(running) = &mut self.running else { return Poll::Ready(None) };
        let piece = ready!(running.as_mut().poll(cx));
        self.running = None;
        Poll::Ready(match piece {
            Ok(Some((piece, source))) => {
                self.source = Some(source);
                Some(Ok(piece))
            }
            Ok(None) => None,
            Err(error) => Some(Err(error)),
        })
    }
}

/// The next piece of a body that is made. If its length is known, too few bytes are an error, and so are too many.
fn poll_made(
    left: &mut Option<u64>,
    pieces: &mut Mutex<Box<dyn Pieces>>,
    cx: &mut Context<'_>,
) -> Poll<Option<Result<Bytes, BodyError>>> {
    if *left == Some(0) {
        return Poll::Ready(None);
    }
    let pieces = pieces.get_mut().unwrap_or_else(PoisonError::into_inner);
    let piece = ready!(pieces.poll(cx));
    let Some(left) = left else { return Poll::Ready(piece) };
    Poll::Ready(Some(match piece {
        Some(Ok(piece)) if piece.len() as u64 <= *left => {
            *left -= piece.len() as u64;
            Ok(piece)
        }
        Some(Err(error)) => Err(error),
        Some(Ok(_)) | None => Err(BodyError::Broken),
    }))
}

/// As hyper wants it for responses.
impl http_body::Body for Body {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match &mut self.get_mut().source {
            Source::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Source::Incoming(arriving) => {
                let frame = ready!(arriving.poll_frame(cx));
                Poll::Ready(frame.map(|frame| frame.map_err(|_| BodyError::Broken)))
            }
            Source::Made { left, pieces, .. } => {
                poll_made(left, pieces, cx).map(|piece| piece.map(|piece| piece.map(Frame::data)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.source {
            Source::Whole(bytes) => bytes.is_none(),
            Source::Incoming(arriving) => arriving.is_end_stream(),
            Source::Made { left, .. } => *left == Some(0),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.source {
            Source::Whole(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, Bytes::len) as u64)
            }
            Source::Incoming(arriving) => arriving.size_hint(),
            Source::Made { left, .. } => left.map_or_else(SizeHint::default, SizeHint::with_exact),
        }
    }
}
