//! Scoring profiles: weights of fields, and functions of a document's values that change its score.

use super::field::EdmType;
use super::reader::Reader;
use super::{IndexDefinition, Leaf};
use crate::error::{Result, SearchError};
use crate::limits;
use crate::value::parse_duration_ms;

/// A named way of scoring.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ScoringProfile {
    pub name: String,
    /// Weights of searchable fields, by path.
    pub weights: Vec<(String, f32)>,
    pub functions: Vec<ScoringFunction>,
    pub aggregation: Aggregation,
}

/// A function of one field's value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ScoringFunction {
    pub field: String,
    pub boost: f32,
    pub interpolation: Interpolation,
    pub kind: FunctionKind,
}

/// How the share of a boost falls from the best value to the worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interpolation {
    Constant,
    Linear,
    Quadratic,
    Logarithmic,
}

/// How the functions of a profile become one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Aggregation {
    Sum,
    Average,
    Minimum,
    Maximum,
    FirstMatching,
    Product,
}

/// The kinds of functions with their parameters.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum FunctionKind {
    Freshness(Freshness),
    Magnitude(Magnitude),
    Distance(Distance),
    Tag(Tag),
}

/// How near a date is to now; a negative duration looks into the future.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Freshness {
    pub boosting_duration_ms: i64,
}

/// Where a number lies in a range.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Magnitude {
    pub start: f64,
    pub end: f64,
    pub constant_beyond: bool,
}

/// How near a point is to a point that the request names.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Distance {
    pub parameter: String,
    pub boosting_kilometers: f64,
}

/// Whether a document has one of the tags that the request names.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tag {
    pub parameter: String,
}

/// Reads the scoring profiles of an index whose fields are known.
pub(super) fn parse(
    reader: &Reader<'_>,
    definition: &IndexDefinition,
) -> Result<Vec<ScoringProfile>> {
    let mut profiles: Vec<ScoringProfile> = Vec::new();
    for item in reader.objects("scoringProfiles")? {
        let profile = parse_profile(&item, definition)?;
        if profiles.iter().any(|it| it.name == profile.name) {
            return Err(item.wrong("name", "is used twice"));
        }
        profiles.push(profile);
    }
    if profiles.len() > limits::SCORING_PROFILES_MAX {
        let max = limits::SCORING_PROFILES_MAX;
        return Err(SearchError::invalid(format!("index: has more than {max} scoring profiles")));
    }
    Ok(profiles)
}

fn parse_profile(item: &Reader<'_>, definition: &IndexDefinition) -> Result<ScoringProfile> {
    let mut weights = Vec::new();
    if let Some(text) = item.object_of("text")?
        && let Some(entries) = text.object_of("weights")?
    {
        for (path, weight) in entries.entries() {
            let searchable = definition.leaf(path).is_some_and(|it| it.searchable);
            if !searchable {
                return Err(entries.wrong(path, "is not a searchable field"));
            }
            match weight.as_f64() {
                Some(weight) if weight > 0.0 => weights.push((path.clone(), weight as f32)),
                _ => return Err(entries.wrong(path, "must be a number greater than 0")),
            }
        }
    }
    let mut functions = Vec::new();
    for entry in item.objects("functions")? {
        functions.push(parse_function(&entry, definition)?);
    }
    if functions.len() > limits::SCORING_FUNCTIONS_MAX {
        let max = limits::SCORING_FUNCTIONS_MAX;
        return Err(item.wrong("functions", &format!("has more than {max} functions")));
    }
    let aggregation = match item.string("functionAggregation")?.as_deref() {
        None | Some("sum") => Aggregation::Sum,
        Some("average") => Aggregation::Average,
        Some("minimum") => Aggregation::Minimum,
        Some("maximum") => Aggregation::Maximum,
        Some("firstMatching") => Aggregation::FirstMatching,
        Some("product") => Aggregation::Product,
        Some(other) => {
            return Err(item.wrong("functionAggregation", &format!("'{other}' is unknown")));
        }
    };
    Ok(ScoringProfile { name: item.required_string("name")?, weights, functions, aggregation })
}

fn parse_function(entry: &Reader<'_>, definition: &IndexDefinition) -> Result<ScoringFunction> {
    let field = entry.required_string("fieldName")?;
    let leaf = definition
        .leaf(&field)
        .filter(|it| it.filterable)
        .ok_or_else(|| entry.wrong("fieldName", "is not a filterable field"))?;
    let boost = entry.number("boost")?.ok_or_else(|| entry.wrong("boost", "is required"))? as f32;
    if !boost.is_finite() || boost == 1.0 || boost == 0.0 {
        return Err(entry.wrong("boost", "must be a number other than 0 and 1"));
    }
    let interpolation = match entry.string("interpolation")?.as_deref() {
        None | Some("linear") => Interpolation::Linear,
        Some("constant") => Interpolation::Constant,
        Some("quadratic") => Interpolation::Quadratic,
        Some("logarithmic") => Interpolation::Logarithmic,
        Some(other) => return Err(entry.wrong("interpolation", &format!("'{other}' is unknown"))),
    };
    let kind = parse_kind(entry, leaf)?;
    let steps = matches!(interpolation, Interpolation::Quadratic | Interpolation::Logarithmic);
    if steps && matches!(kind, FunctionKind::Tag(_)) {
        return Err(entry.wrong("interpolation", "must be constant or linear for tags"));
    }
    Ok(ScoringFunction { field, boost, interpolation, kind })
}

fn parse_kind(entry: &Reader<'_>, leaf: &Leaf) -> Result<FunctionKind> {
    let kind = entry.required_string("type")?;
    let parameters =
        |name: &str| entry.object_of(name)?.ok_or_else(|| entry.wrong(name, "is required"));
    let expect = |good: bool, what: &str| {
        if good && !leaf.repeated { Ok(()) } else { Err(entry.wrong("fieldName", what)) }
    };
    match kind.as_str() {
        "freshness" => {
            expect(leaf.kind == EdmType::DateTimeOffset, "must be a field of dates")?;
            let parameters = parameters("freshness")?;
            let text = parameters.required_string("boostingDuration")?;
            let duration = parse_duration_ms(&text).filter(|it| *it != 0).ok_or_else(|| {
                parameters.wrong("boostingDuration", "must be a duration such as 'P365D'")
            })?;
            Ok(FunctionKind::Freshness(Freshness { boosting_duration_ms: duration }))
        }
        "magnitude" => {
            let number = leaf.kind.is_whole() || leaf.kind == EdmType::Double;
            expect(number, "must be a field of numbers")?;
            let parameters = parameters("magnitude")?;
            let bound = |name: &str| {
                parameters.number(name)?.ok_or_else(|| parameters.wrong(name, "is required"))
            };
            let start = bound("boostingRangeStart")?;
            let end = bound("boostingRangeEnd")?;
            let beyond = parameters.boolean("constantBoostBeyondRange")?.unwrap_or(false);
            Ok(FunctionKind::Magnitude(Magnitude { start, end, constant_beyond: beyond }))
        }
        "distance" => {
            expect(leaf.kind == EdmType::GeographyPoint, "must be an Edm.GeographyPoint")?;
            let parameters = parameters("distance")?;
            let boosting_kilometers = parameters
                .number("boostingDistance")?
                .filter(|it| *it > 0.0)
                .ok_or_else(|| parameters.wrong("boostingDistance", "must be greater than 0"))?;
            let parameter = parameters.required_string("referencePointParameter")?;
            Ok(FunctionKind::Distance(Distance { parameter, boosting_kilometers }))
        }
        "tag" => {
            if leaf.kind != EdmType::String {
                return Err(entry.wrong("fieldName", "must be a field of strings"));
            }
            let parameter = parameters("tag")?.required_string("tagsParameter")?;
            Ok(FunctionKind::Tag(Tag { parameter }))
        }
        other => Err(entry.wrong("type", &format!("'{other}' is unknown"))),
    }
}
