//! What every keeper of block files must do, as cases.

#![allow(clippy::unwrap_used, reason = "a panic in a case is the failure report")]

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use lazuli_env::BoxFuture;

use crate::Kind;
use crate::blocks::{BlockFile, BlockId, Blocks, Owner, PIECE_BYTES_MAX};
use crate::crc64::crc64;

/// One case, given an empty keeper.
pub type Case = fn(Arc<dyn Blocks>) -> BoxFuture<'static, ()>;

pub const CASES: &[(&str, Case)] = &[
    ("what was written is read, whole and in parts", |it| Box::pin(parts(it))),
    ("an empty file is a file", |it| Box::pin(empty(it))),
    ("a writer that is dropped leaves nothing", |it| Box::pin(dropped(it))),
    ("a removed file is gone, and may be removed again", |it| Box::pin(removed(it))),
    ("a file goes on the word of its owner and of nobody else", |it| Box::pin(owned(it))),
    ("a copy is a file of its own", |it| Box::pin(copied(it))),
    ("the list is sorted and goes on where it ended", |it| Box::pin(listed(it))),
    ("a row that says something else than the file is found", |it| Box::pin(mistaken(it))),
];

fn owner(name: &str) -> Owner {
    Owner { container: 7, route: Bytes::copy_from_slice(name.as_bytes()) }
}

fn sample(length: usize) -> Bytes {
    (0..length).map(|n| (n % 251) as u8).collect()
}

async fn put(blocks: &Arc<dyn Blocks>, name: &str, bytes: &Bytes) -> BlockFile {
    let mut writer = blocks.create(&owner(name)).await.unwrap();
    for start in (0..bytes.len()).step_by(100_000) {
        writer.write(bytes.slice(start..bytes.len().min(start + 100_000))).await.unwrap();
    }
    let file = writer.finish().await.unwrap();
    assert_eq!((file.length, file.crc64), (bytes.len() as u64, crc64(bytes)));
    file
}

async fn read(blocks: &Arc<dyn Blocks>, file: &BlockFile, from: u64, to: u64) -> Bytes {
    let mut reader = blocks.read(file, from..to).await.unwrap();
    let mut bytes = BytesMut::new();
    while let Some(piece) = reader.next().await.unwrap() {
        assert!(!piece.is_empty() && piece.len() <= PIECE_BYTES_MAX);
        bytes.extend_from_slice(&piece);
    }
    bytes.freeze()
}

async fn parts(blocks: Arc<dyn Blocks>) {
    let bytes = sample(3 * PIECE_BYTES_MAX + 17);
    let file = put(&blocks, "a", &bytes).await;
    let length = file.length;
    for (from, to) in [(0, length), (0, 1), (5, 5), (100, 700_000), (length - 1, length)] {
        let expected = &bytes[from as usize..to as usize];
        assert_eq!(&read(&blocks, &file, from, to).await[..], expected, "{from}..{to}");
    }
    let beyond = blocks.read(&file, 0..length + 1).await.err().unwrap();
    assert_eq!(beyond.kind(), Kind::Invalid);
}

async fn empty(blocks: Arc<dyn Blocks>) {
    let file = put(&blocks, "a", &Bytes::new()).await;
    assert!(read(&blocks, &file, 0, 0).await.is_empty());
}

async fn dropped(blocks: Arc<dyn Blocks>) {
    let mut writer = blocks.create(&owner("a")).await.unwrap();
    writer.write(sample(10)).await.unwrap();
    drop(writer);
    assert_eq!(blocks.list(None, 10).await.unwrap(), []);
}

async fn removed(blocks: Arc<dyn Blocks>) {
    let file = put(&blocks, "a", &sample(10)).await;
    blocks.remove(file.id).await.unwrap();
    blocks.remove(file.id).await.unwrap();
    assert_eq!(blocks.list(None, 10).await.unwrap(), []);
    let missing = blocks.read(&file, 0..10).await.err().unwrap();
    assert_eq!(missing.kind(), Kind::Corrupt);
}

async fn owned(blocks: Arc<dyn Blocks>) {
    let file = put(&blocks, "a", &sample(10)).await;
    let elsewhere = Owner { container: 8, ..owner("a") };
    for other in [owner("b"), elsewhere] {
        blocks.remove_of(&other, file.id).await.unwrap();
        assert_eq!(blocks.list(None, 10).await.unwrap().len(), 1);
    }
    blocks.remove_of(&owner("a"), file.id).await.unwrap();
    blocks.remove_of(&owner("a"), file.id).await.unwrap();
    assert_eq!(blocks.list(None, 10).await.unwrap(), []);
}

async fn copied(blocks: Arc<dyn Blocks>) {
    let bytes = sample(70_000);
    let file = put(&blocks, "a", &bytes).await;
    let copy = blocks.copy(&file, &owner("b")).await.unwrap();
    assert_ne!(copy.id, file.id);
    assert_eq!((copy.length, copy.crc64), (file.length, file.crc64));
    blocks.remove(file.id).await.unwrap();
    assert_eq!(read(&blocks, &copy, 0, copy.length).await, bytes);
}

async fn listed(blocks: Arc<dyn Blocks>) {
    let mut expected = Vec::new();
    for name in ["a", "b", "c", "d", "e"] {
        expected.push((put(&blocks, name, &sample(10)).await, owner(name)));
    }
    let mut found: Vec<(BlockFile, Owner)> = Vec::new();
    let mut after: Option<BlockId> = None;
    loop {
        let page = blocks.list(after, 2).await.unwrap();
        let Some(last) = page.last() else { break };
        after = Some(last.file.id);
        found.extend(page.into_iter().map(|it| (it.file, it.owner)));
    }
    assert_eq!(found, expected);
}

async fn mistaken(blocks: Arc<dyn Blocks>) {
    let file = put(&blocks, "a", &sample(10)).await;
    let longer = BlockFile { length: 11, ..file };
    assert_eq!(blocks.read(&longer, 0..11).await.err().unwrap().kind(), Kind::Corrupt);
    let other = BlockFile { crc64: file.crc64 ^ 1, ..file };
    let outcome = match blocks.read(&other, 0..10).await {
        Ok(mut reader) => loop {
            match reader.next().await {
                Ok(Some(_)) => {}
                Ok(None) => break None,
                Err(error) => break Some(error),
            }
        },
        Err(error) => Some(error),
    };
    assert_eq!(outcome.unwrap().kind(), Kind::Corrupt);
}
