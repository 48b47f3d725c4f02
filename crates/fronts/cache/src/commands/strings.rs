//! Strings.

use lazuli_keyspace::{Class, Expiry};
use lazuli_resp::{Args, parse_integer};

use crate::call::Call;
use crate::command::Run;
use crate::extended::{self, Extended};
use crate::failure::Failure;

pub(super) const RUNS: &[(&str, Run)] = &[
    ("append", append),
    ("decr", decr),
    ("decrby", decrby),
    ("get", get),
    ("getdel", getdel),
    ("getex", getex),
    ("getrange", getrange),
    ("getset", getset),
    ("incr", incr),
    ("incrby", incrby),
    ("incrbyfloat", incrbyfloat),
    ("mget", mget),
    ("mset", mset),
    ("msetnx", msetnx),
    ("psetex", psetex),
    ("set", set),
    ("setex", setex),
    ("setnx", setnx),
    ("setrange", setrange),
    ("strlen", strlen),
    ("substr", getrange),
];

fn get(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let value = call.space.string(call.args.at(1))?;
    call.out.bulk_or_null(value);
    Ok(())
}

/// What SET and GETEX are told beside key and value.
#[derive(Default)]
struct Options {
    is_nx: bool,
    is_xx: bool,
    gets: bool,
    keeps: bool,
    persists: bool,
    /// The unit of the expiry, whether it is a point in time, and the place of its number.
    expiry: Option<(i64, bool, usize)>,
}

impl Options {
    fn parse(args: Args<'_>, from: usize, is_set: bool) -> Result<Self, Failure> {
        let mut found = Self::default();
        let mut at = from;
        while at < args.len() {
            let has_expiry = found.expiry.is_some() || found.keeps || found.persists;
            let next = at + 1 < args.len();
            match args.at(at).to_ascii_lowercase().as_slice() {
                b"nx" if is_set && !found.is_xx => found.is_nx = true,
                b"xx" if is_set && !found.is_nx => found.is_xx = true,
                b"get" if is_set => found.gets = true,
                b"keepttl" if is_set && !has_expiry => found.keeps = true,
                b"persist" if !is_set && !has_expiry => found.persists = true,
                b"ex" if !has_expiry && next => found.expiry = Some((1000, false, at + 1)),
                b"px" if !has_expiry && next => found.expiry = Some((1, false, at + 1)),
                b"exat" if !has_expiry && next => found.expiry = Some((1000, true, at + 1)),
                b"pxat" if !has_expiry && next => found.expiry = Some((1, true, at + 1)),
                _ => return Err(Failure::SYNTAX),
            }
            let has_number = found.expiry.is_some_and(|(.., place)| place == at + 1);
            at += if has_number { 2 } else { 1 };
        }
        Ok(found)
    }

    fn expires_at_ms(&self, call: &Call<'_, '_>) -> Result<Option<u64>, Failure> {
        let Some((unit, is_absolute, place)) = self.expiry else { return Ok(None) };
        expiry_of(call, place, unit, is_absolute).map(Some)
    }
}

/// The point in time that an argument gives. A set value cannot have one in the past of 1970.
fn expiry_of(
    call: &Call<'_, '_>,
    place: usize,
    unit: i64,
    is_absolute: bool,
) -> Result<u64, Failure> {
    let number = call.integer(place)?;
    let now = if is_absolute { 0 } else { call.now_ms() as i64 };
    let at = number.checked_mul(unit).and_then(|it| it.checked_add(now)).filter(|_| number > 0);
    at.and_then(|it| u64::try_from(it).ok()).ok_or_else(|| {
        Failure::new(format!("ERR invalid expire time in '{}' command", call.command.name))
    })
}

fn set(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let (key, value) = (call.args.at(1), call.args.at(2));
    if call.args.len() == 3 {
        // The most frequent of all commands.
        call.space.set(key, value, Expiry::Never);
        call.space.event(Class::STRING, "set", key);
        call.out.ok();
        return Ok(());
    }
    let options = Options::parse(call.args, 3, true)?;
    let at = options.expires_at_ms(call)?;
    if options.gets {
        let before = call.space.string(key)?;
        call.out.bulk_or_null(before);
    }
    let exists = call.space.exists(key);
    if (options.is_nx && exists) || (options.is_xx && !exists) {
        if !options.gets {
            call.out.null();
        }
        return Ok(());
    }
    let expiry = match at {
        Some(at) => Expiry::At(at),
        None if options.keeps => Expiry::Keep,
        None => Expiry::Never,
    };
    set_with(call, key, value, expiry);
    if !options.gets {
        call.out.ok();
    }
    Ok(())
}

/// Sets a key and says so. One whose time is over already is deleted instead.
fn set_with(call: &mut Call<'_, '_>, key: &[u8], value: &[u8], expiry: Expiry) {
    call.space.set(key, value, expiry);
    call.space.event(Class::STRING, "set", key);
    if let Expiry::At(at) = expiry {
        call.space.event(Class::GENERIC, "expire", key);
        if at <= call.now_ms() {
            call.space.delete(key);
        }
    }
}

fn setnx(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let key = call.args.at(1);
    let is_new = !call.space.exists(key);
    if is_new {
        set_with(call, key, call.args.at(2), Expiry::Never);
    }
    call.out.integer(i64::from(is_new));
    Ok(())
}

fn setex(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    set_for(call, 1000)
}

fn psetex(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    set_for(call, 1)
}

fn set_for(call: &mut Call<'_, '_>, unit: i64) -> Result<(), Failure> {
    let at = expiry_of(call, 2, unit, false)?;
    set_with(call, call.args.at(1), call.args.at(3), Expiry::At(at));
    call.out.ok();
    Ok(())
}

fn getset(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let key = call.args.at(1);
    let before = call.space.string(key)?;
    call.out.bulk_or_null(before);
    set_with(call, key, call.args.at(2), Expiry::Never);
    Ok(())
}

fn getdel(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let key = call.args.at(1);
    let before = call.space.string(key)?;
    call.out.bulk_or_null(before);
    if before.is_some() {
        call.space.delete(key);
    }
    Ok(())
}

fn getex(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let key = call.args.at(1);
    let options = Options::parse(call.args, 2, false)?;
    let Some(before) = call.space.string(key)? else {
        call.out.null();
        return Ok(());
    };
    let length = call.out.bytes.len();
    call.out.bulk(before);
    let at = match options.expires_at_ms(call) {
        Ok(at) => at,
        Err(failure) => {
            call.out.bytes.truncate(length);
            return Err(failure);
        }
    };
    if let Some(at) = at {
        if at <= call.now_ms() {
            call.space.delete(key);
        } else {
            call.space.set_expiry(key, Some(at));
            call.space.event(Class::GENERIC, "expire", key);
        }
    } else if options.persists && call.space.expires_at_ms(key).flatten().is_some() {
        call.space.set_expiry(key, None);
        call.space.event(Class::GENERIC, "persist", key);
    }
    Ok(())
}

fn mget(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    call.out.array(call.args.len() - 1);
    for key in call.args.from(1).iter() {
        let value = call.space.string(key).unwrap_or_default();
        call.out.bulk_or_null(value);
    }
    Ok(())
}

fn mset(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    set_many(call, false)?;
    call.out.ok();
    Ok(())
}

fn msetnx(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let is_set = set_many(call, true)?;
    call.out.integer(i64::from(is_set));
    Ok(())
}

fn set_many(call: &mut Call<'_, '_>, only_new: bool) -> Result<bool, Failure> {
    let args = call.args;
    if args.len().is_multiple_of(2) {
        let text = "wrong number of arguments for";
        return Err(Failure::new(format!("ERR {text} '{}' command", call.command.name)));
    }
    if only_new && (1..args.len()).step_by(2).any(|at| call.space.exists(args.at(at))) {
        return Ok(false);
    }
    for at in (1..args.len()).step_by(2) {
        call.space.set(args.at(at), args.at(at + 1), Expiry::Never);
        call.space.event(Class::STRING, "set", args.at(at));
    }
    Ok(true)
}

fn append(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let (key, added) = (call.args.at(1), call.args.at(2));
    let Some(before) = call.space.string(key)? else {
        call.space.set(key, added, Expiry::Never);
        call.space.event(Class::STRING, "append", key);
        call.out.count(added.len());
        return Ok(());
    };
    if before.len() + added.len() > call.string_bytes_max() {
        return Err(Failure::STRING_TOO_LONG);
    }
    let length = call.space.change_string(key, false, |string| {
        string.extend_from_slice(added);
        string.len()
    })?;
    call.space.event(Class::STRING, "append", key);
    call.out.count(length.unwrap_or_default());
    Ok(())
}

fn strlen(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let length = call.space.string(call.args.at(1))?.map_or(0, <[u8]>::len);
    call.out.count(length);
    Ok(())
}

/// The places from `start` to `end` of something of this length, where negative numbers count from its end.
pub(super) fn clamp(start: i64, end: i64, length: usize) -> Option<(usize, usize)> {
    let length = length as i64;
    let from_end = |it: i64| if it < 0 { (length + it).max(0) } else { it };
    if start < 0 && end < 0 && start > end {
        return None;
    }
    let (start, end) = (from_end(start), from_end(end).min(length - 1));
    (start <= end && length > 0).then_some((start as usize, end as usize))
}

fn getrange(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let (start, end) = (call.integer(2)?, call.integer(3)?);
    let string = call.space.string(call.args.at(1))?.unwrap_or_default();
    let part = clamp(start, end, string.len()).map(|(start, end)| &string[start..=end]);
    call.out.bulk(part.unwrap_or_default());
    Ok(())
}

fn setrange(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let (key, value) = (call.args.at(1), call.args.at(3));
    let offset = call.integer(2)?;
    let offset = usize::try_from(offset).map_err(|_| Failure::of("ERR offset is out of range"))?;
    let length = call.space.string(key)?.map(<[u8]>::len);
    if value.is_empty() {
        call.out.count(length.unwrap_or_default());
        return Ok(());
    }
    let end = offset.checked_add(value.len()).filter(|it| *it <= call.string_bytes_max());
    let end = end.ok_or(Failure::STRING_TOO_LONG)?;
    let length = call.space.change_string(key, true, |string| {
        if string.len() < end {
            string.resize(end, 0);
        }
        string[offset..end].copy_from_slice(value);
        string.len()
    })?;
    call.space.event(Class::STRING, "setrange", key);
    call.out.count(length.unwrap_or_default());
    Ok(())
}

fn incr(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    add(call, 1)
}

fn decr(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    add(call, -1)
}

fn incrby(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let by = call.integer(2)?;
    add(call, by)
}

fn decrby(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let by = call.integer(2)?;
    let by = by.checked_neg().ok_or(Failure::of("ERR decrement would overflow"))?;
    add(call, by)
}

fn add(call: &mut Call<'_, '_>, by: i64) -> Result<(), Failure> {
    let key = call.args.at(1);
    let before = match call.space.string(key)? {
        None => 0,
        Some(text) => parse_integer(text).ok_or(Failure::NOT_INTEGER)?,
    };
    let after = before.checked_add(by).ok_or(Failure::OVERFLOW)?;
    let mut digits = itoa::Buffer::new();
    call.space.set(key, digits.format(after).as_bytes(), Expiry::Keep);
    call.space.event(Class::STRING, "incrby", key);
    call.out.integer(after);
    Ok(())
}

fn incrbyfloat(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let key = call.args.at(1);
    let before = match call.space.string(key)? {
        None => Extended::ZERO,
        Some(text) => extended::parse(text).ok_or(Failure::NOT_FLOAT)?,
    };
    let by = extended::parse(call.args.at(2)).ok_or(Failure::NOT_FLOAT)?;
    let after = before.plus(by).ok_or(Failure::NOT_A_NUMBER)?.text();
    call.space.set(key, after.as_bytes(), Expiry::Keep);
    call.space.event(Class::STRING, "incrbyfloat", key);
    call.out.text(&after);
    Ok(())
}
