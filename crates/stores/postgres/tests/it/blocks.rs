//! Big values as rows.

use std::sync::Arc;

use bytes::Bytes;
use lazuli_store::blocks::{BlockId, Blocks, Owner};
use lazuli_store::blocks_suite::CASES;
use lazuli_store_postgres::{PostgresBlocks, Settings};

use crate::place;

fn owner() -> Owner {
    Owner { container: 7, route: Bytes::from_static(b"route") }
}

async fn open(settings: &Settings, node: &str) -> PostgresBlocks {
    PostgresBlocks::open(settings.clone(), node).await.unwrap()
}

async fn put(blocks: &PostgresBlocks, bytes: Bytes) -> lazuli_store::blocks::BlockFile {
    let mut writer = blocks.create(&owner()).await.unwrap();
    writer.write(bytes).await.unwrap();
    writer.finish().await.unwrap()
}

async fn wait_for(is_so: impl Fn() -> bool) {
    let begun = std::time::Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < std::time::Duration::from_secs(20), "it does not happen");
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn the_suite_of_blocks() {
    for (name, case) in CASES {
        let Some(settings) = place::settings() else { return };
        println!("case {name}");
        let blocks = open(&settings, "node").await;
        case(Arc::new(blocks.clone())).await;
        blocks.close().await.unwrap();
    }
}

#[tokio::test]
async fn a_file_of_several_pieces_is_read_from_any_place() {
    let Some(settings) = place::settings() else { return };
    let blocks = open(&settings, "node").await;
    const MIB: u64 = 1024 * 1024;
    for length in [MIB - 1, MIB, MIB + 1, 3 * MIB, 3 * MIB + 5] {
        let bytes: Bytes = (0..length).map(|n| (n % 251) as u8).collect();
        let file = put(&blocks, bytes.clone()).await;
        for (from, to) in [(0, length), (MIB / 2, length), (MIB - 2, length.min(MIB + 1))] {
            let mut reader = blocks.read(&file, from..to).await.unwrap();
            let mut read = Vec::new();
            while let Some(piece) = reader.next().await.unwrap() {
                read.extend_from_slice(&piece);
            }
            assert!(read == bytes[from as usize..to as usize], "{from}..{to} of {length}");
        }
    }
    let server = place::server().unwrap();
    let storage = "SELECT attstorage FROM pg_attribute WHERE attrelid = 'lazuli.pieces'::regclass \
                   AND attname = 'd'";
    assert_eq!(server.psql(&settings.database, storage).unwrap(), "e");
}

#[tokio::test]
async fn processes_have_generations_of_their_own_and_see_those_of_others() {
    let Some(settings) = place::settings() else { return };
    let (one, other) = (open(&settings, "one").await, open(&settings, "other").await);
    let file = put(&one, Bytes::from_static(b"of one")).await;
    assert_ne!(one.generation(), other.generation());
    assert_eq!(file.id.generation, one.generation());
    let seen = other.unswept().await.unwrap();
    assert_eq!(seen.len(), 1, "not its own");
    assert_eq!((seen[0].number, &*seen[0].node), (one.generation(), "one"));
    other.swept(one.generation()).await.unwrap();
    assert!(other.unswept().await.unwrap().is_empty());
    assert_eq!(other.list(None, 9).await.unwrap().len(), 1, "a mark removes no file");
}

#[tokio::test]
async fn pieces_of_a_file_that_was_never_finished_go() {
    let Some(settings) = place::settings() else { return };
    let server = place::server().unwrap();
    let blocks = open(&settings, "node").await;
    let pieces = || server.psql(&settings.database, "SELECT count(*) FROM lazuli.pieces").unwrap();
    let large = Bytes::from(vec![1; 3 * 1024 * 1024]);
    let mut writer = blocks.create(&owner()).await.unwrap();
    writer.write(large.clone()).await.unwrap();
    // The last one comes with the row of the file.
    wait_for(|| pieces() == "2").await;
    drop(writer);
    wait_for(|| pieces() == "0").await;
    // A process that is killed cannot remove them.
    let mut writer = blocks.create(&owner()).await.unwrap();
    writer.write(large.clone()).await.unwrap();
    std::mem::forget(writer);
    wait_for(|| pieces() == "2").await;
    let kept = put(&blocks, large).await;
    let next = open(&settings, "next").await;
    next.swept(blocks.generation()).await.unwrap();
    assert_eq!(pieces(), "3");
    assert_eq!(next.list(None, 9).await.unwrap()[0].file, kept);
}

#[tokio::test]
async fn a_file_that_lost_a_piece_is_not_finished() {
    let Some(settings) = place::settings() else { return };
    let server = place::server().unwrap();
    let blocks = open(&settings, "node").await;
    let mut writer = blocks.create(&owner()).await.unwrap();
    writer.write(Bytes::from(vec![1; 3 * 1024 * 1024])).await.unwrap();
    // As a crash of the server may do to what it has not written out yet.
    let delete = "WITH gone AS (DELETE FROM lazuli.pieces WHERE n = 1 RETURNING 1) \
                  SELECT count(*) FROM gone";
    wait_for(|| server.psql(&settings.database, delete).unwrap() == "1").await;
    let refused = writer.finish().await.unwrap_err();
    assert_eq!(refused.code(), "block-file-lost");
    assert!(blocks.list(None, 9).await.unwrap().is_empty());
    let missing = lazuli_store::blocks::BlockFile {
        id: BlockId { generation: 1, number: 1 },
        length: 1,
        crc64: 0,
    };
    assert_eq!(blocks.copy(&missing, &owner()).await.unwrap_err().code(), "bad-block-file");
}
