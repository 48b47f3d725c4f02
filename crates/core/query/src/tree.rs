//! The tree that is executed: names resolved to slots, parameters to constants, functions to their code.
//!
//! Nothing here is the spelling of one language. A front of another language makes the same tree from its own texts.

use std::sync::Arc;

use lazuli_value::Value;

use crate::evaluate::ConstantSet;
use crate::functions::Function;
use crate::functions::rank::Ranking;
use crate::syntax::{BinaryOp, SubqueryKind, UnaryOp};

/// One level of a query.
///
/// Values are bound to slots, numbered from the outermost level inwards. Each source binds the next slot. If rows are
/// grouped, what comes after grouping sees the keys and then the aggregates in the slots of the sources instead.
#[derive(Clone, Debug, PartialEq)]
pub struct Level {
    /// How many slots are bound around this level.
    pub outer: usize,
    /// Each row binds one value of each, for all combinations. Without sources there is one row.
    pub sources: Vec<Source>,
    /// Rows for which this is not exactly true are dropped.
    pub filter: Option<Expression>,
    pub grouping: Option<Grouping>,
    /// What a row gives. A row for which it is undefined gives nothing.
    pub output: Expression,
    pub is_distinct: bool,
    pub sort: Vec<Sort>,
    /// ORDER BY RANK: how the values of the one expression in `sort` become scores.
    pub ranking: Option<Ranking>,
    pub offset: u64,
    pub limit: Option<u64>,
}

/// Where the values of a slot come from.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// The items of the container: the first source of the outermost level.
    Items,
    /// One value; no row if it is undefined.
    Value(Expression),
    /// The elements of an array; no row if it is none.
    Each(Expression),
    /// The rows of a subquery.
    Rows(Box<Level>),
    /// The elements of the arrays that are the rows of a subquery.
    EachOfRows(Box<Level>),
}

/// Rows with equal keys become one row. Without keys all rows become one, even if there are none.
#[derive(Clone, Debug, PartialEq)]
pub struct Grouping {
    pub keys: Vec<Expression>,
    pub aggregates: Vec<Aggregate>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Aggregate {
    pub kind: AggregateKind,
    pub argument: Expression,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AggregateKind {
    Average,
    Count,
    CountIf,
    Max,
    Min,
    Sum,
    MakeList,
    MakeSet,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Sort {
    pub expression: Expression,
    pub is_descending: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Expression {
    /// A constant; undefined is `None`.
    Constant(Option<Value>),
    Slot(usize),
    Property(Box<Expression>, String),
    Index(Box<Expression>, Box<Expression>),
    Array(Vec<Expression>),
    Object(Vec<(String, Expression)>),
    Unary(UnaryOp, Box<Expression>),
    Binary(BinaryOp, Box<Expression>, Box<Expression>),
    And(Vec<Expression>),
    Or(Vec<Expression>),
    Between {
        value: Box<Expression>,
        low: Box<Expression>,
        high: Box<Expression>,
    },
    In {
        value: Box<Expression>,
        list: Vec<Expression>,
        /// The list, if it is long and of constants alone.
        set: Option<Arc<ConstantSet>>,
    },
    Like {
        value: Box<Expression>,
        pattern: Box<Expression>,
        escape: Option<char>,
    },
    Coalesce(Box<Expression>, Box<Expression>),
    Conditional(Box<Expression>, Box<Expression>, Box<Expression>),
    Call {
        function: &'static Function,
        arguments: Vec<Expression>,
    },
    UserCall {
        name: String,
        arguments: Vec<Expression>,
    },
    Subquery(SubqueryKind, Box<Level>),
}

impl PartialEq for Function {
    /// Names of functions are unique.
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Expression {
    pub fn constant(value: impl Into<Value>) -> Self {
        Self::Constant(Some(value.into()))
    }

    /// Its value, if it is a constant that is defined.
    pub fn as_constant(&self) -> Option<&Value> {
        match self {
            Self::Constant(value) => value.as_ref(),
            _ => None,
        }
    }

    /// The opposite of a condition.
    #[must_use]
    pub fn negated(self) -> Self {
        Self::Unary(UnaryOp::Not, Box::new(self))
    }

    /// The expressions that it is made of, without those of subqueries.
    pub fn parts(&self) -> Vec<&Expression> {
        match self {
            Self::Constant(_) | Self::Slot(_) | Self::Subquery(..) => Vec::new(),
            Self::Property(one, _) | Self::Unary(_, one) => vec![one],
            Self::Index(one, two) | Self::Binary(_, one, two) | Self::Coalesce(one, two) => {
                vec![one, two]
            }
            Self::Array(parts) | Self::And(parts) | Self::Or(parts) => parts.iter().collect(),
            Self::Object(parts) => parts.iter().map(|(_, part)| part).collect(),
            Self::Between { value, low, high } => vec![value, low, high],
            Self::In { value, list, .. } => std::iter::once(&**value).chain(list).collect(),
            Self::Like { value, pattern, .. } => vec![value, pattern],
            Self::Conditional(one, two, three) => vec![one, two, three],
            Self::Call { arguments, .. } | Self::UserCall { arguments, .. } => {
                arguments.iter().collect()
            }
        }
    }
}
