//! Live pages: a page is rendered every second, and sent when it differs (server-sent events).
//!
//! The script in the browser replaces the parts that are marked as live. Pages also work without it: they are complete when
//! they are loaded. A stream ends with its session, with the server, and after ten minutes in any case; browsers then open
//! another one by themselves.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use lazuli_http::{Body, BodyError, Response, StatusCode};
use lazuli_net::Stop;
use tokio::sync::OwnedSemaphorePermit;

use crate::Portal;
use crate::session::Session;

/// The most streams at the same time. Connections of the admin port are few, and commands need some too.
pub(crate) const STREAMS_MAX: usize = 24;
/// How often a page is rendered again before its stream ends.
const TURNS_MAX: u32 = 600;
/// After so many times without news a line shows that the stream is alive.
const SILENT_TURNS_MAX: u32 = 15;

/// One page that is open in a browser.
pub(crate) struct Stream {
    pub(crate) portal: Arc<Portal>,
    pub(crate) session: Session,
    /// The page, as its path with its query.
    pub(crate) of: String,
    pub(crate) stop: Stop,
    /// Held for as long as the stream lasts.
    pub(crate) _room: OwnedSemaphorePermit,
}

impl Stream {
    pub(crate) fn response(self) -> Response {
        let watched = Watched { stream: self, sent: None, turns: 0 };
        let mut response = Response::new(StatusCode::OK).with("content-type", "text/event-stream");
        response.body = Body::streamed(watched, Watched::next);
        response
    }
}

struct Watched {
    stream: Stream,
    /// The hash of what was sent last.
    sent: Option<u64>,
    turns: u32,
}

impl Watched {
    /// The next event, when there is one.
    async fn next(mut self) -> Result<Option<(Bytes, Self)>, BodyError> {
        let mut silent = 0;
        while self.turns < TURNS_MAX {
            let stream = &mut self.stream;
            tokio::select! {
                biased;
                () = stream.stop.stopped() => return Ok(None),
                () = tokio::time::sleep(stream.portal.refresh) => {}
            }
            self.turns += 1;
            silent += 1;
            if !stream.portal.sessions.lasts(&stream.session.id, Instant::now()) {
                return Ok(None);
            }
            let Some(text) = stream.portal.body_of(&stream.session, &stream.of).await else {
                return Ok(None);
            };
            let mut hasher = DefaultHasher::new();
            text.hash(&mut hasher);
            let made = Some(hasher.finish());
            if made != self.sent {
                self.sent = made;
                // As JSON the text is one line.
                let event = format!("data: {}\n\n", serde_json::Value::String(text));
                return Ok(Some((event.into(), self)));
            }
            if silent >= SILENT_TURNS_MAX {
                return Ok(Some((Bytes::from_static(b": nothing new\n\n"), self)));
            }
        }
        Ok(None)
    }
}
