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
