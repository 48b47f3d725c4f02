//! Which files rows name, and what a sweep after a crash takes away.

use std::sync::Arc;

use lazuli_engine::{BlockWriter, Blocks, Owner};
use lazuli_shapes::blob::Blobs;

use super::world::{BIG, World, bytes, none};

/// A file of a blob that no row names, as a crash between upload and commit leaves it.
async fn orphan(world: &World, owner: &Owner) -> lazuli_engine::BlockId {
    let mut writer: Box<dyn BlockWriter> = world.blocks.create(owner).await.unwrap();
    writer.write(bytes(BIG, 9)).await.unwrap();
    writer.finish().await.unwrap().id
}

#[tokio::test]
async fn a_sweep_removes_what_no_row_names_and_nothing_else() {
    let world = World::new().await;
    for name in ["one", "two", "three"] {
        world.put(name, &bytes(BIG, 1)).await;
    }
    // What was replaced and deleted is garbage, which rows name until the collector has taken it away.
    world.put("one", &bytes(BIG, 2)).await;
    world.delete("two", none()).await.unwrap();
    world.put("small", &bytes(10, 2)).await;
    let kept = world.files().await;
    let owner = world.blocks.list(None, 1).await.unwrap().remove(0).owner;
    let mut orphans = Vec::new();
    for route in
        [owner.route.clone(), [&owner.route[..owner.route.len() - 1], b"x\0"].concat().into()]
    {
        orphans.push(orphan(&world, &Owner { route, ..owner.clone() }).await);
    }
    let again = Blobs::new(world.blobs.engine().clone(), Arc::new(world.blocks.reopen()));
    let swept = again.sweep(world.blocks.generation()).await.unwrap();
    assert_eq!((swept.files, swept.removed), (kept.len() as u64 + 2, 2));
    assert_eq!(world.files().await, kept);
    assert_eq!(again.sweep(world.blocks.generation()).await.unwrap().removed, 0);
    assert_eq!(world.get("one").await.unwrap(), bytes(BIG, 2));
    assert_eq!(world.get("three").await.unwrap(), bytes(BIG, 1));
}

#[tokio::test]
async fn all_files_of_contents_are_listed_with_their_owners() {
    let world = World::new().await;
    for name in ["one", "two", "three"] {
        world.put(name, &bytes(BIG, 1)).await;
    }
    world.put("small", &bytes(10, 2)).await;
    let mut named = Vec::new();
    let mut files = world.blobs.named_files().await.unwrap();
    while let Some(page) = files.next().await.unwrap() {
        named.extend(page.into_iter().map(|it| (it.file, it.owner)));
    }
    named.sort_by_key(|(file, _)| file.id);
    let found = world.blocks.list(None, 10).await.unwrap();
    assert_eq!(named, found.into_iter().map(|it| (it.file, it.owner)).collect::<Vec<_>>());
    assert_eq!(named.len(), 3);
}
