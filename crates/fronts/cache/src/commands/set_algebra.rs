//! Intersections, unions and differences of sets.

use lazuli_keyspace::Class;
use lazuli_keyspace::Value;
use lazuli_keyspace::types::{Set, Unlogged};

use crate::call::Call;
use crate::command::Run;
use crate::failure::Failure;
use crate::range::positive;

pub(super) const RUNS: &[(&str, Run)] = &[
    ("sdiff", |call| show(call, Operation::Difference)),
    ("sdiffstore", |call| store(call, Operation::Difference, "sdiffstore")),
    ("sinter", |call| show(call, Operation::Intersection)),
    ("sintercard", sintercard),
    ("sinterstore", |call| store(call, Operation::Intersection, "sinterstore")),
    ("sunion", |call| show(call, Operation::Union)),
    ("sunionstore", |call| store(call, Operation::Union, "sunionstore")),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Operation {
    Intersection,
    Union,
    Difference,
}

type Places = std::ops::Range<usize>;

/// The number of members of each key, which also finds keys of other types.
fn sizes(call: &mut Call<'_, '_>, keys: Places) -> Result<Vec<usize>, Failure> {
    let mut sizes = Vec::with_capacity(keys.len());
    for at in keys {
        let set = call.space.read::<Set>(call.args.at(at))?;
        sizes.push(set.map_or(0, Set::len));
    }
    Ok(sizes)
}

fn members(call: &mut Call<'_, '_>, at: usize) -> Result<Vec<Vec<u8>>, Failure> {
    let mut members = Vec::new();
    if let Some(set) = call.space.read::<Set>(call.args.at(at))? {
        members.reserve(set.len());
        set.each(&mut |member| members.push(member.to_vec()));
    }
    Ok(members)
}

/// Keeps the members that are, or are not, in the set of a key.
fn keep(
    call: &mut Call<'_, '_>,
    members: &mut Vec<Vec<u8>>,
    at: usize,
    is_in: bool,
) -> Result<(), Failure> {
    let set = call.space.read::<Set>(call.args.at(at))?;
    members.retain(|member| set.is_some_and(|set| set.contains(member)) == is_in);
    Ok(())
}

fn intersection(call: &mut Call<'_, '_>, keys: Places) -> Result<Vec<Vec<u8>>, Failure> {
    let sizes = sizes(call, keys.clone())?;
    // The smallest first: the others are only asked for its members.
    let mut order: Vec<usize> = keys.clone().collect();
    order.sort_by_key(|at| sizes[at - keys.start]);
    if sizes.contains(&0) {
        return Ok(Vec::new());
    }
    let mut found = members(call, order[0])?;
    for at in &order[1..] {
        keep(call, &mut found, *at, true)?;
    }
    Ok(found)
}

fn combine(call: &mut Call<'_, '_>, keys: Places, by: Operation) -> Result<Set, Failure> {
    let mut result = Set::default();
    let mut add = |members: Vec<Vec<u8>>| {
        members.iter().for_each(|member| {
            result.add(member, &mut Unlogged);
        });
    };
    match by {
        Operation::Intersection => add(intersection(call, keys)?),
        Operation::Union => {
            sizes(call, keys.clone())?;
            for at in keys {
                add(members(call, at)?);
            }
        }
        Operation::Difference => {
            sizes(call, keys.clone())?;
            let mut found = members(call, keys.start)?;
            for at in keys.skip(1) {
                keep(call, &mut found, at, false)?;
            }
            add(found);
        }
    }
    Ok(result)
}

fn show(call: &mut Call<'_, '_>, by: Operation) -> Result<(), Failure> {
    let result = combine(call, 1..call.args.len(), by)?;
    call.out.set(result.len());
    result.each(&mut |member| call.out.bulk(member));
    Ok(())
}

fn store(call: &mut Call<'_, '_>, by: Operation, event: &'static str) -> Result<(), Failure> {
    let target = call.args.at(1);
    let result = combine(call, 2..call.args.len(), by)?;
    call.out.count(result.len());
    if result.is_empty() {
        call.space.delete(target);
    } else {
        call.space.put(target, Value::Set(result), None);
        call.space.event(Class::SET, event, target);
    }
    Ok(())
}

fn sintercard(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let refused = Failure::of("ERR numkeys should be greater than 0");
    let number = positive(call.args.at(1), refused.clone())?;
    if number == 0 {
        return Err(refused);
    }
    if number > call.args.len() - 2 {
        return Err(Failure::of("ERR Number of keys can't be greater than number of args"));
    }
    let behind = number + 2;
    let mut most = 0;
    let mut at = behind;
    while at < call.args.len() {
        if !call.args.is(at, "limit") || at + 1 == call.args.len() {
            return Err(Failure::SYNTAX);
        }
        most = positive(call.args.at(at + 1), Failure::of("ERR LIMIT can't be negative"))?;
        at += 2;
    }
    let count = intersection(call, 2..behind)?.len();
    call.out.count(if most == 0 { count } else { count.min(most) });
    Ok(())
}
