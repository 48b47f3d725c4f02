//! The options of SCAN and its siblings: MATCH, COUNT.

use lazuli_resp::{Args, parse_integer};

use crate::failure::Failure;
use crate::glob;

/// Elements that are looked at in one call where nothing else is said.
const COUNT: usize = 10;
/// The most elements that one call looks at, so that nobody waits long for its end.
const COUNT_MAX: i64 = 100_000;

/// What a scan of the elements of one key is told.
pub(crate) struct Scan<'a> {
    pub(crate) count: usize,
    pattern: Option<&'a [u8]>,
}

/// The cursor at the beginning of a call.
pub(crate) fn cursor(text: &[u8]) -> Result<u64, Failure> {
    let refused = Failure::of("ERR invalid cursor");
    let text = std::str::from_utf8(text).map_err(|_| refused.clone())?;
    let digits = text.strip_prefix('+').unwrap_or(text);
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(refused);
    }
    if digits.is_empty() { Ok(0) } else { digits.parse().map_err(|_| refused) }
}

impl<'a> Scan<'a> {
    pub(crate) fn parse(args: Args<'a>, from: usize) -> Result<Self, Failure> {
        let mut found = Self { count: COUNT, pattern: None };
        let mut at = from;
        while at < args.len() {
            if at + 1 == args.len() {
                return Err(Failure::SYNTAX);
            }
            if args.is(at, "count") {
                let count = parse_integer(args.at(at + 1)).ok_or(Failure::NOT_INTEGER)?;
                if count < 1 {
                    return Err(Failure::SYNTAX);
                }
                found.count = count.min(COUNT_MAX) as usize;
            } else if args.is(at, "match") {
                found.pattern = Some(args.at(at + 1));
            } else {
                return Err(Failure::SYNTAX);
            }
            at += 2;
        }
        Ok(found)
    }

    pub(crate) fn takes(&self, element: &[u8]) -> bool {
        self.pattern.is_none_or(|pattern| glob::matches(pattern, element))
    }
}
