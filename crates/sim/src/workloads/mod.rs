//! Workloads: what clients do while there are faults, and what must hold afterwards.
//!
//! A workload is set up on a cluster without faults, starts some clients, and checks at the end, when all faults are over.
//! While they run they check what they can. Several run at once on one cluster.

pub mod audited;
mod blob_requests;
pub mod blobs;
pub mod bus;
mod bus_entities;
pub mod cache;
pub mod come_and_go;
pub mod compacted;
pub mod documents;
pub mod drains;
pub mod etag_counter;
mod index_copies;
pub mod indexes;
pub mod jobs;
pub mod leaders;
pub mod list_append;
pub mod logs;
pub mod map_changes;
pub mod queues;
pub mod reference;
pub mod ring;
pub mod store_crash;
pub mod time_to_live;
pub mod transfers;

use std::sync::Arc;

use lazuli_env::BoxFuture;

pub use crate::client::Client;
use crate::scenario::Found;

pub trait Workload: Send + Sync + 'static {
    /// Sets up each client.
    fn client(client: Client) -> Client {
        client
    }

    /// One of the requests of a client.
    fn round(&self, _: &Client, _: u64) -> impl Future<Output = Found> + Send {
        std::future::ready(Ok(()))
    }

    /// All requests of one client.
    fn live(&self, client: &Client) -> impl Future<Output = Found> + Send {
        async move {
            for round in 0..client.rounds() {
                self.round(client, round).await?;
                client.think().await;
            }
            Ok(())
        }
    }

    /// The check when all clients are done, the faults are over and the cluster has restarted.
    fn check(&self, _: &Client) -> impl Future<Output = Found> + Send {
        std::future::ready(Ok(()))
    }
}

/// A workload of any kind.
pub trait AnyWorkload: Send + Sync {
    fn start(self: Arc<Self>, client: Client) -> BoxFuture<'static, Found>;

    fn check_all<'a>(&'a self, client: &'a Client) -> BoxFuture<'a, Found>;
}

impl<W: Workload> AnyWorkload for W {
    fn start(self: Arc<Self>, client: Client) -> BoxFuture<'static, Found> {
        Box::pin(async move { self.live(&W::client(client)).await })
    }

    fn check_all<'a>(&'a self, client: &'a Client) -> BoxFuture<'a, Found> {
        Box::pin(self.check(client))
    }
}

/// A workload that is set up, or why it is not.
pub type Built = Result<Arc<dyn AnyWorkload>, String>;
