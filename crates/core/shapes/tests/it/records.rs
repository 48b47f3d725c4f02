//! Records through the shape, on stores in memory: keys, conditions, transactions, queries (T1, T3, T5).

use std::sync::Arc;

use bytes::Bytes;
use lazuli_engine::{Engine, Kind, MapKind, PageLimit, Settings};
use lazuli_shapes::record::{
    Condition, Query, Record, RecordPage, RecordRange, RecordRef, RecordWrite, Records,
};
use lazuli_shardmap::manager::NewShard;
use lazuli_store::mem::MemStore;

async fn records() -> Records {
    let env = lazuli_env::real::env();
    let engine = Engine::on(env, Settings::default(), Arc::new(MemStore::new())).await.unwrap();
    for name in ["one", "two"] {
        let new = NewShard {
            name: name.into(),
            location: name.into(),
            region: "here".into(),
            labels: Default::default(),
        };
        engine.add_shard(&new, Arc::new(MemStore::new())).await.unwrap();
    }
    Records::new(engine)
}

fn query(range: RecordRange, most: usize) -> Query {
    Query { range, filter: None, limit: PageLimit::items(most), after: None }
}

fn keys(page: &RecordPage) -> Vec<String> {
    page.records.iter().map(|r| format!("{}/{}", r.partition_key, r.row_key)).collect()
}

async fn all_pages(records: &Records, name: &str, mut query: Query) -> Vec<Record> {
    let mut found = Vec::new();
    loop {
        let page = records.query(name, &query).await.unwrap();
        found.extend(page.records);
        match page.next {
            Some(next) => query.after = Some(next),
            None => return found,
        }
    }
}

#[tokio::test]
async fn containers_are_created_listed_deleted_and_created_again() {
    let records = records().await;
    for (name, title) in [("t/a/people", "People"), ("t/a/cars", "Cars"), ("t/b/x", "X")] {
        records.create(name, title, MapKind::Range).await.unwrap();
    }
    let again = records.create("t/a/people", "PEOPLE", MapKind::Range).await.unwrap_err();
    assert_eq!(again.kind(), Kind::Exists);
    let list = records.list("t/a/", None, 10).await.unwrap();
    let titles: Vec<_> = list.iter().map(|(_, title)| title.as_str()).collect();
    assert_eq!(titles, ["Cars", "People"]);
    assert_eq!(records.list("t/a/", Some("t/a/cars"), 10).await.unwrap().len(), 1);
    assert_eq!(records.list("t/", None, 2).await.unwrap().len(), 2);
    records.insert("t/a/people", "p", "r", "x".into()).await.unwrap();
    records.remove("t/a/people").await.unwrap();
    assert_eq!(records.remove("t/a/people").await.unwrap_err().kind(), Kind::NotFound);
    assert_eq!(records.get("t/a/people", "p", "r").await.unwrap_err().kind(), Kind::NotFound);
    records.create("t/a/people", "people", MapKind::Range).await.unwrap();
    assert_eq!(records.get("t/a/people", "p", "r").await.unwrap(), None);
    records.insert("t/a/people", "p", "r", "y".into()).await.unwrap();
}

#[tokio::test]
async fn what_fronts_keep_about_containers_and_services_is_kept() {
    let records = records().await;
    records.create("t/a", "A", MapKind::Range).await.unwrap();
    assert_eq!(records.attribute("t/a", "acl").await.unwrap(), None);
    records.set_attribute("t/a", "acl", Some("x")).await.unwrap();
    assert_eq!(records.attribute("t/a", "acl").await.unwrap().as_deref(), Some("x"));
    assert_eq!(records.list("t/", None, 9).await.unwrap(), [("t/a".into(), "A".into())]);
    records.insert("t/a", "p", "r", Bytes::new()).await.unwrap();
    records.set_attribute("t/a", "acl", None).await.unwrap();
    assert_eq!(records.attribute("t/a", "acl").await.unwrap(), None);
    let missing = records.set_attribute("t/b", "acl", None).await.unwrap_err();
    assert_eq!(missing.kind(), Kind::NotFound);
    assert_eq!(records.service("t").await.unwrap(), None);
    records.set_service("t", Bytes::from_static(b"one")).await.unwrap();
    records.set_service("t", Bytes::from_static(b"two")).await.unwrap();
    assert_eq!(records.service("t").await.unwrap().as_deref(), Some(&b"two"[..]));
}

#[tokio::test]
async fn a_record_is_inserted_once_and_changed_under_conditions() {
    let records = records().await;
    records.create("t", "t", MapKind::Range).await.unwrap();
    let first = records.insert("t", "p", "r", "1".into()).await.unwrap();
    let exists = records.insert("t", "p", "r", "2".into()).await.unwrap_err();
    assert_eq!(exists.kind(), Kind::Exists);
    let found = records.get("t", "p", "r").await.unwrap().unwrap();
    assert_eq!((found.version, &found.payload[..]), (first, &b"1"[..]));
    let append: RecordWrite = RecordWrite::Update(Arc::new(|old: Option<&Bytes>| {
        Ok([old.map_or(&b""[..], |old| old), b"+"].concat().into())
    }));
    let write = |condition, operation| records.write("t", "p", "r", condition, operation);
    let second = write(Condition::Version(first), append.clone()).await.unwrap();
    let stale = write(Condition::Version(first), append.clone()).await.unwrap_err();
    assert_eq!(stale.kind(), Kind::Precondition);
    write(Condition::Any, append).await.unwrap();
    let found = records.get("t", "p", "r").await.unwrap().unwrap();
    assert_eq!(&found.payload[..], b"1++");
    assert!(found.version > second);
    write(Condition::Present, RecordWrite::Delete).await.unwrap();
    let gone = write(Condition::Present, RecordWrite::Delete).await.unwrap_err();
    assert_eq!(gone.kind(), Kind::NotFound);
}

#[tokio::test]
async fn a_transaction_is_all_or_nothing_and_names_what_failed() {
    let records = records().await;
    records.create("t", "t", MapKind::Range).await.unwrap();
    let put = |row: &str, condition| (row.to_owned(), condition, RecordWrite::Put("x".into()));
    let version = records
        .write_all("t", "p", vec![put("a", Condition::Absent), put("b", Condition::Absent)])
        .await
        .unwrap();
    let failed = records
        .write_all("t", "p", vec![put("c", Condition::Absent), put("b", Condition::Absent)])
        .await
        .unwrap_err();
    assert_eq!((failed.kind(), failed.position()), (Kind::Exists, Some(1)));
    let left = all_pages(&records, "t", query(RecordRange::All, 10)).await;
    let names: Vec<_> = left.iter().map(|r| r.row_key.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
    assert!(left.iter().all(|record| record.version == version));
}

#[tokio::test]
async fn queries_follow_the_keys_and_go_on_where_they_ended() {
    let records = records().await;
    for (name, kind) in [("ranged", MapKind::Range), ("hashed", MapKind::Hash)] {
        records.create(name, name, kind).await.unwrap();
        for n in 0..60u32 {
            let (partition, row) = (format!("p{}", n / 10), format!("r{}", n % 10));
            records.insert(name, &partition, &row, n.to_string().into()).await.unwrap();
        }
        let rows = RecordRange::Rows {
            partition_key: "p2".into(),
            from: "r3".into(),
            to: Some("r6".into()),
        };
        let page = records.query(name, &query(rows, 100)).await.unwrap();
        assert_eq!(keys(&page), ["p2/r3", "p2/r4", "p2/r5"]);
        assert_eq!((page.examined, page.partitions, page.next), (3, 1, None));
        for size in [1, 7, 60, 100] {
            let all = all_pages(&records, name, query(RecordRange::All, size)).await;
            assert_eq!(all.len(), 60, "{name} in pages of {size}");
        }
        let mut filtered = query(RecordRange::All, 4);
        filtered.filter = Some(Arc::new(|record: &RecordRef<'_>| record.row_key == "r7"));
        let mut found = all_pages(&records, name, filtered).await;
        found.sort_by(|a, b| a.partition_key.cmp(&b.partition_key));
        let partitions: Vec<_> = found.iter().map(|r| &*r.partition_key).collect();
        assert_eq!(partitions, ["p0", "p1", "p2", "p3", "p4", "p5"]);
    }
    let partitions = RecordRange::Partitions { from: "p1".into(), to: Some("p3".into()) };
    let page = records.query("ranged", &query(partitions, 100)).await.unwrap();
    assert_eq!((page.records.len(), page.examined), (20, 20));
    let sorted = page.records.is_sorted_by_key(|r| (r.partition_key.clone(), r.row_key.clone()));
    assert!(sorted);
}

#[tokio::test]
async fn keys_are_any_text() {
    let records = records().await;
    records.create("t", "t", MapKind::Range).await.unwrap();
    let names = ["", "\0", "\0\0a", "ä", "日本", "a b/c", "\u{10ffff}"];
    for partition in names {
        for row in names {
            records.insert("t", partition, row, "x".into()).await.unwrap();
        }
    }
    let all = all_pages(&records, "t", query(RecordRange::All, 5)).await;
    let mut expected: Vec<_> =
        names.iter().flat_map(|p| names.map(|r| (p.to_string(), r.to_string()))).collect();
    expected.sort();
    let found: Vec<_> = all.into_iter().map(|r| (r.partition_key.to_string(), r.row_key)).collect();
    assert_eq!(found, expected);
}
