//! What a filter demands of an item, as far as indexes can tell.

use lazuli_value::{Kind, Value, ValueRef, key_is_cut, order_key};

use super::path::{Path, Step};
use super::range::{KeyRange, intersected, united};
use super::{IndexScan, Schema};
use crate::evaluate::prefix_of_pattern;
use crate::syntax::{BinaryOp, SubqueryKind};
use crate::tree::{Expression, Level, Source};

/// What must hold for an item so that a filter can be true for one of its rows.
#[derive(Clone, Debug)]
pub(super) enum Condition {
    /// Nothing is known.
    Anything,
    /// The filter is true for no item.
    Never,
    /// The item has an entry in these ranges.
    Entry(Entry),
    /// All of these hold; none of them is one of the kinds above but an entry.
    All(Vec<Condition>),
    /// One of these holds.
    Any(Vec<Condition>),
}

#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) path: Path,
    pub(super) ranges: Vec<KeyRange>,
    /// Whether having such an entry is all that the filter asks for.
    pub(super) is_exact: bool,
    /// How much of an index it reads, from little to much.
    pub(super) breadth: Breadth,
}

/// How many entries a condition is likely to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Breadth {
    Equal,
    Several,
    Prefix,
    Bounded,
    HalfOpen,
    Kind,
}

impl Entry {
    pub(super) fn scan(&self, is_descending: bool) -> IndexScan {
        let (path, ranges) = (self.path.clone(), self.ranges.clone());
        IndexScan { path, ranges, is_descending, has_missing: false }
    }
}

/// Reads conditions out of filters. Knows the path of what each slot is bound to.
pub(super) struct Reader<'s> {
    schema: &'s dyn Schema,
    slots: Vec<Option<Path>>,
}

impl<'s> Reader<'s> {
    pub(super) fn new(schema: &'s dyn Schema) -> Self {
        Self { schema, slots: Vec::new() }
    }

    /// Binds the slots of a level's sources.
    pub(super) fn bind(&mut self, level: &Level) {
        self.slots.truncate(level.outer);
        self.slots.resize(level.outer, None);
        for source in &level.sources {
            let path = match source {
                Source::Items => Some(Path::default()),
                Source::Value(expression) => self.path(expression),
                Source::Each(expression) => {
                    self.path(expression).map(|path| path.then(Step::Element))
                }
                Source::Rows(_) | Source::EachOfRows(_) => None,
            };
            self.slots.push(path);
        }
    }

    /// The path of an expression, if it is a place in the item.
    pub(super) fn path(&self, expression: &Expression) -> Option<Path> {
        match expression {
            Expression::Slot(slot) => self.slots.get(*slot)?.clone(),
            Expression::Property(inside, name) => {
                Some(self.path(inside)?.then(Step::Name(name.clone())))
            }
            _ => None,
        }
    }

    pub(super) fn condition(&mut self, filter: &Expression) -> Condition {
        match filter {
            Expression::Constant(Some(Value::Bool(true))) => Condition::Anything,
            Expression::Constant(_) => Condition::Never,
            Expression::And(parts) => self.all(parts),
            Expression::Or(parts) => self.any(parts),
            Expression::Binary(operator, one, two) => {
                match (one.as_constant(), two.as_constant()) {
                    (None, Some(value)) => self.compared(one, *operator, value),
                    (Some(value), None) => self.compared(two, mirrored(*operator), value),
                    _ => Condition::Anything,
                }
            }
            Expression::Between { value, low, high } => {
                match (low.as_constant(), high.as_constant()) {
                    (Some(low), Some(high)) => {
                        let low = self.compared(value, BinaryOp::GreaterOrEqual, low);
                        let high = self.compared(value, BinaryOp::LessOrEqual, high);
                        joined(vec![low, high])
                    }
                    _ => Condition::Anything,
                }
            }
            Expression::In { value, list, .. } => self.listed(value, list),
            Expression::Like { value, pattern, escape } => match pattern.as_constant() {
                Some(Value::String(pattern)) => {
                    let (prefix, is_exact) = prefix_of_pattern(pattern, *escape);
                    self.beginning(value, &prefix, is_exact)
                }
                _ => Condition::Anything,
            },
            Expression::Call { function, arguments } => self.called(function.name, arguments),
            Expression::Subquery(SubqueryKind::Exists, level) => self.exists(level),
            Expression::Slot(_) | Expression::Property(..) => {
                self.compared(filter, BinaryOp::Equal, &Value::Bool(true))
            }
            _ => Condition::Anything,
        }
    }

    fn all(&mut self, parts: &[Expression]) -> Condition {
        let conditions = parts.iter().map(|part| self.condition(part)).collect();
        joined(conditions)
    }

    fn any(&mut self, parts: &[Expression]) -> Condition {
        let mut arms: Vec<Condition> = Vec::new();
        for part in parts {
            match self.condition(part) {
                Condition::Never => {}
                Condition::Anything => return Condition::Anything,
                Condition::Entry(entry) => {
                    let same = arms.iter_mut().find_map(|arm| match arm {
                        Condition::Entry(other) if other.path == entry.path => Some(other),
                        _ => None,
                    });
                    match same {
                        Some(other) => {
                            other.ranges.extend(entry.ranges);
                            other.is_exact &= entry.is_exact;
                            other.breadth = other.breadth.max(entry.breadth).max(Breadth::Several);
                        }
                        None => arms.push(Condition::Entry(entry)),
                    }
                }
                other => arms.push(other),
            }
        }
        for arm in &mut arms {
            if let Condition::Entry(entry) = arm {
                entry.ranges = united(std::mem::take(&mut entry.ranges));
            }
        }
        match arms.len() {
            0 => Condition::Never,
            1 => arms.remove(0),
            _ => Condition::Any(arms),
        }
    }

    /// An entry at the path of an expression, if there is an index of it.
    fn entry(
        &self,
        expression: &Expression,
        ranges: Vec<KeyRange>,
        is_exact: bool,
        breadth: Breadth,
    ) -> Condition {
        match self.path(expression) {
            Some(path) => self.entry_at(path, ranges, is_exact, breadth),
            None => Condition::Anything,
        }
    }

    fn entry_at(
        &self,
        path: Path,
        ranges: Vec<KeyRange>,
        is_exact: bool,
        breadth: Breadth,
    ) -> Condition {
        if path.0.is_empty() || !self.schema.is_indexed(&path) {
            return Condition::Anything;
        }
        // Several elements of one array can have entries, and a join makes a row of each.
        let is_exact = is_exact && !path.has_elements();
        Condition::Entry(Entry { path, ranges: united(ranges), is_exact, breadth })
    }

    fn compared(&self, place: &Expression, operator: BinaryOp, value: &Value) -> Condition {
        let constant = ValueRef::from(value);
        let is_container = matches!(constant.kind(), Kind::Array | Kind::Object);
        let is_exact = !is_cut(constant);
        let (range, breadth) = match operator {
            BinaryOp::Equal if is_container => return self.of_kind(place, constant.kind(), false),
            BinaryOp::Equal => (KeyRange::equal(constant), Breadth::Equal),
            // Arrays and objects have no order.
            BinaryOp::Less
            | BinaryOp::LessOrEqual
            | BinaryOp::Greater
            | BinaryOp::GreaterOrEqual
                if is_container =>
            {
                return Condition::Never;
            }
            BinaryOp::Less => (KeyRange::beside(constant, true, false), Breadth::HalfOpen),
            BinaryOp::LessOrEqual => (KeyRange::beside(constant, true, true), Breadth::HalfOpen),
            BinaryOp::Greater => (KeyRange::beside(constant, false, false), Breadth::HalfOpen),
            BinaryOp::GreaterOrEqual => {
                (KeyRange::beside(constant, false, true), Breadth::HalfOpen)
            }
            _ => return Condition::Anything,
        };
        self.entry(place, vec![range], is_exact, breadth)
    }

    fn listed(&self, place: &Expression, list: &[Expression]) -> Condition {
        let mut ranges = Vec::with_capacity(list.len());
        let mut is_exact = true;
        for item in list {
            match item {
                Expression::Constant(None) => {}
                Expression::Constant(Some(value)) => {
                    let value = ValueRef::from(value);
                    if matches!(value.kind(), Kind::Array | Kind::Object) {
                        return Condition::Anything;
                    }
                    is_exact &= !is_cut(value);
                    ranges.push(KeyRange::equal(value));
                }
                _ => return Condition::Anything,
            }
        }
        let breadth = if ranges.len() == 1 { Breadth::Equal } else { Breadth::Several };
        self.entry(place, ranges, is_exact, breadth)
    }

    fn beginning(&self, place: &Expression, prefix: &str, is_exact: bool) -> Condition {
        if prefix.is_empty() {
            return self.of_kind(place, Kind::String, false);
        }
        let is_exact = is_exact && prefix.len() <= lazuli_value::limits::KEY_PREFIX_BYTES_MAX;
        self.entry(place, vec![KeyRange::beginning(prefix)], is_exact, Breadth::Prefix)
    }

    fn of_kind(&self, place: &Expression, kind: Kind, is_exact: bool) -> Condition {
        let is_container = matches!(kind, Kind::Array | Kind::Object);
        if is_container && !self.schema.has_containers() {
            return Condition::Anything;
        }
        self.entry(place, vec![KeyRange::kind(kind)], is_exact, Breadth::Kind)
    }

    /// Functions that an index can answer, or narrow down.
    fn called(&self, name: &str, arguments: &[Expression]) -> Condition {
        let Some(place) = arguments.first() else { return Condition::Anything };
        let constant = arguments.get(1).and_then(Expression::as_constant);
        // A third argument that is not false makes the function ignore case.
        let minds_case = match arguments.get(2) {
            None => true,
            Some(flag) => flag.as_constant() == Some(&Value::Bool(false)),
        };
        match (name, constant) {
            ("IS_DEFINED", None) if self.schema.has_containers() => {
                self.entry(place, vec![KeyRange::all()], true, Breadth::Kind)
            }
            ("IS_NULL", None) => self.of_kind(place, Kind::Null, true),
            ("IS_BOOL", None) => self.of_kind(place, Kind::Bool, true),
            ("IS_NUMBER", None) => self.of_kind(place, Kind::Number, true),
            ("IS_STRING", None) => self.of_kind(place, Kind::String, true),
            ("IS_ARRAY", None) => self.of_kind(place, Kind::Array, true),
            ("IS_OBJECT", None) => self.of_kind(place, Kind::Object, true),
            ("STARTSWITH", Some(Value::String(prefix))) if minds_case => {
                self.beginning(place, prefix, true)
            }
            ("STRINGEQUALS", Some(text @ Value::String(_))) if minds_case => {
                self.compared(place, BinaryOp::Equal, text)
            }
            ("ARRAY_CONTAINS", Some(value)) => match self.path(place) {
                Some(path) if !matches!(value, Value::Array(_) | Value::Object(_)) => {
                    let ranges = vec![KeyRange::equal(value.into())];
                    self.entry_at(path.then(Step::Element), ranges, false, Breadth::Equal)
                }
                _ => Condition::Anything,
            },
            _ => Condition::Anything,
        }
    }

    /// EXISTS over the arrays of the item: the item has what the inner filter demands.
    fn exists(&mut self, level: &Level) -> Condition {
        let (Some(filter), None, None) = (&level.filter, &level.grouping, level.limit) else {
            return Condition::Anything;
        };
        let slots = self.slots.clone();
        self.slots.resize(level.outer, None);
        self.bind(level);
        let condition = self.condition(filter);
        self.slots = slots;
        inexact(condition)
    }
}

fn inexact(condition: Condition) -> Condition {
    match condition {
        Condition::Entry(entry) => Condition::Entry(Entry { is_exact: false, ..entry }),
        Condition::All(parts) => Condition::All(parts.into_iter().map(inexact).collect()),
        Condition::Any(parts) => Condition::Any(parts.into_iter().map(inexact).collect()),
        other => other,
    }
}

/// The condition that all of these hold. Ranges of one path are intersected, unless it has elements: then different
/// elements may be meant.
fn joined(conditions: Vec<Condition>) -> Condition {
    let mut parts: Vec<Condition> = Vec::new();
    let mut is_complete = true;
    let flat = conditions.into_iter().flat_map(|condition| match condition {
        Condition::All(parts) => parts,
        other => vec![other],
    });
    for condition in flat {
        match condition {
            Condition::Never => return Condition::Never,
            Condition::Anything => is_complete = false,
            Condition::Entry(entry) => {
                let same = parts.iter_mut().find_map(|part| match part {
                    Condition::Entry(other)
                        if other.path == entry.path && !entry.path.has_elements() =>
                    {
                        Some(other)
                    }
                    _ => None,
                });
                match same {
                    Some(other) => {
                        other.ranges = intersected(&other.ranges, &entry.ranges);
                        other.is_exact &= entry.is_exact;
                        let both_half = other.breadth == Breadth::HalfOpen
                            && entry.breadth == Breadth::HalfOpen;
                        let narrower = other.breadth.min(entry.breadth);
                        other.breadth = if both_half { Breadth::Bounded } else { narrower };
                        if other.ranges.is_empty() {
                            return Condition::Never;
                        }
                    }
                    None => parts.push(Condition::Entry(entry)),
                }
            }
            other => parts.push(other),
        }
    }
    if !is_complete || parts.len() > 1 {
        parts = parts.into_iter().map(inexact).collect();
    }
    match parts.len() {
        0 => Condition::Anything,
        1 => parts.remove(0),
        _ => Condition::All(parts),
    }
}

fn mirrored(operator: BinaryOp) -> BinaryOp {
    match operator {
        BinaryOp::Less => BinaryOp::Greater,
        BinaryOp::LessOrEqual => BinaryOp::GreaterOrEqual,
        BinaryOp::Greater => BinaryOp::Less,
        BinaryOp::GreaterOrEqual => BinaryOp::LessOrEqual,
        other => other,
    }
}

fn is_cut(value: ValueRef<'_>) -> bool {
    let mut key = Vec::new();
    order_key(value, &mut key);
    key_is_cut(&key)
}
