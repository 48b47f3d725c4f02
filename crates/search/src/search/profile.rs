//! Scoring profiles at work: functions of a document's values that multiply its score.
//!
//! Every function has a share between 0 (its value is the worst or missing) and 1 (the best), and counts as
//! `1 + (boost − 1) · share`. The functions of a profile become one number by its aggregation, and the score of the text
//! is multiplied by it.

use super::request::SearchContext;
use crate::definition::{Aggregation, EdmType, FunctionKind, Interpolation, ScoringProfile};
use crate::error::{Result, SearchError};
use crate::filter::parse_geo_point;
use crate::index::Physical;
use crate::value::Point;
use std::collections::BTreeSet;
use tantivy::columnar::{Column, StrColumn};
use tantivy::index::SegmentReader;
use tantivy::{DocId, Score};

/// The functions of a profile with the parameters of a request.
#[derive(Clone, Debug)]
pub(crate) struct Functions {
    functions: Vec<Function>,
    aggregation: Aggregation,
}

#[derive(Clone, Debug)]
struct Function {
    field: String,
    boost: f64,
    interpolation: Interpolation,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    Freshness { now_ms: i64, duration_ms: i64 },
    Magnitude { start: f64, end: f64, beyond: bool },
    Distance { point: Point, kilometers: f64 },
    Tag { tags: BTreeSet<String> },
}

impl Functions {
    /// The functions of a profile, or none where it has none.
    pub(crate) fn new(
        context: &SearchContext<'_>,
        profile: &ScoringProfile,
        parameters: &[String],
    ) -> Result<Option<Functions>> {
        if profile.functions.is_empty() {
            return Ok(None);
        }
        let parameters = parse_parameters(parameters)?;
        let value = |name: &str| {
            parameters.iter().find(|(it, _)| it == name).map(|(_, value)| value).ok_or_else(|| {
                SearchError::invalid(format!(
                    "Expected 1 parameter(s) but 0 were supplied: the scoring parameter '{name}' is missing."
                ))
            })
        };
        let mut functions = Vec::new();
        for function in &profile.functions {
            let kind = match &function.kind {
                FunctionKind::Freshness(it) => {
                    Kind::Freshness { now_ms: context.now_ms, duration_ms: it.boosting_duration_ms }
                }
                FunctionKind::Magnitude(it) => {
                    Kind::Magnitude { start: it.start, end: it.end, beyond: it.constant_beyond }
                }
                FunctionKind::Distance(it) => Kind::Distance {
                    point: parse_point(value(&it.parameter)?)?,
                    kilometers: it.boosting_kilometers,
                },
                FunctionKind::Tag(it) => {
                    Kind::Tag { tags: value(&it.parameter)?.iter().cloned().collect() }
                }
            };
            functions.push(Function {
                field: function.field.clone(),
                boost: f64::from(function.boost),
                interpolation: function.interpolation,
                kind,
            });
        }
        Ok(Some(Functions { functions, aggregation: profile.aggregation }))
    }

    pub(super) fn open(
        &self,
        physical: &Physical,
        reader: &SegmentReader,
    ) -> Result<SegmentFunctions> {
        let mut functions = Vec::new();
        for function in &self.functions {
            functions.push((function.clone(), open_column(function, physical, reader)?));
        }
        Ok(SegmentFunctions { functions, aggregation: self.aggregation })
    }
}

fn open_column(
    function: &Function,
    physical: &Physical,
    reader: &SegmentReader,
) -> Result<ValueColumn> {
    let leaf = physical
        .leaf(&function.field)
        .ok_or_else(|| SearchError::lost(format!("'{}' has no values", function.field)))?;
    let fast = reader.fast_fields();
    let name = leaf.column();
    Ok(match (&function.kind, leaf.leaf.kind) {
        (Kind::Distance { .. }, _) => {
            let (x, y) = leaf.coordinates();
            ValueColumn::Point(fast.f64(&x)?, fast.f64(&y)?)
        }
        (Kind::Tag { tags }, _) => {
            let column = fast.str(&name)?;
            let ords = column.as_ref().map(|it| ords_of(it, tags)).transpose()?;
            ValueColumn::Tags(column, ords.unwrap_or_default())
        }
        (_, EdmType::Double) => ValueColumn::Double(fast.f64(&name)?),
        _ => ValueColumn::Whole(fast.i64(&name)?),
    })
}

fn ords_of(column: &StrColumn, tags: &BTreeSet<String>) -> Result<BTreeSet<u64>> {
    let mut ords = BTreeSet::new();
    for tag in tags {
        if let Some(ord) = column.dictionary().term_ord(tag.as_bytes())? {
            ords.insert(ord);
        }
    }
    Ok(ords)
}

/// The functions on the columns of one segment.
pub(super) struct SegmentFunctions {
    functions: Vec<(Function, ValueColumn)>,
    aggregation: Aggregation,
}

enum ValueColumn {
    Whole(Column<i64>),
    Double(Column<f64>),
    Point(Column<f64>, Column<f64>),
    Tags(Option<StrColumn>, BTreeSet<u64>),
}

impl SegmentFunctions {
    /// The score that functions make of the score of a text.
    pub(super) fn apply(&mut self, doc: DocId, score: Score) -> Score {
        let mut total: Option<f64> = None;
        for (function, column) in &self.functions {
            let share = interpolate(function, column.share(function, doc));
            let factor = 1.0 + (function.boost - 1.0) * share;
            total = Some(match (total, self.aggregation) {
                (None, _) => factor,
                (Some(total), Aggregation::Sum | Aggregation::Average) => total + factor,
                (Some(total), Aggregation::Minimum) => total.min(factor),
                (Some(total), Aggregation::Maximum) => total.max(factor),
                (Some(total), Aggregation::Product) => total * factor,
                (Some(1.0), Aggregation::FirstMatching) => factor,
                (Some(total), Aggregation::FirstMatching) => total,
            });
        }
        let mut total = total.unwrap_or(1.0);
        if self.aggregation == Aggregation::Average {
            total /= self.functions.len() as f64;
        }
        (f64::from(score) * total) as Score
    }
}

impl ValueColumn {
    /// How good a document's value is, from 0 to 1.
    fn share(&self, function: &Function, doc: DocId) -> f64 {
        let number = match self {
            ValueColumn::Whole(column) => column.first(doc).map(|it| it as f64),
            ValueColumn::Double(column) => column.first(doc),
            _ => None,
        };
        match (&function.kind, self) {
            (Kind::Freshness { now_ms, duration_ms }, _) => {
                let Some(number) = number else { return 0.0 };
                let age = (*now_ms as f64 - number) / *duration_ms as f64;
                if (0.0..=1.0).contains(&age) { 1.0 - age } else { 0.0 }
            }
            (Kind::Magnitude { start, end, beyond }, _) => {
                let Some(number) = number else { return 0.0 };
                let way = if start == end { 1.0 } else { (number - start) / (end - start) };
                match way {
                    way if (0.0..=1.0).contains(&way) => way,
                    way if way > 1.0 && *beyond => 1.0,
                    _ => 0.0,
                }
            }
            (Kind::Distance { point, kilometers }, ValueColumn::Point(x, y)) => {
                let found = x.first(doc).zip(y.first(doc));
                found.map_or(0.0, |(longitude, latitude)| {
                    let far = Point { longitude, latitude }.distance_km(*point);
                    (1.0 - far / kilometers).max(0.0)
                })
            }
            (Kind::Tag { .. }, ValueColumn::Tags(Some(column), ords)) => {
                let has = column.ords().values_for_doc(doc).any(|it| ords.contains(&it));
                f64::from(u8::from(has))
            }
            _ => 0.0,
        }
    }
}

fn interpolate(function: &Function, share: f64) -> f64 {
    match function.interpolation {
        Interpolation::Linear => share,
        Interpolation::Constant => f64::from(u8::from(share > 0.0)),
        // Both fall away from the best value: one slowly at first, the other quickly.
        Interpolation::Quadratic => 1.0 - (1.0 - share) * (1.0 - share),
        Interpolation::Logarithmic => (1.0 + share * (std::f64::consts::E - 1.0)).ln(),
    }
}

/// Parameters are `name-value,value`; values with a comma or an apostrophe stand in apostrophes.
fn parse_parameters(parameters: &[String]) -> Result<Vec<(String, Vec<String>)>> {
    let mut parsed = Vec::new();
    for parameter in parameters {
        let (name, rest) = parameter.split_once('-').ok_or_else(|| {
            SearchError::invalid(format!(
                "The scoring parameter '{parameter}' must be a name, a dash and values."
            ))
        })?;
        parsed.push((name.to_owned(), split_values(rest)));
    }
    Ok(parsed)
}

fn split_values(text: &str) -> Vec<String> {
    let mut values = vec![String::new()];
    let mut quoted = false;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\'' if quoted && chars.peek() == Some(&'\'') => {
                chars.next();
                push(&mut values, '\'');
            }
            '\'' => quoted = !quoted,
            ',' if !quoted => values.push(String::new()),
            c => push(&mut values, c),
        }
    }
    values
}

fn push(values: &mut [String], c: char) {
    if let Some(last) = values.last_mut() {
        last.push(c);
    }
}

/// A point as `longitude,latitude`, or as in filters.
fn parse_point(values: &[String]) -> Result<Point> {
    let number = |it: &String| it.trim().parse::<f64>().ok();
    let point = match values {
        [longitude, latitude] => number(longitude)
            .zip(number(latitude))
            .and_then(|(longitude, latitude)| Point::new(longitude, latitude)),
        [text] => parse_geo_point(text),
        _ => None,
    };
    point.ok_or_else(|| SearchError::invalid("a scoring parameter is not a point"))
}
