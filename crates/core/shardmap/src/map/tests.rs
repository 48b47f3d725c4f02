//! The map against the plainest model of it, a list of partitions, under drawn changes; and group b
//! of the semantics that shard maps are known by: by key, by range, and nothing where there is
//! nothing.

use super::chunk::CHUNK_ENTRIES_MAX;
use super::*;
use crate::draw::Draw;
use crate::{ContainerId, Epoch, PartitionState, ShardId};

fn partition(id: u64, start: &[u8], end: Option<&[u8]>) -> Partition {
    Partition {
        id: PartitionId(id),
        container: ContainerId(1),
        routes: KeyRange::new(start.to_vec(), end.map(Bytes::copy_from_slice)),
        shard: ShardId(id as u32 % 3),
        epoch: Epoch(id),
        state: [PartitionState::Online, PartitionState::ReadOnly, PartitionState::Offline]
            [id as usize % 3],
    }
}

/// A list entry's range: one key and nothing else.
fn single(id: u64, route: &[u8]) -> Partition {
    Partition { routes: KeyRange::prefix(route.to_vec()), ..partition(id, b"", None) }
}

fn ids<'a>(found: impl IntoIterator<Item = &'a (KeyRange, Placed)>) -> Vec<u64> {
    found.into_iter().map(|(_, placed)| placed.partition.0).collect()
}

/// Group b.
#[test]
fn a_route_is_found_in_the_range_that_holds_it_and_nowhere_else() {
    let map = Map::build(&[
        partition(1, b"", Some(b"c")),
        partition(2, b"c", Some(b"g")),
        single(3, b"k"),
        partition(4, b"x", None),
    ])
    .unwrap();
    for (route, id) in [
        (&b""[..], Some(1)),
        (b"b\xff\xff", Some(1)),
        (b"c", Some(2)),
        (b"f\xff", Some(2)),
        (b"g", None),
        (b"j\xff", None),
        (b"k", Some(3)),
        (b"k\xff", Some(3)),
        (b"l", None),
        (b"x", Some(4)),
        (b"\xff\xff", Some(4)),
    ] {
        assert_eq!(map.find(route).map(|placed| placed.partition.0), id, "{route:?}");
    }
    assert_eq!(map.get(PartitionId(2)).unwrap().epoch, Epoch(2));
    assert_eq!(map.get(PartitionId(9)), None);
}

/// Group b.
#[test]
fn the_partitions_of_a_range_come_in_order_and_with_their_own_bounds() {
    let parts = [partition(1, b"a", Some(b"c")), partition(2, b"c", Some(b"g")), single(3, b"k")];
    let map = Map::build(&parts).unwrap();
    let found = |start: &[u8], end: Option<&[u8]>| {
        let routes = KeyRange::new(start.to_vec(), end.map(Bytes::copy_from_slice));
        ids(&map.overlapping(&routes).collect::<Vec<_>>())
    };
    assert_eq!(found(b"", None), [1, 2, 3]);
    assert_eq!(found(b"b", Some(b"c")), [1]);
    assert_eq!(found(b"b", Some(b"c\0")), [1, 2]);
    assert_eq!(found(b"g", Some(b"k")), [0_u64; 0]);
    assert_eq!(found(b"k\x01", Some(b"k\x02")), [3]);
    assert_eq!(found(b"b", Some(b"b")), [0_u64; 0]);
    let all: Vec<_> = map.overlapping(&KeyRange::all()).map(|(routes, _)| routes).collect();
    assert_eq!(all, parts.map(|partition| partition.routes));
}

#[test]
fn the_whole_space_and_both_ends_of_it_can_be_held() {
    let whole = Map::build(&[partition(1, b"", None)]).unwrap();
    assert!(whole.covers(&KeyRange::all()));
    assert!(whole.find(b"").is_some() && whole.find(&[0xff; 100]).is_some());
    let ends = Map::build(&[partition(1, b"", Some(b"\0")), single(2, b"\xff\xff")]).unwrap();
    assert!(ends.find(b"").is_some() && ends.find(b"\0").is_none());
    assert!(ends.find(b"\xff\xff\x01").is_some() && ends.find(b"\xff\xfe").is_none());
}

#[test]
fn overlapping_and_impossible_partitions_are_refused() {
    let overlap = Map::build(&[partition(1, b"a", Some(b"c")), partition(2, b"b", Some(b"d"))]);
    assert_eq!(overlap.err().unwrap().code(), "map-overlap");
    let twice = Map::build(&[partition(1, b"a", Some(b"b")), partition(1, b"c", Some(b"d"))]);
    assert_eq!(twice.err().unwrap().code(), "map-overlap");
    for bad in [partition(1, b"c", Some(b"c")), partition(1, &[1; 70_000], None)] {
        assert_eq!(Map::build(&[bad]).err().unwrap().code(), "map-bounds");
    }
}

/// Every answer of the map and of the model, and the map's own invariants.
fn check(map: &Map, model: &[Partition], draw: &mut Draw) {
    assert_eq!(map.len(), model.len());
    for _ in 0..20 {
        let (route, other) = (draw.bytes(), draw.bytes());
        let holder = model.iter().find(|partition| partition.routes.contains(&route));
        assert_eq!(map.find(&route), holder.map(Placed::from));
        let routes = KeyRange::new(route, draw.of(&[None, Some(Bytes::from(other))]));
        let mut held: Vec<_> = model.iter().filter(|held| held.routes.overlaps(&routes)).collect();
        held.sort_by_key(|partition| &partition.routes.start);
        let held: Vec<_> = held.into_iter().map(|p| (p.routes.clone(), p.into())).collect();
        assert_eq!(map.overlapping(&routes).collect::<Vec<_>>(), held);
        assert_eq!(map.covers(&routes), covers(&held, &routes));
    }
    for place in 0..map.index.len() {
        let chunk = map.chunk(place);
        let (bound, next) = (map.index.bound(place).unwrap(), map.index.bound(place + 1));
        assert!((1..=CHUNK_ENTRIES_MAX).contains(&chunk.len()));
        for entry in chunk.entries() {
            assert!(entry.low >= bound);
            assert!(next.is_none_or(|next| entry.low < next));
            let id = entry.placed().partition;
            assert_eq!(map.by_id.get(&id), Some(&map.index.number(place)));
        }
    }
    assert_eq!(map.index.len() + map.free.len(), map.chunks.len());
}

fn covers(held: &[(KeyRange, Placed)], routes: &KeyRange) -> bool {
    if routes.is_empty() {
        return true;
    }
    let within = held.iter().map(|(range, _)| range.intersect(routes));
    let mut at = Some(routes.start.clone());
    for range in within {
        if at.as_ref() != Some(&range.start) {
            return false;
        }
        at = range.end;
    }
    at == routes.end
}

#[test]
fn drawn_changes_leave_what_a_plain_list_would_hold() {
    for seed in 0..20 {
        let mut draw = Draw::new(seed);
        let (mut map, mut model) = (Map::default(), Vec::<Partition>::new());
        for id in 0..600 {
            let routes = match draw.below(4) {
                0 => KeyRange::new(draw.bytes(), draw.of(&[None, Some(vec![0x61].into())])),
                1 => KeyRange::new(draw.bytes(), Some(draw.bytes().into())),
                _ => KeyRange::prefix([draw.bytes(), draw.bytes()].concat()),
            };
            // Now and then a partition changes its bounds and keeps its id.
            let old = if draw.below(5) == 0 { model.first().map(|p| p.id.0) } else { None };
            let new = Partition { routes, ..partition(old.unwrap_or(id), b"", None) };
            if new.routes.is_empty() {
                continue;
            }
            map.put(&new).unwrap();
            model.retain(|held| held.id != new.id && !held.routes.overlaps(&new.routes));
            model.push(new);
            if draw.below(3) == 0 {
                let gone = draw.of(&model).id;
                assert!(map.remove(gone) && !map.remove(gone));
                model.retain(|held| held.id != gone);
            }
            check(&map, &model, &mut draw);
        }
        assert!(Map::build(&model).unwrap().len() == model.len());
    }
}

#[test]
fn maps_of_many_chunks_grow_shrink_and_keep_no_more_bytes_than_they_need() {
    let mut draw = Draw::new(42);
    let (mut map, mut model) = (Map::default(), Vec::new());
    for id in 0..2_000_u64 {
        let new = single(id, &(draw.bits() % 100_000).to_be_bytes());
        map.put(&new).unwrap();
        model.retain(|held: &Partition| held.routes != new.routes);
        model.push(new);
    }
    check(&map, &model, &mut draw);
    assert!(map.index.len() > 2_000 / CHUNK_ENTRIES_MAX);
    for _ in 0..20_000 {
        let moved = draw.below(model.len());
        model[moved].epoch = model[moved].epoch.next();
        map.put(&model[moved]).unwrap();
    }
    check(&map, &model, &mut draw);
    for place in 0..map.index.len() {
        assert!(map.chunk(place).kept_bytes() <= 2 * map.chunk(place).used_bytes() + 16);
    }
    while let Some(gone) = model.pop() {
        assert!(map.remove(gone.id));
    }
    check(&map, &model, &mut draw);
    assert!(map.is_empty() && map.index.len() == 0);
}
