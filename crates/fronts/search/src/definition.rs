//! The JSON of an index as it is kept: what the client wrote, with the attributes that it left out.
//!
//! The service answers with every attribute of every field, and clients read them. What this server does not know is kept as
//! it came, so that it comes back unchanged.

use serde_json::{Map, Value};

use crate::cors;
use crate::error::{Fault, Result};

/// How deep fields may lie in one another.
const DEPTH_MAX: usize = 10;

/// Properties of an index that stand for lists, which the service answers as empty ones.
const LISTS: [&str; 6] =
    ["scoringProfiles", "suggesters", "analyzers", "tokenizers", "tokenFilters", "charFilters"];

/// Completes a definition. What is no object, or has annotations of the service in it, is put right or refused.
pub(crate) fn completed(body: Value) -> Result<Value> {
    let Value::Object(mut body) = body else {
        return Err(Fault::invalid("definition", "The definition must be a JSON object."));
    };
    body.retain(|name, _| !name.starts_with("@odata.") || name == "@odata.type");
    for list in LISTS {
        if body.get(list).is_none_or(Value::is_null) {
            body.insert(list.to_owned(), Value::Array(Vec::new()));
        }
    }
    if body.get("similarity").is_none_or(Value::is_null) {
        let similarity =
            serde_json::json!({ "@odata.type": "#Microsoft.Azure.Search.BM25Similarity" });
        body.insert("similarity".to_owned(), similarity);
    }
    if let Some(semantic) = body.get("semantic").filter(|it| !it.is_null())
        && semantic["configurations"].as_array().is_some_and(|all| !all.is_empty())
    {
        return Err(Fault::gap("Semantic configurations"));
    }
    if body.get("encryptionKey").is_some_and(|it| !it.is_null()) {
        return Err(Fault::gap("Customer-managed encryption keys"));
    }
    if let Some(Value::Array(fields)) = body.get_mut("fields") {
        fields.iter_mut().try_for_each(|field| complete_field(field, 1))?;
    }
    let body = Value::Object(body);
    cors::check(&body)?;
    Ok(body)
}

fn complete_field(field: &mut Value, depth: usize) -> Result<()> {
    let Value::Object(field) = field else { return Ok(()) };
    let kind = field.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
    let is_complex = kind == "Edm.ComplexType" || kind == "Collection(Edm.ComplexType)";
    if depth > DEPTH_MAX {
        return Err(Fault::invalid("fields", "Fields may be nested up to ten levels deep."));
    }
    if is_complex {
        if let Some(Value::Array(fields)) = field.get_mut("fields") {
            fields.iter_mut().try_for_each(|field| complete_field(field, depth + 1))?;
        }
        return Ok(());
    }
    let is_text = kind == "Edm.String" || kind == "Collection(Edm.String)";
    let is_vector = field.get("dimensions").is_some_and(|it| !it.is_null());
    let is_list = kind.starts_with("Collection(");
    let is_point = kind.contains("GeographyPoint");
    set(field, "searchable", is_text || is_vector);
    set(field, "filterable", !is_vector);
    set(field, "retrievable", true);
    set(field, "stored", true);
    set(field, "sortable", !is_list && !is_vector);
    set(field, "facetable", !is_point && !is_vector);
    set(field, "key", false);
    for name in ["indexAnalyzer", "searchAnalyzer", "analyzer", "normalizer"] {
        field.entry(name).or_insert(Value::Null);
    }
    field.entry("synonymMaps").or_insert_with(|| Value::Array(Vec::new()));
    Ok(())
}

fn set(field: &mut Map<String, Value>, name: &str, value: bool) {
    if field.get(name).is_none_or(Value::is_null) {
        field.insert(name.to_owned(), Value::Bool(value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn attributes_that_were_left_out_are_those_of_the_service() {
        let body = json!({"name": "a", "@odata.etag": "x", "own": 1, "fields": [
            {"name": "id", "type": "Edm.String", "key": true, "filterable": false},
            {"name": "tags", "type": "Collection(Edm.String)"},
            {"name": "place", "type": "Edm.GeographyPoint"},
            {"name": "address", "type": "Edm.ComplexType", "fields": [{"name": "zip", "type": "Edm.Int32"}]},
        ]});
        let body = completed(body).unwrap();
        assert_eq!(body["own"], 1);
        assert!(body.get("@odata.etag").is_none());
        let fields = &body["fields"];
        assert_eq!(fields[0]["filterable"], false);
        assert_eq!(fields[0]["searchable"], true);
        assert_eq!(fields[1]["sortable"], false);
        assert_eq!(fields[2]["facetable"], false);
        assert_eq!(fields[3]["fields"][0]["searchable"], false);
        assert!(fields[3].get("searchable").is_none());
    }

    #[test]
    fn what_is_not_supported_is_refused_and_not_ignored() {
        let semantic = json!({"name": "a", "semantic": {"configurations": [{"name": "s"}]}});
        assert!(completed(semantic).unwrap_err().message.contains("Semantic"));
        assert!(
            completed(json!({"name": "a", "encryptionKey": {"keyVaultKeyName": "k"}})).is_err()
        );
        assert!(completed(json!([])).is_err());
        assert!(completed(json!({"name": "a", "semantic": null})).is_ok());
    }
}
