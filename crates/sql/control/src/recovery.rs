//! Where catalog and shards differ about what a shard holds, and which of them wins.
//!
//! They differ when a shard was restored from a backup, or was replaced. Nothing is decided by itself.

use std::fmt;
use std::sync::Arc;

use lazuli_store::{KeyRange, Result};
use serde::Serialize;

use crate::apply::decide;
use crate::book::Draft;
use crate::control::{Control, refused};
use crate::form::{MappingForm, ShardForm, State};
use crate::job::ChangeWork;
use crate::local::{self, Held, LocalChange};
use crate::shards::NewShard;
use crate::{install, link};

/// One mapping about which catalog and shard differ.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    pub shard: String,
    pub mapping: u64,
    /// What the catalog says of it: range and epoch; none if it knows no such mapping on this shard.
    pub catalog: Option<String>,
    /// The same for the shard's local map.
    pub local: Option<String>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let or_none = |it: &Option<String>| it.clone().unwrap_or_else(|| "nothing".to_owned());
        let (catalog, local) = (or_none(&self.catalog), or_none(&self.local));
        write!(f, "mapping {}: the catalog has {catalog}, the shard {local}", self.mapping)
    }
}

/// Which side wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    Catalog,
    Shard,
}

impl Control {
    /// Compares the local maps with the catalog, of one shard or of all.
    pub async fn differences(
        self: &Arc<Self>,
        name: &str,
        shard: Option<&str>,
    ) -> Result<Vec<Difference>> {
        let draft = self.read(name).await?;
        let mut found = Vec::new();
        for form in &draft.model.shards {
            if shard.is_some_and(|name| name != form.name) {
                continue;
            }
            let held = local::held(&self.link(form).await?).await?;
            found.extend(compare(&draft, form, &held)?);
        }
        Ok(found)
    }

    /// Settles the differences of one shard, and answers how many there were.
    pub async fn resolve(self: &Arc<Self>, name: &str, shard: &str, keep: Keep) -> Result<usize> {
        let draft = self.read(name).await?;
        if !draft.jobs.is_empty() {
            return Err(refused("sql-jobs-running", "jobs are running; wait or cancel them"));
        }
        let form = draft.model.shard_named(shard)?.clone();
        let mut link = self.link(&form).await?;
        let held = local::held(&link).await?;
        let differences = compare(&draft, &form, &held)?;
        if differences.is_empty() {
            return Ok(0);
        }
        match keep {
            Keep::Catalog => self.rebuild_local(&draft, &form, &held, &mut link).await?,
            Keep::Shard => self.rebuild_catalog(name, &form, &held).await?,
        }
        Ok(differences.len())
    }

    /// The shard holds what the catalog says.
    async fn rebuild_local(
        self: &Arc<Self>,
        draft: &Draft,
        form: &ShardForm,
        held: &[Held],
        link: &mut link::Link,
    ) -> Result<()> {
        let (number, _) =
            self.change(&draft.model.name, |draft| Ok(draft.model.next_number())).await?;
        let change = LocalChange {
            removed: held.iter().map(|it| it.mapping).collect(),
            put: draft.mappings.values().filter(|it| it.shard == form.id).cloned().collect(),
        };
        local::apply(link, number, &change, std::time::Duration::from_secs(10)).await
    }

    /// The catalog takes what the shard says, at new epochs. Refused where another shard holds some of the keys.
    async fn rebuild_catalog(
        self: &Arc<Self>,
        name: &str,
        form: &ShardForm,
        held: &[Held],
    ) -> Result<()> {
        let now = self.env.clock.now_ms();
        let edit = |draft: &mut Draft| {
            let mut work = ChangeWork::default();
            draft.mappings.retain(|_, it| it.shard != form.id);
            for it in held {
                draft.model.map(it.map)?;
                let routes = KeyRange::new(it.low.clone(), it.high.clone().map(Into::into));
                for other in draft.mappings.values().filter(|other| other.map == it.map) {
                    if other.routes()?.overlaps(&routes) {
                        let message = format!(
                            "mapping {} of the shard overlaps mapping {} of another shard",
                            it.mapping, other.id
                        );
                        return Err(refused("sql-mapping-exists", message));
                    }
                }
                let mut mapping = MappingForm {
                    id: it.mapping,
                    map: it.map,
                    low: String::new(),
                    high: None,
                    shard: form.id,
                    epoch: it.epoch + 1,
                    state: match &*it.state {
                        "offline" => State::Offline,
                        "read-only" => State::ReadOnly,
                        _ => State::Online,
                    },
                    lock: None,
                };
                mapping.set_routes(&routes);
                draft.model.last_number = draft.model.last_number.max(it.mapping);
                draft.mappings.insert(mapping.id, mapping.clone());
                work.put.push(mapping);
            }
            Ok(decide(draft, work, now))
        };
        let (job, _) = self.change(name, edit).await?;
        self.settled(name, job).await
    }

    /// Forgets where a shard is, without touching its database: it is gone, or about to be replaced. Its mappings stay, so that
    /// [`Control::attach`] can give them a database again.
    pub async fn detach(&self, name: &str, shard: &str) -> Result<()> {
        let edit = |draft: &mut Draft| {
            let id = draft.model.shard_named(shard)?.id;
            if !draft.mappings.values().any(|it| it.shard == id) {
                draft.model.shards.retain(|it| it.id != id);
                return Ok(());
            }
            for mapping in draft.mappings.values_mut().filter(|it| it.shard == id) {
                mapping.state = State::Offline;
                mapping.epoch += 1;
            }
            Ok(())
        };
        self.change(name, edit).await.map(drop)
    }

    /// Gives a shard another database, such as a restored copy of its own, and installs what is missing there. What it says it
    /// holds is then compared by [`Control::differences`].
    pub async fn attach(self: &Arc<Self>, name: &str, new: &NewShard) -> Result<Vec<Difference>> {
        let draft = self.read(name).await?;
        let id = draft.model.shard_named(&new.name)?.id;
        lazuli_store_postgres::Settings::parse(&new.address)?;
        let edit = |draft: &mut Draft| {
            let shards = draft.model.shards.iter_mut().filter(|it| it.id == id);
            shards.for_each(|it| it.address.clone_from(&new.address));
            Ok(())
        };
        let mut moved = draft.model.clone();
        moved.shards.iter_mut().filter(|it| it.id == id).for_each(|it| {
            it.address.clone_from(&new.address);
        });
        let form = moved.shard(id)?.clone();
        let link = self.link(&form).await?;
        install::install(&link, &moved, &form).await?;
        for table in &moved.tables {
            install::guard_table(&link, &moved, table, &form).await?;
        }
        self.change(name, edit).await?;
        self.differences(name, Some(&new.name)).await
    }
}

fn compare(draft: &Draft, shard: &ShardForm, held: &[Held]) -> Result<Vec<Difference>> {
    let mut found = Vec::new();
    let difference =
        |mapping, catalog, local| Difference { shard: shard.name.clone(), mapping, catalog, local };
    for mapping in draft.mappings.values().filter(|it| it.shard == shard.id) {
        let local = held.iter().find(|it| it.mapping == mapping.id).map(shown);
        let wanted = mapping_shown(mapping);
        if local.as_ref() != Some(&wanted) {
            found.push(difference(mapping.id, Some(wanted), local));
        }
    }
    for it in held {
        let is_known =
            draft.mappings.get(&it.mapping).is_some_and(|mapping| mapping.shard == shard.id);
        if !is_known {
            found.push(difference(it.mapping, None, Some(shown(it))));
        }
    }
    Ok(found)
}

fn mapping_shown(mapping: &MappingForm) -> String {
    let high = mapping.high.as_deref().unwrap_or("max");
    let (low, epoch, state) = (&mapping.low, mapping.epoch, mapping.state.local());
    format!("{low}..{high} at epoch {epoch}, {state}")
}

fn shown(held: &Held) -> String {
    let hex = crate::form::hex;
    let high = held.high.as_deref().map_or("max".to_owned(), hex);
    format!("{}..{high} at epoch {}, {}", hex(&held.low), held.epoch, held.state)
}
