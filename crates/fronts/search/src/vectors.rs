//! Vector queries of a search: lists of numbers that must be near to those of documents.

use lazuli_search_engine::{VectorFilterMode, VectorQuery, VectorThreshold};
use serde_json::{Map, Value};

use crate::error::{Fault, Result};

/// The most vector queries of one search.
const QUERIES_MAX: usize = 10;
/// The most numbers of a vector.
const DIMENSIONS_MAX: usize = 4_096;
/// The most neighbours that can be asked for.
const NEIGHBOURS_MAX: u64 = 10_000;
/// How many neighbours are found if the query does not say.
const NEIGHBOURS_DEFAULT: u64 = 50;

const KNOWN: [&str; 8] = [
    "kind",
    "vector",
    "k",
    "fields",
    "exhaustive",
    "weight",
    "kNearestNeighborsCount",
    "threshold",
];

pub(crate) fn read(body: &Map<String, Value>) -> Result<(Vec<VectorQuery>, VectorFilterMode)> {
    let mode = match body.get("vectorFilterMode").and_then(Value::as_str) {
        None => VectorFilterMode::default(),
        Some("preFilter") => VectorFilterMode::PreFilter,
        Some("postFilter") => VectorFilterMode::PostFilter,
        Some(_) => {
            let message = "The value of 'vectorFilterMode' must be preFilter or postFilter.";
            return Err(Fault::invalid("vectorFilterMode", message));
        }
    };
    let queries = match body.get("vectorQueries").filter(|it| !it.is_null()) {
        None => return Ok((Vec::new(), mode)),
        Some(Value::Array(queries)) if queries.len() <= QUERIES_MAX => queries,
        Some(_) => {
            let message =
                format!("'vectorQueries' must be an array of up to {QUERIES_MAX} queries.");
            return Err(Fault::invalid("vectorQueries", &message));
        }
    };
    Ok((queries.iter().map(query).collect::<Result<_>>()?, mode))
}

fn query(value: &Value) -> Result<VectorQuery> {
    let wrong = |message: &str| Fault::invalid("vectorQueries", message);
    let query = value.as_object().ok_or_else(|| wrong("A vector query must be an object."))?;
    match query.get("kind").and_then(Value::as_str) {
        Some("vector") => {}
        Some("text" | "imageUrl" | "imageBinary") => return Err(Fault::gap("Vectorizers")),
        _ => return Err(wrong("The property 'kind' of a vector query must be 'vector'.")),
    }
    let set = query.iter().filter(|(_, value)| !value.is_null());
    if let Some((name, _)) = set.into_iter().find(|(name, _)| !KNOWN.contains(&name.as_str())) {
        return Err(Fault::gap(&format!("Vector queries with '{name}'")));
    }
    let numbers = query.get("vector").and_then(Value::as_array);
    let numbers = numbers.filter(|it| !it.is_empty() && it.len() <= DIMENSIONS_MAX);
    let numbers = numbers.ok_or_else(|| wrong("'vector' must be an array of numbers."))?;
    let vector: Option<Vec<f32>> =
        numbers.iter().map(|number| number.as_f64().map(|it| it as f32)).collect();
    let vector = vector.filter(|all| all.iter().all(|number| number.is_finite()));
    let k = match query.get("k").or_else(|| query.get("kNearestNeighborsCount")) {
        None | Some(Value::Null) => Some(NEIGHBOURS_DEFAULT),
        Some(k) => k.as_u64().filter(|k| (1..=NEIGHBOURS_MAX).contains(k)),
    };
    let weight = match query.get("weight") {
        None | Some(Value::Null) => Some(1.0),
        Some(weight) => weight.as_f64().filter(|weight| *weight > 0.0),
    };
    Ok(VectorQuery {
        vector: vector.ok_or_else(|| wrong("'vector' must be an array of numbers."))?,
        k: k.and_then(|k| usize::try_from(k).ok())
            .ok_or_else(|| wrong(&format!("'k' must be a number from 1 to {NEIGHBOURS_MAX}.")))?,
        fields: query.get("fields").and_then(Value::as_str).unwrap_or_default().to_owned(),
        weight: weight.ok_or_else(|| wrong("'weight' must be a positive number."))? as f32,
        exhaustive: query.get("exhaustive").and_then(Value::as_bool).unwrap_or(false),
        threshold: threshold(query.get("threshold").unwrap_or(&Value::Null))?,
    })
}

fn threshold(value: &Value) -> Result<Option<VectorThreshold>> {
    if value.is_null() {
        return Ok(None);
    }
    let number = value["value"].as_f64().filter(|it| it.is_finite());
    match (value["kind"].as_str(), number) {
        (Some("vectorSimilarity"), Some(number)) => Ok(Some(VectorThreshold::Similarity(number))),
        (Some("searchScore"), Some(number)) => Ok(Some(VectorThreshold::Score(number))),
        _ => {
            let message = "'threshold' must have a number as 'value', and 'vectorSimilarity' or \
                           'searchScore' as 'kind'.";
            Err(Fault::invalid("vectorQueries", message))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read_one(query: Value) -> Result<VectorQuery> {
        let body = json!({ "vectorQueries": [query] });
        read(body.as_object().unwrap()).map(|(queries, _)| queries[0].clone())
    }

    #[test]
    fn vector_queries_are_read_with_their_defaults_and_refused_by_name() {
        let query = json!({"kind": "vector", "vector": [1, 0.5], "fields": "v", "k": 3});
        let query = read_one(query).unwrap();
        assert_eq!((query.k, query.weight, &query.vector[..]), (3, 1.0, &[1.0, 0.5][..]));
        let near = json!({"kind": "vectorSimilarity", "value": 0.8});
        let query = json!({"kind": "vector", "vector": [1], "threshold": near});
        let query = read_one(query).unwrap();
        assert_eq!(query.threshold, Some(VectorThreshold::Similarity(0.8)));
        for (query, what) in [
            (json!({"kind": "vector", "vector": [1], "threshold": {"kind": "x"}}), "'threshold'"),
            (json!({"kind": "vector", "vector": [1], "oversampling": 2}), "oversampling"),
            (json!({"kind": "text", "text": "x"}), "Vectorizers"),
            (json!({"kind": "vector", "vector": [1], "filterOverride": "x"}), "filterOverride"),
            (json!({"kind": "vector", "vector": []}), "'vector'"),
            (json!({"kind": "vector", "vector": ["1"]}), "'vector'"),
            (json!({"kind": "vector", "vector": [1], "k": 0}), "'k'"),
            (json!({"vector": [1]}), "'kind'"),
        ] {
            assert!(read_one(query).unwrap_err().message.contains(what), "{what}");
        }
    }
}
