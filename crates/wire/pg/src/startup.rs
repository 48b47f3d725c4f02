//! What a client sends before the first message: a request for encryption, a cancel, or its parameters.

use bytes::{BufMut, Bytes, BytesMut};

use crate::reader::{Malformed, Reader};

const PROTOCOL_3: u32 = 3;
const CANCEL: u32 = 80_877_102;
const SSL: u32 = 80_877_103;
const GSS: u32 = 80_877_104;

/// The longest packet before the first message, as PostgreSQL has it.
pub const STARTUP_BYTES_MAX: usize = 10_000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StartupPacket {
    Ssl,
    Gss,
    Cancel { process: u32, secret: u32 },
    Startup(Startup),
}

/// The parameters of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Startup {
    pub minor: u16,
    /// In the order in which they came.
    pub parameters: Vec<(String, String)>,
}

impl Startup {
    pub fn get(&self, name: &str) -> Option<&str> {
        self.parameters.iter().find(|(it, _)| it == name).map(|(_, value)| value.as_str())
    }

    /// Options of the protocol that the client would like; we know none.
    pub fn protocol_options(&self) -> impl Iterator<Item = &str> {
        self.parameters.iter().map(|(name, _)| name.as_str()).filter(|it| it.starts_with("_pq_."))
    }
}

impl StartupPacket {
    /// Reads a packet without its length.
    pub fn read(body: Bytes) -> Result<Self, Malformed> {
        let mut reader = Reader::new(body);
        match reader.u32()? {
            SSL => Ok(Self::Ssl),
            GSS => Ok(Self::Gss),
            CANCEL => Ok(Self::Cancel { process: reader.u32()?, secret: reader.u32()? }),
            version if version >> 16 == PROTOCOL_3 => {
                let mut parameters = Vec::new();
                loop {
                    let name = reader.text()?;
                    if name.is_empty() {
                        break;
                    }
                    parameters.push((name, reader.text()?));
                }
                reader.end()?;
                Ok(Self::Startup(Startup { minor: version as u16, parameters }))
            }
            _ => Err(Malformed("unsupported frontend protocol")),
        }
    }
}

/// The request for TLS.
pub fn ssl_request() -> [u8; 8] {
    let mut packet = [0; 8];
    packet[..4].copy_from_slice(&8_u32.to_be_bytes());
    packet[4..].copy_from_slice(&SSL.to_be_bytes());
    packet
}

pub fn cancel_request(process: u32, secret: u32) -> Bytes {
    let mut out = BytesMut::with_capacity(16);
    out.put_u32(16);
    out.put_u32(CANCEL);
    out.put_u32(process);
    out.put_u32(secret);
    out.freeze()
}

/// The parameters of a session, as a client sends them.
pub fn startup(out: &mut BytesMut, parameters: &[(&str, &str)]) {
    let length: usize = parameters.iter().map(|(name, value)| name.len() + value.len() + 2).sum();
    out.put_u32((length + 9) as u32);
    out.put_u32(PROTOCOL_3 << 16);
    for (name, value) in parameters {
        out.put_slice(name.as_bytes());
        out.put_u8(0);
        out.put_slice(value.as_bytes());
        out.put_u8(0);
    }
    out.put_u8(0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_come_back_as_they_were_sent() {
        let mut out = BytesMut::new();
        startup(&mut out, &[("user", "ada"), ("database", "shop")]);
        let packet = out.freeze();
        assert_eq!(packet.len() as u32, u32::from_be_bytes(packet[..4].try_into().unwrap()));
        let StartupPacket::Startup(read) = StartupPacket::read(packet.slice(4..)).unwrap() else {
            panic!("no startup");
        };
        assert_eq!((read.get("user"), read.get("database")), (Some("ada"), Some("shop")));
        assert_eq!(read.get("options"), None);
    }

    #[test]
    fn other_packets_are_told_apart_and_rubbish_is_refused() {
        assert_eq!(
            StartupPacket::read(Bytes::copy_from_slice(&ssl_request()[4..])),
            Ok(StartupPacket::Ssl)
        );
        let cancel = StartupPacket::read(cancel_request(7, 9).slice(4..)).unwrap();
        assert_eq!(cancel, StartupPacket::Cancel { process: 7, secret: 9 });
        for rubbish in [&b""[..], b"\0\0", b"\0\x02\0\0", b"\0\x03\0\0user", b"\x04\xd2\x16\x2e\0"]
        {
            assert!(StartupPacket::read(Bytes::copy_from_slice(rubbish)).is_err(), "{rubbish:?}");
        }
    }
}
