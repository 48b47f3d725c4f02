//! Indexes themselves: created, found, listed, changed and deleted. The containers of an account are its directory.

use std::sync::Arc;

use lazuli_engine::{Cuts, Error, Kind, MapKind, NewContainer, Policies, Result};

use crate::index::{Index, PARTITIONS, REPLICAS, SPREADING, Scale, key_schema};
use crate::limits::{DEFINITION_BYTES_MAX, SLICES};
use crate::{IndexReason, Indexes};

/// The schema tag of every container of an index (S13).
const SCHEMA: &str = "search/1";
/// What the names of these containers begin with; account and index follow.
const CONTAINERS: &str = "search/";

/// How many indexes one page of the directory has.
const PAGE: usize = 500;

fn container_name(account: &str, index: &str) -> String {
    format!("{CONTAINERS}{account}/{index}")
}

fn not_found(index: &str) -> Error {
    Error::not_found(IndexReason::IndexNotFound, format!("there is no index {index:?}"))
}

fn check_size(definition: &str) -> Result<()> {
    if definition.len() <= DEFINITION_BYTES_MAX {
        return Ok(());
    }
    let message = format!("a definition has up to {DEFINITION_BYTES_MAX} bytes");
    Err(Error::too_large(IndexReason::TooLarge, message))
}

impl Indexes {
    /// Creates an index. Fails with `Exists` if there is one of this name.
    pub async fn create_index(
        &self,
        account: &str,
        name: &str,
        definition: &str,
        scale: Scale,
    ) -> Result<Arc<Index>> {
        check_size(definition)?;
        let now_ms = self.engine.env().clock.now_ms();
        let attributes = Index::attributes(name, definition, scale, now_ms);
        let new = NewContainer {
            name: container_name(account, name),
            kind: MapKind::Hash,
            key: key_schema(),
            schema: SCHEMA.to_owned(),
            placement: Vec::new(),
            policies: Policies { changes: true, throughput: None, attributes },
            cuts: Cuts::Even(SLICES),
            shards: self.home_shards(scale).await?,
        };
        self.engine.create_container(&new).await.map_err(|error| match error.kind() {
            Kind::Exists => {
                Error::exists(IndexReason::IndexExists, format!("there is an index {name:?}"))
            }
            _ => error,
        })?;
        self.index(account, name).await
    }

    /// An index by its name. Fails with `IndexNotFound`.
    pub async fn index(&self, account: &str, name: &str) -> Result<Arc<Index>> {
        let key = container_name(account, name);
        let container = match self.engine.open(&key, SCHEMA).await {
            Err(error) if error.kind() == Kind::NotFound => {
                self.known().remove(&key);
                return Err(not_found(name));
            }
            opened => opened?,
        };
        let mut known = self.known();
        match known.get(&key) {
            Some(index) if Arc::ptr_eq(&index.container, &container) => Ok(index.clone()),
            _ => {
                let index = Arc::new(Index::of(container)?);
                known.insert(key, index.clone());
                Ok(index)
            }
        }
    }

    /// The indexes of an account by name.
    pub async fn indexes(&self, account: &str) -> Result<Vec<Index>> {
        self.under(&format!("{CONTAINERS}{account}/")).await
    }

    /// The indexes of all accounts, with the names of their accounts.
    pub async fn all_indexes(&self) -> Result<Vec<(String, Index)>> {
        let all = self.under(CONTAINERS).await?;
        let named = all.into_iter().filter_map(|index| {
            let rest = index.container.name.strip_prefix(CONTAINERS)?;
            Some((rest.split_once('/')?.0.to_owned(), index))
        });
        Ok(named.collect())
    }

    async fn under(&self, prefix: &str) -> Result<Vec<Index>> {
        let (mut all, mut after) = (Vec::new(), None::<String>);
        loop {
            let page = self.engine.containers(prefix, after.as_deref(), PAGE).await?;
            after = page.last().map(|container| container.name.clone());
            let is_last = page.len() < PAGE;
            let found = page.into_iter().filter(|container| container.schema == SCHEMA);
            for container in found {
                all.push(Index::of(Arc::new(container))?);
            }
            if is_last {
                return Ok(all);
            }
        }
    }

    /// Gives an index another definition, if it is still of the version that the caller has seen.
    pub async fn redefine_index(
        &self,
        account: &str,
        name: &str,
        definition: &str,
        seen: Option<u64>,
    ) -> Result<Arc<Index>> {
        check_size(definition)?;
        let key = container_name(account, name);
        let change = self
            .engine
            .change_attributes(&key, |attributes| Index::redefine(attributes, definition, seen));
        change.await.map_err(|error| match error.kind() {
            Kind::NotFound => not_found(name),
            _ => error,
        })?;
        let index = self.index(account, name).await?;
        self.wakes.tell(index.id());
        Ok(index)
    }

    /// Deletes an index with all its documents; they follow in the background.
    pub async fn delete_index(&self, account: &str, name: &str, seen: Option<u64>) -> Result<()> {
        let index = self.index(account, name).await?;
        if seen.is_some_and(|seen| seen != index.version) {
            let message = "the index was changed meanwhile";
            return Err(Error::precondition(IndexReason::VersionDiffers, message));
        }
        let key = container_name(account, name);
        let deleted = self.engine.delete_container(&key).await;
        self.known().remove(&key);
        self.wakes.tell(index.id());
        deleted.map_err(|error| match error.kind() {
            Kind::NotFound => not_found(name),
            _ => error,
        })
    }

    /// Says over how many shards an index is to be spread, and how many replicas it has. [`Indexes::spread`] moves its slices.
    pub async fn scale_index(&self, account: &str, name: &str, scale: Scale) -> Result<Arc<Index>> {
        let key = container_name(account, name);
        let change = self.engine.change_attributes(&key, |attributes| {
            attributes.insert(PARTITIONS.to_owned(), scale.partitions.to_string());
            attributes.insert(REPLICAS.to_owned(), scale.replicas.to_string());
            attributes.insert(SPREADING.to_owned(), String::new());
            Ok(())
        });
        change.await.map_err(|error| match error.kind() {
            Kind::NotFound => not_found(name),
            _ => error,
        })?;
        self.index(account, name).await
    }
    /// Notes that an index is spread as its scale wants it.
    pub(crate) async fn end_spreading(&self, account: &str, name: &str) -> Result<()> {
        self.engine.set_attribute(&container_name(account, name), SPREADING, None).await
    }
}
