//! Groups of consumers: made and removed, acknowledgements, what is pending.

use lazuli_keyspace::Class;
use lazuli_keyspace::types::stream::Group;
use lazuli_keyspace::types::{Stream, StreamId};

use super::streams::{ids_from, write_counted, write_id};
use crate::call::Call;
use crate::command::Run;
use crate::failure::Failure;
use crate::stream_ids::{interval_end, interval_start, strict};

pub(super) const RUNS: &[(&str, Run)] = &[
    ("xack", xack),
    ("xgroup|create", create),
    ("xgroup|createconsumer", createconsumer),
    ("xgroup|delconsumer", delconsumer),
    ("xgroup|destroy", destroy),
    ("xgroup|setid", setid),
    ("xpending", xpending),
];

const NO_STREAM: Failure = Failure::of(
    "ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to \
     use the MKSTREAM option to create an empty stream automatically.",
);

fn no_such_group(group: &[u8], key: &[u8]) -> Failure {
    Failure::new(format!(
        "NOGROUP No such consumer group '{}' for key name '{}'",
        String::from_utf8_lossy(group),
        String::from_utf8_lossy(key)
    ))
}

/// The error of commands that need key and group.
pub(super) fn no_key_or_group(key: &[u8], group: &[u8]) -> Failure {
    Failure::new(format!(
        "NOGROUP No such key '{}' or consumer group '{}'",
        String::from_utf8_lossy(key),
        String::from_utf8_lossy(group)
    ))
}

/// What XGROUP CREATE and SETID are told behind the id.
#[derive(Default)]
struct Options {
    creates: bool,
    entries_read: Option<u64>,
}

impl Options {
    fn parse(call: &Call<'_, '_>, is_create: bool) -> Result<Self, Failure> {
        let mut found = Self::default();
        let mut at = 5;
        while at < call.args.len() {
            if is_create && call.args.is(at, "mkstream") {
                found.creates = true;
                at += 1;
            } else if call.args.is(at, "entriesread") && at + 1 < call.args.len() {
                let number = call.integer(at + 1)?;
                if number < -1 {
                    return Err(Failure::of("ERR value for ENTRIESREAD must be positive or -1"));
                }
                found.entries_read = u64::try_from(number).ok();
                at += 2;
            } else {
                let name = String::from_utf8_lossy(call.args.at(1)).into_owned();
                return Err(Failure::new(format!(
                    "ERR unknown subcommand or wrong number of arguments for '{name}'. Try \
                     XGROUP HELP."
                )));
            }
        }
        Ok(found)
    }
}

/// The id at a place, where `$` is the last one of the stream.
fn position(call: &Call<'_, '_>, last_id: StreamId) -> Result<StreamId, Failure> {
    match call.args.at(4) {
        b"$" => Ok(last_id),
        id => strict(id, 0),
    }
}

fn create(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let options = Options::parse(call, true)?;
    let (key, name) = (call.args.at(2), call.args.at(3));
    let last_id = call.space.peek_kind::<Stream>(key)?.map(|stream| stream.last_id);
    if last_id.is_none() && !options.creates {
        return Err(NO_STREAM);
    }
    let id = position(call, last_id.unwrap_or_default())?;
    let is_added = call.space.with(key, true, |stream: &mut Stream, log| {
        let is_added = stream.add_group(name, id, options.entries_read, log);
        if is_added {
            stream.log_header(log);
            log.changed(1);
            log.event(Class::STREAM, "xgroup-create");
        }
        is_added
    })?;
    if is_added != Some(true) {
        return Err(Failure::of("BUSYGROUP Consumer Group name already exists"));
    }
    call.out.ok();
    Ok(())
}

/// Changes a group that must be there.
fn with_group<T>(
    call: &mut Call<'_, '_>,
    change: impl FnOnce(&mut Stream, &mut lazuli_keyspace::Log<'_>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let (key, name) = (call.args.at(2), call.args.at(3));
    let changed = call.space.with(key, false, |stream: &mut Stream, log| {
        if stream.group(name).is_none() {
            return Err(no_such_group(name, key));
        }
        change(stream, log)
    })?;
    changed.ok_or(NO_STREAM)?
}

fn setid(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let options = Options::parse(call, false)?;
    let name = call.args.at(3);
    let last_id = call.space.peek_kind::<Stream>(call.args.at(2))?.map(|stream| stream.last_id);
    let id = position(call, last_id.unwrap_or_default());
    with_group(call, |stream, log| {
        let id = id?;
        stream.with_group(name, log, |group, log| {
            group.set_position(id, options.entries_read, log);
        });
        log.changed(1);
        log.event(Class::STREAM, "xgroup-setid");
        Ok(())
    })?;
    call.out.ok();
    Ok(())
}

fn destroy(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let (key, name) = (call.args.at(2), call.args.at(3));
    let is_removed = call.space.with(key, false, |stream: &mut Stream, log| {
        let is_removed = stream.remove_group(name, log);
        if is_removed {
            log.changed(1);
            log.event(Class::STREAM, "xgroup-destroy");
        }
        is_removed
    })?;
    call.out.integer(i64::from(is_removed.ok_or(NO_STREAM)?));
    Ok(())
}

fn createconsumer(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let (name, consumer) = (call.args.at(3), call.args.at(4));
    let now_ms = call.now_ms();
    let is_new = with_group(call, |stream, log| {
        let group = stream.group(name);
        if group.is_some_and(|group| group.consumer(consumer).is_some()) {
            return Ok(false);
        }
        stream.with_group(name, log, |group, log| group.see(consumer, now_ms, log));
        log.event(Class::STREAM, "xgroup-createconsumer");
        Ok(true)
    })?;
    call.out.integer(i64::from(is_new));
    Ok(())
}

fn delconsumer(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let (name, consumer) = (call.args.at(3), call.args.at(4));
    let pending = with_group(call, |stream, log| {
        let removed = stream
            .with_group(name, log, |group, log| group.remove_consumer(consumer, log))
            .flatten();
        if removed.is_some() {
            log.event(Class::STREAM, "xgroup-delconsumer");
        }
        Ok(removed.unwrap_or(0))
    })?;
    call.out.count(pending);
    Ok(())
}

fn xack(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let ids = ids_from(call, 3);
    let name = call.args.at(2);
    let acknowledged = call.space.with(call.args.at(1), false, |stream: &mut Stream, log| {
        if stream.group(name).is_none() {
            return Ok(0);
        }
        let ids = ids?;
        let acknowledged = stream.with_group(name, log, |group, log| {
            ids.iter().filter(|id| group.acknowledge(**id, log)).count()
        });
        Ok::<usize, Failure>(acknowledged.unwrap_or(0))
    })?;
    call.out.count(acknowledged.unwrap_or(Ok(0))?);
    Ok(())
}

/// What XPENDING is asked for beyond a summary.
struct Listing<'a> {
    min_idle_ms: u64,
    bounds: (StreamId, StreamId),
    count: usize,
    consumer: Option<&'a [u8]>,
}

impl<'a> Listing<'a> {
    fn parse(call: &Call<'a, '_>) -> Result<Option<Self>, Failure> {
        let args = call.args;
        if args.len() == 3 {
            return Ok(None);
        }
        if args.len() < 6 || args.len() > 9 {
            return Err(Failure::SYNTAX);
        }
        let has_idle = args.is(3, "idle");
        let mut min_idle_ms = 0;
        if has_idle {
            min_idle_ms = call.integer(4)?.max(0) as u64;
            if args.len() < 8 {
                return Err(Failure::SYNTAX);
            }
        }
        let first = if has_idle { 5 } else { 3 };
        let count = call.integer(first + 2)?.max(0) as usize;
        let bounds = (interval_start(args.at(first))?, interval_end(args.at(first + 1))?);
        if args.len() > first + 4 {
            return Err(Failure::SYNTAX);
        }
        Ok(Some(Self { min_idle_ms, bounds, count, consumer: args.get(first + 3) }))
    }

    fn write(&self, call: &mut Call<'_, '_>) -> Result<(), Failure> {
        let (key, name) = (call.args.at(1), call.args.at(2));
        let now_ms = call.now_ms();
        let group = group_of(call.space.read::<Stream>(key)?, key, name)?;
        let (from, to) = self.bounds;
        if from > to {
            call.out.array(0);
            return Ok(());
        }
        write_counted(call.out, |out| {
            let mut written = 0;
            for (id, pending) in group.pending().range(from..=to) {
                let idle_ms = now_ms.saturating_sub(pending.delivered_ms);
                let is_other = self.consumer.is_some_and(|it| it != &*pending.consumer);
                if is_other || idle_ms < self.min_idle_ms {
                    continue;
                }
                if written == self.count {
                    break;
                }
                out.array(4);
                write_id(out, *id);
                out.bulk(&pending.consumer);
                out.integer(idle_ms as i64);
                out.integer(pending.deliveries as i64);
                written += 1;
            }
            written
        });
        Ok(())
    }
}

fn group_of<'s>(stream: Option<&'s Stream>, key: &[u8], name: &[u8]) -> Result<&'s Group, Failure> {
    let group = stream.and_then(|stream| stream.group(name));
    group.ok_or_else(|| no_key_or_group(key, name))
}

fn xpending(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    if let Some(listing) = Listing::parse(call)? {
        return listing.write(call);
    }
    let (key, name) = (call.args.at(1), call.args.at(2));
    let group = group_of(call.space.read::<Stream>(key)?, key, name)?;
    let ids = group.pending();
    call.out.array(4);
    call.out.count(ids.len());
    let (Some((first, _)), Some((last, _))) = (ids.first_key_value(), ids.last_key_value()) else {
        call.out.null();
        call.out.null();
        call.out.null_array();
        return Ok(());
    };
    write_id(call.out, *first);
    write_id(call.out, *last);
    let busy: Vec<(&[u8], usize)> = group
        .consumers()
        .map(|(name, consumer)| (name, consumer.pending().len()))
        .filter(|(_, pending)| *pending > 0)
        .collect();
    call.out.array(busy.len());
    for (name, pending) in busy {
        call.out.array(2);
        call.out.bulk(name);
        call.out.bulk_integer(pending as i64);
    }
    Ok(())
}
