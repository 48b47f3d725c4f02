//! From the first byte to the `open` of both sides.

use std::future::poll_fn;
use std::io;
use std::sync::Arc;

use bytes::{Buf, BufMut, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};

use super::machine::Machine;
use super::{Container, Io, Opening, Origin};
use crate::frame::{self, AMQP_HEADER, HEADER_BYTES, Kind, SASL_HEADER};
use crate::limits::{FRAME_BYTES_MIN, SASL_FRAME_BYTES_MAX};
use crate::link::{ConnectionHandle, Shared};
use crate::performative::{Close, Open, Performative, SaslInit, SaslMechanisms, SaslOutcome};
use crate::sasl::{Credentials, MECHANISMS, OUTCOME_AUTH, OUTCOME_OK};
use crate::state::{Error, condition};

impl<S: AsyncRead + AsyncWrite + Unpin> Io<S> {
    async fn fill(&mut self, count: usize) -> io::Result<()> {
        while self.input.len() < count {
            if poll_fn(|cx| self.poll_read(cx)).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(())
    }

    /// Takes a protocol header.
    async fn header(&mut self) -> io::Result<[u8; HEADER_BYTES]> {
        self.fill(HEADER_BYTES).await?;
        let mut header = [0; HEADER_BYTES];
        self.input.copy_to_slice(&mut header);
        Ok(header)
    }

    /// Takes the next frame of a kind that says something.
    async fn performative(&mut self, kind: Kind, size_max: usize) -> io::Result<Performative> {
        let bad = || io::Error::from(io::ErrorKind::InvalidData);
        loop {
            let framed = frame::split(&self.input, size_max).map_err(|_| bad())?;
            let Some(framed) = framed else {
                let have = self.input.len();
                self.fill(have + 1).await?;
                continue;
            };
            if framed.kind != kind {
                return Err(bad());
            }
            let (size, read) = (framed.size, framed.read().map_err(|_| bad())?);
            let performative = read.map(|(performative, _)| performative);
            self.input.advance(size);
            if let Some(performative) = performative {
                return Ok(performative);
            }
        }
    }

    async fn say(&mut self, out: &BytesMut) -> io::Result<()> {
        self.stream.write_all(out).await?;
        self.stream.flush().await
    }
}

/// Greets a client. An error means that the connection is over.
pub(super) async fn run<S>(
    io: &mut Io<S>,
    origin: Origin,
    container: &dyn Container,
    shared: &Arc<Shared>,
) -> io::Result<Machine>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut credentials = Credentials::Anonymous;
    let mut header = io.header().await?;
    if header == SASL_HEADER {
        credentials = sasl(io, container).await?;
        header = io.header().await?;
    }
    let mut out = BytesMut::new();
    out.put_slice(&AMQP_HEADER);
    if header != AMQP_HEADER {
        // A client of another version is told which one is spoken here.
        io.say(&out).await?;
        return Err(io::ErrorKind::InvalidData.into());
    }
    let size_max = shared.limits.frame_bytes_max as usize;
    io.say(&out).await?;
    let Performative::Open(open) = io.performative(Kind::Amqp, size_max).await? else {
        return Err(io::ErrorKind::InvalidData.into());
    };
    let opening = Opening {
        credentials: &credentials,
        open: &open,
        peer: origin.peer,
        secure: origin.secure,
        connection: ConnectionHandle(shared.clone()),
    };
    let opened = match open.max_frame_size {
        Some(size) if size < FRAME_BYTES_MIN => {
            Err(Error::new(condition::INVALID_FIELD, "max-frame-size is below 512."))
        }
        _ => container.open(opening),
    };
    let mut out = BytesMut::new();
    frame::write(&mut out, Kind::Amqp, 0, &Performative::Open(answer(container, shared)));
    match opened {
        Ok(peer) => Ok(Machine::new(shared.clone(), peer, &open, out)),
        Err(error) => {
            let close = Performative::Close(Close { error: Some(error) });
            frame::write(&mut out, Kind::Amqp, 0, &close);
            io.say(&out).await?;
            Err(io::ErrorKind::ConnectionRefused.into())
        }
    }
}

fn answer(container: &dyn Container, shared: &Arc<Shared>) -> Open {
    let limits = &shared.limits;
    Open {
        container_id: container.id().to_owned(),
        max_frame_size: Some(limits.frame_bytes_max),
        channel_max: Some(limits.sessions_max.saturating_sub(1)),
        idle_time_out: u32::try_from(limits.idle_timeout.as_millis()).ok(),
        ..Open::default()
    }
}

/// The SASL layer, up to its outcome.
async fn sasl<S>(io: &mut Io<S>, container: &dyn Container) -> io::Result<Credentials>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut out = BytesMut::new();
    out.put_slice(&SASL_HEADER);
    let mechanisms = MECHANISMS.iter().map(|name| (*name).into()).collect();
    let offer = Performative::SaslMechanisms(SaslMechanisms { mechanisms });
    frame::write(&mut out, Kind::Sasl, 0, &offer);
    io.say(&out).await?;
    let init = match io.performative(Kind::Sasl, SASL_FRAME_BYTES_MAX).await? {
        Performative::SaslInit(init) => init,
        _ => SaslInit::default(),
    };
    let credentials = Credentials::of(&init).filter(|credentials| container.admits(credentials));
    let code = if credentials.is_some() { OUTCOME_OK } else { OUTCOME_AUTH };
    let outcome = Performative::SaslOutcome(SaslOutcome { code, additional_data: None });
    let mut out = BytesMut::new();
    frame::write(&mut out, Kind::Sasl, 0, &outcome);
    io.say(&out).await?;
    credentials.ok_or_else(|| io::ErrorKind::PermissionDenied.into())
}
