//! Where entities that meet a filter can be: a point, a range of rows, a range of partitions, or anywhere.

use lazuli_azure::odata::Value;

use super::{Comparison, Filter};
use crate::entity::{PARTITION_KEY, ROW_KEY};

/// The keys that a filter leaves open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Plan {
    /// No entity can meet it.
    Nothing,
    Point(String, String),
    /// Rows of one partition key.
    Rows(String, Interval),
    Partitions(Interval),
    Everything,
}

/// A stretch of keys, from the first one in it up to the first one behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Interval {
    pub(crate) from: String,
    /// None means that it has no end.
    pub(crate) to: Option<String>,
}

impl Plan {
    pub(crate) fn of(filter: Option<&Filter>) -> Self {
        let Some(filter) = filter else { return Self::Everything };
        let (Some(partitions), Some(rows)) =
            (interval(filter, PARTITION_KEY), interval(filter, ROW_KEY))
        else {
            return Self::Nothing;
        };
        match partitions.only() {
            Some(partition) => match rows.only() {
                Some(row) => Self::Point(partition.to_owned(), row.to_owned()),
                None => Self::Rows(partition.to_owned(), rows),
            },
            None if partitions == Interval::ALL => Self::Everything,
            None => Self::Partitions(partitions),
        }
    }

    /// Whether every entity that is read for this plan meets the filter it was made for, so that nobody has to look. Of
    /// ranges of partitions that is not known: where keys are hashed, all are read.
    pub(crate) fn is_exact(&self, filter: &Filter) -> bool {
        matches!(self, Self::Point(..) | Self::Rows(..)) && is_interval(filter)
    }
}

/// Whether a filter says no more than an interval of each key can say.
fn is_interval(filter: &Filter) -> bool {
    match filter {
        Filter::All(terms) => terms.iter().all(is_interval),
        Filter::Compare(name, comparison, Value::String(_)) => {
            matches!(name.as_str(), PARTITION_KEY | ROW_KEY) && *comparison != Comparison::NotEqual
        }
        Filter::Constant(value) => *value,
        _ => false,
    }
}

impl Interval {
    const ALL: Self = Self { from: String::new(), to: None };

    #[cfg(any(test, fuzzing))]
    pub(crate) fn contains(&self, key: &str) -> bool {
        *key >= *self.from && self.to.as_deref().is_none_or(|to| key < to)
    }

    /// The only key in it, if there is just one.
    fn only(&self) -> Option<&str> {
        (self.to.as_deref()? == after(&self.from)).then_some(self.from.as_str())
    }

    fn not_empty(self) -> Option<Self> {
        let empty = self.to.as_ref().is_some_and(|to| *to <= self.from);
        (!empty).then_some(self)
    }

    fn intersect(self, other: Self) -> Option<Self> {
        let to = match (self.to, other.to) {
            (Some(one), Some(two)) => Some(one.min(two)),
            (one, two) => one.or(two),
        };
        Self { from: self.from.max(other.from), to }.not_empty()
    }

    /// The smallest interval around both.
    fn hull(self, other: Self) -> Self {
        let to = self.to.zip(other.to).map(|(one, two)| one.max(two));
        Self { from: self.from.min(other.from), to }
    }
}

/// The next text in order: the same with the smallest character behind it.
fn after(key: &str) -> String {
    format!("{key}\0")
}

/// An interval around every value of this key that can meet the filter, or none if no value can.
fn interval(filter: &Filter, name: &str) -> Option<Interval> {
    match filter {
        Filter::All(terms) => {
            let mut all = terms.iter().map(|term| interval(term, name));
            all.try_fold(Interval::ALL, |whole, term| whole.intersect(term?))
        }
        Filter::Any(terms) => {
            terms.iter().filter_map(|term| interval(term, name)).reduce(Interval::hull)
        }
        Filter::Not(_) | Filter::Constant(true) => Some(Interval::ALL),
        Filter::Constant(false) => None,
        Filter::Compare(property, comparison, Value::String(key)) if property == name => {
            of_comparison(*comparison, key)
        }
        // A key is text and never meets a comparison with anything else.
        Filter::Compare(property, ..) if property == name => None,
        Filter::Compare(..) => Some(Interval::ALL),
    }
}

fn of_comparison(comparison: Comparison, key: &str) -> Option<Interval> {
    let (from, to) = match comparison {
        Comparison::Equal => (key.to_owned(), Some(after(key))),
        Comparison::NotEqual => (String::new(), None),
        Comparison::Greater => (after(key), None),
        Comparison::GreaterOrEqual => (key.to_owned(), None),
        Comparison::Less => (String::new(), Some(key.to_owned())),
        Comparison::LessOrEqual => (String::new(), Some(after(key))),
    };
    Interval { from, to }.not_empty()
}
