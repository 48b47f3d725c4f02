//! The language as it is written: lexer, parser, tree, and the tree as text.

mod expressions;
mod lexer;
mod parser;
mod print;
#[cfg(test)]
mod tests;
mod tree;

pub(crate) use parser::parse;
pub use tree::{
    BinaryOp, Collection, Count, Expr, ExprKind, FromItem, OrderItem, PathStep, Projection, Select,
    SubqueryKind, UnaryOp,
};
