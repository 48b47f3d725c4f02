//! Containers as shapes make, find, label and delete them, and what fronts keep about a whole service.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use lazuli_shardmap::catalog::{Expected, kinds};
use lazuli_shardmap::manager::{ContainerUpdate, NewContainer, NewPartition};
use lazuli_shardmap::{Container, ContainerId, Partition, Policies};
use lazuli_store::{Error, Kind, Result};
use tokio::sync::oneshot;

use crate::engine::Engine;

/// How often a change of an attribute is decided anew because the container changed meanwhile.
const ATTRIBUTE_TRIES_MAX: usize = 8;

impl Engine {
    /// A container by name, if it has the schema that the caller was written for (S13).
    pub async fn open(&self, name: &str, schema: &str) -> Result<Arc<Container>> {
        self.router.open(name, schema).await
    }

    pub async fn create_container(&self, new: &NewContainer) -> Result<Container> {
        let (manager, new) = (self.manager.clone(), new.clone());
        self.to_the_end(async move { manager.create_container(&new).await }).await
    }

    /// Changes schema tag, placement rules or policies. Every operation that this engine begins after the answer goes by
    /// them; another process learns of them when it next refreshes its maps.
    pub async fn update_container(&self, update: &ContainerUpdate) -> Result<Container> {
        let (manager, update) = (self.manager.clone(), update.clone());
        let update = async move {
            let updated = manager.update_container(&update).await?;
            // A shard that does not take its copy now gets it when the server starts again.
            let _ = manager.mirror_container(&updated).await;
            Ok::<_, Error>(updated)
        };
        let updated = self.to_the_end(update).await?;
        self.router.refresh(updated.id, None).await?;
        Ok(updated)
    }

    /// Adds partitions to a list or range map, all or none of them.
    pub async fn add_partitions(
        &self,
        container: ContainerId,
        partitions: Vec<NewPartition>,
    ) -> Result<Vec<Partition>> {
        let manager = self.manager.clone();
        let add = async move { manager.add_partitions(container, &partitions).await };
        let added = self.to_the_end(add).await?;
        self.router.refresh(container, None).await?;
        Ok(added)
    }

    /// Deletes a container; its data follows in the background. Fails with `NotFound` if there is none of this name.
    pub async fn delete_container(&self, name: &str) -> Result<()> {
        let container = self.manager.catalog().container_named(name).await?;
        let (manager, id) = (self.manager.clone(), container.id);
        let deleted = self
            .to_the_end(async move { manager.delete_container(id, container.version).await })
            .await;
        self.router.forget(container.id);
        self.watches.forget(container.id);
        deleted
    }

    /// Makes a change of maps whether or not the caller stays to hear of it. Clients hang up whenever they like, and a
    /// change that is dropped half-way leaves the cached local map of a shard unknown, and no request is served until it is read again.
    pub(crate) async fn to_the_end<T: Send + 'static>(
        &self,
        change: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Result<T> {
        let (reply, answer) = oneshot::channel();
        let task = async move {
            // The caller may be gone.
            let _ = reply.send(change.await);
        };
        self.env.spawn.spawn("map-change", Box::pin(task));
        answer.await.map_err(|_| Error::unavailable("stopping", "the change was not answered"))?
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

    /// What the container's front keeps about it under this name, as the catalog has it now.
    pub async fn attribute(&self, name: &str, attribute: &str) -> Result<Option<String>> {
        let container = self.manager.catalog().container_named(name).await?;
        Ok(container.policies.attributes.get(attribute).cloned())
    }

    /// Keeps a text about a container, or none any more. Fails with `NotFound` if there is no container of this name.
    pub async fn set_attribute(
        &self,
        name: &str,
        attribute: &str,
        value: Option<&str>,
    ) -> Result<()> {
        self.update_policies(name, |policies| {
            match value {
                Some(value) => policies.attributes.insert(attribute.to_owned(), value.to_owned()),
                None => policies.attributes.remove(attribute),
            };
            Ok(())
        })
        .await
    }

    /// Changes what the container's front keeps about it, in one step. `change` sees what is kept now, may refuse, and may be
    /// called again where the container has changed meanwhile.
    pub async fn change_attributes(
        &self,
        name: &str,
        change: impl Fn(&mut BTreeMap<String, String>) -> Result<()>,
    ) -> Result<()> {
        self.update_policies(name, |policies| change(&mut policies.attributes)).await
    }

    /// Gives the partitions of a container another budget, in units of cost a second; none means no limit.
    pub async fn set_throughput(&self, name: &str, throughput: Option<u32>) -> Result<()> {
        self.update_policies(name, |policies| {
            policies.throughput = throughput;
            Ok(())
        })
        .await
    }

    async fn update_policies(
        &self,
        name: &str,
        change: impl Fn(&mut Policies) -> Result<()>,
    ) -> Result<()> {
        let mut tries = 0;
        loop {
            let container = self.manager.catalog().container_named(name).await?;
            let mut policies = container.policies;
            change(&mut policies)?;
            let update = ContainerUpdate {
                id: container.id,
                version: container.version,
                schema: container.schema,
                placement: container.placement,
                policies,
            };
            tries += 1;
            match self.update_container(&update).await {
                Err(error) if error.kind() == Kind::Precondition && tries < ATTRIBUTE_TRIES_MAX => {
                }
                updated => return updated.map(|_| ()),
            }
        }
    }

    /// What a front keeps about a whole service of an account.
    pub async fn service(&self, name: &str) -> Result<Option<Bytes>> {
        let found = self.manager.catalog().get_record(kinds::SERVICE, name.as_bytes()).await?;
        Ok(found.map(|record| record.value))
    }

    pub async fn set_service(&self, name: &str, value: Bytes) -> Result<()> {
        let key = Bytes::copy_from_slice(name.as_bytes());
        let catalog = self.manager.catalog();
        catalog.put_record(kinds::SERVICE, key, value, Expected::Anything).await.map(|_| ())
    }

    /// Keeps another value about a service, or none, if what is kept is still `seen`. Answers whether it was.
    pub async fn swap_service(
        &self,
        name: &str,
        seen: Option<&Bytes>,
        value: Option<Bytes>,
    ) -> Result<bool> {
        let catalog = self.manager.catalog();
        let found = catalog.get_record(kinds::SERVICE, name.as_bytes()).await?;
        if found.as_ref().map(|record| &record.value) != seen {
            return Ok(false);
        }
        let expected = match &found {
            Some(record) => Expected::Version(record.version),
            None => Expected::Nothing,
        };
        let key = Bytes::copy_from_slice(name.as_bytes());
        let written = match value {
            Some(value) => {
                catalog.put_record(kinds::SERVICE, key, value, expected).await.map(|_| ())
            }
            None if found.is_none() => Ok(()),
            None => catalog.delete_record(kinds::SERVICE, key, expected).await,
        };
        match written {
            Err(error) if matches!(error.kind(), Kind::Precondition | Kind::Exists) => Ok(false),
            written => written.map(|()| true),
        }
    }
}
