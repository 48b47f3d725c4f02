//! Queries by index against the same queries over all items.

use std::sync::Arc;

use lazuli_query::evaluate::Context;
use lazuli_query::execute::PageOptions;
use lazuli_query::plan::{Access, Order};
use lazuli_query::{Continuation, Query};
use lazuli_shapes::document::{Collection, IndexingPolicy, QueryRequest, Scope};
use lazuli_store::KeyRange;
use lazuli_value::{Value, View};

use super::world::{World, key};

/// All rows of a query in pages of some size, and how many items and entries were read.
async fn rows(
    world: &World,
    c: &Collection,
    text: &str,
    scope: Scope,
    page_rows: usize,
) -> (Vec<String>, u64, u64) {
    let query = Query::parse(text).unwrap();
    let checked = Arc::new(query.check(&Default::default()).unwrap());
    let (mut all, mut items, mut entries) = (Vec::new(), 0, 0);
    let mut continuation: Option<Continuation> = None;
    loop {
        let request = QueryRequest {
            checked: checked.clone(),
            fingerprint: query.fingerprint(&Default::default()),
            context: Context::new(1_800_000_000_000, 1),
            options: PageOptions::of_rows(page_rows),
            scope: scope.clone(),
            continuation: continuation.take(),
            deadline: None,
            is_strict: false,
        };
        let answer = world.documents.query(c, request).await.unwrap();
        for row in &answer.page.rows {
            all.push(View::parse(row).unwrap().to_json());
        }
        items += answer.work.items_read;
        entries += answer.work.entries_read;
        match answer.page.continuation {
            // What a client brings back.
            Some(next) => continuation = Some(Continuation::decode(&next.encode()).unwrap()),
            None => return (all, items, entries),
        }
    }
}

fn everywhere() -> Scope {
    Scope::Routes(KeyRange::all())
}

async fn filled(world: &World, id: &str, policy: &str) -> Collection {
    let policy = IndexingPolicy::from_value(&Value::from_json(policy.as_bytes()).unwrap());
    let policy = policy.unwrap();
    let c = world.collection_with(id, 3, |new| new.indexing = policy).await;
    for n in 0..60 {
        let lacking = if n % 7 == 0 { String::new() } else { format!(r#","v":{}"#, (n * 37) % 50) };
        let kind = if n % 2 == 0 { "even" } else { "odd" };
        let json = format!(
            r#"{{"id":"{n:02}","pk":"k{}","n":{n},"kind":"{kind}","tags":["t{}","t{}"]{lacking}}}"#,
            n % 6,
            n % 4,
            n % 3
        );
        world.create(&c, &json).await.unwrap();
    }
    c
}

#[tokio::test]
async fn a_query_by_index_answers_what_a_scan_does() {
    let world = World::new(2).await;
    let indexed = filled(&world, "indexed", "{}").await;
    let plain = filled(&world, "plain", r#"{"indexingMode":"none"}"#).await;
    let queries = [
        ("SELECT VALUE c.id FROM c WHERE c.n = 17", false),
        ("SELECT VALUE c.id FROM c WHERE c.n > 40 AND c.kind = 'odd'", false),
        ("SELECT VALUE c.id FROM c WHERE c.kind IN ('odd', 'none')", false),
        ("SELECT VALUE c.id FROM c WHERE c.n < 5 OR c.n > 55", false),
        ("SELECT VALUE c.id FROM c WHERE STARTSWITH(c.kind, 'ev')", false),
        ("SELECT VALUE c.id FROM c WHERE ARRAY_CONTAINS(c.tags, 't3')", false),
        ("SELECT VALUE c.id FROM c WHERE IS_DEFINED(c.v) AND c.v >= 40", false),
        ("SELECT VALUE COUNT(1) FROM c WHERE c.kind = 'odd'", true),
        ("SELECT VALUE COUNT(1) FROM c", true),
        ("SELECT VALUE c.n FROM c ORDER BY c.n", true),
        ("SELECT TOP 7 VALUE c.n FROM c ORDER BY c.n DESC", true),
        ("SELECT VALUE c.id FROM c WHERE c.v > 10 ORDER BY c.v", false),
        ("SELECT VALUE c.v FROM c ORDER BY c.v", true),
        ("SELECT VALUE c.n FROM c WHERE c.n > 10 ORDER BY c.n OFFSET 3 LIMIT 9", true),
        ("SELECT VALUE c.id FROM c WHERE c.pk = 'k3' AND c.n > 20", false),
        ("SELECT VALUE c.id FROM c WHERE c._ts > 0", false),
    ];
    for (text, is_sorted) in queries {
        for page in [3, 100] {
            let (mut by_index, items, _) = rows(&world, &indexed, text, everywhere(), page).await;
            let (mut by_scan, _, _) = rows(&world, &plain, text, everywhere(), page).await;
            if !is_sorted {
                by_index.sort();
                by_scan.sort();
            }
            assert_eq!(by_index, by_scan, "{text} in pages of {page}, {items} items read");
        }
    }
}

#[tokio::test]
async fn an_index_reads_what_it_needs() {
    let world = World::new(1).await;
    let c = filled(&world, "c", "{}").await;
    let cases = [
        ("SELECT * FROM c WHERE c.n = 17", everywhere(), 1, 1),
        ("SELECT * FROM c WHERE c.n >= 50", everywhere(), 10, 10),
        ("SELECT VALUE COUNT(1) FROM c WHERE c.kind = 'odd'", everywhere(), 0, 30),
        ("SELECT * FROM c WHERE c.kind = 'odd'", Scope::Key(key("k3")), 10, 10),
        ("SELECT * FROM c WHERE c.n > 3", Scope::Key(key("k3")), 10, 0),
        ("SELECT * FROM c WHERE c.pk = 'k3' AND c.n > 3", everywhere(), 10, 0),
        ("SELECT TOP 5 * FROM c ORDER BY c.n DESC", everywhere(), 5, 5),
    ];
    for (text, scope, items, entries) in cases {
        let (_, items_read, entries_read) = rows(&world, &c, text, scope, 100).await;
        assert_eq!((items_read, entries_read), (items, entries), "{text}");
    }
}

#[tokio::test]
async fn the_order_of_values_falls_back_where_items_lack_them_or_hold_arrays() {
    let world = World::new(1).await;
    let c = world.collection(2).await;
    for n in 0..20 {
        world.create(&c, &format!(r#"{{"id":"{n}","pk":"k{n}","n":{n}}}"#)).await.unwrap();
    }
    let query = Query::parse("SELECT VALUE c.n FROM c ORDER BY c.n").unwrap();
    let checked = query.check(&Default::default()).unwrap();
    let plan = |c: Collection| {
        let (documents, checked) = (world.documents.clone(), checked.clone());
        async move { documents.plan(&c, &checked, &everywhere()).await.unwrap() }
    };
    assert_eq!(plan(c.clone()).await.order, Order::Merged);
    world.create(&c, r#"{"id":"array","pk":"a","n":[1]}"#).await.unwrap();
    assert_eq!(plan(c.clone()).await.access, Access::Items);
    let lacking = world.create(&c, r#"{"id":"lacking","pk":"a"}"#).await.unwrap();
    assert!(lacking.work.entries_written > 0);
    assert_eq!(plan(c.clone()).await.order, Order::Any);
    let (found, ..) = rows(&world, &c, query.text(), everywhere(), 6).await;
    assert_eq!((found.len(), found.last().map(String::as_str)), (21, Some("[1]")));
}

#[tokio::test]
async fn pages_go_on_across_splits_and_moves() {
    let world = World::new(2).await;
    let c = filled(&world, "c", "{}").await;
    let text = "SELECT VALUE c.n FROM c ORDER BY c.n";
    let query = Query::parse(text).unwrap();
    let checked = Arc::new(query.check(&Default::default()).unwrap());
    let (mut all, mut continuation) = (Vec::new(), None);
    for round in 0.. {
        let request = QueryRequest {
            checked: checked.clone(),
            fingerprint: query.fingerprint(&Default::default()),
            context: Context::new(0, 1),
            options: PageOptions::of_rows(7),
            scope: everywhere(),
            continuation: continuation.take(),
            deadline: None,
            is_strict: false,
        };
        let answer = world.documents.query(&c, request).await.unwrap();
        all.extend(answer.page.rows.iter().map(|row| View::parse(row).unwrap().to_json()));
        match round {
            0 => {
                let range = world.documents.ranges(&c).await.unwrap().remove(0);
                world.documents.split(&c, range.id, None).await.unwrap();
            }
            1 => world.move_all(&c).await,
            _ => {}
        }
        match answer.page.continuation {
            Some(next) => continuation = Some(next),
            None => break,
        }
    }
    let expected: Vec<String> = (0..60).map(|n| n.to_string()).collect();
    assert_eq!(all, expected);
    world.check().await;
}

#[tokio::test]
async fn a_long_query_lets_others_run() {
    use std::sync::atomic::{AtomicUsize, Ordering};
    let world = World::new(1).await;
    let policy = Value::from_json(br#"{"indexingMode":"none"}"#).unwrap();
    let policy = IndexingPolicy::from_value(&policy).unwrap();
    let c = world.collection_with("long", 1, |new| new.indexing = policy).await;
    for n in 0..1_600 {
        world.create(&c, &format!(r#"{{"id":"{n}","pk":"k{n}","n":{n}}}"#)).await.unwrap();
    }
    let turns = AtomicUsize::new(0);
    let other = async {
        loop {
            turns.fetch_add(1, Ordering::Relaxed);
            tokio::task::yield_now().await;
        }
    };
    let query = "SELECT VALUE COUNT(1) FROM c WHERE c.n % 2 = 0";
    let (counted, items, _) = tokio::select! {
        biased;
        answer = rows(&world, &c, query, everywhere(), 100) => answer,
        () = other => unreachable!("it has no end"),
    };
    let between = turns.load(Ordering::Relaxed);
    assert_eq!((counted, items), (vec!["800".to_owned()], 1_600));
    // The items were read in at least three steps.
    assert!(between >= 2, "others ran {between} times while the query read {items} items");
}

#[tokio::test]
async fn a_page_of_several_index_ranges_reads_no_more_than_it_needs() {
    const ITEMS: u64 = 1_500;
    let world = World::new(2).await;
    let c = world.collection(3).await;
    for n in 0..ITEMS {
        let json = format!(r#"{{"id":"{n:04}","pk":"k{n}","a":{},"b":{}}}"#, n % 2, n % 3);
        world.create(&c, &json).await.unwrap();
    }
    let wanted = |n: &u64| n.is_multiple_of(2) || n.is_multiple_of(3);
    let mut expected: Vec<String> =
        (0..ITEMS).filter(wanted).map(|n| format!("\"{n:04}\"")).collect();
    let query = "SELECT VALUE c.id FROM c WHERE c.a = 0 OR c.b = 0";
    let (mut found, _, entries) = rows(&world, &c, query, everywhere(), 20).await;
    found.sort();
    expected.sort();
    assert_eq!(found, expected);
    // Fifty pages, each of which reads two stretches of entries, and not all 1,250 entries.
    assert!(entries < 20_000, "{entries} entries were read");
    let count = "SELECT VALUE COUNT(1) FROM c WHERE c.a = 0 OR c.b = 0";
    let (counted, _, _) = rows(&world, &c, count, everywhere(), 20).await;
    assert_eq!(counted, ["1000"]);
}

/// One page of a query, and how many items it has read.
async fn page(
    world: &World,
    c: &Collection,
    query: &Query,
    continuation: Option<Continuation>,
    deadline: Option<std::time::Duration>,
) -> (Vec<String>, Option<Continuation>, u64) {
    let request = QueryRequest {
        checked: Arc::new(query.check(&Default::default()).unwrap()),
        fingerprint: query.fingerprint(&Default::default()),
        context: Context::new(0, 1),
        options: PageOptions::of_rows(10),
        scope: everywhere(),
        continuation,
        deadline,
        is_strict: true,
    };
    let answer = world.documents.query(c, request).await.unwrap();
    let rows = answer.page.rows.iter().map(|row| View::parse(row).unwrap().to_json()).collect();
    (rows, answer.page.continuation, answer.work.items_read)
}

/// Items of which every third has the state `x`, and a composite index in one container of the two.
async fn thirds(world: &World, count: u64) -> [Collection; 2] {
    let composite = r#"{"includedPaths":[{"path":"/*"}],"compositeIndexes":
        [[{"path":"/state","order":"ascending"},{"path":"/n","order":"descending"}]]}"#;
    let policy = IndexingPolicy::from_value(&Value::from_json(composite.as_bytes()).unwrap());
    let all = [
        world.collection_with("plain", 2, |_| ()).await,
        world.collection_with("composite", 2, |new| new.indexing = policy.unwrap()).await,
    ];
    for (c, n) in all.iter().flat_map(|c| (0..count).map(move |n| (c, n))) {
        let state = if n.is_multiple_of(3) { "x" } else { "y" };
        let json = format!(
            r#"{{"id":"{n}","pk":"k{}","n":{},"state":"{state}","rare":{}}}"#,
            n % 50,
            (n * 7_919) % count,
            n / 4
        );
        world.create(c, &json).await.unwrap();
    }
    all
}

#[tokio::test]
async fn a_page_of_an_order_behind_a_filter_costs_the_same_however_many_items_pass() {
    const ITEMS: u64 = 1_200;
    let world = World::new(2).await;
    let containers = thirds(&world, ITEMS).await;
    for direction in ["", " DESC"] {
        for (c, most) in containers.iter().zip([70, 12]) {
            let text =
                format!("SELECT VALUE c.n FROM c WHERE c.state = 'x' ORDER BY c.n{direction}");
            let query = Query::parse(&text).unwrap();
            let (mut found, mut next) = (Vec::new(), None);
            loop {
                let (rows, more, items) = page(&world, c, &query, next.take(), None).await;
                found.extend(rows);
                // 400 pass. Where the index of the number is read, every third item is one of them.
                assert!(items <= most, "{text}: {items} items for a page");
                match more {
                    Some(more) => next = Some(more),
                    None => break,
                }
            }
            let all = (0..ITEMS).filter(|n| n.is_multiple_of(3)).map(|n| (n * 7_919) % ITEMS);
            let mut all: Vec<u64> = all.collect();
            all.sort_unstable();
            if !direction.is_empty() {
                all.reverse();
            }
            let expected: Vec<String> = all.iter().map(u64::to_string).collect();
            assert_eq!(found, expected, "{text}");
        }
    }
    // Few pass: they are sorted, and no other is read.
    let few = Query::parse("SELECT VALUE c.n FROM c WHERE c.rare = 5 ORDER BY c.n").unwrap();
    let (rows, _, items) = page(&world, &containers[0], &few, None, None).await;
    assert_eq!((rows.len(), items), (4, 4));
}

#[tokio::test]
async fn a_large_partition_key_is_read_in_order_and_a_small_one_as_a_whole() {
    let world = World::new(1).await;
    let c = world.collection(1).await;
    for n in 0..600 {
        let pk = if n % 20 == 0 { "small" } else { "large" };
        let json = format!(r#"{{"id":"{n}","pk":"{pk}","n":{}}}"#, (n * 7) % 600);
        world.create(&c, &json).await.unwrap();
    }
    let text = "SELECT TOP 10 VALUE c.n FROM c ORDER BY c.n";
    for (pk, most) in [("large", 30), ("small", 30)] {
        let (found, items, _) = rows(&world, &c, text, Scope::Key(key(pk)), 10).await;
        assert_eq!(found.len(), 10);
        assert!(items <= most, "{pk}: {items}");
    }
}

#[tokio::test]
async fn a_sort_that_has_begun_goes_on_as_a_sort() {
    let world = World::new(1).await;
    let c = world.collection(2).await;
    for n in 0..40 {
        world.create(&c, &format!(r#"{{"id":"{n}","pk":"k","n":{n}}}"#)).await.unwrap();
    }
    // The one item without a number has all of them sorted.
    world.create(&c, r#"{"id":"lacking","pk":"lacking"}"#).await.unwrap();
    let query = Query::parse("SELECT VALUE c.id FROM c ORDER BY c.n").unwrap();
    let (first, next, _) = page(&world, &c, &query, None, None).await;
    assert_eq!(first[0], "\"lacking\"");
    let operation = lazuli_shapes::document::Operation::delete("lacking");
    world.documents.run_one(&c, &key("lacking"), operation).await.unwrap();
    let (second, ..) = page(&world, &c, &query, next, None).await;
    let expected: Vec<String> = (9..19).map(|n| format!("\"{n}\"")).collect();
    assert_eq!(second, expected);
}

#[tokio::test]
async fn aggregates_are_paused_when_time_is_up_and_go_on_after_splits_and_moves() {
    let world = World::new(2).await;
    let [c, _] = thirds(&world, 1_500).await;
    let queries = [
        ("SELECT VALUE COUNT(1) FROM c WHERE c.n % 2 = 0", vec!["750"], 2),
        ("SELECT VALUE SUM(c.n) FROM c", vec!["1124250"], 2),
        (
            "SELECT MIN(c.n) AS a, MAX(c.n) AS b, AVG(c.n) AS d FROM c",
            vec![r#"{"a":0,"b":1499,"d":749.5}"#],
            2,
        ),
        (
            "SELECT c.state AS s, COUNT(1) AS n FROM c GROUP BY c.state",
            vec![r#"{"s":"x","n":500}"#, r#"{"s":"y","n":1000}"#],
            2,
        ),
        // One page is enough for a count that reads no items, and for lists, which cannot be paused.
        ("SELECT VALUE COUNT(1) FROM c WHERE c.state = 'x'", vec!["500"], 0),
        ("SELECT VALUE MAKELIST(c.n) FROM c WHERE c.n % 1500 = 7", vec!["[7]"], 0),
    ];
    for (text, expected, pauses_min) in queries {
        let query = Query::parse(text).unwrap();
        let (mut found, mut next, mut pauses) = (Vec::new(), None, 0);
        loop {
            // The time is up before the first look at it.
            let late = Some(std::time::Duration::ZERO);
            let (rows, more, _) = page(&world, &c, &query, next.take(), late).await;
            found.extend(rows);
            let Some(more) = more else { break };
            next = Some(Continuation::decode(&more.encode()).unwrap());
            pauses += 1;
            match pauses {
                1 => world.move_all(&c).await,
                2 => {
                    let range = world.documents.ranges(&c).await.unwrap().remove(0);
                    world.documents.split(&c, range.id, None).await.unwrap();
                }
                _ => {}
            }
        }
        assert_eq!(found, expected, "{text}");
        assert!(pauses >= pauses_min, "{text}: {pauses}");
    }
}
