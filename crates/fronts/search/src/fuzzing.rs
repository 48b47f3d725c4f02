//! What must hold of every parser of this front, whatever comes from the network. `fuzz/fuzz_targets` call these, and so do
//! the tests below on the seeds.

use serde_json::Value;

use crate::address::Address;
use crate::asked::Asked;
use crate::definition;
use crate::options::Options;
use crate::request::Operation;
use crate::search::Paged;

/// A path is one thing or none, and the methods on it are known or refused.
pub fn search_address(data: &[u8]) {
    let text = &*String::from_utf8_lossy(data);
    let Ok(address) = Address::parse(text) else { return };
    for method in ["GET", "PUT", "POST", "DELETE", "PATCH"] {
        if let Ok(operation) = Operation::parse(&method.parse().expect("a method"), address.clone())
        {
            assert!(!operation.name().is_empty());
        }
    }
}

/// A posted query is read or refused by name, and the next page asks for what this one asks for.
pub fn search_query(data: &[u8]) {
    let Ok(body) = serde_json::from_slice::<Value>(data) else { return };
    let options = Options::default();
    let Ok(asked) = Asked::new(Some(body.clone()), &options) else { return };
    if let Ok(paged) = Paged::read(&asked) {
        assert!(paged.page <= crate::limits::TOP_MAX);
        assert_eq!(Value::Object(asked.to_body()), body);
    }
}

/// What was completed is complete.
pub fn search_index(data: &[u8]) {
    let Ok(body) = serde_json::from_slice::<Value>(data) else { return };
    let Ok(completed) = definition::completed(body) else { return };
    assert_eq!(definition::completed(completed.clone()), Ok(completed));
}

#[cfg(test)]
mod tests {
    use lazuli_http::mutate::corpus;

    const WORDS: &[&str] = &[
        "indexes",
        "('",
        "')",
        "docs",
        "search",
        "$count",
        "top",
        "skip",
        "null",
        "vectorQueries",
    ];

    #[test]
    fn parsers_hold_on_seeds_and_changes_of_them() {
        corpus("search_address", WORDS, 2_000, super::search_address);
        corpus("search_query", WORDS, 2_000, super::search_query);
        corpus("search_index", WORDS, 2_000, super::search_index);
    }
}
