//! Rules, as their XML has them.

use lazuli_bus_shape::filter::{Action, CorrelationFilter, Filter, Value};
use lazuli_bus_shape::{DEFAULT_RULE, Rule};
use lazuli_http::date::{Fraction, TICKS_PER_MILLI, format_iso8601, parse_iso8601};
use lazuli_http::xml::{self, Element};

use super::{CORRELATED, duration, entry};
use crate::error::{Fault, from_core};

type Result<T> = std::result::Result<T, Fault>;

/// Reads a rule. Its name is that of the path, or else its own.
pub(super) fn read(element: &Element, name: Option<&str>) -> Result<Rule> {
    let own = element.child_text("Name");
    let name = name.or(own).unwrap_or(DEFAULT_RULE).to_owned();
    let filter = element.child("Filter").map_or(Ok(Filter::True), filter)?;
    let action = element.child("Action").map(action).transpose()?.flatten();
    Ok(Rule { name, filter, action, created_ms: 0 })
}

fn filter(element: &Element) -> Result<Filter> {
    let expression = || element.child_text("SqlExpression").unwrap_or_default();
    if element.child("Parameters").is_some_and(|it| !it.children.is_empty()) {
        return Err(Fault::argument("Parameters of SQL filters are not supported."));
    }
    match element.kind.as_deref() {
        Some("TrueFilter") | None => Ok(Filter::True),
        Some("FalseFilter") => Ok(Filter::False),
        Some("SqlFilter") => Filter::sql(expression()).map_err(from_core),
        Some("CorrelationFilter") => correlation(element).map(Filter::Correlation),
        Some(other) => Err(Fault::argument(format!("There is no filter of the type {other}."))),
    }
}

fn correlation(element: &Element) -> Result<CorrelationFilter> {
    let mut found = CorrelationFilter::default();
    for (name, property) in CORRELATED {
        if let Some(text) =
            element.child(name).map(|it| it.text.clone()).filter(|it| !it.is_empty())
        {
            found.system.push((property, text));
        }
    }
    let pairs = element.child("Properties").map(|it| it.children.as_slice()).unwrap_or_default();
    for pair in pairs {
        let key = pair.child_text("Key").unwrap_or_default().to_owned();
        let Some(element) = pair.child("Value") else { continue };
        found.properties.push((key, value(element)?));
    }
    Ok(found)
}

fn value(element: &Element) -> Result<Value> {
    let text = element.text.as_str();
    let kind = element.kind.as_deref().unwrap_or("string");
    let value = match kind {
        "string" | "char" => Some(Value::text(text)),
        "int" | "long" | "short" | "byte" | "unsignedByte" | "unsignedShort" | "unsignedInt"
        | "unsignedLong" => text.trim().parse().ok().map(Value::Integer),
        "double" | "float" | "decimal" => text.trim().parse().ok().map(Value::Double),
        "boolean" => match text.trim() {
            "true" | "1" => Some(Value::Boolean(true)),
            "false" | "0" => Some(Value::Boolean(false)),
            _ => None,
        },
        "dateTime" => parse_iso8601(text.trim()).map(|it| Value::DateTime(it / TICKS_PER_MILLI)),
        "duration" => {
            let millis = duration::parse(text).and_then(|it| i64::try_from(it).ok());
            millis.map(|it| Value::Duration(it.saturating_mul(TICKS_PER_MILLI)))
        }
        _ => None,
    };
    value.ok_or_else(|| Fault::argument(format!("'{text}' is no value of the type {kind}.")))
}

fn action(element: &Element) -> Result<Option<Action>> {
    match element.kind.as_deref() {
        Some("SqlRuleAction") => {
            let text = element.child_text("SqlExpression").unwrap_or_default();
            Action::parse(text).map(Some).map_err(from_core)
        }
        _ => Ok(None),
    }
}

/// Writes what is inside of a rule's description.
pub(super) fn write(rule: &Rule) -> String {
    let mut out = String::new();
    let sql = |out: &mut String, text: &str| {
        xml::write(out, "SqlExpression", text);
        xml::write(out, "CompatibilityLevel", "20");
    };
    match &rule.filter {
        Filter::True => {
            out.push_str("<Filter i:type=\"TrueFilter\">");
            sql(&mut out, "1=1");
        }
        Filter::False => {
            out.push_str("<Filter i:type=\"FalseFilter\">");
            sql(&mut out, "1=0");
        }
        Filter::Sql(filter) => {
            out.push_str("<Filter i:type=\"SqlFilter\">");
            sql(&mut out, filter.text());
        }
        Filter::Correlation(filter) => {
            out.push_str("<Filter i:type=\"CorrelationFilter\">");
            write_correlation(&mut out, filter);
        }
    }
    out.push_str("</Filter>");
    match &rule.action {
        Some(action) => {
            out.push_str("<Action i:type=\"SqlRuleAction\">");
            sql(&mut out, action.text());
            out.push_str("</Action>");
        }
        None => out.push_str("<Action i:type=\"EmptyRuleAction\"></Action>"),
    }
    xml::write(&mut out, "CreatedAt", &entry::moment(rule.created_ms));
    xml::write(&mut out, "Name", &rule.name);
    out
}

fn write_correlation(out: &mut String, filter: &CorrelationFilter) {
    for (name, property) in CORRELATED {
        if let Some((_, value)) = filter.system.iter().find(|(it, _)| *it == property) {
            xml::write(out, name, value);
        }
    }
    if filter.properties.is_empty() {
        return;
    }
    xml::open(out, "Properties");
    for (key, value) in &filter.properties {
        let (kind, text) = typed(value);
        xml::open(out, "KeyValueOfstringanyType");
        xml::write(out, "Key", key);
        out.push_str(&format!(
            "<Value i:type=\"d6p1:{kind}\" xmlns:d6p1=\"http://www.w3.org/2001/XMLSchema\">"
        ));
        xml::write_text(out, &text);
        out.push_str("</Value>");
        xml::close(out, "KeyValueOfstringanyType");
    }
    xml::close(out, "Properties");
}

fn typed(value: &Value) -> (&'static str, String) {
    match value {
        Value::Boolean(value) => ("boolean", value.to_string()),
        Value::Integer(value) => match i32::try_from(*value) {
            Ok(value) => ("int", value.to_string()),
            Err(_) => ("long", value.to_string()),
        },
        Value::Double(value) => ("double", value.to_string()),
        Value::Text(value) => ("string", value.clone()),
        Value::DateTime(millis) => {
            let ticks = millis.saturating_mul(TICKS_PER_MILLI);
            ("dateTime", format_iso8601(ticks, Fraction::Seven))
        }
        Value::Duration(ticks) => {
            let millis = u64::try_from(ticks / TICKS_PER_MILLI).unwrap_or_default();
            ("duration", duration::print(millis))
        }
        Value::Uuid(bytes) => {
            let number = u128::from_be_bytes(*bytes);
            ("string", format!("{number:032x}"))
        }
        Value::Binary(bytes) => ("string", String::from_utf8_lossy(bytes).into_owned()),
    }
}
