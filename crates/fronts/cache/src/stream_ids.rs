//! Ids of entries of streams as commands are given them, and what trims are told.

use lazuli_keyspace::types::StreamId;
use lazuli_keyspace::types::stream::Keep;

use crate::call::Call;
use crate::failure::Failure;

const INVALID: Failure = Failure::of("ERR Invalid stream ID specified as stream command argument");

/// Entries that an approximate trim removes at most, where nothing else is said.
const TRIMMED_MAX: u64 = 10_000;

fn number(text: &[u8]) -> Result<u64, Failure> {
    let is_number = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    let text = std::str::from_utf8(text).ok().filter(|_| is_number);
    text.and_then(|text| text.parse().ok()).ok_or(INVALID)
}

fn halves(text: &[u8]) -> (&[u8], Option<&[u8]>) {
    match text.iter().position(|byte| *byte == b'-') {
        Some(dash) => (&text[..dash], Some(&text[dash + 1..])),
        None => (text, None),
    }
}

/// An id, `-` and `+` not included. Without its second half it gets the one given.
pub(crate) fn strict(text: &[u8], missing: u64) -> Result<StreamId, Failure> {
    let (ms, seq) = halves(text);
    Ok(StreamId { ms: number(ms)?, seq: seq.map_or(Ok(missing), number)? })
}

/// The beginning of an interval, with `-`, `+` and `(`.
pub(crate) fn interval_start(text: &[u8]) -> Result<StreamId, Failure> {
    let refused = Failure::of("ERR invalid start ID for the interval");
    match text {
        [b'(', text @ ..] => strict(text, 0)?.next().ok_or(refused),
        b"-" => Ok(StreamId::MIN),
        b"+" => Ok(StreamId::MAX),
        text => strict(text, 0),
    }
}

/// The end of an interval, in the same way.
pub(crate) fn interval_end(text: &[u8]) -> Result<StreamId, Failure> {
    let refused = Failure::of("ERR invalid end ID for the interval");
    match text {
        [b'(', text @ ..] => strict(text, u64::MAX)?.previous().ok_or(refused),
        b"-" => Ok(StreamId::MIN),
        b"+" => Ok(StreamId::MAX),
        text => strict(text, u64::MAX),
    }
}

/// The id that an entry is added with.
#[derive(Clone, Copy, Debug)]
pub(crate) enum NewId {
    Auto,
    /// The number within these milliseconds is free to choose.
    At(u64),
    Given(StreamId),
}

impl NewId {
    pub(crate) fn parse(text: &[u8]) -> Result<Self, Failure> {
        match halves(text) {
            (b"*", None) => Ok(Self::Auto),
            (ms, Some(b"*")) => Ok(Self::At(number(ms)?)),
            _ => strict(text, 0).map(Self::Given),
        }
    }

    /// The id above the last one, if there is one.
    pub(crate) fn after(self, last: StreamId, now_ms: u64) -> Option<StreamId> {
        match self {
            Self::Auto if now_ms > last.ms => Some(StreamId { ms: now_ms, seq: 0 }),
            Self::Auto => last.next(),
            Self::At(ms) if ms == last.ms => {
                last.seq.checked_add(1).map(|seq| StreamId { ms, seq })
            }
            Self::At(ms) => Some(StreamId { ms, seq: 0 }).filter(|id| *id > last),
            Self::Given(id) => Some(id).filter(|id| *id > last),
        }
    }
}

/// A trim, as XADD and XTRIM are told of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trim {
    pub(crate) keep: Keep,
    pub(crate) is_exact: bool,
    /// 0 for all.
    pub(crate) most: u64,
}

/// What stands before the id of XADD, or behind the key of XTRIM.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Options {
    pub(crate) trim: Option<Trim>,
    pub(crate) creates_none: bool,
}

impl Options {
    /// Reads options up to an id, or to the end; says where it stopped.
    pub(crate) fn parse(
        call: &Call<'_, '_>,
        from: usize,
        is_add: bool,
    ) -> Result<(Self, usize), Failure> {
        let args = call.args;
        let (mut found, mut limit) = (Self::default(), None);
        let mut at = from;
        while at < args.len() {
            let more = args.len() - 1 - at;
            match args.at(at).to_ascii_lowercase().as_slice() {
                b"*" if is_add => break,
                word @ (b"maxlen" | b"minid") if more > 0 => {
                    if found.trim.is_some() {
                        return Err(Failure::of(
                            "ERR syntax error, MAXLEN and MINID options at the same time are not \
                             compatible",
                        ));
                    }
                    let mark = args.at(at + 1);
                    let has_mark = more >= 2 && (mark == b"~" || mark == b"=");
                    at += 1 + usize::from(has_mark);
                    let keep = if word == b"maxlen" {
                        let count = u64::try_from(call.integer(at)?);
                        let refused = Failure::of("ERR The MAXLEN argument must be >= 0.");
                        Keep::Newest(count.map_err(|_| refused)?)
                    } else {
                        Keep::From(strict(args.at(at), 0)?)
                    };
                    let is_exact = !(has_mark && mark == b"~");
                    found.trim = Some(Trim { keep, is_exact, most: 0 });
                }
                b"limit" if more > 0 => {
                    at += 1;
                    let refused = Failure::of("ERR The LIMIT argument must be >= 0.");
                    limit = Some(u64::try_from(call.integer(at)?).map_err(|_| refused)?);
                }
                b"nomkstream" if is_add => found.creates_none = true,
                _ if is_add => break,
                _ => return Err(Failure::SYNTAX),
            }
            at += 1;
        }
        found.limit(limit, is_add)?;
        Ok((found, at))
    }

    fn limit(&mut self, limit: Option<u64>, is_add: bool) -> Result<(), Failure> {
        let Some(trim) = &mut self.trim else {
            if limit.is_some_and(|limit| limit > 0) {
                return Err(Failure::of(
                    "ERR syntax error, LIMIT cannot be used without specifying a trimming strategy",
                ));
            }
            if !is_add {
                return Err(Failure::of(
                    "ERR syntax error, XTRIM must be called with a trimming strategy",
                ));
            }
            return Ok(());
        };
        if limit.is_some() && trim.is_exact {
            return Err(Failure::of(
                "ERR syntax error, LIMIT cannot be used without the special ~ option",
            ));
        }
        trim.most = if trim.is_exact { 0 } else { limit.unwrap_or(TRIMMED_MAX) };
        Ok(())
    }
}
