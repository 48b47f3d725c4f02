//! A running server as the admin API sees it.

use std::sync::Arc;
use std::time::Instant;

use lazuli_engine::Engine;
use lazuli_history::Recorder;
use lazuli_http::Door;
use lazuli_shapes::blob::Blobs;
use lazuli_shardmap::catalog::Catalog;
use lazuli_shardmap::manager::Manager;
use lazuli_store::Result;

use crate::audit::Audit;
use crate::balance::Balancer;
use crate::block_check;
use crate::block_folder::BlockFolder;
use crate::endpoints::Endpoint;
use crate::fsck::{self, Report};
use crate::host::Host;
use crate::keeper::Removed;
use crate::metrics::Requests;
use crate::owner::Owner;
use crate::registry::Registry;
use crate::restores::Restores;
use crate::settings::Durability;

pub(crate) struct Running {
    pub(crate) started: Instant,
    pub(crate) durability: Durability,
    pub(crate) endpoints: Vec<Endpoint>,
    pub(crate) engine: Arc<Engine>,
    pub(crate) history: Arc<Recorder>,
    pub(crate) balancer: Arc<Balancer>,
    pub(crate) host: Arc<Host>,
    pub(crate) blobs: Blobs,
    pub(crate) blocks: Arc<BlockFolder>,
    pub(crate) removed: Arc<Removed>,
    pub(crate) accounts: Arc<Registry>,
    pub(crate) restores: Arc<Restores>,
    pub(crate) requests: Arc<Requests>,
    pub(crate) audit: Audit,
    /// Asks the fronts in the name of accounts.
    pub(crate) owner: Owner,
    /// The doors of the fronts and of the admin API, by name.
    pub(crate) doors: Vec<(&'static str, Arc<Door>)>,
}

impl Running {
    pub(crate) fn manager(&self) -> &Arc<Manager> {
        self.engine.manager()
    }

    pub(crate) fn catalog(&self) -> &Arc<Catalog> {
        self.engine.manager().catalog()
    }

    /// Checks everything that is kept, while it is in use. Repairs what can be if it is asked to.
    pub(crate) async fn check(&self, repair: bool) -> Result<Report> {
        let report = fsck::check(self.manager(), &self.host).await?;
        Ok(report.with_blocks(block_check::check(&self.blobs, &self.blocks, repair).await?))
    }

    /// What is not in use though it should be, a line for each; empty if all is well.
    pub(crate) async fn ailments(&self) -> Result<Vec<String>> {
        let mut lines = Vec::new();
        for shard in self.catalog().shards().await? {
            if let Some(error) = self.host.why_down(shard.id) {
                lines.push(format!("shard {}: {error}", shard.name));
            }
        }
        if let Some(doubt) = self.blocks.doubt() {
            lines.push(format!("blocks: {doubt}. See `lazuli blocks repair`"));
        }
        Ok(lines)
    }

    /// Whether something was written of which the catalog or a shard does not know how far it has come.
    pub(crate) async fn is_behind(&self) -> bool {
        let stores = self.host.stores();
        self.blocks.is_behind() || self.host.lineage.is_behind(&stores).await
    }
}
