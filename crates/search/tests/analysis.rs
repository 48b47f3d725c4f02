//! Analyzers that indexes define, through `analyze`: each part does what it says, and nothing grows without bound.

use lazuli_search_engine::*;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const PREFIX: &str = "#Microsoft.Azure.Search.";

/// A definition with parts: kind of list, type, name and options of each.
fn definition(parts: &[(&str, &str, &str, Value)]) -> Result<IndexDefinition> {
    let mut value =
        json!({"name": "a", "fields": [{"name": "id", "type": "Edm.String", "key": true}]});
    for (list, kind, name, options) in parts {
        let mut part = options.clone();
        part["@odata.type"] = json!(format!("{PREFIX}{kind}"));
        part["name"] = json!(name);
        let items =
            value.as_object_mut().expect("an object").entry(*list).or_insert_with(|| json!([]));
        items.as_array_mut().expect("a list").push(part);
    }
    IndexDefinition::parse(&value)
}

fn texts(definition: &IndexDefinition, body: &Value) -> Vec<String> {
    let tokens = analyze(definition, body).expect("the request is right");
    tokens.into_iter().map(|it| it.token).collect()
}

/// The tokens that one filter of an index makes behind the whitespace tokenizer.
fn filtered(kind: &str, options: Value, text: &str) -> Vec<String> {
    let definition =
        definition(&[("tokenFilters", kind, "f", options)]).expect("the filter is right");
    texts(&definition, &json!({"text": text, "tokenizer": "whitespace", "tokenFilters": ["f"]}))
}

#[test]
fn filters_of_an_index_do_what_their_options_say() {
    let none = || json!({});
    assert_eq!(
        filtered("EdgeNGramTokenFilterV2", json!({"minGram": 2, "maxGram": 3}), "hotel"),
        ["ho", "hot"]
    );
    assert_eq!(
        filtered("NGramTokenFilterV2", json!({"minGram": 2, "maxGram": 2}), "abc"),
        ["ab", "bc"]
    );
    assert_eq!(filtered("ShingleTokenFilter", none(), "a b c"), ["a", "a b", "b", "b c", "c"]);
    assert_eq!(
        filtered(
            "WordDelimiterTokenFilter",
            json!({"catenateWords": true}),
            "Wi-Fi PowerShot500 it's"
        ),
        ["Wi", "WiFi", "Fi", "Power", "PowerShot", "Shot", "500", "it"]
    );
    assert_eq!(filtered("StopwordsTokenFilter", json!({"stopwords": ["x"]}), "x y X"), ["y", "X"]);
    assert_eq!(
        filtered("StopwordsTokenFilter", json!({"stopwordsList": "german"}), "der Hund und"),
        ["Hund"]
    );
    assert_eq!(
        filtered("LengthTokenFilter", json!({"min": 2, "max": 3}), "a ab abc abcd"),
        ["ab", "abc"]
    );
    assert_eq!(
        filtered(
            "PatternReplaceTokenFilter",
            json!({"pattern": "(\\d)", "replacement": "<$1>"}),
            "a1"
        ),
        ["a<1>"]
    );
    assert_eq!(
        filtered("PatternCaptureTokenFilter", json!({"patterns": ["(\\d+)"]}), "ab12"),
        ["ab12", "12"]
    );
    assert_eq!(
        filtered("SynonymTokenFilter", json!({"synonyms": ["car, auto => vehicle"]}), "auto x"),
        ["vehicle", "x"]
    );
    assert_eq!(
        filtered("StemmerOverrideTokenFilter", json!({"rules": ["ran => run"]}), "ran"),
        ["run"]
    );
    assert_eq!(
        filtered(
            "DictionaryDecompounderTokenFilter",
            json!({"wordList": ["donau", "dampf"]}),
            "donaudampf"
        ),
        ["donaudampf", "donau", "dampf"]
    );
    assert_eq!(
        filtered("CommonGramTokenFilter", json!({"commonWords": ["the"]}), "the cat"),
        ["the", "the_cat", "cat"]
    );
    assert_eq!(
        filtered("AsciiFoldingTokenFilter", json!({"preserveOriginal": true}), "café"),
        ["cafe", "café"]
    );
    assert_eq!(filtered("SnowballTokenFilter", json!({"language": "english"}), "running"), ["run"]);
    assert_eq!(filtered("KeepTokenFilter", json!({"keepWords": ["a"]}), "a b"), ["a"]);
    assert_eq!(filtered("LimitTokenFilter", json!({"maxTokenCount": 2}), "a b c"), ["a", "b"]);
    assert_eq!(filtered("UniqueTokenFilter", none(), "a b a"), ["a", "b"]);
}

#[test]
fn offsets_lead_back_to_the_text_before_character_filters() {
    let definition = definition(&[
        (
            "charFilters",
            "MappingCharFilter",
            "m",
            json!({"mappings": [":)=>happy", "\\u0026=>and"]}),
        ),
        (
            "analyzers",
            "CustomAnalyzer",
            "c",
            json!({
                "tokenizer": "standard_v2", "tokenFilters": ["lowercase"], "charFilters": ["html_strip", "m"]
            }),
        ),
    ]);
    let definition = definition.expect("the analyzer is right");
    let text = "<p>I am :) <b>&</b> Größe &amp; 𝄞x</p>";
    let tokens = analyze(&definition, &json!({"text": text, "analyzer": "c"})).expect("analyzed");
    let units: Vec<u16> = text.encode_utf16().collect();
    let shown: Vec<(String, String)> = tokens
        .into_iter()
        .map(|it| (it.token, String::from_utf16_lossy(&units[it.start_offset..it.end_offset])))
        .collect();
    let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
    // As in Lucene, the tag behind a word belongs to its end.
    assert_eq!(
        shown[..4],
        [pair("i", "I"), pair("am", "am"), pair("happy", ":)"), pair("and", "&</b>")]
    );
    assert!(shown.contains(&pair("größe", "Größe")), "{shown:?}");
}

#[test]
fn tokenizers_of_an_index_do_what_their_options_say() {
    let cut = |kind: &str, options: Value, text: &str| {
        let definition =
            definition(&[("tokenizers", kind, "t", options)]).expect("the tokenizer is right");
        texts(&definition, &json!({"text": text, "tokenizer": "t"}))
    };
    assert_eq!(cut("PatternTokenizer", json!({"pattern": ","}), "a,b,,c"), ["a", "b", "c"]);
    assert_eq!(
        cut("PatternTokenizer", json!({"pattern": "'(\\w+)'", "group": 1}), "x 'a' 'b'"),
        ["a", "b"]
    );
    assert_eq!(
        cut("PathHierarchyTokenizerV2", json!({"delimiter": "-", "replacement": "/"}), "a-b"),
        ["a", "a/b"]
    );
    assert_eq!(
        cut(
            "EdgeNGramTokenizer",
            json!({"minGram": 1, "maxGram": 2, "tokenChars": ["digit"]}),
            "a12b3"
        ),
        ["1", "12", "3"]
    );
    assert_eq!(
        cut("StandardTokenizerV2", json!({"maxTokenLength": 2}), "abcde"),
        ["ab", "cd", "e"]
    );
    assert_eq!(
        cut("ClassicTokenizer", json!({}), "A.B.C. AT&T x@y.org 3-4 a-b"),
        ["A.B.C.", "AT&T", "x@y.org", "3-4", "a", "b"]
    );
}

#[test]
fn unknown_and_unsupported_parts_are_refused_by_name() {
    for (list, kind, options) in [
        ("tokenFilters", "PhoneticTokenFilter", json!({})),
        ("tokenFilters", "NothingTokenFilter", json!({})),
        ("tokenFilters", "StemmerTokenFilter", json!({"language": "klingon"})),
        ("tokenFilters", "PatternReplaceTokenFilter", json!({"pattern": "(", "replacement": ""})),
        ("tokenFilters", "EdgeNGramTokenFilterV2", json!({"minGram": 3, "maxGram": 2})),
        ("tokenizers", "NGramTokenizer", json!({"tokenChars": ["emoji"]})),
        ("charFilters", "MappingCharFilter", json!({"mappings": ["x"]})),
        ("analyzers", "CustomAnalyzer", json!({"tokenizer": "nothing"})),
        (
            "analyzers",
            "CustomAnalyzer",
            json!({"tokenizer": "standard_v2", "tokenFilters": ["kstem"]}),
        ),
        ("normalizers", "CustomNormalizer", json!({"tokenFilters": ["nGram_v2"]})),
    ] {
        let error = definition(&[(list, kind, "x", options.clone())]).expect_err(kind);
        assert_eq!(error.kind, ErrorKind::Invalid, "{kind} {options}");
    }
}

#[test]
fn hostile_texts_cost_a_bounded_time() {
    let start = Instant::now();
    let definition = definition(&[
        ("tokenizers", "NGramTokenizer", "n", json!({"minGram": 1, "maxGram": 300})),
        ("tokenFilters", "NGramTokenFilterV2", "g", json!({"minGram": 1, "maxGram": 300})),
    ]);
    let definition = definition.expect("the parts are right");
    let long = "x".repeat(60_000);
    for body in [
        json!({"text": long, "tokenizer": "n"}),
        json!({"text": long, "tokenizer": "keyword_v2", "tokenFilters": ["g"]}),
        json!({"text": "/".repeat(60_000), "tokenizer": "path_hierarchy_v2"}),
    ] {
        let tokens = analyze(&definition, &body).expect("analyzed");
        assert!(tokens.len() <= limits::TOKENS_MAX, "{}", tokens.len());
    }
    let synonyms = SynonymMaps::new();
    let hostile = [
        "(".repeat(90_000),
        "\"".repeat(90_000),
        "-".repeat(90_000),
        "(a".repeat(40_000),
        "a-".repeat(45_000),
        "a* ".repeat(30_000),
        "NOT ".repeat(20_000),
    ];
    for text in &hostile {
        for kind in [QueryType::Simple, QueryType::Full] {
            // Whether it is refused or not, it must end soon.
            let _answer = explain(&definition, &synonyms, text, kind, SearchMode::Any);
        }
    }
    for text in [
        "not ".repeat(50_000),
        "(".repeat(100_000),
        "tags/any(".repeat(10_000),
        "'".repeat(100_001),
    ] {
        assert!(Filter::parse(&definition, &text).is_err());
    }
    assert!(start.elapsed() < Duration::from_secs(120), "{:?}", start.elapsed());
}
