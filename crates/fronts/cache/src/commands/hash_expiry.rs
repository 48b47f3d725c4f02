//! Times to live of the fields of hashes, as Redis 7.4 has them.

use lazuli_keyspace::Class;
use lazuli_keyspace::types::Hash;
use lazuli_resp::parse_integer;

use super::hashes::{expire_fields, read};
use crate::call::Call;
use crate::command::Run;
use crate::failure::Failure;

pub(super) const RUNS: &[(&str, Run)] = &[
    ("hexpire", |call| expire(call, 1000, false)),
    ("hexpireat", |call| expire(call, 1000, true)),
    ("hexpiretime", |call| tell(call, 1000, true)),
    ("hpersist", hpersist),
    ("hpexpire", |call| expire(call, 1, false)),
    ("hpexpireat", |call| expire(call, 1, true)),
    ("hpexpiretime", |call| tell(call, 1, true)),
    ("hpttl", |call| tell(call, 1, false)),
    ("httl", |call| tell(call, 1000, false)),
];

/// The latest time that a field can have, in milliseconds since 1970.
const EXPIRY_MS_MAX: i64 = (1 << 46) - 1;

/// What the field had no part in: there is no such field.
const NO_FIELD: i64 = -2;
const NO_EXPIRY: i64 = -1;
const NOT_MET: i64 = 0;
const DONE: i64 = 1;
const DELETED: i64 = 2;

/// Where the fields begin: behind FIELDS and their number, at a place.
fn fields_from(call: &Call<'_, '_>, at: usize) -> Result<usize, Failure> {
    if !call.args.is(at, "fields") {
        return Err(Failure::of(
            "ERR Mandatory argument FIELDS is missing or not at the right position",
        ));
    }
    let number = parse_integer(call.args.at(at + 1)).filter(|number| *number > 0);
    let number = number
        .ok_or(const { Failure::of("ERR Parameter `numFields` should be greater than 0") })?;
    if usize::try_from(number) != Ok(call.args.len().saturating_sub(at + 2)) {
        return Err(Failure::of(
            "ERR The `numfields` parameter must match the number of arguments",
        ));
    }
    Ok(at + 2)
}

#[derive(Clone, Copy)]
enum Condition {
    Always,
    None,
    Some,
    Greater,
    Less,
}

impl Condition {
    fn is_met(self, before: Option<u64>, at_ms: u64) -> bool {
        match self {
            Self::Always => true,
            Self::None => before.is_none(),
            Self::Some => before.is_some(),
            Self::Greater => before.is_some_and(|before| at_ms > before),
            Self::Less => before.is_none_or(|before| at_ms < before),
        }
    }
}

fn expire(call: &mut Call<'_, '_>, unit: i64, is_absolute: bool) -> Result<(), Failure> {
    let number = call.integer(2)?;
    let refused =
        Failure::new(format!("ERR invalid expire time in '{}' command", call.command.name));
    if number < 0 {
        return Err(Failure::of("ERR invalid expire time, must be >= 0"));
    }
    let now_ms = call.now_ms();
    let base = if is_absolute { 0 } else { now_ms as i64 };
    let at = number.checked_mul(unit).and_then(|ms| ms.checked_add(base));
    let at_ms = at.filter(|at| *at <= EXPIRY_MS_MAX).ok_or(refused)? as u64;
    let (condition, at) = match call.args.at(3).to_ascii_lowercase().as_slice() {
        b"nx" => (Condition::None, 4),
        b"xx" => (Condition::Some, 4),
        b"gt" => (Condition::Greater, 4),
        b"lt" => (Condition::Less, 4),
        _ => (Condition::Always, 3),
    };
    let fields = call.args.from(fields_from(call, at)?);
    let key = call.args.at(1);
    expire_fields(call.space, key)?;
    let results = call.space.with(key, false, |hash: &mut Hash, log| {
        let (mut is_set, mut is_deleted) = (false, false);
        let mut change = |field: &[u8]| {
            if !hash.contains(field) {
                return NO_FIELD;
            }
            if !condition.is_met(hash.expiry_ms(field), at_ms) {
                return NOT_MET;
            }
            if at_ms <= now_ms {
                hash.remove(field, log);
                is_deleted = true;
                return DELETED;
            }
            hash.set_expiry(field, at_ms, log);
            is_set = true;
            DONE
        };
        let results: Vec<i64> = fields.iter().map(&mut change).collect();
        if is_deleted {
            log.event(Class::HASH, "hdel");
        }
        if is_set {
            log.event(Class::HASH, "hexpire");
        }
        results
    })?;
    write(call, results, fields.len());
    Ok(())
}

fn write(call: &mut Call<'_, '_>, results: Option<Vec<i64>>, len: usize) {
    let results = results.unwrap_or_else(|| vec![NO_FIELD; len]);
    call.out.array(len);
    results.iter().for_each(|result| call.out.integer(*result));
}

fn tell(call: &mut Call<'_, '_>, unit: u64, is_absolute: bool) -> Result<(), Failure> {
    let fields = call.args.from(fields_from(call, 2)?);
    let now_ms = if is_absolute { 0 } else { call.now_ms() };
    let hash = read(call.space, call.args.at(1))?;
    let tell = |hash: &Hash, field: &[u8]| match hash.expiry_ms(field) {
        Some(at_ms) => at_ms.saturating_sub(now_ms).div_ceil(unit) as i64,
        None if hash.contains(field) => NO_EXPIRY,
        None => NO_FIELD,
    };
    let results = hash.map(|hash| fields.iter().map(|field| tell(hash, field)).collect());
    write(call, results, fields.len());
    Ok(())
}

fn hpersist(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let fields = call.args.from(fields_from(call, 2)?);
    let key = call.args.at(1);
    expire_fields(call.space, key)?;
    let results = call.space.with(key, false, |hash: &mut Hash, log| {
        let mut change = |field: &[u8]| match hash.contains(field) {
            false => NO_FIELD,
            true if hash.persist(field, log) => DONE,
            true => NO_EXPIRY,
        };
        let results: Vec<i64> = fields.iter().map(&mut change).collect();
        if results.contains(&DONE) {
            log.event(Class::HASH, "hpersist");
        }
        results
    })?;
    write(call, results, fields.len());
    Ok(())
}
