//! The definition of a container as clients write it: checked, with the service's defaults for what is left out.

use lazuli_shapes::document::{IndexingPolicy, KeyKind, NewDefinition, Path};
use lazuli_value::{Object, Value};

use crate::error::{Fault, Result};
use crate::limits::KEY_PATHS_MAX;
use crate::query;

/// What a client may say of a container beside its id. Everything else is refused with its name, so that nothing is
/// silently without effect.
const KNOWN: &[&str] = &[
    "id",
    "partitionKey",
    "indexingPolicy",
    "uniqueKeyPolicy",
    "conflictResolutionPolicy",
    "defaultTtl",
    "ttlPropertyPath",
    "analyticalStorageTtl",
    "geospatialConfig",
    "computedProperties",
    "vectorEmbeddingPolicy",
    "fullTextPolicy",
    "changeFeedPolicy",
    "clientEncryptionPolicy",
    "partitionKeyDefinition",
    "createMode",
    "schemaDiscoveryPolicy",
    "materializedViewDefinition",
    "dataMaskingPolicy",
    "statistics",
    "lastModified",
];
/// The path of containers that are created without a partition key.
const SYSTEM_KEY: &str = "/_partitionKey";
/// The most computed properties of a container.
const COMPUTED_MAX: usize = 20;
const SECONDS_PER_MINUTE: u64 = 60;

/// A checked definition: what the shape takes, and what clients are shown.
#[derive(Debug)]
pub(crate) struct Checked {
    pub(crate) new: NewDefinition,
    pub(crate) body: Object,
}

/// Checks the definition of a new container.
pub(crate) fn check(given: &Object) -> Result<Checked> {
    if let Some((name, _)) =
        given.iter().find(|(name, _)| !name.starts_with('_') && !KNOWN.contains(&name.as_str()))
    {
        return Err(Fault::bad_request(format!(
            "The property '{name}' of a container is unknown."
        )));
    }
    let mut body = Object::new();
    body.insert("id", given.get("id").cloned().unwrap_or(Value::Null));
    let indexing = given.get("indexingPolicy").filter(|value| **value != Value::Null);
    let indexing = indexing.map_or(Ok(IndexingPolicy::default()), IndexingPolicy::from_value)?;
    body.insert("indexingPolicy", shown_policy(&indexing, given.get("indexingPolicy")));
    let (paths, kind, key) = partition_key(given.get("partitionKey"))?;
    body.insert("partitionKey", key);
    let unique = unique_keys(given.get("uniqueKeyPolicy"))?;
    if let Some(policy) = given.get("uniqueKeyPolicy").filter(|value| **value != Value::Null) {
        body.insert("uniqueKeyPolicy", policy.clone());
    }
    body.insert("conflictResolutionPolicy", conflicts(given.get("conflictResolutionPolicy"))?);
    let geospatial = given.get("geospatialConfig").filter(|value| **value != Value::Null);
    body.insert("geospatialConfig", geospatial.cloned().unwrap_or_else(|| of("type", "Geography")));
    let ttl_s = ttl(given.get("defaultTtl"))?;
    if let Some(ttl) = ttl_s {
        body.insert("defaultTtl", ttl.into());
    }
    computed(given)?;
    let kept = change_feed(given.get("changeFeedPolicy"))?;
    for name in [
        "computedProperties",
        "vectorEmbeddingPolicy",
        "fullTextPolicy",
        "changeFeedPolicy",
        "clientEncryptionPolicy",
        "analyticalStorageTtl",
    ] {
        if let Some(value) = given.get(name).filter(|value| **value != Value::Null) {
            body.insert(name, value.clone());
        }
    }
    let new = NewDefinition {
        key_paths: paths,
        key_kind: kind,
        indexing,
        unique_keys: unique,
        ttl_s,
        versions_kept_s: kept,
    };
    Ok(Checked { new, body })
}

/// A policy as clients see it: what they wrote, and for the rest what is in force.
fn shown_policy(policy: &IndexingPolicy, given: Option<&Value>) -> Value {
    let Value::Object(mut shown) = policy.to_value() else { return Value::Null };
    if let Some(Value::Object(given)) = given {
        for (name, value) in given.iter().filter(|(name, _)| name != "indexingMode") {
            shown.insert(name.clone(), value.clone());
        }
    }
    // The service writes the one path that it excludes by itself with quotation marks.
    let is_given =
        matches!(given, Some(Value::Object(given)) if given.get("excludedPaths").is_some());
    if policy.is_on() && !is_given {
        shown.insert("excludedPaths", Value::Array(vec![of("path", "/\"_etag\"/?")]));
    }
    Value::Object(shown)
}

/// Refuses a change of what is fixed when a container is created.
pub(crate) fn check_change(before: &Object, after: &Object) -> Result<()> {
    for name in ["id", "partitionKey", "uniqueKeyPolicy"] {
        if before.get(name) != after.get(name) {
            return Err(Fault::bad_request(format!(
                "The property '{name}' of a container cannot be changed once it is created."
            )));
        }
    }
    Ok(())
}

fn of(name: &str, value: impl Into<Value>) -> Value {
    let mut object = Object::new();
    object.insert(name, value.into());
    Value::Object(object)
}

type PartitionKey = (Vec<Path>, KeyKind, Value);

fn partition_key(given: Option<&Value>) -> Result<PartitionKey> {
    let bad = |what: &str| Fault::bad_request(format!("The partition key is not valid: {what}."));
    let given = match given {
        None | Some(Value::Null) => return key_of(vec![SYSTEM_KEY.into()], KeyKind::V2, true),
        Some(Value::Object(given)) => given,
        Some(_) => return Err(bad("it must be an object")),
    };
    let Some(Value::Array(paths)) = given.get("paths") else {
        return Err(bad("it needs an array 'paths'"));
    };
    let text = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        _ => None,
    };
    let paths: Option<Vec<String>> = paths.iter().map(text).collect();
    let paths = paths.filter(|paths| (1..=KEY_PATHS_MAX).contains(&paths.len()));
    let paths = paths.ok_or_else(|| bad("it has one to three paths"))?;
    let version = match given.get("version") {
        None | Some(Value::Null) => None,
        Some(Value::Int64(version @ 1..=2)) => Some(*version),
        Some(_) => return Err(bad("its version is 1 or 2")),
    };
    let kind = match given.get("kind").unwrap_or(&Value::Null) {
        Value::Null => "Hash",
        Value::String(kind) => kind.as_str(),
        _ => return Err(bad("its kind is a text")),
    };
    let kind = match (kind, version) {
        ("MultiHash", None | Some(2)) => KeyKind::Multi,
        ("MultiHash", _) => return Err(bad("a hierarchical key has version 2")),
        ("Hash", Some(2)) => KeyKind::V2,
        // Older clients leave the version out and mean the first.
        ("Hash", _) => KeyKind::V1,
        _ => return Err(bad("its kind is Hash or MultiHash")),
    };
    if kind != KeyKind::Multi && paths.len() > 1 {
        return Err(bad("several paths need the kind MultiHash"));
    }
    let is_system = given.get("systemKey") == Some(&Value::Bool(true));
    key_of(paths, kind, is_system)
}

fn key_of(paths: Vec<String>, kind: KeyKind, is_system: bool) -> Result<PartitionKey> {
    let parsed = paths.iter().map(|path| Path::parse(path)).collect::<std::result::Result<_, _>>();
    let parsed = parsed.map_err(|_| {
        Fault::bad_request("The partition key path must begin with a slash and name a property.")
    })?;
    let (name, version) = match kind {
        KeyKind::V1 => ("Hash", 1),
        KeyKind::V2 => ("Hash", 2),
        KeyKind::Multi => ("MultiHash", 2),
    };
    let mut shown = Object::new();
    shown.insert("paths", Value::Array(paths.into_iter().map(Value::String).collect()));
    shown.insert("kind", name.into());
    shown.insert("version", version.into());
    if is_system {
        shown.insert("systemKey", true.into());
    }
    Ok((parsed, kind, Value::Object(shown)))
}

fn unique_keys(given: Option<&Value>) -> Result<Vec<Vec<Path>>> {
    let bad = || Fault::bad_request("The unique key policy is not valid.");
    let given = match given {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Object(given)) => given,
        Some(_) => return Err(bad()),
    };
    let keys = match given.get("uniqueKeys") {
        None => return Ok(Vec::new()),
        Some(Value::Array(keys)) => keys,
        Some(_) => return Err(bad()),
    };
    let path = |path: &Value| match path {
        Value::String(path) => Path::parse(path).ok(),
        _ => None,
    };
    let key = |key: &Value| match key {
        Value::Object(key) => match key.get("paths") {
            Some(Value::Array(paths)) => paths.iter().map(path).collect::<Option<Vec<_>>>(),
            _ => None,
        },
        _ => None,
    };
    keys.iter().map(|one| key(one).filter(|paths| !paths.is_empty()).ok_or_else(bad)).collect()
}

fn conflicts(given: Option<&Value>) -> Result<Value> {
    let mut policy = Object::new();
    policy.insert("mode", "LastWriterWins".into());
    policy.insert("conflictResolutionPath", "/_ts".into());
    policy.insert("conflictResolutionProcedure", "".into());
    match given {
        None | Some(Value::Null) => {}
        Some(Value::Object(given)) => {
            for (name, value) in given.iter().filter(|(_, value)| *value != Value::Null) {
                policy.insert(name.clone(), value.clone());
            }
        }
        Some(_) => return Err(Fault::bad_request("The conflict resolution policy is not valid.")),
    }
    Ok(Value::Object(policy))
}

fn ttl(given: Option<&Value>) -> Result<Option<i64>> {
    match given {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Int64(ttl @ (-1 | 1..=0x7fff_ffff))) => Ok(Some(*ttl)),
        Some(_) => Err(Fault::bad_request(
            "The input ttl is invalid. Ensure to provide a nonzero positive integer less than or \
             equal to '2147483647', or '-1' which means never expire.",
        )),
    }
}

fn computed(given: &Object) -> Result<()> {
    match given.get("computedProperties") {
        None | Some(Value::Null) => Ok(()),
        Some(Value::Array(list)) if list.len() <= COMPUTED_MAX => {
            query::computed(&Value::Object(given.clone())).map(drop)
        }
        Some(_) => Err(Fault::bad_request("The computed properties are not valid.")),
    }
}

/// How long former versions are kept, in seconds.
fn change_feed(given: Option<&Value>) -> Result<u64> {
    let bad = || Fault::bad_request("The change feed policy is not valid.");
    let given = match given {
        None | Some(Value::Null) => return Ok(0),
        Some(Value::Object(given)) => given,
        Some(_) => return Err(bad()),
    };
    match given.get("retentionDuration") {
        None | Some(Value::Null) => Ok(0),
        // In minutes.
        Some(Value::Int64(minutes)) => {
            let minutes = u64::try_from(*minutes).map_err(|_| bad())?;
            Ok(minutes.saturating_mul(SECONDS_PER_MINUTE))
        }
        Some(_) => Err(bad()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(text: &str) -> Result<Checked> {
        match Value::from_json(text.as_bytes()).unwrap() {
            Value::Object(given) => check(&given),
            _ => panic!("{text}"),
        }
    }

    #[test]
    fn what_is_left_out_is_as_the_service_has_it() {
        let checked =
            checked(r#"{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}"#);
        let checked = checked.unwrap();
        let expected = concat!(
            r#"{"id":"c","indexingPolicy":{"indexingMode":"consistent","automatic":true,"#,
            r#""includedPaths":[{"path":"/*"}],"excludedPaths":[{"path":"/\"_etag\"/?"}]},"#,
            r#""partitionKey":{"paths":["/pk"],"kind":"Hash","version":2},"#,
            r#""conflictResolutionPolicy":{"mode":"LastWriterWins","conflictResolutionPath":"/_ts","#,
            r#""conflictResolutionProcedure":""},"geospatialConfig":{"type":"Geography"}}"#
        );
        assert_eq!(Value::Object(checked.body).to_json(), expected);
        assert_eq!((checked.new.key_kind, checked.new.ttl_s), (KeyKind::V2, None));
    }

    #[test]
    fn the_version_of_a_partition_key_is_the_first_unless_it_says_otherwise() {
        let kind = |key: &str| {
            checked(&format!(r#"{{"id":"c","partitionKey":{key}}}"#)).map(|it| it.new.key_kind)
        };
        assert_eq!(kind(r#"{"paths":["/a"]}"#), Ok(KeyKind::V1));
        assert_eq!(kind(r#"{"paths":["/a"],"kind":"Hash","version":2}"#), Ok(KeyKind::V2));
        assert_eq!(kind(r#"{"paths":["/a","/b"],"kind":"MultiHash"}"#), Ok(KeyKind::Multi));
        assert_eq!(kind("null"), Ok(KeyKind::V2));
        for bad in [
            "1",
            "{}",
            r#"{"paths":[]}"#,
            r#"{"paths":["/a","/b"]}"#,
            r#"{"paths":["a"]}"#,
            r#"{"paths":["/a"],"kind":"Range"}"#,
            r#"{"paths":["/a"],"version":3}"#,
            r#"{"paths":["/a","/b","/c","/d"],"kind":"MultiHash","version":2}"#,
        ] {
            assert!(kind(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_is_not_valid_is_refused() {
        for bad in [
            r#"{"id":"c","defaultTtl":0}"#,
            r#"{"id":"c","defaultTtl":"1"}"#,
            r#"{"id":"c","surprise":1}"#,
            r#"{"id":"c","uniqueKeyPolicy":{"uniqueKeys":[{}]}}"#,
            r#"{"id":"c","indexingPolicy":{"indexingMode":"odd"}}"#,
            r#"{"id":"c","computedProperties":[{"name":"a"}]}"#,
        ] {
            assert!(checked(bad).is_err(), "{bad}");
        }
    }
}
