//! Payloads of ours and of Redis.

mod files;

use super::*;
use crate::types::list::End;
use crate::types::{Hash, List, Set, SortedSet, Unlogged};

/// What Redis 7.0 gives for values of each type.
const TEXT: &str = "000568656c6c6f0a006372df766534200a";
const NUMBER: &str = "00c139300a009d94ea2793fc08b9";
const COMPRESSED: &str = "00c3094064017878e057000178780a005db7f663bb08625f";
const LIST: &str = "120102c31a405a125a00000004008161020101f290eefe04e04678e03c000148ff0a00b821e7c5\
     9304be93";
const INTEGERS: &str = "0b1404000000030000000100000002000000701101000a0085d5c1065b1dd055";
const SET: &str = "0202016201610a0075d99d835ef85f65";
const HASH: &str = "1013130000000400816602817602816702c12c02ff0a00bb49adb6b37a1dea";
const ZSET: &str = "111d1d0000000600816202842d696e660581610283312e35048163020701ff0a0051045ee1e370\
     efe5";

fn bytes(hex: &str) -> Vec<u8> {
    let digit = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
    (0..hex.len()).step_by(2).map(digit).collect()
}

/// The rows of a value, sorted: two values with the same rows are the same.
fn rows(value: &Value) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut rows = Vec::new();
    if let Value::String(text) = value {
        rows.push((Vec::new(), text.clone()));
    }
    value.rows(&mut |element, row| rows.push((element.to_vec(), row.to_vec())));
    rows.sort();
    rows
}

fn values() -> Vec<Value> {
    let log = &mut Unlogged;
    let mut list = List::default();
    for item in ["a", "1", "-70000", &"x".repeat(70)] {
        list.push(End::Back, item.as_bytes(), log);
    }
    let (mut integers, mut set) = (Set::default(), Set::default());
    ["1", "2", "70000"].iter().for_each(|it| assert!(integers.add(it.as_bytes(), log)));
    ["a", "b"].iter().for_each(|it| assert!(set.add(it.as_bytes(), log)));
    let mut hash = Hash::default();
    hash.set(b"f", b"v", log);
    hash.set(b"g", b"300", log);
    let mut zset = SortedSet::default();
    zset.set(b"a", 1.5, log);
    zset.set(b"b", f64::NEG_INFINITY, log);
    zset.set(b"c", 7.0, log);
    vec![
        Value::String(b"hello".to_vec()),
        Value::String(b"12345".to_vec()),
        Value::String(vec![b'x'; 100]),
        Value::List(list),
        Value::Set(integers),
        Value::Set(set),
        Value::Hash(hash),
        Value::Sorted(zset),
    ]
}

#[test]
fn payloads_of_redis_are_read() {
    let payloads = [TEXT, NUMBER, COMPRESSED, LIST, INTEGERS, SET, HASH, ZSET];
    for (payload, expected) in payloads.iter().zip(values()) {
        let found = restore(&bytes(payload)).unwrap();
        assert_eq!(found.type_name(), expected.type_name());
        assert_eq!(rows(&found).len(), rows(&expected).len());
        if expected.type_name() != "list" {
            assert_eq!(rows(&found), rows(&expected));
        }
    }
}

#[test]
fn what_is_dumped_is_restored() {
    for value in values() {
        let found = restore(&dump(&value)).unwrap();
        let contents = |value: &Value| -> Vec<Vec<u8>> {
            rows(value).into_iter().map(|(_, row)| row).collect()
        };
        assert_eq!(contents(&found), contents(&value));
    }
}

#[test]
fn fuzzed_payloads_hold_what_they_must() {
    for payload in [TEXT, NUMBER, COMPRESSED, LIST, INTEGERS, SET, HASH, ZSET] {
        let payload = bytes(payload);
        let body = &payload[..payload.len() - 10];
        crate::fuzzing::payload(body);
        for at in 0..body.len() {
            for flip in [1, 2, 0x10, 0x80] {
                let mut changed = body.to_vec();
                changed[at] ^= flip;
                crate::fuzzing::payload(&changed);
            }
        }
    }
}

#[test]
fn a_payload_that_was_changed_is_refused_and_never_panics() {
    let payload = bytes(HASH);
    for at in 0..payload.len() {
        let mut changed = payload.clone();
        changed[at] ^= 0x55;
        assert!(restore(&changed).is_err());
        // With a checksum of zero nothing but the format protects.
        let end = changed.len() - 8;
        changed[end..].fill(0);
        let _ = restore(&changed);
        let _ = restore(&changed[..at]);
    }
    for payload in [TEXT, COMPRESSED, LIST, INTEGERS, ZSET] {
        let payload = bytes(payload);
        for at in 0..payload.len() - 10 {
            for flip in [1, 0x40, 0x80, 0xff] {
                let mut changed = payload.clone();
                changed[at] ^= flip;
                let end = changed.len() - 8;
                changed[end..].fill(0);
                let _ = restore(&changed);
            }
        }
    }
}
