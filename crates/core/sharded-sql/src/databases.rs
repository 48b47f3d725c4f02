//! Where whoever routes gets the model from.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use crate::model::Snapshot;

pub type Refreshed<'a> = Pin<Box<dyn Future<Output = Option<Arc<Snapshot>>> + Send + 'a>>;

/// The sharded databases of this process, kept in memory and followed by whoever implements it.
///
/// A router takes a snapshot for each statement and keeps it until the statement is over: a mover waits for the snapshots
/// from before a change to be dropped before it copies or deletes rows that they do not expect.
pub trait Databases: Send + Sync + 'static {
    /// The newest snapshot in memory; none if there is no such database. Called for every statement, so it must be cheap.
    fn snapshot(&self, name: &str) -> Option<Arc<Snapshot>>;

    /// The newest snapshot of the catalog, after a shard has said that the one in memory is old.
    fn refresh<'a>(&'a self, name: &'a str) -> Refreshed<'a>;

    /// The names of all databases, sorted.
    fn names(&self) -> Vec<String>;
}
