//! Sets of one key; what combines several is in `set_algebra`.

use lazuli_keyspace::Class;
use lazuli_keyspace::types::Set;

use crate::call::Call;
use crate::command::Run;
use crate::failure::Failure;
use crate::range::{DRAWS_MAX, positive, signed_count};
use crate::scan::{self, Scan};

pub(super) const RUNS: &[(&str, Run)] = &[
    ("sadd", sadd),
    ("scard", scard),
    ("sismember", sismember),
    ("smembers", smembers),
    ("smismember", smismember),
    ("smove", smove),
    ("spop", spop),
    ("srandmember", srandmember),
    ("srem", srem),
    ("sscan", sscan),
];

fn sadd(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let args = call.args;
    let added = call.space.with(args.at(1), true, |set: &mut Set, log| {
        let added = args.from(2).iter().filter(|member| set.add(member, log)).count();
        if added > 0 {
            log.event(Class::SET, "sadd");
        }
        added
    })?;
    call.out.count(added.unwrap_or(0));
    Ok(())
}

fn srem(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let args = call.args;
    let removed = call.space.with(args.at(1), false, |set: &mut Set, log| {
        let removed = args.from(2).iter().filter(|member| set.remove(member, log)).count();
        if removed > 0 {
            log.event(Class::SET, "srem");
        }
        removed
    })?;
    call.out.count(removed.unwrap_or(0));
    Ok(())
}

fn scard(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let set = call.space.read::<Set>(call.args.at(1))?;
    call.out.count(set.map_or(0, Set::len));
    Ok(())
}

fn sismember(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let member = call.args.at(2);
    let set = call.space.read::<Set>(call.args.at(1))?;
    call.out.integer(i64::from(set.is_some_and(|set| set.contains(member))));
    Ok(())
}

fn smismember(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let members = call.args.from(2);
    let set = call.space.read::<Set>(call.args.at(1))?;
    call.out.array(members.len());
    for member in members.iter() {
        call.out.integer(i64::from(set.is_some_and(|set| set.contains(member))));
    }
    Ok(())
}

fn smembers(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    match call.space.read::<Set>(call.args.at(1))? {
        Some(set) => {
            call.out.set(set.len());
            set.each(&mut |member| call.out.bulk(member));
        }
        None => call.out.set(0),
    }
    Ok(())
}

fn smove(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let (source, target, member) = (call.args.at(1), call.args.at(2), call.args.at(3));
    let found = call.space.read::<Set>(source)?.map(|set| set.contains(member));
    let Some(is_there) = found else {
        call.out.integer(0);
        return Ok(());
    };
    call.space.read::<Set>(target)?;
    if is_there && source != target {
        call.space.with(source, false, |set: &mut Set, log| {
            set.remove(member, log);
            log.event(Class::SET, "srem");
        })?;
        call.space.with(target, true, |set: &mut Set, log| {
            if set.add(member, log) {
                log.event(Class::SET, "sadd");
            }
        })?;
    }
    call.out.integer(i64::from(is_there));
    Ok(())
}

fn spop(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    if call.args.len() > 3 {
        return Err(Failure::SYNTAX);
    }
    let has_count = call.args.len() == 3;
    let count = match has_count {
        true => positive(call.args.at(2), Failure::NOT_POSITIVE)?,
        false => 1,
    };
    let server = call.server;
    let mut random = || server.keyspace.random();
    let members = call.space.with(call.args.at(1), false, |set: &mut Set, log| {
        let mut members = Vec::with_capacity(count.min(set.len()));
        for _ in 0..count {
            let Some(member) = set.pop(&mut random, log) else { break };
            members.push(member);
        }
        if !members.is_empty() {
            log.event(Class::SET, "spop");
        }
        members
    })?;
    let members = members.unwrap_or_default();
    if has_count {
        call.out.set(members.len());
        members.iter().for_each(|member| call.out.bulk(member));
    } else {
        call.out.bulk_or_null(members.first().map(Vec::as_slice));
    }
    Ok(())
}

fn srandmember(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    if call.args.len() > 3 {
        return Err(Failure::SYNTAX);
    }
    let count = match call.args.get(2) {
        Some(count) => Some(signed_count(count)?),
        None => None,
    };
    let server = call.server;
    let mut random = || server.keyspace.random();
    let set = call.space.read::<Set>(call.args.at(1))?;
    let Some(count) = count else {
        let member = set.and_then(|set| set.random(&mut random));
        call.out.bulk_or_null(member.as_deref());
        return Ok(());
    };
    let Some(set) = set else {
        call.out.array(0);
        return Ok(());
    };
    if count >= 0 {
        let members = set.sample(count as usize, &mut random);
        call.out.array(members.len());
        members.iter().for_each(|member| call.out.bulk(member));
        return Ok(());
    }
    if count < -DRAWS_MAX {
        return Err(Failure::OUT_OF_RANGE);
    }
    call.out.array(count.unsigned_abs() as usize);
    for _ in count..0 {
        call.out.bulk_or_null(set.random(&mut random).as_deref());
    }
    Ok(())
}

fn sscan(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let cursor = scan::cursor(call.args.at(2))?;
    let Some(set) = call.space.read::<Set>(call.args.at(1))? else {
        call.out.array(2);
        call.out.text("0");
        call.out.array(0);
        return Ok(());
    };
    let scan = Scan::parse(call.args, 3)?;
    let mut members: Vec<Vec<u8>> = Vec::new();
    let next = set.scan(cursor, scan.count, &mut |member| {
        if scan.takes(member) {
            members.push(member.to_vec());
        }
    });
    call.out.array(2);
    call.out.text(&next.to_string());
    call.out.array(members.len());
    members.iter().for_each(|member| call.out.bulk(member));
    Ok(())
}
