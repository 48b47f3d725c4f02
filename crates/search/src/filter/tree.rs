//! The tree of a filter.

use crate::definition::EdmType;
use crate::value::Point;
use std::collections::BTreeSet;

/// One expression with a truth value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Node {
    Constant(bool),
    And(Vec<Node>),
    Or(Vec<Node>),
    Not(Box<Node>),
    /// A field of booleans by itself.
    Truth(PathRef),
    Compare {
        path: PathRef,
        op: CompareOp,
        value: Literal,
    },
    In {
        path: PathRef,
        values: BTreeSet<String>,
    },
    /// Whether an element of a collection passes; without a body, whether there is one.
    Any {
        path: PathRef,
        variable: String,
        body: Option<Box<Node>>,
    },
    All {
        path: PathRef,
        variable: String,
        body: Box<Node>,
    },
    Distance {
        path: PathRef,
        point: Point,
        op: CompareOp,
        kilometers: f64,
    },
    Within {
        path: PathRef,
        polygon: Vec<Point>,
    },
    Match(MatchCall),
}

/// A field, seen from the document or from the element that a variable stands for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PathRef {
    /// The variable that the path starts at; none for the document.
    pub variable: Option<String>,
    /// The names from there on.
    pub names: Vec<String>,
    /// The path from the top of the document.
    pub full: String,
    pub kind: EdmType,
    /// Whether the path ends in a whole collection.
    pub collection: bool,
}

/// Comparisons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CompareOp {
    Eq,
    Ne,
    Gt,
    Lt,
    Ge,
    Le,
}

impl CompareOp {
    /// The operator when both sides change places.
    pub(crate) fn mirrored(self) -> CompareOp {
        match self {
            CompareOp::Gt => CompareOp::Lt,
            CompareOp::Lt => CompareOp::Gt,
            CompareOp::Ge => CompareOp::Le,
            CompareOp::Le => CompareOp::Ge,
            same => same,
        }
    }

    /// Whether an order of two values satisfies the operator.
    pub(crate) fn accepts(self, order: std::cmp::Ordering) -> bool {
        match self {
            CompareOp::Eq => order.is_eq(),
            CompareOp::Ne => order.is_ne(),
            CompareOp::Gt => order.is_gt(),
            CompareOp::Lt => order.is_lt(),
            CompareOp::Ge => order.is_ge(),
            CompareOp::Le => order.is_le(),
        }
    }
}

/// A constant, already of the type of the field that it is compared with.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Literal {
    Null,
    Bool(bool),
    Int(i64),
    Double(f64),
    Text(String),
    /// Milliseconds since 1970.
    Date(i64),
}

/// A call of `search.ismatch` or `search.ismatchscoring`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct MatchCall {
    pub search: String,
    pub fields: Option<String>,
    pub full: bool,
    pub all: bool,
    pub scoring: bool,
}

impl Node {
    /// Whether the tree calls the index.
    pub(crate) fn has_match(&self) -> bool {
        match self {
            Node::Match(_) => true,
            Node::And(parts) | Node::Or(parts) => parts.iter().any(Node::has_match),
            Node::Not(inner) => inner.has_match(),
            _ => false,
        }
    }
}
