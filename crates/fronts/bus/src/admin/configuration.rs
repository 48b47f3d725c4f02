//! The emulators' `Config.json`: entities and hubs that are to be there when the server starts.
//!
//! What is there already stays as it is, with its messages; so the same file can be read at every start. The names of the
//! file's namespaces do not matter: its entities are made in the namespace that the caller names, as the emulator has one.

use lazuli_bus_shape::{Bus, EntityKind};
use lazuli_engine::Kind;
use lazuli_http::xml::Element;
use lazuli_log::{HubSettings, Logs};
use serde_json::Value as Json;

use super::{description, rule};
use crate::error::Fault;

/// The longest file.
const CONFIGURATION_BYTES_MAX: usize = 4 * 1024 * 1024;

type Result<T> = std::result::Result<T, String>;

/// Makes the entities of a `Config.json` that are not there yet, and says how many it made.
pub async fn configure(bus: &Bus, namespace: &str, text: &str) -> Result<usize> {
    if text.len() > CONFIGURATION_BYTES_MAX {
        return Err("the file is too long".to_owned());
    }
    let json: Json = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let namespaces = json.pointer("/UserConfig/Namespaces").and_then(Json::as_array);
    let namespaces = namespaces.ok_or("it has no UserConfig.Namespaces")?;
    let mut made = 0;
    // Topics first and what forwards last, so that targets are there.
    for forwards in [false, true] {
        for space in namespaces {
            for (list, kind) in [("Queues", EntityKind::Queue), ("Topics", EntityKind::Topic)] {
                for entity in array(space, list) {
                    made += usize::from(make(bus, namespace, entity, kind, forwards).await?);
                }
            }
        }
    }
    Ok(made)
}

/// Makes the hubs of the Event Hubs emulator's `Config.json` that are not there yet, with their consumer groups, and says
/// how many hubs it made.
pub async fn configure_hubs(logs: &Logs, namespace: &str, text: &str) -> Result<usize> {
    if text.len() > CONFIGURATION_BYTES_MAX {
        return Err("the file is too long".to_owned());
    }
    let json: Json = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let namespaces = json.pointer("/UserConfig/NamespaceConfig").and_then(Json::as_array);
    let namespaces = namespaces.ok_or("it has no UserConfig.NamespaceConfig")?;
    let mut made = 0;
    for hub in namespaces.iter().flat_map(|space| array(space, "Entities")) {
        let name = name_of(hub)?;
        let count = hub.get("PartitionCount");
        // The emulator's own files write the number as a text.
        let count = count.and_then(|it| it.as_u64().or_else(|| it.as_str()?.parse().ok()));
        let count = count.and_then(|count| u32::try_from(count).ok());
        let count = count.ok_or_else(|| format!("'{name}' has no PartitionCount"))?;
        let new = logs.create_hub(namespace, name, &HubSettings::new(count)).await;
        made += usize::from(created(new, name)?);
        for group in array(hub, "ConsumerGroups") {
            let group = name_of(group)?;
            let added = logs.add_group(namespace, name, group).await;
            added.map_err(|error| format!("'{name}': {error}"))?;
        }
    }
    Ok(made)
}

fn array<'a>(json: &'a Json, name: &str) -> &'a [Json] {
    json.get(name).and_then(Json::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn name_of(json: &Json) -> Result<&str> {
    json.get("Name").and_then(Json::as_str).ok_or_else(|| "something has no Name".to_owned())
}

/// The properties of an entity as the elements that its description has in XML.
fn properties(json: &Json) -> Element {
    let mut element = Element::default();
    let properties = json.get("Properties").and_then(Json::as_object);
    for (name, value) in properties.into_iter().flatten() {
        let text = match value {
            Json::String(text) => text.clone(),
            Json::Bool(flag) => flag.to_string(),
            Json::Number(number) => number.to_string(),
            _ => continue,
        };
        element.children.push(Element { name: name.clone(), text, ..Element::default() });
    }
    element
}

fn said(name: &str) -> impl Fn(Fault) -> String + '_ {
    move |fault| format!("'{name}': {}", fault.description)
}

async fn make(
    bus: &Bus,
    namespace: &str,
    json: &Json,
    kind: EntityKind,
    forwards: bool,
) -> Result<bool> {
    let name = name_of(json)?;
    let new = lazuli_bus_shape::Description::queue();
    let new = description::read(&properties(json), new).map_err(said(name))?;
    let mut is_new = false;
    let is_turn = forwards == (new.forward_to.is_some() || new.forward_dead_letters_to.is_some());
    if is_turn {
        is_new = created(bus.create_entity(namespace, kind, name, new).await, name)?;
    }
    for subscription in array(json, "Subscriptions") {
        make_subscription(bus, namespace, name, subscription, forwards).await?;
    }
    Ok(is_new)
}

/// Whether it was made now. What is there already stays.
fn created<T>(made: lazuli_engine::Result<T>, name: &str) -> Result<bool> {
    match made {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == Kind::Exists => Ok(false),
        Err(error) => Err(format!("'{name}': {error}")),
    }
}

async fn make_subscription(
    bus: &Bus,
    namespace: &str,
    topic: &str,
    json: &Json,
    forwards: bool,
) -> Result<()> {
    let name = name_of(json)?;
    let new = lazuli_bus_shape::Description::subscription();
    let new = description::read(&properties(json), new).map_err(said(name))?;
    if forwards != (new.forward_to.is_some() || new.forward_dead_letters_to.is_some()) {
        return Ok(());
    }
    let mut rules = Vec::new();
    for rule in array(json, "Rules") {
        rules.push(read_rule(rule)?);
    }
    let mut rules = rules.into_iter();
    let made = bus.create_subscription(namespace, topic, name, new, rules.next()).await;
    if created(made, name)? {
        for rule in rules {
            created(bus.create_rule(namespace, topic, name, rule).await, name)?;
        }
    }
    Ok(())
}

/// A rule, as the element that it is in XML.
fn read_rule(json: &Json) -> Result<lazuli_bus_shape::Rule> {
    let name = name_of(json)?;
    let nothing = Json::Null;
    let properties = json.get("Properties").unwrap_or(&nothing);
    let kind = properties.get("FilterType").and_then(Json::as_str).unwrap_or_default();
    let text = |json: &Json, name: &str| {
        let text = json.get(name).and_then(Json::as_str).unwrap_or_default().to_owned();
        Element { name: name.to_owned(), text, ..Element::default() }
    };
    let mut filter = Element { name: "Filter".to_owned(), ..Element::default() };
    match kind.to_ascii_lowercase().as_str() {
        "sql" | "sqlfilter" => {
            filter.kind = Some("SqlFilter".to_owned());
            let sql = properties.get("SqlFilter").unwrap_or(&nothing);
            filter.children.push(text(sql, "SqlExpression"));
        }
        "correlation" | "correlationfilter" => {
            filter.kind = Some("CorrelationFilter".to_owned());
            let correlation = properties.get("CorrelationFilter").unwrap_or(&nothing);
            for (property, _) in super::CORRELATED {
                filter.children.push(text(correlation, property));
            }
            filter.children.push(pairs(correlation.get("Properties")));
        }
        // The emulator drops such a rule without a word.
        other => return Err(format!("rule '{name}': there is no FilterType '{other}'")),
    }
    let mut children = vec![filter];
    if let Some(action) = properties.get("Action").filter(|it| it.get("SqlExpression").is_some()) {
        children.push(Element {
            name: "Action".to_owned(),
            kind: Some("SqlRuleAction".to_owned()),
            children: vec![text(action, "SqlExpression")],
            ..Element::default()
        });
    }
    let element = Element { children, ..Element::default() };
    rule::read(&element, Some(name)).map_err(said(name))
}

/// Properties of a correlation as the pairs that they are in XML.
fn pairs(json: Option<&Json>) -> Element {
    let mut element = Element { name: "Properties".to_owned(), ..Element::default() };
    for (key, value) in json.and_then(Json::as_object).into_iter().flatten() {
        let (kind, text) = match value {
            Json::Bool(flag) => ("boolean", flag.to_string()),
            Json::Number(number) if number.is_i64() => ("long", number.to_string()),
            Json::Number(number) => ("double", number.to_string()),
            Json::String(text) => ("string", text.clone()),
            _ => continue,
        };
        let key = Element { name: "Key".to_owned(), text: key.clone(), ..Element::default() };
        let kind = Some(kind.to_owned());
        let value = Element { name: "Value".to_owned(), text, kind, ..Element::default() };
        element.children.push(Element { children: vec![key, value], ..Element::default() });
    }
    element
}
