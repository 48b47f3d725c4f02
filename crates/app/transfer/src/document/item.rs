//! Items as their text has them: properties in their order, each value as it was written, so that no number changes on its way.

use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

/// What the service adds to an item, and the change feed.
pub(super) const SYSTEM: [&str; 6] = ["_rid", "_self", "_etag", "_ts", "_attachments", "_lsn"];

/// An item: its properties in the order of the text.
#[derive(Debug)]
pub(super) struct Item(pub(super) Vec<(String, Box<RawValue>)>);

impl<'de> Deserialize<'de> for Item {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Properties;

        impl<'de> Visitor<'de> for Properties {
            type Value = Item;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Item, M::Error> {
                let mut properties = Vec::new();
                while let Some(one) = map.next_entry::<String, Box<RawValue>>()? {
                    properties.push(one);
                }
                Ok(Item(properties))
            }
        }

        from.deserialize_map(Properties)
    }
}

impl Item {
    pub(super) fn parse(text: &[u8]) -> Result<Self, String> {
        serde_json::from_slice(text).map_err(|error| format!("this is no JSON object: {error}"))
    }

    pub(super) fn get(&self, name: &str) -> Option<&RawValue> {
        let found = self.0.iter().rev().find(|(it, _)| it == name);
        found.map(|(_, value)| &**value)
    }

    pub(super) fn id(&self) -> Option<String> {
        serde_json::from_str(self.get("id")?.get()).ok()
    }

    /// The same without what the service adds.
    pub(super) fn plain(mut self) -> Self {
        self.0.retain(|(name, _)| !SYSTEM.contains(&name.as_str()));
        self
    }

    pub(super) fn text(&self) -> Vec<u8> {
        let mut out = vec![b'{'];
        for (nth, (name, value)) in self.0.iter().enumerate() {
            if nth > 0 {
                out.push(b',');
            }
            out.extend_from_slice(Value::String(name.clone()).to_string().as_bytes());
            out.push(b':');
            out.extend_from_slice(value.get().as_bytes());
        }
        out.push(b'}');
        out
    }

    /// Whether both are the same item but for what the service adds. The order of properties counts for nothing.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let value = |item: &Self| -> Option<Value> { serde_json::from_slice(&item.text()).ok() };
        let plain = |item: &Self| match value(item) {
            Some(Value::Object(mut object)) => {
                object.retain(|name, _| !SYSTEM.contains(&name.as_str()));
                Some(object)
            }
            _ => None,
        };
        plain(self).is_some() && plain(self) == plain(other)
    }
}

/// The paths of a partition key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KeyPaths(Vec<Vec<String>>);

impl KeyPaths {
    /// Reads `/a/b`; a name with a slash in it stands between quotation marks.
    pub(super) fn parse(paths: &[String]) -> Result<Self, String> {
        let path = |text: &String| {
            let wrong = || format!("`{text}` is no path such as /customer or /address/city");
            let mut rest = text.as_str();
            let mut names = Vec::new();
            while !rest.is_empty() {
                rest = rest.strip_prefix('/').ok_or_else(wrong)?;
                let (name, behind) = match rest.strip_prefix('"') {
                    Some(quoted) => {
                        let (name, behind) = quoted.split_once('"').ok_or_else(wrong)?;
                        (name, behind)
                    }
                    None => rest.split_at(rest.find('/').unwrap_or(rest.len())),
                };
                if name.is_empty() {
                    return Err(wrong());
                }
                names.push(name.to_owned());
                rest = behind;
            }
            if names.is_empty() { Err(wrong()) } else { Ok(names) }
        };
        paths.iter().map(path).collect::<Result<_, _>>().map(Self)
    }

    /// The paths as the service writes them.
    pub(super) fn texts(&self) -> Vec<String> {
        let name =
            |name: &String| match name.chars().all(|sign| sign.is_alphanumeric() || sign == '_') {
                true => format!("/{name}"),
                false => format!("/\"{name}\""),
            };
        self.0.iter().map(|path| path.iter().map(name).collect()).collect()
    }

    /// The key of an item, as the header of a request has it.
    pub(super) fn of(&self, item: &Item) -> Result<String, String> {
        let values: Vec<Value> = self.0.iter().map(|path| value_at(item, path)).collect();
        if let Some(at) = values.iter().position(|value| value.is_array() || is_nested(value)) {
            let path = self.0[at].join("/");
            return Err(format!("/{path} is an array or an object, and cannot be a partition key"));
        }
        Ok(ascii(&Value::Array(values)))
    }
}

fn is_nested(value: &Value) -> bool {
    value.as_object().is_some_and(|object| !object.is_empty())
}

/// The value at a path; an empty object, which stands for none, if there is nothing.
fn value_at(item: &Item, path: &[String]) -> Value {
    let none = || Value::Object(serde_json::Map::new());
    let Some((first, rest)) = path.split_first() else { return none() };
    let raw = item.get(first).and_then(|raw| serde_json::from_str::<Value>(raw.get()).ok());
    let found = rest.iter().try_fold(raw.unwrap_or_else(none), |value, name| match value {
        Value::Object(mut object) => object.remove(name.as_str()),
        _ => None,
    });
    match found {
        // One that is there and empty is no key either, but must not pass for none.
        Some(Value::Object(object)) if object.is_empty() && item.get(first).is_some() => {
            Value::Array(Vec::new())
        }
        found => found.unwrap_or_else(none),
    }
}

/// JSON that can stand in a header.
fn ascii(value: &Value) -> String {
    let mut out = String::new();
    for sign in value.to_string().chars() {
        if sign.is_ascii() {
            out.push(sign);
        } else {
            let mut units = [0; 2];
            for unit in sign.encode_utf16(&mut units) {
                out.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(text: &str) -> Item {
        Item::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn items_keep_their_order_and_their_numbers() {
        let text = r#"{"z":1.10,"a":{"b":[1e3]},"id":"x","n":12345678901234567890}"#;
        assert_eq!(String::from_utf8(item(text).text()).unwrap(), text);
        let system = item(r#"{"_rid":"r","id":"1","_ts":1,"a":2,"_etag":"e"}"#).plain();
        assert_eq!(system.text(), br#"{"id":"1","a":2}"#);
        assert!(item(r#"{"a":1,"b":2,"_ts":1}"#).is_same(&item(r#"{"b":2,"a":1,"_ts":2}"#)));
        assert!(!item(r#"{"a":1}"#).is_same(&item(r#"{"a":2}"#)));
        assert!(Item::parse(b"[1]").is_err() && Item::parse(b"{").is_err());
    }

    #[test]
    fn keys_are_found_at_their_paths() {
        let paths = |all: &[&str]| {
            let all: Vec<String> = all.iter().map(|one| (*one).to_owned()).collect();
            KeyPaths::parse(&all)
        };
        let one = item(r#"{"id":"1","a":{"b c":"ü"},"n":7,"l":[1],"o":{}}"#);
        let key = |all: &[&str]| paths(all).unwrap().of(&one);
        assert_eq!(key(&["/n"]).unwrap(), "[7]");
        assert_eq!(key(&["/a/\"b c\"", "/n"]).unwrap(), r#"["\u00fc",7]"#);
        assert_eq!(key(&["/none"]).unwrap(), "[{}]");
        assert_eq!(key(&["/n/below"]).unwrap(), "[{}]");
        assert!(key(&["/l"]).is_err() && key(&["/a"]).is_err() && key(&["/o"]).is_err());
        for bad in ["", "a", "/", "//a", "/\"a"] {
            assert!(paths(&[bad]).is_err(), "{bad}");
        }
    }
}
