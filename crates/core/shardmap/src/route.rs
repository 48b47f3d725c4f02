//! Routes: the bytes by which a shardlet is placed.
//!
//! List and range maps place by the encoded partition key itself. Hash maps put a hash in front of
//! it: `xxh3_64 (8) | encoded key`, and the upper 14 bits of the hash are the virtual shard. Maps by
//! effective keys put those in front (`epk`). So in all kinds of map a partition is one range of
//! routes, and a route tells its key.

use std::ops::Range;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use lazuli_store::{Error, KeyRange, Result};
use xxhash_rust::xxh3::xxh3_64;

use crate::MapKind;
use crate::epk::{self, EPK_BYTES};
use crate::key::{ENCODED_KEY_BYTES_MAX, KeyPart, KeySchema};

/// How many virtual shards every hash map has. Many more than shards will ever be, and never
/// changed: adding a shard moves some of them and rehashes nothing.
pub const VIRTUAL_SHARDS: u16 = 16_384;
/// Bytes of the hash in front of the key in routes of hash maps.
pub const HASH_BYTES: usize = 8;
/// The longest route.
pub const ROUTE_BYTES_MAX: usize = EPK_BYTES_MAX + ENCODED_KEY_BYTES_MAX;
/// The longest of all hashes: a text of 101 bytes with its tag behind a number.
const EPK_BYTES_MAX: usize = 128;

/// What the first 16 bits of a hash are shifted by to get the virtual shard.
const VIRTUAL_SHIFT: u32 = 2;

/// So many bytes at the end of a route may be the highest there are: those of numbers and ids.
const FULL_BYTES_MAX: usize = 128;

impl MapKind {
    /// The route of a key. Refuses a key that is not of the schema, or too long.
    pub fn route(self, schema: &KeySchema, key: &[KeyPart]) -> Result<Bytes> {
        match self {
            Self::List | Self::Range => schema.encode(key),
            Self::Hash => {
                let mut route = BytesMut::with_capacity(HASH_BYTES + 32);
                route.put_u64(0);
                schema.encode_into(&mut route, key)?;
                let hash = xxh3_64(&route[HASH_BYTES..]);
                route[..HASH_BYTES].copy_from_slice(&hash.to_be_bytes());
                Ok(route.freeze())
            }
            Self::EpkV1 | Self::EpkV2 | Self::EpkMulti => {
                let mut route = BytesMut::with_capacity(EPK_BYTES_MAX);
                self.put_epk(&mut route, key)?;
                schema.encode_into(&mut route, key)?;
                Ok(route.freeze())
            }
        }
    }

    /// The effective key of these parts, which may be the first ones of a key in a map of several hashes.
    pub fn epk(self, key: &[KeyPart]) -> Result<Bytes> {
        let mut epk = BytesMut::with_capacity(EPK_BYTES_MAX);
        self.put_epk(&mut epk, key)?;
        Ok(epk.freeze())
    }

    fn put_epk(self, out: &mut BytesMut, key: &[KeyPart]) -> Result<()> {
        for part in key {
            let KeyPart::Bytes(part) = part else {
                let message = "a part of a key with an effective key is bytes";
                return Err(Error::invalid("key-type", message));
            };
            match self {
                Self::EpkV1 => out.put_slice(&epk::epk_v1(part)?),
                Self::EpkV2 | Self::EpkMulti => out.put_slice(&epk::hash_v2(part)),
                Self::List | Self::Range | Self::Hash => {}
            }
        }
        Ok(())
    }

    /// How many bytes stand in front of the encoded key in `route | rest`; none if there are not as many.
    fn hash_bytes(self, schema: &KeySchema, bytes: &[u8]) -> Option<usize> {
        let length = match self {
            Self::List | Self::Range => 0,
            Self::Hash => HASH_BYTES,
            Self::EpkV1 => epk::v1_bytes(bytes)?,
            Self::EpkV2 | Self::EpkMulti => EPK_BYTES * schema.types().len(),
        };
        (length <= bytes.len()).then_some(length)
    }

    /// The bytes by which a route is placed: all routes that begin with them are never torn apart. `route | rest` is fine.
    pub fn unit<'a>(self, schema: &KeySchema, bytes: &'a [u8]) -> Result<&'a [u8]> {
        match self {
            Self::EpkV1 | Self::EpkV2 | Self::EpkMulti => {
                Ok(&bytes[..self.hash_bytes(schema, bytes).ok_or_else(corrupt)?])
            }
            Self::List | Self::Range | Self::Hash => Ok(self.split(schema, bytes)?.0),
        }
    }

    /// Whether effective keys place the keys, as clients compute them.
    pub fn is_effective(self) -> bool {
        matches!(self, Self::EpkV1 | Self::EpkV2 | Self::EpkMulti)
    }

    /// Whether its partitions always cover all routes.
    pub fn is_tiled(self) -> bool {
        self == Self::Hash || self.is_effective()
    }

    /// Splits `route | rest`, as it stands behind the prefix of a key of the store. It finds where
    /// the route ends and leaves it to [`MapKind::key`] to look inside.
    pub fn split<'a>(self, schema: &KeySchema, bytes: &'a [u8]) -> Result<(&'a [u8], &'a [u8])> {
        let hash = self.hash_bytes(schema, bytes).ok_or_else(corrupt)?;
        let (key, _) = schema.split(&bytes[hash..])?;
        Ok(bytes.split_at(hash + key.len()))
    }

    /// The key of a whole route. Fails with `key-corrupt` or `route-corrupt` on what
    /// [`MapKind::route`] never makes, which includes a hash that is not the key's.
    pub fn key(self, schema: &KeySchema, route: &[u8]) -> Result<Vec<KeyPart>> {
        let length = self.hash_bytes(schema, route).ok_or_else(corrupt)?;
        let (hash, encoded) = route.split_at(length);
        let key = schema.decode(encoded)?;
        let is_its = match self {
            Self::List | Self::Range => true,
            Self::Hash => xxh3_64(encoded).to_be_bytes() == *hash,
            Self::EpkV1 | Self::EpkV2 | Self::EpkMulti => self.epk(&key)? == *hash,
        };
        if is_its { Ok(key) } else { Err(corrupt()) }
    }

    /// A bound of a partition for people: the key where it is one, `after` the key where it follows one, the virtual
    /// shard where it begins one, else `0x` and the bytes. Effective keys are shown as clients write them.
    pub fn print(self, schema: &KeySchema, bound: &[u8]) -> String {
        if self.is_effective() {
            return bound.iter().fold(String::new(), |text, byte| format!("{text}{byte:02X}"));
        }
        if let Ok(key) = self.key(schema, bound) {
            return KeySchema::print(&key);
        }
        if let Some(key) = self.key_before(schema, bound) {
            return format!("after {}", KeySchema::print(&key));
        }
        let routes = KeyRange::new(Bytes::copy_from_slice(bound), None);
        match virtual_shards(&routes).filter(|_| self == Self::Hash) {
            Some(shards) => format!("virtual shard {}", shards.start),
            None => bound.iter().fold("0x".to_owned(), |text, byte| format!("{text}{byte:02x}")),
        }
    }

    /// The key whose routes and rows all lie before a bound that is the first one behind them.
    fn key_before(self, schema: &KeySchema, bound: &[u8]) -> Option<Vec<KeyPart>> {
        let (last, start) = bound.split_last()?;
        let mut route = [start, &[last.checked_sub(1)?]].concat();
        // What follows a route is the route with its last byte one higher, where bytes that cannot be higher are left out.
        for _ in 0..=FULL_BYTES_MAX {
            if let Ok(key) = self.key(schema, &route) {
                return Some(key);
            }
            route.push(0xff);
        }
        None
    }
}

fn corrupt() -> Error {
    Error::corrupt("route-corrupt", "a route with a hash is the hash of a key and that key")
}

/// The virtual shard of a route of a hash map; none if it is too short to be one.
pub fn virtual_shard(mut route: &[u8]) -> Option<u16> {
    (route.len() >= HASH_BYTES).then(|| route.get_u16() >> VIRTUAL_SHIFT)
}

/// In which of so many equal slices of a hash map the key of this route of a range map would be.
pub fn hashed_slice(route: &[u8], slices: u16) -> u16 {
    let hash = u128::from(xxh3_64(route));
    // Below `slices`, because the hash is below 2^64.
    ((hash * u128::from(slices)) >> 64) as u16
}

/// All routes of these virtual shards of a hash map. Refuses none at all, and what is not there.
pub fn virtual_routes(shards: Range<u16>) -> Result<KeyRange> {
    if shards.is_empty() || shards.end > VIRTUAL_SHARDS {
        let message = format!("{shards:?} is no range of the {VIRTUAL_SHARDS} virtual shards");
        return Err(Error::invalid("virtual-shards", message));
    }
    let bound = |shard: u16| Bytes::copy_from_slice(&(shard << VIRTUAL_SHIFT).to_be_bytes());
    let start = if shards.start == 0 { Bytes::new() } else { bound(shards.start) };
    let end = (shards.end < VIRTUAL_SHARDS).then(|| bound(shards.end));
    Ok(KeyRange::new(start, end))
}

/// The virtual shards of these routes; none if a bound is not one of [`virtual_routes`].
pub fn virtual_shards(routes: &KeyRange) -> Option<Range<u16>> {
    let shard = |bound: &Bytes| {
        let bits = u16::from_be_bytes((&bound[..]).try_into().ok()?);
        Some(bits >> VIRTUAL_SHIFT)
    };
    let start = if routes.start.is_empty() { 0 } else { shard(&routes.start)? };
    let end = routes.end.as_ref().map_or(Some(VIRTUAL_SHARDS), shard)?;
    (virtual_routes(start..end).ok()? == *routes).then_some(start..end)
}

/// Cuts all virtual shards into this many ranges of routes whose sizes differ by one at most.
pub fn virtual_cut(parts: u16) -> Result<Vec<KeyRange>> {
    if parts == 0 || parts > VIRTUAL_SHARDS {
        let message = format!("{VIRTUAL_SHARDS} virtual shards do not make {parts} partitions");
        return Err(Error::invalid("virtual-shards", message));
    }
    let cut = |nth: u16| u32::from(VIRTUAL_SHARDS) * u32::from(nth) / u32::from(parts);
    (0..parts).map(|nth| virtual_routes(cut(nth) as u16..cut(nth + 1) as u16)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draw::Draw;
    use crate::key::KeyType;

    const KINDS: [MapKind; 3] = [MapKind::List, MapKind::Range, MapKind::Hash];

    #[test]
    fn every_route_tells_its_key_and_splits_from_what_follows_it() {
        let mut draw = Draw::new(1);
        for _ in 0..5_000 {
            let (schema, kind) = (draw.schema(), draw.of(&KINDS));
            let key = draw.key(&schema);
            let route = kind.route(&schema, &key).unwrap();
            assert_eq!(kind.key(&schema, &route).unwrap(), key);
            let rest = draw.bytes();
            let whole = [&route[..], &rest].concat();
            assert_eq!(kind.split(&schema, &whole).unwrap(), (&route[..], &rest[..]));
        }
    }

    #[test]
    fn bytes_from_anywhere_are_a_route_or_are_refused() {
        let mut draw = Draw::new(2);
        for _ in 0..20_000 {
            let (schema, kind) = (draw.schema(), draw.of(&KINDS));
            let bytes: Vec<u8> = (0..draw.below(4)).flat_map(|_| draw.bytes()).collect();
            if let Ok((route, rest)) = kind.split(&schema, &bytes) {
                assert_eq!([route, rest].concat(), bytes);
            }
            if let Ok(key) = kind.key(&schema, &bytes) {
                assert_eq!(kind.route(&schema, &key).unwrap(), bytes);
            }
            kind.print(&schema, &bytes);
        }
    }

    #[test]
    fn bounds_are_shown_as_people_read_them() {
        let text = KeySchema::one(KeyType::Text);
        let city = MapKind::Range.route(&text, &["city-0250".into()]).unwrap();
        let behind = |route: &Bytes| lazuli_store::after_prefix(route).unwrap();
        assert_eq!(MapKind::Range.print(&text, &city), "city-0250");
        assert_eq!(MapKind::Range.print(&text, &behind(&city)), "after city-0250");
        let mut draw = Draw::new(3);
        for _ in 0..5_000 {
            let (schema, kind) = (draw.schema(), draw.of(&[MapKind::List, MapKind::Range]));
            let key = draw.key(&schema);
            let route = kind.route(&schema, &key).unwrap();
            let Some(bound) = lazuli_store::after_prefix(&route) else { continue };
            let expected = format!("after {}", KeySchema::print(&key));
            // A number may follow another one so closely that the bound is that number.
            let follower = kind.key(&schema, &bound).map(|key| KeySchema::print(&key));
            assert_eq!(kind.print(&schema, &bound), follower.unwrap_or(expected));
        }
        let shard = virtual_routes(8_192..8_193).unwrap().start;
        assert_eq!(MapKind::Hash.print(&text, &shard), "virtual shard 8192");
        assert_eq!(MapKind::Range.print(&text, b"\x80"), "0x80", "the beginning of a key is none");
    }

    #[test]
    fn a_route_whose_hash_is_not_its_keys_is_refused() {
        let schema = KeySchema::one(KeyType::Text);
        let mut route = MapKind::Hash.route(&schema, &["a".into()]).unwrap().to_vec();
        route[3] ^= 1;
        assert_eq!(MapKind::Hash.key(&schema, &route).unwrap_err().code(), "route-corrupt");
    }

    /// Data on disk depends on it: the hash must be the same in every release.
    #[test]
    fn the_hash_of_a_key_never_changes() {
        let schema = KeySchema::one(KeyType::Text);
        let route = MapKind::Hash.route(&schema, &["tenant-1".into()]).unwrap();
        assert_eq!(route[HASH_BYTES..], b"tenant-1\0\x01"[..]);
        assert_eq!(route[..HASH_BYTES], 0x09a8_6da5_d289_5b17_u64.to_be_bytes());
        assert_eq!(xxh3_64(b""), 0x2d06_8005_38d3_94c2);
    }

    #[test]
    fn virtual_shards_tile_the_whole_space() {
        let mut end = Some(Bytes::new());
        for shard in 0..VIRTUAL_SHARDS {
            let routes = virtual_routes(shard..shard + 1).unwrap();
            assert_eq!(Some(&routes.start), end.as_ref());
            assert_eq!(virtual_shards(&routes), Some(shard..shard + 1));
            end = routes.end;
        }
        assert_eq!(end, None);
        assert_eq!(virtual_routes(0..VIRTUAL_SHARDS).unwrap(), KeyRange::all());
    }

    #[test]
    fn a_route_lies_in_the_routes_of_its_virtual_shard_and_keys_spread_over_all() {
        let schema = KeySchema::one(KeyType::Int64);
        let mut hit = vec![0_u32; VIRTUAL_SHARDS.into()];
        for number in 0..200_000 {
            let route = MapKind::Hash.route(&schema, &[KeyPart::Int64(number)]).unwrap();
            let shard = virtual_shard(&route).unwrap();
            assert!(virtual_routes(shard..shard + 1).unwrap().contains(&route));
            hit[usize::from(shard)] += 1;
        }
        let (least, most) = (hit.iter().min().unwrap(), hit.iter().max().unwrap());
        assert!(*least > 0 && *most < 40, "200,000 keys, about 12 each: {least} to {most}");
    }

    #[test]
    fn what_is_no_range_of_virtual_shards_is_refused() {
        #[allow(clippy::reversed_empty_ranges, reason = "that is the case to refuse")]
        for bad in [0..0, 5..4, 0..VIRTUAL_SHARDS + 1] {
            assert_eq!(virtual_routes(bad).unwrap_err().code(), "virtual-shards");
        }
        for bound in [&b"\0"[..], b"\0\x01", b"\0\x04\0", b"\0\0"] {
            assert_eq!(virtual_shards(&KeyRange::new(bound, None)), None, "{bound:?}");
        }
        assert_eq!(virtual_shard(b"1234567"), None);
    }

    #[test]
    fn a_cut_is_even_and_tiles() {
        for parts in [1, 2, 3, 7, 16, 1000, VIRTUAL_SHARDS] {
            let cut = virtual_cut(parts).unwrap();
            let mut next = 0;
            for routes in &cut {
                let shards = virtual_shards(routes).unwrap();
                assert_eq!(shards.start, next);
                let even = VIRTUAL_SHARDS / parts;
                assert!((even..=even + 1).contains(&(shards.end - shards.start)));
                next = shards.end;
            }
            assert_eq!((cut.len(), next), (usize::from(parts), VIRTUAL_SHARDS));
        }
        assert!(virtual_cut(0).is_err());
        assert!(virtual_cut(VIRTUAL_SHARDS + 1).is_err());
    }
}
