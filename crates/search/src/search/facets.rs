//! Facets: how many of the documents that match have which values.

use crate::definition::{EdmType, IndexDefinition};
use crate::error::{Result, SearchError};
use crate::index::Physical;
use crate::limits;
use crate::value::{civil_from_days, days_from_civil, format_date_ms, parse_date_ms};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, HashMap};
use tantivy::DocId;
use tantivy::columnar::{Column, StrColumn};
use tantivy::index::SegmentReader;

/// One facet of a request.
#[derive(Clone, Debug)]
pub(crate) struct FacetPlan {
    pub(crate) path: String,
    kind: EdmType,
    buckets: Buckets,
    count: usize,
    sort: Sort,
}

/// How values are put together.
#[derive(Clone, Debug, PartialEq)]
enum Buckets {
    Values,
    /// Stretches of one width.
    Interval(f64),
    /// Stretches of the calendar, in a time zone.
    Calendar {
        unit: Unit,
        offset_ms: i64,
    },
    /// Bounds between ranges.
    Ranges(Vec<f64>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Quarter,
    Year,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sort {
    CountDescending,
    CountAscending,
    ValueAscending,
    ValueDescending,
}

/// A value of a bucket, in the order of values.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum BucketKey {
    Whole(i64),
    /// A double as a number with the same order.
    Double(u64),
    Text(String),
}

/// Counts of one facet.
pub(crate) type FacetCounts = BTreeMap<BucketKey, u64>;

impl FacetPlan {
    /// Reads a facet: a field, then parameters, separated by commas.
    pub(crate) fn parse(definition: &IndexDefinition, text: &str) -> Result<FacetPlan> {
        let mut parts = text.split(',').map(str::trim);
        let path = parts.next().unwrap_or_default().to_owned();
        let wrong = |what: String| SearchError::invalid(format!("Facet '{text}': {what}"));
        let leaf = definition.leaf(&path).filter(|it| it.facetable).ok_or_else(|| {
            wrong(format!(
                "the field '{path}' is not a facetable field of the index, so it cannot be faceted by."
            ))
        })?;
        let mut plan = FacetPlan {
            path,
            kind: leaf.kind,
            buckets: Buckets::Values,
            count: 10,
            sort: Sort::CountDescending,
        };
        let mut sorted = false;
        let mut offset = 0;
        for part in parts {
            let (name, value) =
                part.split_once(':').ok_or_else(|| wrong(format!("'{part}' is no parameter.")))?;
            match name {
                "count" => {
                    let count = value.parse().ok().filter(|it| *it <= limits::FACET_COUNT_MAX);
                    plan.count = count.ok_or_else(|| {
                        wrong(format!("count must be a number up to {}.", limits::FACET_COUNT_MAX))
                    })?;
                }
                "sort" => {
                    sorted = true;
                    plan.sort = parse_sort(value)
                        .ok_or_else(|| wrong(format!("sort '{value}' is unknown.")))?;
                }
                "interval" => plan.buckets = plan.parse_interval(value)?,
                "values" => plan.buckets = plan.parse_ranges(value)?,
                "timeoffset" => {
                    offset = parse_offset(value)
                        .ok_or_else(|| wrong("timeoffset must be [+-]hh:mm.".to_owned()))?;
                }
                _ => return Err(wrong(format!("the parameter '{name}' is unknown."))),
            }
        }
        if let Buckets::Calendar { offset_ms, .. } = &mut plan.buckets {
            *offset_ms = offset;
        }
        if plan.buckets != Buckets::Values {
            if sorted {
                return Err(wrong("sort cannot be combined with interval or values.".to_owned()));
            }
            plan.sort = Sort::ValueAscending;
            plan.count = limits::FACET_COUNT_MAX;
        }
        Ok(plan)
    }

    fn parse_interval(&self, value: &str) -> Result<Buckets> {
        let wrong = || SearchError::invalid(format!("Facet interval '{value}' is wrong."));
        if self.kind == EdmType::DateTimeOffset {
            let unit = match value {
                "minute" => Unit::Minute,
                "hour" => Unit::Hour,
                "day" => Unit::Day,
                "week" => Unit::Week,
                "month" => Unit::Month,
                "quarter" => Unit::Quarter,
                "year" => Unit::Year,
                _ => return Err(wrong()),
            };
            return Ok(Buckets::Calendar { unit, offset_ms: 0 });
        }
        let number = self.kind.is_whole() || self.kind == EdmType::Double;
        let width = value.parse::<f64>().ok().filter(|it| *it > 0.0 && it.is_finite() && number);
        width.map(Buckets::Interval).ok_or_else(wrong)
    }

    fn parse_ranges(&self, value: &str) -> Result<Buckets> {
        let wrong = || SearchError::invalid(format!("Facet values '{value}' are wrong."));
        let mut bounds = Vec::new();
        for part in value.split('|') {
            let bound = match self.kind {
                EdmType::DateTimeOffset => parse_date_ms(part).map(|it| it as f64),
                EdmType::Int32 | EdmType::Int64 | EdmType::Double => part.parse::<f64>().ok(),
                _ => None,
            };
            bounds.push(bound.filter(|it| it.is_finite()).ok_or_else(wrong)?);
        }
        if !bounds.is_sorted_by(|a, b| a < b) {
            return Err(SearchError::invalid("Facet values must be in ascending order."));
        }
        Ok(Buckets::Ranges(bounds))
    }

    /// The counts before any document.
    pub(crate) fn counts(&self) -> FacetCounts {
        match &self.buckets {
            Buckets::Ranges(bounds) => {
                (0..=bounds.len()).map(|it| (BucketKey::Whole(it as i64), 0)).collect()
            }
            _ => FacetCounts::new(),
        }
    }

    pub(super) fn open(&self, physical: &Physical, reader: &SegmentReader) -> Result<SegmentFacet> {
        let leaf = physical
            .leaf(&self.path)
            .ok_or_else(|| SearchError::lost(format!("'{}' has no values", self.path)))?;
        let fast = reader.fast_fields();
        let name = leaf.column();
        let column = match leaf.leaf.kind {
            EdmType::String => {
                let column = fast.str(&name)?;
                let terms = column.as_ref().map_or(0, |it| it.num_terms());
                Values::Text(column, vec![0; terms])
            }
            EdmType::Double => Values::Double(fast.f64(&name)?),
            _ => Values::Whole(fast.i64(&name)?),
        };
        Ok(SegmentFacet {
            buckets: self.buckets.clone(),
            column,
            counts: HashMap::new(),
            seen: Vec::new(),
        })
    }

    /// The facet as clients get it.
    pub(crate) fn answer(&self, counts: FacetCounts) -> Value {
        let mut entries: Vec<(BucketKey, u64)> = counts.into_iter().collect();
        match self.sort {
            Sort::ValueAscending => {}
            Sort::ValueDescending => entries.reverse(),
            // Sorting is stable: buckets of one count stay in the order of values.
            Sort::CountDescending => entries.sort_by_key(|(_, count)| std::cmp::Reverse(*count)),
            Sort::CountAscending => entries.sort_by_key(|(_, count)| *count),
        }
        entries.truncate(self.count);
        Value::Array(entries.into_iter().map(|(key, count)| self.bucket(&key, count)).collect())
    }

    fn bucket(&self, key: &BucketKey, count: u64) -> Value {
        let mut bucket = Map::new();
        bucket.insert("count".to_owned(), json!(count));
        if let (Buckets::Ranges(bounds), BucketKey::Whole(number)) = (&self.buckets, key) {
            let number = usize::try_from(*number).unwrap_or(0);
            if let Some(from) = number.checked_sub(1).and_then(|it| bounds.get(it)) {
                bucket.insert("from".to_owned(), self.bound(*from));
            }
            if let Some(to) = bounds.get(number) {
                bucket.insert("to".to_owned(), self.bound(*to));
            }
            return Value::Object(bucket);
        }
        let value = match key {
            BucketKey::Text(text) => json!(text),
            BucketKey::Double(bits) => json!(double_of(*bits)),
            BucketKey::Whole(number) => match self.kind {
                EdmType::Boolean => json!(*number != 0),
                EdmType::DateTimeOffset => json!(format_date_ms(*number)),
                _ => json!(number),
            },
        };
        bucket.insert("value".to_owned(), value);
        Value::Object(bucket)
    }

    fn bound(&self, bound: f64) -> Value {
        match self.kind {
            EdmType::DateTimeOffset => json!(format_date_ms(bound as i64)),
            EdmType::Int32 | EdmType::Int64 if bound.fract() == 0.0 => json!(bound as i64),
            _ => json!(bound),
        }
    }
}

fn parse_sort(value: &str) -> Option<Sort> {
    Some(match value {
        "count" => Sort::CountDescending,
        "-count" => Sort::CountAscending,
        "value" => Sort::ValueAscending,
        "-value" => Sort::ValueDescending,
        _ => return None,
    })
}

fn parse_offset(value: &str) -> Option<i64> {
    let (sign, rest) = match value.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, value.strip_prefix('+').unwrap_or(value)),
    };
    let (hours, minutes) = rest.split_once(':').unwrap_or((rest, "0"));
    let hours: i64 = hours.parse().ok().filter(|it| (0..=14).contains(it))?;
    let minutes: i64 = minutes.parse().ok().filter(|it| (0..60).contains(it))?;
    Some(sign * (hours * 60 + minutes) * 60_000)
}

/// Counts of one segment.
pub(super) struct SegmentFacet {
    buckets: Buckets,
    column: Values,
    counts: HashMap<BucketKey, u64>,
    /// Buckets of the current document: each counts once.
    seen: Vec<BucketKey>,
}

enum Values {
    Text(Option<StrColumn>, Vec<u64>),
    Whole(Column<i64>),
    Double(Column<f64>),
}

impl SegmentFacet {
    pub(super) fn add(&mut self, doc: DocId) {
        let SegmentFacet { buckets, column, counts, seen } = self;
        seen.clear();
        let mut add = |key: BucketKey| {
            if !seen.contains(&key) && counts.len() <= limits::FACET_BUCKETS_MAX {
                *counts.entry(key.clone()).or_insert(0) += 1;
                seen.push(key);
            }
        };
        match column {
            Values::Text(Some(column), ords) => count_ords(column.ords(), ords, doc),
            Values::Text(None, _) => {}
            Values::Whole(column) => {
                column.values_for_doc(doc).for_each(|it| add(whole_bucket(buckets, it)));
            }
            Values::Double(column) => {
                column.values_for_doc(doc).for_each(|it| add(double_bucket(buckets, it)));
            }
        }
    }

    pub(super) fn finish(self, target: &mut FacetCounts) -> Result<()> {
        if let Values::Text(Some(column), ords) = &self.column {
            for (ord, count) in ords.iter().enumerate().filter(|(_, count)| **count > 0) {
                let mut text = String::new();
                column.ord_to_str(ord as u64, &mut text)?;
                *target.entry(BucketKey::Text(text)).or_insert(0) += count;
            }
        }
        for (key, count) in self.counts {
            *target.entry(key).or_insert(0) += count;
        }
        if target.len() > limits::FACET_BUCKETS_MAX {
            return Err(SearchError::invalid("A facet has too many different values."));
        }
        Ok(())
    }
}

/// Counts the values of a document, each once.
fn count_ords(column: &Column<u64>, ords: &mut [u64], doc: DocId) {
    let mut values = column.values_for_doc(doc);
    let Some(first) = values.next() else { return };
    if let Some(count) = ords.get_mut(first as usize) {
        *count += 1;
    }
    let mut seen = vec![first];
    for ord in values {
        if !seen.contains(&ord) {
            seen.push(ord);
            if let Some(count) = ords.get_mut(ord as usize) {
                *count += 1;
            }
        }
    }
}

fn whole_bucket(buckets: &Buckets, number: i64) -> BucketKey {
    match buckets {
        Buckets::Values => BucketKey::Whole(number),
        Buckets::Interval(width) => {
            if width.fract() == 0.0 && *width < 9e15 {
                let width = *width as i64;
                return BucketKey::Whole(number.div_euclid(width).saturating_mul(width));
            }
            BucketKey::Double(bits_of((number as f64 / width).floor() * width))
        }
        Buckets::Calendar { unit, offset_ms } => {
            BucketKey::Whole(calendar_start(*unit, number.saturating_add(*offset_ms)) - offset_ms)
        }
        Buckets::Ranges(bounds) => range_of(bounds, number as f64),
    }
}

fn double_bucket(buckets: &Buckets, number: f64) -> BucketKey {
    match buckets {
        Buckets::Interval(width) => BucketKey::Double(bits_of((number / width).floor() * width)),
        Buckets::Ranges(bounds) => range_of(bounds, number),
        _ => BucketKey::Double(bits_of(number)),
    }
}

fn range_of(bounds: &[f64], number: f64) -> BucketKey {
    BucketKey::Whole(bounds.partition_point(|it| *it <= number) as i64)
}

/// The beginning of the stretch of the calendar that a time lies in.
fn calendar_start(unit: Unit, ms: i64) -> i64 {
    const DAY: i64 = 86_400_000;
    let day = ms.div_euclid(DAY);
    let (year, month, _) = civil_from_days(day);
    match unit {
        Unit::Minute => ms.div_euclid(60_000) * 60_000,
        Unit::Hour => ms.div_euclid(3_600_000) * 3_600_000,
        Unit::Day => day * DAY,
        // Weeks begin on Sunday; 1970-01-01 was a Thursday.
        Unit::Week => (day - (day + 4).rem_euclid(7)) * DAY,
        Unit::Month => days_from_civil(year, month, 1) * DAY,
        Unit::Quarter => days_from_civil(year, (month - 1) / 3 * 3 + 1, 1) * DAY,
        Unit::Year => days_from_civil(year, 1, 1) * DAY,
    }
}

/// A double as a number with the same order.
fn bits_of(number: f64) -> u64 {
    let bits = if number == 0.0 { 0 } else { number.to_bits() };
    if bits >> 63 == 0 { bits | (1 << 63) } else { !bits }
}

fn double_of(bits: u64) -> f64 {
    f64::from_bits(if bits >> 63 == 1 { bits & !(1 << 63) } else { !bits })
}
