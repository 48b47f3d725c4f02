//! Files of Redis and of ours, and values made from seeds that go through them.

use super::super::file::{BadFile, Reader, Record, Writer, dump_libraries, restore_libraries};
use super::super::*;
use super::rows;
use crate::types::list::End;
use crate::types::table::tests::random;
use crate::types::{Hash, List, Set, SortedSet, Stream, StreamId, Unlogged};

/// What Redis 7.0 wrote with `maxmemory-policy allkeys-lfu`.
const REDIS: &[u8] = include_bytes!("../../../../../../fuzz/seeds/cache_file/redis");
/// Version 3, with every form that versions before 10 had.
const OLD: &[u8] = include_bytes!("../../../../../../fuzz/seeds/cache_file/old");

type Rows = Vec<(Vec<u8>, Vec<u8>)>;

/// A key as it is in a file: database, name, end, type, rows.
type Found = (usize, String, Option<u64>, &'static str, Rows);

fn read(bytes: &[u8]) -> Result<(Vec<Found>, Vec<Vec<u8>>), BadFile> {
    let (mut reader, mut rest) = (Reader::default(), bytes);
    let (mut found, mut libraries) = (Vec::new(), Vec::new());
    loop {
        let (record, length) = reader.next(rest)?.expect("the file is whole");
        match record {
            Record::Key(key) => {
                let value = key.value().expect("the value is one of its type");
                let name = String::from_utf8(key.key.clone()).unwrap();
                let (kind, rows) = (value.type_name(), rows(&value));
                found.push((key.database, name, key.expires_at_ms, kind, rows));
            }
            Record::Library(code) => libraries.push(code),
            Record::Other | Record::Note { .. } => {}
            Record::End => {
                assert_eq!(rest.len(), length);
                found.sort();
                return Ok((found, libraries));
            }
        }
        rest = &rest[length..];
    }
}

fn row(element: &str, value: &str) -> (Vec<u8>, Vec<u8>) {
    (element.into(), value.into())
}

#[test]
fn a_file_of_redis_is_read_with_all_its_types() {
    let (found, libraries) = read(REDIS).unwrap();
    let names: Vec<_> = found.iter().map(|it| (it.0, it.1.as_str(), it.3)).collect();
    let expected = [
        (0, "hash", "hash"),
        (0, "ints", "set"),
        (0, "later", "string"),
        (0, "list", "list"),
        (0, "long", "string"),
        (0, "number", "string"),
        (0, "set", "set"),
        (0, "stream", "stream"),
        (0, "text", "string"),
        (0, "zset", "zset"),
        (3, "three", "string"),
    ];
    assert_eq!(names, expected);
    assert_eq!(found[2].2, Some(4_102_444_800_123));
    assert!(found.iter().all(|it| it.2.is_none() || it.1 == "later"));
    assert_eq!(found[4].4, [row("", &"x".repeat(200))]);
    assert_eq!(found[10].4, [row("", "3")]);
    assert_eq!(libraries.len(), 1);
    assert!(libraries[0].starts_with(b"#!lua name=lib\nredis.register_function"));
}

#[test]
fn a_stream_of_redis_has_its_entries_groups_and_pending_entries() {
    let (mut reader, mut rest) = (Reader::default(), REDIS);
    let stream = loop {
        let (record, length) = reader.next(rest).unwrap().unwrap();
        rest = &rest[length..];
        if let Record::Key(key) = record
            && key.key == b"stream"
        {
            let Value::Stream(stream) = key.value().unwrap() else { panic!("it is a stream") };
            break stream;
        }
    };
    let mut entries = Vec::new();
    stream.range(StreamId::MIN, StreamId::MAX, false, &mut |id, texts| {
        let texts: Vec<_> = texts.iter().map(|it| String::from_utf8_lossy(it)).collect();
        entries.push(format!("{id} {}", texts.join(" ")));
        true
    });
    assert_eq!(entries, ["5-1 f v g 2", "5-2 f w g 3", "8-9 f y g 4"]);
    assert_eq!((stream.len(), stream.entries_added), (3, 4));
    assert_eq!(stream.max_deleted_id, StreamId { ms: 7, seq: 0 });
    let groups: Vec<_> = stream.groups().collect();
    assert_eq!((groups[0].0, groups[1].0), (&b"gr"[..], &b"late"[..]));
    let group = groups[0].1;
    let pending: Vec<_> = group.pending().iter().map(|(id, it)| (id.seq, it.deliveries)).collect();
    assert_eq!((pending, group.entries_read), (vec![(2, 1)], None));
    assert_eq!(group.consumers().map(|it| it.0).collect::<Vec<_>>(), [b"alice", &b"bob"[..]]);
}

#[test]
fn forms_of_old_versions_are_read() {
    let (found, _) = read(OLD).unwrap();
    let of = |name: &str| found.iter().find(|it| it.1 == name).unwrap();
    let values = |name: &str| -> Vec<Vec<u8>> {
        of(name).4.iter().map(|(_, value)| value.clone()).collect()
    };
    let field = |name: &str, value: &str| (name.into(), [&[0; 8], value.as_bytes()].concat());
    assert_eq!(of("zipmap").4, [field("a", "one"), field("b", "two")]);
    assert_eq!(of("hash").4, [field("f", "7"), field("g", "-300")]);
    assert_eq!(values("list"), [b"x", &b"100"[..], b"70000", b"y"]);
    assert_eq!(values("quick"), [b"x", b"y", b"1"]);
    assert_eq!((of("plain").0, values("plain").len()), (2, 2));
    assert_eq!(values("lzf"), ["x".repeat(100).into_bytes()]);
    assert_eq!(of("scores").2, Some(4_102_444_800_000));
    let score = |name: &str| {
        let value = of(name).4.iter().map(|it| it.0.clone()).collect::<Vec<_>>();
        (of(name).3, value.len())
    };
    assert_eq!((score("scores"), score("zset")), (("zset", 2), ("zset", 2)));
    assert_eq!(of("ints").4.len(), 2);
}

/// A value of any type and any size of form.
fn drawn(random: &mut impl FnMut() -> u64) -> Value {
    let log = &mut Unlogged;
    let count = if random().is_multiple_of(3) { random() % 1500 } else { random() % 20 } + 1;
    let mut text = |random: &mut dyn FnMut() -> u64| -> Vec<u8> {
        match random() % 12 {
            0 => (random() as i64 % 5000 - 2500).to_string().into_bytes(),
            1 => (random() as i64).to_string().into_bytes(),
            // Where the widths of lengths in listpacks change.
            2 => vec![b'y'; 110 + random() as usize % 40],
            3 if random().is_multiple_of(20) => vec![b'z'; 16_370 + random() as usize % 20],
            _ => format!("t{}", random() % 100_000).into_bytes(),
        }
    };
    match random() % 7 {
        0 => Value::String(text(random)),
        1 => {
            let mut list = List::default();
            (0..count).for_each(|_| list.push(End::Back, &text(random), log));
            Value::List(list)
        }
        2 => {
            let mut set = Set::default();
            (0..count).for_each(|_| _ = set.add(&text(random), log));
            Value::Set(set)
        }
        3 | 4 => {
            let mut hash = Hash::default();
            let has_times = random().is_multiple_of(2);
            for _ in 0..count {
                let field = text(random);
                hash.set(&field, &text(random), log);
                if has_times && random().is_multiple_of(2) {
                    hash.set_expiry(&field, 4_000_000_000_000 + random() % 1_000_000, log);
                }
            }
            Value::Hash(hash)
        }
        5 => {
            let mut zset = SortedSet::default();
            (0..count).for_each(|_| _ = zset.set(&text(random), random() as f64 / 7.0, log));
            Value::Sorted(zset)
        }
        _ => Value::Stream(Box::new(drawn_stream(random, count, &mut text))),
    }
}

fn drawn_stream(
    random: &mut dyn FnMut() -> u64,
    count: u64,
    text: &mut dyn FnMut(&mut dyn FnMut() -> u64) -> Vec<u8>,
) -> Stream {
    let log = &mut Unlogged;
    let (mut stream, mut id) = (Stream::default(), StreamId { ms: 1, seq: 9 });
    let mut ids = Vec::new();
    for _ in 0..count {
        id = match random() % 3 {
            0 => StreamId { ms: id.ms + random() % 1_000_000 + 1, seq: random() % 50 },
            _ => StreamId { ms: id.ms, seq: id.seq + 1 + random() % 3 },
        };
        let (first, second) = (text(random), text(random));
        match random() % 4 {
            0 => stream.add(id, &[&first, &second], log),
            1 => stream.add(id, &[b"f", &first, b"g", &second], log),
            _ => stream.add(id, &[b"f", &first], log),
        }
        ids.push(id);
    }
    for _ in 0..random() % 3 {
        let gone = ids[random() as usize % ids.len()];
        stream.remove(gone, log);
        stream.max_deleted_id = stream.max_deleted_id.max(gone);
    }
    for number in 0..random() % 3 {
        let name = format!("group{number}").into_bytes();
        let read = random().is_multiple_of(2).then(|| random() % 100);
        stream.add_group(&name, ids[random() as usize % ids.len()], read, log);
        stream.with_group(&name, log, |group, log| {
            for consumer in 0..random() % 4 {
                let consumer = format!("c{consumer}").into_bytes();
                group.see(&consumer, 1_700_000_000_000 + random() % 1000, log);
                for _ in 0..random() % 5 {
                    let id = ids[random() as usize % ids.len()];
                    group.give(id, &consumer, 1_600_000_000_000, random() % 9, log);
                }
            }
        });
    }
    stream
}

/// The rows of lists name their items by places that depend on the past; all others are the same if their values are.
fn same(one: &Value, other: &Value) {
    assert_eq!(one.type_name(), other.type_name());
    let contents = |value: &Value| match value {
        Value::List(list) => list.iter_from(0).map(|it| (Vec::new(), it.to_vec())).collect(),
        _ => rows(value),
    };
    assert_eq!(contents(one), contents(other));
}

#[test]
fn what_is_written_into_a_file_is_read_from_it() {
    for seed in 0..60 {
        let mut random = random(seed);
        let mut bytes = Vec::new();
        let mut writer = Writer::begin(VERSION_TIMES, &mut bytes);
        let code = format!("#!lua name=l{seed}\n");
        writer.library(code.as_bytes(), &mut bytes);
        let mut expected = Vec::new();
        for number in 0..random() % 12 {
            let value = drawn(&mut random);
            let database = (random() % 3) as usize;
            let expiry = random().is_multiple_of(2).then(|| random() % 1_000_000);
            let payload = dump(&value);
            same(&restore(&payload).unwrap(), &value);
            let (body, _) = unseal(&payload).unwrap();
            writer.key(database, &number.to_le_bytes(), expiry, body, &mut bytes);
            expected.push((database, expiry, value));
        }
        writer.end(&mut bytes);
        let (mut reader, mut rest, mut met) = (Reader::default(), &bytes[..], 0);
        loop {
            let (record, length) = reader.next(rest).unwrap().unwrap();
            rest = &rest[length..];
            match record {
                Record::Key(key) => {
                    let (database, expiry, value) = &expected[met];
                    assert_eq!((key.database, key.expires_at_ms), (*database, *expiry));
                    same(&key.value().unwrap(), value);
                    met += 1;
                }
                Record::Library(found) => assert_eq!(found, code.as_bytes()),
                Record::Other | Record::Note { .. } => {}
                Record::End => break,
            }
        }
        assert_eq!((met, rest.len()), (expected.len(), 0));
    }
}

#[test]
fn a_file_that_was_changed_or_cut_is_refused() {
    let file = REDIS;
    for at in 0..file.len() - 8 {
        let mut changed = file.to_vec();
        changed[at] ^= 0x10;
        let mut reader = Reader::default();
        let mut rest = &changed[..];
        let end = loop {
            match reader.next(rest) {
                Ok(Some((Record::End, _))) => break true,
                Ok(Some((_, length))) => rest = &rest[length..],
                Ok(None) | Err(_) => break false,
            }
        };
        assert!(!end, "byte {at} was changed");
    }
    let mut changed = file.to_vec();
    *changed.last_mut().unwrap() ^= 1;
    assert_eq!(read(&changed).unwrap_err(), BadFile::Checksum);
    assert_eq!(read(b"PREDIS0010").unwrap_err(), BadFile::NoFile);
    assert_eq!(read(b"REDIS0099").unwrap_err(), BadFile::Version(99));
    let module = read(b"REDIS0010\x07\x01kmodule").unwrap_err();
    assert_eq!(module, BadFile::UnknownType(7, b"k".to_vec()));
    assert_eq!(Reader::default().next(b"REDIS00"), Ok(None));
}

#[test]
fn fuzzed_files_hold_what_they_must() {
    for file in [REDIS, OLD] {
        crate::fuzzing::file(file);
        for at in (0..file.len()).step_by(2) {
            for flip in [1, 0x80] {
                let mut changed = file.to_vec();
                changed[at] ^= flip;
                crate::fuzzing::file(&changed);
            }
        }
    }
}

#[test]
fn libraries_are_dumped_and_restored() {
    let codes = [&b"#!lua name=a\n"[..], b"#!lua name=b\nredis.call()"];
    let payload = dump_libraries(codes.into_iter());
    assert_eq!(restore_libraries(&payload).unwrap(), codes);
    assert_eq!(restore_libraries(&payload[1..]), Err(BadPayload::Envelope));
    assert_eq!(restore_libraries(&dump(&Value::String(Vec::new()))), Err(BadPayload::Format));
}
