//! What fuzzers call: each function panics where something does not hold for any bytes at all.

use crate::definition::IndexDefinition;
use crate::filter::Filter;
use crate::query::{self, Expander, QueryType, SearchMode};
use crate::search::{Order, Selection};
use crate::synonyms::{SynonymMap, SynonymMaps};
use serde_json::{Value, json};
use std::sync::OnceLock;

/// A definition with a field of every kind.
fn definition() -> &'static IndexDefinition {
    static DEFINITION: OnceLock<IndexDefinition> = OnceLock::new();
    DEFINITION.get_or_init(|| {
        let fields = json!([
            {"name": "id", "type": "Edm.String", "key": true},
            {"name": "name", "type": "Edm.String"},
            {"name": "rating", "type": "Edm.Double"},
            {"name": "rooms", "type": "Edm.Int32"},
            {"name": "open", "type": "Edm.Boolean"},
            {"name": "opened", "type": "Edm.DateTimeOffset"},
            {"name": "place", "type": "Edm.GeographyPoint"},
            {"name": "tags", "type": "Collection(Edm.String)"},
            {"name": "offers", "type": "Collection(Edm.ComplexType)", "fields": [
                {"name": "kind", "type": "Edm.String"},
                {"name": "price", "type": "Edm.Double"}
            ]}
        ]);
        let value = json!({"name": "fuzz", "fields": fields});
        IndexDefinition::parse(&value).expect("the definition is constant and right")
    })
}

/// A filter is read or refused, and evaluated on a document without a panic. Orders and selections are read alike.
pub fn filter(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let definition = definition();
    let document = json!({"id": "1", "name": "x", "rating": 1.5, "tags": ["a"], "offers": [{"kind": "k", "price": 2}]});
    if let Ok(filter) = Filter::parse(definition, text) {
        let first = filter.matches(definition, &document);
        let second = filter.matches(definition, &document);
        assert_eq!(first, second);
    }
    if let Ok(order) = Order::parse(definition, Some(text)) {
        assert!(order.clauses.len() <= crate::limits::ORDER_CLAUSES_MAX);
    }
    if let Ok(selection) = Selection::parse(definition, Some(text)) {
        selection.apply(&document);
    }
}

/// A search text of the simple syntax is never wrong; one of the full syntax is read or refused.
pub fn search_text(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let synonyms = SynonymMaps::new();
    for kind in [QueryType::Simple, QueryType::Full] {
        for mode in [SearchMode::Any, SearchMode::All] {
            let parsed = query::parse(text, kind, mode);
            let too_long = text.chars().count() > crate::limits::SEARCH_CHARS_MAX;
            assert!(kind == QueryType::Full || too_long || parsed.is_ok());
            let Ok(parsed) = parsed else { continue };
            let expander = Expander::new(definition(), &synonyms, None, &[], mode);
            let expander = expander.expect("the definition has searchable fields");
            if let Ok(expr) = expander.expand(&parsed) {
                assert!(expr.clauses() <= crate::limits::QUERY_CLAUSES_MAX);
            }
        }
    }
}

/// A definition is read or refused; one that is read can analyze, and describes itself the same way twice.
pub fn index_definition(data: &[u8]) {
    let Ok(value) = serde_json::from_slice::<Value>(data) else { return };
    let Ok(definition) = IndexDefinition::parse(&value) else { return };
    assert!(definition.leaf(definition.key()).is_some());
    assert!(definition.check_change(&definition).is_ok());
    for leaf in definition.searchable() {
        let text = "The quick-brown Fox's 3.14 straße 東京";
        for token in definition.index_analyzer(leaf).analyze(text) {
            assert!(token.start <= token.end && token.end <= text.len());
        }
    }
}

/// Rules of synonyms are read or refused.
pub fn synonym_rules(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let first = SynonymMap::parse("fuzz", text);
    assert_eq!(first, SynonymMap::parse("fuzz", text));
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    /// Calls a target on its seeds and on changes of them.
    fn feed(name: &str, target: fn(&[u8])) {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds").join(name);
        let mut seeds = 0;
        for entry in fs::read_dir(&folder).expect("the folder of seeds") {
            let seed = fs::read(entry.expect("an entry").path()).expect("a seed");
            seeds += 1;
            target(&seed);
            for at in 0..seed.len().min(400) {
                target(&seed[..at]);
                for byte in [b'(', b'\'', b'"', b')', b' ', b'*', 0xFF, b'\\'] {
                    let mut changed = seed.clone();
                    changed[at] = byte;
                    target(&changed);
                }
            }
        }
        assert!(seeds > 0, "{name} has no seeds");
    }

    #[test]
    fn seeds_of_all_targets_and_changes_of_them_hold() {
        feed("search_filter", super::filter);
        feed("search_text", super::search_text);
        feed("search_definition", super::index_definition);
        feed("search_synonyms", super::synonym_rules);
    }
}
