//! The suite that every keeper of block files passes, on real files of both durabilities.

use std::sync::Arc;

use lazuli_store::blocks_suite::CASES;
use lazuli_store_blocks::{BlockFiles, Durability};

#[tokio::test]
async fn the_suite() {
    for durability in [Durability::Synced, Durability::Relaxed] {
        for (name, case) in CASES {
            println!("{name}, {durability:?}");
            let folder = tempfile::tempdir().unwrap();
            case(Arc::new(BlockFiles::open(&folder.path().join("blocks"), durability).unwrap()))
                .await;
        }
    }
}
