//! Where a key lives.

use std::fmt;

use bytes::Bytes;
use lazuli_shardmap::{KeyPart, KeySchema};

use crate::key::hash_slot;
use crate::model::{MapKind, Mapping, MappingState, ShardMap};

/// Where a key lives, and by which state of the map that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub shard: usize,
    pub mapping: u64,
    pub epoch: u64,
    pub state: MappingState,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlaceError {
    /// No mapping covers the key.
    Unmapped,
    /// The key is not of the map's types, or is too long.
    Key(String),
}

impl fmt::Display for PlaceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unmapped => f.write_str("no mapping covers the key"),
            Self::Key(why) => f.write_str(why),
        }
    }
}

impl ShardMap {
    /// The bytes by which a key is placed: its order-preserving encoding, or its slot in a hash map.
    pub fn route(&self, key: &[KeyPart]) -> Result<Bytes, PlaceError> {
        if self.kind == MapKind::Hash {
            return Ok(Bytes::copy_from_slice(&hash_slot(key).to_be_bytes()));
        }
        let types: Vec<_> = self.key.iter().map(|column| column.key_type()).collect();
        KeySchema::new(types)
            .and_then(|schema| schema.encode(key))
            .map_err(|error| PlaceError::Key(error.to_string()))
    }

    /// The mapping that covers a route.
    pub fn mapping(&self, route: &[u8]) -> Option<&Mapping> {
        let after = self.mappings.partition_point(|mapping| mapping.low.as_ref() <= route);
        let mapping = self.mappings.get(after.checked_sub(1)?)?;
        let is_inside = mapping.high.as_ref().is_none_or(|high| route < high.as_ref());
        is_inside.then_some(mapping)
    }

    pub fn place(&self, key: &[KeyPart]) -> Result<Place, PlaceError> {
        let route = self.route(key)?;
        let Mapping { id, shard, epoch, state, .. } =
            self.mapping(&route).ok_or(PlaceError::Unmapped)?;
        Ok(Place { shard: *shard, mapping: *id, epoch: *epoch, state: *state })
    }

    /// The shards that hold keys of this map, each once, in order.
    pub fn shards(&self) -> Vec<usize> {
        let mut shards: Vec<_> = self.mappings.iter().map(|mapping| mapping.shard).collect();
        shards.sort_unstable();
        shards.dedup();
        shards
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ColumnType;

    fn mapping(low: &[u8], high: Option<&[u8]>, shard: usize) -> Mapping {
        let high = high.map(Bytes::copy_from_slice);
        let low = Bytes::copy_from_slice(low);
        Mapping { id: 1, low, high, shard, epoch: 1, state: MappingState::Online }
    }

    fn map(kind: MapKind, key: ColumnType, mappings: Vec<Mapping>) -> ShardMap {
        let (name, key) = ("m".to_owned(), vec![key]);
        ShardMap { id: 1, name, kind, key, mappings, is_in_transit: false }
    }

    fn int(value: i64) -> Vec<KeyPart> {
        vec![KeyPart::Int64(value)]
    }

    #[test]
    fn a_range_map_places_keys_by_their_order_and_leaves_gaps_unmapped() {
        let mut map = map(MapKind::Range, ColumnType::Int4, Vec::new());
        let bound = |value| map.route(&int(value)).unwrap();
        let (low, middle, high) = (bound(-10), bound(0), bound(100));
        map.mappings = vec![mapping(&low, Some(&middle), 0), mapping(&middle, Some(&high), 1)];
        let shard = |value| map.place(&int(value)).map(|place| place.shard);
        assert_eq!((shard(-10), shard(-1)), (Ok(0), Ok(0)));
        assert_eq!((shard(0), shard(99)), (Ok(1), Ok(1)));
        let unmapped = Err(PlaceError::Unmapped);
        assert_eq!((shard(-11), shard(100)), (unmapped.clone(), unmapped));
        assert_eq!(map.shards(), [0, 1]);
    }

    #[test]
    fn a_list_map_places_single_keys_and_nothing_between_them() {
        let mut map = map(MapKind::List, ColumnType::Text, Vec::new());
        let text = |value: &str| vec![KeyPart::Text(value.to_owned())];
        let low = map.route(&text("acme")).unwrap();
        let high = [low.as_ref(), &[0]].concat();
        map.mappings = vec![mapping(&low, Some(&high), 2)];
        assert_eq!(map.place(&text("acme")).unwrap().shard, 2);
        for other in ["acm", "acme ", "acmf", ""] {
            assert_eq!(map.place(&text(other)), Err(PlaceError::Unmapped), "{other:?}");
        }
    }

    #[test]
    fn a_hash_map_places_every_key_once() {
        let halves = vec![mapping(&[0, 0], Some(&[0x80, 0]), 0), mapping(&[0x80, 0], None, 1)];
        let map = map(MapKind::Hash, ColumnType::Int8, halves);
        let is_first = |value: &i64| map.place(&int(*value)).unwrap().shard == 0;
        let on_first = (0..1000).filter(is_first).count();
        assert!((400..600).contains(&on_first), "{on_first}");
    }
}
