//! The contract of all stores.

use std::sync::Arc;

use lazuli_store::Store;
use lazuli_store::suite::{CASES, SHARED_CASES};
use lazuli_store_postgres::PostgresStore;

use crate::place;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_suite() {
    for (name, case) in CASES {
        let Some(settings) = place::settings() else { return };
        println!("case {name}");
        let store = Arc::new(PostgresStore::open(settings).await.unwrap());
        case(store.clone()).await;
        store.close().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_suite_of_stores_that_processes_share() {
    for (name, case) in SHARED_CASES {
        let Some(settings) = place::settings() else { return };
        println!("case {name}");
        let one = PostgresStore::open(settings.clone()).await.unwrap();
        let other = PostgresStore::open(settings).await.unwrap();
        case([Arc::new(one), Arc::new(other)]).await;
    }
}
