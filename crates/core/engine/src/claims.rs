//! Claims: names of work that a node has begun and that nobody else may take for abandoned, where several processes share
//! the stores. A claim is a record of the catalog with the id of its node. It ends with the work, or with the node.

use std::collections::BTreeSet;

use bytes::Bytes;
use lazuli_shardmap::catalog::{Expected, kinds};
use lazuli_store::{KeyRange, Result};

use crate::engine::Engine;
use crate::lease::Leasing;

/// The most claims that are looked at.
const CLAIMS_MAX: usize = 100_000;

impl Engine {
    /// Claims work, before it becomes visible to others. An engine that is alone needs no claims.
    pub async fn claim(&self, name: impl Into<Bytes>) -> Result<()> {
        if self.settings.leasing == Leasing::Alone {
            return Ok(());
        }
        let (catalog, node) = (self.manager.catalog(), self.node().to_bytes().to_vec());
        catalog.put_record(kinds::CLAIM, name, node, Expected::Anything).await.map(drop)
    }

    /// Gives a claim up.
    pub async fn unclaim(&self, name: impl Into<Bytes>) -> Result<()> {
        if self.settings.leasing == Leasing::Alone {
            return Ok(());
        }
        let catalog = self.manager.catalog();
        catalog.delete_record(kinds::CLAIM, name, Expected::Anything).await
    }

    /// The claims of all nodes that have not been removed. Those of nodes that are gone are deleted.
    pub async fn claims(&self) -> Result<BTreeSet<Bytes>> {
        let mut held = BTreeSet::new();
        if self.settings.leasing == Leasing::Alone {
            return Ok(held);
        }
        let catalog = self.manager.catalog();
        let claims = catalog.scan_records(kinds::CLAIM, &KeyRange::all(), CLAIMS_MAX).await?;
        // Read afterwards: a node has its row before its first claim.
        let (nodes, _) = catalog.nodes_and_leases().await?;
        for record in claims {
            if nodes.iter().any(|(node, _)| node.to_bytes()[..] == record.value[..]) {
                held.insert(record.key);
            } else {
                let expected = Expected::Version(record.version);
                catalog.delete_record(kinds::CLAIM, record.key, expected).await?;
            }
        }
        Ok(held)
    }
}
