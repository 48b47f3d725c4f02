//! Files that are not what was written: each damage is found, none of them is a panic or a wrong byte.

use std::path::{Path, PathBuf};

use bytes::{Bytes, BytesMut};
use lazuli_store::blocks::{BlockFile, BlockId, Blocks, Owner};
use lazuli_store::{Kind, Result};
use lazuli_store_blocks::{BlockFiles, Durability};

const LENGTH: usize = 700_000;

fn owner() -> Owner {
    Owner { container: 1, route: Bytes::from_static(b"route") }
}

fn path(root: &Path, id: BlockId) -> PathBuf {
    root.join(format!("{:016x}", id.generation)).join(format!("{:016x}", id.number))
}

async fn put(files: &BlockFiles) -> BlockFile {
    let mut writer = files.create(&owner()).await.unwrap();
    let bytes: Bytes = (0..LENGTH).map(|n| (n % 253) as u8).collect();
    writer.write(bytes).await.unwrap();
    writer.finish().await.unwrap()
}

async fn read(files: &BlockFiles, file: &BlockFile, from: u64, to: u64) -> Result<Bytes> {
    let mut reader = files.read(file, from..to).await?;
    let mut bytes = BytesMut::new();
    while let Some(piece) = reader.next().await? {
        bytes.extend_from_slice(&piece);
    }
    Ok(bytes.freeze())
}

/// Does something to a file, and says what becomes of reading all of it, a part of it, copying it and looking at it.
async fn damaged(change: impl Fn(&Path, &Path)) -> [bool; 4] {
    let root = tempfile::tempdir().unwrap();
    let files = BlockFiles::open(root.path(), Durability::Synced).unwrap();
    let (file, other) = (put(&files).await, put(&files).await);
    change(&path(root.path(), file.id), &path(root.path(), other.id));
    let errors = [
        read(&files, &file, 0, file.length).await.err(),
        read(&files, &file, 10, 300_000).await.err(),
        files.copy(&file, &owner()).await.err(),
    ];
    let [whole, part, copy] = errors.map(|error| {
        assert!(error.as_ref().is_none_or(|it| it.kind() == Kind::Corrupt), "{error:?}");
        error.is_some()
    });
    assert_eq!(read(&files, &other, 0, other.length).await.unwrap().len(), LENGTH);
    let (found, last) = files.damaged(None, 100).await.unwrap();
    assert!(last.is_some() && found.iter().all(|it| it.id == file.id));
    [whole, part, copy, !found.is_empty()]
}

fn flip(path: &Path, at: usize) {
    let mut bytes = std::fs::read(path).unwrap();
    bytes[at] ^= 1;
    std::fs::write(path, bytes).unwrap();
}

fn cut(path: &Path, length: u64) {
    std::fs::OpenOptions::new().write(true).open(path).unwrap().set_len(length).unwrap();
}

#[tokio::test]
async fn a_missing_file_is_found() {
    let found = damaged(|file, _| std::fs::remove_file(file).unwrap()).await;
    assert_eq!(found, [true, true, true, false]);
}

#[tokio::test]
async fn a_file_that_was_cut_short_is_found_whatever_is_read() {
    for length in [0, 63, 64, 1000, LENGTH as u64, LENGTH as u64 + 68] {
        assert_eq!(damaged(|file, _| cut(file, length)).await, [true; 4], "{length}");
    }
}

#[tokio::test]
async fn a_flipped_byte_is_found_when_all_is_read() {
    for at in [0, 300_000, LENGTH - 1] {
        assert_eq!(damaged(|file, _| flip(file, at)).await, [true, false, true, false], "{at}");
    }
    assert_eq!(damaged(|file, _| flip(file, LENGTH + 40)).await, [true; 4], "in the tail");
    let route = damaged(|file, _| flip(file, LENGTH + 2)).await;
    assert_eq!(route, [false, false, false, true], "in the owner's route");
}

#[tokio::test]
async fn a_file_in_the_place_of_another_is_found() {
    let swap = |file: &Path, other: &Path| {
        std::fs::copy(other, file).unwrap();
    };
    assert_eq!(damaged(swap).await, [true; 4]);
}

#[tokio::test]
async fn files_of_others_in_the_folder_are_left_alone() {
    let root = tempfile::tempdir().unwrap();
    let files = BlockFiles::open(root.path(), Durability::Synced).unwrap();
    let file = put(&files).await;
    let folder = path(root.path(), file.id).parent().unwrap().to_owned();
    std::fs::write(folder.join("notes.txt"), "mine").unwrap();
    std::fs::write(root.path().join("notes.txt"), "mine").unwrap();
    let files = BlockFiles::open(root.path(), Durability::Synced).unwrap();
    assert_eq!(files.list(None, 10).await.unwrap().len(), 1);
    assert!(folder.join("notes.txt").exists() && root.path().join("notes.txt").exists());
}
