//! What an index is: its name, its definition, how far it is spread, and how the keys of its documents are made. All of it is
//! kept in the attributes of its container.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use lazuli_engine::{
    Container, ContainerId, Error, ItemKey, KeyPart, KeyRange, KeySchema, KeyType, MapKind, Result,
    Space,
};
use lazuli_shardmap::route::virtual_cut;

use crate::IndexReason;
use crate::limits::{KEY_CHARS_MAX, PARTITION_COUNTS, REPLICAS_MAX, SLICES, UNITS_MAX};

const TITLE: &str = "title";
const DEFINITION: &str = "definition";
const VERSION: &str = "version";
const CREATED: &str = "created-ms";
pub(crate) const PARTITIONS: &str = "partitions";
pub(crate) const REPLICAS: &str = "replicas";
pub(crate) const SPREADING: &str = "spreading";

/// Over how many shards the slices of an index are spread, and how many copies of its text index there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    pub partitions: u32,
    pub replicas: u32,
}

impl Default for Scale {
    fn default() -> Self {
        Self { partitions: 1, replicas: 1 }
    }
}

impl Scale {
    /// Refuses what the service refuses, unless the limit on units was lifted.
    pub fn check(self, is_limited: bool) -> Result<()> {
        let bad = |message: String| Err(Error::invalid(IndexReason::BadScale, message));
        if !PARTITION_COUNTS.contains(&self.partitions) {
            return bad(format!("an index has {PARTITION_COUNTS:?} partitions"));
        }
        if self.replicas == 0 || (is_limited && self.replicas > REPLICAS_MAX) {
            return bad(format!("an index has 1 to {REPLICAS_MAX} replicas"));
        }
        if is_limited && self.partitions.saturating_mul(self.replicas) > UNITS_MAX {
            return bad(format!("an index has up to {UNITS_MAX} units: partitions times replicas"));
        }
        Ok(())
    }
}

/// An index as its container says it is.
#[derive(Clone, Debug)]
pub struct Index {
    pub name: String,
    /// JSON, as the front wrote it.
    pub definition: Arc<str>,
    /// Grows with every change of the definition.
    pub version: u64,
    pub created_ms: u64,
    pub scale: Scale,
    /// Whether slices are on their way to where the scale wants them.
    pub is_spreading: bool,
    pub(crate) container: Arc<Container>,
}

impl Index {
    pub(crate) fn of(container: Arc<Container>) -> Result<Self> {
        let attributes = &container.policies.attributes;
        let text = |name: &str| attributes.get(name).ok_or_else(damaged);
        let number = |name: &str| text(name)?.parse::<u64>().map_err(|_| damaged());
        let small = |name: &str| u32::try_from(number(name)?).map_err(|_| damaged());
        let (partitions, replicas) = (small(PARTITIONS)?, small(REPLICAS)?);
        Ok(Self {
            name: text(TITLE)?.clone(),
            definition: text(DEFINITION)?.as_str().into(),
            version: number(VERSION)?,
            created_ms: number(CREATED)?,
            scale: Scale { partitions, replicas },
            is_spreading: attributes.contains_key(SPREADING),
            container,
        })
    }

    /// The attributes of the container of a new index.
    pub(crate) fn attributes(
        name: &str,
        definition: &str,
        scale: Scale,
        now_ms: u64,
    ) -> BTreeMap<String, String> {
        let set = |name: &str, value: String| (name.to_owned(), value);
        BTreeMap::from([
            set(TITLE, name.to_owned()),
            set(DEFINITION, definition.to_owned()),
            // Numbers of indexes of one name do not come again, so neither do their ETags.
            set(VERSION, now_ms.to_string()),
            set(CREATED, now_ms.to_string()),
            set(PARTITIONS, scale.partitions.to_string()),
            set(REPLICAS, scale.replicas.to_string()),
        ])
    }

    /// Puts another definition in place of the one that the caller has seen.
    pub(crate) fn redefine(
        attributes: &mut BTreeMap<String, String>,
        definition: &str,
        seen: Option<u64>,
    ) -> Result<()> {
        let version = attributes.get(VERSION).and_then(|text| text.parse::<u64>().ok());
        let version = version.ok_or_else(damaged)?;
        if seen.is_some_and(|seen| seen != version) {
            let message = "the index was changed meanwhile";
            return Err(Error::precondition(IndexReason::VersionDiffers, message));
        }
        if attributes.get(DEFINITION).is_some_and(|now| now == definition) {
            return Ok(());
        }
        attributes.insert(VERSION.to_owned(), (version + 1).to_string());
        attributes.insert(DEFINITION.to_owned(), definition.to_owned());
        Ok(())
    }

    /// Names this index, and not another one of its name before or after it.
    pub fn id(&self) -> ContainerId {
        self.container.id
    }

    /// The container under which the map knows it.
    pub fn container(&self) -> &Arc<Container> {
        &self.container
    }

    /// Where the document of this key is kept.
    pub(crate) fn item(&self, key: &str) -> Result<ItemKey> {
        let route = route_of(key)?;
        Ok(ItemKey::new(self.container.id, Space::ITEMS, &route, &[]))
    }

    /// The key of the document that is kept under a route.
    pub(crate) fn key(&self, route: &[u8]) -> Result<String> {
        let mut parts = self.container.kind.key(&self.container.key, route)?;
        match (parts.pop(), parts.is_empty()) {
            (Some(KeyPart::Text(key)), true) => Ok(key),
            _ => Err(damaged()),
        }
    }
}

pub(crate) fn key_schema() -> KeySchema {
    KeySchema::one(KeyType::Text)
}

pub(crate) fn route_of(key: &str) -> Result<Bytes> {
    MapKind::Hash.route(&key_schema(), &[KeyPart::Text(key.to_owned())])
}

/// The routes of each slice, in order.
pub fn slices() -> Result<Vec<KeyRange>> {
    virtual_cut(SLICES)
}

/// The slice in which the document of this key is.
pub fn slice_of(key: &str) -> Result<u16> {
    let route = route_of(key)?;
    let slices = slices()?;
    let slice = slices.iter().position(|routes| routes.contains(&route)).ok_or_else(damaged)?;
    Ok(u16::try_from(slice).unwrap_or(0))
}

/// Keys of documents as the service allows them.
pub fn check_key(key: &str) -> Result<()> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-=".contains(&byte);
    if !key.is_empty() && key.len() <= KEY_CHARS_MAX && key.bytes().all(is_plain) {
        return Ok(());
    }
    let message = format!(
        "Invalid document key: '{}'. Keys can only contain letters, digits, underscore (_), dash (-), or equal \
         sign (=), and at most {KEY_CHARS_MAX} characters.",
        key.chars().take(KEY_CHARS_MAX).collect::<String>()
    );
    Err(Error::invalid(IndexReason::BadKey, message))
}

pub(crate) fn damaged() -> Error {
    Error::corrupt("bad-search-index", "what is kept of an index does not decode")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_those_that_the_service_allows() {
        for key in ["1", "a_b-c=", &"x".repeat(1_024)] {
            assert!(check_key(key).is_ok(), "{key}");
        }
        for key in ["", "a b", "a/b", "ä", "a.b", &"x".repeat(1_025)] {
            assert!(check_key(key).is_err(), "{key}");
        }
    }

    #[test]
    fn twelve_slices_cover_all_keys_about_evenly() {
        let mut counts = [0_u32; SLICES as usize];
        for number in 0..12_000 {
            counts[usize::from(slice_of(&format!("key-{number}")).unwrap())] += 1;
        }
        assert!(counts.iter().all(|count| (850..1_150).contains(count)), "{counts:?}");
    }

    #[test]
    fn units_are_limited_as_by_the_service_unless_that_is_lifted() {
        let check = |partitions, replicas, is_limited| {
            Scale { partitions, replicas }.check(is_limited).is_ok()
        };
        assert!(check(12, 3, true) && check(1, 6, true) && check(6, 6, true));
        assert!(!check(12, 4, true) && !check(5, 1, true) && !check(1, 7, true));
        assert!(!check(1, 0, false) && check(12, 6, false) && check(1, 12, false));
    }
}
