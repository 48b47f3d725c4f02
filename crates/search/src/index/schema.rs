//! Which physical fields an index has. Every field of the definition without subfields has a number `n` and, as its
//! attributes need them: `s{n}` (terms for search), `v{n}` (values for filters, orders and facets), `x{n}` and `y{n}`
//! (coordinates), `w{n}` (a vector). `k` is the key, `j` the document itself.

use super::vectors::VectorField;
use crate::definition::{EdmType, IndexDefinition, Leaf};
use std::collections::BTreeMap;
use tantivy::schema::{
    Field, IndexRecordOption, NumericOptions, STORED, Schema, TextFieldIndexing, TextOptions,
};
use xxhash_rust::xxh3::xxh3_64;

/// The physical fields of one field of the definition.
#[derive(Clone, Debug)]
pub(crate) struct PhysicalLeaf {
    pub(crate) leaf: Leaf,
    pub(crate) number: usize,
    pub(crate) terms: Option<Field>,
    pub(crate) values: Option<Field>,
    pub(crate) longitude: Option<Field>,
    pub(crate) latitude: Option<Field>,
    pub(crate) vector: Option<Field>,
}

impl PhysicalLeaf {
    /// The name of the column of values.
    pub(crate) fn column(&self) -> String {
        format!("v{}", self.number)
    }

    /// The names of the columns of coordinates.
    pub(crate) fn coordinates(&self) -> (String, String) {
        (format!("x{}", self.number), format!("y{}", self.number))
    }
}

/// The physical form of a definition.
#[derive(Clone, Debug)]
pub(crate) struct Physical {
    pub(crate) schema: Schema,
    pub(crate) key: Field,
    pub(crate) source: Field,
    pub(crate) leaves: BTreeMap<String, PhysicalLeaf>,
    /// The vector fields in the order of their files.
    pub(crate) vectors: Vec<VectorField>,
    /// Changes whenever files of the one form are of no use for the other.
    pub(crate) fingerprint: u64,
}

/// Raised when the same definition is laid out differently.
const LAYOUT: u32 = 1;

impl Physical {
    pub(crate) fn new(definition: &IndexDefinition) -> Physical {
        let mut builder = Schema::builder();
        let key = builder.add_text_field("k", exact_text(true, false));
        let source = builder.add_text_field("j", STORED);
        let mut leaves = BTreeMap::new();
        let mut vectors = Vec::new();
        let mut shape = format!("{LAYOUT}");
        for (number, leaf) in definition.leaves().enumerate() {
            shape.push_str(&format!("{:?}", layout_of(definition, leaf)));
            let physical = add_leaf(&mut builder, number, leaf);
            if let (Some(field), Some(dimensions)) = (physical.vector, leaf.dimensions) {
                vectors.push(VectorField { field, dimensions });
            }
            leaves.insert(leaf.path.clone(), physical);
        }
        let fingerprint = xxh3_64(shape.as_bytes());
        Physical { schema: builder.build(), key, source, leaves, vectors, fingerprint }
    }

    pub(crate) fn leaf(&self, path: &str) -> Option<&PhysicalLeaf> {
        self.leaves.get(path)
    }
}

/// Everything of a field that decides what its files hold.
fn layout_of(definition: &IndexDefinition, leaf: &Leaf) -> String {
    let analyzer = leaf.searchable && leaf.kind == EdmType::String;
    let analyzer = analyzer.then(|| definition.index_analyzer(leaf));
    let normalizer = leaf.normalizer.as_deref().map(|it| definition.analysis.normalizer(it));
    let flags = (leaf.searchable, leaf.filterable, leaf.sortable, leaf.facetable, leaf.repeated);
    format!("{}{:?}{flags:?}{analyzer:?}{normalizer:?}{:?};", leaf.path, leaf.kind, leaf.dimensions)
}

fn add_leaf(
    builder: &mut tantivy::schema::SchemaBuilder,
    number: usize,
    leaf: &Leaf,
) -> PhysicalLeaf {
    let mut physical = PhysicalLeaf {
        leaf: leaf.clone(),
        number,
        terms: None,
        values: None,
        longitude: None,
        latitude: None,
        vector: None,
    };
    if leaf.is_vector() {
        let parameters = serde_json::Value::Null;
        let name = format!("w{number}");
        physical.vector = Some(builder.add_custom_field(&name, "vector", parameters));
        return physical;
    }
    if leaf.searchable && leaf.kind == EdmType::String {
        let name = format!("s{number}");
        let indexing = TextFieldIndexing::default()
            .set_tokenizer(&name)
            .set_index_option(IndexRecordOption::WithFreqsAndPositions);
        let options = TextOptions::default().set_indexing_options(indexing);
        physical.terms = Some(builder.add_text_field(&name, options));
    }
    if !(leaf.filterable || leaf.sortable || leaf.facetable) {
        return physical;
    }
    let name = physical.column();
    let numbers = NumericOptions::default().set_fast();
    physical.values = match leaf.kind {
        EdmType::String => Some(builder.add_text_field(&name, exact_text(leaf.filterable, true))),
        // Truth values are 0 and 1.
        EdmType::Int32 | EdmType::Int64 | EdmType::DateTimeOffset | EdmType::Boolean => {
            Some(builder.add_i64_field(&name, numbers))
        }
        EdmType::Double => Some(builder.add_f64_field(&name, numbers)),
        EdmType::GeographyPoint => {
            let (longitude, latitude) = physical.coordinates();
            physical.longitude = Some(builder.add_f64_field(&longitude, numbers.clone()));
            physical.latitude = Some(builder.add_f64_field(&latitude, numbers));
            None
        }
        _ => None,
    };
    physical
}

/// Strings whose whole value is the term.
fn exact_text(indexed: bool, fast: bool) -> TextOptions {
    let mut options = TextOptions::default();
    if indexed {
        let indexing = TextFieldIndexing::default()
            .set_tokenizer("raw")
            .set_fieldnorms(false)
            .set_index_option(IndexRecordOption::Basic);
        options = options.set_indexing_options(indexing);
    }
    if fast {
        options = options.set_fast("raw");
    }
    options
}
