//! What nodes say of themselves: a record of the catalog each, which is there for as long as the node is.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use lazuli_engine::Engine;
use lazuli_env::Id;
use lazuli_shardmap::catalog::{Catalog, Expected, Lease, Work, kinds};
use lazuli_store::{KeyRange, Result};
use serde_json::{Value, json};

use crate::endpoints::{Endpoint, by_name};

/// The most nodes that are shown.
const NODES_MAX: usize = 10_000;

/// Records under the id of a node, which are there for as long as the node is.
const KINDS: [u8; 2] = [kinds::NODE, kinds::RESTORE];

/// This node among the others.
pub(crate) struct Nodes {
    engine: Arc<Engine>,
    /// Whether it is one of several: one that is alone has no record.
    is_fleet: bool,
    name: String,
    started_ms: u64,
    endpoints: Vec<Endpoint>,
    is_draining: AtomicBool,
}

impl Nodes {
    pub(crate) fn new(
        engine: Arc<Engine>,
        is_fleet: bool,
        name: String,
        endpoints: Vec<Endpoint>,
    ) -> Self {
        let started_ms = engine.env().clock.now_ms();
        let is_draining = AtomicBool::new(false);
        Self { engine, is_fleet, name, started_ms, endpoints, is_draining }
    }

    pub(crate) fn catalog(&self) -> &Arc<Catalog> {
        self.engine.manager().catalog()
    }

    pub(crate) fn is_fleet(&self) -> bool {
        self.is_fleet
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// How often others have taken this node for gone, and removed what it had told.
    pub(crate) fn removals(&self) -> u64 {
        self.engine.removals()
    }

    /// Whether the node with these bytes of an id beats.
    pub(crate) fn is_alive(&self, id: &[u8]) -> bool {
        self.engine.nodes_alive().iter().any(|node| node.to_bytes()[..] == *id)
    }

    pub(crate) fn id(&self) -> Id {
        self.engine.node()
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.is_draining.load(Ordering::Acquire)
    }

    fn own(&self) -> Value {
        json!({
            "name": self.name,
            "version": env!("CARGO_PKG_VERSION"),
            "pid": std::process::id(),
            "started_ms": self.started_ms,
            "endpoints": by_name(&self.endpoints),
            "draining": self.is_draining(),
        })
    }

    /// Tells the others of this node, or tells them anew.
    pub(crate) async fn tell(&self) -> Result<()> {
        if !self.is_fleet {
            return Ok(());
        }
        let (key, value) = (self.id().to_bytes().to_vec(), self.own().to_string());
        self.catalog().put_record(kinds::NODE, key, value, Expected::Anything).await.map(drop)
    }

    /// Notes that this node stops.
    pub(crate) fn stop(&self) {
        self.is_draining.store(true, Ordering::Release);
    }

    /// From now on this node does no background work and says that it is not ready. Requests are answered as ever.
    pub(crate) async fn drain(&self) -> Result<()> {
        self.is_draining.store(true, Ordering::Release);
        self.engine.leave_leases().await?;
        self.tell().await
    }

    /// Gives leases and row back: this node is about to end.
    pub(crate) async fn leave(&self) -> Result<()> {
        if !self.is_fleet {
            return Ok(());
        }
        self.engine.release_leases().await?;
        for kind in KINDS {
            let key = self.id().to_bytes().to_vec();
            self.catalog().delete_record(kind, key, Expected::Anything).await?;
        }
        Ok(())
    }

    /// Forgets what nodes said of themselves that are gone. Done by one node.
    pub(crate) async fn tidy(&self) -> Result<()> {
        if !self.is_fleet || !self.engine.may(Work::Reconcile) {
            return Ok(());
        }
        for kind in KINDS {
            let records = self.catalog().scan_records(kind, &KeyRange::all(), NODES_MAX).await?;
            // Read afterwards: a node has its row before it has its record.
            let (rows, _) = self.catalog().nodes_and_leases().await?;
            // A key without a node is nobody's.
            for record in records.into_iter().filter(|record| !record.key.is_empty()) {
                if !rows.iter().any(|(node, _)| node.to_bytes()[..] == record.key[..]) {
                    let expected = Expected::Version(record.version);
                    self.catalog().delete_record(kind, record.key, expected).await?;
                }
            }
        }
        Ok(())
    }

    /// All nodes, with the work that each has a lease of.
    pub(crate) async fn list(&self) -> Result<Value> {
        if !self.is_fleet {
            let alone = self.show(self.id(), self.own(), "alive", &[], &BTreeMap::new());
            return Ok(json!({ "nodes": [alone] }));
        }
        let (rows, leases) = self.catalog().nodes_and_leases().await?;
        let records = self.catalog().scan_records(kinds::NODE, &KeyRange::all(), NODES_MAX).await?;
        let shards = self.catalog().shards().await?;
        let names: BTreeMap<_, _> = shards.into_iter().map(|it| (it.id, it.name)).collect();
        let alive = self.engine.nodes_alive();
        let mut shown = Vec::new();
        for (node, _) in rows {
            let said = records.iter().find(|record| record.key[..] == node.to_bytes()[..]);
            let said = said.and_then(|record| serde_json::from_slice(&record.value).ok());
            let said: Value = said.unwrap_or(Value::Null);
            let state = match (alive.contains(&node), said["draining"] == json!(true)) {
                (false, _) => "silent",
                (true, true) => "draining",
                (true, false) => "alive",
            };
            shown.push(self.show(node, said, state, &leases, &names));
        }
        Ok(json!({ "nodes": shown }))
    }

    fn show(
        &self,
        node: Id,
        said: Value,
        state: &str,
        leases: &[Lease],
        shards: &BTreeMap<lazuli_shardmap::ShardId, String>,
    ) -> Value {
        let of_node = leases.iter().filter(|lease| lease.holder() == Some(node));
        let work = of_node.map(|lease| match lease.work {
            Work::Jobs => "jobs".to_owned(),
            Work::Moves => "moves".to_owned(),
            Work::Reconcile => "reconcile".to_owned(),
            Work::Collect => "collect".to_owned(),
            Work::Balance => "balance".to_owned(),
            Work::Shard(id) => {
                format!("shard {}", shards.get(&id).cloned().unwrap_or_else(|| id.to_string()))
            }
        });
        json!({
            "id": node.to_string(),
            "name": said["name"],
            "state": state,
            "this": node == self.id(),
            "version": said["version"],
            "started_ms": said["started_ms"],
            "endpoints": said["endpoints"],
            "work": work.collect::<Vec<_>>(),
        })
    }
}
