//! A plain client, for tests and benchmarks: it speaks frames and keeps no state, so that it can also say what no decent
//! client would.

use std::io;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::frame::{self, AMQP_HEADER, Kind, SASL_HEADER};
use crate::performative::{
    Attach, Begin, Flow, Open, Performative, RCV_FIRST, RCV_SECOND, RECEIVER, SENDER,
    SND_UNSETTLED, SaslInit, Transfer,
};
use crate::terminus::Terminus;

/// The largest frame that it takes.
const FRAME_BYTES_MAX: u32 = 1024 * 1024;

pub struct Client<S> {
    stream: S,
    input: BytesMut,
    out: BytesMut,
}

/// What came in one frame.
#[derive(Debug)]
pub struct Heard {
    pub channel: u16,
    pub performative: Performative,
    pub payload: Bytes,
}

fn bad(text: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text)
}

impl<S: AsyncRead + AsyncWrite + Unpin> Client<S> {
    pub fn new(stream: S) -> Self {
        Self { stream, input: BytesMut::new(), out: BytesMut::new() }
    }

    /// Greets the server as anybody and opens the connection and session 0.
    pub async fn open(stream: S) -> io::Result<Self> {
        let mut client = Self::new(stream);
        client.sasl("ANONYMOUS", Bytes::new()).await?;
        client.say(0, Performative::Open(Self::hello()));
        let begin = Begin { incoming_window: 5_000, outgoing_window: 5_000, ..Begin::default() };
        client.say(0, Performative::Begin(begin));
        client.flush().await?;
        match client.next().await?.performative {
            Performative::Open(_) => {}
            _ => return Err(bad("open was expected")),
        }
        match client.next().await?.performative {
            Performative::Begin(_) => Ok(client),
            _ => Err(bad("begin was expected")),
        }
    }

    /// What it opens connections with.
    pub fn hello() -> Open {
        Open {
            container_id: "plain client".into(),
            hostname: Some("localhost".into()),
            max_frame_size: Some(FRAME_BYTES_MAX),
            ..Open::default()
        }
    }

    /// The SASL layer, and the header of what follows it.
    pub async fn sasl(&mut self, mechanism: &str, response: Bytes) -> io::Result<()> {
        self.bytes(&SASL_HEADER);
        let mechanism = mechanism.into();
        let init = SaslInit { mechanism, initial_response: Some(response), hostname: None };
        frame::write(&mut self.out, Kind::Sasl, 0, &Performative::SaslInit(init));
        self.flush().await?;
        if self.header().await? != SASL_HEADER {
            return Err(bad("the SASL header was expected"));
        }
        loop {
            match self.next().await?.performative {
                Performative::SaslMechanisms(_) => {}
                Performative::SaslOutcome(outcome) if outcome.code == 0 => break,
                _ => return Err(bad("the server does not let us in")),
            }
        }
        self.bytes(&AMQP_HEADER);
        self.flush().await?;
        match self.header().await? {
            AMQP_HEADER => Ok(()),
            _ => Err(bad("the AMQP header was expected")),
        }
    }

    /// Puts bytes in line.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.out.put_slice(bytes);
    }

    /// Puts a frame without payload in line.
    pub fn say(&mut self, channel: u16, performative: Performative) {
        frame::write(&mut self.out, Kind::Amqp, channel, &performative);
    }

    /// Puts one frame of a message in line.
    pub fn transfer(&mut self, channel: u16, transfer: &Transfer, payload: &[u8]) {
        let at = frame::begin(&mut self.out, Kind::Amqp, channel);
        transfer.write(&mut self.out);
        self.out.put_slice(payload);
        frame::finish(&mut self.out, at);
    }

    /// Wants a link on which it sends.
    pub fn attach_sender(&mut self, handle: u32, target: Terminus) {
        self.say(
            0,
            Performative::Attach(Box::new(Attach {
                name: format!("sender {handle}"),
                handle,
                role: SENDER,
                snd_settle_mode: Some(SND_UNSETTLED),
                rcv_settle_mode: Some(RCV_FIRST),
                source: Some(Terminus::source("plain client")),
                target: Some(target),
                initial_delivery_count: Some(0),
                ..Attach::default()
            })),
        );
    }

    /// Wants a link on which it receives and settles second.
    pub fn attach_receiver(&mut self, handle: u32, source: Terminus) {
        self.say(
            0,
            Performative::Attach(Box::new(Attach {
                name: format!("receiver {handle}"),
                handle,
                role: RECEIVER,
                snd_settle_mode: Some(SND_UNSETTLED),
                rcv_settle_mode: Some(RCV_SECOND),
                source: Some(source),
                target: Some(Terminus::target("plain client")),
                ..Attach::default()
            })),
        );
    }

    /// Gives credit on a link, seen from this count of deliveries.
    pub fn credit(&mut self, handle: u32, delivery_count: u32, credit: u32, drain: bool) {
        self.say(
            0,
            Performative::Flow(Flow {
                next_incoming_id: Some(0),
                incoming_window: u32::MAX / 4,
                next_outgoing_id: 0,
                outgoing_window: 5_000,
                handle: Some(handle),
                delivery_count: Some(delivery_count),
                link_credit: Some(credit),
                drain: Some(drain),
                ..Flow::default()
            }),
        );
    }

    /// Writes everything that is in line.
    pub async fn flush(&mut self) -> io::Result<()> {
        let out = self.out.split();
        self.stream.write_all(&out).await?;
        self.stream.flush().await
    }

    async fn fill(&mut self) -> io::Result<()> {
        match self.stream.read_buf(&mut self.input).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }

    /// Takes a protocol header.
    pub async fn header(&mut self) -> io::Result<[u8; 8]> {
        while self.input.len() < 8 {
            self.fill().await?;
        }
        let mut header = [0; 8];
        self.input.copy_to_slice(&mut header);
        Ok(header)
    }

    /// The next frame that says something.
    pub async fn next(&mut self) -> io::Result<Heard> {
        loop {
            if let Some(heard) = self.heard()? {
                return Ok(heard);
            }
            self.fill().await?;
        }
    }

    /// The next frame if it has come already.
    pub fn heard(&mut self) -> io::Result<Option<Heard>> {
        loop {
            let framed = frame::split(&self.input, FRAME_BYTES_MAX as usize);
            let Some(framed) = framed.map_err(|_| bad("a frame is malformed"))? else {
                return Ok(None);
            };
            let (size, channel) = (framed.size, framed.channel);
            let read = framed.read().map_err(|_| bad("a performative is malformed"))?;
            let read =
                read.map(|(performative, payload)| (performative, Bytes::copy_from_slice(payload)));
            self.input.advance(size);
            if let Some((performative, payload)) = read {
                return Ok(Some(Heard { channel, performative, payload }));
            }
        }
    }
}
