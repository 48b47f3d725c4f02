//! The entries of an item in the indexes of its container. `docs/formats/document-index.md` draws them.
//!
//! An entry is `generation (4) | place (8) | key`. The place is a hash of the path, the key sorts as the values do. Arrays and
//! objects have entries for what is in them, and in older indexes one that says only that they are there.
//!
//! What an item lacks has no entry. But each item has one entry for its *outline*, a hash of all places that it has entries at.
//! Items of a container have few outlines, so those that lack a path are found by looking at one item of each.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use bytes::Bytes;
use lazuli_engine::{Item, Result};
use lazuli_value::{Kind, Node, Value, ValueRef, View, kind_bounds, order_key, undefined_key};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use super::definition::{Definition, Generation};
use super::item::{IndexDirective, damaged, stored};
use super::path::{Path, Reach, Step};
use super::policy::{CompositePath, IndexingPolicy};

/// The generation of entries of unique keys, which no change of the policy touches.
const UNIQUE: Generation = 0;
/// Bytes of generation and place.
pub(super) const HEAD_BYTES: usize = 12;
/// The place of outlines.
const OUTLINE: u64 = 0;
/// What most items have: so many entries, each of so many bytes beside its value. Memory is taken once for all.
const ENTRIES: usize = 32;
const ENTRY_BYTES: usize = HEAD_BYTES + 8;

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
    let mut entry = Vec::new();
    write_unique(paths, item, &mut entry);
    entry.into()
}

fn write_unique(paths: &[Path], item: ValueRef<'_>, entry: &mut Vec<u8>) {
    let place = place_of_paths(UNIQUE_KEY, paths.iter().map(|path| (path, false)));
    entry.extend(head(UNIQUE, place));
    paths.iter().for_each(|path| key_or_undefined(path.find(item), entry));
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
    is_automatic: bool,
    /// As in [`IndexState`](super::definition::IndexState).
    has_kinds: bool,
    tree: Tree,
    composites: Vec<([u8; HEAD_BYTES], Vec<CompositePath>)>,
}

impl Index {
    fn new(generation: Generation, policy: &IndexingPolicy, has_kinds: bool) -> Self {
        let mut tree = Tree::default();
        policy.included.iter().for_each(|(path, reach)| tree.add(path, *reach, true));
        policy.excluded.iter().for_each(|(path, reach)| tree.add(path, *reach, false));
        let composites = policy.composites.iter();
        let composites =
            composites.map(|paths| (composite_head(generation, paths), paths.clone())).collect();
        let is_automatic = policy.automatic;
        Self { generation, is_on: policy.is_on(), is_automatic, has_kinds, tree, composites }
    }

    /// As [`IndexingPolicy::takes`].
    fn takes(&self, directive: IndexDirective) -> bool {
        match directive {
            IndexDirective::Policy => self.is_automatic,
            IndexDirective::Exclude => false,
            IndexDirective::Include => true,
        }
    }
}

/// Gathers the entries of one item, one behind the other in one piece of memory.
#[derive(Default)]
struct Gather {
    bytes: Vec<u8>,
    entries: Vec<Range<usize>>,
    /// Those of the index that is being gone through.
    places: Vec<u64>,
}

impl Gather {
    fn index(&mut self, index: &Index, item: ValueRef<'_>, written_s: &Value) {
        self.places.clear();
        self.value(index, item, Some(&index.tree), false, ROOT);
        let inherited = index.tree.all.unwrap_or(false);
        let of_time = index.tree.names.get("_ts");
        self.value(index, written_s.into(), of_time, inherited, below(ROOT, "_ts"));
        self.outline(index.generation);
        for (head, paths) in &index.composites {
            self.add(|bytes| composite_entry(head, paths, item, written_s, bytes));
        }
    }

    fn value(
        &mut self,
        index: &Index,
        value: ValueRef<'_>,
        tree: Option<&Tree>,
        inherited: bool,
        place: u64,
    ) {
        let inherited = tree.and_then(|tree| tree.all).unwrap_or(inherited);
        if tree.is_none() && !inherited {
            return;
        }
        let is_indexed = tree.and_then(|tree| tree.value).unwrap_or(inherited);
        match value.node() {
            Node::Object(object) => {
                if is_indexed && place != ROOT {
                    self.kind(index, Kind::Object, place);
                }
                for (name, value) in object.iter() {
                    let tree = tree.and_then(|tree| tree.names.get(name));
                    self.value(index, value, tree, inherited, below(place, name));
                }
            }
            Node::Array(array) => {
                if is_indexed {
                    self.kind(index, Kind::Array, place);
                }
                let tree = tree.and_then(|tree| tree.elements.as_deref());
                let element = element(place);
                for value in array.iter() {
                    self.value(index, value, tree, inherited, element);
                }
            }
            _ if is_indexed => {
                self.places.push(place);
                let head = head(index.generation, place);
                self.add(|bytes| {
                    bytes.extend(head);
                    order_key(value, bytes);
                });
            }
            _ => {}
        }
    }

    /// That there is an array or an object at a place.
    fn kind(&mut self, index: &Index, kind: Kind, place: u64) {
        if !index.has_kinds {
            return;
        }
        self.places.push(place);
        let head = head(index.generation, place);
        self.add(|bytes| {
            bytes.extend(head);
            bytes.push(kind_bounds(kind).0);
        });
    }

    fn add(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.bytes.len();
        write(&mut self.bytes);
        self.entries.push(start..self.bytes.len());
    }

    fn outline(&mut self, generation: Generation) {
        self.places.sort_unstable();
        self.places.dedup();
        let places: Vec<u8> = self.places.iter().flat_map(|place| place.to_be_bytes()).collect();
        self.add(|bytes| {
            bytes.extend(outline_head(generation));
            bytes.extend(xxh3_64(&places).to_be_bytes());
        });
    }

    /// Ascending, none twice.
    fn finish(self) -> Vec<Bytes> {
        let Self { bytes, mut entries, .. } = self;
        entries.sort_unstable_by(|one, two| bytes[one.clone()].cmp(&bytes[two.clone()]));
        entries.dedup_by(|one, two| bytes[one.clone()] == bytes[two.clone()]);
        let bytes = Bytes::from(bytes);
        entries.into_iter().map(|entry| bytes.slice(entry)).collect()
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
        let index = |state: &super::definition::IndexState| {
            Index::new(state.generation, &state.policy, state.has_kinds)
        };
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
        let directive = IndexDirective::of(&item.payload)?;
        let mut gather = Gather::default();
        gather.bytes.reserve(encoded.len() + ENTRY_BYTES * ENTRIES);
        gather.entries.reserve(ENTRIES);
        for index in self.all.iter().filter(|index| index.takes(directive)) {
            gather.index(index, whole, &written_s);
        }
        for paths in &self.unique_keys {
            gather.add(|bytes| write_unique(paths, whole, bytes));
        }
        Ok(gather.finish())
    }
}

/// Appends the entry of an item in a composite index. Parts that descend have all their bits turned around.
fn composite_entry(
    head: &[u8; HEAD_BYTES],
    paths: &[CompositePath],
    item: ValueRef<'_>,
    written_s: &Value,
    entry: &mut Vec<u8>,
) {
    entry.extend(head);
    for CompositePath { path, descends } in paths {
        let start = entry.len();
        let is_time = matches!(path.steps(), [Step::Name(name)] if name == "_ts");
        let value = if is_time { Some(written_s.into()) } else { path.find(item) };
        key_or_undefined(value, entry);
        if *descends {
            entry[start..].iter_mut().for_each(|byte| *byte = !*byte);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::item::Body;
    use super::*;
    use lazuli_engine::Lsn;

    fn indexes(policy: &str) -> Indexes {
        let policy = IndexingPolicy::from_value(&Value::from_json(policy.as_bytes()).unwrap());
        let index = Index::new(7, &policy.unwrap(), false);
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
        // Beyond those: the outline and the unique key.
        assert_eq!(found.len(), expected.len() + 2);
        assert!(found.is_sorted());
        let older = Index { has_kinds: true, ..indexes("{}").all.remove(0) };
        let older = Indexes { all: vec![older], ..indexes("{}") };
        let found = older.entries(&item(r#"{"id":"1","a":{"b":2},"t":["x","y","x"]}"#)).unwrap();
        // The object and the array, too.
        assert_eq!(found.len(), expected.len() + 4);

        let some = indexes(
            r#"{"includedPaths":[{"path":"/a/*"}],"excludedPaths":[{"path":"/*"},{"path":"/a/c/?"}]}"#,
        );
        let found = some.entries(&item(r#"{"id":"1","a":{"b":2,"c":3},"t":[1]}"#)).unwrap();
        assert!(found.contains(&entry("/a/b", "2")) && !found.contains(&entry("/a/c", "3")));
        assert_eq!(found.len(), 3);
        let none = indexes(r#"{"indexingMode":"none"}"#);
        assert_eq!(
            Indexes { all: vec![], ..none }.entries(&item(r#"{"id":"1"}"#)).unwrap().len(),
            1
        );
    }

    #[test]
    fn a_request_decides_whether_its_item_is_indexed() {
        let count = |policy: &str, directive: IndexDirective| {
            let body = Body::from_json(br#"{"id":"1","u":2}"#).unwrap().indexed(directive);
            let (version, payload) = (Lsn::at_ms(9_000), body.payload(Lsn(5)));
            let item = Item { version, expires_ms: None, written_ms: None, payload };
            indexes(policy).entries(&item).unwrap().len()
        };
        let (all, asked) = ("{}", r#"{"automatic":false}"#);
        let full = count(all, IndexDirective::Policy);
        // Unique keys hold for all items.
        assert_eq!((full, count(all, IndexDirective::Include)), (5, 5));
        assert_eq!(count(all, IndexDirective::Exclude), 1);
        assert_eq!(count(asked, IndexDirective::Policy), 1);
        assert_eq!(count(asked, IndexDirective::Include), 5);
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
