//! HyperLogLogs: approximate numbers of different elements, kept in strings.

use lazuli_keyspace::Class;
use lazuli_keyspace::types::hyperloglog::{self, NotOne};

use crate::call::Call;
use crate::command::Run;
use crate::failure::Failure;

pub(super) const RUNS: &[(&str, Run)] =
    &[("pfadd", pfadd), ("pfcount", pfcount), ("pfdebug", pfdebug), ("pfmerge", pfmerge)];

fn failure(not_one: NotOne) -> Failure {
    match not_one {
        NotOne::Other => Failure::of("WRONGTYPE Key is not a valid HyperLogLog string value."),
        NotOne::Corrupt => Failure::of("INVALIDOBJ Corrupted HLL object detected"),
    }
}

/// The bytes of the HyperLogLog at a key.
fn load(call: &mut Call<'_, '_>, key: &[u8]) -> Result<Option<Vec<u8>>, Failure> {
    let Some(bytes) = call.space.string(key)? else { return Ok(None) };
    hyperloglog::check(bytes).map_err(failure)?;
    Ok(Some(bytes.to_vec()))
}

fn save(call: &mut Call<'_, '_>, key: &[u8], bytes: Vec<u8>) -> Result<(), Failure> {
    call.space.change_string(key, true, |string| *string = bytes)?;
    Ok(())
}

fn pfadd(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let key = call.args.at(1);
    let before = load(call, key)?;
    let mut is_changed = before.is_none();
    let mut bytes = before.unwrap_or_else(hyperloglog::empty);
    for element in call.args.from(2).iter() {
        is_changed |= hyperloglog::add(&mut bytes, element).map_err(failure)?;
    }
    if is_changed {
        hyperloglog::forget_count(&mut bytes);
        save(call, key, bytes)?;
        call.space.event(Class::STRING, "pfadd", key);
    }
    call.out.integer(i64::from(is_changed));
    Ok(())
}

/// The highest value of each register over all keys, and whether one of them is dense.
fn merged(
    call: &mut Call<'_, '_>,
    keys: std::ops::Range<usize>,
) -> Result<(Vec<u8>, bool), Failure> {
    let (mut highest, mut is_dense) = (Vec::new(), false);
    for at in keys {
        let key = call.args.at(at);
        let Some(bytes) = load(call, key)? else { continue };
        is_dense |= hyperloglog::is_dense(&bytes);
        let values = hyperloglog::registers(&bytes).map_err(failure)?;
        highest.resize(values.len(), 0);
        for (high, value) in highest.iter_mut().zip(values) {
            *high = value.max(*high);
        }
    }
    Ok((highest, is_dense))
}

fn pfcount(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    if call.args.len() > 2 {
        let (values, _) = merged(call, 1..call.args.len())?;
        let count = if values.is_empty() { 0 } else { hyperloglog::count(&values) };
        call.out.integer(count as i64);
        return Ok(());
    }
    let key = call.args.at(1);
    let Some(mut bytes) = load(call, key)? else {
        call.out.integer(0);
        return Ok(());
    };
    let count = match hyperloglog::cached_count(&bytes) {
        Some(count) => count,
        None => {
            let count = hyperloglog::count(&hyperloglog::registers(&bytes).map_err(failure)?);
            hyperloglog::cache_count(&mut bytes, count);
            save(call, key, bytes)?;
            count
        }
    };
    call.out.integer(count as i64);
    Ok(())
}

fn pfmerge(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let key = call.args.at(1);
    let (values, is_dense) = merged(call, 1..call.args.len())?;
    let mut bytes = load(call, key)?.unwrap_or_else(hyperloglog::empty);
    if is_dense {
        hyperloglog::densify(&mut bytes).map_err(failure)?;
    }
    hyperloglog::merge(&mut bytes, &values).map_err(failure)?;
    save(call, key, bytes)?;
    call.space.event(Class::STRING, "pfadd", key);
    call.out.ok();
    Ok(())
}

fn pfdebug(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let key = call.args.at(2);
    let Some(mut bytes) = load(call, key)? else {
        return Err(Failure::of("ERR The specified key does not exist"));
    };
    let is_dense = hyperloglog::is_dense(&bytes);
    match call.args.at(1).to_ascii_lowercase().as_slice() {
        b"encoding" => call.out.simple(if is_dense { "dense" } else { "sparse" }),
        b"getreg" => {
            hyperloglog::densify(&mut bytes).map_err(failure)?;
            let values = hyperloglog::registers(&bytes).map_err(failure)?;
            save(call, key, bytes)?;
            call.out.array(values.len());
            values.iter().for_each(|value| call.out.integer(i64::from(*value)));
        }
        b"todense" => {
            if !is_dense {
                hyperloglog::densify(&mut bytes).map_err(failure)?;
                save(call, key, bytes)?;
            }
            call.out.integer(i64::from(!is_dense));
        }
        _ => {
            let name = String::from_utf8_lossy(call.args.at(1)).into_owned();
            return Err(Failure::new(format!("ERR Unknown PFDEBUG subcommand '{name}'")));
        }
    }
    Ok(())
}
