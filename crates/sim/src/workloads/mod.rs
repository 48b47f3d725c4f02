//! Workloads: what clients do while there are faults, and what must hold afterwards.
//!
//! A workload is set up on a cluster without faults, starts some clients, and checks at the end, when all faults are over.
//! While they run they check what they can. Several run at once on one cluster.

pub mod audited;
mod blob_requests;
pub mod blobs;
pub mod come_and_go;
pub mod documents;
pub mod drains;
pub mod etag_counter;
pub mod jobs;
pub mod leaders;
pub mod list_append;
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

pub trait Workload: Send + Sync {
    /// The requests of one client.
    fn start(self: Arc<Self>, client: Client) -> BoxFuture<'static, Found>;

    /// The check when all clients are done, the faults are over and the cluster has restarted.
    fn check<'a>(&'a self, client: &'a Client) -> BoxFuture<'a, Found>;
}
