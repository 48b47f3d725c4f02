//! CORS: which pages of other origins may query an index, as its definition says. Browsers ask before they send a key, so the
//! question comes without one: the indexes of this name of all accounts are looked at.

use lazuli_http::cors::{CorsRule, preflight};
use lazuli_http::{HeaderMap, Response};
use lazuli_index::Index;
use serde_json::Value;

use crate::Front;
use crate::error::{Fault, Result};

const METHODS: &str = "GET,HEAD,POST,PUT,DELETE,OPTIONS";
const EXPOSED_HEADERS: &str = "etag,location,retry-after,request-id,client-request-id";
/// How long browsers remember the answer if the index does not say.
const MAX_AGE_SECONDS: u32 = 300;

/// The options in a definition; none if there are none, and an error if they are of another form.
fn options(definition: &Value) -> Result<Option<CorsRule>> {
    let options = match definition.get("corsOptions") {
        None | Some(Value::Null) => return Ok(None),
        Some(options) => options,
    };
    let wrong = |message| Fault::invalid("corsOptions", message);
    let origins: Option<Vec<&str>> = options["allowedOrigins"]
        .as_array()
        .and_then(|all| all.iter().map(Value::as_str).collect());
    let origins = origins.filter(|all| !all.is_empty());
    let origins = origins.ok_or_else(|| wrong("'allowedOrigins' must be a list of origins."))?;
    let max_age_seconds = match &options["maxAgeInSeconds"] {
        Value::Null => Some(MAX_AGE_SECONDS),
        age => age.as_u64().and_then(|age| u32::try_from(age).ok()),
    };
    Ok(Some(CorsRule {
        origins: origins.join(","),
        methods: METHODS.to_owned(),
        allowed_headers: "*".to_owned(),
        exposed_headers: EXPOSED_HEADERS.to_owned(),
        max_age_seconds: max_age_seconds
            .ok_or_else(|| wrong("'maxAgeInSeconds' must be a whole number."))?,
    }))
}

/// Refuses options that could not be acted on.
pub(crate) fn check(definition: &Value) -> Result<()> {
    options(definition).map(drop)
}

/// The rules of an index.
pub(crate) fn rules(index: &Index) -> Vec<CorsRule> {
    // Most indexes have none, and then nothing is parsed.
    if !index.definition.contains("\"corsOptions\":{") {
        return Vec::new();
    }
    let definition = serde_json::from_str(&index.definition).unwrap_or(Value::Null);
    options(&definition).ok().flatten().into_iter().collect()
}

/// The answer to a browser that asks whether a page may send a request.
pub(crate) async fn answer(front: &Front, name: &str, headers: &HeaderMap) -> Result<Response> {
    for account in front.accounts.names() {
        let Ok(index) = front.index_of(&account, name).await else { continue };
        if let Ok(response) = preflight(headers, &rules(&index)) {
            return Ok(response);
        }
    }
    Err(Fault::forbidden("The options of the index allow no such request from this origin."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn options_are_those_of_the_definition_and_others_are_refused() {
        let rule = options(&json!({"corsOptions": {"allowedOrigins": ["http://a", "http://b"]}}));
        let rule = rule.unwrap().unwrap();
        assert_eq!((rule.origins.as_str(), rule.max_age_seconds), ("http://a,http://b", 300));
        for none in [json!({}), json!({"corsOptions": null})] {
            assert_eq!(options(&none), Ok(None));
        }
        for wrong in [
            json!({}),
            json!({"allowedOrigins": []}),
            json!({"allowedOrigins": "*"}),
            json!({"allowedOrigins": [1]}),
            json!({"allowedOrigins": ["*"], "maxAgeInSeconds": -1}),
        ] {
            assert!(check(&json!({ "corsOptions": wrong })).is_err(), "{wrong}");
        }
    }
}
