//! Containers as shapes make, find and delete them.

use std::sync::Arc;

use lazuli_shardmap::Container;
use lazuli_shardmap::manager::NewContainer;
use lazuli_store::Result;

use crate::engine::Engine;

impl Engine {
    /// A container by name, if it has the schema that the caller was written for (S13).
    pub async fn open(&self, name: &str, schema: &str) -> Result<Arc<Container>> {
        self.router.open(name, schema).await
    }

    pub async fn create_container(&self, new: &NewContainer) -> Result<Container> {
        self.manager.create_container(new).await
    }

    /// Deletes a container; its data follows in the background. Fails with `NotFound` if there is none of this name.
    pub async fn delete_container(&self, name: &str) -> Result<()> {
        let container = self.manager.catalog().container_named(name).await?;
        let deleted = self.manager.delete_container(container.id, container.version).await;
        self.router.forget(container.id);
        deleted
    }

    /// Containers whose names begin with `prefix`, by name, behind the name `after`.
    pub async fn containers(
        &self,
        prefix: &str,
        after: Option<&str>,
        most: usize,
    ) -> Result<Vec<Container>> {
        self.manager.catalog().containers_named(prefix, after, most).await
    }
}
