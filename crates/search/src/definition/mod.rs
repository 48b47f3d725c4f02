//! The definition of an index, typed, read from the JSON that clients send. Properties that this engine does not know
//! are not looked at here: the front keeps the client's JSON and gives it back.

mod check;
mod collect;
mod field;
mod profile;
mod reader;
mod vector;

pub use field::{EdmType, Field, Leaf};
pub(crate) use profile::{Aggregation, FunctionKind, Interpolation, ScoringProfile};
pub(crate) use reader::Reader;
pub(crate) use vector::{Metric, VectorSearch};

use crate::analysis::{Analysis, Analyzer};
use crate::error::{Result, SearchError};
use crate::limits;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// An index as its owner has defined it.
#[derive(Clone, Debug)]
pub struct IndexDefinition {
    pub name: String,
    pub fields: Vec<Field>,
    pub suggesters: Vec<Suggester>,
    pub(crate) scoring_profiles: Vec<ScoringProfile>,
    pub default_scoring_profile: Option<String>,
    pub similarity: Similarity,
    pub(crate) vector_search: VectorSearch,
    /// Analyzers and normalizers by name: the predefined ones and those of this index.
    pub(crate) analysis: Arc<Analysis>,
    leaves: BTreeMap<String, Leaf>,
    key: String,
}

/// Fields whose beginnings are suggested.
#[derive(Clone, Debug, PartialEq)]
pub struct Suggester {
    pub name: String,
    pub source_fields: Vec<String>,
}

/// The parameters of BM25.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Similarity {
    pub k1: f32,
    pub b: f32,
}

impl Default for Similarity {
    fn default() -> Similarity {
        Similarity { k1: 1.2, b: 0.75 }
    }
}

impl IndexDefinition {
    /// Reads a definition. The error names the part of the definition that is wrong.
    pub fn parse(value: &Value) -> Result<IndexDefinition> {
        let reader = Reader::object(value, "index")?;
        let name = reader.required_string("name")?;
        check_index_name(&name)?;
        let analysis = Arc::new(Analysis::parse(&reader)?);
        let fields = field::parse_fields(&reader, 1, false)?;
        let leaves = collect::leaves(&fields)?;
        let key = collect::key(&fields)?;
        let vector_search = VectorSearch::parse(&reader)?;
        let mut definition = IndexDefinition {
            name,
            suggesters: Vec::new(),
            scoring_profiles: Vec::new(),
            default_scoring_profile: reader.string("defaultScoringProfile")?,
            similarity: parse_similarity(&reader)?,
            vector_search,
            analysis,
            leaves,
            key,
            fields,
        };
        definition.check_fields()?;
        definition.suggesters = definition.parse_suggesters(&reader)?;
        definition.scoring_profiles = profile::parse(&reader, &definition)?;
        if let Some(name) = &definition.default_scoring_profile
            && definition.scoring_profile(name).is_none()
        {
            return Err(SearchError::invalid(format!(
                "index: defaultScoringProfile '{name}' is not among the scoring profiles"
            )));
        }
        Ok(definition)
    }

    /// The name of the key field.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The field without subfields at a path such as `Address/City`.
    pub fn leaf(&self, path: &str) -> Option<&Leaf> {
        self.leaves.get(path)
    }

    /// All fields without subfields, by path.
    pub fn leaves(&self) -> impl Iterator<Item = &Leaf> {
        self.leaves.values()
    }

    /// The field at a path, with or without subfields.
    pub fn field(&self, path: &str) -> Option<&Field> {
        let mut fields = &self.fields;
        let mut found = None;
        for part in path.split('/') {
            let field = fields.iter().find(|it| it.name == part)?;
            fields = &field.fields;
            found = Some(field);
        }
        found
    }

    /// The paths of all searchable fields.
    pub fn searchable(&self) -> impl Iterator<Item = &Leaf> {
        self.leaves.values().filter(|leaf| leaf.searchable && !leaf.is_vector())
    }

    /// The scoring profile of a name.
    pub(crate) fn scoring_profile(&self, name: &str) -> Option<&ScoringProfile> {
        self.scoring_profiles.iter().find(|it| it.name == name)
    }

    /// The suggester of a name.
    pub fn suggester(&self, name: &str) -> Option<&Suggester> {
        self.suggesters.iter().find(|it| it.name == name)
    }

    /// The analyzer that indexes a searchable field.
    pub fn index_analyzer(&self, leaf: &Leaf) -> Arc<Analyzer> {
        let name = leaf.index_analyzer.as_deref().unwrap_or(crate::analysis::STANDARD);
        self.analysis.analyzer(name).expect("analyzers of fields are checked when they are parsed")
    }

    /// The analyzer of search texts on a field.
    pub fn search_analyzer(&self, leaf: &Leaf) -> Arc<Analyzer> {
        let name = leaf.search_analyzer.as_deref().unwrap_or(crate::analysis::STANDARD);
        self.analysis.analyzer(name).expect("analyzers of fields are checked when they are parsed")
    }

    fn check_fields(&self) -> Result<()> {
        for leaf in self.leaves.values() {
            for analyzer in [&leaf.index_analyzer, &leaf.search_analyzer].into_iter().flatten() {
                self.analysis
                    .analyzer(analyzer)
                    .map_err(|error| error.within(&format!("field '{}'", leaf.path)))?;
            }
            if let Some(normalizer) = &leaf.normalizer {
                self.analysis
                    .normalizer(normalizer)
                    .map_err(|error| error.within(&format!("field '{}'", leaf.path)))?;
            }
            if let Some(profile) = &leaf.vector_profile
                && self.vector_search.profile(profile).is_none()
            {
                return Err(SearchError::invalid(format!(
                    "field '{}': vectorSearchProfile '{profile}' is not defined",
                    leaf.path
                )));
            }
        }
        Ok(())
    }

    fn parse_suggesters(&self, reader: &Reader<'_>) -> Result<Vec<Suggester>> {
        let mut suggesters = Vec::new();
        for item in reader.objects("suggesters")? {
            let name = item.required_string("name")?;
            if let Some(mode) = item.string("searchMode")?
                && mode != "analyzingInfixMatching"
            {
                return Err(item.wrong("searchMode", "must be 'analyzingInfixMatching'"));
            }
            let source_fields = item.strings("sourceFields")?;
            for path in &source_fields {
                self.check_suggester_field(&item, path)?;
            }
            if source_fields.is_empty() {
                return Err(item.wrong("sourceFields", "must name at least one field"));
            }
            suggesters.push(Suggester { name, source_fields });
        }
        if suggesters.len() > 1 {
            return Err(SearchError::invalid("index: only one suggester is allowed"));
        }
        Ok(suggesters)
    }

    fn check_suggester_field(&self, item: &Reader<'_>, path: &str) -> Result<()> {
        let Some(leaf) = self.leaf(path) else {
            return Err(item.wrong("sourceFields", &format!("'{path}' is not a field")));
        };
        if leaf.kind != EdmType::String || !leaf.searchable {
            let what = format!("'{path}' is not a searchable field of strings");
            return Err(item.wrong("sourceFields", &what));
        }
        Ok(())
    }
}

fn check_index_name(name: &str) -> Result<()> {
    let good = name.len() <= limits::NAME_CHARS_MAX
        && name
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_')
        && name.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
        && !name.ends_with('-')
        && !name.contains("--");
    if good && !name.is_empty() {
        return Ok(());
    }
    Err(SearchError::invalid(format!(
        "index: the name '{name}' must be lowercase letters, digits, dashes or underscores, begin with a letter or \
         digit, end without a dash, have no two dashes in a row, and have at most {} characters",
        limits::NAME_CHARS_MAX
    )))
}

fn parse_similarity(reader: &Reader<'_>) -> Result<Similarity> {
    let Some(item) = reader.object_of("similarity")? else {
        return Ok(Similarity::default());
    };
    let kind = item.required_string("@odata.type")?;
    if kind != "#Microsoft.Azure.Search.BM25Similarity" {
        return Err(item.wrong("@odata.type", "only BM25Similarity is supported"));
    }
    let default = Similarity::default();
    let k1 = item.number("k1")?.map_or(default.k1, |it| it as f32);
    let b = item.number("b")?.map_or(default.b, |it| it as f32);
    if !k1.is_finite() || k1 < 0.0 {
        return Err(item.wrong("k1", "must be a number of at least 0"));
    }
    if !(0.0..=1.0).contains(&b) {
        return Err(item.wrong("b", "must be between 0 and 1"));
    }
    let similarity = Similarity { k1, b };
    if similarity != default {
        return Err(item
            .wrong("k1", "and 'b' other than 1.2 and 0.75 are not supported: k1 and b are fixed"));
    }
    Ok(similarity)
}
