//! The tree of a query as it was written, with the place of every part.

use lazuli_value::Value;

use crate::error::Span;

/// One SELECT with its clauses: a whole query, or a subquery.
#[derive(Clone, Debug, PartialEq)]
pub struct Select {
    pub is_distinct: bool,
    pub top: Option<Count>,
    pub projection: Projection,
    pub from: Vec<FromItem>,
    pub filter: Option<Expr>,
    pub group: Vec<Expr>,
    pub order: Vec<OrderItem>,
    /// ORDER BY RANK: the one expression of the order is a score.
    pub is_ranked: bool,
    pub offset: Option<Count>,
    pub limit: Option<Count>,
    pub span: Span,
    /// How deep its expressions are.
    pub height: usize,
}

/// A number of rows.
#[derive(Clone, Debug, PartialEq)]
pub enum Count {
    Number(u64),
    Parameter(String, Span),
}

#[derive(Clone, Debug, PartialEq)]
pub enum Projection {
    Star(Span),
    Value(Expr),
    List(Vec<(Expr, Option<String>)>),
}

/// One source of FROM; the second and later ones are JOINs.
#[derive(Clone, Debug, PartialEq)]
pub struct FromItem {
    pub collection: Collection,
    pub alias: Option<String>,
    /// `alias IN collection`: the elements of an array, and not the array.
    pub is_each: bool,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Collection {
    Path { root: String, steps: Vec<PathStep>, span: Span },
    Subquery(Box<Select>),
}

#[derive(Clone, Debug, PartialEq)]
pub enum PathStep {
    Name(String),
    Place(u64),
}

#[derive(Clone, Debug, PartialEq)]
pub struct OrderItem {
    pub expression: Expr,
    pub is_descending: bool,
}

/// An expression and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    pub kind: ExprKind,
    pub span: Span,
    /// How deep it is: one more than the deepest of its parts.
    pub height: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub enum ExprKind {
    /// A constant; `undefined` is `None`.
    Literal(Option<Value>),
    Parameter(String),
    Name(String),
    Property(Box<Expr>, String),
    Index(Box<Expr>, Box<Expr>),
    Array(Vec<Expr>),
    Object(Vec<(String, Expr)>),
    Unary(UnaryOp, Box<Expr>),
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
    /// Two or more expressions that must all hold.
    And(Vec<Expr>),
    /// Two or more expressions of which one must hold.
    Or(Vec<Expr>),
    Between {
        value: Box<Expr>,
        low: Box<Expr>,
        high: Box<Expr>,
        is_not: bool,
    },
    In {
        value: Box<Expr>,
        list: Vec<Expr>,
        is_not: bool,
    },
    Like {
        value: Box<Expr>,
        pattern: Box<Expr>,
        escape: Option<String>,
        is_not: bool,
    },
    Coalesce(Box<Expr>, Box<Expr>),
    Conditional(Box<Expr>, Box<Expr>, Box<Expr>),
    Call {
        name: String,
        arguments: Vec<Expr>,
    },
    UserCall {
        name: String,
        arguments: Vec<Expr>,
    },
    Subquery(SubqueryKind, Box<Select>),
}

/// What is made of the rows of a subquery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubqueryKind {
    /// The one row, or undefined.
    Scalar,
    /// Whether there is a row.
    Exists,
    /// All rows as an array.
    Array,
    /// Whether all rows are true.
    All,
    First,
    Last,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnaryOp {
    Minus,
    Plus,
    BitNot,
    Not,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BinaryOp {
    Multiply,
    Divide,
    Modulo,
    Add,
    Subtract,
    ShiftLeft,
    ShiftRight,
    ShiftRightZero,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Equal,
    NotEqual,
    BitAnd,
    BitXor,
    BitOr,
    Concatenate,
}

impl BinaryOp {
    /// The symbol as it is written, and how tightly it binds: more is tighter.
    pub fn symbol(self) -> (&'static str, u8) {
        match self {
            Self::Multiply => ("*", 9),
            Self::Divide => ("/", 9),
            Self::Modulo => ("%", 9),
            Self::Add => ("+", 8),
            Self::Subtract => ("-", 8),
            Self::ShiftLeft => ("<<", 7),
            Self::ShiftRight => (">>", 7),
            Self::ShiftRightZero => (">>>", 7),
            Self::Less => ("<", 6),
            Self::LessOrEqual => ("<=", 6),
            Self::Greater => (">", 6),
            Self::GreaterOrEqual => (">=", 6),
            Self::Equal => ("=", 5),
            Self::NotEqual => ("!=", 5),
            Self::BitAnd => ("&", 4),
            Self::BitXor => ("^", 3),
            Self::BitOr => ("|", 2),
            Self::Concatenate => ("||", 1),
        }
    }

    pub(crate) fn of_symbol(symbol: &str) -> Option<Self> {
        const ALL: &[BinaryOp] = &[
            BinaryOp::Multiply,
            BinaryOp::Divide,
            BinaryOp::Modulo,
            BinaryOp::Add,
            BinaryOp::Subtract,
            BinaryOp::ShiftLeft,
            BinaryOp::ShiftRight,
            BinaryOp::ShiftRightZero,
            BinaryOp::Less,
            BinaryOp::LessOrEqual,
            BinaryOp::Greater,
            BinaryOp::GreaterOrEqual,
            BinaryOp::Equal,
            BinaryOp::NotEqual,
            BinaryOp::BitAnd,
            BinaryOp::BitXor,
            BinaryOp::BitOr,
            BinaryOp::Concatenate,
        ];
        let symbol = if symbol == "<>" { "!=" } else { symbol };
        ALL.iter().copied().find(|operator| operator.symbol().0 == symbol)
    }
}

impl ExprKind {
    /// The height of an expression of this kind.
    pub(crate) fn height(&self) -> usize {
        let most = |parts: &[Expr]| parts.iter().map(|part| part.height).max().unwrap_or(0);
        let inside = match self {
            Self::Literal(_) | Self::Parameter(_) | Self::Name(_) => 0,
            Self::Property(one, _) | Self::Unary(_, one) => one.height,
            Self::Index(one, two) | Self::Binary(_, one, two) | Self::Coalesce(one, two) => {
                one.height.max(two.height)
            }
            Self::Array(parts) | Self::And(parts) | Self::Or(parts) => most(parts),
            Self::Object(parts) => parts.iter().map(|(_, part)| part.height).max().unwrap_or(0),
            Self::Between { value, low, high, .. } => value.height.max(low.height).max(high.height),
            Self::In { value, list, .. } => value.height.max(most(list)),
            Self::Like { value, pattern, .. } => value.height.max(pattern.height),
            Self::Conditional(one, two, three) => one.height.max(two.height).max(three.height),
            Self::Call { arguments, .. } | Self::UserCall { arguments, .. } => most(arguments),
            Self::Subquery(_, select) => select.height,
        };
        inside + 1
    }
}
