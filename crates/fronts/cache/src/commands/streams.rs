//! Streams: adding, reading ranges, deleting, trimming.

use lazuli_keyspace::Class;
use lazuli_keyspace::types::{Stream, StreamId};
use lazuli_resp::Reply;

use crate::call::Call;
use crate::command::Run;
use crate::failure::Failure;
use crate::stream_ids::{NewId, Options, interval_end, interval_start, strict};

pub(super) const RUNS: &[(&str, Run)] = &[
    ("xadd", xadd),
    ("xdel", xdel),
    ("xlen", xlen),
    ("xrange", |call| range(call, false)),
    ("xrevrange", |call| range(call, true)),
    ("xsetid", xsetid),
    ("xtrim", xtrim),
];

pub(super) fn write_id(out: &mut Reply, id: StreamId) {
    out.text(&id.to_string());
}

/// An entry: its id, then fields and values in turn.
pub(super) fn write_entry(out: &mut Reply, id: StreamId, texts: &[&[u8]]) {
    out.array(2);
    write_id(out, id);
    out.array(texts.len());
    texts.iter().for_each(|text| out.bulk(text));
}

/// Writes entries behind a head with their number, which is known when they are.
pub(super) fn write_counted(out: &mut Reply, write: impl FnOnce(&mut Reply) -> usize) {
    let mut entries = Reply::new(out.is_resp3);
    let count = write(&mut entries);
    out.array(count);
    out.bytes.extend_from_slice(&entries.bytes);
}

/// Writes up to `count` entries of a range, 0 for all.
pub(super) fn write_range(
    out: &mut Reply,
    stream: &Stream,
    (from, to): (StreamId, StreamId),
    is_reverse: bool,
    count: u64,
) {
    write_counted(out, |out| {
        let mut written = 0;
        stream.range(from, to, is_reverse, &mut |id, texts| {
            write_entry(out, id, texts);
            written += 1;
            count == 0 || (written as u64) < count
        });
        written
    });
}

fn xadd(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let args = call.args;
    let (options, at) = Options::parse(call, 2, true)?;
    let id = if at < args.len() { NewId::parse(args.at(at))? } else { NewId::Auto };
    let texts: Vec<&[u8]> = args.from(at + 1).iter().collect();
    if texts.is_empty() || !texts.len().is_multiple_of(2) {
        return Err(Failure::of("ERR wrong number of arguments for 'xadd' command"));
    }
    if matches!(id, NewId::Given(StreamId::MIN)) {
        return Err(Failure::of("ERR The ID specified in XADD must be greater than 0-0"));
    }
    let now_ms = call.now_ms();
    let creates = !options.creates_none;
    let key = args.at(1);
    if let Some(stream) = call.space.peek_kind::<Stream>(key)? {
        check_new(stream, id, now_ms)?;
    }
    let added = call.space.with(key, creates, |stream: &mut Stream, log| {
        let id = check_new(stream, id, now_ms)?;
        stream.add(id, &texts, log);
        log.event(Class::STREAM, "xadd");
        if let Some(trim) = options.trim
            && stream.trim(trim.keep, trim.is_exact, trim.most, log) > 0
        {
            log.event(Class::STREAM, "xtrim");
        }
        Ok::<StreamId, Failure>(id)
    })?;
    match added {
        Some(id) => write_id(call.out, id?),
        None => call.out.null(),
    }
    Ok(())
}

fn check_new(stream: &Stream, id: NewId, now_ms: u64) -> Result<StreamId, Failure> {
    if stream.last_id == StreamId::MAX {
        return Err(Failure::of(
            "ERR The stream has exhausted the last possible ID, unable to add more items",
        ));
    }
    id.after(stream.last_id, now_ms).ok_or(
        const {
            Failure::of(
                "ERR The ID specified in XADD is equal or smaller than the target stream top item",
            )
        },
    )
}

fn xlen(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let stream = call.space.read::<Stream>(call.args.at(1))?;
    call.out.integer(stream.map_or(0, Stream::len) as i64);
    Ok(())
}

fn range(call: &mut Call<'_, '_>, is_reverse: bool) -> Result<(), Failure> {
    let args = call.args;
    let (low, high) = if is_reverse { (3, 2) } else { (2, 3) };
    let bounds = (interval_start(args.at(low))?, interval_end(args.at(high))?);
    let mut count = None;
    let mut at = 4;
    while at < args.len() {
        if !args.is(at, "count") || at + 1 == args.len() {
            return Err(Failure::SYNTAX);
        }
        count = Some(call.integer(at + 1)?.max(0) as u64);
        at += 2;
    }
    match (call.space.read::<Stream>(args.at(1))?, count) {
        (None, _) => call.out.array(0),
        (Some(_), Some(0)) => call.out.null_array(),
        (Some(stream), count) => {
            write_range(call.out, stream, bounds, is_reverse, count.unwrap_or(0));
        }
    }
    Ok(())
}

/// The ids from a place on.
pub(super) fn ids_from(call: &Call<'_, '_>, at: usize) -> Result<Vec<StreamId>, Failure> {
    call.args.from(at).iter().map(|id| strict(id, 0)).collect()
}

fn xdel(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let ids = ids_from(call, 2);
    let deleted = call.space.with(call.args.at(1), false, |stream: &mut Stream, log| {
        let mut deleted = 0;
        for id in ids? {
            if stream.remove(id, log) {
                deleted += 1;
                stream.max_deleted_id = stream.max_deleted_id.max(id);
            }
        }
        if deleted > 0 {
            stream.log_header(log);
            log.event(Class::STREAM, "xdel");
        }
        Ok::<usize, Failure>(deleted)
    })?;
    call.out.count(deleted.unwrap_or(Ok(0))?);
    Ok(())
}

fn xtrim(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let (options, _) = Options::parse(call, 2, false)?;
    let trimmed = call.space.with(call.args.at(1), false, |stream: &mut Stream, log| {
        let trim = options.trim?;
        let trimmed = stream.trim(trim.keep, trim.is_exact, trim.most, log);
        if trimmed > 0 {
            log.event(Class::STREAM, "xtrim");
        }
        Some(trimmed)
    })?;
    call.out.integer(trimmed.flatten().unwrap_or(0) as i64);
    Ok(())
}

fn xsetid(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let args = call.args;
    let id = strict(args.at(2), 0)?;
    let (mut added, mut max_deleted) = (None, None);
    let mut at = 3;
    while at < args.len() {
        if at + 1 == args.len() {
            return Err(Failure::SYNTAX);
        }
        match args.at(at).to_ascii_lowercase().as_slice() {
            b"entriesadded" => {
                let number = u64::try_from(call.integer(at + 1)?);
                let refused = Failure::of("ERR entries_added must be positive");
                added = Some(number.map_err(|_| refused)?);
            }
            b"maxdeletedid" => {
                let deleted = strict(args.at(at + 1), 0)?;
                if id < deleted {
                    return Err(Failure::of(
                        "ERR The ID specified in XSETID is smaller than the provided \
                         max_deleted_entry_id",
                    ));
                }
                max_deleted = Some(deleted);
            }
            _ => return Err(Failure::SYNTAX),
        }
        at += 2;
    }
    let is_set = call.space.with(args.at(1), false, |stream: &mut Stream, log| {
        check_set(stream, id, added)?;
        stream.last_id = id;
        stream.entries_added = added.unwrap_or(stream.entries_added);
        stream.max_deleted_id =
            max_deleted.filter(|id| *id != StreamId::MIN).unwrap_or(stream.max_deleted_id);
        stream.log_header(log);
        log.changed(1);
        log.event(Class::STREAM, "xsetid");
        Ok::<(), Failure>(())
    })?;
    is_set.ok_or(Failure::NO_SUCH_KEY)??;
    call.out.ok();
    Ok(())
}

fn check_set(stream: &Stream, id: StreamId, added: Option<u64>) -> Result<(), Failure> {
    if !stream.is_empty() && id < stream.top_id() {
        return Err(Failure::of(
            "ERR The ID specified in XSETID is smaller than the target stream top item",
        ));
    }
    if !stream.is_empty() && added.is_some_and(|added| added < stream.len()) {
        return Err(Failure::of(
            "ERR The entries_added specified in XSETID is smaller than the target stream length",
        ));
    }
    Ok(())
}
