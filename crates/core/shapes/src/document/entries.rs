//! The entries of an item in the indexes of its container. `docs/formats/document-index.md` draws them.
//!
//! An entry is `generation (4) | place (8) | key`. The place is a hash of the path, the key sorts as the values do. Arrays and
//! objects have an entry that says only that they are there, and entries for what is in them.
//!
//! What an item lacks has no entry. But each item has one entry for its *outline*, a hash of all places that it has entries at.
//! Items of a container have few outlines, so those that lack a path are found by looking at one item of each.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use lazuli_engine::{Item, Result};
use lazuli_value::{Kind, Node, Value, ValueRef, View, kind_bounds, order_key, undefined_key};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use super::definition::{Definition, Generation};
use super::item::{damaged, stored};
use super::path::{Path, Reach, Step};
use super::policy::{CompositePath, IndexingPolicy};

/// The generation of entries of unique keys, which no change of the policy touches.
const UNIQUE: Generation = 0;
/// Bytes of generation and place.
pub(super) const HEAD_BYTES: usize = 12;
/// The place of outlines.
const OUTLINE: u64 = 0;

const ROOT: u64 = 1;
const ELEMENT: u64 = 2;
const COMPOSITE: u64 = 3;
const UNIQUE_KEY: u64 = 4;

/// The place of what is at the end of these steps.
pub(super) fn place_of<'a>(steps: impl IntoIterator<Item = &'a Step>) -> u64 {
    steps.into_iter().fold(ROOT, |place, step| match step {
        Step::Name(name) => below(place, name),
        Step::Element => element(place),
    })
}

fn below(place: u64, name: &str) -> u64 {
    xxh3_64_with_seed(name.as_bytes(), place)
}

fn element(place: u64) -> u64 {
    xxh3_64_with_seed(&ELEMENT.to_be_bytes(), place.rotate_left(32))
}

fn place_of_paths<'a>(seed: u64, paths: impl IntoIterator<Item = (&'a Path, bool)>) -> u64 {
    paths.into_iter().fold(seed, |place, (path, descends)| {
        let mut bytes = path.to_string().into_bytes();
        bytes.push(u8::from(descends));
        xxh3_64_with_seed(&bytes, place)
    })
}

/// `generation | place`: what all entries at a place begin with.
fn head(generation: Generation, place: u64) -> [u8; HEAD_BYTES] {
    let mut head = [0; HEAD_BYTES];
    head[..4].copy_from_slice(&generation.to_be_bytes());
    head[4..].copy_from_slice(&place.to_be_bytes());
    head
}

/// What the entries of a path begin with.
pub(super) fn path_head(generation: Generation, path: &[Step]) -> [u8; HEAD_BYTES] {
    head(generation, place_of(path))
}

/// What the entries of a composite index begin with.
pub(super) fn composite_head(generation: Generation, paths: &[CompositePath]) -> [u8; HEAD_BYTES] {
    head(generation, place_of_paths(COMPOSITE, paths.iter().map(|one| (&one.path, one.descends))))
}

/// What the outlines of a generation begin with.
pub(super) fn outline_head(generation: Generation) -> [u8; HEAD_BYTES] {
    head(generation, OUTLINE)
}

/// What all entries of a generation begin with.
pub(super) fn generation_head(generation: Generation) -> [u8; 4] {
    generation.to_be_bytes()
}

/// The generation of an entry.
pub(super) fn generation_of(entry: &[u8]) -> Option<Generation> {
    entry.first_chunk::<4>().map(|bytes| Generation::from_be_bytes(*bytes))
}

/// The entry of the values that an item has for a unique key.
pub(super) fn unique_entry(paths: &[Path], item: ValueRef<'_>) -> Bytes {
    let place = place_of_paths(UNIQUE_KEY, paths.iter().map(|path| (path, false)));
    let mut entry = head(UNIQUE, place).to_vec();
    paths.iter().for_each(|path| key_or_undefined(path.find(item), &mut entry));
    entry.into()
}

fn key_or_undefined(value: Option<ValueRef<'_>>, out: &mut Vec<u8>) {
    match value {
        Some(value) => order_key(value, out),
        None => undefined_key(out),
    }
}

/// What a policy says about the values at a place and below it.
#[derive(Debug, Default)]
struct Tree {
    names: BTreeMap<String, Tree>,
    elements: Option<Box<Tree>>,
    /// Whether the value at this very place is indexed, if a path says so.
    value: Option<bool>,
    /// Whether it and all below it are.
    all: Option<bool>,
}

impl Tree {
    fn add(&mut self, path: &Path, reach: Reach, is_indexed: bool) {
        let tree = path.steps().iter().fold(self, |tree, step| match step {
            Step::Name(name) => tree.names.entry(name.clone()).or_default(),
            Step::Element => tree.elements.get_or_insert_default(),
        });
        let said = match reach {
            Reach::Value => &mut tree.value,
            Reach::Below => &mut tree.all,
        };
        // Of two paths that say the opposite of the same place, the one that excludes it holds.
        *said = Some(is_indexed && *said != Some(false));
    }
}

/// One index in a form that is quick to follow.
#[derive(Debug)]
pub(super) struct Index {
    pub(super) generation: Generation,
    is_on: bool,
    tree: Tree,
    composites: Vec<([u8; HEAD_BYTES], Vec<CompositePath>)>,
}

impl Index {
    fn new(generation: Generation, policy: &IndexingPolicy) -> Self {
        let mut tree = Tree::default();
        policy.included.iter().for_each(|(path, reach)| tree.add(path, *reach, true));
        policy.excluded.iter().for_each(|(path, reach)| tree.add(path, *reach, false));
        let composites = policy.composites.iter();
        let composites =
            composites.map(|paths| (composite_head(generation, paths), paths.clone())).collect();
        Self { generation, is_on: policy.is_on(), tree, composites }
    }
}

/// Gathers the entries of one item.
struct Gather {
    generation: Generation,
    entries: Vec<Bytes>,
    places: Vec<u64>,
}

impl Gather {
    fn value(&mut self, value: ValueRef<'_>, tree: Option<&Tree>, inherited: bool, place: u64) {
        let inherited = tree.and_then(|tree| tree.all).unwrap_or(inherited);
        if tree.is_none() && !inherited {
            return;
        }
        let is_indexed = tree.and_then(|tree| tree.value).unwrap_or(inherited);
        match value.node() {
            Node::Object(object) => {
                if is_indexed && place != ROOT {
                    self.kind(Kind::Object, place);
                }
                for (name, value) in object.iter() {
                    let tree = tree.and_then(|tree| tree.names.get(name));
                    self.value(value, tree, inherited, below(place, name));
                }
            }
            Node::Array(array) => {
                if is_indexed {
                    self.kind(Kind::Array, place);
                }
                let tree = tree.and_then(|tree| tree.elements.as_deref());
                for value in array.iter() {
                    self.value(value, tree, inherited, element(place));
                }
            }
            _ if is_indexed => {
                let mut entry = Vec::with_capacity(HEAD_BYTES + 32);
                entry.extend(head(self.generation, place));
                order_key(value, &mut entry);
                self.add(entry, place);
            }
            _ => {}
        }
    }

    /// That there is an array or an object at a place.
    fn kind(&mut self, kind: Kind, place: u64) {
        let mut entry = head(self.generation, place).to_vec();
        entry.push(kind_bounds(kind).0);
        self.add(entry, place);
    }

    fn add(&mut self, entry: Vec<u8>, place: u64) {
        self.entries.push(entry.into());
        self.places.push(place);
    }

    fn outline(&mut self) {
        self.places.sort_unstable();
        self.places.dedup();
        let bytes: Vec<u8> = self.places.iter().flat_map(|place| place.to_be_bytes()).collect();
        let mut entry = outline_head(self.generation).to_vec();
        entry.extend(xxh3_64(&bytes).to_be_bytes());
        self.entries.push(entry.into());
    }
}

/// All indexes of a container.
#[derive(Debug)]
pub(super) struct Indexes {
    pub(super) all: Vec<Index>,
    unique_keys: Vec<Vec<Path>>,
}

impl Indexes {
    pub(super) fn new(definition: &Definition) -> Self {
        let index =
            |state: &super::definition::IndexState| Index::new(state.generation, &state.policy);
        let all = definition.indexes.iter().map(index).filter(|index| index.is_on).collect();
        Self { all, unique_keys: definition.unique_keys.clone() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty() && self.unique_keys.is_empty()
    }

    /// The places that a stored item has entries at in one index.
    pub(super) fn places(&self, generation: Generation, item: &Item) -> Result<BTreeSet<u64>> {
        let entries = self.entries(item)?;
        let is_its = |entry: &&Bytes| generation_of(entry) == Some(generation);
        let place = |entry: &Bytes| {
            let bytes = entry.get(4..HEAD_BYTES).and_then(|bytes| bytes.try_into().ok());
            u64::from_be_bytes(bytes.unwrap_or_default())
        };
        Ok(entries.iter().filter(is_its).map(place).collect())
    }

    /// The entries of a stored item, ascending.
    pub(super) fn entries(&self, item: &Item) -> Result<Vec<Bytes>> {
        let (_, encoded) = stored(&item.payload)?;
        let whole = ValueRef::from(View::parse(&encoded).map_err(|_| damaged())?);
        let written_s = Value::Int64((item.time().millis() / 1_000) as i64);
        let mut entries = Vec::new();
        for index in &self.all {
            let mut gather =
                Gather { generation: index.generation, entries: Vec::new(), places: Vec::new() };
            let root = Some(&index.tree);
            gather.value(whole, root, false, ROOT);
            let inherited = index.tree.all.unwrap_or(false);
            let of_time = index.tree.names.get("_ts");
            gather.value((&written_s).into(), of_time, inherited, below(ROOT, "_ts"));
            gather.outline();
            for (head, paths) in &index.composites {
                gather.entries.push(composite_entry(head, paths, whole, &written_s));
            }
            entries.append(&mut gather.entries);
        }
        entries.extend(self.unique_keys.iter().map(|paths| unique_entry(paths, whole)));
        entries.sort_unstable();
        entries.dedup();
        Ok(entries)
    }
}

/// The entry of an item in a composite index. Parts that descend have all their bits turned around.
fn composite_entry(
    head: &[u8; HEAD_BYTES],
    paths: &[CompositePath],
    item: ValueRef<'_>,
    written_s: &Value,
) -> Bytes {
    let mut entry = head.to_vec();
    for CompositePath { path, descends } in paths {
        let start = entry.len();
        let is_time = matches!(path.steps(), [Step::Name(name)] if name == "_ts");
        let value = if is_time { Some(written_s.into()) } else { path.find(item) };
        key_or_undefined(value, &mut entry);
        if *descends {
            entry[start..].iter_mut().for_each(|byte| *byte = !*byte);
        }
    }
    entry.into()
}

#[cfg(test)]
mod tests {
    use super::super::item::Body;
    use super::*;
    use lazuli_engine::Lsn;

    fn indexes(policy: &str) -> Indexes {
        let policy = IndexingPolicy::from_value(&Value::from_json(policy.as_bytes()).unwrap());
        let index = Index::new(7, &policy.unwrap());
        Indexes { all: vec![index], unique_keys: vec![vec![Path::parse("/u").unwrap()]] }
    }

    fn item(json: &str) -> Item {
        let payload = Body::from_json(json.as_bytes()).unwrap().payload(Lsn(5));
        let version = Lsn::at_ms(9_000);
        Item { version, expires_ms: None, written_ms: None, payload }
    }

    fn entry(path: &str, value: &str) -> Bytes {
        let (path, _) = Path::parse_reach(path).unwrap();
        let mut entry = path_head(7, path.steps()).to_vec();
        order_key((&Value::from_json(value.as_bytes()).unwrap()).into(), &mut entry);
        entry.into()
    }

    #[test]
    fn every_value_that_the_policy_includes_has_an_entry() {
        let all = indexes("{}");
        let found = all.entries(&item(r#"{"id":"1","a":{"b":2},"t":["x","y","x"]}"#)).unwrap();
        let expected = [
            entry("/id", "\"1\""),
            entry("/a/b", "2"),
            entry("/t/[]", "\"x\""),
            entry("/t/[]", "\"y\""),
            entry("/_ts", "9"),
        ];
        for one in &expected {
            assert!(found.contains(one), "{one:?}");
        }
        // Beyond those: the object, the array, the outline and the unique key.
        assert_eq!(found.len(), expected.len() + 4);
        assert!(found.is_sorted());

        let some = indexes(
            r#"{"includedPaths":[{"path":"/a/*"}],"excludedPaths":[{"path":"/*"},{"path":"/a/c/?"}]}"#,
        );
        let found = some.entries(&item(r#"{"id":"1","a":{"b":2,"c":3},"t":[1]}"#)).unwrap();
        assert!(found.contains(&entry("/a/b", "2")) && !found.contains(&entry("/a/c", "3")));
        assert_eq!(found.len(), 4);
        let none = indexes(r#"{"indexingMode":"none"}"#);
        assert_eq!(
            Indexes { all: vec![], ..none }.entries(&item(r#"{"id":"1"}"#)).unwrap().len(),
            1
        );
    }

    #[test]
    fn outlines_tell_items_apart_by_what_they_have() {
        let all = indexes("{}");
        let outline = |json: &str| {
            let found = all.entries(&item(json)).unwrap();
            found.into_iter().find(|entry| entry.starts_with(&outline_head(7))).unwrap()
        };
        assert_eq!(outline(r#"{"id":"1","a":1}"#), outline(r#"{"a":"x","id":"2"}"#));
        assert_ne!(outline(r#"{"id":"1","a":1}"#), outline(r#"{"id":"1"}"#));
        assert_eq!(outline(r#"{"id":"1","t":[1]}"#), outline(r#"{"id":"1","t":[1,2]}"#));
    }

    #[test]
    fn a_composite_index_sorts_each_part_in_its_direction() {
        let both = r#"{"includedPaths":[{"path":"/*"}],"compositeIndexes":
            [[{"path":"/a","order":"ascending"},{"path":"/b","order":"descending"}]]}"#;
        let all = indexes(both);
        let head = all.all[0].composites[0].0;
        let entry = |json: &str| {
            let found = all.entries(&item(json)).unwrap();
            found.into_iter().find(|entry| entry.starts_with(&head)).unwrap()
        };
        let sorted = [
            r#"{"id":"1","b":1}"#,
            r#"{"id":"1","a":1,"b":"z"}"#,
            r#"{"id":"1","a":1,"b":"a"}"#,
            r#"{"id":"1","a":1,"b":2}"#,
            r#"{"id":"1","a":1}"#,
            r#"{"id":"1","a":"x","b":2}"#,
        ];
        let entries: Vec<Bytes> = sorted.iter().map(|json| entry(json)).collect();
        assert!(entries.is_sorted());
    }
}
