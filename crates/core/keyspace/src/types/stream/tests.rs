//! Streams against plain maps.

use std::collections::BTreeMap;

use super::super::log::{Journaled, Unlogged};
use super::super::table::tests::random;
use super::*;

type Model = BTreeMap<StreamId, Vec<Vec<u8>>>;

fn all(stream: &Stream, from: StreamId, to: StreamId, is_reverse: bool) -> Vec<StreamId> {
    let mut ids = Vec::new();
    stream.range(from, to, is_reverse, &mut |id, _| {
        ids.push(id);
        true
    });
    ids
}

fn check(stream: &Stream, model: &Model) {
    assert_eq!(stream.len(), model.len() as u64);
    let mut entries = Model::new();
    stream.range(StreamId::MIN, StreamId::MAX, false, &mut |id, texts| {
        entries.insert(id, texts.iter().map(|text| text.to_vec()).collect());
        true
    });
    assert_eq!(&entries, model);
    assert_eq!(stream.first_id(), model.keys().next().copied().unwrap_or_default());
    assert_eq!(stream.top_id(), model.keys().next_back().copied().unwrap_or_default());
}

#[test]
fn a_stream_is_a_map_by_id_and_so_are_its_rows() {
    for seed in 0..30 {
        let mut random = random(seed);
        let (mut stream, mut model) = (Stream::default(), Model::new());
        let mut changes = Journaled::default();
        let mut id = StreamId { ms: 1, seq: 0 };
        for _ in 0..1500 {
            if random().is_multiple_of(3) {
                id = StreamId { ms: id.ms + random() % 5, seq: id.seq };
            }
            id = id.next().unwrap();
            let texts: Vec<Vec<u8>> = match random() % 4 {
                0 => vec![b"other".to_vec(), vec![b'x'; random() as usize % 300]],
                _ => vec![b"a".to_vec(), b"1".to_vec(), b"b".to_vec(), id.to_string().into()],
            };
            match random() % 20 {
                0 => {
                    let known: Vec<StreamId> = model.keys().copied().collect();
                    if !known.is_empty() {
                        let gone = known[random() as usize % known.len()];
                        assert!(stream.remove(gone, &mut changes));
                        assert!(!stream.remove(gone, &mut changes));
                        model.remove(&gone);
                    }
                }
                1 if random().is_multiple_of(4) => {
                    let count = random() % 400;
                    stream.trim(Keep::Newest(count), true, 0, &mut changes);
                    while model.len() as u64 > count {
                        model.pop_first();
                    }
                }
                2 if random().is_multiple_of(4) => {
                    let from = StreamId { ms: id.ms.saturating_sub(random() % 900), seq: 0 };
                    stream.trim(Keep::From(from), true, 0, &mut changes);
                    model.retain(|id, _| *id >= from);
                }
                _ => {
                    let borrowed: Vec<&[u8]> = texts.iter().map(Vec::as_slice).collect();
                    stream.add(id, &borrowed, &mut changes);
                    model.insert(id, texts);
                }
            }
            changes.settle(&|visit| stream.rows(visit));
        }
        check(&stream, &model);
        for _ in 0..100 {
            let from = StreamId { ms: random() % (id.ms + 2), seq: random() % 100 };
            let to = StreamId { ms: random() % (id.ms + 2), seq: random() % 100 };
            let mut expected: Vec<StreamId> = Vec::new();
            if from <= to {
                expected.extend(model.range(from..=to).map(|(id, _)| *id));
            }
            assert_eq!(all(&stream, from, to, false), expected);
            expected.reverse();
            assert_eq!(all(&stream, from, to, true), expected);
        }
        let mut loaded = Stream::default();
        changes.rows.iter().for_each(|(element, value)| loaded.load(element, value).unwrap());
        check(&loaded, &model);
        assert_eq!(loaded.last_id, stream.last_id);
        assert_eq!(loaded.entries_added, stream.entries_added);
    }
}

#[test]
fn groups_come_back_from_their_rows() {
    for seed in 0..30 {
        let mut random = random(seed);
        let mut stream = Stream::default();
        let mut changes = Journaled::default();
        stream.log_header(&mut changes);
        for _ in 0..400 {
            let name = [b"g1", b"g2"][(random() % 2) as usize];
            let consumer = [b"anna", b"bert"][(random() % 2) as usize];
            let id = StreamId { ms: random() % 20, seq: 0 };
            let now = random() % 1000;
            match random() % 12 {
                0 => {
                    stream.add_group(name, id, Some(now).filter(|now| now % 2 == 0), &mut changes);
                }
                1 if random().is_multiple_of(4) => {
                    stream.remove_group(name, &mut changes);
                }
                2 => {
                    stream.with_group(name, &mut changes, |group, log| {
                        group.remove_consumer(consumer, log)
                    });
                }
                3..6 => {
                    stream.with_group(name, &mut changes, |group, log| group.acknowledge(id, log));
                }
                _ => {
                    stream.with_group(name, &mut changes, |group, log| {
                        group.see(consumer, now, log);
                        group.give(id, consumer, now, 1, log);
                    });
                }
            }
            changes.settle(&|visit| stream.rows(visit));
            for (_, group) in stream.groups() {
                let by_consumer: usize =
                    group.consumers().map(|(_, consumer)| consumer.pending().len()).sum();
                assert_eq!(by_consumer, group.pending().len());
            }
        }
        let mut loaded = Stream::default();
        changes.rows.iter().for_each(|(element, value)| loaded.load(element, value).unwrap());
        assert!(loaded.groups().eq(stream.groups()));
    }
}

#[test]
fn an_approximate_trim_drops_whole_blocks_only() {
    let (mut stream, mut off) = (Stream::default(), Unlogged);
    for ms in 1..=250 {
        stream.add(StreamId { ms, seq: 0 }, &[b"f", b"v"], &mut off);
    }
    assert_eq!(stream.blocks(), 3);
    assert_eq!(stream.trim(Keep::Newest(160), false, 0, &mut off), 0);
    assert_eq!(stream.trim(Keep::Newest(140), false, 0, &mut off), 100);
    assert_eq!(stream.trim(Keep::Newest(10), false, 99, &mut off), 0);
    assert_eq!(stream.len(), 150);
}
