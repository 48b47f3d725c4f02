//! Lists of blobs and containers, and blobs found by their tags.

use std::sync::Arc;

use bytes::Bytes;
use lazuli_shapes::blob::{
    FindTest, Include, ListContainers, ListOptions, Listed, NewBlobContainer, Which,
};

use super::blocks::put_block;
use super::world::{World, any, blob, bytes, container, none, retained, versions};

fn options(prefix: &str, delimiter: Option<&str>, include: Include, most: usize) -> ListOptions {
    let delimiter = delimiter.map(str::to_owned);
    ListOptions { prefix: prefix.into(), from: None, delimiter, include, most }
}

/// The whole list, page by page, as texts; no page but the last may be short, and the last may not be empty.
async fn list(world: &World, options: ListOptions) -> Vec<String> {
    let mut all = Vec::new();
    let mut after: Option<Bytes> = None;
    loop {
        let page = world.blobs.list(&container("c"), &options, after.as_ref()).await.unwrap();
        let count = page.entries.len();
        all.extend(page.entries.into_iter().map(|entry| match entry {
            Listed::Prefix(prefix) => format!("{prefix}*"),
            Listed::Blob(it) => {
                let state = match it.which {
                    Which::Current => "",
                    Which::Snapshot(_) => "@snapshot",
                    Which::Version(_) => "@version",
                };
                let deleted = if it.record.deleted.is_some() { "!" } else { "" };
                format!("{}{state}{deleted}", it.name)
            }
        }));
        match page.next {
            Some(next) => {
                assert_eq!(count, options.most);
                after = Some(next);
            }
            None => {
                assert!(count > 0 || all.is_empty());
                return all;
            }
        }
    }
}

#[tokio::test]
async fn names_are_listed_in_order_and_in_pages_of_any_size() {
    for world in World::plain_and_hashed().await {
        let names = ["a", "a/b", "a/b/c", "a/d", "a0", "b", "ä", "日本", "c\0d", "c"];
        let mut sorted = names.map(str::to_owned).to_vec();
        sorted.sort();
        for name in names {
            world.put(name, &bytes(10, 0)).await;
        }
        put_block(&world, "waiting", "a", &bytes(1, 0)).await.unwrap();
        let plain = Include::default();
        for most in 1..=11 {
            assert_eq!(list(&world, options("", None, plain, most)).await, sorted);
            let within = list(&world, options("a/", None, plain, most)).await;
            assert_eq!(within, ["a/b", "a/b/c", "a/d"]);
            let groups = list(&world, options("", Some("/"), plain, most)).await;
            assert_eq!(groups, ["a", "a/*", "a0", "b", "c", "c\0d", "ä", "日本"]);
            let groups = list(&world, options("a/", Some("/"), plain, most)).await;
            assert_eq!(groups, ["a/b", "a/b/*", "a/d"]);
        }
        assert!(list(&world, options("zzz", None, plain, 5)).await.is_empty());
        let from = |name: &str, options| ListOptions { from: Some(name.to_owned()), ..options };
        for most in 1..=11 {
            let flat = |name, prefix| list(&world, from(name, options(prefix, None, plain, most)));
            assert_eq!(flat("a/b/c", "").await, sorted[2..]);
            assert_eq!(flat("a/c", "a/").await, ["a/d"]);
            assert_eq!(flat("", "a/").await, ["a/b", "a/b/c", "a/d"]);
            assert!(flat("b", "a/").await.is_empty());
            let groups = list(&world, from("a/b/c", options("", Some("/"), plain, most))).await;
            assert_eq!(groups, ["a/*", "a0", "b", "c", "c\0d", "ä", "日本"]);
        }
        let uncommitted = Include { uncommitted: true, ..plain };
        assert_eq!(list(&world, options("w", None, uncommitted, 5)).await, ["waiting"]);
    }
}

#[tokio::test]
async fn past_states_are_listed_before_the_current_one_where_they_are_asked_for() {
    for world in World::plain_and_hashed().await {
        for name in ["a", "b", "c"] {
            world.put(name, &bytes(10, 0)).await;
        }
        world.blobs.snapshot(&blob("a"), None, &any(), None, none()).await.unwrap();
        world.blobs.snapshot(&blob("a"), None, &any(), None, none()).await.unwrap();
        world.try_put("b", &bytes(10, 1), &any(), versions()).await.unwrap();
        world.try_put("b", &bytes(10, 2), &any(), versions()).await.unwrap();
        world.delete("c", retained()).await.unwrap();
        let include = |snapshots, versions, deleted| Include {
            snapshots,
            versions,
            deleted,
            ..Include::default()
        };
        for most in 1..=8 {
            let with = |include| list(&world, options("", None, include, most));
            assert_eq!(with(include(false, false, false)).await, ["a", "b"]);
            let snapshots = with(include(true, false, false)).await;
            assert_eq!(snapshots, ["a@snapshot", "a@snapshot", "a", "b"]);
            let all = with(include(true, true, true)).await;
            let expected = ["a@snapshot", "a@snapshot", "a", "b@version", "b@version", "b", "c!"];
            assert_eq!(all, expected);
        }
    }
}

#[tokio::test]
async fn hashed_names_are_listed_in_order_however_many_there_are() {
    let [_, world] = World::plain_and_hashed().await;
    let names: Vec<String> = (0..700).map(|n| format!("2026/{:02}/{n:05}", n / 100)).collect();
    for name in &names {
        world.put(name, &Bytes::new()).await;
    }
    for most in [1, 7, 40, 99, 5_000] {
        let mut found = Vec::new();
        let mut after: Option<Bytes> = None;
        let asked = options("2026/", None, Include::default(), most);
        loop {
            let page = world.blobs.list(&container("c"), &asked, after.as_ref()).await.unwrap();
            assert!(page.entries.len() <= most);
            for entry in page.entries {
                let Listed::Blob(it) = entry else { panic!("nobody asked for groups") };
                found.push(it.name);
            }
            match page.next {
                Some(next) => after = Some(next),
                None => break,
            }
        }
        assert_eq!(found, names, "{most}");
    }
    let groups = list(&world, options("2026/", Some("/"), Include::default(), 3)).await;
    assert_eq!(groups, (0..7).map(|n| format!("2026/{n:02}/*")).collect::<Vec<_>>());
    assert_eq!(world.get("2026/03/00317").await.unwrap(), Bytes::new());
    world.delete("2026/03/00317", none()).await.unwrap();
    assert!(world.get("2026/03/00317").await.is_err());
}

#[tokio::test]
async fn a_group_of_many_names_is_passed_over_and_not_read() {
    for world in World::plain_and_hashed().await {
        for n in 0..300 {
            world.put(&format!("many/{n:04}"), &Bytes::new()).await;
        }
        world.put("z", &Bytes::new()).await;
        let options = options("", Some("/"), Include::default(), 10);
        assert_eq!(list(&world, options).await, ["many/*", "z"]);
    }
}

#[tokio::test]
async fn containers_are_listed_with_deleted_ones_which_come_back_by_their_number() {
    let world = World::empty().await;
    let blobs = &world.blobs;
    for name in ["one", "other", "two"] {
        blobs.create_container(&container(name), NewBlobContainer::default()).await.unwrap();
    }
    blobs.delete_container(&container("other"), &any(), retained()).await.unwrap();
    blobs.create_container(&container("other"), NewBlobContainer::default()).await.unwrap();
    blobs.delete_container(&container("two"), &any(), retained()).await.unwrap();
    let names = |prefix: &str, deleted, most| {
        let options = ListContainers { prefix: prefix.into(), deleted, most };
        async move {
            let mut names = Vec::new();
            let mut after: Option<Bytes> = None;
            loop {
                let page = blobs.list_containers("a", &options, after.as_ref()).await.unwrap();
                names.extend(page.entries.into_iter().map(|it| (it.name, it.deleted)));
                match page.next {
                    Some(next) => after = Some(next),
                    None => return names,
                }
            }
        }
    };
    for most in 1..5 {
        let texts = |list: Vec<(String, Option<_>)>| -> Vec<String> {
            list.into_iter()
                .map(|(name, at)| format!("{name}{}", if at.is_some() { "!" } else { "" }))
                .collect()
        };
        assert_eq!(texts(names("", false, most).await), ["one", "other"]);
        assert_eq!(texts(names("o", true, most).await), ["one", "other!", "other"]);
        assert_eq!(texts(names("", true, most).await), ["one", "other!", "other", "two!"]);
    }
    let deleted = names("", true, 9).await;
    let (in_use, free) = (deleted[1].1.unwrap(), deleted[3].1.unwrap());
    assert!(blobs.restore_container(&container("other"), in_use).await.is_err());
    blobs.restore_container(&container("two"), free).await.unwrap();
    assert!(blobs.container(&container("two"), None).await.is_ok());
    let nobody = blobs.list_containers("nobody", &ListContainers::default(), None).await.unwrap();
    assert!(nobody.entries.is_empty());
}

#[tokio::test]
async fn blobs_are_found_by_their_tags_and_no_page_loses_one() {
    for world in World::plain_and_hashed().await {
        let blobs = &world.blobs;
        for n in 0..40 {
            let name = format!("{n:02}");
            world.put(&name, &Bytes::new()).await;
            let value = if n % 7 == 0 { "seven" } else { "other" };
            let tags = vec![("kind".to_owned(), value.to_owned())];
            blobs.set_tags(&blob(&name), Which::Current, tags, &any()).await.unwrap();
        }
        let test: FindTest = Arc::new(|_, tags| tags.iter().any(|(_, value)| value == "seven"));
        for (scope, most) in [(Some("c"), 1), (Some("c"), 4), (None, 1), (None, 100)] {
            let mut found = Vec::new();
            let mut after: Option<Bytes> = None;
            loop {
                let page = blobs
                    .find_by_tags("a", scope, test.clone(), most, after.as_ref())
                    .await
                    .unwrap();
                found.extend(page.entries.into_iter().map(|it| it.name));
                match page.next {
                    Some(next) => after = Some(next),
                    None => break,
                }
            }
            // Where names are hashed they are found in no order.
            found.sort();
            assert_eq!(found, ["00", "07", "14", "21", "28", "35"], "{scope:?} {most}");
        }
        blobs.delete_container(&container("c"), &any(), none()).await.unwrap();
        let page = blobs.find_by_tags("a", None, test, 100, None).await.unwrap();
        assert!(page.entries.is_empty(), "blobs of a deleted container are not found");
        world.collect().await;
        world.assert_empty().await;
    }
}
