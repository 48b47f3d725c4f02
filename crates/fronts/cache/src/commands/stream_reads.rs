//! Reading streams as they grow: XREAD, and XREADGROUP for consumers of a group.

use lazuli_keyspace::Class;
use lazuli_keyspace::types::stream::Group;
use lazuli_keyspace::types::{Stream, StreamId};
use lazuli_resp::{OwnedArgs, Reply, parse_integer};

use super::streams::{write_counted, write_entry, write_id, write_range};
use crate::call::{Call, Null};
use crate::command::Run;
use crate::failure::Failure;
use crate::stream_ids::strict;

pub(super) const RUNS: &[(&str, Run)] = &[("xread", xread), ("xreadgroup", xreadgroup)];

/// What both commands are told.
struct Query<'a> {
    /// None does not wait; none inside waits for ever.
    block_ms: Option<Option<u64>>,
    /// 0 for all.
    count: u64,
    /// Group and consumer.
    reader: Option<(&'a [u8], &'a [u8])>,
    is_unacknowledged: bool,
    /// Where the keys begin, and how many they are; ids follow.
    first: usize,
    streams: usize,
}

impl<'a> Query<'a> {
    fn parse(call: &Call<'a, '_>, is_group: bool) -> Result<Self, Failure> {
        let args = call.args;
        let mut found = Self {
            block_ms: None,
            count: 0,
            reader: None,
            is_unacknowledged: false,
            first: 0,
            streams: 0,
        };
        let mut at = 1;
        while at < args.len() {
            let more = args.len() - 1 - at;
            match args.at(at).to_ascii_lowercase().as_slice() {
                b"block" if more > 0 => {
                    at += 1;
                    found.block_ms = Some(block_ms(args.at(at))?);
                }
                b"count" if more > 0 => {
                    at += 1;
                    found.count = call.integer(at)?.max(0) as u64;
                }
                b"streams" if more > 0 => {
                    if !more.is_multiple_of(2) {
                        return Err(UNBALANCED);
                    }
                    (found.first, found.streams) = (at + 1, more / 2);
                    break;
                }
                b"group" if more > 1 => {
                    if !is_group {
                        return Err(Failure::of(
                            "ERR The GROUP option is only supported by XREADGROUP. You called \
                             XREAD instead.",
                        ));
                    }
                    found.reader = Some((args.at(at + 1), args.at(at + 2)));
                    at += 2;
                }
                b"noack" => {
                    if !is_group {
                        return Err(Failure::of(
                            "ERR The NOACK option is only supported by XREADGROUP. You called \
                             XREAD instead.",
                        ));
                    }
                    found.is_unacknowledged = true;
                }
                _ => return Err(Failure::SYNTAX),
            }
            at += 1;
        }
        if found.first == 0 {
            return Err(Failure::SYNTAX);
        }
        if is_group && found.reader.is_none() {
            return Err(Failure::of("ERR Missing GROUP option for XREADGROUP"));
        }
        Ok(found)
    }

    fn key(&self, call: &Call<'a, '_>, stream: usize) -> &'a [u8] {
        call.args.at(self.first + stream)
    }

    fn id(&self, call: &Call<'a, '_>, stream: usize) -> &'a [u8] {
        call.args.at(self.first + self.streams + stream)
    }

    /// Puts the replies of those streams that have any behind each other; says whether there are.
    fn write(&self, call: &mut Call<'a, '_>, replies: Vec<(usize, Reply)>) -> bool {
        if replies.is_empty() {
            return false;
        }
        match call.out.is_resp3 {
            true => call.out.map(replies.len()),
            false => call.out.array(replies.len()),
        }
        for (stream, reply) in replies {
            if !call.out.is_resp3 {
                call.out.array(2);
            }
            let key = self.key(call, stream);
            call.out.bulk(key);
            call.out.bytes.extend_from_slice(&reply.bytes);
        }
        true
    }

    /// Waits, if that was asked for, with the given ids in the place of those that were relative to now.
    fn wait(&self, call: &mut Call<'a, '_>, ids: &[Option<StreamId>]) {
        let Some(timeout_ms) = self.block_ms else { return call.out.null_array() };
        let args = call.args;
        let fixed = |at: usize| {
            let place = at.checked_sub(self.first + self.streams);
            let id = place.and_then(|stream| ids.get(stream).copied().flatten());
            id.map_or_else(|| args.at(at).to_vec(), |id| id.to_string().into_bytes())
        };
        let again: OwnedArgs = (0..args.len()).map(fixed).collect();
        let keys = (self.first..self.first + self.streams).map(|at| args.at(at));
        call.block_with(keys, timeout_ms, Null::Array, again);
    }
}

const UNBALANCED: Failure = Failure::of(
    "ERR Unbalanced XREAD list of streams: for each stream key an ID or '$' must be specified.",
);

fn block_ms(text: &[u8]) -> Result<Option<u64>, Failure> {
    let refused = Failure::of("ERR timeout is not an integer or out of range");
    let ms = parse_integer(text).ok_or(refused)?;
    match u64::try_from(ms) {
        Ok(0) => Ok(None),
        Ok(ms) => Ok(Some(ms)),
        Err(_) => Err(Failure::NEGATIVE_TIMEOUT),
    }
}

fn xread(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let query = Query::parse(call, false)?;
    let mut ids = Vec::with_capacity(query.streams);
    for stream in 0..query.streams {
        let (key, id) = (query.key(call, stream), query.id(call, stream));
        let found = call.space.read::<Stream>(key)?;
        ids.push(match id {
            b"$" => found.map_or(StreamId::MIN, |stream| stream.last_id),
            b">" => {
                return Err(Failure::of(
                    "ERR The > ID can be specified only when calling XREADGROUP using the GROUP \
                     <group> <consumer> option.",
                ));
            }
            id => strict(id, 0)?,
        });
    }
    let mut replies = Vec::new();
    for (stream, id) in ids.iter().enumerate() {
        let key = query.key(call, stream);
        let Some(found) = call.space.read::<Stream>(key)? else { continue };
        if let (true, Some(from)) = (found.top_id() > *id, id.next()) {
            let mut reply = Reply::new(call.out.is_resp3);
            write_range(&mut reply, found, (from, StreamId::MAX), false, query.count);
            replies.push((stream, reply));
        }
    }
    if !query.write(call, replies) {
        let ids: Vec<Option<StreamId>> = ids.into_iter().map(Some).collect();
        query.wait(call, &ids);
    }
    Ok(())
}

fn no_group(key: &[u8], group: &[u8]) -> Failure {
    Failure::new(format!(
        "NOGROUP No such key '{}' or consumer group '{}' in XREADGROUP with GROUP option",
        String::from_utf8_lossy(key),
        String::from_utf8_lossy(group)
    ))
}

/// What a consumer asks a stream for.
#[derive(Clone, Copy)]
enum Wish {
    New,
    /// What was handed to it before, from this id on.
    History(StreamId),
}

fn xreadgroup(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let query = Query::parse(call, true)?;
    let (group, consumer) = query.reader.unwrap_or_default();
    let mut wishes = Vec::with_capacity(query.streams);
    for stream in 0..query.streams {
        let (key, id) = (query.key(call, stream), query.id(call, stream));
        let found = call.space.read::<Stream>(key)?;
        if found.is_none_or(|stream| stream.group(group).is_none()) {
            return Err(no_group(key, group));
        }
        wishes.push(match id {
            b"$" => {
                return Err(Failure::of(
                    "ERR The $ ID is meaningless in the context of XREADGROUP: you want to read \
                     the history of this consumer by specifying a proper ID, or use the > ID to \
                     get new messages. The $ ID would just return an empty result set.",
                ));
            }
            b">" => Wish::New,
            id => Wish::History(strict(id, 0)?),
        });
    }
    let now_ms = call.now_ms();
    let mut replies = Vec::new();
    for (stream, wish) in wishes.into_iter().enumerate() {
        let key = query.key(call, stream);
        let mut reply = Reply::new(call.out.is_resp3);
        let is_served = call.space.with(key, false, |stream: &mut Stream, log| {
            let delivery = Delivery { group, consumer, now_ms, count: query.count };
            match wish {
                Wish::History(from) => {
                    delivery.write_history(&mut reply, stream, from, log);
                    true
                }
                Wish::New => delivery.write_new(&mut reply, stream, query.is_unacknowledged, log),
            }
        })?;
        if is_served == Some(true) {
            replies.push((stream, reply));
        }
    }
    if !query.write(call, replies) {
        query.wait(call, &[]);
    }
    Ok(())
}

/// One reading of one stream by one consumer.
struct Delivery<'a> {
    group: &'a [u8],
    consumer: &'a [u8],
    now_ms: u64,
    count: u64,
}

impl Delivery<'_> {
    fn most(&self) -> usize {
        if self.count == 0 { usize::MAX } else { self.count as usize }
    }

    /// Notes that the consumer was seen; makes it if it is new.
    fn see(&self, stream: &mut Stream, log: &mut lazuli_keyspace::Log<'_>) {
        let is_new = stream
            .with_group(self.group, log, |group, log| group.see(self.consumer, self.now_ms, log));
        if is_new == Some(true) {
            log.event(Class::STREAM, "xgroup-createconsumer");
        }
    }

    /// Entries that were handed to the consumer already; those that are deleted by now have no fields.
    fn write_history(
        &self,
        out: &mut Reply,
        stream: &mut Stream,
        after: StreamId,
        log: &mut lazuli_keyspace::Log<'_>,
    ) {
        self.see(stream, log);
        let consumer = stream.group(self.group).and_then(|group| group.consumer(self.consumer));
        let from = after.next();
        let ids: Vec<StreamId> = match (consumer, from) {
            (Some(consumer), Some(from)) => {
                consumer.pending().range(from..).take(self.most()).copied().collect()
            }
            _ => Vec::new(),
        };
        out.array(ids.len());
        for id in ids {
            let mut is_there = false;
            stream.range(id, id, false, &mut |id, texts| {
                write_entry(out, id, texts);
                is_there = true;
                false
            });
            if is_there {
                stream.with_group(self.group, log, |group, log| {
                    let deliveries = group.pending().get(&id).map_or(0, |it| it.deliveries);
                    group.give(id, self.consumer, self.now_ms, deliveries + 1, log);
                });
            } else {
                out.array(2);
                write_id(out, id);
                out.null_array();
            }
        }
    }

    /// Entries that no consumer of the group has got yet; says whether there are any.
    fn write_new(
        &self,
        out: &mut Reply,
        stream: &mut Stream,
        is_unacknowledged: bool,
        log: &mut lazuli_keyspace::Log<'_>,
    ) -> bool {
        let Some(group) = stream.group(self.group) else { return false };
        let Some(from) = group.last_id.next().filter(|from| stream.top_id() >= *from) else {
            return false;
        };
        let mut read = position(group);
        self.see(stream, log);
        let mut ids = Vec::new();
        write_counted(out, |out| {
            stream.range(from, StreamId::MAX, false, &mut |id, texts| {
                write_entry(out, id, texts);
                ids.push(id);
                ids.len() < self.most()
            });
            ids.len()
        });
        for id in &ids {
            read.entries_read = stream.read_up_to(&read, *id);
            read.last_id = *id;
        }
        stream.with_group(self.group, log, |group, log| {
            group.set_position(read.last_id, read.entries_read, log);
            if !is_unacknowledged {
                for id in &ids {
                    group.give(*id, self.consumer, self.now_ms, 1, log);
                }
            }
        });
        true
    }
}

/// A group with the same position and nothing else.
fn position(group: &Group) -> Group {
    let mut position = Group::default();
    (position.last_id, position.entries_read) = (group.last_id, group.entries_read);
    position
}
