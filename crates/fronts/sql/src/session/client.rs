//! The client's side of a session: messages in, answers out.

use std::io;

use bytes::BytesMut;
use lazuli_net::Stream;
use lazuli_pg::{ClientMessage, Frame, Frames};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use crate::error::SqlError;
use crate::limits::{OUT_BYTES, WRITE_TIME_MAX};

pub(crate) struct Client {
    stream: Stream,
    frames: Frames,
    /// What is not sent yet.
    pub(crate) out: BytesMut,
    /// Whether something was sent since it was last set to false.
    pub(crate) has_sent: bool,
    pub(crate) message_bytes_max: usize,
    /// The length of the message that was read last.
    pub(crate) last_bytes: usize,
    /// Whether answers are kept here until they are complete.
    pub(crate) is_held: bool,
}

/// The client has left, or does not read what it is sent.
#[derive(Debug)]
pub(crate) struct Gone;

impl From<io::Error> for Gone {
    fn from(_: io::Error) -> Self {
        Self
    }
}

impl Client {
    pub(crate) fn new(stream: Stream, message_bytes_max: usize) -> Self {
        let (frames, out) = (Frames::default(), BytesMut::with_capacity(8 * 1024));
        Self {
            stream,
            frames,
            out,
            has_sent: false,
            message_bytes_max,
            last_bytes: 0,
            is_held: false,
        }
    }

    /// The next message, once all that is known was sent.
    pub(crate) async fn next_frame(&mut self) -> Result<Result<Frame, SqlError>, Gone> {
        loop {
            match self.frames.next(self.message_bytes_max) {
                Ok(Some(frame)) => return Ok(Ok(frame)),
                Ok(None) => {}
                Err(malformed) => return Ok(Err(malformed.into())),
            }
            self.send().await?;
            let buffer = self.frames.buffer();
            buffer.reserve(8 * 1024);
            if self.stream.read_buf(buffer).await? == 0 {
                return Err(Gone);
            }
        }
    }

    pub(crate) async fn next(&mut self) -> Result<Result<ClientMessage, SqlError>, Gone> {
        let frame = match self.next_frame().await? {
            Ok(frame) => frame,
            Err(error) => return Ok(Err(error)),
        };
        self.last_bytes = frame.whole.len();
        Ok(ClientMessage::read(&frame).map_err(SqlError::from))
    }

    /// Whether another whole message has come in.
    pub(crate) fn has_next(&mut self) -> bool {
        !self.frames.is_empty()
    }

    /// Sends all that is known.
    pub(crate) async fn send(&mut self) -> Result<(), Gone> {
        if self.out.is_empty() {
            return Ok(());
        }
        self.has_sent = true;
        let writing = async {
            self.stream.write_all(&self.out).await?;
            self.stream.flush().await
        };
        timeout(WRITE_TIME_MAX, writing).await.map_err(|_| Gone)??;
        self.out.clear();
        Ok(())
    }

    /// Sends what is known if it is a lot.
    pub(crate) async fn send_if_much(&mut self) -> Result<(), Gone> {
        if self.out.len() >= OUT_BYTES && !self.is_held { self.send().await } else { Ok(()) }
    }
}
