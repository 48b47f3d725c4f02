//! Copies, and contents under customers' keys.

use std::ops::Range;
use std::sync::Arc;

use lazuli_engine::{
    BlockFile, BlockId, BlockReader, BlockWriter, Blocks, BoxFuture, FoundFile, Owner, Result,
};
use lazuli_shapes::blob::{
    AppendConditions, BlobReason, BlobRecord, Blobs, BlockChoice, Conditions, CopyOptions,
    CopySource, CopyStatus, CustomerKey, Etags, NewBlob, SequenceConditions, UploadOptions, Which,
};

use lazuli_store::mem_blocks::MemBlocks;
use tokio::sync::Semaphore;

use super::blocks::{commit, put_block};
use super::world::{BIG, World, any, blob, bytes, none};

pub(crate) fn source(name: &str) -> CopySource {
    CopySource {
        address: blob(name),
        which: Which::Current,
        conditions: any(),
        key: None,
        url: format!("http://here/{name}"),
    }
}

pub(crate) async fn copy(
    world: &World,
    from: &CopySource,
    to: &str,
    options: CopyOptions,
) -> Result<BlobRecord> {
    world.blobs.copy(from, &blob(to), options, &any(), none()).await
}

pub(crate) fn options() -> CopyOptions {
    CopyOptions { id: "copy".into(), with_headers: true, ..CopyOptions::default() }
}

#[tokio::test]
async fn a_copy_of_every_type_is_a_blob_of_its_own() {
    let world = World::new().await;
    world.put("small", &bytes(10, 1)).await;
    world.put("large", &bytes(BIG, 2)).await;
    for n in 0..60 {
        put_block(&world, "blocks", &format!("{n:02}"), &bytes(60_000, n)).await.unwrap();
    }
    put_block(&world, "blocks", "99", &bytes(BIG, 99)).await.unwrap();
    let mut list: Vec<String> = (0..60).map(|n| format!("{n:02}")).collect();
    list.extend(["99".into(), "99".into(), "00".into()]);
    let list: Vec<_> = list.iter().map(|id| (BlockChoice::Latest, id.as_str())).collect();
    commit(&world, "blocks", &list, none()).await.unwrap();
    let new = NewBlob::default();
    world.blobs.put_append_blob(&blob("append"), new.clone(), &any(), none()).await.unwrap();
    for n in 0..3 {
        let content = world.content(&blob("append"), &bytes(if n == 1 { BIG } else { 5 }, n)).await;
        let free = AppendConditions::default();
        world.blobs.append_block(&blob("append"), content, free, &any()).await.unwrap();
    }
    world.blobs.put_page_blob(&blob("pages"), 1 << 20, 3, new, &any(), none()).await.unwrap();
    for (offset, length) in [(512, 512), (65_536, 200_704), (131_072, 512)] {
        let content = world.content(&blob("pages"), &bytes(length, 7)).await;
        let free = SequenceConditions::default();
        world.blobs.put_pages(&blob("pages"), offset, content, free, &any()).await.unwrap();
    }
    let names = ["small", "large", "blocks", "append", "pages"];
    let mut whole = Vec::new();
    for name in names {
        whole.push(world.get(name).await.unwrap());
        let record = copy(&world, &source(name), &format!("{name}-copy"), options()).await.unwrap();
        assert_eq!(record.copy.unwrap().status, CopyStatus::Success);
    }
    for name in names {
        world.delete(name, none()).await.unwrap();
    }
    world.collect().await;
    for (name, whole) in names.iter().zip(&whole) {
        assert_eq!(&world.get(&format!("{name}-copy")).await.unwrap(), whole, "{name}");
    }
    let blocks = world.blobs.block_list(&blob("blocks-copy"), Which::Current, &any()).await;
    assert_eq!(blocks.unwrap().committed.len(), 63, "a copy has the blocks of its source");
    for name in names {
        world.delete(&format!("{name}-copy"), none()).await.unwrap();
    }
    world.collect().await;
    world.assert_empty().await;
}

#[tokio::test]
async fn a_copy_asks_for_its_source_and_minds_the_conditions_on_both() {
    let world = World::new().await;
    let missing = copy(&world, &source("x"), "y", options()).await.unwrap_err();
    assert_eq!(missing.code(), BlobReason::SourceNotFound.code());
    let made = world.put("x", &bytes(10, 1)).await;
    let conditions = Conditions { if_none_match: Some(Etags::These(vec![made.changed])), ..any() };
    let from = CopySource { conditions, ..source("x") };
    let refused = copy(&world, &from, "y", options()).await.unwrap_err();
    assert_eq!(refused.code(), BlobReason::SourceConditionNotMet.code());
    let absent = Conditions { if_none_match: Some(Etags::Any), ..any() };
    let onto_itself = world.blobs.copy(&source("x"), &blob("x"), options(), &absent, none()).await;
    assert_eq!(onto_itself.unwrap_err().code(), BlobReason::BlobExists.code());
    let metadata = vec![("a".to_owned(), "b".to_owned())];
    let with = CopyOptions { metadata: Some(metadata.clone()), ..options() };
    assert_eq!(copy(&world, &source("x"), "y", with).await.unwrap().metadata, metadata);
}

#[tokio::test]
async fn a_snapshot_is_copied_over_its_own_blob() {
    let world = World::new().await;
    world.put("x", &bytes(BIG, 1)).await;
    let (time, _) = world.blobs.snapshot(&blob("x"), None, &any(), None, none()).await.unwrap();
    world.put("x", &bytes(BIG, 2)).await;
    let from = CopySource { which: Which::Snapshot(time), ..source("x") };
    copy(&world, &from, "x", options()).await.unwrap();
    world.collect().await;
    assert_eq!(world.get("x").await.unwrap(), bytes(BIG, 1));
}

/// Block files in memory whose copies wait until they are let through.
struct Gated {
    blocks: MemBlocks,
    gate: Semaphore,
}

impl Blocks for Gated {
    fn create<'a>(&'a self, owner: &'a Owner) -> BoxFuture<'a, Result<Box<dyn BlockWriter>>> {
        self.blocks.create(owner)
    }

    fn copy<'a>(
        &'a self,
        file: &'a BlockFile,
        owner: &'a Owner,
    ) -> BoxFuture<'a, Result<BlockFile>> {
        Box::pin(async move {
            self.gate.acquire().await.unwrap().forget();
            self.blocks.copy(file, owner).await
        })
    }

    fn read<'a>(
        &'a self,
        file: &'a BlockFile,
        range: Range<u64>,
    ) -> BoxFuture<'a, Result<Box<dyn BlockReader>>> {
        self.blocks.read(file, range)
    }

    fn remove(&self, id: BlockId) -> BoxFuture<'_, Result<()>> {
        self.blocks.remove(id)
    }

    fn remove_of<'a>(&'a self, owner: &'a Owner, id: BlockId) -> BoxFuture<'a, Result<()>> {
        self.blocks.remove_of(owner, id)
    }

    fn list(&self, after: Option<BlockId>, most: usize) -> BoxFuture<'_, Result<Vec<FoundFile>>> {
        self.blocks.list(after, most)
    }
}

#[tokio::test]
async fn a_long_copy_goes_on_in_the_background_and_can_be_called_off() {
    let world = World::new().await;
    let length = 65 * 1024 * 1024;
    world.put("x", &vec![7u8; length].into()).await;
    let gated = Arc::new(Gated { blocks: world.blocks.clone(), gate: Semaphore::new(0) });
    let blobs = Blobs::new(world.blobs.engine().clone(), gated.clone());
    let start = |id: &str, to| {
        let options = CopyOptions { id: id.into(), ..options() };
        let (blobs, to) = (blobs.clone(), blob(to));
        async move { blobs.start_copy(&source("x"), &to, options, &any(), none()).await }
    };
    let begun = start("one", "y").await.unwrap();
    assert_eq!(begun.copy.unwrap().status, CopyStatus::Pending);
    assert_eq!(start("two", "y").await.unwrap_err().code(), BlobReason::PendingCopy.code());
    let wrong = blobs.abort_copy(&blob("y"), "two", None).await.unwrap_err();
    assert_eq!(wrong.code(), BlobReason::CopyIdMismatch.code());
    blobs.abort_copy(&blob("y"), "one", None).await.unwrap();
    let again = blobs.abort_copy(&blob("y"), "one", None).await.unwrap_err();
    assert_eq!(again.code(), BlobReason::NoPendingCopy.code());
    start("three", "z").await.unwrap();
    gated.gate.add_permits(2);
    let status = |name| {
        let blobs = blobs.clone();
        async move {
            let record = blobs.properties(&blob(name), Which::Current, &any(), None).await;
            record.unwrap().copy.unwrap().status
        }
    };
    while status("z").await == CopyStatus::Pending {
        tokio::task::yield_now().await;
    }
    assert_eq!(world.get("z").await.unwrap().len(), length);
    assert_eq!(status("y").await, CopyStatus::Aborted);
    assert_eq!(world.get("y").await.unwrap().len(), 0);
    world.wait_for_files(2).await;
}

fn key(seed: u8) -> CustomerKey {
    CustomerKey { key: [seed; 32], sha256: [seed; 32] }
}

#[tokio::test]
async fn what_was_written_with_a_key_is_encrypted_and_read_with_it_alone() {
    let world = World::new().await;
    for length in [100, BIG] {
        let plain = bytes(length, 1);
        let options = UploadOptions { md5: false, key: Some(key(1)) };
        let mut upload = world.blobs.upload(&blob("x"), &options).await.unwrap();
        upload.write(plain.clone()).await.unwrap();
        let content = upload.finish().await.unwrap();
        let new = NewBlob::default();
        let record =
            world.blobs.put_block_blob(&blob("x"), content, new, &any(), none()).await.unwrap();
        assert_eq!(record.key_sha256, Some([1; 32]));
        let read = |key: Option<CustomerKey>| {
            let blobs = world.blobs.clone();
            async move {
                let x = blob("x");
                let range = Some(lazuli_shapes::blob::ReadRange { first: 7, last: None });
                let mut read = blobs.read(&x, Which::Current, range, &any(), key.as_ref()).await?;
                let mut all = Vec::new();
                while let Some(piece) = read.reader.next().await? {
                    all.extend_from_slice(&piece);
                }
                Ok::<Vec<u8>, lazuli_engine::Error>(all)
            }
        };
        assert_eq!(read(Some(key(1))).await.unwrap(), plain[7..]);
        assert_eq!(read(None).await.unwrap_err().code(), BlobReason::KeyRequired.code());
        assert_eq!(read(Some(key(2))).await.unwrap_err().code(), BlobReason::KeyMismatch.code());
        for (with, same) in [(Some(key(1)), true), (Some(key(2)), false), (None, false)] {
            let from = CopySource { key: Some(key(1)), ..source("x") };
            let to = CopyOptions { key: with.clone(), ..self::options() };
            let record = copy(&world, &from, "y", to).await.unwrap();
            assert_eq!(record.key_sha256 == Some([1; 32]), same);
            let y = blob("y");
            let mut read =
                world.blobs.read(&y, Which::Current, None, &any(), with.as_ref()).await.unwrap();
            let mut all = Vec::new();
            while let Some(piece) = read.reader.next().await.unwrap() {
                all.extend_from_slice(&piece);
            }
            assert_eq!(all, plain);
        }
    }
}
