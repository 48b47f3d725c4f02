//! Files of RDB, record by record: [`Reader`] is given what has been read so far, whoever reads it, and takes one record from
//! its beginning; [`Writer`] puts records behind one another. Neither keeps more than one record, and neither does any
//! reading or writing itself.

use super::reader::{self, BadPayload};
use super::{VERSION_MAX, checksum, extent, made, sealed, types, writer};
use crate::value::Value;

/// The longest record: a key with its value. The buffer of whoever reads need not become longer.
pub const RECORD_BYTES_MAX: usize = 1024 * 1024 * 1024;

const MAGIC: &[u8; 5] = b"REDIS";
const HEAD_BYTES: usize = 9;
/// Versions below this one have no checksum at their end.
const CHECKSUM_FROM: u16 = 5;

/// What stands in front of records that are no keys.
mod opcodes {
    pub(super) const SLOT: u8 = 244;
    pub(super) const LIBRARY: u8 = 245;
    pub(super) const OLD_LIBRARY: u8 = 246;
    pub(super) const MODULE: u8 = 247;
    pub(super) const IDLE: u8 = 248;
    pub(super) const FREQUENCY: u8 = 249;
    pub(super) const AUXILIARY: u8 = 250;
    pub(super) const SIZES: u8 = 251;
    pub(super) const EXPIRY_MS: u8 = 252;
    pub(super) const EXPIRY_S: u8 = 253;
    pub(super) const DATABASE: u8 = 254;
    pub(super) const END: u8 = 255;
}

/// Why a file cannot be read further.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BadFile {
    /// It does not begin as such files do.
    NoFile,
    /// Its version is newer than any that is known.
    Version(u16),
    Format,
    /// What was read is not what was written.
    Checksum,
    /// A key holds a value of a module of Redis, or of another type that is not known.
    UnknownType(u8, Vec<u8>),
    /// A library of a release candidate of Redis 7.
    OldLibrary,
    TooLong,
}

impl std::fmt::Display for BadFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoFile => write!(f, "this is no RDB file"),
            Self::Version(version) => {
                write!(f, "version {version} of RDB is not known; {VERSION_MAX} is the newest")
            }
            Self::Format => write!(f, "the RDB file is damaged"),
            Self::Checksum => write!(f, "the checksum of the RDB file is wrong"),
            Self::UnknownType(types::MODULE | types::MODULE_2, key) => {
                let key = String::from_utf8_lossy(key);
                write!(f, "the key `{key}` holds a value of a module of Redis")
            }
            Self::UnknownType(kind, key) => {
                let key = String::from_utf8_lossy(key);
                write!(f, "the key `{key}` holds a value of the unknown type {kind}")
            }
            Self::OldLibrary => write!(f, "functions of a release candidate cannot be read"),
            Self::TooLong => {
                write!(f, "a key with its value takes more than {RECORD_BYTES_MAX} bytes")
            }
        }
    }
}

/// What a file holds, one after another.
#[derive(Debug, PartialEq, Eq)]
pub enum Record<'b> {
    Key(Key<'b>),
    /// The code of a library of functions.
    Library(Vec<u8>),
    /// What whoever wrote the file says about itself.
    Note {
        name: Vec<u8>,
        value: Vec<u8>,
    },
    /// Something about tables, or about the use of keys.
    Other,
    /// The end. Behind it nothing belongs to the file.
    End,
}

/// A key with its value, as it lies in the file.
#[derive(Debug, PartialEq, Eq)]
pub struct Key<'b> {
    pub database: usize,
    pub key: Vec<u8>,
    pub expires_at_ms: Option<u64>,
    kind: u8,
    value: &'b [u8],
}

impl Key<'_> {
    /// What RESTORE takes.
    pub fn payload(&self, version: u16) -> Vec<u8> {
        sealed([&[self.kind], self.value].concat(), version)
    }

    pub fn value(&self) -> Result<Value, BadPayload> {
        made(self.kind, self.value)
    }

    /// How long the value is in the file.
    pub fn bytes(&self) -> usize {
        self.value.len()
    }
}

/// Reads one file. It remembers what stands in front of keys.
#[derive(Debug, Default)]
pub struct Reader {
    version: Option<u16>,
    database: usize,
    expires_at_ms: Option<u64>,
    checksum: u64,
}

impl Reader {
    /// The version of the file, once its beginning has been read.
    pub fn version(&self) -> u16 {
        self.version.unwrap_or(super::VERSION)
    }

    /// The record that the buffer begins with, and its length, which is to be taken off the buffer before the next call. None
    /// if it has not come whole: read as much again as there is before the next try, so that long records cost no more than
    /// twice their length.
    pub fn next<'b>(&mut self, buffer: &'b [u8]) -> Result<Option<(Record<'b>, usize)>, BadFile> {
        match self.record(buffer) {
            Ok((Record::End, length)) => Ok(Some((Record::End, length))),
            Ok((record, length)) => {
                self.checksum = checksum::continued(self.checksum, &buffer[..length]);
                Ok(Some((record, length)))
            }
            Err(Stop::Short) if buffer.len() >= RECORD_BYTES_MAX => Err(BadFile::TooLong),
            Err(Stop::Short) => Ok(None),
            Err(Stop::Bad(bad)) => Err(bad),
        }
    }

    fn record<'b>(&mut self, buffer: &'b [u8]) -> Result<(Record<'b>, usize), Stop> {
        let Some(version) = self.version else {
            self.version = Some(head(buffer)?);
            return Ok((Record::Other, HEAD_BYTES));
        };
        let mut reader = reader::Reader::new(buffer);
        let opcode = reader.byte()?;
        let record = match opcode {
            opcodes::END => {
                if version >= CHECKSUM_FROM {
                    let told = u64::from_le_bytes(reader.array()?);
                    let own = checksum::continued(self.checksum, &buffer[..1]);
                    // Zero stands for none.
                    if told != 0 && told != own {
                        return Err(Stop::Bad(BadFile::Checksum));
                    }
                }
                Record::End
            }
            opcodes::DATABASE => {
                self.database = reader.count()?;
                Record::Other
            }
            opcodes::EXPIRY_MS => {
                self.expires_at_ms = Some(u64::from_le_bytes(reader.array()?));
                Record::Other
            }
            opcodes::EXPIRY_S => {
                let seconds = u32::from_le_bytes(reader.array()?);
                self.expires_at_ms = Some(u64::from(seconds) * 1000);
                Record::Other
            }
            opcodes::AUXILIARY => Record::Note { name: reader.text()?, value: reader.text()? },
            opcodes::LIBRARY => Record::Library(reader.text()?),
            opcodes::OLD_LIBRARY => return Err(Stop::Bad(BadFile::OldLibrary)),
            opcode if opcode >= opcodes::SLOT => {
                other(&mut reader, opcode)?;
                Record::Other
            }
            kind => Record::Key(self.key(&mut reader, kind, buffer)?),
        };
        Ok((record, reader.at()))
    }

    fn key<'b>(
        &mut self,
        reader: &mut reader::Reader<'b>,
        kind: u8,
        buffer: &'b [u8],
    ) -> Result<Key<'b>, Stop> {
        let key = reader.text()?;
        let start = reader.at();
        if !types::is_known(kind) {
            return Err(Stop::Bad(BadFile::UnknownType(kind, key)));
        }
        extent::value(reader, kind)?;
        let value = &buffer[start..reader.at()];
        let (database, expires_at_ms) = (self.database, self.expires_at_ms.take());
        Ok(Key { database, key, expires_at_ms, kind, value })
    }
}

enum Stop {
    /// More has to come.
    Short,
    Bad(BadFile),
}

impl From<BadPayload> for Stop {
    fn from(bad: BadPayload) -> Self {
        if bad == BadPayload::Short { Self::Short } else { Self::Bad(BadFile::Format) }
    }
}

/// The version that a file begins with.
fn head(buffer: &[u8]) -> Result<u16, Stop> {
    let seen = &buffer[..buffer.len().min(MAGIC.len())];
    if !MAGIC.starts_with(seen) {
        return Err(Stop::Bad(BadFile::NoFile));
    }
    let digits = buffer.get(MAGIC.len()..HEAD_BYTES).ok_or(Stop::Short)?;
    let version = std::str::from_utf8(digits).ok().and_then(|it| it.parse().ok());
    match version {
        Some(version @ 1..=VERSION_MAX) => Ok(version),
        Some(version) => Err(Stop::Bad(BadFile::Version(version))),
        None => Err(Stop::Bad(BadFile::NoFile)),
    }
}

/// Passes a record that says nothing about a key: what Redis knows about its use, or sizes of tables.
fn other(reader: &mut reader::Reader<'_>, opcode: u8) -> Result<(), BadPayload> {
    match opcode {
        opcodes::SLOT => (0..3).try_for_each(|_| reader.count().map(drop)),
        opcodes::IDLE => reader.count().map(drop),
        opcodes::FREQUENCY => reader.byte().map(drop),
        opcodes::SIZES => (0..2).try_for_each(|_| reader.count().map(drop)),
        opcodes::MODULE => extent::module(reader),
        _ => Err(BadPayload::Format),
    }
}

/// Writes one file.
#[derive(Debug, Default)]
pub struct Writer {
    database: Option<usize>,
    checksum: u64,
}

impl Writer {
    /// The beginning of a file of this version.
    pub fn begin(version: u16, out: &mut Vec<u8>) -> Self {
        let mut writer = Self::default();
        writer.add(out, |out| out.extend_from_slice(format!("REDIS{version:04}").as_bytes()));
        writer
    }

    /// A key, with its value as DUMP gives it, without version and checksum.
    pub fn key(
        &mut self,
        database: usize,
        key: &[u8],
        expires_at_ms: Option<u64>,
        body: &[u8],
        out: &mut Vec<u8>,
    ) {
        let is_same = self.database == Some(database);
        self.database = Some(database);
        self.add(out, |out| {
            if !is_same {
                out.push(opcodes::DATABASE);
                writer::length(out, database);
            }
            if let Some(at) = expires_at_ms {
                out.push(opcodes::EXPIRY_MS);
                out.extend_from_slice(&at.to_le_bytes());
            }
            let (kind, value) = body.split_at(body.len().min(1));
            out.extend_from_slice(kind);
            writer::text(out, key);
            out.extend_from_slice(value);
        });
    }

    /// A library of functions.
    pub fn library(&mut self, code: &[u8], out: &mut Vec<u8>) {
        self.add(out, |out| library(out, code));
    }

    /// The end of the file.
    pub fn end(mut self, out: &mut Vec<u8>) {
        self.add(out, |out| out.push(opcodes::END));
        out.extend_from_slice(&self.checksum.to_le_bytes());
    }

    fn add(&mut self, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
        let start = out.len();
        write(out);
        self.checksum = checksum::continued(self.checksum, &out[start..]);
    }
}

fn library(out: &mut Vec<u8>, code: &[u8]) {
    out.push(opcodes::LIBRARY);
    writer::text(out, code);
}

/// Libraries of functions as a payload, as FUNCTION DUMP gives them.
pub fn dump_libraries<'a>(codes: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut body = Vec::new();
    codes.for_each(|code| library(&mut body, code));
    sealed(body, super::VERSION)
}

/// The libraries of such a payload.
pub fn restore_libraries(payload: &[u8]) -> Result<Vec<Vec<u8>>, BadPayload> {
    let (body, _) = super::unseal(payload)?;
    let mut reader = reader::Reader::new(body);
    let mut codes = Vec::new();
    while reader.at() < body.len() {
        if reader.byte()? != opcodes::LIBRARY {
            return Err(BadPayload::Format);
        }
        codes.push(reader.text()?);
    }
    Ok(codes)
}
