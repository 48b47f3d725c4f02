//! Session tokens: how far a client has seen each range, as text `RANGE:-1#LSN`, several joined by commas.

use crate::error::{Fault, Result};

/// The most ranges of one token.
const RANGES_MAX: usize = 10_000;

/// How far a range has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) range: u64,
    pub(crate) lsn: u64,
}

pub(crate) fn text(seen: Seen) -> String {
    format!("{}:-1#{}", seen.range, seen.lsn)
}

/// Reads a token. Versions and the positions of other regions count for nothing here: there is one region.
pub(crate) fn parse(text: &str) -> Result<Vec<Seen>> {
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    let seen: Option<Vec<Seen>> = parts.take(RANGES_MAX).map(one).collect();
    seen.ok_or_else(|| Fault::bad_header("x-ms-session-token"))
}

fn one(text: &str) -> Option<Seen> {
    let (range, vector) = text.split_once(':')?;
    let mut parts = vector.split('#');
    let (first, second) = (parts.next()?, parts.next());
    // The oldest form has no version.
    let lsn = second.unwrap_or(first);
    let lsn = lsn.parse::<i64>().ok()?;
    Some(Seen { range: range.parse().ok()?, lsn: u64::try_from(lsn).unwrap_or(0) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let seen = Seen { range: 3, lsn: 12 };
        assert_eq!(text(seen), "3:-1#12");
        assert_eq!(parse(&text(seen)), Ok(vec![seen]));
    }

    #[test]
    fn every_form_of_clients_is_read() {
        let both = vec![Seen { range: 0, lsn: 7 }, Seen { range: 1, lsn: 9 }];
        for text in ["0:7,1:9", "0:-1#7, 1:-1#9", "0:2#7#1=5#2=6,1:2#9#1=9"] {
            assert_eq!(parse(text), Ok(both.clone()), "{text}");
        }
        assert_eq!(parse(""), Ok(vec![]));
        for text in ["0", "a:1", "0:x", "0:-1#x", ":"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
