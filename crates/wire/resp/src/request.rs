//! Parsing requests: arrays of bulk strings, and inline commands for people and health checks.

use crate::arguments::{Args, Range};
use crate::limits::{
    ARGUMENTS_MAX, BULK_BYTES_MAX, INLINE_BYTES_MAX, REQUEST_BYTES_MAX, STRANGER_ARGUMENTS_MAX,
    STRANGER_BULK_BYTES_MAX,
};
use crate::number::parse_integer;

/// Why a connection is closed after this sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProtocolError {
    InvalidMultibulkLength,
    InvalidBulkLength,
    ExpectedDollar(u8),
    TooBigInline,
    TooBigCount,
    TooBigBulkCount,
    UnbalancedQuotes,
    StrangerMultibulk,
    StrangerBulk,
    TooBigRequest,
}

impl ProtocolError {
    /// As the service words it.
    pub fn text(self) -> String {
        let text = match self {
            Self::InvalidMultibulkLength => "invalid multibulk length",
            Self::InvalidBulkLength => "invalid bulk length",
            Self::ExpectedDollar(got) => {
                return format!("ERR Protocol error: expected '$', got '{}'", printable(got));
            }
            Self::TooBigInline => "too big inline request",
            Self::TooBigCount => "too big mbulk count string",
            Self::TooBigBulkCount => "too big bulk count string",
            Self::UnbalancedQuotes => "unbalanced quotes in request",
            Self::StrangerMultibulk => "unauthenticated multibulk length",
            Self::StrangerBulk => "unauthenticated bulk length",
            Self::TooBigRequest => "too big request",
        };
        format!("ERR Protocol error: {text}")
    }
}

fn printable(byte: u8) -> char {
    if byte.is_ascii_graphic() || byte == b' ' { byte as char } else { ' ' }
}

/// The state of parsing one command, which may arrive in pieces. Positions count from the first byte of the command.
#[derive(Debug, Default)]
pub struct Parser {
    ranges: Vec<Range>,
    /// Arguments that are still to come.
    missing: usize,
    /// The length of the argument that is being read.
    bulk: Option<usize>,
    position: usize,
    /// Whether the head of an array has been read.
    is_array: bool,
    /// What quotes and escapes of an inline command mean.
    unquoted: Vec<u8>,
    is_inline: bool,
}

impl Parser {
    /// Looks for one command at the start of `buffer`. Its length if it is complete: its arguments are then read with
    /// [`Parser::args`] and the next call begins a new one. A command without arguments is to be skipped.
    pub fn parse(
        &mut self,
        buffer: &[u8],
        is_stranger: bool,
    ) -> Result<Option<usize>, ProtocolError> {
        if !self.is_array {
            match buffer.first() {
                None => return Ok(None),
                Some(b'*') => {}
                Some(_) => return self.parse_inline(buffer),
            }
            self.is_inline = false;
            let Some((count, position)) = line(buffer, 1, ProtocolError::TooBigCount)? else {
                return Ok(None);
            };
            let count = parse_integer(count).filter(|count| *count <= ARGUMENTS_MAX);
            let count = count.ok_or(ProtocolError::InvalidMultibulkLength)?;
            if is_stranger && count > STRANGER_ARGUMENTS_MAX {
                return Err(ProtocolError::StrangerMultibulk);
            }
            self.ranges.clear();
            self.bulk = None;
            if count <= 0 {
                return Ok(Some(position));
            }
            (self.missing, self.position, self.is_array) = (count as usize, position, true);
        }
        self.parse_arguments(buffer, is_stranger)
    }

    fn parse_arguments(
        &mut self,
        buffer: &[u8],
        is_stranger: bool,
    ) -> Result<Option<usize>, ProtocolError> {
        while self.missing > 0 {
            let length = match self.bulk {
                Some(length) => length,
                None => {
                    match buffer.get(self.position) {
                        None => return Ok(None),
                        Some(b'$') => {}
                        Some(other) => return Err(ProtocolError::ExpectedDollar(*other)),
                    }
                    let after = self.position + 1;
                    let too_long = ProtocolError::TooBigBulkCount;
                    let Some((digits, position)) = line(buffer, after, too_long)? else {
                        return Ok(None);
                    };
                    let length = bulk_length(digits, is_stranger)?;
                    self.position = position;
                    if position + length > REQUEST_BYTES_MAX {
                        return Err(ProtocolError::TooBigRequest);
                    }
                    self.bulk = Some(length);
                    length
                }
            };
            // The two bytes after an argument are skipped unread, as the service does.
            if buffer.len() < self.position + length + 2 {
                return Ok(None);
            }
            self.ranges.push((self.position as u32, length as u32));
            self.position += length + 2;
            self.bulk = None;
            self.missing -= 1;
        }
        self.is_array = false;
        Ok(Some(self.position))
    }

    /// How many bytes the command needs at least, if that is known: room for a large argument is made at once.
    pub fn needs(&self) -> usize {
        self.bulk.filter(|_| self.is_array).map_or(0, |length| self.position + length + 2)
    }

    /// The arguments of the command that was just found at the start of `buffer`.
    pub fn args<'a>(&'a self, buffer: &'a [u8]) -> Args<'a> {
        let buffer = if self.is_inline { &self.unquoted } else { buffer };
        Args { buffer, ranges: &self.ranges }
    }

    fn parse_inline(&mut self, buffer: &[u8]) -> Result<Option<usize>, ProtocolError> {
        self.ranges.clear();
        self.unquoted.clear();
        self.is_inline = true;
        let seen = &buffer[..buffer.len().min(INLINE_BYTES_MAX)];
        let Some(end) = memchr::memchr(b'\n', seen) else {
            if buffer.len() >= INLINE_BYTES_MAX {
                return Err(ProtocolError::TooBigInline);
            }
            return Ok(None);
        };
        let line = buffer[..end].strip_suffix(b"\r").unwrap_or(&buffer[..end]);
        self.split(line).ok_or(ProtocolError::UnbalancedQuotes)?;
        Ok(Some(end + 1))
    }

    /// Splits at blanks; quotes hold words together. None if a quote is left open or goes on after its end.
    fn split(&mut self, mut line: &[u8]) -> Option<()> {
        loop {
            while let [first, rest @ ..] = line
                && is_blank(*first)
            {
                line = rest;
            }
            if line.is_empty() {
                return Some(());
            }
            let start = self.unquoted.len();
            line = self.word(line)?;
            self.ranges.push((start as u32, (self.unquoted.len() - start) as u32));
        }
    }

    /// Takes one word and returns what follows it.
    fn word<'l>(&mut self, mut line: &'l [u8]) -> Option<&'l [u8]> {
        let ends = |rest: &[u8]| rest.first().is_none_or(|it| is_blank(*it));
        loop {
            match line {
                [] => return Some(line),
                [first, ..] if is_blank(*first) || *first == 0 => return Some(&line[1..]),
                [b'"', rest @ ..] => {
                    line = self.quoted(rest)?;
                    return ends(line).then_some(line);
                }
                [b'\'', rest @ ..] => {
                    line = self.single_quoted(rest)?;
                    return ends(line).then_some(line);
                }
                [other, rest @ ..] => {
                    self.unquoted.push(*other);
                    line = rest;
                }
            }
        }
    }

    fn quoted<'l>(&mut self, mut line: &'l [u8]) -> Option<&'l [u8]> {
        loop {
            line = match line {
                [] => return None,
                [b'"', rest @ ..] => return Some(rest),
                [b'\\', b'x', high, low, rest @ ..]
                    if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() =>
                {
                    self.unquoted.push(hex(*high) * 16 + hex(*low));
                    rest
                }
                [b'\\', escaped, rest @ ..] => {
                    self.unquoted.push(match escaped {
                        b'n' => b'\n',
                        b'r' => b'\r',
                        b't' => b'\t',
                        b'b' => 8,
                        b'a' => 7,
                        other => *other,
                    });
                    rest
                }
                [other, rest @ ..] => {
                    self.unquoted.push(*other);
                    rest
                }
            }
        }
    }

    fn single_quoted<'l>(&mut self, mut line: &'l [u8]) -> Option<&'l [u8]> {
        loop {
            line = match line {
                [] => return None,
                [b'\'', rest @ ..] => return Some(rest),
                [b'\\', b'\'', rest @ ..] => {
                    self.unquoted.push(b'\'');
                    rest
                }
                [other, rest @ ..] => {
                    self.unquoted.push(*other);
                    rest
                }
            }
        }
    }
}

fn is_blank(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte == 0x0b
}

fn hex(digit: u8) -> u8 {
    (digit as char).to_digit(16).unwrap_or_default() as u8
}

fn bulk_length(digits: &[u8], is_stranger: bool) -> Result<usize, ProtocolError> {
    let length = parse_integer(digits).filter(|it| (0..=BULK_BYTES_MAX as i64).contains(it));
    let length = length.ok_or(ProtocolError::InvalidBulkLength)?;
    if is_stranger && length > STRANGER_BULK_BYTES_MAX {
        return Err(ProtocolError::StrangerBulk);
    }
    Ok(length as usize)
}

/// The line from `start` on without its end, and where the next one begins. None if it has not come whole.
#[inline]
fn line(
    buffer: &[u8],
    start: usize,
    too_long: ProtocolError,
) -> Result<Option<(&[u8], usize)>, ProtocolError> {
    let rest = buffer.get(start..).unwrap_or_default();
    // Lengths are a few digits: looking byte by byte is faster than any search.
    for (index, byte) in rest.iter().enumerate().take(INLINE_BYTES_MAX) {
        if *byte == b'\r' {
            if index + 1 >= rest.len() {
                return Ok(None);
            }
            return Ok(Some((&rest[..index], start + index + 2)));
        }
    }
    if rest.len() >= INLINE_BYTES_MAX { Err(too_long) } else { Ok(None) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(mut buffer: &[u8]) -> Result<Vec<Vec<String>>, ProtocolError> {
        let mut parser = Parser::default();
        let mut found = Vec::new();
        while let Some(end) = parser.parse(buffer, false)? {
            let args = parser.args(buffer);
            found.push(args.iter().map(|it| String::from_utf8_lossy(it).into_owned()).collect());
            buffer = &buffer[end..];
        }
        Ok(found)
    }

    #[test]
    fn commands_are_found_one_after_another() {
        let found = all(b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n*0\r\nPING\r\n*1\r\n$4\r\nPI").unwrap();
        assert_eq!(found, [vec!["GET", "k"], vec![], vec!["PING"]]);
    }

    #[test]
    fn a_command_in_pieces_of_any_size_is_the_same() {
        let whole = b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$5\r\na\r\nb\n\r\n";
        let mut parser = Parser::default();
        for end in 0..whole.len() {
            assert_eq!(parser.parse(&whole[..end], false), Ok(None), "{end}");
        }
        assert_eq!(parser.parse(whole, false), Ok(Some(whole.len())));
        assert_eq!(parser.args(whole).at(2), b"a\r\nb\n");
    }

    #[test]
    fn inline_commands_have_quotes_and_escapes() {
        let found = all(b"  set k \"a\\x41\\n \\\"\" 'it\\'s'\r\n\r\n").unwrap();
        assert_eq!(found, [vec!["set", "k", "aA\n \"", "it's"], vec![]]);
        assert_eq!(all(b"set \"a\n"), Err(ProtocolError::UnbalancedQuotes));
        assert_eq!(all(b"set \"a\"b\n"), Err(ProtocolError::UnbalancedQuotes));
    }

    #[test]
    fn malformed_requests_have_the_words_of_the_service() {
        let error = |bytes: &[u8]| all(bytes).unwrap_err();
        assert_eq!(error(b"*x\r\n"), ProtocolError::InvalidMultibulkLength);
        assert_eq!(error(b"*1048577\r\n"), ProtocolError::InvalidMultibulkLength);
        assert_eq!(error(b"*1\r\n:1\r\n"), ProtocolError::ExpectedDollar(b':'));
        assert_eq!(error(b"*1\r\n$-1\r\n"), ProtocolError::InvalidBulkLength);
        assert_eq!(error(b"*1\r\n$536870913\r\n"), ProtocolError::InvalidBulkLength);
        assert_eq!(error(&[b'a'; INLINE_BYTES_MAX]), ProtocolError::TooBigInline);
        let text = ProtocolError::ExpectedDollar(b':').text();
        assert_eq!(text, "ERR Protocol error: expected '$', got ':'");
    }

    #[test]
    fn strangers_send_little() {
        let mut parser = Parser::default();
        let parsed = parser.parse(b"*11\r\n", true);
        assert_eq!(parsed, Err(ProtocolError::StrangerMultibulk));
        let mut parser = Parser::default();
        let parsed = parser.parse(b"*1\r\n$16385\r\n", true);
        assert_eq!(parsed, Err(ProtocolError::StrangerBulk));
    }
}
