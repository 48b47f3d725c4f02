//! Constants in expressions: literals and parameters that are keys.

use sqlparser::ast::{DataType, Expr, UnaryOperator, Value};

use super::KeySource;

/// A literal or a parameter, maybe with a cast that cannot change a key.
pub(crate) fn constant(expr: &Expr) -> Option<KeySource> {
    match expr {
        Expr::Nested(inner) => constant(inner),
        Expr::Value(value) => match &value.value {
            Value::Number(number, false) => number
                .bytes()
                .all(|byte| byte.is_ascii_digit())
                .then(|| KeySource::Literal(number.clone())),
            Value::SingleQuotedString(text) => Some(KeySource::Literal(text.clone())),
            Value::Boolean(value) => Some(KeySource::Literal(value.to_string())),
            Value::Placeholder(name) => {
                Some(KeySource::Parameter(name.strip_prefix('$')?.parse().ok()?))
            }
            _ => None,
        },
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => match constant(expr)? {
            KeySource::Literal(number) if number.bytes().all(|byte| byte.is_ascii_digit()) => {
                Some(KeySource::Literal(format!("-{number}")))
            }
            _ => None,
        },
        Expr::Cast { expr, data_type, .. } if is_plain(data_type) => constant(expr),
        Expr::TypedString(typed) if is_plain(&typed.data_type) => match &typed.value.value {
            Value::SingleQuotedString(text) => Some(KeySource::Literal(text.clone())),
            _ => None,
        },
        _ => None,
    }
}

/// Types whose values a key column compares without a change. Lengths would cut, and numeric would round.
fn is_plain(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::SmallInt(None)
            | DataType::Int2(None)
            | DataType::Int(None)
            | DataType::Int4(None)
            | DataType::Integer(None)
            | DataType::BigInt(None)
            | DataType::Int8(None)
            | DataType::Text
            | DataType::Varchar(None)
            | DataType::CharacterVarying(None)
            | DataType::Uuid
            | DataType::Bytea
            | DataType::Boolean
            | DataType::Bool
    )
}

/// The values of `= ANY (…)`.
pub(super) fn array(expr: &Expr) -> Option<Vec<KeySource>> {
    match expr {
        Expr::Nested(inner) => array(inner),
        Expr::Array(array) => array.elem.iter().map(constant).collect(),
        Expr::Cast { expr, data_type: DataType::Array(_), .. } => array(expr),
        other => match constant(other)? {
            KeySource::Parameter(number) => Some(vec![KeySource::ParameterArray(number)]),
            _ => None,
        },
    }
}
