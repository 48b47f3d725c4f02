//! Backups of blobs: their files come along, get new names, and are neither lost nor left over afterwards.

use std::collections::BTreeMap;

use lazuli_engine::backup::{BackupParser, BackupPart, RestoreTarget};
use lazuli_engine::{KeyRange, Lsn, PartitionId, Result};
use lazuli_shapes::blob::BlockChoice::{Committed, Latest};
use lazuli_shapes::blob::{DeleteOptions, NewBlob, SequenceConditions, Snapshots, Which};

use super::blocks::{commit, put_block};
use super::world::{BIG, World, any, blob, bytes, none, versions};

const PAGE: usize = 512;
const INCLUDE: DeleteOptions = DeleteOptions { snapshots: Snapshots::Include, permanent: false };

async fn partition(world: &World) -> PartitionId {
    let catalog = world.blobs.engine().manager().catalog().clone();
    let container = catalog.container_named("blobs/a").await.unwrap();
    let all = KeyRange::all();
    catalog.partitions_in(container.id, &all, 1).await.unwrap().remove(0).partition.id
}

async fn restore(world: &World, bytes: &[u8], name: &str) -> Result<()> {
    let engine = world.blobs.engine();
    let mut parser = BackupParser::new();
    parser.push(bytes);
    let Some(BackupPart::Head(head)) = parser.next_part()? else { panic!("it has no head") };
    let mut examiner = engine.examiner(&head);
    let target =
        RestoreTarget { name: name.to_owned(), attributes: BTreeMap::new(), replace: true };
    let mut restore = engine.begin_restore(*head, &target).await?;
    restore.clear().await?;
    while let Some(part) = parser.next_part()? {
        examiner.look(&part)?;
        restore.take(part).await?;
    }
    parser.finish()?;
    restore.finish().await.map(|_| ())
}

/// Blobs in every state that rows and files can be in. Answers the time of a snapshot of `blocks`.
async fn put_every_state(world: &World) -> Lsn {
    world.put("small", &bytes(10, 1)).await;
    world.try_put("versions", &bytes(BIG, 2), &any(), versions()).await.unwrap();
    world.try_put("versions", &bytes(BIG, 3), &any(), versions()).await.unwrap();
    // Blocks in files and in cells, some of them in two contents and some in none yet.
    for (id, length) in [("aa", BIG), ("bb", 100), ("cc", BIG)] {
        put_block(world, "blocks", id, &bytes(length, 4)).await.unwrap();
    }
    commit(world, "blocks", &[(Latest, "aa"), (Latest, "bb")], none()).await.unwrap();
    let (time, _) =
        world.blobs.snapshot(&blob("blocks"), None, &any(), None, none()).await.unwrap();
    put_block(world, "blocks", "dd", &bytes(BIG, 5)).await.unwrap();
    let again = [(Committed, "aa"), (Committed, "bb"), (Latest, "dd")];
    commit(world, "blocks", &again, none()).await.unwrap();
    put_block(world, "blocks", "ee", &bytes(BIG, 6)).await.unwrap();
    let new = NewBlob::default();
    world.blobs.put_page_blob(&blob("pages"), 1 << 20, 0, new, &any(), none()).await.unwrap();
    for seed in [7, 8] {
        let content = world.content(&blob("pages"), &bytes(200 * PAGE, seed)).await;
        let free = SequenceConditions::default();
        let at = u64::from(seed) * PAGE as u64;
        world.blobs.put_pages(&blob("pages"), at, content, free, &any()).await.unwrap();
        world.blobs.snapshot(&blob("pages"), None, &any(), None, none()).await.unwrap();
    }
    // What was deleted is garbage, whose files are no part of a backup.
    world.put("gone", &bytes(BIG, 9)).await;
    world.delete("gone", none()).await.unwrap();
    time
}

#[tokio::test]
async fn every_state_comes_back_and_nothing_is_left_when_all_of_it_is_deleted() {
    let world = World::new().await;
    let time = put_every_state(&world).await;
    let pages = world.get("pages").await.unwrap();

    // All of it is deleted while the backup is taken, and the collector runs: the files stay until the end.
    let id = partition(&world).await;
    let mut backup = world.blobs.engine().backup(id).await.unwrap();
    for name in ["versions", "blocks", "pages"] {
        world.delete_state(name, Which::Current, INCLUDE, none()).await.unwrap();
    }
    world.collect().await;
    let mut taken = Vec::new();
    while let Some(piece) = backup.next().await.unwrap() {
        taken.extend_from_slice(&piece);
    }
    drop(backup);

    for into in ["blobs/a", "blobs/a", "blobs/b"] {
        restore(&world, &taken, into).await.unwrap();
    }
    assert_eq!(world.get("small").await.unwrap(), bytes(10, 1));
    assert_eq!(world.get("versions").await.unwrap(), bytes(BIG, 3));
    let blocks = [bytes(BIG, 4), bytes(100, 4), bytes(BIG, 5)].concat();
    assert_eq!(world.get("blocks").await.unwrap(), blocks);
    let then = world.read(&blob("blocks"), Which::Snapshot(time), None).await.unwrap();
    assert_eq!(then, [bytes(BIG, 4), bytes(100, 4)].concat());
    assert_eq!(world.get("pages").await.unwrap(), pages);
    assert!(world.get("gone").await.is_err());
    // The block that waited can be committed.
    commit(&world, "blocks", &[(Latest, "ee")], none()).await.unwrap();
    assert_eq!(world.get("blocks").await.unwrap(), bytes(BIG, 6));

    // Every file that is there is named, and every count is right: so all of them go.
    let named = async |container: &str| {
        let mut files = world.blobs.named_files().await.unwrap();
        let catalog = world.blobs.engine().manager().catalog();
        let id = catalog.container_named(container).await.unwrap().id;
        let mut ids = std::collections::BTreeSet::new();
        while let Some(page) = files.next().await.unwrap() {
            let own = page.into_iter().filter(|it| it.owner.container == id.0);
            ids.extend(own.map(|it| it.file.id));
        }
        ids.len()
    };
    world.collect().await;
    let others = named("blobs/b").await;
    assert_eq!(world.blocks.count(), named("blobs/a").await + others);
    for name in ["small", "versions", "blocks", "pages"] {
        world.delete_state(name, Which::Current, INCLUDE, none()).await.unwrap();
    }
    world.collect().await;
    // Versions are deleted one by one; there were two, and no snapshot has any file any more.
    assert_eq!(world.blocks.count(), named("blobs/a").await + others);
    assert!(named("blobs/a").await <= 2);
}
