//! Replies as trees, read from bytes.

use std::fmt;

/// A reply: its kind as the first byte says it, and what follows.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reply {
    /// Simple strings, errors, integers, doubles, booleans, nulls.
    Line(u8, Vec<u8>),
    /// Bulk strings and their like.
    Bulk(u8, Vec<u8>),
    /// Null of RESP2: of a bulk string or of an array.
    Null(u8),
    /// Arrays, sets, pushes; maps with keys and values in turn.
    Many(u8, Vec<Reply>),
}

/// Reads one reply; none if it is not there whole.
pub(crate) fn read(bytes: &[u8]) -> Result<Option<(Reply, usize)>, String> {
    let Some(end) = bytes.windows(2).position(|pair| pair == b"\r\n") else { return Ok(None) };
    let (kind, line) = (bytes[0], &bytes[1..end]);
    let mut at = end + 2;
    let number = || -> Result<i64, String> {
        let text = std::str::from_utf8(line).map_err(|error| error.to_string())?;
        text.parse().map_err(|_| format!("'{}' is no length", line.escape_ascii()))
    };
    let reply = match kind {
        b'+' | b'-' | b':' | b',' | b'#' | b'_' | b'(' => Reply::Line(kind, line.to_vec()),
        b'$' | b'=' | b'!' => match usize::try_from(number()?) {
            Err(_) => Reply::Null(kind),
            Ok(length) => {
                let Some(text) = bytes.get(at..at + length) else { return Ok(None) };
                if bytes.len() < at + length + 2 {
                    return Ok(None);
                }
                at += length + 2;
                Reply::Bulk(kind, text.to_vec())
            }
        },
        b'*' | b'~' | b'>' | b'%' => match usize::try_from(number()?) {
            Err(_) => Reply::Null(kind),
            Ok(count) => {
                let mut items = Vec::new();
                for _ in 0..if kind == b'%' { count * 2 } else { count } {
                    let Some((item, length)) = read(&bytes[at..])? else { return Ok(None) };
                    items.push(item);
                    at += length;
                }
                Reply::Many(kind, items)
            }
        },
        _ => return Err(format!("a reply begins with '{}'", bytes[..end].escape_ascii())),
    };
    Ok(Some((reply, at)))
}

impl fmt::Display for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(kind, line) => write!(f, "{}{}", *kind as char, line.escape_ascii()),
            Self::Bulk(kind, text) => write!(f, "{}\"{}\"", *kind as char, text.escape_ascii()),
            Self::Null(kind) => write!(f, "{}-1", *kind as char),
            Self::Many(kind, items) => {
                write!(f, "{}{}[", *kind as char, items.len())?;
                for item in items {
                    write!(f, "{item} ")?;
                }
                write!(f, "]")
            }
        }
    }
}
