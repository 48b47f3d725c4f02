//! Messages of clients: read by the endpoint, written to the shards.

use bytes::{BufMut, Bytes, BytesMut};

use crate::frame::Frame;
use crate::reader::{Malformed, Reader};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientMessage {
    Query(String),
    Parse(Parse),
    Bind(Bind),
    Describe(Target, String),
    Execute {
        portal: String,
        rows_max: u32,
    },
    Close(Target, String),
    Sync,
    Flush,
    CopyData(Bytes),
    CopyDone,
    CopyFail(String),
    /// The answer to a request for authentication; what it holds depends on the request.
    Password(Bytes),
    FunctionCall,
    Terminate,
}

/// What Describe and Close mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    Statement,
    Portal,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parse {
    pub name: String,
    pub text: String,
    pub types: Vec<u32>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bind {
    pub portal: String,
    pub statement: String,
    /// None: all text. One: that one for all.
    pub formats: Vec<i16>,
    pub values: Vec<Option<Bytes>>,
    pub result_formats: Vec<i16>,
}

impl Bind {
    /// Whether a parameter is in binary format.
    pub fn is_binary(&self, index: usize) -> bool {
        match self.formats.as_slice() {
            [] => false,
            [one] => *one == 1,
            many => many.get(index) == Some(&1),
        }
    }
}

impl Target {
    fn read(byte: u8) -> Result<Self, Malformed> {
        match byte {
            b'S' => Ok(Self::Statement),
            b'P' => Ok(Self::Portal),
            _ => Err(Malformed("neither a statement nor a portal")),
        }
    }

    fn byte(self) -> u8 {
        match self {
            Self::Statement => b'S',
            Self::Portal => b'P',
        }
    }
}

impl ClientMessage {
    pub fn read(frame: &Frame) -> Result<Self, Malformed> {
        let mut reader = Reader::new(frame.body());
        let message = match frame.tag {
            b'Q' => Self::Query(reader.text()?),
            b'P' => Self::Parse(parse(&mut reader)?),
            b'B' => Self::Bind(bind(&mut reader)?),
            b'D' => Self::Describe(Target::read(reader.u8()?)?, reader.text()?),
            b'E' => {
                let portal = reader.text()?;
                let rows_max = u32::try_from(reader.i32()?).unwrap_or(0);
                Self::Execute { portal, rows_max }
            }
            b'C' => Self::Close(Target::read(reader.u8()?)?, reader.text()?),
            b'S' => Self::Sync,
            b'H' => Self::Flush,
            b'd' => Self::CopyData(reader.rest()),
            b'c' => Self::CopyDone,
            b'f' => Self::CopyFail(reader.text()?),
            b'p' => Self::Password(reader.rest()),
            b'F' => {
                reader.rest();
                Self::FunctionCall
            }
            b'X' => Self::Terminate,
            _ => return Err(Malformed("an unknown type of message")),
        };
        reader.end()?;
        Ok(message)
    }
}

fn parse(reader: &mut Reader) -> Result<Parse, Malformed> {
    let (name, text) = (reader.text()?, reader.text()?);
    let count = reader.count(4)?;
    let types = (0..count).map(|_| reader.u32()).collect::<Result<_, _>>()?;
    Ok(Parse { name, text, types })
}

fn bind(reader: &mut Reader) -> Result<Bind, Malformed> {
    let (portal, statement) = (reader.text()?, reader.text()?);
    let formats = formats(reader)?;
    let count = reader.count(4)?;
    let values = (0..count).map(|_| reader.value()).collect::<Result<Vec<_>, _>>()?;
    // Some clients send one format for no parameters.
    if formats.len() > 1 && formats.len() != values.len() {
        return Err(Malformed("the count of formats is not that of parameters"));
    }
    Ok(Bind { portal, statement, formats, values, result_formats: self::formats(reader)? })
}

fn formats(reader: &mut Reader) -> Result<Vec<i16>, Malformed> {
    let count = reader.count(2)?;
    let formats = (0..count).map(|_| reader.i16()).collect::<Result<Vec<_>, _>>()?;
    if formats.iter().any(|format| !matches!(format, 0 | 1)) {
        return Err(Malformed("an unknown format"));
    }
    Ok(formats)
}

/// Writes one message: its tag, its length, and what `body` writes.
pub fn message(out: &mut BytesMut, tag: u8, body: impl FnOnce(&mut BytesMut)) {
    out.put_u8(tag);
    let at = out.len();
    out.put_u32(0);
    body(out);
    let length = (out.len() - at) as u32;
    out[at..at + 4].copy_from_slice(&length.to_be_bytes());
}

fn text(out: &mut BytesMut, text: &str) {
    out.put_slice(text.as_bytes());
    out.put_u8(0);
}

pub fn write_query(out: &mut BytesMut, query: &str) {
    message(out, b'Q', |out| text(out, query));
}

pub fn write_parse(out: &mut BytesMut, name: &str, query: &str, types: &[u32]) {
    message(out, b'P', |out| {
        text(out, name);
        text(out, query);
        out.put_u16(types.len() as u16);
        types.iter().for_each(|oid| out.put_u32(*oid));
    });
}

pub fn write_bind(out: &mut BytesMut, bind: &Bind) {
    message(out, b'B', |out| {
        text(out, &bind.portal);
        text(out, &bind.statement);
        let put_formats = |out: &mut BytesMut, formats: &[i16]| {
            out.put_u16(formats.len() as u16);
            formats.iter().for_each(|format| out.put_i16(*format));
        };
        put_formats(out, &bind.formats);
        out.put_u16(bind.values.len() as u16);
        for value in &bind.values {
            write_value(out, value.as_deref());
        }
        put_formats(out, &bind.result_formats);
    });
}

/// A value with its length in front.
pub fn write_value(out: &mut BytesMut, value: Option<&[u8]>) {
    match value {
        None => out.put_i32(-1),
        Some(value) => {
            out.put_u32(value.len() as u32);
            out.put_slice(value);
        }
    }
}

pub fn write_describe(out: &mut BytesMut, target: Target, name: &str) {
    message(out, b'D', |out| {
        out.put_u8(target.byte());
        text(out, name);
    });
}

pub fn write_execute(out: &mut BytesMut, portal: &str, rows_max: u32) {
    message(out, b'E', |out| {
        text(out, portal);
        out.put_u32(rows_max);
    });
}

pub fn write_close(out: &mut BytesMut, target: Target, name: &str) {
    message(out, b'C', |out| {
        out.put_u8(target.byte());
        text(out, name);
    });
}

pub fn write_sync(out: &mut BytesMut) {
    message(out, b'S', |_| {});
}

pub fn write_flush(out: &mut BytesMut) {
    message(out, b'H', |_| {});
}

pub fn write_copy_data(out: &mut BytesMut, data: &[u8]) {
    message(out, b'd', |out| out.put_slice(data));
}

pub fn write_copy_done(out: &mut BytesMut) {
    message(out, b'c', |_| {});
}

pub fn write_copy_fail(out: &mut BytesMut, why: &str) {
    message(out, b'f', |out| text(out, why));
}

pub fn write_password(out: &mut BytesMut, bytes: &[u8]) {
    message(out, b'p', |out| out.put_slice(bytes));
}

pub fn write_terminate(out: &mut BytesMut) {
    message(out, b'X', |_| {});
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Frames;

    fn read_back(write: impl FnOnce(&mut BytesMut)) -> ClientMessage {
        let mut frames = Frames::default();
        write(frames.buffer());
        let frame = frames.next(10_000).unwrap().unwrap();
        assert!(frames.is_empty());
        ClientMessage::read(&frame).unwrap()
    }

    #[test]
    fn what_is_written_is_read_back() {
        let bind = Bind {
            portal: "p".into(),
            statement: "s".into(),
            formats: vec![1, 0],
            values: vec![Some(Bytes::from_static(b"\0\x01")), None],
            result_formats: vec![1],
        };
        assert_eq!(read_back(|out| write_bind(out, &bind)), ClientMessage::Bind(bind));
        let parse = Parse { name: "s".into(), text: "select $1".into(), types: vec![23] };
        assert_eq!(
            read_back(|out| write_parse(out, "s", "select $1", &[23])),
            ClientMessage::Parse(parse)
        );
        let execute = ClientMessage::Execute { portal: "p".into(), rows_max: 5 };
        assert_eq!(read_back(|out| write_execute(out, "p", 5)), execute);
        let close = ClientMessage::Close(Target::Statement, "s".into());
        assert_eq!(read_back(|out| write_close(out, Target::Statement, "s")), close);
        assert_eq!(read_back(write_sync), ClientMessage::Sync);
    }

    #[test]
    fn formats_apply_to_one_to_all_or_each() {
        let mut bind = Bind {
            portal: String::new(),
            statement: String::new(),
            formats: vec![],
            values: vec![None, None],
            result_formats: vec![],
        };
        assert!(!bind.is_binary(1));
        bind.formats = vec![1];
        assert!(bind.is_binary(1));
        bind.formats = vec![1, 0];
        assert!(bind.is_binary(0) && !bind.is_binary(1));
    }
}
