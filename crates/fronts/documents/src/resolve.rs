//! From the texts of a path to resources: each text is a name or a resource id, and the name counts first.

use lazuli_engine::Kind as ErrorKind;
use lazuli_shapes::document::{Resource, ResourceKind, Rid};

use crate::Front;
use crate::address::{ContainerName, DatabaseChild, Feed};
use crate::error::{Fault, Result};
use crate::request::Kind;

impl Kind {
    /// What it is in the directory. Conflicts are never there: one region has none.
    pub(crate) fn resource(self) -> Option<ResourceKind> {
        Some(match self {
            Self::Database => ResourceKind::Database,
            Self::Container => ResourceKind::Collection,
            Self::User => ResourceKind::User,
            Self::Permission => ResourceKind::Permission,
            Self::EncryptionKey => ResourceKind::EncryptionKey,
            Self::Procedure => ResourceKind::Procedure,
            Self::Trigger => ResourceKind::Trigger,
            Self::Function => ResourceKind::Function,
            Self::Offer => ResourceKind::Offer,
            Self::Conflict => return None,
        })
    }
}

impl Front {
    /// A resource by its name or its id under a parent. None if there is no such thing.
    pub(crate) async fn find(
        &self,
        account: &str,
        kind: ResourceKind,
        parent: Option<&Rid>,
        text: &str,
    ) -> Result<Option<Resource>> {
        match self.documents.resource(account, kind, parent, text).await {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            found => return Ok(Some(found?)),
        }
        let Some(rid) = Rid::parse(text) else { return Ok(None) };
        match self.documents.resource_by_rid(account, &rid).await {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            found => {
                let found = found?;
                let below = parent.is_none_or(|parent| rid.bytes().starts_with(parent.bytes()));
                Ok(Some(found).filter(|found| found.kind == kind && below))
            }
        }
    }

    pub(crate) async fn database(&self, account: &str, text: &str) -> Result<Resource> {
        let found = self.find(account, ResourceKind::Database, None, text).await?;
        found.ok_or_else(Fault::no_owner)
    }

    pub(crate) async fn container(&self, account: &str, name: &ContainerName) -> Result<Resource> {
        let database = self.database(account, &name.database).await?;
        let kind = ResourceKind::Collection;
        let found = self.find(account, kind, Some(&database.rid), &name.container).await?;
        found.ok_or_else(Fault::no_owner)
    }

    /// The resource that those of a feed are below; none for those of the account itself.
    pub(crate) async fn parent(&self, account: &str, feed: &Feed) -> Result<Option<Resource>> {
        Ok(match feed {
            Feed::Databases | Feed::Offers => None,
            Feed::InDatabase(
                database,
                DatabaseChild::Containers | DatabaseChild::Users | DatabaseChild::EncryptionKeys,
            ) => Some(self.database(account, database).await?),
            Feed::Permissions { database, user } => {
                let database = self.database(account, database).await?;
                let found =
                    self.find(account, ResourceKind::User, Some(&database.rid), user).await?;
                Some(found.ok_or_else(Fault::no_owner)?)
            }
            Feed::InContainer(container, _) => Some(self.container(account, container).await?),
        })
    }
}
