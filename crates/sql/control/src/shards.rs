//! Databases and their shards: init, add, drain, remove, and who may log in at the endpoint.

use std::collections::BTreeMap;
use std::sync::Arc;

use lazuli_store::{Error, Result};
use lazuli_store_postgres::Settings;
use serde::Deserialize;

use crate::book::Draft;
use crate::control::{Control, refused};
use crate::edit::Which;
use crate::form::{LoginForm, ModelForm, PlaceForm, ShardForm};
use crate::install;
use crate::job::{MoveOptions, Work};
use crate::mover::reference;

/// The longest name of a database, a shard, a map or a login.
const NAME_BYTES_MAX: usize = 63;
/// The most shards of one database: ids tell so many apart.
const SHARDS_MAX: u32 = lazuli_sharded_sql::SHARD_NUMBERS - 1;

#[derive(Clone, Debug, Deserialize)]
pub struct NewShard {
    pub name: String,
    pub address: String,
    #[serde(default)]
    pub region: String,
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
}

pub(crate) fn check_name(what: &str, name: &str) -> Result<()> {
    let is_known = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    if name.is_empty() || name.len() > NAME_BYTES_MAX || !name.bytes().all(is_known) {
        let message = format!(
            "the name of a {what} has letters, digits, _, - and ., at most {NAME_BYTES_MAX}"
        );
        return Err(Error::invalid("bad-sql-name", message));
    }
    Ok(())
}

impl Control {
    /// Makes a set of PostgreSQL databases the shards of a new sharded database, which has no tables yet.
    pub async fn init(self: &Arc<Self>, name: &str, shards: &[NewShard]) -> Result<()> {
        self.must_be_alone()?;
        check_name("sharded database", name)?;
        if self.book.read(name).await?.is_some() {
            let message = format!("there is a sharded database {name} already");
            return Err(Error::exists("sql-database-exists", message));
        }
        let mut model = ModelForm { name: name.to_owned(), version: 1, ..ModelForm::default() };
        for shard in shards {
            push_shard(&mut model, shard)?;
        }
        if model.shards.is_empty() {
            return Err(Error::invalid("no-sql-shards", "a sharded database has a shard"));
        }
        for shard in &model.shards {
            install::install(&self.link(shard).await?, &model, shard).await?;
        }
        self.book.create(&model).await?;
        let draft = self.read(name).await?;
        self.publish(&draft).map(drop)
    }

    /// Forgets a sharded database. Its shards keep all rows, without triggers of ours.
    pub async fn forget(self: &Arc<Self>, name: &str) -> Result<()> {
        let draft = self.read(name).await?;
        if !draft.jobs.is_empty() {
            return Err(refused("sql-jobs-running", "jobs are running; wait or cancel them"));
        }
        for shard in &draft.model.shards {
            let link = self.link(shard).await?;
            for table in &draft.model.tables {
                install::unguard_table(&link, table).await?;
            }
            link.run("DROP SCHEMA IF EXISTS lazuli CASCADE; DROP FUNCTION IF EXISTS public.lazuli_next_id()")
                .await?;
        }
        self.book.remove(&draft).await?;
        self.follow(false).await
    }

    /// Adds an empty shard: it gets triggers and the rows of reference tables, and no mapping yet.
    pub async fn add_shard(self: &Arc<Self>, name: &str, new: &NewShard) -> Result<u32> {
        let mut draft = self.read(name).await?;
        let id = push_shard(&mut draft.model, new)?;
        let shard = draft.model.shard(id)?.clone();
        let link = self.link(&shard).await?;
        install::install(&link, &draft.model, &shard).await?;
        crate::fits::must_fit(self, &draft, &link).await?;
        for table in &draft.model.tables {
            install::guard_table(&link, &draft.model, table, &shard).await?;
        }
        let copied = reference::copy_all(self, &draft, &shard).await?;
        let edit = |draft: &mut Draft| {
            let again = push_shard(&mut draft.model, new)?;
            match again == id {
                true => Ok(()),
                false => Err(refused("sql-shards-changed", "another shard was added meanwhile")),
            }
        };
        // Writers of reference tables wait until the new shard is one of those that they write to.
        let added = self.change(name, edit).await;
        copied.release().await;
        let (_, draft) = added?;
        // A statement that began before may have written to the other shards alone.
        self.wait_for_older(name, draft.model.version).await;
        reference::bring_up(self, &draft, &shard).await?;
        Ok(id)
    }

    /// Marks a shard as one to be emptied and begins to move its mappings away, to the shards with the fewest. Answers the jobs.
    pub async fn drain(
        self: &Arc<Self>,
        name: &str,
        shard: &str,
        options: &MoveOptions,
    ) -> Result<Vec<u64>> {
        let edit = |draft: &mut Draft| {
            let id = draft.model.shard_named(shard)?.id;
            let singles = |it: &&crate::form::TableForm| matches!(it.place, PlaceForm::Single { shard } if shard == id);
            if let Some(table) = draft.model.tables.iter().find(singles) {
                let message = format!("table {} lives on shard {shard} alone", table.table_name());
                return Err(refused("sql-shard-single", message));
            }
            if draft.model.shards.iter().filter(|it| !it.draining && it.id != id).count() == 0 {
                return Err(refused("sql-last-shard", "no other shard can take its rows"));
            }
            draft
                .model
                .shards
                .iter_mut()
                .filter(|it| it.id == id)
                .for_each(|it| it.draining = true);
            Ok(id)
        };
        let (id, draft) = self.change(name, edit).await?;
        let mut load: BTreeMap<u32, usize> = draft
            .model
            .shards
            .iter()
            .filter(|it| !it.draining)
            .map(|it| (it.id, draft.mappings.values().filter(|m| m.shard == it.id).count()))
            .collect();
        let mut jobs = Vec::new();
        for mapping in draft.mappings.values().filter(|it| it.shard == id) {
            let is_moving = |job: &crate::job::Job| matches!(&job.work, Work::Move(work) if work.mapping == mapping.id);
            if draft.jobs.values().any(is_moving) {
                continue;
            }
            let Some((target, count)) = load.iter_mut().min_by_key(|(_, count)| **count) else {
                continue;
            };
            *count += 1;
            let to = draft.model.shard(*target)?.name.clone();
            let which = Which::Number(mapping.id);
            jobs.push(self.begin_move(name, &which, &to, options, None).await?);
        }
        Ok(jobs)
    }

    /// Lets a shard take mappings again that was to be emptied.
    pub async fn fill(&self, name: &str, shard: &str) -> Result<()> {
        let edit = |draft: &mut Draft| {
            let id = draft.model.shard_named(shard)?.id;
            draft
                .model
                .shards
                .iter_mut()
                .filter(|it| it.id == id)
                .for_each(|it| it.draining = false);
            Ok(())
        };
        self.change(name, edit).await.map(drop)
    }

    /// Removes a shard that holds nothing.
    pub async fn remove_shard(self: &Arc<Self>, name: &str, shard: &str) -> Result<()> {
        let draft = self.read(name).await?;
        let form = draft.model.shard_named(shard)?.clone();
        let edit = |draft: &mut Draft| {
            let id = draft.model.shard_named(shard)?.id;
            let is_single = |it: &crate::form::TableForm| matches!(it.place, PlaceForm::Single { shard } if shard == id);
            if draft.mappings.values().any(|it| it.shard == id)
                || draft.model.tables.iter().any(is_single)
            {
                let message = format!("shard {shard} still holds rows: drain it first");
                return Err(refused("sql-shard-not-empty", message));
            }
            let is_at_work = |job: &crate::job::Job| matches!(&job.work, Work::Move(it) if it.from == id || it.to == id);
            if draft.jobs.values().any(is_at_work) {
                return Err(refused("sql-jobs-running", "a move of this shard is still at work"));
            }
            if draft.model.shards.len() == 1 {
                return Err(refused("sql-last-shard", "it is the last shard"));
            }
            draft.model.shards.retain(|it| it.id != id);
            Ok(())
        };
        self.change(name, edit).await?;
        let link = self.link(&form).await?;
        for table in &draft.model.tables {
            install::unguard_table(&link, table).await?;
        }
        link.run(
            "DROP SCHEMA IF EXISTS lazuli CASCADE; DROP FUNCTION IF EXISTS public.lazuli_next_id()",
        )
        .await
    }

    /// Lets somebody log in at the endpoint, or changes how.
    pub async fn set_login(
        &self,
        name: &str,
        login: &str,
        secret: &str,
        role: Option<&str>,
    ) -> Result<()> {
        check_name("login", login)?;
        let edit = |draft: &mut Draft| {
            draft.model.logins.retain(|it| it.name != login);
            draft.model.logins.push(LoginForm {
                name: login.to_owned(),
                secret: secret.to_owned(),
                role: role.map(str::to_owned),
            });
            Ok(())
        };
        self.change(name, edit).await.map(drop)
    }

    pub async fn remove_login(&self, name: &str, login: &str) -> Result<()> {
        let edit = |draft: &mut Draft| {
            let before = draft.model.logins.len();
            draft.model.logins.retain(|it| it.name != login);
            match draft.model.logins.len() < before {
                true => Ok(()),
                false => {
                    Err(Error::not_found("no-sql-login", format!("there is no login {login}")))
                }
            }
        };
        self.change(name, edit).await.map(drop)
    }

    /// The next ids that are unique over all shards.
    pub async fn next_ids(&self, name: &str, count: u32) -> Result<Vec<i64>> {
        let draft = self.read(name).await?;
        let shard = draft.model.shards.first().ok_or_else(|| crate::book::unknown(name))?;
        let link = self.link(shard).await?;
        let query = format!("SELECT public.lazuli_next_id() FROM generate_series(1, {count})");
        Ok(link.rows(&query).await?.iter().map(|row| row.get(0)).collect())
    }
}

fn push_shard(model: &mut ModelForm, new: &NewShard) -> Result<u32> {
    check_name("shard", &new.name)?;
    let settings = Settings::parse(&new.address)?;
    let same_place = |it: &ShardForm| {
        Settings::parse(&it.address)
            .is_ok_and(|other| other.hosts == settings.hosts && other.database == settings.database)
    };
    if model.shards.iter().any(|it| it.name == new.name || same_place(it)) {
        let message = format!("there is a shard {} already, or one in its database", new.name);
        return Err(Error::exists("sql-shard-exists", message));
    }
    if model.last_shard >= SHARDS_MAX {
        return Err(Error::too_large("too-many-sql-shards", "there were too many shards"));
    }
    model.last_shard += 1;
    model.shards.push(ShardForm {
        id: model.last_shard,
        name: new.name.clone(),
        address: new.address.clone(),
        region: if new.region.is_empty() { "local".to_owned() } else { new.region.clone() },
        labels: new.labels.clone(),
        draining: false,
    });
    Ok(model.last_shard)
}
