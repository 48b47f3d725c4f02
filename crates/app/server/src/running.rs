//! A running server as the admin API sees it.

use std::sync::Arc;
use std::time::Instant;

use lazuli_engine::Engine;
use lazuli_http::Door;
use lazuli_shardmap::catalog::Catalog;
use lazuli_shardmap::manager::Manager;
use lazuli_store::Result;

use crate::endpoints::Endpoint;
use crate::fsck::{self, Report};
use crate::host::Host;
use crate::metrics::Requests;
use crate::registry::Registry;
use crate::settings::Durability;

pub(crate) struct Running {
    pub(crate) started: Instant,
    pub(crate) durability: Durability,
    pub(crate) endpoints: Vec<Endpoint>,
    pub(crate) engine: Arc<Engine>,
    pub(crate) host: Arc<Host>,
    pub(crate) accounts: Arc<Registry>,
    pub(crate) requests: Arc<Requests>,
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

    /// Checks everything that is kept, while it is in use.
    pub(crate) async fn check(&self) -> Result<Report> {
        fsck::check(self.manager(), &self.host).await
    }
}
