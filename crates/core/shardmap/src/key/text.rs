//! Keys as people write them: `42`, `eu,1001`, `0190a5b6-…`.
//!
//! Parts stand in the schema's order with commas between them. In text a comma and a backslash are
//! written with a backslash before them, and control characters as `\u{1b}`, so a printed key can
//! always be pasted back and never steers a terminal. Bytes are hexadecimal.

use std::fmt::{self, Write};
use std::str::FromStr;

use lazuli_env::Id;
use lazuli_store::{Error, Result};

use super::{KeyPart, KeySchema, KeyType, date};

impl KeySchema {
    /// Reads a whole key. Refuses what is not of this schema with `key-type`.
    pub fn parse(&self, text: &str) -> Result<Vec<KeyPart>> {
        let parts = split_parts(text).ok_or_else(|| unreadable(text, "text with good escapes"))?;
        if parts.len() != self.types().len() {
            return Err(unreadable(text, self));
        }
        parts.into_iter().zip(self.types()).map(|(part, want)| parse_part(*want, part)).collect()
    }

    /// The text that `parse` reads back.
    pub fn print(key: &[KeyPart]) -> String {
        let mut text = String::new();
        for (nth, part) in key.iter().enumerate() {
            if nth > 0 {
                text.push(',');
            }
            print_part(&mut text, part);
        }
        text
    }
}

fn unreadable(text: &str, want: impl fmt::Display) -> Error {
    let shown: String = text.chars().take(64).collect();
    Error::invalid("key-type", format!("{shown:?} is not {want}"))
}

/// Cuts at commas without a backslash before them, and takes the escapes away.
fn split_parts(text: &str) -> Option<Vec<String>> {
    let mut parts = vec![String::new()];
    let mut chars = text.chars();
    while let Some(char) = chars.next() {
        let part = parts.last_mut()?;
        match char {
            ',' => parts.push(String::new()),
            '\\' => match chars.next()? {
                plain @ (',' | '\\') => part.push(plain),
                'u' => {
                    let code = chars.as_str().strip_prefix('{')?.split_once('}')?.0;
                    chars = chars.as_str()[code.len() + 2..].chars();
                    part.push(char::from_u32(u32::from_str_radix(code, 16).ok()?)?);
                }
                _ => return None,
            },
            plain => part.push(plain),
        }
    }
    Some(parts)
}

fn parse_part(want: KeyType, text: String) -> Result<KeyPart> {
    let part = match want {
        KeyType::Int32 => text.parse().ok().map(KeyPart::Int32),
        KeyType::Int64 => text.parse().ok().map(KeyPart::Int64),
        KeyType::Uuid => text.parse().ok().map(|id: Id| KeyPart::Uuid(id.to_bytes())),
        KeyType::Bytes => parse_hex(&text).map(|bytes| KeyPart::Bytes(bytes.into())),
        KeyType::DateTime => date::parse(&text).map(KeyPart::DateTime),
        KeyType::Bool => text.parse().ok().map(KeyPart::Bool),
        KeyType::Text => return Ok(KeyPart::Text(text)),
    };
    part.ok_or_else(|| unreadable(&text, want.name()))
}

fn parse_hex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: &u8| char::from(*byte).to_digit(16);
    let pair = |pair: &[u8]| match pair {
        [high, low] => u8::try_from(digit(high)? << 4 | digit(low)?).ok(),
        _ => None,
    };
    text.as_bytes().chunks(2).map(pair).collect()
}

fn print_part(text: &mut String, part: &KeyPart) {
    let written = match part {
        KeyPart::Int32(number) => write!(text, "{number}"),
        KeyPart::Int64(number) => write!(text, "{number}"),
        KeyPart::Uuid(uuid) => write!(text, "{}", Id::from_bytes(*uuid)),
        KeyPart::Bytes(bytes) => bytes.iter().try_for_each(|byte| write!(text, "{byte:02x}")),
        KeyPart::DateTime(ticks) => write!(text, "{}", date::print(*ticks)),
        KeyPart::Bool(yes) => write!(text, "{yes}"),
        KeyPart::Text(part) => part.chars().try_for_each(|char| match char {
            ',' | '\\' => write!(text, "\\{char}"),
            char if char.is_control() => write!(text, "\\u{{{:x}}}", u32::from(char)),
            char => text.write_char(char),
        }),
    };
    written.expect("writing to a string cannot fail");
}

/// `int64`, or `text,int64` for a composite key.
impl fmt::Display for KeySchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (nth, key_type) in self.types().iter().enumerate() {
            let comma = if nth > 0 { "," } else { "" };
            write!(f, "{comma}{}", key_type.name())?;
        }
        Ok(())
    }
}

impl FromStr for KeySchema {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let known = |name: &str| KeyType::ALL.into_iter().find(|known| known.name() == name);
        let unknown = |name| Error::invalid("key-schema", format!("no key type {name:?}"));
        let named = |name| known(name).ok_or_else(|| unknown(name));
        Self::new(text.split(',').map(named).collect::<Result<Vec<_>>>()?)
    }
}
