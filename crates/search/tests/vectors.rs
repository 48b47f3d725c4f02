//! Vectors: neighbours, filters before and after them, and text and vectors in one result; also after merges of segments.

use lazuli_search_engine::*;
use serde_json::json;
use std::sync::Arc;

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
    }
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
