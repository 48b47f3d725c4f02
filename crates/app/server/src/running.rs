//! A running server as the admin API sees it.

use std::sync::Arc;
use std::time::Instant;

use lazuli_bus_shape::Bus;
use lazuli_engine::Engine;
use lazuli_history::Recorder;
use lazuli_log::Logs;
use lazuli_net::{Budget, Metrics, SheetMaker};
use lazuli_shapes::blob::Blobs;
use lazuli_shardmap::catalog::Catalog;
use lazuli_shardmap::manager::Manager;
use lazuli_sql_control::Control;
use lazuli_store::Result;

use crate::audit::Audit;
use crate::balance::Balancer;
use crate::block_check;
use crate::block_home::BlockHome;
use crate::endpoints::{Endpoint, NotStarted};
use crate::fleet::Nodes;
use crate::fsck::{self, Report};
use crate::health::Unhealthy;
use crate::host::Host;
use crate::keeper::Removed;
use crate::owner::Owner;
use crate::registry::Registry;
use crate::restores::Restores;
use crate::settings::Durability;

pub(crate) struct Running {
    pub(crate) started: Instant,
    pub(crate) durability: Durability,
    pub(crate) endpoints: Vec<Endpoint>,
    pub(crate) not_started: Vec<NotStarted>,
    pub(crate) engine: Arc<Engine>,
    pub(crate) history: Arc<Recorder>,
    pub(crate) balancer: Arc<Balancer>,
    pub(crate) host: Arc<Host>,
    pub(crate) blobs: Blobs,
    pub(crate) bus: Bus,
    pub(crate) logs: Logs,
    pub(crate) blocks: BlockHome,
    pub(crate) removed: Arc<Removed>,
    pub(crate) nodes: Arc<Nodes>,
    pub(crate) accounts: Arc<Registry>,
    pub(crate) restores: Arc<Restores>,
    pub(crate) audit: Audit,
    /// Sharded SQL databases.
    pub(crate) sql: Arc<Control>,
    /// Asks the fronts in the name of accounts.
    pub(crate) owner: Owner,
    /// The memory of all request bodies and responses in flight.
    pub(crate) budget: Arc<Budget>,
    /// What the fronts that are served count.
    pub(crate) fronts: Vec<Arc<Metrics>>,
    /// What some of them tell of themselves, by their names.
    pub(crate) sheets: Vec<(&'static str, SheetMaker)>,
    /// The settings in force as JSON, secrets masked.
    pub(crate) settings: serde_json::Value,
    pub(crate) admin: Arc<Metrics>,
    /// Its pages come over the listener of the admin API.
    pub(crate) portal: Arc<Metrics>,
}

impl Running {
    /// All that listens, the admin API last.
    pub(crate) fn listening(&self) -> impl Iterator<Item = &Arc<Metrics>> {
        self.fronts.iter().chain([&self.admin])
    }

    /// Where a front listens.
    pub(crate) fn urls(&self, front: &str) -> Vec<String> {
        let own = self.endpoints.iter().filter(|endpoint| endpoint.name == front);
        let mut urls: Vec<String> = own.map(|endpoint| endpoint.url()).collect();
        // A front may have one address with TLS and without.
        urls.dedup();
        urls
    }

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

    /// What does not take everything: stores, shards that are down or refused, and a folder of block files that is in doubt.
    pub(crate) fn unhealthy(&self) -> Vec<Unhealthy> {
        let mut found = self.host.unhealthy();
        if let Some(doubt) = self.blocks.doubt() {
            let reason = format!("{doubt}. See `lazuli blocks repair`");
            found.push(Unhealthy { store: "blocks".to_owned(), state: "in doubt", reason });
        }
        found
    }

    /// Whether something was written of which the catalog or a shard does not know how far it has come.
    pub(crate) async fn is_behind(&self) -> bool {
        let (Some(folders), Some(blocks)) = (self.host.folders(), self.blocks.folder()) else {
            return false;
        };
        blocks.is_behind() || folders.lineage.is_behind(&self.host.embedded()).await
    }
}
