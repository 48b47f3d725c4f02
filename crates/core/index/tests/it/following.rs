//! Following: a derived map shows what the documents are, after writes, splits, merges, crashes and lost change records.

use lazuli_engine::{KeyRange, Middle, Partition};
use lazuli_index::{Index, Indexes, Positions};

use crate::{ACCOUNT, Naive, World, delete};

async fn same(world: &World, index: &Index, naive: &Naive) {
    assert_eq!(naive.documents.len() as u64, world.indexes.count(index).await.unwrap());
    for (key, text) in &naive.documents {
        let found = world.indexes.document(index, key).await.unwrap().unwrap();
        assert_eq!(&found.text[..], text.as_bytes(), "{key}");
    }
}

async fn partitions(world: &World, index: &Index) -> Vec<Partition> {
    let catalog = world.engine().manager().catalog().clone();
    let entries = catalog.partitions_in(index.id(), &KeyRange::all(), 100).await.unwrap();
    entries.into_iter().map(|entry| entry.partition).collect()
}

#[tokio::test]
async fn a_follower_shows_every_write_and_knows_when_it_does() {
    let world = World::new().await;
    let index = world.index("plain").await;
    world.upload(&index, 0..50, "before").await;
    let mut naive = world.follow(&index, Positions::default());
    naive.catch_up().await;
    same(&world, &index, &naive).await;
    let written = world.indexes.write(&index, vec![delete("7")]).await.unwrap();
    let (route, lsn) = (written[0].route.clone(), written[0].lsn);
    assert!(!naive.follower.positions().has(&route, lsn));
    world.upload(&index, 40..90, "after").await;
    let writes = world.indexes.last_writes(&index).await.unwrap();
    let shows_all = |naive: &Naive| {
        writes.iter().all(|(routes, lsn)| naive.follower.positions().has_all(routes, *lsn))
    };
    assert!(!shows_all(&naive));
    naive.catch_up().await;
    assert!(naive.follower.positions().has(&route, lsn) && shows_all(&naive));
    same(&world, &index, &naive).await;
}

#[tokio::test]
async fn a_follower_goes_on_from_its_commit_after_splits_and_merges() {
    let world = World::new().await;
    let index = world.index("cut").await;
    world.upload(&index, 0..300, "before").await;
    let mut naive = world.follow(&index, Positions::default());
    naive.catch_up().await;
    let committed = naive.follower.positions().to_text();
    let kept = naive.documents.clone();
    let all = partitions(&world, &index).await;
    let engine = world.engine();
    let at = engine.middle(&all[2], Middle::Size).await.unwrap();
    engine.split((&all[2]).into(), at).await.unwrap();
    world.upload(&index, 250..400, "split").await;
    naive.catch_up().await;
    same(&world, &index, &naive).await;
    let all = partitions(&world, &index).await;
    assert_eq!(all.len(), 13);
    engine.merge((&all[2]).into(), (&all[3]).into()).await.unwrap();
    world.write(&index, vec![delete("1"), delete("260"), delete("399")]).await;
    // As after a crash: what was taken in behind the last commit is lost.
    let mut naive = world.follow(&index, Positions::from_text(&committed).unwrap());
    naive.documents = kept;
    naive.catch_up().await;
    same(&world, &index, &naive).await;
}

#[tokio::test]
async fn documents_that_go_while_the_others_are_read_do_not_stay() {
    let world = World::new().await;
    let index = world.index("filling").await;
    world.upload(&index, 0..100, "before").await;
    let mut naive = world.follow(&index, Positions::default());
    assert!(naive.step().await);
    world.write(&index, (0..50).map(|key| delete(&key.to_string())).collect()).await;
    naive.catch_up().await;
    same(&world, &index, &naive).await;
    assert_eq!(naive.documents.len(), 50);
}

#[tokio::test]
async fn a_text_index_from_before_forgotten_deletions_is_recognised() {
    let world = World::new().await;
    let index = world.index("forgotten").await;
    world.upload(&index, 0..100, "before").await;
    let mut naive = world.follow(&index, Positions::default());
    naive.catch_up().await;
    let old = naive.follower.positions().clone();
    world.write(&index, vec![delete("5"), delete("6")]).await;
    naive.catch_up().await;
    assert_eq!(naive.deletions.len(), 2);
    let committed = naive.follower.positions().clone();
    let deletions = std::mem::take(&mut naive.deletions);
    let forget = world.indexes.forget_deletions(ACCOUNT, &index, &committed, &deletions);
    assert!(forget.await.unwrap());
    assert!(world.indexes.is_stale(ACCOUNT, &index, &old).await.unwrap());
    assert!(!world.indexes.is_stale(ACCOUNT, &index, &committed).await.unwrap());
    world.upload(&index, 100..110, "after").await;
    naive.catch_up().await;
    same(&world, &index, &naive).await;
    // Only the newest change of each document is left.
    let mut anew = world.follow(&index, Positions::default());
    anew.catch_up().await;
    same(&world, &index, &anew).await;
    assert!(anew.deletions.is_empty());
}

#[tokio::test]
async fn deletions_are_forgotten_once_all_copies_of_a_fleet_have_them() {
    let world = World::new().await;
    let index = world.index("fleet").await;
    let indexes = Indexes::new(world.engine().clone(), true);
    world.upload(&index, 0..20, "before").await;
    let (mut first, mut second) =
        (world.follow(&index, Positions::default()), world.follow(&index, Positions::default()));
    first.catch_up().await;
    second.catch_up().await;
    let before = second.follower.positions().clone();
    let announce = |copy, naive: &Naive| {
        let (indexes, index, positions) =
            (indexes.clone(), index.clone(), naive.follower.positions().clone());
        async move { indexes.announce_copy(ACCOUNT, &index, copy, &positions).await.unwrap() }
    };
    announce("second", &second).await;
    world.write(&index, vec![delete("5"), delete("6")]).await;
    first.catch_up().await;
    announce("first", &first).await;
    let committed = first.follower.positions().clone();
    let deletions = std::mem::take(&mut first.deletions);
    let forget =
        async || indexes.forget_deletions(ACCOUNT, &index, &committed, &deletions).await.unwrap();
    assert!(!forget().await, "the second copy does not have them");
    assert!(!indexes.is_stale(ACCOUNT, &index, &before).await.unwrap());
    second.catch_up().await;
    announce("second", &second).await;
    assert!(forget().await);
    assert!(indexes.is_stale(ACCOUNT, &index, &before).await.unwrap());
    let mut anew = world.follow(&index, Positions::default());
    anew.catch_up().await;
    same(&world, &index, &anew).await;
    assert!(anew.deletions.is_empty());
    // One that is given up holds up nothing, and is recognised when it comes back.
    let away = second.follower.positions().clone();
    world.write(&index, vec![delete("7")]).await;
    first.catch_up().await;
    announce("first", &first).await;
    let (committed, deletions) = (first.follower.positions(), std::mem::take(&mut first.deletions));
    let forget = || indexes.forget_deletions(ACCOUNT, &index, committed, &deletions);
    assert!(!forget().await.unwrap());
    indexes.forget_copy(ACCOUNT, &index, "second").await.unwrap();
    assert!(forget().await.unwrap());
    assert!(indexes.is_stale(ACCOUNT, &index, &away).await.unwrap());
}

#[tokio::test]
async fn a_document_leaves_one_change_however_often_it_is_written() {
    let world = World::new().await;
    let index = world.index("newest").await;
    for round in 0..20 {
        world.upload(&index, 0..5, &format!("round {round}")).await;
    }
    let twice = vec![crate::upload("1", "first"), crate::upload("1", "second")];
    world.write(&index, twice).await;
    let mut seen = 0;
    for routes in lazuli_index::slices().unwrap() {
        let limit = lazuli_engine::PageLimit::items(1_000);
        let start = bytes::Bytes::new();
        let page = world.engine().changes(index.id(), &routes.start, &start, limit);
        seen += page.await.unwrap().changes.len();
    }
    assert_eq!(seen, 5);
    let mut naive = world.follow(&index, Positions::default());
    naive.catch_up().await;
    assert!(naive.documents["1"].contains("second"));
}
