//! Messages of servers: written by the endpoint, read from the shards.

use bytes::{BufMut, Bytes, BytesMut};

use crate::client::{message, write_value};
use crate::reader::{Malformed, Reader};

/// Tags of messages that are told apart here and there.
pub mod tag {
    pub const AUTHENTICATION: u8 = b'R';
    pub const BACKEND_KEY: u8 = b'K';
    pub const BIND_COMPLETE: u8 = b'2';
    pub const CLOSE_COMPLETE: u8 = b'3';
    pub const COMMAND_COMPLETE: u8 = b'C';
    pub const COPY_DATA: u8 = b'd';
    pub const COPY_DONE: u8 = b'c';
    pub const COPY_IN: u8 = b'G';
    pub const COPY_OUT: u8 = b'H';
    pub const COPY_BOTH: u8 = b'W';
    pub const DATA_ROW: u8 = b'D';
    pub const EMPTY_QUERY: u8 = b'I';
    pub const ERROR: u8 = b'E';
    pub const NO_DATA: u8 = b'n';
    pub const NOTICE: u8 = b'N';
    pub const NOTIFICATION: u8 = b'A';
    pub const PARAMETER_DESCRIPTION: u8 = b't';
    pub const PARAMETER_STATUS: u8 = b'S';
    pub const PARSE_COMPLETE: u8 = b'1';
    pub const PORTAL_SUSPENDED: u8 = b's';
    pub const READY: u8 = b'Z';
    pub const ROW_DESCRIPTION: u8 = b'T';
}

/// The state of a transaction, as ReadyForQuery says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TxStatus {
    Idle,
    Open,
    Failed,
}

impl TxStatus {
    pub fn byte(self) -> u8 {
        match self {
            Self::Idle => b'I',
            Self::Open => b'T',
            Self::Failed => b'E',
        }
    }

    pub fn read(body: &[u8]) -> Result<Self, Malformed> {
        match body {
            b"I" => Ok(Self::Idle),
            b"T" => Ok(Self::Open),
            b"E" => Ok(Self::Failed),
            _ => Err(Malformed("an unknown state of a transaction")),
        }
    }
}

/// One column of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    pub name: String,
    pub table: u32,
    pub column: i16,
    pub oid: u32,
    pub length: i16,
    pub modifier: i32,
    pub format: i16,
}

pub fn read_row_description(body: Bytes) -> Result<Vec<Field>, Malformed> {
    let mut reader = Reader::new(body);
    let count = reader.count(19)?;
    let fields = (0..count).map(|_| {
        Ok(Field {
            name: reader.text()?,
            table: reader.u32()?,
            column: reader.i16()?,
            oid: reader.u32()?,
            length: reader.i16()?,
            modifier: reader.i32()?,
            format: reader.i16()?,
        })
    });
    let fields = fields.collect::<Result<_, _>>()?;
    reader.end()?;
    Ok(fields)
}

pub fn read_data_row(body: Bytes) -> Result<Vec<Option<Bytes>>, Malformed> {
    let mut reader = Reader::new(body);
    let count = reader.count(4)?;
    let values = (0..count).map(|_| reader.value()).collect::<Result<_, _>>()?;
    reader.end()?;
    Ok(values)
}

pub fn read_parameter_description(body: Bytes) -> Result<Vec<u32>, Malformed> {
    let mut reader = Reader::new(body);
    let count = reader.count(4)?;
    (0..count).map(|_| reader.u32()).collect()
}

/// The fields of an error or a notice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ErrorFields {
    pub fields: Vec<(u8, String)>,
}

impl ErrorFields {
    pub fn read(body: Bytes) -> Result<Self, Malformed> {
        let mut reader = Reader::new(body);
        let mut fields = Vec::new();
        loop {
            match reader.u8()? {
                0 => break,
                kind => {
                    let text = String::from_utf8_lossy(&reader.raw_text()?).into_owned();
                    fields.push((kind, text));
                }
            }
        }
        reader.end()?;
        Ok(Self { fields })
    }

    pub fn get(&self, kind: u8) -> Option<&str> {
        self.fields.iter().find(|(it, _)| *it == kind).map(|(_, text)| text.as_str())
    }

    /// The SQLSTATE.
    pub fn sqlstate(&self) -> &str {
        self.get(b'C').unwrap_or("XX000")
    }

    pub fn message(&self) -> &str {
        self.get(b'M').unwrap_or_default()
    }
}

/// The parts of an error that we make.
#[derive(Clone, Copy, Debug)]
pub struct Report<'a> {
    pub severity: &'a str,
    pub code: &'a str,
    pub message: &'a str,
    pub detail: Option<&'a str>,
    pub hint: Option<&'a str>,
}

fn fields(out: &mut BytesMut, report: &Report<'_>) {
    let fields = [
        (b'S', Some(report.severity)),
        (b'V', Some(report.severity)),
        (b'C', Some(report.code)),
        (b'M', Some(report.message)),
        (b'D', report.detail),
        (b'H', report.hint),
    ];
    for (kind, text) in fields {
        if let Some(text) = text {
            out.put_u8(kind);
            // A zero byte would end the field early.
            out.put_slice(text.replace('\0', "\u{fffd}").as_bytes());
            out.put_u8(0);
        }
    }
    out.put_u8(0);
}

pub fn write_error(out: &mut BytesMut, report: &Report<'_>) {
    message(out, tag::ERROR, |out| fields(out, report));
}

pub fn write_notice(out: &mut BytesMut, report: &Report<'_>) {
    message(out, tag::NOTICE, |out| fields(out, report));
}

pub fn write_ready(out: &mut BytesMut, status: TxStatus) {
    message(out, tag::READY, |out| out.put_u8(status.byte()));
}

pub fn write_command_complete(out: &mut BytesMut, done: &str) {
    message(out, tag::COMMAND_COMPLETE, |out| {
        out.put_slice(done.as_bytes());
        out.put_u8(0);
    });
}

/// A message without a body.
pub fn write_empty(out: &mut BytesMut, tag: u8) {
    message(out, tag, |_| {});
}

pub fn write_parameter_status(out: &mut BytesMut, name: &str, value: &str) {
    message(out, tag::PARAMETER_STATUS, |out| {
        out.put_slice(name.as_bytes());
        out.put_u8(0);
        out.put_slice(value.as_bytes());
        out.put_u8(0);
    });
}

pub fn read_parameter_status(body: Bytes) -> Result<(String, String), Malformed> {
    let mut reader = Reader::new(body);
    Ok((reader.text()?, reader.text()?))
}

pub fn write_backend_key(out: &mut BytesMut, process: u32, secret: u32) {
    message(out, tag::BACKEND_KEY, |out| {
        out.put_u32(process);
        out.put_u32(secret);
    });
}

/// The newest minor version that we speak, and the options that we do not know.
pub fn write_negotiate(out: &mut BytesMut, unknown: &[&str]) {
    message(out, b'v', |out| {
        out.put_u32(0);
        out.put_u32(unknown.len() as u32);
        for name in unknown {
            out.put_slice(name.as_bytes());
            out.put_u8(0);
        }
    });
}

pub fn write_authentication_ok(out: &mut BytesMut) {
    message(out, tag::AUTHENTICATION, |out| out.put_u32(0));
}

/// The names of the mechanisms that a client may choose from.
pub fn write_sasl(out: &mut BytesMut, mechanisms: &[&str]) {
    message(out, tag::AUTHENTICATION, |out| {
        out.put_u32(10);
        for name in mechanisms {
            out.put_slice(name.as_bytes());
            out.put_u8(0);
        }
        out.put_u8(0);
    });
}

pub fn write_sasl_continue(out: &mut BytesMut, data: &str) {
    message(out, tag::AUTHENTICATION, |out| {
        out.put_u32(11);
        out.put_slice(data.as_bytes());
    });
}

pub fn write_sasl_final(out: &mut BytesMut, data: &str) {
    message(out, tag::AUTHENTICATION, |out| {
        out.put_u32(12);
        out.put_slice(data.as_bytes());
    });
}

pub fn write_row_description(out: &mut BytesMut, fields: &[Field]) {
    message(out, tag::ROW_DESCRIPTION, |out| {
        out.put_u16(fields.len() as u16);
        for field in fields {
            out.put_slice(field.name.as_bytes());
            out.put_u8(0);
            out.put_u32(field.table);
            out.put_i16(field.column);
            out.put_u32(field.oid);
            out.put_i16(field.length);
            out.put_i32(field.modifier);
            out.put_i16(field.format);
        }
    });
}

pub fn write_data_row(out: &mut BytesMut, values: &[Option<Bytes>]) {
    message(out, tag::DATA_ROW, |out| {
        out.put_u16(values.len() as u16);
        for value in values {
            write_value(out, value.as_deref());
        }
    });
}

pub fn write_parameter_description(out: &mut BytesMut, types: &[u32]) {
    message(out, tag::PARAMETER_DESCRIPTION, |out| {
        out.put_u16(types.len() as u16);
        types.iter().for_each(|oid| out.put_u32(*oid));
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Frames;

    #[test]
    fn descriptions_rows_and_errors_are_read_as_they_were_written() {
        let field = Field {
            name: "id".into(),
            table: 5,
            column: 1,
            oid: 23,
            length: 4,
            modifier: -1,
            format: 0,
        };
        let mut frames = Frames::default();
        write_row_description(frames.buffer(), std::slice::from_ref(&field));
        write_data_row(frames.buffer(), &[Some(Bytes::from_static(b"7")), None]);
        let report = Report {
            severity: "ERROR",
            code: "0A000",
            message: "a\0b",
            detail: None,
            hint: Some("do this"),
        };
        write_error(frames.buffer(), &report);
        let mut next = || frames.next(1000).unwrap().unwrap().body();
        assert_eq!(read_row_description(next()).unwrap(), [field]);
        assert_eq!(read_data_row(next()).unwrap(), [Some(Bytes::from_static(b"7")), None]);
        let error = ErrorFields::read(next()).unwrap();
        assert_eq!((error.sqlstate(), error.message()), ("0A000", "a\u{fffd}b"));
        assert_eq!(error.get(b'H'), Some("do this"));
    }
}
