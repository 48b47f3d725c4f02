//! The tree back into text, for rewritten queries and for error messages.

use std::fmt::{self, Display, Write as _};

use lazuli_value::json;

use super::lexer::is_name_part;
use super::parser::is_reserved;
use super::tree::{
    Collection, Count, Expr, ExprKind, FromItem, PathStep, Projection, Select, SubqueryKind,
    UnaryOp,
};

impl Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Parameter(name, _) => f.write_str(name),
        }
    }
}

impl Display for Select {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SELECT ")?;
        if self.is_distinct {
            f.write_str("DISTINCT ")?;
        }
        if let Some(top) = &self.top {
            write!(f, "TOP {top} ")?;
        }
        match &self.projection {
            Projection::Star(_) => f.write_char('*')?,
            Projection::Value(value) => write!(f, "VALUE {value}")?,
            Projection::List(list) => separated(f, list, |f, (expression, alias)| {
                write!(f, "{expression}")?;
                alias.iter().try_for_each(|alias| write!(f, " AS {alias}"))
            })?,
        }
        for (place, item) in self.from.iter().enumerate() {
            f.write_str(if place == 0 { "\nFROM " } else { "\nJOIN " })?;
            write!(f, "{item}")?;
        }
        if let Some(filter) = &self.filter {
            write!(f, "\nWHERE {filter}")?;
        }
        if !self.group.is_empty() {
            f.write_str("\nGROUP BY ")?;
            separated(f, &self.group, |f, expression| write!(f, "{expression}"))?;
        }
        if !self.order.is_empty() {
            f.write_str(if self.is_ranked { "\nORDER BY RANK " } else { "\nORDER BY " })?;
            separated(f, &self.order, |f, item| {
                write!(f, "{}", item.expression)?;
                f.write_str(if item.is_descending { " DESC" } else { " ASC" })
            })?;
        }
        match (&self.offset, &self.limit) {
            (Some(offset), Some(limit)) => write!(f, "\nOFFSET {offset} LIMIT {limit}"),
            _ => Ok(()),
        }
    }
}

impl Display for FromItem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let (true, Some(alias)) = (self.is_each, &self.alias) {
            write!(f, "{alias} IN ")?;
        }
        match &self.collection {
            Collection::Subquery(select) => write!(f, "({select})")?,
            Collection::Path { root, steps, .. } => {
                f.write_str(root)?;
                for step in steps {
                    match step {
                        PathStep::Name(name) => member(f, name)?,
                        PathStep::Place(place) => write!(f, "[{place}]")?,
                    }
                }
            }
        }
        match &self.alias {
            Some(alias) if !self.is_each => write!(f, " AS {alias}"),
            _ => Ok(()),
        }
    }
}

/// `.name`, or `["name"]` where it could not be read otherwise.
fn member(f: &mut fmt::Formatter<'_>, name: &str) -> fmt::Result {
    let plain = name.chars().all(is_name_part)
        && !name.is_empty()
        && !name.starts_with(char::is_numeric)
        && !is_reserved(name);
    if plain {
        return write!(f, ".{name}");
    }
    let mut text = String::new();
    json::write_string(name, &mut text);
    write!(f, "[{text}]")
}

fn separated<T>(
    f: &mut fmt::Formatter<'_>,
    list: &[T],
    one: impl Fn(&mut fmt::Formatter<'_>, &T) -> fmt::Result,
) -> fmt::Result {
    for (place, part) in list.iter().enumerate() {
        if place > 0 {
            f.write_str(", ")?;
        }
        one(f, part)?;
    }
    Ok(())
}

impl Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            ExprKind::Literal(None) => f.write_str("undefined"),
            ExprKind::Literal(Some(value)) => f.write_str(&value.to_json()),
            ExprKind::Parameter(name) | ExprKind::Name(name) => f.write_str(name),
            ExprKind::Property(inside, name) => {
                base(f, inside)?;
                member(f, name)
            }
            ExprKind::Index(inside, index) => {
                base(f, inside)?;
                write!(f, "[{index}]")
            }
            ExprKind::Array(elements) => {
                f.write_char('[')?;
                separated(f, elements, |f, element| write!(f, "{element}"))?;
                f.write_char(']')
            }
            ExprKind::Object(properties) => {
                f.write_char('{')?;
                separated(f, properties, |f, (name, value)| {
                    let mut text = String::new();
                    json::write_string(name, &mut text);
                    write!(f, "{text}: {value}")
                })?;
                f.write_char('}')
            }
            ExprKind::Call { name, arguments } => call(f, "", name, arguments),
            ExprKind::UserCall { name, arguments } => call(f, "udf.", name, arguments),
            ExprKind::Subquery(kind, select) => {
                f.write_str(match kind {
                    SubqueryKind::Scalar => "",
                    SubqueryKind::Exists => "EXISTS",
                    SubqueryKind::Array => "ARRAY",
                    SubqueryKind::All => "ALL",
                    SubqueryKind::First => "FIRST",
                    SubqueryKind::Last => "LAST",
                })?;
                write!(f, "({select})")
            }
            operator => {
                f.write_char('(')?;
                write_operator(f, operator)?;
                f.write_char(')')
            }
        }
    }
}

/// What a property is taken of. A point behind a number would be read as part of it.
fn base(f: &mut fmt::Formatter<'_>, inside: &Expr) -> fmt::Result {
    match inside.kind {
        ExprKind::Literal(_) => write!(f, "({inside})"),
        _ => write!(f, "{inside}"),
    }
}

fn call(f: &mut fmt::Formatter<'_>, before: &str, name: &str, arguments: &[Expr]) -> fmt::Result {
    write!(f, "{before}{name}(")?;
    separated(f, arguments, |f, argument| write!(f, "{argument}"))?;
    f.write_char(')')
}

fn write_operator(f: &mut fmt::Formatter<'_>, kind: &ExprKind) -> fmt::Result {
    let not = |is_not: bool| if is_not { "NOT " } else { "" };
    match kind {
        ExprKind::Unary(operator, inside) => {
            let symbol = match operator {
                UnaryOp::Minus => "-",
                UnaryOp::Plus => "+",
                UnaryOp::BitNot => "~",
                UnaryOp::Not => "NOT",
            };
            // A space keeps two minus signs from becoming a comment.
            write!(f, "{symbol} {inside}")
        }
        ExprKind::Binary(operator, one, two) => write!(f, "{one} {} {two}", operator.symbol().0),
        ExprKind::And(parts) => joined(f, parts, " AND "),
        ExprKind::Or(parts) => joined(f, parts, " OR "),
        ExprKind::Between { value, low, high, is_not } => {
            write!(f, "{value} {}BETWEEN {low} AND {high}", not(*is_not))
        }
        ExprKind::In { value, list, is_not } => {
            write!(f, "{value} {}IN (", not(*is_not))?;
            separated(f, list, |f, item| write!(f, "{item}"))?;
            f.write_char(')')
        }
        ExprKind::Like { value, pattern, escape, is_not } => {
            write!(f, "{value} {}LIKE {pattern}", not(*is_not))?;
            escape.iter().try_for_each(|escape| {
                let mut text = String::new();
                json::write_string(escape, &mut text);
                write!(f, " ESCAPE {text}")
            })
        }
        ExprKind::Coalesce(one, two) => write!(f, "{one} ?? {two}"),
        ExprKind::Conditional(condition, yes, no) => write!(f, "{condition} ? {yes} : {no}"),
        _ => Ok(()),
    }
}

fn joined(f: &mut fmt::Formatter<'_>, parts: &[Expr], between: &str) -> fmt::Result {
    for (place, part) in parts.iter().enumerate() {
        if place > 0 {
            f.write_str(between)?;
        }
        write!(f, "{part}")?;
    }
    Ok(())
}
