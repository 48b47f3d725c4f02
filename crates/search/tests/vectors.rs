//! Vectors: neighbours, filters before and after them, and text and vectors in one result; also after merges of segments, and
//! through graphs.

use lazuli_search_engine::*;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

fn definition() -> Arc<IndexDefinition> {
    let value = json!({
        "name": "points",
        "fields": [
            {"name": "id", "type": "Edm.String", "key": true},
            {"name": "text", "type": "Edm.String"},
            {"name": "even", "type": "Edm.Boolean"},
            {"name": "v", "type": "Collection(Edm.Single)", "dimensions": 2, "vectorSearchProfile": "p"},
            {"name": "w", "type": "Collection(Edm.Single)", "dimensions": 3, "vectorSearchProfile": "e"}
        ],
        "vectorSearch": {
            "profiles": [{"name": "p", "algorithm": "cos"}, {"name": "e", "algorithm": "euc"}],
            "algorithms": [
                {"name": "cos", "kind": "hnsw", "hnswParameters": {"metric": "cosine"}},
                {"name": "euc", "kind": "exhaustiveKnn", "exhaustiveKnnParameters": {"metric": "euclidean"}}
            ]
        }
    });
    Arc::new(IndexDefinition::parse(&value).expect("the definition is right"))
}

/// Documents on a quarter of a circle; every tenth has no vector.
fn fill(shard: &ShardIndex) {
    for number in 0..100_u32 {
        let angle = f64::from(number) / 100.0 * std::f64::consts::FRAC_PI_2;
        let v = (number % 10 != 9).then(|| json!([angle.cos(), angle.sin()]));
        let document = json!({
            "id": number.to_string(),
            "text": if number % 7 == 0 { "seven" } else { "other" },
            "even": number % 2 == 0,
            "v": v,
            "w": [number, 0, 0]
        });
        let change = DocumentChange::Upsert { document: Arc::from(document.to_string()) };
        shard.apply(&[change], "1").expect("applied");
        if number % 5 == 0 {
            shard.commit().expect("committed");
        }
    }
    shard.apply(&[DocumentChange::Delete { key: "3".to_owned() }], "2").expect("applied");
    shard.commit().expect("committed");
}

fn query(vector: &[f32], k: usize, fields: &str) -> VectorQuery {
    VectorQuery {
        vector: vector.to_vec(),
        k,
        fields: fields.to_owned(),
        weight: 1.0,
        exhaustive: false,
        threshold: None,
    }
}

/// Numbers without order, the same in every run.
struct Chance(u64);

impl Chance {
    fn number(&mut self) -> f64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as f64 / (1_u64 << 30) as f64 - 1.0
    }

    fn vector(&mut self) -> Vec<f64> {
        (0..DIMENSIONS).map(|_| self.number()).collect()
    }
}

const DIMENSIONS: usize = 24;
/// Committed in tenths, of which eight become one segment that is large enough for a graph.
const MANY: u32 = 20_000;

fn definition_of_many() -> Arc<IndexDefinition> {
    let value = json!({
        "name": "many",
        "fields": [
            {"name": "id", "type": "Edm.String", "key": true},
            {"name": "group", "type": "Edm.Int32"},
            {"name": "v", "type": "Collection(Edm.Single)", "dimensions": DIMENSIONS, "vectorSearchProfile": "p"}
        ],
        "vectorSearch": {
            "profiles": [{"name": "p", "algorithm": "hnsw"}],
            "algorithms": [{"name": "hnsw", "kind": "hnsw"}]
        }
    });
    Arc::new(IndexDefinition::parse(&value).expect("the definition is right"))
}

/// What is asked of many vectors: the keys and scores that are found.
fn found(
    definition: &IndexDefinition,
    shard: &ShardIndex,
    change: &dyn Fn(&mut SearchRequest),
) -> Vec<(String, f64)> {
    let shards = [shard.snapshot()];
    let synonyms = SynonymMaps::new();
    let context = SearchContext { definition, shards: &shards, synonyms: &synonyms, now_ms: 0 };
    let mut request = SearchRequest { top: 10, ..SearchRequest::default() };
    change(&mut request);
    let found = search(&context, &request).expect("the search is right");
    found.hits.into_iter().map(|it| (it.key, it.score)).collect()
}

/// Asks the same of the graph and of all vectors. Answers which share of the nearest was found, and checks that deleted
/// documents are not among them.
fn recall(definition: &IndexDefinition, shard: &ShardIndex, filter: Option<&str>) -> f64 {
    let mut chance = Chance(77);
    let (mut hits, mut all) = (0, 0);
    for _ in 0..30 {
        let vector: Vec<f32> = chance.vector().into_iter().map(|it| it as f32).collect();
        let ask = |exhaustive| {
            found(definition, shard, &|it| {
                let query = VectorQuery { exhaustive, ..query(&vector, 10, "v") };
                it.vector_queries = vec![query];
                it.filter = filter.map(str::to_owned);
            })
        };
        let (exact, near) = (ask(true), ask(false));
        assert_eq!((exact.len(), near.len()), (10, 10));
        assert!(near.iter().all(|(key, _)| key.parse::<u32>().is_ok_and(|it| it % 10 != 3)));
        hits += near.iter().filter(|it| exact.contains(it)).count();
        all += exact.len();
    }
    hits as f64 / all as f64
}

#[test]
fn graphs_find_nearly_all_of_the_nearest_after_merges_deletions_and_a_start() {
    let folder = tempfile::tempdir().expect("a folder");
    let definition = definition_of_many();
    let open = || {
        ShardIndex::open(folder.path(), definition.clone(), ShardSettings::default()).expect("open")
    };
    let shard = open();
    let mut chance = Chance(5);
    for number in 0..MANY {
        let document = json!({"id": number.to_string(), "group": number % 8, "v": chance.vector()});
        let change = DocumentChange::Upsert { document: Arc::from(document.to_string()) };
        shard.apply(&[change], "1").expect("applied");
        if number % 2_000 == 1_999 {
            shard.commit().expect("committed");
        }
    }
    shard.rest().expect("rested");
    assert!(shard.lacks_graph() && shard.figures().segments > 1, "large and small segments");
    let stopped = AtomicBool::new(true);
    assert!(!shard.build_graph(&stopped).expect("stopped") && shard.lacks_graph());
    let go_on = AtomicBool::new(false);
    assert!(shard.build_graph(&go_on).expect("built") && !shard.lacks_graph());
    let gone = (0..MANY).filter(|it| it % 10 == 3);
    let gone: Vec<_> = gone.map(|it| DocumentChange::Delete { key: it.to_string() }).collect();
    shard.apply(&gone, "2").expect("applied");
    shard.commit().expect("committed");
    for filter in [None, Some("group ne 2")] {
        let recall = recall(&definition, &shard, filter);
        println!("{filter:?}: {recall}");
        assert!(recall >= 0.95, "{filter:?}: {recall}");
    }
    // So few pass that all of them are compared.
    assert_eq!(recall(&definition, &shard, Some("group eq 1")), 1.0);
    let nearest = |shard: &ShardIndex| {
        found(&definition, shard, &|it| it.vector_queries = vec![query(&[0.5; 24], 10, "v")])
    };
    let before = nearest(&shard);
    let least = before[4].1;
    let near = found(&definition, &shard, &|it| {
        let threshold = Some(VectorThreshold::Score(least));
        it.vector_queries = vec![VectorQuery { threshold, ..query(&[0.5; 24], 10, "v") }];
    });
    assert_eq!(near, before[..5]);
    drop(shard);
    let shard = open();
    assert!(shard.lacks_graph() && shard.build_graph(&go_on).expect("read"));
    assert_eq!(nearest(&shard), before);
}

#[test]
fn neighbours_are_exact_before_and_after_merges_and_combine_with_text() {
    let folder = tempfile::tempdir().expect("a folder");
    let definition = definition();
    let shard = ShardIndex::open(folder.path(), definition.clone(), ShardSettings::default())
        .expect("open");
    fill(&shard);
    for round in 0..2 {
        let shards = [shard.snapshot()];
        let synonyms = SynonymMaps::new();
        let context = SearchContext {
            definition: &definition,
            shards: &shards,
            synonyms: &synonyms,
            now_ms: 0,
        };
        let keys = |change: &dyn Fn(&mut SearchRequest)| -> Vec<String> {
            let mut request = SearchRequest { top: 5, ..SearchRequest::default() };
            change(&mut request);
            let found = search(&context, &request).expect("the search is right");
            found.hits.into_iter().map(|it| it.key).collect()
        };
        let near = query(&[1.0, 0.0], 5, "v");
        assert_eq!(
            keys(&|it| it.vector_queries = vec![near.clone()]),
            ["0", "1", "2", "4", "5"],
            "round {round}"
        );
        assert_eq!(
            keys(&|it| {
                it.vector_queries = vec![near.clone()];
                it.filter = Some("even eq false".to_owned());
            }),
            ["1", "5", "7", "11", "13"]
        );
        assert_eq!(
            keys(&|it| {
                it.vector_queries = vec![near.clone()];
                it.filter = Some("even eq false".to_owned());
                it.vector_filter_mode = VectorFilterMode::PostFilter;
            }),
            ["1", "5"]
        );
        let far = query(&[50.2, 0.0, 0.0], 3, "w");
        assert_eq!(keys(&|it| it.vector_queries = vec![far.clone()]), ["50", "51", "49"]);
        let both = keys(&|it| {
            it.vector_queries = vec![near.clone()];
            it.search = Some("seven".to_owned());
        });
        assert_eq!(both[0], "0", "first in both lists");
        let texts =
            both.iter().filter_map(|it| it.parse::<u32>().ok()).filter(|it| *it > 0 && it % 7 == 0);
        assert!(texts.count() > 0 && both.contains(&"1".to_owned()), "{both:?}");
        let wrong = SearchRequest {
            vector_queries: vec![query(&[1.0], 5, "v")],
            top: 5,
            ..SearchRequest::default()
        };
        assert_eq!(search(&context, &wrong).expect_err("dimensions").kind, ErrorKind::Invalid);
        // Merges end before the writer rests.
        shard.rest().expect("rested");
        shard.apply(&[DocumentChange::Delete { key: "x".to_owned() }], "3").expect("applied");
        shard.commit().expect("committed");
    }
}
