//! Lists, except those that wait (`waiting_lists`).

use lazuli_keyspace::Class;
use lazuli_keyspace::types::List;
use lazuli_keyspace::types::list::End;

use crate::call::Call;
use crate::command::Run;
use crate::failure::Failure;
use crate::range::{Cut, positive, slice};

pub(super) const RUNS: &[(&str, Run)] = &[
    ("lindex", lindex),
    ("linsert", linsert),
    ("llen", llen),
    ("lmove", lmove),
    ("lmpop", lmpop),
    ("lpop", |call| pop(call, End::Front)),
    ("lpush", |call| push(call, End::Front, true)),
    ("lpushx", |call| push(call, End::Front, false)),
    ("lrange", lrange),
    ("lrem", lrem),
    ("lset", lset),
    ("ltrim", ltrim),
    ("rpop", |call| pop(call, End::Back)),
    ("rpoplpush", |call| shift(call, (End::Back, End::Front))),
    ("rpush", |call| push(call, End::Back, true)),
    ("rpushx", |call| push(call, End::Back, false)),
];

fn push_event(end: End) -> &'static str {
    match end {
        End::Front => "lpush",
        End::Back => "rpush",
    }
}

fn pop_event(end: End) -> &'static str {
    match end {
        End::Front => "lpop",
        End::Back => "rpop",
    }
}

/// LEFT or RIGHT at a place.
pub(super) fn end_at(call: &Call<'_, '_>, index: usize) -> Result<End, Failure> {
    match call.args.at(index).to_ascii_lowercase().as_slice() {
        b"left" => Ok(End::Front),
        b"right" => Ok(End::Back),
        _ => Err(Failure::SYNTAX),
    }
}

fn push(call: &mut Call<'_, '_>, end: End, creates: bool) -> Result<(), Failure> {
    let args = call.args;
    let len = call.space.with(args.at(1), creates, |list: &mut List, log| {
        for item in args.from(2).iter() {
            list.push(end, item, log);
        }
        log.event(Class::LIST, push_event(end));
        list.len()
    })?;
    call.out.count(len.unwrap_or(0));
    Ok(())
}

/// Takes up to `count` items from an end of the list at a key.
fn take(
    call: &mut Call<'_, '_>,
    key: &[u8],
    end: End,
    count: usize,
) -> Result<Option<Vec<Vec<u8>>>, Failure> {
    let items = call.space.with(key, false, |list: &mut List, log| {
        let mut items = Vec::with_capacity(count.min(list.len()));
        for _ in 0..count {
            let Some(item) = list.pop(end, log) else { break };
            items.push(item);
        }
        if !items.is_empty() {
            log.event(Class::LIST, pop_event(end));
        }
        items
    })?;
    Ok(items)
}

fn pop(call: &mut Call<'_, '_>, end: End) -> Result<(), Failure> {
    let key = call.args.at(1);
    if call.args.len() > 3 {
        let name = call.command.name;
        return Err(Failure::new(format!("ERR wrong number of arguments for '{name}' command")));
    }
    if call.args.len() == 2 {
        let items = take(call, key, end, 1)?;
        let item = items.and_then(|mut items| items.pop());
        call.out.bulk_or_null(item.as_deref());
        return Ok(());
    }
    let count = positive(call.args.at(2), Failure::NOT_POSITIVE)?;
    match take(call, key, end, count)? {
        Some(items) => write_items(call, &items),
        None => call.out.null_array(),
    }
    Ok(())
}

fn write_items(call: &mut Call<'_, '_>, items: &[Vec<u8>]) {
    call.out.array(items.len());
    items.iter().for_each(|item| call.out.bulk(item));
}

fn llen(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let list = call.space.read::<List>(call.args.at(1))?;
    call.out.count(list.map_or(0, List::len));
    Ok(())
}

/// The number of an item, counted from the end if negative.
fn index_of(index: i64, len: usize) -> Option<usize> {
    let index = if index < 0 { index.checked_add(len as i64)? } else { index };
    usize::try_from(index).ok().filter(|index| *index < len)
}

fn lindex(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let index = call.integer(2);
    let Some(list) = call.space.read::<List>(call.args.at(1))? else {
        call.out.null();
        return Ok(());
    };
    let item = index_of(index?, list.len()).and_then(|index| list.get(index));
    call.out.bulk_or_null(item);
    Ok(())
}

fn linsert(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let (pivot, item) = (call.args.at(3), call.args.at(4));
    let behind = match call.args.at(2).to_ascii_lowercase().as_slice() {
        b"before" => 0,
        b"after" => 1,
        _ => return Err(Failure::SYNTAX),
    };
    let len = call.space.with(call.args.at(1), false, |list: &mut List, log| {
        let Some(index) = list.iter_from(0).position(|other| other == pivot) else { return -1 };
        list.insert(index + behind, item, log);
        log.event(Class::LIST, "linsert");
        list.len() as i64
    })?;
    call.out.integer(len.unwrap_or(0));
    Ok(())
}

fn lset(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let (key, index, item) = (call.args.at(1), call.integer(2), call.args.at(3));
    let is_set = call.space.with(key, false, |list: &mut List, log| {
        let index = index_of(index?, list.len()).ok_or(Failure::INDEX_OUT_OF_RANGE)?;
        list.set(index, item, log);
        log.event(Class::LIST, "lset");
        Ok::<(), Failure>(())
    })?;
    is_set.ok_or(Failure::NO_SUCH_KEY)??;
    call.out.ok();
    Ok(())
}

fn lrange(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let (from, to) = (call.integer(2)?, call.integer(3)?);
    let Some(list) = call.space.read::<List>(call.args.at(1))? else {
        call.out.array(0);
        return Ok(());
    };
    let Cut { from, count } = slice(from, to, list.len());
    call.out.array(count);
    list.iter_from(from).take(count).for_each(|item| call.out.bulk(item));
    Ok(())
}

fn ltrim(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let (from, to) = (call.integer(2)?, call.integer(3)?);
    call.space.with(call.args.at(1), false, |list: &mut List, log| {
        let Cut { from, count } = slice(from, to, list.len());
        if count == 0 {
            list.trim(list.len(), 0, log);
        } else {
            list.trim(from, from + count - 1, log);
        }
        log.event(Class::LIST, "ltrim");
    })?;
    call.out.ok();
    Ok(())
}

fn lrem(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let (count, item) = (call.integer(2)?, call.args.at(3));
    let end = if count < 0 { End::Back } else { End::Front };
    let most = if count == 0 { usize::MAX } else { count.unsigned_abs() as usize };
    let removed = call.space.with(call.args.at(1), false, |list: &mut List, log| {
        let removed = list.remove_equal(item, end, most, log);
        if removed > 0 {
            log.event(Class::LIST, "lrem");
        }
        removed
    })?;
    call.out.count(removed.unwrap_or(0));
    Ok(())
}

fn lmove(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let ends = (end_at(call, 3)?, end_at(call, 4)?);
    shift(call, ends)
}

fn shift(call: &mut Call<'_, '_>, ends: (End, End)) -> Result<(), Failure> {
    let item = move_item(call, ends)?;
    call.out.bulk_or_null(item.as_deref());
    Ok(())
}

/// Moves an item from the list of the first key to that of the second; none if there is nothing to move.
pub(super) fn move_item(
    call: &mut Call<'_, '_>,
    (from, to): (End, End),
) -> Result<Option<Vec<u8>>, Failure> {
    let (source, target) = (call.args.at(1), call.args.at(2));
    if call.space.read::<List>(source)?.is_none() {
        return Ok(None);
    }
    call.space.read::<List>(target)?;
    if source == target {
        // Rotated in one go, so that a list of one item never goes away.
        let item = call.space.with(source, false, |list: &mut List, log| {
            let item = list.pop(from, log)?;
            list.push(to, &item, log);
            log.event(Class::LIST, push_event(to));
            log.event(Class::LIST, pop_event(from));
            Some(item)
        })?;
        return Ok(item.flatten());
    }
    let item = call.space.with(source, false, |list: &mut List, log| {
        let item = list.pop(from, log);
        log.event(Class::LIST, pop_event(from));
        item
    })?;
    let Some(item) = item.flatten() else { return Ok(None) };
    call.space.with(target, true, |list: &mut List, log| {
        list.push(to, &item, log);
        log.event(Class::LIST, push_event(to));
    })?;
    Ok(Some(item))
}

/// What LMPOP and BLMPOP are told: their keys, an end, and how many items.
pub(super) struct ManyPop {
    pub(super) keys: std::ops::Range<usize>,
    end: End,
    count: usize,
}

impl ManyPop {
    pub(super) fn parse(call: &Call<'_, '_>, at: usize) -> Result<Self, Failure> {
        let refused = Failure::of("ERR numkeys should be greater than 0");
        let number = positive(call.args.at(at), refused.clone())?;
        if number == 0 {
            return Err(refused);
        }
        let behind = number.checked_add(at + 1).filter(|behind| *behind < call.args.len());
        let behind = behind.ok_or(Failure::SYNTAX)?;
        let end = end_at(call, behind)?;
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
        Ok(Self { keys: at + 1..behind, end, count })
    }

    /// Takes from the first list that has something, and replies; says whether there was one.
    pub(super) fn run(&self, call: &mut Call<'_, '_>) -> Result<bool, Failure> {
        for at in self.keys.clone() {
            let key = call.args.at(at);
            if let Some(items) = take(call, key, self.end, self.count)? {
                call.out.array(2);
                call.out.bulk(key);
                write_items(call, &items);
                return Ok(true);
            }
        }
        Ok(false)
    }
}

fn lmpop(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let pop = ManyPop::parse(call, 1)?;
    if !pop.run(call)? {
        call.out.null_array();
    }
    Ok(())
}

/// Takes one item from the first of the keys that has one, and replies with key and item; says whether there was one.
pub(super) fn pop_first(
    call: &mut Call<'_, '_>,
    keys: std::ops::Range<usize>,
    end: End,
) -> Result<bool, Failure> {
    for at in keys {
        let key = call.args.at(at);
        if let Some(mut items) = take(call, key, end, 1)?
            && let Some(item) = items.pop()
        {
            call.out.array(2);
            call.out.bulk(key);
            call.out.bulk(&item);
            return Ok(true);
        }
    }
    Ok(false)
}
