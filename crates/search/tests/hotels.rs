//! Searches over a few hotels, from the definition to the page: what every part does together.

use lazuli_search_engine::*;
use serde_json::{Value, json};
use std::sync::Arc;

fn definition() -> Arc<IndexDefinition> {
    let value = json!({
        "name": "hotels",
        "fields": [
            {"name": "id", "type": "Edm.String", "key": true, "searchable": false},
            {"name": "name", "type": "Edm.String"},
            {"name": "description", "type": "Edm.String", "filterable": false, "sortable": false, "facetable": false},
            {"name": "category", "type": "Edm.String", "normalizer": "lowercase"},
            {"name": "tags", "type": "Collection(Edm.String)"},
            {"name": "rating", "type": "Edm.Double"},
            {"name": "rooms", "type": "Edm.Int32"},
            {"name": "opened", "type": "Edm.DateTimeOffset"},
            {"name": "parking", "type": "Edm.Boolean"},
            {"name": "place", "type": "Edm.GeographyPoint"},
            {"name": "secret", "type": "Edm.String", "retrievable": false},
            {"name": "offers", "type": "Collection(Edm.ComplexType)", "fields": [
                {"name": "kind", "type": "Edm.String"},
                {"name": "price", "type": "Edm.Double"}
            ]},
            {"name": "address", "type": "Edm.ComplexType", "fields": [
                {"name": "city", "type": "Edm.String", "sortable": true}
            ]}
        ],
        "suggesters": [{"name": "sg", "searchMode": "analyzingInfixMatching", "sourceFields": ["name", "tags"]}],
        "scoringProfiles": [
            {"name": "names", "text": {"weights": {"name": 5}}},
            {"name": "fresh", "functions": [{"type": "freshness", "fieldName": "opened", "boost": 10,
                "interpolation": "linear", "freshness": {"boostingDuration": "P3650D"}}]},
            {"name": "tagged", "functions": [{"type": "tag", "fieldName": "tags", "boost": 4,
                "tag": {"tagsParameter": "mytags"}}]}
        ]
    });
    Arc::new(IndexDefinition::parse(&value).expect("the definition is right"))
}

fn documents() -> Vec<Value> {
    vec![
        json!({"id": "1", "name": "Secret Point Hotel", "description": "The hotel is near the luxury shops. It has free wifi.",
            "category": "Boutique", "tags": ["pool", "wifi"], "rating": 3.6, "rooms": 30, "opened": "2020-01-18T00:00:00Z",
            "parking": false, "place": {"type": "Point", "coordinates": [-73.975403, 40.760586]}, "secret": "x",
            "offers": [{"kind": "suite", "price": 300.0}, {"kind": "budget", "price": 80.0}], "address": {"city": "New York"}}),
        json!({"id": "2", "name": "Twin Dome Motel", "description": "A motel with a luxury pool and a view.",
            "category": "BOUTIQUE", "tags": ["pool"], "rating": 4.6, "rooms": 12, "opened": "1979-02-18T00:00:00Z",
            "parking": true, "place": {"type": "Point", "coordinates": [-82.452843, 27.384417]},
            "offers": [{"kind": "suite", "price": 90.0}], "address": {"city": "Sarasota"}}),
        json!({"id": "3", "name": "Triple Landscape Hotel", "description": "Wifi, breakfast and parking.",
            "category": "Resort and Spa", "tags": [], "rating": null, "rooms": 120, "opened": "2015-09-20T00:00:00Z",
            "parking": true, "place": null, "offers": [], "address": null}),
    ]
}

struct Fixture {
    definition: Arc<IndexDefinition>,
    shards: Vec<ShardSnapshot>,
    _folder: tempfile::TempDir,
}

impl Fixture {
    fn new() -> Fixture {
        let folder = tempfile::tempdir().expect("a folder");
        let definition = definition();
        let shard = ShardIndex::open(folder.path(), definition.clone(), ShardSettings::default())
            .expect("an index");
        for document in documents() {
            definition.check_document(&document).expect("the document is right");
            let change = DocumentChange::Upsert { document: Arc::from(document.to_string()) };
            shard.apply(&[change], "7").expect("it is applied");
        }
        shard.commit().expect("it is committed");
        assert_eq!(shard.position().as_deref(), Some("7"));
        Fixture { definition, shards: vec![shard.snapshot()], _folder: folder }
    }

    fn try_search(&self, change: impl FnOnce(&mut SearchRequest)) -> Result<SearchResults> {
        let synonyms = SynonymMaps::new();
        let context = self.context(&synonyms);
        let mut request = SearchRequest { top: 50, count: true, ..SearchRequest::default() };
        change(&mut request);
        search(&context, &request)
    }

    fn context<'a>(&'a self, synonyms: &'a SynonymMaps) -> SearchContext<'a> {
        SearchContext {
            definition: &self.definition,
            shards: &self.shards,
            synonyms,
            now_ms: 1_600_000_000_000,
        }
    }

    fn search(&self, change: impl FnOnce(&mut SearchRequest)) -> SearchResults {
        self.try_search(change).expect("the search is right")
    }

    fn keys(&self, change: impl FnOnce(&mut SearchRequest)) -> String {
        let results = self.search(change);
        assert_eq!(results.count, Some(results.hits.len() as u64));
        results.hits.iter().map(|it| it.key.clone()).collect::<Vec<_>>().join(" ")
    }

    /// The keys that pass a filter, in the order of keys; the plain evaluator must agree.
    fn filtered(&self, filter: &str) -> String {
        let found = self.search(|it| it.filter = Some(filter.to_owned()));
        let mut keys: Vec<String> = found.hits.into_iter().map(|it| it.key).collect();
        keys.sort();
        let parsed = Filter::parse(&self.definition, filter).expect("a filter");
        if !filter.contains("ismatch") {
            let documents = documents();
            let naive = documents
                .iter()
                .filter(|it| parsed.matches(&self.definition, it).expect("no index is needed"));
            let naive: Vec<&str> = naive.filter_map(|it| it["id"].as_str()).collect();
            assert_eq!(keys, naive, "{filter}");
        }
        keys.join(" ")
    }
}

#[test]
fn simple_queries_find_what_the_service_documents() {
    let it = Fixture::new();
    let simple = |text: &str, mode| {
        let found = it.search(|request| {
            request.search = Some(text.to_owned());
            request.search_mode = mode;
        });
        let mut keys: Vec<String> = found.hits.into_iter().map(|hit| hit.key).collect();
        keys.sort();
        keys.join(" ")
    };
    assert_eq!(simple("*", SearchMode::Any), "1 2 3");
    assert_eq!(simple("wifi", SearchMode::Any), "1 3");
    assert_eq!(simple("wifi luxury", SearchMode::Any), "1 2 3");
    assert_eq!(simple("wifi luxury", SearchMode::All), "1");
    assert_eq!(simple("wifi + luxury", SearchMode::Any), "1");
    assert_eq!(simple("wifi -luxury", SearchMode::All), "3");
    assert_eq!(simple("wifi -luxury", SearchMode::Any), "1 3", "wifi, or not luxury");
    assert_eq!(simple("\"luxury pool\"", SearchMode::Any), "2");
    assert_eq!(simple("mot*", SearchMode::Any), "2");
    assert_eq!(simple("(motel | wifi) + hotel", SearchMode::Any), "1 3");
}

#[test]
fn full_queries_have_fields_fuzzy_terms_regular_expressions_and_proximity() {
    let it = Fixture::new();
    let full = |text: &str| {
        let found = it.search(|request| {
            request.search = Some(text.to_owned());
            request.query_type = QueryType::Full;
        });
        let mut keys: Vec<String> = found.hits.into_iter().map(|hit| hit.key).collect();
        keys.sort();
        keys.join(" ")
    };
    assert_eq!(full("name:hotel AND description:wifi"), "1 3");
    assert_eq!(full("hotel NOT wifi"), "");
    assert_eq!(full("luxry~1"), "1 2");
    assert_eq!(full("/[mh]otel/"), "1 2 3");
    assert_eq!(full("\"hotel shops\"~5"), "1");
    assert_eq!(full("address/city:york"), "1");
    assert_eq!(full("l?x*y"), "1 2");
    for wrong in ["a AND", "(a", "\"a", "name:[a TO b]", "-a", "*a"] {
        let error = it.try_search(|request| {
            request.search = Some(wrong.to_owned());
            request.query_type = QueryType::Full;
        });
        assert_eq!(error.expect_err(wrong).kind, ErrorKind::Invalid, "{wrong}");
    }
}

#[test]
fn filters_are_exact_and_correlate_elements() {
    let it = Fixture::new();
    for (filter, keys) in [
        ("rating gt 4", "2"),
        ("rating le 4.6", "1 2"),
        ("rating eq null", "3"),
        ("rating ne 3.6", "2 3"),
        ("rooms ge 30 and parking eq true", "3"),
        ("parking", "2 3"),
        ("not parking", "1"),
        ("5 lt rating", ""),
        ("category eq 'boutique'", "1 2"),
        ("category eq 'Boutique'", "1 2"),
        ("tags/any(t: t eq 'wifi')", "1"),
        ("tags/all(t: t ne 'wifi')", "2 3"),
        ("tags/any()", "1 2"),
        ("not tags/any()", "3"),
        ("offers/any(o: o/kind eq 'suite' and o/price lt 100)", "2"),
        ("offers/any(o: o/kind eq 'suite') and offers/any(o: o/price lt 100)", "1 2"),
        ("offers/all(o: o/price gt 85)", "2 3"),
        ("offers/any(o: o/price gt rooms)", ""),
        ("search.in(name, 'Twin Dome Motel|x', '|')", "2"),
        ("tags/any(t: search.in(t, 'wifi, sauna'))", "1"),
        ("opened ge 2015-09-20T00:00:00Z", "1 3"),
        ("address/city eq 'Sarasota'", "2"),
        ("address eq null", "3"),
        ("geo.distance(place, geography'POINT(-74 40.7)') lt 50", "1"),
        ("geo.distance(place, geography'POINT(-74 40.7)') gt 50", "2"),
        (
            "geo.intersects(place, geography'POLYGON((-75 40, -73 40, -73 41, -75 41, -75 40))')",
            "1",
        ),
        ("search.ismatch('wifi') and rooms lt 100", "1"),
        ("search.ismatch('\"luxury pool\"', 'description', 'full', 'all') or rooms gt 100", "2 3"),
        ("not (rating gt 4 or rooms gt 100)", "1"),
        ("true", "1 2 3"),
        ("rooms lt 30.5", "1 2"),
    ] {
        if filter.contains("gt rooms") {
            assert!(Filter::parse(&it.definition, filter).is_err());
            continue;
        }
        assert_eq!(it.filtered(filter), keys, "{filter}");
    }
    for wrong in [
        "rating gt",
        "nothing eq 1",
        "description eq 'x'",
        "rating eq 'x'",
        "tags eq 'x'",
        "offers/kind eq 'x'",
        "tags/any(t: search.ismatch('x'))",
        "rating eq 1 rating eq 2",
        "geo.distance(place, geography'POINT(0 0)') eq 1",
    ] {
        let error = Filter::parse(&it.definition, wrong).expect_err(wrong);
        assert_eq!(error.kind, ErrorKind::Invalid, "{wrong}");
    }
}

#[test]
fn orders_put_missing_values_first_and_last() {
    let it = Fixture::new();
    let order = |text: &str| it.keys(|request| request.order_by = Some(text.to_owned()));
    assert_eq!(order("rating"), "3 1 2");
    assert_eq!(order("rating desc"), "2 1 3");
    assert_eq!(order("category, rooms desc"), "1 2 3");
    assert_eq!(order("name desc"), "2 3 1");
    assert_eq!(order("address/city desc"), "2 1 3");
    assert_eq!(order("geo.distance(place, geography'POINT(-82 27)') desc"), "1 2 3");
    assert_eq!(order("search.score(), id desc"), "3 2 1");
    assert!(it.try_search(|it| it.order_by = Some("tags".to_owned())).is_err());
}

#[test]
fn facets_count_values_ranges_and_intervals() {
    let it = Fixture::new();
    let facet = |text: &str| {
        let results = it.search(|request| request.facets = vec![text.to_owned()]);
        let facets = results.facets.expect("facets");
        facets.values().next().expect("one").to_string()
    };
    assert_eq!(
        facet("category"),
        r#"[{"count":2,"value":"boutique"},{"count":1,"value":"resort and spa"}]"#
    );
    assert_eq!(
        facet("tags,sort:value"),
        r#"[{"count":2,"value":"pool"},{"count":1,"value":"wifi"}]"#
    );
    assert_eq!(facet("tags,count:1"), r#"[{"count":2,"value":"pool"}]"#);
    assert_eq!(
        facet("rooms,values:20|100"),
        r#"[{"count":1,"to":20},{"count":1,"from":20,"to":100},{"count":1,"from":100}]"#
    );
    assert_eq!(facet("rooms,interval:100"), r#"[{"count":2,"value":0},{"count":1,"value":100}]"#);
    assert_eq!(facet("parking"), r#"[{"count":2,"value":true},{"count":1,"value":false}]"#);
    assert_eq!(
        facet("opened,interval:year"),
        r#"[{"count":1,"value":"1979-01-01T00:00:00Z"},{"count":1,"value":"2015-01-01T00:00:00Z"},{"count":1,"value":"2020-01-01T00:00:00Z"}]"#
    );
    assert_eq!(
        facet("offers/kind"),
        r#"[{"count":2,"value":"suite"},{"count":1,"value":"budget"}]"#
    );
    for wrong in ["nothing", "description", "rooms,interval:x", "tags,values:1", "tags,size:3"] {
        assert!(
            it.try_search(|request| request.facets = vec![wrong.to_owned()]).is_err(),
            "{wrong}"
        );
    }
}

#[test]
fn highlights_and_selections_show_the_parts_that_were_asked_for() {
    let it = Fixture::new();
    let results = it.search(|request| {
        request.search = Some("wifi \"luxury shops\"".to_owned());
        request.highlight = Some("description-2".to_owned());
        request.select = Some("id,address/city".to_owned());
    });
    let first = results.hits.iter().find(|it| it.key == "1").expect("the first hotel");
    assert_eq!(
        Value::Object(first.highlights.clone().expect("highlights")),
        json!({"description": ["The hotel is near the <em>luxury</em> <em>shops</em>.", "It has free <em>wifi</em>."]})
    );
    assert_eq!(
        Value::Object(first.document.clone()),
        json!({"id": "1", "address": {"city": "New York"}})
    );
    let all = it.search(|_| {});
    assert!(all.hits.iter().all(|hit| !hit.document.contains_key("secret")));
}

#[test]
fn scoring_profiles_change_the_order() {
    let it = Fixture::new();
    let with = |text: &str, profile: &str, parameters: &[&str]| {
        it.keys(|request| {
            request.search = Some(text.to_owned());
            request.scoring_profile = Some(profile.to_owned());
            request.scoring_parameters = parameters.iter().map(|it| (*it).to_owned()).collect();
        })
    };
    assert_eq!(with("*", "fresh", &[]), "1 3 2");
    assert_eq!(with("*", "tagged", &["mytags-wifi"]).chars().next(), Some('1'));
    assert!(with("luxury motel", "names", &[]).starts_with('2'));
    assert!(it.try_search(|request| request.scoring_profile = Some("none".to_owned())).is_err());
}

#[test]
fn suggestions_and_completions_come_from_the_suggester_fields() {
    let it = Fixture::new();
    let synonyms = SynonymMaps::new();
    let context = it.context(&synonyms);
    let suggestions = |text: &str, fuzzy| {
        let request = SuggestRequest {
            search: text.to_owned(),
            suggester_name: "sg".to_owned(),
            fuzzy,
            top: 5,
            highlight_pre_tag: Some("[".to_owned()),
            highlight_post_tag: Some("]".to_owned()),
            ..SuggestRequest::default()
        };
        let found = suggest(&context, &request).expect("suggestions");
        found.into_iter().map(|it| it.text).collect::<Vec<_>>()
    };
    assert_eq!(suggestions("land", false), ["Triple [Landscape] Hotel"]);
    assert_eq!(suggestions("twin do", false), ["[Twin] [Dome] Motel"]);
    assert_eq!(suggestions("lamd", false), Vec::<String>::new());
    assert_eq!(suggestions("lamd", true), ["Triple [Landscape] Hotel"]);
    let completions = |text: &str, mode| {
        let request = AutocompleteRequest {
            search: text.to_owned(),
            suggester_name: "sg".to_owned(),
            mode,
            top: 5,
            ..AutocompleteRequest::default()
        };
        let found = autocomplete(&context, &request).expect("completions");
        found.into_iter().map(|it| (it.text, it.query_plus_text)).collect::<Vec<_>>()
    };
    let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
    assert_eq!(completions("twin m", AutocompleteMode::OneTerm), [pair("motel", "twin motel")]);
    assert_eq!(completions("po", AutocompleteMode::TwoTerms), [pair("point hotel", "point hotel")]);
    assert_eq!(
        completions("secret po", AutocompleteMode::OneTermWithContext),
        [pair("secret point", "secret point")]
    );
}

#[test]
fn a_reopened_index_goes_on_where_it_was_and_a_changed_one_starts_anew() {
    let folder = tempfile::tempdir().expect("a folder");
    let definition = definition();
    let open = |definition: &Arc<IndexDefinition>| {
        ShardIndex::open(folder.path(), definition.clone(), ShardSettings::default()).expect("open")
    };
    let shard = open(&definition);
    let documents = documents();
    let upsert = |it: &Value| DocumentChange::Upsert { document: Arc::from(it.to_string()) };
    shard.apply(&documents.iter().map(upsert).collect::<Vec<_>>(), "1").expect("applied");
    shard.commit().expect("committed");
    shard
        .apply(&[upsert(&documents[0]), DocumentChange::Delete { key: "2".to_owned() }], "2")
        .expect("applied");
    assert_eq!(shard.snapshot().documents(), 3, "not visible before the commit");
    shard.commit().expect("committed");
    assert_eq!(shard.snapshot().documents(), 2);
    shard.rest().expect("rested");
    drop(shard);
    let shard = open(&definition);
    assert_eq!(shard.position().as_deref(), Some("2"));
    assert_eq!(shard.snapshot().documents(), 2);
    drop(shard);
    let other =
        json!({"name": "hotels", "fields": [{"name": "id", "type": "Edm.String", "key": true}]});
    let other = Arc::new(IndexDefinition::parse(&other).expect("a definition"));
    assert_eq!(open(&other).position(), None);
}

#[test]
fn documents_that_something_else_orders_have_their_scores_all_the_same() {
    let it = Fixture::new();
    let scores = |order: Option<&str>| {
        let results = it.search(|request| {
            request.search = Some("hotel wifi".to_owned());
            request.order_by = order.map(str::to_owned);
        });
        let mut scores: Vec<(String, String)> =
            results.hits.into_iter().map(|hit| (hit.key, format!("{:.4}", hit.score))).collect();
        scores.sort();
        scores
    };
    assert_eq!(scores(Some("rooms desc")), scores(None));
}
