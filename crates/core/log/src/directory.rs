//! Hubs themselves: created, found, listed, changed and deleted. The containers of a namespace are its directory.

use std::sync::Arc;

use lazuli_engine::{
    Cuts, Error, KeySchema, KeyType, Kind, MapKind, NewContainer, Policies, Result,
};

use crate::hub::{Hub, HubSettings, check_group_name, check_hub_name};
use crate::limits::GROUPS_MAX;
use crate::{LogReason, Logs};

/// The schema tag of every container of a hub (S13).
pub(crate) const SCHEMA: &str = "log/1";
/// What the names of these containers begin with; namespace and hub follow.
pub(crate) const CONTAINERS: &str = "hubs/";

/// Names of hubs are the same in any case.
pub(crate) fn container_name(namespace: &str, hub: &str) -> String {
    format!("{CONTAINERS}{namespace}/{}", hub.to_ascii_lowercase())
}

pub(crate) fn hub_not_found(hub: &str) -> Error {
    Error::not_found(LogReason::HubNotFound, format!("there is no hub {hub:?}"))
}

impl Logs {
    /// Creates a hub. Fails with `Exists` if there is one of this name.
    pub async fn create_hub(
        &self,
        namespace: &str,
        hub: &str,
        settings: &HubSettings,
    ) -> Result<Arc<Hub>> {
        check_hub_name(hub)?;
        settings.check()?;
        let now_ms = self.engine.env().clock.now_ms();
        let policies =
            Policies { attributes: Hub::attributes(hub, settings, now_ms), ..Policies::default() };
        let new = NewContainer {
            name: container_name(namespace, hub),
            kind: MapKind::List,
            key: KeySchema::one(KeyType::Int32),
            schema: SCHEMA.to_owned(),
            placement: Vec::new(),
            policies,
            cuts: Cuts::Empty,
            shards: Vec::new(),
        };
        self.engine.create_container(&new).await.map_err(|error| match error.kind() {
            Kind::Exists => Error::exists(LogReason::HubExists, format!("there is a hub {hub:?}")),
            _ => error,
        })?;
        // From here on the hub is there: who opens it first gives it its partitions, if this process does not.
        self.hub(namespace, hub).await
    }

    /// A hub by its name. Fails with `HubNotFound`.
    pub async fn hub(&self, namespace: &str, hub: &str) -> Result<Arc<Hub>> {
        let found = self.look(namespace, hub).await?;
        if found.settings.partitions > 0 {
            return Ok(found);
        }
        self.finish_growth(namespace, hub).await
    }

    /// The hub as the cached maps have it, perhaps without its partitions yet.
    pub(crate) async fn look(&self, namespace: &str, hub: &str) -> Result<Arc<Hub>> {
        let name = container_name(namespace, hub);
        let container = match self.engine.open(&name, SCHEMA).await {
            Err(error) if error.kind() == Kind::NotFound => {
                self.known().remove(&name);
                return Err(hub_not_found(hub));
            }
            opened => opened?,
        };
        let mut known = self.known();
        match known.get(&name) {
            Some(hub) if Arc::ptr_eq(&hub.container, &container) => Ok(hub.clone()),
            _ => {
                let hub = Arc::new(Hub::of(container)?);
                known.insert(name, hub.clone());
                Ok(hub)
            }
        }
    }

    /// The hub as the catalog has it now.
    pub(crate) async fn look_again(&self, namespace: &str, hub: &str) -> Result<Arc<Hub>> {
        let found = self.look(namespace, hub).await?;
        self.engine.router().refresh(found.container.id, None).await?;
        self.look(namespace, hub).await
    }

    /// The hubs of a namespace by name, behind the name `after`.
    pub async fn hubs(
        &self,
        namespace: &str,
        after: Option<&str>,
        most: usize,
    ) -> Result<Vec<Hub>> {
        let after = after.map(|hub| container_name(namespace, hub));
        let prefix = format!("{CONTAINERS}{namespace}/");
        let containers = self.engine.containers(&prefix, after.as_deref(), most).await?;
        let is_hub = containers.into_iter().filter(|container| container.schema == SCHEMA);
        is_hub.map(|container| Hub::of(Arc::new(container))).collect()
    }

    /// Changes settings of a hub, but not its number of partitions: see [`Logs::set_partitions`].
    pub async fn change_hub(
        &self,
        namespace: &str,
        hub: &str,
        change: impl Fn(&mut HubSettings),
    ) -> Result<Arc<Hub>> {
        let found = self.hub(namespace, hub).await?;
        let name = container_name(namespace, hub);
        let container = found.container.clone();
        self.engine
            .change_attributes(&name, |attributes| {
                let mut now = (*container).clone();
                now.policies.attributes = attributes.clone();
                let mut settings = Hub::of(Arc::new(now))?.settings;
                let partitions = settings.partitions;
                change(&mut settings);
                settings.partitions = partitions;
                settings.check()?;
                settings.write(attributes);
                Ok(())
            })
            .await?;
        self.look_again(namespace, hub).await
    }

    /// Adds a consumer group for readers over AMQP. It may be there.
    pub async fn add_group(&self, namespace: &str, hub: &str, group: &str) -> Result<Arc<Hub>> {
        check_group_name(group)?;
        let found = self.hub(namespace, hub).await?;
        if found.has_group(group) {
            return Ok(found);
        }
        if found.settings.groups.len() >= GROUPS_MAX {
            let message = format!("a hub has up to {GROUPS_MAX} consumer groups");
            return Err(Error::invalid(LogReason::BadSettings, message));
        }
        self.change_hub(namespace, hub, |settings| {
            settings.groups.insert(group.to_owned());
        })
        .await
    }

    /// Deletes a hub with all its records; they follow in the background.
    pub async fn delete_hub(&self, namespace: &str, hub: &str) -> Result<()> {
        let name = container_name(namespace, hub);
        let deleted = self.engine.delete_container(&name).await;
        self.known().remove(&name);
        deleted.map_err(|error| match error.kind() {
            Kind::NotFound => hub_not_found(hub),
            _ => error,
        })
    }
}
