//! The eight types that a property can have, and their text.

use std::borrow::Cow;
use std::fmt;

use lazuli_http::date;

/// The earliest date-time that the service takes: the year 1601.
pub const DATE_TIME_TICKS_MIN: i64 = -11_644_473_600 * date::TICKS_PER_SECOND;

/// The types' names on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EdmType {
    Binary,
    Boolean,
    DateTime,
    Double,
    Guid,
    Int32,
    Int64,
    String,
}

impl EdmType {
    pub fn name(self) -> &'static str {
        match self {
            Self::Binary => "Edm.Binary",
            Self::Boolean => "Edm.Boolean",
            Self::DateTime => "Edm.DateTime",
            Self::Double => "Edm.Double",
            Self::Guid => "Edm.Guid",
            Self::Int32 => "Edm.Int32",
            Self::Int64 => "Edm.Int64",
            Self::String => "Edm.String",
        }
    }

    pub fn parse(name: &str) -> Option<Self> {
        let all = [
            Self::Binary,
            Self::Boolean,
            Self::DateTime,
            Self::Double,
            Self::Guid,
            Self::Int32,
            Self::Int64,
            Self::String,
        ];
        all.into_iter().find(|kind| kind.name() == name)
    }
}

/// The value of a property. Borrows where it can: a stored entity is filtered and written without being copied.
#[derive(Clone, Debug, PartialEq)]
pub enum Value<'a> {
    Binary(Cow<'a, [u8]>),
    Boolean(bool),
    /// Ticks of 100 ns since the Unix epoch.
    DateTime(i64),
    Double(f64),
    Guid(Guid),
    Int32(i32),
    Int64(i64),
    String(Cow<'a, str>),
}

impl Value<'_> {
    pub fn kind(&self) -> EdmType {
        match self {
            Self::Binary(_) => EdmType::Binary,
            Self::Boolean(_) => EdmType::Boolean,
            Self::DateTime(_) => EdmType::DateTime,
            Self::Double(_) => EdmType::Double,
            Self::Guid(_) => EdmType::Guid,
            Self::Int32(_) => EdmType::Int32,
            Self::Int64(_) => EdmType::Int64,
            Self::String(_) => EdmType::String,
        }
    }
}

/// The sixteen bytes of a GUID in the order in which they are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Guid(pub [u8; 16]);

impl Guid {
    /// Reads 32 hexadecimal digits, with or without dashes and braces around them.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let text = text.strip_prefix('{').and_then(|t| t.strip_suffix('}')).unwrap_or(text);
        let dashed = text.len() == 36;
        let mut digits = [0u8; 32];
        let mut count = 0;
        for (at, byte) in text.bytes().enumerate() {
            if dashed && matches!(at, 8 | 13 | 18 | 23) {
                if byte != b'-' {
                    return None;
                }
                continue;
            }
            let digit = char::from(byte).to_digit(16)?;
            *digits.get_mut(count)? = digit as u8;
            count += 1;
        }
        if count != 32 {
            return None;
        }
        let mut bytes = [0u8; 16];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = pair[0] << 4 | pair[1];
        }
        Some(Self(bytes))
    }
}

impl fmt::Display for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, byte) in self.0.iter().enumerate() {
            if matches!(at, 4 | 6 | 8 | 10) {
                f.write_str("-")?;
            }
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guid_is_read_in_its_forms_and_written_in_one() {
        let text = "c9da6455-213d-42c9-9a79-3e9149a57833";
        for form in [text, &text.to_uppercase(), &text.replace('-', ""), &format!("{{{text}}}")] {
            assert_eq!(Guid::parse(form).map(|guid| guid.to_string()).as_deref(), Some(text));
        }
        for bad in ["", "x", &text[1..], &text.replace('-', "_"), &format!("{text}0"), "ä"] {
            assert_eq!(Guid::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn the_earliest_date_time_is_the_year_1601() {
        assert_eq!(date::parse_iso8601("1601-01-01T00:00:00Z"), Some(DATE_TIME_TICKS_MIN));
    }
}
