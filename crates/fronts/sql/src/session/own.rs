//! What the endpoint answers by itself: transactions, settings, prepared statements.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use lazuli_pg::Field;
use lazuli_pg::server::{
    Report, tag, write_command_complete, write_data_row, write_empty, write_notice,
    write_row_description,
};
use lazuli_sharded_sql::Snapshot;

use super::{Own, Session, Settings, Stop};
use crate::error::{SqlError, code};
use crate::limits::SETTINGS_MAX;
use crate::plan::{Command, Plan, SetScope};
use crate::space::Planned;

/// What is said when a command is done.
pub(crate) enum Done {
    /// This tag.
    Tag(&'static str),
    /// One row with one text.
    Row(String, String),
    /// A shard has said it.
    Relayed,
    /// There was nothing to do.
    Empty,
}

const TEXT: u32 = 25;

fn field(name: &str) -> Field {
    let (name, oid) = (name.to_owned(), TEXT);
    Field { name, table: 0, column: 0, oid, length: -1, modifier: -1, format: 0 }
}

/// The columns of a command's answer.
pub(super) fn fields(command: &Command) -> Option<Vec<Field>> {
    match command {
        Command::ShowOwn(name) => Some(vec![field(name)]),
        _ => None,
    }
}

impl Done {
    /// `is_simple`: the client has not asked for a description.
    pub(super) fn write(self, out: &mut BytesMut, is_simple: bool) {
        match self {
            Self::Tag(tag) => write_command_complete(out, tag),
            Self::Row(name, value) => {
                if is_simple {
                    write_row_description(out, &[field(&name)]);
                }
                write_data_row(out, &[Some(Bytes::from(value))]);
                write_command_complete(out, "SHOW");
            }
            Self::Relayed => {}
            Self::Empty => write_empty(out, tag::EMPTY_QUERY),
        }
    }
}

impl Session {
    pub(super) async fn own(
        &mut self,
        snapshot: &Snapshot,
        planned: &Planned,
    ) -> Result<Done, Stop> {
        let Plan::Command(command) = &planned.plan else { return Ok(Done::Empty) };
        match command {
            Command::Begin(modes) => {
                if self.tx.is_explicit() {
                    self.warn("25001", "there is already a transaction in progress");
                } else {
                    self.tx.begin(modes.clone(), self.own.is_two_phase);
                    self.tx.saved = Some((self.settings.clone(), self.search_path.clone()));
                }
                Ok(Done::Tag("BEGIN"))
            }
            Command::Commit => self.commit().await,
            Command::Rollback => {
                if self.tx.is_auto() {
                    self.warn("25P01", "there is no transaction in progress");
                }
                self.roll_back().await;
                Ok(Done::Tag("ROLLBACK"))
            }
            Command::Savepoint(_) | Command::Release(_) | Command::RollbackTo(_) => {
                self.savepoints(command).await
            }
            Command::Set { scope, name, value } => self.set(snapshot, *scope, name, value).await,
            Command::Reset(None) => {
                self.reset_all();
                Ok(Done::Tag("RESET"))
            }
            Command::Reset(Some(name)) => {
                let first = self.first_settings.values.get(name).cloned();
                let value = first.unwrap_or_else(|| "DEFAULT".to_owned());
                self.set(snapshot, SetScope::Session, name, &value).await?;
                Ok(Done::Relayed)
            }
            Command::ShowOwn(name) => self.show_own(name),
            Command::DiscardAll => {
                if !self.tx.is_auto() {
                    let message = "DISCARD ALL cannot run inside a transaction block";
                    return Err(SqlError::new("25001", message).into());
                }
                self.statements.clear();
                self.portals.clear();
                self.reset_all();
                Ok(Done::Tag("DISCARD ALL"))
            }
            Command::DeallocateAll => {
                self.statements.clear();
                Ok(Done::Tag("DEALLOCATE ALL"))
            }
            Command::Deallocate(name) => match self.statements.remove(name.trim_matches('"')) {
                Some(_) => Ok(Done::Tag("DEALLOCATE")),
                None => {
                    let message = format!("prepared statement \"{name}\" does not exist");
                    Err(SqlError::new(code::BAD_STATEMENT_NAME, message).into())
                }
            },
            Command::Nothing(tag) => Ok(Done::Tag(tag)),
        }
    }

    fn show_own(&self, name: &str) -> Result<Done, Stop> {
        let value = match (name, self.own.is_two_phase, self.own.is_partial) {
            ("lazuli.transaction", true, _) => "two-phase",
            ("lazuli.transaction", false, _) => "one-shard",
            ("lazuli.fanout", _, true) => "partial",
            ("lazuli.fanout", _, false) => "complete",
            _ => return Err(unknown(name).into()),
        };
        Ok(Done::Row(name.to_owned(), value.to_owned()))
    }

    async fn savepoints(&mut self, command: &Command) -> Result<Done, Stop> {
        match command {
            Command::Savepoint(name) => {
                self.savepoint(&format!("SAVEPOINT {name}"), "SAVEPOINT").await
            }
            Command::Release(name) => {
                self.savepoint(&format!("RELEASE SAVEPOINT {name}"), "RELEASE").await
            }
            Command::RollbackTo(name) => {
                let done =
                    self.savepoint(&format!("ROLLBACK TO SAVEPOINT {name}"), "ROLLBACK").await?;
                self.tx.recover();
                Ok(done)
            }
            _ => Ok(Done::Empty),
        }
    }

    fn warn(&mut self, code: &str, message: &str) {
        let report = Report { severity: "WARNING", code, message, detail: None, hint: None };
        write_notice(&mut self.client.out, &report);
    }

    fn reset_all(&mut self) {
        self.settings = self.first_settings.clone();
        self.search_path = search_path(self.settings.values.get("search_path").map(String::as_str));
        self.own = Own::default();
    }

    /// A savepoint on every shard of the transaction, and on those that will join.
    async fn savepoint(&mut self, text: &str, tag: &'static str) -> Result<Done, Stop> {
        if !self.tx.is_explicit() {
            let message = format!("{tag} can only be used in transaction blocks");
            return Err(SqlError::new("25P01", message).into());
        }
        for lease in self.tx.leases.values_mut() {
            lease.simple(text).await?;
        }
        self.tx.replay.push(text.to_owned());
        Ok(Done::Tag(tag))
    }

    async fn set(
        &mut self,
        snapshot: &Snapshot,
        scope: SetScope,
        name: &str,
        value: &str,
    ) -> Result<Done, Stop> {
        if name.starts_with("lazuli.") {
            self.set_own(name, value)?;
            return Ok(Done::Tag("SET"));
        }
        if self.settings.values.len() >= SETTINGS_MAX {
            return Err(SqlError::new(code::TOO_MANY, "too many settings").into());
        }
        if name == "client_encoding" && !is_utf8(value) {
            return Err(SqlError::refused("the only client encoding is UTF8").into());
        }
        let text = match (scope, name) {
            (_, "transaction") => format!("SET TRANSACTION {value}"),
            (SetScope::Local, _) => format!("SET LOCAL {name} TO {value}"),
            (SetScope::Session, _) => format!("SET {name} TO {value}"),
        };
        if scope == SetScope::Local {
            return self.set_local(&text).await;
        }
        // A shard says whether the setting exists and the value is one, and tells the client what follows from it.
        let waiting = std::mem::take(&mut self.tx);
        let ran = self.relay_simple(snapshot, snapshot.catalog_shard, &text).await;
        let mut settings = Settings::clone(&self.settings);
        match value.to_uppercase().as_str() {
            "DEFAULT" => drop(settings.values.remove(name)),
            _ => drop(settings.values.insert(name.to_owned(), value.to_owned())),
        }
        let settings = Arc::new(settings);
        if ran.is_ok() {
            self.tx.leases.values_mut().for_each(|lease| lease.settings = settings.clone());
        }
        self.release();
        self.tx = waiting;
        ran?;
        for lease in self.tx.leases.values_mut() {
            lease.simple(&text).await?;
            lease.settings = settings.clone();
        }
        self.settings = settings;
        if name == "search_path" {
            self.search_path = search_path(Some(value));
        }
        Ok(Done::Relayed)
    }

    /// SET LOCAL counts for the transaction: on its shards, and on those that will join.
    async fn set_local(&mut self, text: &str) -> Result<Done, Stop> {
        if self.tx.is_auto() {
            self.warn("25P01", "SET LOCAL can only be used in transaction blocks");
            return Ok(Done::Tag("SET"));
        }
        for lease in self.tx.leases.values_mut() {
            lease.simple(text).await?;
        }
        self.tx.replay.push(text.to_owned());
        Ok(Done::Tag("SET"))
    }

    pub(super) fn set_own(&mut self, name: &str, value: &str) -> Result<(), SqlError> {
        let value = value.trim_matches('\'').to_lowercase();
        match (name, value.as_str()) {
            ("lazuli.transaction", "two-phase" | "two_phase") => self.own.is_two_phase = true,
            ("lazuli.transaction", "one-shard" | "default") => self.own.is_two_phase = false,
            ("lazuli.fanout", "partial") => self.own.is_partial = true,
            ("lazuli.fanout", "complete" | "default") => self.own.is_partial = false,
            ("lazuli.transaction" | "lazuli.fanout", _) => {
                let values = match name {
                    "lazuli.transaction" => "one-shard, two-phase",
                    _ => "complete, partial",
                };
                let message = format!("invalid value for parameter \"{name}\": \"{value}\"");
                return Err(SqlError::new(code::INVALID_VALUE, message)
                    .hint(format!("Available values: {values}.")));
            }
            _ => return Err(unknown(name)),
        }
        if self.tx.is_explicit() && self.tx.leases.is_empty() {
            self.tx.is_two_phase = self.own.is_two_phase;
        }
        Ok(())
    }

    /// Ends the transaction on all shards, with its effects.
    pub(super) async fn commit(&mut self) -> Result<Done, Stop> {
        if self.tx.is_auto() {
            self.warn("25P01", "there is no transaction in progress");
            return Ok(Done::Tag("COMMIT"));
        }
        if self.tx.is_failed() {
            self.roll_back().await;
            return Ok(Done::Tag("ROLLBACK"));
        }
        self.tx.saved = None;
        let leases = self.tx.end();
        let result = match leases.len() {
            0 => Ok(()),
            1 => self.commit_one(leases).await,
            _ => {
                let leases = leases.into_iter().collect();
                crate::two_phase::commit(&self.front, &self.database, leases)
                    .await
                    .map_err(Stop::from)
            }
        };
        self.cancel.clear();
        result.map(|()| Done::Tag("COMMIT"))
    }

    async fn commit_one(
        &mut self,
        leases: std::collections::BTreeMap<u32, crate::shard::Lease>,
    ) -> Result<(), Stop> {
        for mut lease in leases.into_values() {
            if let Err(error) = lease.simple("COMMIT").await {
                if lease.is_dirty {
                    let message = "the connection to the shard was lost while it committed";
                    return Err(SqlError::new(code::UNKNOWN_OUTCOME, message)
                        .hint("Whether the transaction was committed is not known.")
                        .into());
                }
                return Err(error.into());
            }
        }
        Ok(())
    }

    /// Ends the transaction on all shards, without its effects.
    pub(super) async fn roll_back(&mut self) {
        if let Some((settings, path)) = self.tx.saved.take() {
            (self.settings, self.search_path) = (settings, path);
        }
        let leases = self.tx.end();
        for mut lease in leases.into_values() {
            if lease.settings != self.settings {
                lease.forget_settings();
            }
            // A session in the middle of something is closed, which rolls back as well.
            if lease.is_dirty || lease.simple("ROLLBACK").await.is_err() {
                lease.close();
            }
        }
        self.cancel.clear();
    }

    /// Leaves the shards that were joined for a statement that is tried again.
    pub(super) async fn abandon(&mut self) {
        let leases = std::mem::take(&mut self.tx.leases);
        for mut lease in leases.into_values() {
            let is_open = lease.status != lazuli_pg::TxStatus::Idle;
            if lease.is_dirty || (is_open && lease.simple("ROLLBACK").await.is_err()) {
                lease.close();
            }
        }
        self.tx.recover();
        self.cancel.clear();
    }
}

fn unknown(name: &str) -> SqlError {
    let message = format!("unrecognized configuration parameter \"{name}\"");
    SqlError::new("42704", message).hint("There are lazuli.transaction and lazuli.fanout.")
}

pub(super) fn is_utf8(value: &str) -> bool {
    let value = value.trim_matches(['\'', '"']).to_lowercase();
    matches!(value.as_str(), "utf8" | "utf-8" | "unicode" | "default" | "auto")
}

/// The schemas of a search path, without the user's own.
pub(super) fn search_path(value: Option<&str>) -> Vec<String> {
    let Some(value) = value.filter(|value| !value.eq_ignore_ascii_case("default")) else {
        return vec!["public".to_owned()];
    };
    let schema = |part: &str| {
        let part = part.trim().trim_matches('\'');
        match part.strip_prefix('"') {
            Some(quoted) => quoted.trim_end_matches('"').to_owned(),
            None => part.to_lowercase(),
        }
    };
    value.trim_matches('\'').split(',').map(schema).filter(|it| it != "$user").collect()
}
