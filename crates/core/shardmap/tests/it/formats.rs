//! Group j: stores of another format, which an old program must not touch.

use std::sync::Arc;

use bytes::Bytes;
use lazuli_env::Id;
use lazuli_shardmap::{Catalog, Identity, LocalMap, ShardId};
use lazuli_store::mem::MemStore;
use lazuli_store::{Store, Write};

const CATALOG_IDENTITY: &[u8] = &[0x01];
const SHARD_IDENTITY: &[u8] = &[0, 0, 0, 0, 0x01];

/// An identity row as `docs/formats/catalog.md` draws it.
fn identity(row: u8, format: u32, rest: &[u8]) -> Bytes {
    [&[row][..], &format.to_be_bytes(), &[7; 16], rest].concat().into()
}

async fn put(store: &Arc<dyn Store>, key: &'static [u8], value: Bytes) {
    let write = Write::Put(Bytes::from_static(key), value);
    store.begin(vec![]).await.unwrap().commit(vec![write]).await.unwrap();
}

#[tokio::test]
async fn a_catalog_of_the_first_format_opens_and_one_of_a_newer_format_does_not() {
    let env = lazuli_env::real::env();
    let store: Arc<dyn Store> = Arc::new(MemStore::new());
    let blank = Catalog::open(store.clone(), env.clone()).await.err().unwrap();
    assert_eq!(blank.code(), "catalog-blank");
    Catalog::init(store.clone(), env.clone()).await.unwrap();
    put(&store, CATALOG_IDENTITY, identity(1, 1, &[])).await;
    let catalog = Catalog::open(store.clone(), env.clone()).await.unwrap();
    assert_eq!(catalog.id(), Id::from_bytes([7; 16]));
    for newer in [identity(1, 2, &[]), identity(2, 1, &[])] {
        put(&store, CATALOG_IDENTITY, newer).await;
        for opened in [
            Catalog::open(store.clone(), env.clone()).await,
            Catalog::init(store.clone(), env.clone()).await,
        ] {
            assert_eq!(opened.err().unwrap().code(), "format-unknown");
        }
    }
}

#[tokio::test]
async fn a_shard_of_the_first_format_opens_and_one_of_a_newer_format_does_not() {
    let me = Identity { catalog: Id::from_bytes([7; 16]), shard: ShardId(3) };
    let store: Arc<dyn Store> = Arc::new(MemStore::new());
    LocalMap::init(&store, me).await.unwrap();
    put(&store, SHARD_IDENTITY, identity(1, 1, &[0, 0, 0, 3])).await;
    assert_eq!(LocalMap::open(store.clone()).await.unwrap().identity(), me);
    for newer in [identity(1, 2, &[0, 0, 0, 3]), identity(2, 1, &[0, 0, 0, 3])] {
        put(&store, SHARD_IDENTITY, newer).await;
        assert_eq!(LocalMap::open(store.clone()).await.err().unwrap().code(), "format-unknown");
        assert_eq!(LocalMap::init(&store, me).await.unwrap_err().code(), "format-unknown");
    }
}

#[tokio::test]
async fn a_torn_identity_is_corrupt_and_not_an_empty_store() {
    let env = lazuli_env::real::env();
    let store: Arc<dyn Store> = Arc::new(MemStore::new());
    put(&store, CATALOG_IDENTITY, Bytes::from_static(&[1, 0, 0])).await;
    let error = Catalog::init(store, env).await.err().unwrap();
    assert_eq!(error.code(), "row-corrupt");
}
