//! Every few seconds with writes, catalog, shards and the folder of block files record the commit counts of each other,
//! and the shards' copies of the catalog's records are updated. An idle server writes nothing.

use std::sync::Arc;

use lazuli_store::Result;
use tokio::task::JoinHandle;

use crate::block_folder::BlockFolder;
use crate::host::Host;
use crate::lineage::FLOORS_INTERVAL;

/// Begins, until the task is aborted.
pub(crate) fn start(host: Arc<Host>, blocks: Arc<BlockFolder>) -> JoinHandle<()> {
    tokio::spawn(async move {
        for (shard, _) in host.stores() {
            if let Err(error) = host.engine.manager().mirror_containers(shard).await {
                tracing::warn!(%shard, %error, "a shard has no copies of the catalog's maps");
            }
        }
        loop {
            tokio::time::sleep(FLOORS_INTERVAL).await;
            if let Err(error) = record(&host, &blocks).await {
                tracing::warn!(%error, "cannot record how far the shards have come");
            }
        }
    })
}

async fn record(host: &Host, blocks: &BlockFolder) -> Result<()> {
    if host.lineage.is_catalog_changed().await {
        for (shard, _) in host.stores() {
            // A shard that takes no writes has trouble of its own, which is told elsewhere.
            if let Err(error) = host.engine.manager().mirror_records(shard).await {
                tracing::debug!(%shard, %error, "a shard takes no copies of the catalog's records");
            }
        }
    }
    let mark = blocks.mark().await?;
    host.lineage.record(&host.stores(), mark).await
}
