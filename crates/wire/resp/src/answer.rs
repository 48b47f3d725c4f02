//! Reading replies: for scripts, which call commands and look at what they answer, and for programs that ask a server.

use crate::limits::{ANSWER_DEPTH_MAX, BULK_BYTES_MAX};
use crate::number::{parse_double, parse_integer};

/// One reply.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    Simple(Vec<u8>),
    Error(Vec<u8>),
    Integer(i64),
    Bulk(Vec<u8>),
    /// Null of either protocol; `true` if it stands for an array (RESP2).
    Null(bool),
    Array(Vec<Answer>),
    Map(Vec<(Answer, Answer)>),
    Set(Vec<Answer>),
    Push(Vec<Answer>),
    Double(f64),
    Boolean(bool),
    BigNumber(Vec<u8>),
    /// Format and text.
    Verbatim(Vec<u8>, Vec<u8>),
}

/// The bytes are no reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// Reads one reply from the start of `bytes`, with its length. None if it has not come whole.
pub fn read_answer(bytes: &[u8]) -> Result<Option<(Answer, usize)>, Malformed> {
    let mut reader = Reader { bytes, position: 0 };
    match reader.answer(0) {
        Ok(answer) => Ok(Some((answer, reader.position))),
        Err(Stop::Incomplete) => Ok(None),
        Err(Stop::Malformed) => Err(Malformed),
    }
}

enum Stop {
    Incomplete,
    Malformed,
}

struct Reader<'b> {
    bytes: &'b [u8],
    position: usize,
}

impl<'b> Reader<'b> {
    fn answer(&mut self, depth: usize) -> Result<Answer, Stop> {
        if depth > ANSWER_DEPTH_MAX {
            return Err(Stop::Malformed);
        }
        let kind = *self.bytes.get(self.position).ok_or(Stop::Incomplete)?;
        self.position += 1;
        let line = self.line()?;
        Ok(match kind {
            b'+' => Answer::Simple(line.to_vec()),
            b'-' => Answer::Error(line.to_vec()),
            b':' => Answer::Integer(parse_integer(line).ok_or(Stop::Malformed)?),
            b'$' if line == b"-1" => Answer::Null(false),
            b'*' if line == b"-1" => Answer::Null(true),
            b'_' => Answer::Null(false),
            b'$' => Answer::Bulk(self.bulk(line)?.to_vec()),
            b'!' => Answer::Error(self.bulk(line)?.to_vec()),
            b'=' => {
                let whole = self.bulk(line)?;
                let (format, text) = whole.split_at_checked(4).ok_or(Stop::Malformed)?;
                Answer::Verbatim(format[..3].to_vec(), text.to_vec())
            }
            b',' => Answer::Double(parse_double(line).ok_or(Stop::Malformed)?),
            b'#' if line == b"t" => Answer::Boolean(true),
            b'#' if line == b"f" => Answer::Boolean(false),
            b'(' => Answer::BigNumber(line.to_vec()),
            b'*' => Answer::Array(self.many(line, depth)?),
            b'~' => Answer::Set(self.many(line, depth)?),
            b'>' => Answer::Push(self.many(line, depth)?),
            b'%' => {
                let count = count(line)?;
                let mut pairs = Vec::new();
                for _ in 0..count {
                    pairs.push((self.answer(depth + 1)?, self.answer(depth + 1)?));
                }
                Answer::Map(pairs)
            }
            _ => return Err(Stop::Malformed),
        })
    }

    fn many(&mut self, line: &[u8], depth: usize) -> Result<Vec<Answer>, Stop> {
        (0..count(line)?).map(|_| self.answer(depth + 1)).collect()
    }

    fn line(&mut self) -> Result<&'b [u8], Stop> {
        let rest = &self.bytes[self.position..];
        let end = memchr::memchr(b'\n', rest).ok_or(Stop::Incomplete)?;
        self.position += end + 1;
        rest[..end].strip_suffix(b"\r").ok_or(Stop::Malformed)
    }

    fn bulk(&mut self, line: &[u8]) -> Result<&'b [u8], Stop> {
        let length = count(line)?;
        let end = self.position + length;
        if self.bytes.len() < end + 2 {
            return Err(Stop::Incomplete);
        }
        let bulk = &self.bytes[self.position..end];
        if &self.bytes[end..end + 2] != b"\r\n" {
            return Err(Stop::Malformed);
        }
        self.position = end + 2;
        Ok(bulk)
    }
}

fn count(line: &[u8]) -> Result<usize, Stop> {
    let count = parse_integer(line).filter(|it| (0..=BULK_BYTES_MAX as i64).contains(it));
    count.map(|it| it as usize).ok_or(Stop::Malformed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Reply;

    #[test]
    fn what_is_written_is_read() {
        let mut reply = Reply::new(true);
        reply.array(4);
        reply.map(1);
        reply.bulk(b"k");
        reply.double(0.5);
        reply.set(1);
        reply.null();
        reply.verbatim("txt", "hello");
        reply.error("ERR no");
        let expected = Answer::Array(vec![
            Answer::Map(vec![(Answer::Bulk(b"k".to_vec()), Answer::Double(0.5))]),
            Answer::Set(vec![Answer::Null(false)]),
            Answer::Verbatim(b"txt".to_vec(), b"hello".to_vec()),
            Answer::Error(b"ERR no".to_vec()),
        ]);
        let length = reply.bytes.len();
        assert_eq!(read_answer(&reply.bytes), Ok(Some((expected, length))));
        for end in 0..length {
            assert_eq!(read_answer(&reply.bytes[..end]), Ok(None), "{end}");
        }
    }

    #[test]
    fn nonsense_is_refused() {
        assert_eq!(read_answer(b"?\r\n"), Err(Malformed));
        assert_eq!(read_answer(b"$1\r\nab\r\n"), Err(Malformed));
        assert_eq!(read_answer(&b"*1\r\n".repeat(100)), Err(Malformed));
    }
}
