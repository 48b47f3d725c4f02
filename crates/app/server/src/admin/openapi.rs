//! Serves the OpenAPI document in `docs/admin-api`.
//!
//! A test compares it with the routes, both ways. Wherever assertions are on, so in every test of a running server, each
//! answer is held to it too: its status, and the types and required fields of its JSON.

use lazuli_http::{Response, StatusCode};

/// The OpenAPI document, from which clients are written.
const DOCUMENT: &str = include_str!("../../../../../docs/admin-api/openapi.json");

pub(super) fn response() -> Response {
    Response::new(StatusCode::OK).with("content-type", "application/json").with_body(DOCUMENT)
}

#[cfg(debug_assertions)]
pub(super) use check::checked;

#[cfg(debug_assertions)]
mod check {
    use std::sync::LazyLock;

    use lazuli_http::Response;
    use serde_json::Value;

    use super::super::routes::Route;

    /// The longest answer that is checked.
    const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;

    pub(super) static PARSED: LazyLock<Value> =
        LazyLock::new(|| serde_json::from_str(super::DOCUMENT).expect("a test parses it"));

    /// The answer itself. Panics if it is not as the document says.
    pub(in crate::admin) async fn checked(route: &Route, mut response: Response) -> Response {
        let operation = &PARSED["paths"][route.path][route.method.to_ascii_lowercase()];
        if operation.is_null() {
            return response;
        }
        let status = response.status.as_u16();
        let answers = &operation["responses"];
        let stated = resolve(&answers[status.to_string()]);
        let is_any = status == 429 || status >= 500;
        let stated = if stated.is_null() && is_any { resolve(&answers["default"]) } else { stated };
        assert!(!stated.is_null(), "{} does not say that it answers {status}", route.name);
        let schema = &stated["content"]["application/json"]["schema"];
        let is_json =
            response.headers.get("content-type").is_some_and(|it| it == "application/json");
        assert_eq!(is_json, !schema.is_null(), "{} answers {status} as something else", route.name);
        if is_json {
            let bytes = response.body.collect(ANSWER_BYTES_MAX).await.unwrap_or_default();
            let value = serde_json::from_slice(&bytes).unwrap_or_default();
            let wrong = fault(&value, schema, "the answer");
            assert_eq!(wrong, None, "{} {status}: {value}", route.name);
            response.body = bytes.into();
        }
        response
    }

    pub(super) fn resolve(schema: &'static Value) -> &'static Value {
        match schema["$ref"].as_str().and_then(|link| link.strip_prefix('#')) {
            Some(place) => PARSED.pointer(place).unwrap_or(&Value::Null),
            None => schema,
        }
    }

    /// In what a value is not as its schema says: types, enumerations, required fields, items.
    pub(super) fn fault(value: &Value, schema: &'static Value, at: &str) -> Option<String> {
        let schema = resolve(schema);
        let types: Vec<&str> = match &schema["type"] {
            Value::Array(types) => types.iter().filter_map(Value::as_str).collect(),
            one => one.as_str().into_iter().collect(),
        };
        if !types.is_empty() && !types.iter().any(|name| is_of(value, name)) {
            return Some(format!("{at} is no {}", types.join(" or ")));
        }
        if schema["enum"].as_array().is_some_and(|words| !words.contains(value)) {
            return Some(format!("{at} is none of its words"));
        }
        let required = schema["required"].as_array().into_iter().flatten();
        for name in required.filter_map(Value::as_str) {
            if value.get(name).is_none() {
                return Some(format!("{at} has no {name}"));
            }
        }
        let fields = schema["properties"].as_object().into_iter().flatten();
        let field = |(name, schema): (&String, &'static Value)| {
            fault(value.get(name)?, schema, &format!("{at}.{name}"))
        };
        let items = value.as_array().into_iter().flatten();
        fields.filter_map(|(name, schema)| field((name, schema))).next().or_else(|| {
            items.filter_map(|item| fault(item, &schema["items"], &format!("{at}[]"))).next()
        })
    }

    fn is_of(value: &Value, name: &str) -> bool {
        match name {
            "string" => value.is_string(),
            "integer" => value.is_u64() || value.is_i64(),
            "number" => value.is_number(),
            "boolean" => value.is_boolean(),
            "array" => value.is_array(),
            "object" => value.is_object(),
            "null" => value.is_null(),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::{Value, json};

    use super::super::routes::{Access, all};
    use super::check::{PARSED, fault};

    /// What an operation in the document takes, of one kind.
    fn parameters(operation: &Value, place: &str) -> BTreeSet<String> {
        let all = operation["parameters"].as_array().into_iter().flatten();
        let here = all.filter(|parameter| parameter["in"] == place);
        here.map(|parameter| parameter["name"].as_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn every_route_is_in_the_document_as_it_is() {
        for route in all() {
            let operation = &PARSED["paths"][route.path][route.method.to_ascii_lowercase()];
            let at = format!("{} {}", route.method, route.path);
            assert_eq!(operation["operationId"], route.name, "{at}");
            let stated: BTreeSet<&str> = route.parameters.iter().copied().collect();
            let queried = parameters(operation, "query");
            assert_eq!(queried.iter().map(String::as_str).collect::<BTreeSet<_>>(), stated, "{at}");
            let pieces = route.path.split('/').filter_map(|piece| piece.strip_prefix('{'));
            let pieces: BTreeSet<String> =
                pieces.map(|piece| piece.trim_end_matches('}').to_owned()).collect();
            assert_eq!(parameters(operation, "path"), pieces, "{at}");
            let is_open = operation["security"] == json!([]);
            assert_eq!(is_open, route.access == Access::Open, "{at}");
            assert!(is_open || !operation["responses"]["401"].is_null(), "{at}");
            assert!(!operation["responses"]["200"].is_null(), "{at}");
            assert_eq!(route.method == "GET", route.access != Access::Change, "{at}");
            let body = &operation["requestBody"]["content"]["application/json"]["schema"];
            for field in route.recorded {
                assert!(!body["properties"][field].is_null(), "{at}: {field} is in no body");
            }
        }
    }

    #[test]
    fn the_document_has_nothing_that_is_no_route() {
        let routes: BTreeSet<(String, String)> =
            all().map(|route| (route.method.to_ascii_lowercase(), route.path.to_owned())).collect();
        let mut stated = BTreeSet::new();
        for (path, methods) in PARSED["paths"].as_object().unwrap() {
            for method in methods.as_object().unwrap().keys() {
                stated.insert((method.clone(), path.clone()));
            }
        }
        assert_eq!(stated, routes);
    }

    #[test]
    fn every_link_in_the_document_leads_somewhere() {
        fn links(value: &Value, found: &mut Vec<String>) {
            match value {
                Value::Object(members) => {
                    found.extend(members.get("$ref").and_then(Value::as_str).map(str::to_owned));
                    members.values().for_each(|member| links(member, found));
                }
                Value::Array(items) => items.iter().for_each(|item| links(item, found)),
                _ => {}
            }
        }
        let mut found = Vec::new();
        links(&PARSED, &mut found);
        assert!(found.len() > 100, "{}", found.len());
        for link in found {
            assert!(PARSED.pointer(link.trim_start_matches('#')).is_some(), "{link}");
        }
    }

    #[test]
    fn answers_that_are_not_as_stated_are_found() {
        let schema = &PARSED["components"]["schemas"]["Message"];
        let good = json!({ "id": "1", "inserted": "", "expires": "", "dequeues": 0, "text": "" });
        assert_eq!(fault(&good, schema, "it"), None);
        let mut other = good.clone();
        other["dequeues"] = json!("0");
        assert_eq!(fault(&other, schema, "it").as_deref(), Some("it.dequeues is no integer"));
        other.as_object_mut().unwrap().remove("text");
        assert_eq!(fault(&other, schema, "it").as_deref(), Some("it has no text"));
    }
}
