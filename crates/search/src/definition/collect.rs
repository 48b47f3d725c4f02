//! Flattens the tree of fields into paths, and finds the key.

use super::field::{EdmType, Field, Leaf};
use crate::error::{Result, SearchError};
use crate::limits;
use std::collections::BTreeMap;

/// All fields without subfields, by path.
pub(super) fn leaves(fields: &[Field]) -> Result<BTreeMap<String, Leaf>> {
    let mut all = Flattened { leaves: BTreeMap::new(), fields: 0, complex_collections: 0 };
    all.add(fields, "", false)?;
    Ok(all.leaves)
}

struct Flattened {
    leaves: BTreeMap<String, Leaf>,
    fields: usize,
    complex_collections: usize,
}

impl Flattened {
    fn add(&mut self, fields: &[Field], prefix: &str, repeated: bool) -> Result<()> {
        for field in fields {
            self.fields += 1;
            if self.fields > limits::FIELDS_MAX {
                let what = format!("index: has more than {} fields", limits::FIELDS_MAX);
                return Err(SearchError::invalid(what));
            }
            let path = format!("{prefix}{}", field.name);
            let repeated = repeated || field.collection;
            if field.kind == EdmType::Complex {
                self.complex_collections += usize::from(field.collection);
                if self.complex_collections > limits::COMPLEX_COLLECTIONS_MAX {
                    let max = limits::COMPLEX_COLLECTIONS_MAX;
                    let what = format!("index: has more than {max} complex collections");
                    return Err(SearchError::invalid(what));
                }
                self.add(&field.fields, &format!("{path}/"), repeated)?;
            } else {
                let leaf = leaf(field, path.clone(), repeated)?;
                self.leaves.insert(path, leaf);
            }
        }
        Ok(())
    }
}

fn leaf(field: &Field, path: String, repeated: bool) -> Result<Leaf> {
    if repeated && field.sortable && path.contains('/') {
        let what = format!("field '{path}': 'sortable' is not for fields inside of collections");
        return Err(SearchError::invalid(what));
    }
    Ok(Leaf {
        kind: field.kind,
        collection: field.collection,
        repeated,
        key: field.key,
        retrievable: field.retrievable,
        searchable: field.searchable,
        filterable: field.filterable,
        sortable: field.sortable,
        facetable: field.facetable,
        index_analyzer: field.index_analyzer.clone(),
        search_analyzer: field.search_analyzer.clone(),
        normalizer: field.normalizer.clone(),
        synonym_maps: field.synonym_maps.clone(),
        dimensions: field.dimensions,
        vector_profile: field.vector_profile.clone(),
        path,
    })
}

/// The name of the one key field, which stands at the top.
pub(super) fn key(fields: &[Field]) -> Result<String> {
    let mut keys = fields.iter().filter(|it| it.key);
    let (Some(key), None) = (keys.next(), keys.next()) else {
        return Err(SearchError::invalid("index: exactly one field at the top must be the key"));
    };
    if !key.retrievable {
        let what = format!("field '{}': the key must be retrievable", key.name);
        return Err(SearchError::invalid(what));
    }
    if fields.iter().any(|field| has_key(&field.fields)) {
        return Err(SearchError::invalid("index: a key must be a field at the top"));
    }
    Ok(key.name.clone())
}

fn has_key(fields: &[Field]) -> bool {
    fields.iter().any(|field| field.key || has_key(&field.fields))
}
