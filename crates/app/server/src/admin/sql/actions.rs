//! The actions: each reads its form and makes one call.

use std::sync::Arc;

use lazuli_pg::scram::Secret;
use lazuli_sql_control::{
    CheckOptions, Control, Cut, Keep, MoveOptions, NewMap, NewShard, NewTable, State, StateOptions,
    Which,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::super::refusal::{Refusal, Result};

/// Bytes of the salt of a login's secret.
const SALT_BYTES: usize = 16;
/// The most ids that are given at once.
const IDS_MAX: u32 = 10_000;
/// The shortest password of a login.
const PASSWORD_BYTES_LEAST: usize = 8;

fn read<T: DeserializeOwned>(body: Value) -> Result<T> {
    serde_json::from_value(body).map_err(|error| Refusal::bad_request(error.to_string()))
}

#[derive(Deserialize)]
struct Init {
    name: String,
    shards: Vec<NewShard>,
}

pub(super) async fn init(sql: &Arc<Control>, body: Value) -> Result<Value> {
    let Init { name, shards } = read(body)?;
    sql.init(&name, &shards).await?;
    Ok(sql.show(&name).await?)
}

/// A mapping, by its number or by a key of its map.
#[derive(Deserialize)]
struct Mapped {
    #[serde(default)]
    mapping: Option<u64>,
    #[serde(default)]
    map: Option<String>,
    #[serde(default)]
    key: Option<String>,
    /// Who has locked it.
    #[serde(default)]
    owner: Option<String>,
}

impl Mapped {
    fn which(&self) -> Result<Which> {
        match (self.mapping, &self.map, &self.key) {
            (Some(number), _, _) => Ok(Which::Number(number)),
            (None, Some(map), Some(key)) => Ok(Which::Key { map: map.clone(), key: key.clone() }),
            _ => Err(Refusal::bad_request("name a mapping, or a map and a key of it")),
        }
    }
}

#[derive(Deserialize)]
struct Named {
    name: String,
}

#[derive(Deserialize)]
struct AddMapping {
    map: String,
    low: String,
    #[serde(default)]
    high: String,
    shard: String,
}

#[derive(Deserialize)]
struct Split {
    #[serde(flatten)]
    mapped: Mapped,
    #[serde(default)]
    at: Option<String>,
    #[serde(default)]
    isolate: Option<String>,
}

#[derive(Deserialize)]
struct SetState {
    #[serde(flatten)]
    mapped: Mapped,
    state: State,
    #[serde(default)]
    epoch: Option<u64>,
    #[serde(default = "yes")]
    ends_sessions: bool,
}

fn yes() -> bool {
    true
}

#[derive(Deserialize)]
struct Lock {
    #[serde(flatten)]
    mapped: Mapped,
    #[serde(default)]
    force: bool,
}

#[derive(Deserialize)]
struct Move {
    #[serde(flatten)]
    mapped: Mapped,
    to: String,
    #[serde(flatten)]
    options: MoveOptions,
}

#[derive(Deserialize)]
struct Drain {
    shard: String,
    #[serde(flatten)]
    options: MoveOptions,
}

#[derive(Deserialize)]
struct Ddl {
    statement: String,
    #[serde(default)]
    canary: Option<String>,
    #[serde(default)]
    waits: bool,
}

#[derive(Deserialize)]
struct OfJob {
    job: u64,
}

#[derive(Deserialize)]
struct Resolve {
    shard: String,
    keep: String,
}

#[derive(Deserialize)]
struct Login {
    name: String,
    password: String,
    #[serde(default)]
    role: Option<String>,
}

#[derive(Deserialize)]
struct Count {
    #[serde(default = "one")]
    count: u32,
}

fn one() -> u32 {
    1
}

#[derive(Deserialize)]
struct Owner {
    owner: String,
}

pub(super) async fn act(
    sql: &Arc<Control>,
    database: &str,
    action: &str,
    body: Value,
) -> Result<Value> {
    match action {
        "add-shard" => {
            let id = sql.add_shard(database, &read::<NewShard>(body)?).await?;
            Ok(json!({ "id": id }))
        }
        "remove-shard" => done(sql.remove_shard(database, &read::<Named>(body)?.name).await),
        "drain" => {
            let Drain { shard, options } = read(body)?;
            Ok(json!({ "jobs": sql.drain(database, &shard, &options).await? }))
        }
        "fill" => done(sql.fill(database, &read::<Named>(body)?.name).await),
        "add-map" => {
            let id = sql.add_map(database, &read::<NewMap>(body)?).await?;
            Ok(json!({ "id": id }))
        }
        "remove-map" => done(sql.remove_map(database, &read::<Named>(body)?.name).await),
        "add-table" => {
            let id = sql.add_table(database, &read::<NewTable>(body)?).await?;
            Ok(json!({ "id": id }))
        }
        "remove-table" => done(sql.remove_table(database, &read::<Named>(body)?.name).await),
        "forget" => done(sql.forget(database).await),
        "next-id" => {
            let count = read::<Count>(body)?.count.clamp(1, IDS_MAX);
            Ok(json!({ "ids": sql.next_ids(database, count).await? }))
        }
        "add-login" => add_login(sql, database, read(body)?).await,
        "remove-login" => done(sql.remove_login(database, &read::<Named>(body)?.name).await),
        _ => act_on_work(sql, database, action, body).await,
    }
}

/// Jobs, checks, and shards that differ from the catalog.
async fn act_on_work(
    sql: &Arc<Control>,
    database: &str,
    action: &str,
    body: Value,
) -> Result<Value> {
    match action {
        "ddl" => {
            let Ddl { statement, canary, waits } = read(body)?;
            let job = sql.begin_ddl(database, &statement, canary.as_deref(), waits).await?;
            Ok(json!({ "job": job }))
        }
        "resume" => done(sql.resume_ddl(database, read::<OfJob>(body)?.job).await),
        "cancel" => done(sql.cancel(database, read::<OfJob>(body)?.job).await),
        "check" => {
            let findings = sql.check(database, &read::<CheckOptions>(body)?).await?;
            Ok(json!({ "findings": findings }))
        }
        "resolve" => {
            let Resolve { shard, keep } = read(body)?;
            let keep = match &*keep {
                "catalog" => Keep::Catalog,
                "shard" => Keep::Shard,
                _ => return Err(Refusal::bad_request("keep is catalog or shard")),
            };
            Ok(json!({ "settled": sql.resolve(database, &shard, keep).await? }))
        }
        "detach" => done(sql.detach(database, &read::<Named>(body)?.name).await),
        "attach" => {
            let found = sql.attach(database, &read::<NewShard>(body)?).await?;
            Ok(json!({ "differences": found }))
        }
        _ => act_on_mapping(sql, database, action, body).await,
    }
}

async fn act_on_mapping(
    sql: &Arc<Control>,
    database: &str,
    action: &str,
    body: Value,
) -> Result<Value> {
    match action {
        "add-mapping" => {
            let AddMapping { map, low, high, shard } = read(body)?;
            let id = sql.add_mapping(database, &map, (&low, &high), &shard).await?;
            Ok(json!({ "mapping": id }))
        }
        "remove-mapping" => {
            let mapped: Mapped = read(body)?;
            let owner = mapped.owner.as_deref();
            let id = sql.remove_mapping(database, &mapped.which()?, owner).await?;
            Ok(json!({ "mapping": id }))
        }
        "state" => {
            let SetState { mapped, state, epoch, ends_sessions } = read(body)?;
            let owner = mapped.owner.as_deref();
            let options = StateOptions { owner, expected: epoch, ends_sessions };
            let mapping = sql.set_state(database, &mapped.which()?, state, options).await?;
            Ok(json!({ "mapping": mapping.id, "epoch": mapping.epoch, "state": mapping.state }))
        }
        "lock" | "unlock" => {
            let Lock { mapped, force } = read(body)?;
            let owner = mapped.owner.as_deref();
            let lock = if action == "lock" { owner } else { None };
            if action == "lock" && lock.is_none() {
                return Err(Refusal::bad_request("a lock has an owner"));
            }
            let mapping = sql.set_lock(database, &mapped.which()?, lock, owner, force).await?;
            Ok(json!({ "mapping": mapping.id, "lock": mapping.lock }))
        }
        "unlock-all" => {
            let count = sql.unlock_all(database, &read::<Owner>(body)?.owner).await?;
            Ok(json!({ "count": count }))
        }
        "split" => {
            let Split { mapped, at, isolate } = read(body)?;
            let cut = match (at, isolate) {
                (Some(at), None) => Cut::At(at),
                (None, Some(key)) => Cut::Isolate(key),
                _ => return Err(Refusal::bad_request("name either at or isolate")),
            };
            let owner = mapped.owner.as_deref();
            let ids = sql.split(database, &mapped.which()?, &cut, owner).await?;
            Ok(json!({ "mappings": ids }))
        }
        "merge" => {
            let mapped: Mapped = read(body)?;
            let owner = mapped.owner.as_deref();
            let id = sql.merge(database, &mapped.which()?, owner).await?;
            Ok(json!({ "mapping": id }))
        }
        "move" => {
            let Move { mapped, to, options } = read(body)?;
            let owner = mapped.owner.as_deref();
            let job = sql.begin_move(database, &mapped.which()?, &to, &options, owner).await?;
            Ok(json!({ "job": job }))
        }
        _ => Err(Refusal::not_found("action", action, "lazuli sql --help")),
    }
}

/// Only what checks a password is kept, in PostgreSQL's own form.
async fn add_login(sql: &Arc<Control>, database: &str, login: Login) -> Result<Value> {
    let Login { name, password, role } = login;
    if password.len() < PASSWORD_BYTES_LEAST {
        let message = format!("a password has at least {PASSWORD_BYTES_LEAST} bytes");
        return Err(Refusal::bad_request(message));
    }
    let mut salt = [0; SALT_BYTES];
    getrandom::fill(&mut salt).map_err(|error| Refusal::busy(error.to_string()))?;
    let secret = Secret::of_password(&password, &salt).print();
    sql.set_login(database, &name, &secret, role.as_deref()).await?;
    Ok(json!({ "name": name, "role": role }))
}

/// The answer to an action that has nothing to tell.
fn done<E>(outcome: std::result::Result<(), E>) -> Result<Value>
where
    Refusal: From<E>,
{
    outcome?;
    Ok(json!({}))
}
