//! The types of key columns, their values as PostgreSQL sends them, and the hash of a key.
//!
//! Everything here can be said in SQL too, because triggers on the shards must agree: [`canonical_text`] of a part is
//! what the expression of [`ColumnType::canonical_sql`] yields, and [`hash_slot`] is `sha256` over the parts' texts with
//! the byte 1f between them. What is not certain to be the value that PostgreSQL reads is refused, never guessed.

use std::fmt;

use bytes::Bytes;
use lazuli_shardmap::{KeyPart, KeyType};
use sha2::{Digest, Sha256};

/// The type of a key column in PostgreSQL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnType {
    Int2,
    Int4,
    Int8,
    Text,
    Varchar,
    Uuid,
    Bytea,
    Bool,
    Date,
    Timestamp,
    Timestamptz,
}

/// Why a value is no value of a key column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyError(pub String);

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Between PostgreSQL's epoch, 2000-01-01, and that of date-time keys, 0001-01-01.
const DAYS_TO_2000: i64 = 730_119;
const TICKS_PER_DAY: i64 = 864_000_000_000;
const TICKS_PER_MICROSECOND: i64 = 10;

impl ColumnType {
    pub const ALL: [Self; 11] = [
        Self::Int2,
        Self::Int4,
        Self::Int8,
        Self::Text,
        Self::Varchar,
        Self::Uuid,
        Self::Bytea,
        Self::Bool,
        Self::Date,
        Self::Timestamp,
        Self::Timestamptz,
    ];

    /// As `format_type` of PostgreSQL names it, without a length.
    pub fn name(self) -> &'static str {
        match self {
            Self::Int2 => "smallint",
            Self::Int4 => "integer",
            Self::Int8 => "bigint",
            Self::Text => "text",
            Self::Varchar => "character varying",
            Self::Uuid => "uuid",
            Self::Bytea => "bytea",
            Self::Bool => "boolean",
            Self::Date => "date",
            Self::Timestamp => "timestamp without time zone",
            Self::Timestamptz => "timestamp with time zone",
        }
    }

    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|column| column.name() == name)
    }

    /// The type's object identifier, the same in every PostgreSQL database.
    pub fn oid(self) -> u32 {
        match self {
            Self::Int2 => 21,
            Self::Int4 => 23,
            Self::Int8 => 20,
            Self::Text => 25,
            Self::Varchar => 1043,
            Self::Uuid => 2950,
            Self::Bytea => 17,
            Self::Bool => 16,
            Self::Date => 1082,
            Self::Timestamp => 1114,
            Self::Timestamptz => 1184,
        }
    }

    pub fn of_oid(oid: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|column| column.oid() == oid)
    }

    /// The type of the key part. All integers are one, so tables whose keys differ in width can share a map.
    pub fn key_type(self) -> KeyType {
        match self {
            Self::Int2 | Self::Int4 | Self::Int8 => KeyType::Int64,
            Self::Text | Self::Varchar => KeyType::Text,
            Self::Uuid => KeyType::Uuid,
            Self::Bytea => KeyType::Bytes,
            Self::Bool => KeyType::Bool,
            Self::Date | Self::Timestamp | Self::Timestamptz => KeyType::DateTime,
        }
    }

    /// Whether a value of the other type can be compared with this one without being changed by a cast.
    pub fn is_comparable_with(self, other: Self) -> bool {
        match self.key_type() {
            KeyType::DateTime => self == other,
            kind => kind == other.key_type(),
        }
    }

    /// An SQL expression over a column (already quoted) whose value is [`canonical_text`] of the part.
    pub fn canonical_sql(self, column: &str) -> String {
        let micros = |since: &str| {
            format!("((extract(epoch from {column} - {since}) * 1000000)::bigint)::text")
        };
        match self {
            Self::Int2 | Self::Int4 | Self::Int8 | Self::Uuid | Self::Text | Self::Varchar => {
                format!("{column}::text")
            }
            Self::Bytea => format!("encode({column}, 'hex')"),
            Self::Bool => format!("CASE WHEN {column} THEN 't' ELSE 'f' END"),
            Self::Date => format!("(({column} - date '2000-01-01')::bigint * 86400000000)::text"),
            Self::Timestamp => micros("timestamp '2000-01-01'"),
            Self::Timestamptz => micros("timestamptz '2000-01-01 00:00:00+00'"),
        }
    }

    /// An SQL expression over columns (already quoted) whose value is the [`hash_slot`] of their key, an integer.
    pub fn slot_sql(columns: &[(Self, &str)]) -> String {
        let texts: Vec<_> =
            columns.iter().map(|(column, name)| column.canonical_sql(name)).collect();
        let joined = texts.join(" || chr(31) || ");
        let hash = format!("sha256(convert_to({joined}, 'UTF8'))");
        format!("(get_byte({hash}, 0) * 256 + get_byte({hash}, 1))")
    }

    /// The part that a value in text format means, as a literal or parameter of PostgreSQL.
    pub fn parse(self, text: &str) -> Result<KeyPart, KeyError> {
        let bad = || KeyError(format!("{text:?} is no value of type {}", self.name()));
        let integer = || text.trim_matches(' ').parse::<i64>().map_err(|_| bad());
        Ok(match self {
            Self::Int2 => KeyPart::Int64(i16::try_from(integer()?).map_err(|_| bad())?.into()),
            Self::Int4 => KeyPart::Int64(i32::try_from(integer()?).map_err(|_| bad())?.into()),
            Self::Int8 => KeyPart::Int64(integer()?),
            Self::Text | Self::Varchar => KeyPart::Text(text.to_owned()),
            Self::Uuid => KeyPart::Uuid(uuid(text).ok_or_else(bad)?),
            Self::Bytea => KeyPart::Bytes(bytea(text).ok_or_else(bad)?),
            Self::Bool => KeyPart::Bool(boolean(text).ok_or_else(bad)?),
            Self::Date => KeyPart::DateTime(date(text).ok_or_else(bad)? * TICKS_PER_DAY),
            Self::Timestamp => KeyPart::DateTime(timestamp(text, false).ok_or_else(bad)?),
            Self::Timestamptz => KeyPart::DateTime(timestamp(text, true).ok_or_else(bad)?),
        })
    }

    /// The part that a value in binary format means. `oid` is the type that the value was sent as, which may be another
    /// integer or text type than the column's; 0 means the column's own.
    pub fn decode(self, oid: u32, bytes: &[u8]) -> Result<KeyPart, KeyError> {
        let bad = || {
            let length = bytes.len();
            KeyError(format!("{length} binary bytes of type {oid} are no {}", self.name()))
        };
        let sent = if oid == 0 { Some(self) } else { Self::of_oid(oid) };
        let sent = sent.filter(|sent| self.is_comparable_with(*sent)).ok_or_else(bad)?;
        let part = match sent {
            Self::Int2 => {
                bytes.try_into().ok().map(|it| KeyPart::Int64(i16::from_be_bytes(it).into()))
            }
            Self::Int4 => {
                bytes.try_into().ok().map(|it| KeyPart::Int64(i32::from_be_bytes(it).into()))
            }
            Self::Int8 => bytes.try_into().ok().map(|it| KeyPart::Int64(i64::from_be_bytes(it))),
            Self::Text | Self::Varchar => {
                std::str::from_utf8(bytes).ok().map(|it| KeyPart::Text(it.to_owned()))
            }
            Self::Uuid => bytes.try_into().ok().map(KeyPart::Uuid),
            Self::Bytea => Some(KeyPart::Bytes(Bytes::copy_from_slice(bytes))),
            Self::Bool => match bytes {
                [0] => Some(KeyPart::Bool(false)),
                [1] => Some(KeyPart::Bool(true)),
                _ => None,
            },
            Self::Date => bytes.try_into().ok().and_then(|it| {
                let days = i64::from(i32::from_be_bytes(it)) + DAYS_TO_2000;
                days.checked_mul(TICKS_PER_DAY).map(KeyPart::DateTime)
            }),
            Self::Timestamp | Self::Timestamptz => bytes.try_into().ok().and_then(|it| {
                let ticks = i64::from_be_bytes(it).checked_mul(TICKS_PER_MICROSECOND)?;
                Some(KeyPart::DateTime(ticks.checked_add(DAYS_TO_2000 * TICKS_PER_DAY)?))
            }),
        };
        part.ok_or_else(bad)
    }
}

/// A part as the hash reads it.
pub fn canonical_text(part: &KeyPart) -> String {
    match part {
        KeyPart::Int32(value) => value.to_string(),
        KeyPart::Int64(value) => value.to_string(),
        KeyPart::Uuid(bytes) => {
            let hex = hex(bytes);
            let groups = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]];
            groups.join("-")
        }
        KeyPart::Bytes(bytes) => hex(bytes),
        KeyPart::Text(text) => text.clone(),
        KeyPart::DateTime(ticks) => {
            ((ticks - DAYS_TO_2000 * TICKS_PER_DAY) / TICKS_PER_MICROSECOND).to_string()
        }
        KeyPart::Bool(value) => if *value { "t" } else { "f" }.to_owned(),
    }
}

/// The slot of a key in a hash map.
pub fn hash_slot(key: &[KeyPart]) -> u16 {
    let mut hash = Sha256::new();
    for (index, part) in key.iter().enumerate() {
        if index > 0 {
            hash.update([0x1f]);
        }
        hash.update(canonical_text(part));
    }
    let digest = hash.finalize();
    u16::from_be_bytes([digest[0], digest[1]])
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> =
        text.bytes().map(|byte| char::from(byte).to_digit(16).map(|it| it as u8)).collect();
    let digits = digits?;
    let pairs = digits.chunks_exact(2);
    pairs.remainder().is_empty().then(|| pairs.map(|pair| pair[0] << 4 | pair[1]).collect())
}

fn uuid(text: &str) -> Option<[u8; 16]> {
    let inner = text.trim_matches(' ');
    let inner = match inner.strip_prefix('{') {
        Some(inner) => inner.strip_suffix('}')?,
        None => inner,
    };
    unhex(&inner.replace('-', ""))?.try_into().ok()
}

/// Only the hexadecimal form; the older escape form is refused.
fn bytea(text: &str) -> Option<Bytes> {
    unhex(text.strip_prefix("\\x")?).map(Bytes::from)
}

fn boolean(text: &str) -> Option<bool> {
    let text = text.trim_matches(' ').to_ascii_lowercase();
    match text.as_str() {
        "t" | "true" | "y" | "yes" | "on" | "1" => Some(true),
        "f" | "false" | "n" | "no" | "off" | "0" => Some(false),
        _ => None,
    }
}

/// Days since 0001-01-01 of an ISO date.
fn date(text: &str) -> Option<i64> {
    let mut fields = text.trim_matches(' ').split('-');
    let mut number = |digits: usize| {
        let field = fields.next().filter(|it| it.len() == digits)?;
        field.bytes().all(|byte| byte.is_ascii_digit()).then(|| field.parse::<i64>().ok())?
    };
    let (year, month, day) = (number(4)?, number(2)?, number(2)?);
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let lengths = [31, if is_leap { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let before = usize::try_from(month - 1).ok()?;
    let length = *lengths.get(before)?;
    if fields.next().is_some() || year < 1 || day < 1 || day > length {
        return None;
    }
    let years = year - 1;
    let before: i64 = lengths.iter().take(before).sum();
    Some(years * 365 + years / 4 - years / 100 + years / 400 + before + day - 1)
}

/// Ticks of an ISO time stamp; with a zone it must be said, because the session's zone is not known here.
fn timestamp(text: &str, has_zone: bool) -> Option<i64> {
    let text = text.trim_matches(' ');
    let (day, rest) = text.split_once([' ', 'T'])?;
    let (clock, offset_s) = if has_zone { zone(rest)? } else { (rest, 0) };
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, ""));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let mut fields = clock
        .split(':')
        .map(|it| it.parse::<i64>().ok().filter(|_| it.len() == 2 && is_number(it)));
    let (hour, minute) = (fields.next()??, fields.next()??);
    let second = fields.next().unwrap_or(Some(0))?;
    if hour > 23 || minute > 59 || second > 59 || fields.next().is_some() {
        return None;
    }
    if fraction.len() > 6 || !is_number(fraction) {
        return None;
    }
    let micros = format!("{fraction:0<6}").parse::<i64>().ok()?;
    let seconds = hour * 3600 + minute * 60 + second - offset_s;
    Some(date(day)? * TICKS_PER_DAY + (seconds * 1_000_000 + micros) * TICKS_PER_MICROSECOND)
}

/// Splits the offset off the end: `Z`, `+02`, `-05:30`.
fn zone(text: &str) -> Option<(&str, i64)> {
    if let Some(clock) = text.strip_suffix('Z') {
        return Some((clock, 0));
    }
    let (clock, offset) = text.split_at(text.rfind(['+', '-'])?);
    let (sign, digits) = offset.split_at(1);
    let (hours, minutes) = digits.split_once(':').unwrap_or((digits, "00"));
    if hours.len() != 2 || minutes.len() != 2 {
        return None;
    }
    let seconds = hours.parse::<i64>().ok()? * 3600 + minutes.parse::<i64>().ok()? * 60;
    Some((clock, if sign == "-" { -seconds } else { seconds }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_binary_forms_of_one_value_are_one_part() {
        let int = |column: ColumnType, oid, bytes: &[u8]| column.decode(oid, bytes).unwrap();
        assert_eq!(ColumnType::Int4.parse("-7").unwrap(), int(ColumnType::Int4, 21, &[0xff, 0xf9]));
        assert_eq!(ColumnType::Int8.parse("7").unwrap(), int(ColumnType::Int8, 23, &[0, 0, 0, 7]));
        let stamp = ColumnType::Timestamptz.parse("2000-01-01 01:00:00.5+01").unwrap();
        assert_eq!(stamp, int(ColumnType::Timestamptz, 0, &500_000_i64.to_be_bytes()));
        let day = ColumnType::Date.parse("2000-03-01").unwrap();
        assert_eq!(day, int(ColumnType::Date, 1082, &60_i32.to_be_bytes()));
        let id = "550E8400-e29b-41d4-a716-446655440000";
        let part = ColumnType::Uuid.parse(id).unwrap();
        assert_eq!(canonical_text(&part), id.to_lowercase());
    }

    #[test]
    fn what_is_no_value_of_the_type_is_refused() {
        for (column, text) in [
            (ColumnType::Int2, "40000"),
            (ColumnType::Int4, "1.0"),
            (ColumnType::Int8, ""),
            (ColumnType::Uuid, "55"),
            (ColumnType::Bytea, "abc"),
            (ColumnType::Date, "2001-02-29"),
            (ColumnType::Date, "tomorrow"),
            (ColumnType::Timestamptz, "2001-02-28 00:00:00"),
            (ColumnType::Timestamp, "2001-02-28 24:00:00"),
        ] {
            assert!(column.parse(text).is_err(), "{column:?} {text:?}");
        }
        assert!(ColumnType::Int4.decode(701, &[0; 8]).is_err());
        assert!(ColumnType::Int4.decode(23, &[0; 3]).is_err());
        assert!(ColumnType::Timestamp.decode(1184, &[0; 8]).is_err());
    }

    #[test]
    fn integers_of_all_widths_hash_alike() {
        let slot = |column: ColumnType| hash_slot(&[column.parse("42").unwrap()]);
        assert_eq!(slot(ColumnType::Int2), slot(ColumnType::Int8));
        // select get_byte(sha256('42'), 0) * 256 + get_byte(sha256('42'), 1)
        assert_eq!(slot(ColumnType::Int4), 0x7347);
    }
}
