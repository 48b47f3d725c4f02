//! What XINFO tells of streams, groups and consumers.

use lazuli_keyspace::types::stream::Group;
use lazuli_keyspace::types::{Stream, StreamId};
use lazuli_resp::Reply;

use super::streams::{write_entry, write_id, write_range};
use crate::call::Call;
use crate::command::Run;
use crate::failure::Failure;

pub(super) const RUNS: &[(&str, Run)] =
    &[("xinfo|consumers", consumers), ("xinfo|groups", groups), ("xinfo|stream", stream)];

/// Entries and pending entries that FULL shows where nothing else is said.
const SHOWN: u64 = 10;

fn write_optional(out: &mut Reply, number: Option<i64>) {
    match number {
        Some(number) => out.integer(number),
        None => out.null(),
    }
}

fn consumers(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let (key, name) = (call.args.at(2), call.args.at(3));
    let now_ms = call.now_ms();
    let found = call.space.read::<Stream>(key)?.ok_or(Failure::NO_SUCH_KEY)?;
    let Some(group) = found.group(name) else {
        return Err(Failure::new(format!(
            "NOGROUP No such consumer group '{}' for key name '{}'",
            String::from_utf8_lossy(name),
            String::from_utf8_lossy(key)
        )));
    };
    call.out.array(group.consumers().len());
    for (name, consumer) in group.consumers() {
        call.out.map(3);
        call.out.text("name");
        call.out.bulk(name);
        call.out.text("pending");
        call.out.count(consumer.pending().len());
        call.out.text("idle");
        call.out.integer(now_ms.saturating_sub(consumer.seen_ms) as i64);
    }
    Ok(())
}

fn groups(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let found = call.space.read::<Stream>(call.args.at(2))?.ok_or(Failure::NO_SUCH_KEY)?;
    call.out.array(found.groups().len());
    for (name, group) in found.groups() {
        call.out.map(6);
        call.out.text("name");
        call.out.bulk(name);
        call.out.text("consumers");
        call.out.count(group.consumers().len());
        call.out.text("pending");
        call.out.count(group.pending().len());
        call.out.text("last-delivered-id");
        write_id(call.out, group.last_id);
        call.out.text("entries-read");
        write_optional(call.out, group.entries_read.map(|read| read as i64));
        call.out.text("lag");
        write_optional(call.out, found.lag(group));
    }
    Ok(())
}

fn stream(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let args = call.args;
    let is_full = args.len() > 3;
    // What is wrong with the arguments is told only of a stream that exists.
    let count = if is_full { full_count(call) } else { Ok(SHOWN) };
    let found = call.space.read::<Stream>(args.at(2))?.ok_or(Failure::NO_SUCH_KEY)?;
    let count = count?;
    call.out.map(if is_full { 9 } else { 10 });
    write_head(call.out, found);
    if is_full {
        call.out.text("entries");
        write_range(call.out, found, (StreamId::MIN, StreamId::MAX), false, count);
        call.out.text("groups");
        call.out.array(found.groups().len());
        for (name, group) in found.groups() {
            write_group(call.out, found, (name, group), count);
        }
        return Ok(());
    }
    call.out.text("groups");
    call.out.count(found.groups().len());
    for (label, is_reverse) in [("first-entry", false), ("last-entry", true)] {
        call.out.text(label);
        let mut is_there = false;
        found.range(StreamId::MIN, StreamId::MAX, is_reverse, &mut |id, texts| {
            write_entry(call.out, id, texts);
            is_there = true;
            false
        });
        if !is_there {
            call.out.null();
        }
    }
    Ok(())
}

/// How many entries FULL shows.
fn full_count(call: &Call<'_, '_>) -> Result<u64, Failure> {
    let args = call.args;
    let has_count = args.len() == 6 && args.is(4, "count");
    if !args.is(3, "full") || (args.len() != 4 && !has_count) {
        return Err(Failure::new(format!(
            "ERR unknown subcommand or wrong number of arguments for '{}'. Try XINFO HELP.",
            String::from_utf8_lossy(args.at(1))
        )));
    }
    if has_count { Ok(u64::try_from(call.integer(5)?).unwrap_or(SHOWN)) } else { Ok(SHOWN) }
}

fn write_head(out: &mut Reply, stream: &Stream) {
    out.text("length");
    out.integer(stream.len() as i64);
    out.text("radix-tree-keys");
    out.count(stream.blocks());
    out.text("radix-tree-nodes");
    out.count(stream.blocks() + 1);
    out.text("last-generated-id");
    write_id(out, stream.last_id);
    out.text("max-deleted-entry-id");
    write_id(out, stream.max_deleted_id);
    out.text("entries-added");
    out.integer(stream.entries_added as i64);
    out.text("recorded-first-entry-id");
    write_id(out, stream.first_id());
}

/// A count of 0 shows all.
fn write_group(out: &mut Reply, stream: &Stream, (name, group): (&[u8], &Group), count: u64) {
    let most = if count == 0 { usize::MAX } else { count as usize };
    out.map(7);
    out.text("name");
    out.bulk(name);
    out.text("last-delivered-id");
    write_id(out, group.last_id);
    out.text("entries-read");
    write_optional(out, group.entries_read.map(|read| read as i64));
    out.text("lag");
    write_optional(out, stream.lag(group));
    out.text("pel-count");
    out.count(group.pending().len());
    out.text("pending");
    out.array(group.pending().len().min(most));
    for (id, pending) in group.pending().iter().take(most) {
        out.array(4);
        write_id(out, *id);
        out.bulk(&pending.consumer);
        out.integer(pending.delivered_ms as i64);
        out.integer(pending.deliveries as i64);
    }
    out.text("consumers");
    out.array(group.consumers().len());
    for (name, consumer) in group.consumers() {
        out.map(4);
        out.text("name");
        out.bulk(name);
        out.text("seen-time");
        out.integer(consumer.seen_ms as i64);
        out.text("pel-count");
        out.count(consumer.pending().len());
        out.text("pending");
        out.array(consumer.pending().len().min(most));
        for id in consumer.pending().iter().take(most) {
            let pending = group.pending().get(id);
            out.array(3);
            write_id(out, *id);
            out.integer(pending.map_or(0, |it| it.delivered_ms) as i64);
            out.integer(pending.map_or(0, |it| it.deliveries) as i64);
        }
    }
}
