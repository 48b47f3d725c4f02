//! Page blobs: writes anywhere, against a plain array of bytes.

use std::ops::Range;

use lazuli_engine::{Lsn, Result};
use lazuli_shapes::blob::{
    BlobReason, BlobRecord, NewBlob, ReadRange, SequenceAction, SequenceConditions, Which,
};

use super::world::{World, any, blob, bytes, none};

const PAGE: u64 = 512;

async fn write(world: &World, page: u64, pages: u64, seed: u8) -> Result<BlobRecord> {
    let content = world.content(&blob("x"), &bytes((pages * PAGE) as usize, seed)).await;
    let free = SequenceConditions::default();
    world.blobs.put_pages(&blob("x"), page * PAGE, content, free, &any()).await
}

async fn clear(world: &World, page: u64, pages: u64) -> Result<BlobRecord> {
    let (range, free) = (page * PAGE..(page + pages) * PAGE, SequenceConditions::default());
    world.blobs.clear_pages(&blob("x"), range, free, &any()).await
}

async fn new(pages: u64) -> World {
    let world = World::new().await;
    let new = NewBlob::default();
    world.blobs.put_page_blob(&blob("x"), pages * PAGE, 7, new, &any(), none()).await.unwrap();
    world
}

async fn ranges(world: &World, which: Which, previous: Option<Lsn>) -> [Vec<Range<u64>>; 2] {
    let found = world.blobs.page_ranges(&blob("x"), which, None, previous, &any()).await.unwrap();
    let pages = |ranges: Vec<Range<u64>>| {
        ranges.into_iter().map(|range| range.start / PAGE..range.end / PAGE).collect()
    };
    [pages(found.written), pages(found.cleared)]
}

#[tokio::test]
async fn any_writes_and_clears_read_as_an_array_does_also_in_every_snapshot() {
    const PAGES: u64 = 2000;
    let world = new(PAGES).await;
    let mut model = vec![0u8; (PAGES * PAGE) as usize];
    let mut snapshots: Vec<(Lsn, Vec<u8>)> = Vec::new();
    let mut random = lazuli_env::SplitMix64::new(12345);
    let mut draw = |bound: u64| random.next_u64() % bound;
    for round in 0..150u64 {
        let page = draw(PAGES);
        // Some are large enough for files.
        let most = if draw(3) == 0 { 600 } else { 20 };
        let pages = (1 + draw(most)).min(PAGES - page);
        let place = (page * PAGE) as usize..((page + pages) * PAGE) as usize;
        if draw(4) == 0 {
            clear(&world, page, pages).await.unwrap();
            model[place].fill(0);
        } else {
            write(&world, page, pages, round as u8).await.unwrap();
            model[place.clone()].copy_from_slice(&bytes(place.len(), round as u8));
        }
        if round % 30 == 29 {
            let (time, _) =
                world.blobs.snapshot(&blob("x"), None, &any(), None, none()).await.unwrap();
            snapshots.push((time, model.clone()));
        }
    }
    assert_eq!(world.get("x").await.unwrap(), model);
    for (time, then) in &snapshots {
        let which = Which::Snapshot(*time);
        assert_eq!(world.read(&blob("x"), which, None).await.unwrap(), then);
        let range = Some(ReadRange { first: 300_001, last: Some(700_000) });
        let part = world.read(&blob("x"), which, range).await.unwrap();
        assert_eq!(part, then[300_001..700_001]);
        let [written, _] = ranges(&world, which, None).await;
        for (page, bytes) in then.chunks(PAGE as usize).enumerate() {
            let is_inside = written.iter().any(|range| range.contains(&(page as u64)));
            assert!(is_inside || bytes.iter().all(|byte| *byte == 0));
        }
        let [written, cleared] = ranges(&world, Which::Current, Some(*time)).await;
        for (page, pair) in then.chunks(512).zip(model.chunks(512)).enumerate() {
            let page = page as u64;
            let changed = written.iter().chain(&cleared).any(|range| range.contains(&page));
            assert!(changed || pair.0 == pair.1, "page {page} differs and is not in the list");
        }
    }
    world.collect().await;
    for (time, then) in &snapshots {
        assert_eq!(world.read(&blob("x"), Which::Snapshot(*time), None).await.unwrap(), then);
    }
    let include = lazuli_shapes::blob::DeleteOptions {
        snapshots: lazuli_shapes::blob::Snapshots::Include,
        ..Default::default()
    };
    world.delete_state("x", Which::Current, include, none()).await.unwrap();
    world.collect().await;
    world.assert_empty().await;
}

#[tokio::test]
async fn ranges_and_comparisons_name_the_pages_and_no_others() {
    let world = new(100).await;
    write(&world, 10, 10, 1).await.unwrap();
    write(&world, 30, 5, 1).await.unwrap();
    let (first, _) = world.blobs.snapshot(&blob("x"), None, &any(), None, none()).await.unwrap();
    write(&world, 12, 2, 2).await.unwrap();
    write(&world, 50, 1, 2).await.unwrap();
    clear(&world, 31, 2).await.unwrap();
    clear(&world, 60, 9).await.unwrap();
    let (second, _) = world.blobs.snapshot(&blob("x"), None, &any(), None, none()).await.unwrap();
    clear(&world, 0, 100).await.unwrap();
    let at = |time| Which::Snapshot(time);
    assert_eq!(ranges(&world, at(first), None).await, [vec![10..20, 30..35], vec![]]);
    let now = vec![10..20, 30..31, 33..35, 50..51];
    assert_eq!(ranges(&world, at(second), None).await, [now, vec![]]);
    let difference = [vec![12..14, 50..51], vec![31..33]];
    assert_eq!(ranges(&world, at(second), Some(first)).await, difference);
    let all_cleared = [vec![], vec![10..20, 30..31, 33..35, 50..51]];
    assert_eq!(ranges(&world, Which::Current, Some(second)).await, all_cleared);
    let wrong = world.blobs.page_ranges(&blob("x"), at(first), None, Some(second), &any()).await;
    assert_eq!(wrong.unwrap_err().code(), BlobReason::PreviousSnapshotNewer.code());
    let nothing = Some(Lsn(5));
    let wrong = world.blobs.page_ranges(&blob("x"), at(first), None, nothing, &any()).await;
    assert_eq!(wrong.unwrap_err().code(), BlobReason::PreviousSnapshotNotFound.code());
}

#[tokio::test]
async fn a_page_blob_grows_and_shrinks_and_what_was_cut_off_is_zeros_when_it_grows_again() {
    let world = new(4).await;
    write(&world, 0, 4, 1).await.unwrap();
    let refused = write(&world, 3, 2, 1).await.unwrap_err();
    assert_eq!(refused.code(), BlobReason::InvalidPageRange.code());
    world.blobs.resize(&blob("x"), 2 * PAGE, &any()).await.unwrap();
    world.blobs.resize(&blob("x"), 8 * PAGE, &any()).await.unwrap();
    let expected = [&bytes(2048, 1)[..1024], &[0; 3072]].concat();
    assert_eq!(world.get("x").await.unwrap(), expected);
    assert!(world.blobs.resize(&blob("x"), 100, &any()).await.is_err());
}

#[tokio::test]
async fn sequence_numbers_are_set_and_conditions_on_them_hold() {
    let world = new(4).await;
    let set = |action| world.blobs.set_sequence_number(&X, action, &ANY);
    static X: std::sync::LazyLock<lazuli_shapes::blob::BlobAddress> =
        std::sync::LazyLock::new(|| blob("x"));
    static ANY: std::sync::LazyLock<lazuli_shapes::blob::Conditions> =
        std::sync::LazyLock::new(any);
    let number = |record: Result<BlobRecord>| record.unwrap().sequence_number;
    assert_eq!(number(set(SequenceAction::Increment).await), 8);
    assert_eq!(number(set(SequenceAction::Max(5)).await), 8);
    assert_eq!(number(set(SequenceAction::Max(9)).await), 9);
    assert_eq!(number(set(SequenceAction::Update(5)).await), 5);
    let of = |at_most, below, equal| SequenceConditions { at_most, below, equal };
    for (wanted, holds) in [
        (of(Some(5), None, None), true),
        (of(Some(4), None, None), false),
        (of(None, Some(6), None), true),
        (of(None, Some(5), None), false),
        (of(None, None, Some(5)), true),
        (of(None, None, Some(6)), false),
    ] {
        let content = world.content(&X, &bytes(512, 1)).await;
        let outcome = world.blobs.put_pages(&X, 0, content, wanted, &ANY).await;
        assert_eq!(outcome.is_ok(), holds, "{wanted:?}");
    }
}
