//! A filter as text, with no more parentheses than it needs, so that what was within the limit of depth still is.

use lazuli_azure::odata::Value;
use lazuli_http::date::{Fraction, format_iso8601};

use crate::filter::{Comparison, Filter};

pub(super) fn filter(filter: &Filter) -> String {
    match filter {
        Filter::Any(terms) => join(terms, " or ", |term| matches!(term, Filter::Any(_))),
        Filter::All(terms) => join(terms, " and ", is_list),
        Filter::Not(term) => format!("not {}", enclosed(term, is_list)),
        Filter::Compare(name, comparison, literal) => {
            format!("{name} {} {}", word(*comparison), value(literal))
        }
        Filter::Constant(value) => value.to_string(),
    }
}

fn join(terms: &[Filter], word: &str, binds_less: impl Fn(&Filter) -> bool) -> String {
    terms.iter().map(|term| enclosed(term, &binds_less)).collect::<Vec<_>>().join(word)
}

fn enclosed(term: &Filter, binds_less: impl Fn(&Filter) -> bool) -> String {
    match binds_less(term) {
        true => format!("({})", filter(term)),
        false => filter(term),
    }
}

fn is_list(filter: &Filter) -> bool {
    matches!(filter, Filter::All(_) | Filter::Any(_))
}

fn word(comparison: Comparison) -> &'static str {
    match comparison {
        Comparison::Equal => "eq",
        Comparison::NotEqual => "ne",
        Comparison::Greater => "gt",
        Comparison::GreaterOrEqual => "ge",
        Comparison::Less => "lt",
        Comparison::LessOrEqual => "le",
    }
}

fn value(value: &Value<'_>) -> String {
    match value {
        Value::Binary(bytes) => {
            let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("X'{digits}'")
        }
        Value::Boolean(value) => value.to_string(),
        Value::DateTime(ticks) => {
            format!("datetime'{}'", format_iso8601(*ticks, Fraction::Shortest))
        }
        Value::Double(value) if value.is_infinite() => {
            if *value > 0.0 {
                "INF".to_owned()
            } else {
                "-INF".to_owned()
            }
        }
        Value::Double(value) => format!("{value:?}"),
        Value::Guid(guid) => format!("guid'{guid}'"),
        Value::Int32(value) => value.to_string(),
        Value::Int64(value) => format!("{value}L"),
        Value::String(text) => format!("'{}'", text.replace('\'', "''")),
    }
}
