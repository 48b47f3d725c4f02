//! What is fixed about a container of documents, and the state of its index: kept as a text among the container's
//! policies, so that every node reads it with the map.

use lazuli_engine::{Error, Result};
use lazuli_value::{Object, Value};

use super::item::IndexDirective;
use super::key::KeyKind;
use super::limits::{UNIQUE_KEYS_MAX, UNIQUE_PATHS_MAX};
use super::path::Path;
use super::policy::IndexingPolicy;
use super::reason::DocumentReason;
use super::rid::Rid;

/// The attribute of a container that holds its definition.
pub(super) const DEFINITION: &str = "document";

/// The number of an index: each change of the policy makes a new one.
pub type Generation = u32;

/// One index, complete or in the making.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexState {
    pub generation: Generation,
    pub policy: IndexingPolicy,
    /// Whether every item has its entries. Queries use the newest index of which that is true.
    pub is_complete: bool,
    /// Whether arrays and objects have entries that say that they are there, as in indexes of former versions. Without
    /// them an item with an array or object at a path has no entry there, as if it lacked the path.
    pub has_kinds: bool,
}

/// What a caller fixes when it creates a container.
#[derive(Clone, Debug)]
pub struct NewDefinition {
    pub key_paths: Vec<Path>,
    pub key_kind: KeyKind,
    pub indexing: IndexingPolicy,
    /// Sets of paths whose values no two items of one partition key have in common.
    pub unique_keys: Vec<Vec<Path>>,
    /// Seconds after which items are gone; -1: only items that say so; none: never, whatever they say.
    pub ttl_s: Option<i64>,
    /// How long changes and former versions are kept, in seconds; zero: only what the items are now.
    pub versions_kept_s: u64,
}

/// What is fixed about a container, and the state of its index.
#[derive(Clone, Debug, PartialEq)]
pub struct Definition {
    pub rid: Rid,
    pub key_paths: Vec<Path>,
    pub key_kind: KeyKind,
    pub unique_keys: Vec<Vec<Path>>,
    pub ttl_s: Option<i64>,
    pub versions_kept_s: u64,
    /// The oldest first. The last one follows the container's policy as it is now.
    pub indexes: Vec<IndexState>,
    /// Generations whose entries are still to be deleted.
    pub waste: Vec<Generation>,
}

impl Definition {
    pub(super) fn new(rid: Rid, new: NewDefinition) -> Result<Self> {
        let NewDefinition { key_paths, key_kind, indexing, unique_keys, ttl_s, versions_kept_s } =
            new;
        let levels = if key_kind == KeyKind::Multi { 3 } else { 1 };
        if key_paths.is_empty() || key_paths.len() > levels {
            return Err(bad("a partition key has one path, a hierarchical one up to three"));
        }
        if unique_keys.len() > UNIQUE_KEYS_MAX
            || unique_keys.iter().any(|key| key.is_empty() || key.len() > UNIQUE_PATHS_MAX)
        {
            return Err(bad("up to ten unique keys of one to sixteen paths"));
        }
        check_ttl(ttl_s)?;
        let indexes = vec![IndexState {
            generation: 1,
            policy: indexing,
            is_complete: true,
            has_kinds: false,
        }];
        let waste = Vec::new();
        Ok(Self { rid, key_paths, key_kind, unique_keys, ttl_s, versions_kept_s, indexes, waste })
    }

    pub fn levels(&self) -> usize {
        self.key_paths.len()
    }

    /// The policy as it is now, even if its index is still being built.
    pub fn policy(&self) -> &IndexingPolicy {
        // A definition has at least one index: `new` and `from_text` see to it.
        &self.indexes[self.indexes.len() - 1].policy
    }

    /// The index that queries use; none while the only one is not complete, or there is to be none.
    pub fn index(&self) -> Option<&IndexState> {
        self.indexes.iter().rev().find(|index| index.is_complete && index.policy.is_on())
    }

    /// Whether queries find an item: where there is an index, those that are in it.
    pub fn finds(&self, directive: IndexDirective) -> bool {
        let policy = self.index().map_or(self.policy(), |index| &index.policy);
        !policy.is_on() || policy.takes(directive)
    }

    /// Whether an index is being built.
    pub fn building(&self) -> Option<&IndexState> {
        self.indexes.iter().find(|index| !index.is_complete)
    }

    /// A number that no index has had.
    pub(super) fn next_generation(&self) -> Generation {
        let used = self.indexes.iter().map(|index| index.generation).chain(self.waste.clone());
        used.max().unwrap_or(0) + 1
    }

    /// When an item that is written now expires, given what its `ttl` says.
    pub(super) fn expiry_ms(&self, now_ms: u64, item_ttl_s: Option<i64>) -> Option<u64> {
        let seconds = item_ttl_s.or(self.ttl_s).filter(|_| self.ttl_s.is_some())?;
        let seconds = u64::try_from(seconds).ok()?;
        Some(now_ms.saturating_add(seconds.saturating_mul(1_000)))
    }

    pub(super) fn to_text(&self) -> String {
        let texts = |paths: &[Path]| {
            Value::Array(paths.iter().map(|path| path.to_string().into()).collect())
        };
        let index = |index: &IndexState| {
            object(vec![
                ("generation", i64::from(index.generation).into()),
                ("complete", index.is_complete.into()),
                ("kinds", index.has_kinds.into()),
                ("policy", index.policy.to_value()),
            ])
        };
        let waste = self.waste.iter().map(|generation| i64::from(*generation).into());
        let mut properties = vec![
            ("rid", self.rid.to_string().into()),
            ("paths", texts(&self.key_paths)),
            ("kind", self.key_kind.name().into()),
            ("unique", Value::Array(self.unique_keys.iter().map(|key| texts(key)).collect())),
            ("kept", (self.versions_kept_s as i64).into()),
            ("indexes", Value::Array(self.indexes.iter().map(index).collect())),
            ("waste", Value::Array(waste.collect())),
        ];
        properties.extend(self.ttl_s.map(|ttl| ("ttl", ttl.into())));
        object(properties).to_json()
    }

    pub(super) fn from_text(text: &str) -> Result<Self> {
        let value = Value::from_json(text.as_bytes()).map_err(|_| damaged())?;
        read(&value).ok_or_else(damaged)
    }
}

fn object(properties: Vec<(&str, Value)>) -> Value {
    let owned = properties.into_iter().map(|(name, value)| (name.to_owned(), value));
    Value::Object(Object::from_properties(owned.collect()))
}

fn read(value: &Value) -> Option<Definition> {
    let Value::Object(value) = value else { return None };
    let text = |value: Option<&Value>| match value {
        Some(Value::String(text)) => Some(text.clone()),
        _ => None,
    };
    let number = |value: Option<&Value>| match value {
        Some(Value::Int64(number)) => Some(*number),
        _ => None,
    };
    let list = |value: Option<&Value>| match value {
        Some(Value::Array(elements)) => Some(elements.clone()),
        _ => None,
    };
    let paths = |value: Option<&Value>| -> Option<Vec<Path>> {
        list(value)?.iter().map(|path| Path::parse(&text(Some(path))?).ok()).collect()
    };
    let index = |value: &Value| {
        let Value::Object(value) = value else { return None };
        Some(IndexState {
            generation: u32::try_from(number(value.get("generation"))?).ok()?,
            is_complete: value.get("complete") == Some(&Value::Bool(true)),
            has_kinds: value.get("kinds") != Some(&Value::Bool(false)),
            policy: IndexingPolicy::from_value(value.get("policy")?).ok()?,
        })
    };
    let waste = list(value.get("waste"))?;
    let definition = Definition {
        rid: Rid::parse(&text(value.get("rid"))?)?,
        key_paths: paths(value.get("paths"))?,
        key_kind: KeyKind::named(&text(value.get("kind"))?)?,
        unique_keys: list(value.get("unique"))?
            .iter()
            .map(|key| paths(Some(key)))
            .collect::<Option<_>>()?,
        ttl_s: number(value.get("ttl")),
        versions_kept_s: u64::try_from(number(value.get("kept"))?).ok()?,
        indexes: list(value.get("indexes"))?.iter().map(index).collect::<Option<_>>()?,
        waste: waste
            .iter()
            .map(|one| u32::try_from(number(Some(one))?).ok())
            .collect::<Option<_>>()?,
    };
    (!definition.indexes.is_empty() && !definition.key_paths.is_empty()).then_some(definition)
}

pub(super) fn check_ttl(ttl_s: Option<i64>) -> Result<()> {
    match ttl_s {
        None | Some(-1 | 1..=0x7fff_ffff) => Ok(()),
        Some(_) => Err(bad("a time to live is -1 or a positive number of seconds")),
    }
}

fn bad(message: &str) -> Error {
    Error::invalid(DocumentReason::BadDefinition, message)
}

fn damaged() -> Error {
    Error::corrupt("bad-definition", "the definition of a container does not decode")
}

#[cfg(test)]
mod tests {
    use super::super::rid::ResourceKind;
    use super::*;

    fn definition(ttl_s: Option<i64>) -> Definition {
        let database = Rid::new(ResourceKind::Database, None, 1);
        let rid = Rid::new(ResourceKind::Collection, Some(&database), 2);
        let new = NewDefinition {
            key_paths: vec![Path::parse("/a/b").unwrap()],
            key_kind: KeyKind::V2,
            indexing: IndexingPolicy::default(),
            unique_keys: vec![vec![Path::parse("/u").unwrap(), Path::parse("/v").unwrap()]],
            ttl_s,
            versions_kept_s: 300,
        };
        Definition::new(rid, new).unwrap()
    }

    #[test]
    fn a_definition_survives_its_text_and_damage_is_corrupt() {
        for ttl_s in [None, Some(-1), Some(60)] {
            let mut definition = definition(ttl_s);
            definition.waste = vec![7];
            let text = definition.to_text();
            assert_eq!(Definition::from_text(&text).unwrap(), definition);
            assert_eq!(definition.next_generation(), 8);
        }
        for text in ["", "{}", "[]", r#"{"rid":"AAAA"}"#] {
            assert_eq!(Definition::from_text(text).unwrap_err().code(), "bad-definition");
        }
    }

    #[test]
    fn items_expire_as_the_container_and_they_themselves_say() {
        let expiry = |container, item| definition(container).expiry_ms(1_000, item);
        assert_eq!(expiry(None, Some(5)), None);
        assert_eq!(expiry(Some(-1), None), None);
        assert_eq!(expiry(Some(-1), Some(5)), Some(6_000));
        assert_eq!(expiry(Some(10), None), Some(11_000));
        assert_eq!(expiry(Some(10), Some(-1)), None);
        assert_eq!(expiry(Some(10), Some(2)), Some(3_000));
    }
}
