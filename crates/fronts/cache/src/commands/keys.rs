//! Keys of any type: deletion, expiry, renaming, scanning.

use lazuli_keyspace::{Class, Entry, cursor_slot};
use lazuli_resp::parse_integer;

use crate::call::Call;
use crate::command::Run;
use crate::dispatch::parse_cursor;
use crate::failure::Failure;
use crate::glob;

pub(super) const RUNS: &[(&str, Run)] = &[
    ("copy", copy),
    ("dbsize", dbsize),
    ("del", del),
    ("exists", exists),
    ("expire", |call| expire(call, 1000, false)),
    ("expireat", |call| expire(call, 1000, true)),
    ("expiretime", |call| ttl(call, 1000, true)),
    ("keys", keys),
    ("move", move_key),
    ("persist", persist),
    ("pexpire", |call| expire(call, 1, false)),
    ("pexpireat", |call| expire(call, 1, true)),
    ("pexpiretime", |call| ttl(call, 1, true)),
    ("pttl", |call| ttl(call, 1, false)),
    ("randomkey", randomkey),
    ("rename", |call| rename(call, false)),
    ("renamenx", |call| rename(call, true)),
    ("scan", scan),
    ("touch", touch),
    ("ttl", |call| ttl(call, 1000, false)),
    ("type", type_of),
    ("unlink", del),
];

fn del(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let mut count = 0;
    for key in call.args.from(1).iter() {
        count += i64::from(call.space.delete(key).is_some());
    }
    call.out.integer(count);
    Ok(())
}

fn exists(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let mut count = 0;
    for key in call.args.from(1).iter() {
        count += i64::from(call.space.look(key).is_some());
    }
    call.out.integer(count);
    Ok(())
}

fn touch(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    exists(call)
}

fn type_of(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let name = call.space.peek(call.args.at(1)).map_or("none", Entry::type_name);
    call.out.simple(name);
    Ok(())
}

/// When an expiry may be set.
#[derive(Default)]
struct Conditions {
    nx: bool,
    xx: bool,
    gt: bool,
    lt: bool,
}

impl Conditions {
    fn parse(call: &Call<'_, '_>) -> Result<Self, Failure> {
        let mut found = Self::default();
        for option in call.args.from(3).iter() {
            match option.to_ascii_lowercase().as_slice() {
                b"nx" => found.nx = true,
                b"xx" => found.xx = true,
                b"gt" => found.gt = true,
                b"lt" => found.lt = true,
                _ => {
                    let shown = String::from_utf8_lossy(option);
                    return Err(Failure::new(format!("ERR Unsupported option {shown}")));
                }
            }
        }
        if found.nx && (found.xx || found.gt || found.lt) {
            let text = "ERR NX and XX, GT or LT options at the same time are not compatible";
            return Err(Failure::of(text));
        }
        if found.gt && found.lt {
            let text = "ERR GT and LT options at the same time are not compatible";
            return Err(Failure::of(text));
        }
        Ok(found)
    }

    fn allow(&self, before: Option<u64>, at: i64) -> bool {
        let before_or_never = before.map_or(i128::MAX, i128::from);
        !(self.nx && before.is_some()
            || self.xx && before.is_none()
            || self.gt && i128::from(at) <= before_or_never
            || self.lt && i128::from(at) >= before_or_never)
    }
}

fn expire(call: &mut Call<'_, '_>, unit: i64, is_absolute: bool) -> Result<(), Failure> {
    let key = call.args.at(1);
    let number = call.integer(2)?;
    let base = if is_absolute { 0 } else { call.now_ms() as i64 };
    let at = number.checked_mul(unit).and_then(|it| it.checked_add(base)).ok_or_else(|| {
        Failure::new(format!("ERR invalid expire time in '{}' command", call.command.name))
    })?;
    let conditions = Conditions::parse(call)?;
    let Some(before) = call.space.expires_at_ms(key) else {
        call.out.integer(0);
        return Ok(());
    };
    if !conditions.allow(before, at) {
        call.out.integer(0);
        return Ok(());
    }
    if at <= call.now_ms() as i64 {
        call.space.delete(key);
    } else {
        call.space.set_expiry(key, Some(at as u64));
        call.space.event(Class::GENERIC, "expire", key);
    }
    call.out.integer(1);
    Ok(())
}

fn ttl(call: &mut Call<'_, '_>, unit: u64, is_absolute: bool) -> Result<(), Failure> {
    let now = call.now_ms();
    let found = call.space.look(call.args.at(1)).map(Entry::expires_at_ms);
    let answer = match found {
        None => -2,
        Some(None) => -1,
        Some(Some(at)) if is_absolute => ((at + unit / 2) / unit) as i64,
        Some(Some(at)) => ((at.saturating_sub(now) + unit / 2) / unit) as i64,
    };
    call.out.integer(answer);
    Ok(())
}

fn persist(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let key = call.args.at(1);
    let is_done = call.space.expires_at_ms(key).flatten().is_some();
    if is_done {
        call.space.set_expiry(key, None);
        call.space.event(Class::GENERIC, "persist", key);
    }
    call.out.integer(i64::from(is_done));
    Ok(())
}

fn rename(call: &mut Call<'_, '_>, only_new: bool) -> Result<(), Failure> {
    let (from, to) = (call.args.at(1), call.args.at(2));
    if !call.space.exists(from) {
        return Err(Failure::NO_SUCH_KEY);
    }
    let exists = call.space.exists(to);
    if only_new && exists {
        call.out.integer(0);
        return Ok(());
    }
    if from != to
        && let Some((value, expiry)) = call.space.take(from)
    {
        call.space.put(to, value, expiry);
        call.space.event(Class::GENERIC, "rename_from", from);
        call.space.event(Class::GENERIC, "rename_to", to);
    }
    match only_new {
        true => call.out.integer(1),
        false => call.out.ok(),
    }
    Ok(())
}

/// The database that an argument names.
pub(super) fn database(call: &Call<'_, '_>, index: usize) -> Result<usize, Failure> {
    let number = call.integer(index)?;
    let number = usize::try_from(number).ok();
    number.filter(|it| *it < call.server.keyspace.databases()).ok_or(Failure::BAD_DATABASE)
}

fn copy(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let (from, to) = (call.args.at(1), call.args.at(2));
    let (mut target, mut replaces) = (call.space.database, false);
    let mut at = 3;
    while at < call.args.len() {
        if call.args.is(at, "replace") {
            replaces = true;
        } else if call.args.is(at, "db") && at + 1 < call.args.len() {
            at += 1;
            target = database(call, at)?;
        } else {
            return Err(Failure::SYNTAX);
        }
        at += 1;
    }
    let source = call.space.database;
    if source == target && from == to {
        return Err(Failure::of("ERR source and destination objects are the same"));
    }
    let copied = call.space.look(from).map(|it| (it.copy_value(), it.expires_at_ms()));
    let Some((value, expiry)) = copied else {
        call.out.integer(0);
        return Ok(());
    };
    call.space.database = target;
    let is_done = replaces || !call.space.exists(to);
    if is_done {
        call.space.put(to, value, expiry);
        call.space.event(Class::GENERIC, "copy_to", to);
    }
    call.space.database = source;
    call.out.integer(i64::from(is_done));
    Ok(())
}

fn move_key(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let (key, source) = (call.args.at(1), call.space.database);
    let target = database(call, 2)?;
    if source == target {
        return Err(Failure::of("ERR source and destination objects are the same"));
    }
    call.space.database = target;
    let is_taken = call.space.exists(key);
    call.space.database = source;
    let taken = if is_taken { None } else { call.space.take(key) };
    let is_done = taken.is_some();
    if let Some((value, expiry)) = taken {
        call.space.event(Class::GENERIC, "move_from", key);
        call.space.database = target;
        call.space.put(key, value, expiry);
        call.space.event(Class::GENERIC, "move_to", key);
        call.space.database = source;
    }
    call.out.integer(i64::from(is_done));
    Ok(())
}

fn dbsize(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let count = call.space.counts(call.space.database).keys;
    call.out.count(count);
    Ok(())
}

fn randomkey(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let key = call.space.random_key();
    call.out.bulk_or_null(key.as_deref());
    Ok(())
}

fn keys(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let pattern = call.args.at(1);
    let mut found: Vec<Box<[u8]>> = Vec::new();
    let mut cursor = 0;
    loop {
        cursor = call.space.scan(cursor, usize::MAX, |key, _| {
            if pattern == b"*" || glob::matches(pattern, key) {
                found.push(key.into());
            }
        });
        if cursor == 0 {
            break;
        }
    }
    call.out.array(found.len());
    found.iter().for_each(|key| call.out.bulk(key));
    Ok(())
}

/// The options of all commands that scan.
pub(super) struct ScanOptions<'a> {
    pub(super) pattern: Option<&'a [u8]>,
    pub(super) count: usize,
    pub(super) kind: Option<&'a [u8]>,
}

impl<'a> ScanOptions<'a> {
    pub(super) fn parse(
        call: &Call<'a, '_>,
        from: usize,
        takes_type: bool,
    ) -> Result<Self, Failure> {
        let mut found = Self { pattern: None, count: 10, kind: None };
        let args = call.args;
        let mut at = from;
        while at < args.len() {
            let next = args.get(at + 1).ok_or(Failure::SYNTAX)?;
            if args.is(at, "match") {
                found.pattern = Some(next).filter(|it| *it != b"*");
            } else if args.is(at, "count") {
                let count = parse_integer(next).ok_or(Failure::NOT_INTEGER)?;
                let count = usize::try_from(count).ok().filter(|it| *it > 0);
                found.count = count.ok_or(Failure::SYNTAX)?;
            } else if takes_type && args.is(at, "type") {
                found.kind = Some(next);
            } else {
                return Err(Failure::SYNTAX);
            }
            at += 2;
        }
        Ok(found)
    }

    pub(super) fn fits(&self, key: &[u8]) -> bool {
        self.pattern.is_none_or(|pattern| glob::matches(pattern, key))
    }
}

fn scan(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let cursor = parse_cursor(call.args.at(1)).ok_or(Failure::of("ERR invalid cursor"))?;
    let options = ScanOptions::parse(call, 2, true)?;
    let mut found: Vec<Box<[u8]>> = Vec::new();
    let (mut next, mut seen) = (cursor, 0);
    while seen < options.count {
        call.space.reach(cursor_slot(next));
        next = call.space.scan(next, options.count - seen, |key, entry| {
            seen += 1;
            let is_kind = |kind: &[u8]| entry.type_name().as_bytes().eq_ignore_ascii_case(kind);
            if options.fits(key) && options.kind.is_none_or(is_kind) {
                found.push(key.into());
            }
        });
        if next == 0 {
            break;
        }
    }
    call.out.array(2);
    call.out.text(&next.to_string());
    call.out.array(found.len());
    found.iter().for_each(|key| call.out.bulk(key));
    Ok(())
}
