//! The plain evaluator of filters: it looks at one JSON document and at nothing else.

use super::tree::{CompareOp, Literal, Node, PathRef};
use crate::analysis::Normalizer;
use crate::definition::{EdmType, IndexDefinition};
use crate::value::{Point, parse_date_ms};
use serde_json::Value;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Evaluates filters over documents of one definition.
#[derive(Clone, Debug)]
pub(crate) struct Evaluator {
    normalizers: BTreeMap<String, Arc<Normalizer>>,
}

/// The elements that variables stand for at a place.
type Bindings<'a> = Vec<(&'a str, &'a Value)>;

impl Evaluator {
    /// The normalizers of fields, by path.
    pub(crate) fn into_normalizers(self) -> BTreeMap<String, Arc<Normalizer>> {
        self.normalizers
    }

    pub(crate) fn new(definition: &IndexDefinition) -> Evaluator {
        let mut normalizers = BTreeMap::new();
        for leaf in definition.leaves() {
            if let Some(name) = &leaf.normalizer
                && let Ok(normalizer) = definition.analysis.normalizer(name)
            {
                normalizers.insert(leaf.path.clone(), normalizer);
            }
        }
        Evaluator { normalizers }
    }

    /// Whether a document passes.
    pub(crate) fn matches(&self, node: &Node, document: &Value) -> bool {
        self.eval(node, document, &mut Vec::new())
    }

    fn eval<'a>(&self, node: &'a Node, document: &'a Value, bound: &mut Bindings<'a>) -> bool {
        match node {
            Node::Constant(value) => *value,
            Node::And(parts) => parts.iter().all(|it| self.eval(it, document, bound)),
            Node::Or(parts) => parts.iter().any(|it| self.eval(it, document, bound)),
            Node::Not(inner) => !self.eval(inner, document, bound),
            Node::Truth(path) => find(path, document, bound).as_bool() == Some(true),
            Node::Compare { path, op, value } => {
                self.compare(find(path, document, bound), path, *op, value)
            }
            Node::In { path, values } => find(path, document, bound)
                .as_str()
                .is_some_and(|text| values.contains(&self.normalize(path, text))),
            Node::Any { path, variable, body } => {
                let items = elements(find(path, document, bound));
                match body {
                    None => !items.is_empty(),
                    Some(body) => items.iter().any(|item| {
                        bound.push((variable, item));
                        let passes = self.eval(body, document, bound);
                        bound.pop();
                        passes
                    }),
                }
            }
            Node::All { path, variable, body } => {
                elements(find(path, document, bound)).iter().all(|item| {
                    bound.push((variable, item));
                    let passes = self.eval(body, document, bound);
                    bound.pop();
                    passes
                })
            }
            Node::Distance { path, point, op, kilometers } => {
                Point::from_json(find(path, document, bound))
                    .and_then(|it| it.distance_km(*point).partial_cmp(kilometers))
                    .is_some_and(|order| op.accepts(order))
            }
            Node::Within { path, polygon } => {
                Point::from_json(find(path, document, bound)).is_some_and(|it| it.within(polygon))
            }
            Node::Match(_) => false,
        }
    }

    fn normalize(&self, path: &PathRef, text: &str) -> String {
        match self.normalizers.get(&path.full) {
            Some(normalizer) => normalizer.normalize(text),
            None => text.to_owned(),
        }
    }

    fn compare(&self, found: &Value, path: &PathRef, op: CompareOp, literal: &Literal) -> bool {
        if found.is_null() || *literal == Literal::Null {
            let equal = found.is_null() && *literal == Literal::Null;
            return match op {
                CompareOp::Eq => equal,
                CompareOp::Ne => !equal,
                _ => false,
            };
        }
        let order = match literal {
            Literal::Text(text) => found.as_str().map(|it| self.normalize(path, it).cmp(text)),
            Literal::Bool(value) => found.as_bool().map(|it| it.cmp(value)),
            Literal::Date(ms) => found.as_str().and_then(parse_date_ms).map(|it| it.cmp(ms)),
            Literal::Int(number) => found.as_i64().map(|it| it.cmp(number)),
            Literal::Double(number) if path.kind == EdmType::Double => {
                number_of(found).and_then(|it| it.partial_cmp(number))
            }
            Literal::Double(number) => found.as_i64().and_then(|it| compare_whole(it, *number)),
            Literal::Null => None,
        };
        order.map_or(op == CompareOp::Ne, |order| op.accepts(order))
    }
}

/// Compares a whole number with any other, without rounding either.
pub(crate) fn compare_whole(whole: i64, number: f64) -> Option<Ordering> {
    if number.is_nan() {
        return None;
    }
    if number >= 9.3e18 {
        return Some(Ordering::Less);
    }
    if number <= -9.3e18 {
        return Some(Ordering::Greater);
    }
    let floor = number.floor();
    Some(i128::from(whole).cmp(&(floor as i128)).then(if number > floor {
        Ordering::Less
    } else {
        Ordering::Equal
    }))
}

/// A number of a document; the special ones are strings in JSON.
pub(crate) fn number_of(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => match text.as_str() {
            "NaN" => Some(f64::NAN),
            "INF" => Some(f64::INFINITY),
            "-INF" => Some(f64::NEG_INFINITY),
            _ => None,
        },
        _ => None,
    }
}

fn elements(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn find<'a>(path: &PathRef, document: &'a Value, bound: &Bindings<'a>) -> &'a Value {
    let mut value = match &path.variable {
        None => document,
        Some(name) => {
            bound.iter().rev().find(|(it, _)| it == name).map_or(&Value::Null, |(_, value)| value)
        }
    };
    for name in &path.names {
        value = value.get(name).unwrap_or(&Value::Null);
    }
    value
}
