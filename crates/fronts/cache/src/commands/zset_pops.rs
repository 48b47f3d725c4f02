//! Taking the lowest or highest members of sorted sets, also those that wait for them.

use lazuli_keyspace::Class;
use lazuli_keyspace::types::SortedSet;

use crate::call::{Call, Null};
use crate::command::Run;
use crate::failure::Failure;
use crate::range::positive;

pub(super) const RUNS: &[(&str, Run)] = &[
    ("bzmpop", bzmpop),
    ("bzpopmax", |call| wait(call, true)),
    ("bzpopmin", |call| wait(call, false)),
    ("zmpop", zmpop),
    ("zpopmax", |call| pop(call, true)),
    ("zpopmin", |call| pop(call, false)),
];

type Taken = Vec<(Vec<u8>, f64)>;

/// Takes up to `count` members; none if there is no such key.
fn take(
    call: &mut Call<'_, '_>,
    key: &[u8],
    count: usize,
    is_max: bool,
) -> Result<Option<Taken>, Failure> {
    let taken = call.space.with(key, false, |zset: &mut SortedSet, log| {
        let taken = zset.slice(0, count, is_max);
        for (member, _) in &taken {
            zset.remove(member, log);
        }
        if !taken.is_empty() {
            log.event(Class::SORTED, if is_max { "zpopmax" } else { "zpopmin" });
        }
        taken
    })?;
    Ok(taken)
}

fn pop(call: &mut Call<'_, '_>, is_max: bool) -> Result<(), Failure> {
    if call.args.len() > 3 {
        return Err(Failure::SYNTAX);
    }
    let count = match call.args.get(2) {
        Some(count) => Some(positive(count, Failure::NOT_POSITIVE)?),
        None => None,
    };
    let key = call.args.at(1);
    let taken = take(call, key, count.unwrap_or(1), is_max)?.unwrap_or_default();
    let is_nested = count.is_some() && call.out.is_resp3;
    write(call, &taken, is_nested);
    Ok(())
}

fn write(call: &mut Call<'_, '_>, taken: &Taken, is_nested: bool) {
    call.out.array(if is_nested { taken.len() } else { taken.len() * 2 });
    for (member, score) in taken {
        if is_nested {
            call.out.array(2);
        }
        call.out.bulk(member);
        call.out.double(*score);
    }
}

fn wait(call: &mut Call<'_, '_>, is_max: bool) -> Result<(), Failure> {
    let last = call.args.len() - 1;
    let timeout_ms = call.timeout_ms(last)?;
    for at in 1..last {
        let key = call.args.at(at);
        if let Some(taken) = take(call, key, 1, is_max)?
            && let Some((member, score)) = taken.first()
        {
            call.out.array(3);
            call.out.bulk(key);
            call.out.bulk(member);
            call.out.double(*score);
            return Ok(());
        }
    }
    let args = call.args;
    call.block((1..last).map(|at| args.at(at)), timeout_ms, Null::Array);
    Ok(())
}

/// What ZMPOP and BZMPOP are told: their keys, an end, and how many members.
struct ManyPop {
    keys: std::ops::Range<usize>,
    is_max: bool,
    count: usize,
}

impl ManyPop {
    fn parse(call: &Call<'_, '_>, at: usize) -> Result<Self, Failure> {
        let refused = Failure::of("ERR numkeys should be greater than 0");
        let number = positive(call.args.at(at), refused.clone())?;
        if number == 0 {
            return Err(refused);
        }
        let behind = number.checked_add(at + 1).filter(|behind| *behind < call.args.len());
        let behind = behind.ok_or(Failure::SYNTAX)?;
        let is_max = match call.args.at(behind).to_ascii_lowercase().as_slice() {
            b"min" => false,
            b"max" => true,
            _ => return Err(Failure::SYNTAX),
        };
        let refused = Failure::of("ERR count should be greater than 0");
        let mut count = 1;
        if call.args.len() > behind + 1 {
            if call.args.len() == behind + 2 || !call.args.is(behind + 1, "count") {
                return Err(Failure::SYNTAX);
            }
            count = positive(call.args.at(behind + 2), refused.clone())?;
        }
        if count == 0 {
            return Err(refused);
        }
        if call.args.len() > behind + 3 {
            return Err(Failure::SYNTAX);
        }
        Ok(Self { keys: at + 1..behind, is_max, count })
    }

    fn run(&self, call: &mut Call<'_, '_>) -> Result<bool, Failure> {
        for at in self.keys.clone() {
            let key = call.args.at(at);
            if let Some(taken) = take(call, key, self.count, self.is_max)? {
                call.out.array(2);
                call.out.bulk(key);
                write(call, &taken, true);
                return Ok(true);
            }
        }
        Ok(false)
    }
}

fn zmpop(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let pop = ManyPop::parse(call, 1)?;
    if !pop.run(call)? {
        call.out.null_array();
    }
    Ok(())
}

fn bzmpop(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let timeout_ms = call.timeout_ms(1)?;
    let pop = ManyPop::parse(call, 2)?;
    if !pop.run(call)? {
        let args = call.args;
        call.block(pop.keys.clone().map(|at| args.at(at)), timeout_ms, Null::Array);
    }
    Ok(())
}
