//! Random documents, filters, orders and facets from seeds: the engine and a plain look at every document agree.

use lazuli_search_engine::*;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Seeds of a run; each is an index of its own.
const SEEDS: u64 = 4;
/// Documents of an index.
const DOCUMENTS: usize = 120;
/// Filters, orders and facets that each index is asked for.
const QUESTIONS: usize = 80;

/// Numbers from a seed.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }

    fn one_of<'a>(&mut self, options: &[&'a str]) -> &'a str {
        options[self.below(options.len() as u64) as usize]
    }
}

const WORDS: [&str; 6] = ["red", "green", "Blue", "it''s", "grey", ""];

fn word(chance: &mut Chance) -> String {
    chance.one_of(&WORDS).replace("''", "'")
}

fn definition() -> Arc<IndexDefinition> {
    let fields = json!([
        {"name": "id", "type": "Edm.String", "key": true},
        {"name": "s", "type": "Edm.String"},
        {"name": "n", "type": "Edm.String", "normalizer": "lowercase"},
        {"name": "i", "type": "Edm.Int32"},
        {"name": "l", "type": "Edm.Int64"},
        {"name": "d", "type": "Edm.Double"},
        {"name": "b", "type": "Edm.Boolean"},
        {"name": "t", "type": "Edm.DateTimeOffset"},
        {"name": "p", "type": "Edm.GeographyPoint"},
        {"name": "tags", "type": "Collection(Edm.String)"},
        {"name": "nums", "type": "Collection(Edm.Int32)"},
        {"name": "o", "type": "Edm.ComplexType", "fields": [{"name": "x", "type": "Edm.Int32"}]},
        {"name": "c", "type": "Collection(Edm.ComplexType)", "fields": [
            {"name": "k", "type": "Edm.String"},
            {"name": "v", "type": "Edm.Int32"},
            {"name": "z", "type": "Collection(Edm.String)"}
        ]}
    ]);
    let value = json!({"name": "random", "fields": fields});
    Arc::new(IndexDefinition::parse(&value).expect("the definition is right"))
}

/// A value, or null one time in five.
fn maybe(chance: &mut Chance, make: impl FnOnce(&mut Chance) -> Value) -> Value {
    if chance.below(5) == 0 { Value::Null } else { make(chance) }
}

fn document(chance: &mut Chance, number: usize) -> Value {
    let whole = |it: &mut Chance| json!(it.below(9) as i64 - 4);
    let words = |it: &mut Chance| -> Value {
        let count = it.below(4);
        json!((0..count).map(|_| word(it)).collect::<Vec<_>>())
    };
    let mut fields = Map::new();
    fields.insert("id".into(), json!(format!("{number}")));
    fields.insert("s".into(), maybe(chance, |it| json!(word(it))));
    fields.insert("n".into(), maybe(chance, |it| json!(word(it))));
    fields.insert("i".into(), maybe(chance, whole));
    fields.insert(
        "l".into(),
        maybe(chance, |it| json!(it.below(9) as i64 * 4_000_000_000 - 16_000_000_000)),
    );
    fields.insert(
        "d".into(),
        maybe(chance, |it| match it.below(8) {
            0 => json!("NaN"),
            1 => json!("INF"),
            2 => json!(-0.0),
            other => json!(other as f64 / 2.0 - 2.0),
        }),
    );
    fields.insert("b".into(), maybe(chance, |it| json!(it.below(2) == 0)));
    fields.insert(
        "t".into(),
        maybe(chance, |it| json!(format!("2020-0{}-01T00:00:00Z", 1 + it.below(9)))),
    );
    fields.insert("p".into(), maybe(chance, |it| {
        json!({"type": "Point", "coordinates": [it.below(5) as f64 - 2.0, it.below(5) as f64]})
    }));
    fields.insert("tags".into(), words(chance));
    let count = chance.below(3);
    fields.insert("nums".into(), json!((0..count).map(|_| chance.below(5)).collect::<Vec<_>>()));
    fields.insert("o".into(), maybe(chance, |it| json!({"x": maybe(it, whole)})));
    let count = chance.below(4);
    let elements: Vec<Value> = (0..count)
        .map(|_| json!({"k": maybe(chance, |it| json!(word(it))), "v": maybe(chance, whole), "z": words(chance)}))
        .collect();
    fields.insert("c".into(), json!(elements));
    Value::Object(fields)
}

fn filter(chance: &mut Chance, depth: u32) -> String {
    if depth > 0 && chance.below(3) > 0 {
        let (a, b) = (filter(chance, depth - 1), filter(chance, depth - 1));
        return match chance.below(5) {
            0 => format!("not ({a})"),
            1 | 2 => format!("({a}) or ({b})"),
            _ => format!("({a}) and ({b})"),
        };
    }
    let op = chance.one_of(&["eq", "ne", "gt", "lt", "ge", "le"]);
    let number = chance.below(9) as i64 - 4;
    let text = chance.one_of(&WORDS);
    match chance.below(19) {
        0 => format!("s {op} '{text}'"),
        1 => format!("n {op} '{text}'"),
        2 => format!("i {op} {number}"),
        3 => format!("i {op} {number}.5"),
        4 => format!("{number} {op} l"),
        5 => format!("l {op} {}", number * 4_000_000_000),
        6 => format!("d {op} {number}"),
        7 => format!("d {op} {}", chance.one_of(&["NaN", "INF", "-INF", "0.0", "-0.0", "1.5"])),
        8 => format!("{} {} null", chance.one_of(&["s", "i", "d", "b", "t", "o", "o/x", "p"]), chance.one_of(&["eq", "ne"])),
        9 => chance.one_of(&["b", "b eq true", "b ne true", "false", "not b"]).to_owned(),
        10 => format!("t {op} 2020-0{}-01T00:00:00Z", 1 + chance.below(9)),
        11 => format!("geo.distance(p, geography'POINT(0 2)') {} {}", chance.one_of(&["lt", "le", "gt", "ge"]), chance.below(400)),
        12 => "geo.intersects(p, geography'POLYGON((-1.5 0.5, 1.5 0.5, 1.5 3.5, -1.5 3.5, -1.5 0.5))')".to_owned(),
        13 => format!("search.in(s, 'red|{text}', '|')"),
        14 => format!("tags/{}(x: {})", chance.one_of(&["any", "all"]), chance.one_of(&[
            "x eq 'red'", "x ne 'red'", "search.in(x, 'red,grey')", "not search.in(x, 'red')", "x eq 'red' or x eq 'grey'",
            "x ne 'red' and x ne 'grey'", "x gt 'g'",
        ])),
        15 => format!("nums/{}(x: x {op} {})", chance.one_of(&["any", "all"]), chance.below(5)),
        16 => chance.one_of(&["tags/any()", "nums/any()", "c/any()", "o/x gt 1", "o/x eq null"]).to_owned(),
        _ => format!("c/{}(e: {})", chance.one_of(&["any", "all"]), element(chance, 1)),
    }
}

/// A condition on an element of the complex collection.
fn element(chance: &mut Chance, depth: u32) -> String {
    if depth > 0 && chance.below(2) == 0 {
        let (a, b) = (element(chance, depth - 1), element(chance, depth - 1));
        return match chance.below(3) {
            0 => format!("not ({a})"),
            1 => format!("({a}) or ({b})"),
            _ => format!("({a}) and ({b})"),
        };
    }
    let op = chance.one_of(&["eq", "ne", "gt", "lt"]);
    match chance.below(6) {
        0 => format!("e/k {op} '{}'", chance.one_of(&WORDS)),
        1 => format!("e/v {op} {}", chance.below(9) as i64 - 4),
        2 => format!("e/v {} null", chance.one_of(&["eq", "ne"])),
        3 => "e/z/any(q: q eq 'red')".to_owned(),
        4 => format!("e/z/{}(q: q ne 'red' and e/v gt 0)", chance.one_of(&["any", "all"])),
        _ => "i gt 0".to_owned(),
    }
}

struct Run {
    definition: Arc<IndexDefinition>,
    documents: Vec<Value>,
    shards: Vec<ShardSnapshot>,
}

impl Run {
    fn search(&self, request: SearchRequest) -> SearchResults {
        let synonyms = SynonymMaps::new();
        let context = SearchContext {
            definition: &self.definition,
            shards: &self.shards,
            synonyms: &synonyms,
            now_ms: 0,
        };
        search(&context, &request).unwrap_or_else(|error| panic!("{error}: {request:?}"))
    }

    fn passing(&self, filter: &str) -> Vec<&Value> {
        let parsed = Filter::parse(&self.definition, filter)
            .unwrap_or_else(|error| panic!("{error}: {filter}"));
        let passes =
            |it: &&Value| parsed.matches(&self.definition, it).expect("no index is needed");
        self.documents.iter().filter(passes).collect()
    }

    fn check_filter(&self, filter: &str) {
        let mut expected: Vec<&str> =
            self.passing(filter).iter().filter_map(|it| it["id"].as_str()).collect();
        expected.sort_unstable();
        let request = SearchRequest {
            filter: Some(filter.to_owned()),
            top: 1_000,
            count: true,
            ..SearchRequest::default()
        };
        let results = self.search(request);
        let mut found: Vec<&str> = results.hits.iter().map(|it| it.key.as_str()).collect();
        found.sort_unstable();
        let odd = self.documents.iter().find(|it| {
            let key = it["id"].as_str().unwrap_or_default();
            found.contains(&key) != expected.contains(&key)
        });
        assert!(odd.is_none() && found.len() == expected.len(), "{filter}: {odd:?}");
        assert_eq!(results.count, Some(expected.len() as u64), "{filter}");
    }

    /// Documents in the order of a field, missing values first; the key decides between equal ones.
    fn check_order(&self, field: &str, descending: bool) {
        let key = |it: &Value| -> (u8, f64, String) {
            match &it[field] {
                Value::Null => (0, 0.0, String::new()),
                Value::Bool(truth) => (1, f64::from(u8::from(*truth)), String::new()),
                Value::Number(number) => {
                    (1, number.as_f64().unwrap_or_default() + 0.0, String::new())
                }
                Value::String(text) if text == "NaN" && field == "d" => (2, 0.0, String::new()),
                Value::String(text) if text == "INF" && field == "d" => {
                    (1, f64::INFINITY, String::new())
                }
                Value::String(text) if field == "n" => (1, 0.0, text.to_lowercase()),
                Value::String(text) => (1, 0.0, text.clone()),
                other => panic!("{other}"),
            }
        };
        let mut expected: Vec<&Value> = self.documents.iter().collect();
        expected.sort_by(|a, b| {
            let order = key(a).partial_cmp(&key(b)).expect("keys have an order");
            let order = if descending { order.reverse() } else { order };
            order.then_with(|| a["id"].as_str().cmp(&b["id"].as_str()))
        });
        let expected: Vec<&str> = expected.iter().filter_map(|it| it["id"].as_str()).collect();
        let direction = if descending { " desc" } else { "" };
        for (skip, top) in [(0, 1_000), (7, 10)] {
            let request = SearchRequest {
                order_by: Some(format!("{field}{direction}, id")),
                skip,
                top,
                ..SearchRequest::default()
            };
            let results = self.search(request);
            let found: Vec<&str> = results.hits.iter().map(|it| it.key.as_str()).collect();
            let page: Vec<&str> = expected.iter().copied().skip(skip).take(top).collect();
            assert_eq!(found, page, "{field}{direction}");
        }
    }

    /// Counts of values of the documents that pass a filter.
    fn check_facet(&self, field: &str, filter: &str) {
        let mut expected: BTreeMap<String, u64> = BTreeMap::new();
        for document in self.passing(filter) {
            let mut values: Vec<String> = match field {
                "c/k" => document["c"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .map(|it| it["k"].to_string())
                    .collect(),
                _ => match &document[field] {
                    Value::Array(items) => items.iter().map(Value::to_string).collect(),
                    other => vec![other.to_string()],
                },
            };
            values.retain(|it| it != "null");
            values.sort();
            values.dedup();
            for value in values {
                *expected.entry(value).or_default() += 1;
            }
        }
        let request = SearchRequest {
            filter: Some(filter.to_owned()),
            facets: vec![format!("{field},count:1000")],
            ..SearchRequest::default()
        };
        let facets = self.search(request).facets.expect("facets");
        let buckets = facets[field].as_array().expect("buckets").iter();
        let found: BTreeMap<String, u64> = buckets
            .map(|it| (it["value"].to_string(), it["count"].as_u64().unwrap_or_default()))
            .collect();
        assert_eq!(found, expected, "{field} where {filter}");
    }
}

fn run(seed: u64) {
    let mut chance = Chance(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let definition = definition();
    let documents: Vec<Value> =
        (0..DOCUMENTS).map(|number| document(&mut chance, number)).collect();
    let mut shards = Vec::new();
    let folders: Vec<_> = (0..2).map(|_| tempfile::tempdir().expect("a folder")).collect();
    for (number, folder) in folders.iter().enumerate() {
        let shard = ShardIndex::open(folder.path(), definition.clone(), ShardSettings::default())
            .expect("open");
        for (at, document) in documents.iter().enumerate().filter(|(at, _)| at % 2 == number) {
            definition.check_document(document).expect("the document is right");
            let upsert = DocumentChange::Upsert { document: Arc::from(document.to_string()) };
            let decoy = DocumentChange::Upsert {
                document: Arc::from(json!({"id": format!("x{at}")}).to_string()),
            };
            shard.apply(&[upsert, decoy], "1").expect("applied");
            if at % 31 == number {
                shard.commit().expect("committed");
            }
            shard.apply(&[DocumentChange::Delete { key: format!("x{at}") }], "2").expect("applied");
        }
        shard.commit().expect("committed");
        shards.push(shard.snapshot());
    }
    let run = Run { definition, documents, shards };
    for _ in 0..QUESTIONS {
        run.check_filter(&filter(&mut chance, 2));
    }
    for field in ["s", "n", "i", "l", "d", "b", "t"] {
        run.check_order(field, false);
        run.check_order(field, true);
    }
    for field in ["s", "i", "b", "tags", "nums", "c/k", "t"] {
        run.check_facet(field, &filter(&mut chance, 1));
    }
}

#[test]
fn filters_orders_and_facets_agree_with_a_plain_look_at_every_document() {
    for seed in 1..=SEEDS {
        run(seed);
    }
}
