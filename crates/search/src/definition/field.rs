//! Fields: their types and attributes, and the rules for combining them.

use super::reader::Reader;
use crate::error::{Result, SearchError};
use crate::limits;

/// The type of a field or of the elements of a collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EdmType {
    String,
    Int16,
    Int32,
    Int64,
    Byte,
    SByte,
    Half,
    Single,
    Double,
    Boolean,
    DateTimeOffset,
    GeographyPoint,
    Complex,
}

/// Names of types on the wire.
const TYPES: [(&str, EdmType); 13] = [
    ("Edm.String", EdmType::String),
    ("Edm.Int16", EdmType::Int16),
    ("Edm.Int32", EdmType::Int32),
    ("Edm.Int64", EdmType::Int64),
    ("Edm.Byte", EdmType::Byte),
    ("Edm.SByte", EdmType::SByte),
    ("Edm.Half", EdmType::Half),
    ("Edm.Single", EdmType::Single),
    ("Edm.Double", EdmType::Double),
    ("Edm.Boolean", EdmType::Boolean),
    ("Edm.DateTimeOffset", EdmType::DateTimeOffset),
    ("Edm.GeographyPoint", EdmType::GeographyPoint),
    ("Edm.ComplexType", EdmType::Complex),
];

impl EdmType {
    /// The type's name on the wire.
    pub fn name(self) -> &'static str {
        TYPES.iter().find(|(_, kind)| *kind == self).map_or("", |(name, _)| name)
    }

    /// Whether the type may be an element of a vector.
    pub fn is_vector_element(self) -> bool {
        use EdmType::{Byte, Half, Int16, SByte, Single};
        matches!(self, Single | Half | Int16 | SByte | Byte)
    }

    /// Whether values are whole numbers of at most 64 bits.
    pub fn is_whole(self) -> bool {
        matches!(self, EdmType::Int32 | EdmType::Int64)
    }
}

/// A field as it was defined.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    pub name: String,
    pub kind: EdmType,
    pub collection: bool,
    pub key: bool,
    pub retrievable: bool,
    pub stored: bool,
    pub searchable: bool,
    pub filterable: bool,
    pub sortable: bool,
    pub facetable: bool,
    pub index_analyzer: Option<String>,
    pub search_analyzer: Option<String>,
    pub normalizer: Option<String>,
    pub synonym_maps: Vec<String>,
    pub dimensions: Option<usize>,
    pub vector_profile: Option<String>,
    /// The subfields of a complex field.
    pub fields: Vec<Field>,
}

/// A field without subfields, with its whole path.
#[derive(Clone, Debug, PartialEq)]
pub struct Leaf {
    /// Names joined by slashes.
    pub path: String,
    pub kind: EdmType,
    /// Whether the field itself is a collection.
    pub collection: bool,
    /// Whether a document can have several values: the field or one of its parents is a collection.
    pub repeated: bool,
    pub key: bool,
    pub retrievable: bool,
    pub searchable: bool,
    pub filterable: bool,
    pub sortable: bool,
    pub facetable: bool,
    pub index_analyzer: Option<String>,
    pub search_analyzer: Option<String>,
    pub normalizer: Option<String>,
    pub synonym_maps: Vec<String>,
    pub dimensions: Option<usize>,
    pub vector_profile: Option<String>,
}

impl Leaf {
    /// Whether the field holds vectors.
    pub fn is_vector(&self) -> bool {
        self.dimensions.is_some()
    }
}

/// Reads the `fields` of an index or of a complex field; `repeated` ones stand inside of a collection.
pub(super) fn parse_fields(
    reader: &Reader<'_>,
    depth: usize,
    repeated: bool,
) -> Result<Vec<Field>> {
    if depth > limits::FIELD_DEPTH_MAX {
        let what = format!("complex fields nest more than {} levels deep", limits::FIELD_DEPTH_MAX);
        return Err(SearchError::invalid(format!("{}: {what}", reader.place())));
    }
    let mut fields: Vec<Field> = Vec::new();
    for item in reader.objects("fields")? {
        let name = item.required_string("name")?;
        let field = parse_field(&item.named(format!("field '{name}'")), name, depth, repeated)?;
        if fields.iter().any(|it| it.name.eq_ignore_ascii_case(&field.name)) {
            return Err(reader.wrong("fields", &format!("has '{}' twice", field.name)));
        }
        fields.push(field);
    }
    if fields.is_empty() {
        return Err(reader.wrong("fields", "must have at least one field"));
    }
    Ok(fields)
}

fn parse_field(item: &Reader<'_>, name: String, depth: usize, repeated: bool) -> Result<Field> {
    check_name(item, &name)?;
    let wire = item.required_string("type")?;
    let (kind, collection) =
        parse_type(&wire).ok_or_else(|| item.wrong("type", &format!("'{wire}' is unknown")))?;
    if kind == EdmType::Complex {
        return parse_complex(item, name, collection, depth, repeated);
    }
    if item.array("fields")?.iter().next().is_some() {
        return Err(item.wrong("fields", "is only for fields of complex type"));
    }
    let vector = kind.is_vector_element();
    if vector && !collection {
        return Err(item.wrong("type", &format!("'{wire}' is only for elements of vectors")));
    }
    let text = kind == EdmType::String;
    let geo = kind == EdmType::GeographyPoint;
    let simple = !vector && !collection && !repeated;
    let analyzer = item.string("analyzer")?;
    let field = Field {
        key: item.boolean("key")?.unwrap_or(false),
        retrievable: item.boolean("retrievable")?.unwrap_or(true),
        stored: item.boolean("stored")?.unwrap_or(true),
        searchable: item.boolean("searchable")?.unwrap_or(text || vector),
        filterable: item.boolean("filterable")?.unwrap_or(!vector),
        sortable: item.boolean("sortable")?.unwrap_or(simple),
        facetable: item.boolean("facetable")?.unwrap_or(!vector && !geo),
        index_analyzer: item.string("indexAnalyzer")?.or_else(|| analyzer.clone()),
        search_analyzer: item.string("searchAnalyzer")?.or(analyzer),
        normalizer: item.string("normalizer")?,
        synonym_maps: item.strings("synonymMaps")?,
        dimensions: item.whole("dimensions", 1, limits::DIMENSIONS_MAX as u64)?,
        vector_profile: item.string("vectorSearchProfile")?,
        fields: Vec::new(),
        name,
        kind,
        collection,
    };
    check_attributes(item, &field)?;
    Ok(field)
}

fn parse_complex(
    item: &Reader<'_>,
    name: String,
    collection: bool,
    depth: usize,
    repeated: bool,
) -> Result<Field> {
    for attribute in ["key", "searchable", "filterable", "sortable", "facetable"] {
        if item.boolean(attribute)? == Some(true) {
            return Err(item.wrong(attribute, "is not for fields of complex type"));
        }
    }
    Ok(Field {
        name,
        kind: EdmType::Complex,
        collection,
        key: false,
        retrievable: item.boolean("retrievable")?.unwrap_or(true),
        stored: true,
        searchable: false,
        filterable: false,
        sortable: false,
        facetable: false,
        index_analyzer: None,
        search_analyzer: None,
        normalizer: None,
        synonym_maps: Vec::new(),
        dimensions: None,
        vector_profile: None,
        fields: parse_fields(item, depth + 1, repeated || collection)?,
    })
}

fn parse_type(wire: &str) -> Option<(EdmType, bool)> {
    let (inner, collection) = match wire.strip_prefix("Collection(") {
        Some(rest) => (rest.strip_suffix(')')?, true),
        None => (wire, false),
    };
    TYPES.iter().find(|(name, _)| *name == inner).map(|(_, kind)| (*kind, collection))
}

fn check_name(item: &Reader<'_>, name: &str) -> Result<()> {
    let good = name.chars().count() <= limits::NAME_CHARS_MAX
        && name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !name.to_ascii_lowercase().starts_with("azuresearch");
    if good {
        return Ok(());
    }
    Err(item.wrong(
        "name",
        "must begin with a letter, have only letters, digits and underscores, be no longer than 128 characters, and \
         not begin with 'azureSearch'",
    ))
}

fn check_attributes(item: &Reader<'_>, field: &Field) -> Result<()> {
    let text = field.kind == EdmType::String;
    let vector = field.dimensions.is_some() || field.vector_profile.is_some();
    if vector != field.kind.is_vector_element() {
        let what = "and 'vectorSearchProfile' belong to vector fields, which need them both";
        return Err(item.wrong("dimensions", what));
    }
    if vector && (field.dimensions.is_none() || field.vector_profile.is_none()) {
        return Err(item.wrong("dimensions", "and 'vectorSearchProfile' are both required"));
    }
    if vector && (field.filterable || field.sortable || field.facetable) {
        return Err(item.wrong("filterable", "sortable and facetable must be false for vectors"));
    }
    if field.key && (!text || field.collection) {
        return Err(item.wrong("key", "must be a field of type Edm.String"));
    }
    if field.searchable && !text && !vector {
        return Err(item.wrong("searchable", "is only for fields of strings and vectors"));
    }
    if field.collection && field.sortable {
        return Err(item.wrong("sortable", "is not for collections"));
    }
    if field.facetable && field.kind == EdmType::GeographyPoint {
        return Err(item.wrong("facetable", "is not for Edm.GeographyPoint"));
    }
    let analyzed = field.index_analyzer.is_some() || field.search_analyzer.is_some();
    if analyzed && !(text && field.searchable) {
        return Err(item.wrong("analyzer", "is only for searchable fields of strings"));
    }
    if field.index_analyzer.is_some() != field.search_analyzer.is_some() {
        return Err(item.wrong("indexAnalyzer", "and 'searchAnalyzer' must be set together"));
    }
    let by_value = field.filterable || field.sortable || field.facetable;
    if field.normalizer.is_some() && !(text && by_value) {
        let what = "is only for strings that are filterable, sortable or facetable";
        return Err(item.wrong("normalizer", what));
    }
    if field.synonym_maps.len() > 1 {
        return Err(item.wrong("synonymMaps", "may name one synonym map"));
    }
    let searched = text && field.searchable;
    if !field.synonym_maps.is_empty() && !searched {
        return Err(item.wrong("synonymMaps", "is only for searchable fields of strings"));
    }
    Ok(())
}
