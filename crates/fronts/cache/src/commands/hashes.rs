//! Hashes; times to live of their fields are in `hash_expiry`.

use lazuli_keyspace::types::Hash;
use lazuli_keyspace::{Class, Space, WrongType};
use lazuli_resp::{parse_double, parse_integer};

use crate::call::Call;
use crate::command::Run;
use crate::extended;
use crate::failure::Failure;
use crate::range::{DRAWS_MAX, signed_count};
use crate::scan::{self, Scan};

pub(super) const RUNS: &[(&str, Run)] = &[
    ("hdel", hdel),
    ("hexists", hexists),
    ("hget", hget),
    ("hgetall", |call| show(call, Show::Both)),
    ("hincrby", hincrby),
    ("hincrbyfloat", hincrbyfloat),
    ("hkeys", |call| show(call, Show::Fields)),
    ("hlen", hlen),
    ("hmget", hmget),
    ("hmset", hset),
    ("hrandfield", hrandfield),
    ("hscan", hscan),
    ("hset", hset),
    ("hsetnx", hsetnx),
    ("hstrlen", hstrlen),
    ("hvals", |call| show(call, Show::Values)),
];

/// The most fields of one hash that are expired before a command runs; the rest follows with the next commands.
const EXPIRED_AT_ONCE: usize = 100_000;

/// Removes the fields of a hash whose time has come.
pub(super) fn expire_fields(space: &mut Space<'_>, key: &[u8]) -> Result<(), WrongType> {
    let now_ms = space.now_ms;
    let is_due = match space.peek_kind::<Hash>(key)? {
        Some(hash) => hash.next_expiry_ms().is_some_and(|at| at <= now_ms),
        None => false,
    };
    if is_due {
        space.with(key, false, |hash: &mut Hash, log| {
            if hash.expire(now_ms, EXPIRED_AT_ONCE, log) > 0 {
                log.event(Class::HASH, "hexpired");
            }
        })?;
    }
    Ok(())
}

/// The hash of a key without the fields whose time has come.
pub(super) fn read<'s>(
    space: &'s mut Space<'_>,
    key: &[u8],
) -> Result<Option<&'s Hash>, WrongType> {
    expire_fields(space, key)?;
    space.read::<Hash>(key)
}

fn hset(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let args = call.args;
    let name = call.command.name;
    if !args.len().is_multiple_of(2) {
        return Err(Failure::new(format!("ERR wrong number of arguments for '{name}' command")));
    }
    expire_fields(call.space, args.at(1))?;
    let added = call.space.with(args.at(1), true, |hash: &mut Hash, log| {
        let mut added = 0;
        for at in (2..args.len()).step_by(2) {
            added += usize::from(hash.set(args.at(at), args.at(at + 1), log));
        }
        log.event(Class::HASH, "hset");
        added
    })?;
    match name {
        "hmset" => call.out.ok(),
        _ => call.out.count(added.unwrap_or(0)),
    }
    Ok(())
}

fn hsetnx(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let args = call.args;
    expire_fields(call.space, args.at(1))?;
    let is_set = call.space.with(args.at(1), true, |hash: &mut Hash, log| {
        if hash.contains(args.at(2)) {
            return false;
        }
        hash.set(args.at(2), args.at(3), log);
        log.event(Class::HASH, "hset");
        true
    })?;
    call.out.integer(i64::from(is_set == Some(true)));
    Ok(())
}

fn hget(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let field = call.args.at(2);
    let hash = read(call.space, call.args.at(1))?;
    call.out.bulk_or_null(hash.and_then(|hash| hash.get(field)));
    Ok(())
}

fn hmget(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let fields = call.args.from(2);
    let hash = read(call.space, call.args.at(1))?;
    call.out.array(fields.len());
    for field in fields.iter() {
        call.out.bulk_or_null(hash.and_then(|hash| hash.get(field)));
    }
    Ok(())
}

fn hdel(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let args = call.args;
    expire_fields(call.space, args.at(1))?;
    let removed = call.space.with(args.at(1), false, |hash: &mut Hash, log| {
        let removed = args.from(2).iter().filter(|field| hash.remove(field, log)).count();
        if removed > 0 {
            log.event(Class::HASH, "hdel");
        }
        removed
    })?;
    call.out.count(removed.unwrap_or(0));
    Ok(())
}

fn hlen(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let hash = read(call.space, call.args.at(1))?;
    call.out.count(hash.map_or(0, Hash::len));
    Ok(())
}

fn hstrlen(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let field = call.args.at(2);
    let hash = read(call.space, call.args.at(1))?;
    call.out.count(hash.and_then(|hash| hash.get(field)).map_or(0, <[u8]>::len));
    Ok(())
}

fn hexists(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let field = call.args.at(2);
    let hash = read(call.space, call.args.at(1))?;
    call.out.integer(i64::from(hash.is_some_and(|hash| hash.contains(field))));
    Ok(())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Show {
    Fields,
    Values,
    Both,
}

fn show(call: &mut Call<'_, '_>, what: Show) -> Result<(), Failure> {
    let hash = read(call.space, call.args.at(1))?;
    let len = hash.map_or(0, Hash::len);
    match what {
        Show::Both => call.out.map(len),
        Show::Fields | Show::Values => call.out.array(len),
    }
    let Some(hash) = hash else { return Ok(()) };
    hash.each(&mut |field, value| {
        if what != Show::Values {
            call.out.bulk(field);
        }
        if what != Show::Fields {
            call.out.bulk(value);
        }
    });
    Ok(())
}

fn hincrby(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let (args, by) = (call.args, call.integer(3)?);
    expire_fields(call.space, args.at(1))?;
    let sum = call.space.with(args.at(1), true, |hash: &mut Hash, log| {
        let before = match hash.get(args.at(2)) {
            Some(text) => parse_integer(text)
                .ok_or(const { Failure::of("ERR hash value is not an integer") })?,
            None => 0,
        };
        let sum = before.checked_add(by).ok_or(Failure::OVERFLOW)?;
        hash.set_value(args.at(2), sum.to_string().as_bytes(), log);
        log.event(Class::HASH, "hincrby");
        Ok::<i64, Failure>(sum)
    })?;
    call.out.integer(sum.unwrap_or(Ok(0))?);
    Ok(())
}

fn hincrbyfloat(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let args = call.args;
    let by = extended::parse(args.at(3)).ok_or(Failure::NOT_FLOAT)?;
    if parse_double(args.at(3)).is_some_and(f64::is_infinite) {
        return Err(Failure::of("ERR value is NaN or Infinity"));
    }
    expire_fields(call.space, args.at(1))?;
    let sum = call.space.with(args.at(1), true, |hash: &mut Hash, log| {
        let before = match hash.get(args.at(2)) {
            Some(text) => extended::parse(text)
                .ok_or(const { Failure::of("ERR hash value is not a float") })?,
            None => extended::Extended::ZERO,
        };
        let sum = before.plus(by).ok_or(Failure::NOT_A_NUMBER)?.text();
        hash.set_value(args.at(2), sum.as_bytes(), log);
        log.event(Class::HASH, "hincrbyfloat");
        Ok::<String, Failure>(sum)
    })?;
    let sum = sum.unwrap_or(Ok(String::new()))?;
    call.out.text(&sum);
    Ok(())
}

/// Fields drawn by chance, as HRANDFIELD is asked for them.
fn hrandfield(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let draw = Draw::parse(call, "withvalues")?;
    let server = call.server;
    let mut random = || server.keyspace.random();
    let hash = read(call.space, call.args.at(1))?;
    let Some(draw) = draw else {
        let field = hash.and_then(|hash| hash.random(&mut random));
        call.out.bulk_or_null(field.as_ref().map(|(field, _)| field.as_slice()));
        return Ok(());
    };
    let drawn = match hash {
        Some(hash) if draw.is_distinct => hash.sample(draw.count, &mut random),
        Some(hash) => (0..draw.count).filter_map(|_| hash.random(&mut random)).collect(),
        None => Vec::new(),
    };
    draw.head(call, drawn.len());
    for (field, value) in &drawn {
        draw.pair(call);
        call.out.bulk(field);
        if draw.is_with {
            call.out.bulk(value);
        }
    }
    Ok(())
}

/// What HRANDFIELD and ZRANDMEMBER are told beside the key.
pub(super) struct Draw {
    pub(super) count: usize,
    pub(super) is_distinct: bool,
    /// Whether values or scores are wanted too.
    pub(super) is_with: bool,
}

impl Draw {
    /// None asks for one element alone.
    pub(super) fn parse(call: &Call<'_, '_>, word: &str) -> Result<Option<Self>, Failure> {
        let Some(count) = call.args.get(2) else { return Ok(None) };
        let count = signed_count(count)?;
        if call.args.len() > 4 || (call.args.len() == 4 && !call.args.is(3, word)) {
            return Err(Failure::SYNTAX);
        }
        let is_with = call.args.len() == 4;
        let is_too_many = is_with && count.unsigned_abs() > i64::MAX.unsigned_abs() / 2;
        if is_too_many || count < -DRAWS_MAX {
            return Err(Failure::OUT_OF_RANGE);
        }
        let is_distinct = count >= 0;
        Ok(Some(Self { count: count.unsigned_abs() as usize, is_distinct, is_with }))
    }

    pub(super) fn head(&self, call: &mut Call<'_, '_>, len: usize) {
        let is_flat = self.is_with && !call.out.is_resp3;
        call.out.array(if is_flat { len * 2 } else { len });
    }

    /// Begins an element with its value, which RESP3 shows as pairs.
    pub(super) fn pair(&self, call: &mut Call<'_, '_>) {
        if self.is_with && call.out.is_resp3 {
            call.out.array(2);
        }
    }
}

fn hscan(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let cursor = scan::cursor(call.args.at(2))?;
    let args = call.args;
    let Some(hash) = read(call.space, args.at(1))? else {
        call.out.array(2);
        call.out.text("0");
        call.out.array(0);
        return Ok(());
    };
    let scan = Scan::parse(args, 3)?;
    let mut texts: Vec<Vec<u8>> = Vec::new();
    let next = hash.scan(cursor, scan.count, &mut |field, value| {
        if scan.takes(field) {
            texts.push(field.to_vec());
            texts.push(value.to_vec());
        }
    });
    call.out.array(2);
    call.out.text(&next.to_string());
    call.out.array(texts.len());
    texts.iter().for_each(|text| call.out.bulk(text));
    Ok(())
}
