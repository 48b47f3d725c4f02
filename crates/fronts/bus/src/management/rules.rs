//! Requests about the rules of a subscription.

use lazuli_amqp::{Map, Value};
use lazuli_bus_shape::filter::{Action, CorrelationFilter, Filter};
use lazuli_bus_shape::{Rule, SystemProperty};

use super::Call;
use crate::error::{Fault, Result, from_core};
use crate::message::{from_amqp, to_amqp};
use crate::request::Reply;

const RULE: u64 = 0x0137_0000_0004;
const EMPTY_ACTION: u64 = 0x0137_0000_0005;
const SQL_ACTION: u64 = 0x0137_0000_0006;
const SQL_FILTER: u64 = 0x0013_7000_0006;
const TRUE_FILTER: u64 = 0x0013_7000_0007;
const FALSE_FILTER: u64 = 0x0013_7000_0008;
const CORRELATION_FILTER: u64 = 0x0013_7000_0009;

/// The level of compatibility that the service gives to SQL filters.
const COMPATIBILITY: i32 = 20;

/// The conditions of a correlation filter on the service's own properties, in the order of the list that describes one.
const CONDITIONS: [(&str, SystemProperty); 8] = [
    ("correlation-id", SystemProperty::CorrelationId),
    ("message-id", SystemProperty::MessageId),
    ("to", SystemProperty::To),
    ("reply-to", SystemProperty::ReplyTo),
    ("label", SystemProperty::Label),
    ("session-id", SystemProperty::SessionId),
    ("reply-to-session-id", SystemProperty::ReplyToSessionId),
    ("content-type", SystemProperty::ContentType),
];

/// The topic and the subscription that the request is about.
fn subscription<'c>(call: &'c Call<'_>) -> Result<(&'c str, &'c str)> {
    let address = call.endpoint.address();
    let name = address.subscription.as_deref();
    let name = name.ok_or_else(|| Fault::argument("Only subscriptions have rules."))?;
    Ok((&address.entity, name))
}

pub(super) async fn add(call: &Call<'_>) -> Result<Reply> {
    let (topic, name) = subscription(call)?;
    let rule = read(call)?;
    call.bus.create_rule(&call.namespace, topic, name, rule).await.map_err(from_core)?;
    Ok(Reply::ok(Map::default()))
}

pub(super) async fn remove(call: &Call<'_>) -> Result<Reply> {
    let (topic, name) = subscription(call)?;
    let rule = call.text("rule-name").ok_or_else(|| Fault::argument("rule-name is missing."))?;
    call.bus.delete_rule(&call.namespace, topic, name, rule).await.map_err(from_core)?;
    Ok(Reply::ok(Map::default()))
}

pub(super) async fn list(call: &Call<'_>) -> Result<Reply> {
    let (topic, name) = subscription(call)?;
    let skip = call.map.integer("skip").and_then(|skip| usize::try_from(skip).ok()).unwrap_or(0);
    let top = call.count("top")?;
    let page = call.bus.rules(&call.namespace, topic, name, skip, top).await;
    let page = page.map_err(from_core)?;
    if page.items.is_empty() {
        return Ok(Reply::nothing());
    }
    let rules = page
        .items
        .iter()
        .map(|rule| Value::Map(Map::default().with_text("rule-description", describe(rule))));
    Ok(Reply::ok(Map::default().with_text("rules", Value::List(rules.collect()))))
}

fn read(call: &Call<'_>) -> Result<Rule> {
    let name = call.text("rule-name").ok_or_else(|| Fault::argument("rule-name is missing."))?;
    let description = call.map.get("rule-description").and_then(Value::as_map);
    let description = description.ok_or_else(|| Fault::argument("rule-description is missing."))?;
    let part = |name: &str| description.get(name).and_then(Value::as_map);
    let filter = match (part("sql-filter"), part("correlation-filter")) {
        (Some(sql), _) => Filter::sql(sql.text("expression").unwrap_or_default()),
        (None, Some(correlation)) => Ok(Filter::Correlation(read_correlation(correlation)?)),
        (None, None) => Err(lazuli_engine::Error::invalid("no-filter", "The rule has no filter.")),
    };
    let action = part("sql-rule-action").and_then(|action| action.text("expression"));
    let action = action.filter(|text| !text.trim().is_empty()).map(Action::parse).transpose();
    Ok(Rule {
        name: name.to_owned(),
        filter: filter.map_err(from_core)?,
        action: action.map_err(from_core)?,
        created_ms: crate::now_ms(),
    })
}

fn read_correlation(map: &Map) -> Result<CorrelationFilter> {
    let condition = |(name, property): &(&str, SystemProperty)| {
        map.text(name).map(|text| (*property, text.to_owned()))
    };
    let mut properties = Vec::new();
    for (name, value) in map.get("properties").and_then(Value::as_map).iter().flat_map(|it| &it.0) {
        let read = name.as_text().zip(from_amqp(value));
        let (name, value) =
            read.ok_or_else(|| Fault::argument("A property of the filter has no usable value."))?;
        properties.push((name.to_owned(), value));
    }
    Ok(CorrelationFilter { system: CONDITIONS.iter().filter_map(condition).collect(), properties })
}

fn list_of(code: u64, fields: Vec<Value>) -> Value {
    Value::described(code, Value::List(fields))
}

fn describe(rule: &Rule) -> Value {
    let sql = |text: &str| vec![text.into(), COMPATIBILITY.into()];
    let filter = match &rule.filter {
        Filter::True => list_of(TRUE_FILTER, sql("1=1")),
        Filter::False => list_of(FALSE_FILTER, sql("1=0")),
        Filter::Sql(filter) => list_of(SQL_FILTER, sql(filter.text())),
        Filter::Correlation(correlation) => describe_correlation(correlation),
    };
    let action = match &rule.action {
        Some(action) => list_of(SQL_ACTION, sql(action.text())),
        None => list_of(EMPTY_ACTION, Vec::new()),
    };
    let created = Value::Timestamp(i64::try_from(rule.created_ms).unwrap_or(i64::MAX));
    list_of(RULE, vec![filter, action, rule.name.as_str().into(), created])
}

fn describe_correlation(filter: &CorrelationFilter) -> Value {
    let condition = |(_, property): &(&str, SystemProperty)| {
        let found = filter.system.iter().find(|(name, _)| name == property);
        Value::from(found.map(|(_, text)| text.as_str()))
    };
    let mut fields: Vec<Value> = CONDITIONS.iter().map(condition).collect();
    let properties = filter.properties.iter();
    let properties = properties.map(|(name, value)| (name.as_str().into(), to_amqp(value)));
    fields.push(Value::Map(Map(properties.collect())));
    list_of(CORRELATION_FILTER, fields)
}
