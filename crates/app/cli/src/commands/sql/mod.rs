//! `lazuli sql …`: sharded SQL databases, over the admin API.

mod moves;

use serde_json::{Value, json};

use crate::args::sql::{
    MapKind, MappingState, OnMapping, SqlCommand, SqlJobCommand, SqlMapCommand, SqlShardCommand,
    SqlTableCommand, SqlUserCommand,
};
use crate::args::{Keep, Target};
use crate::client::{Client, fetch};
use lazuli_console::output::{self, cell, rows};
use lazuli_console::{Failure, Result};
use lazuli_http::uri::percent_encode;
use moves::{begin_move, drain, follow, merge, merged, split};

/// Where the password of a new login is read from.
const PASSWORD: &str = "LAZULI_SQL_PASSWORD";

pub(crate) fn run(command: SqlCommand) -> Result<()> {
    match command {
        SqlCommand::List(target) => list(&target),
        SqlCommand::Init { database, shards, target } => init(&database, &shards, &target),
        SqlCommand::Status { database, sizes, target } => status(&database, sizes, &target),
        SqlCommand::Forget { database, target } => {
            act(&database, "forget", json!({}), &target, |_| format!("forgot {database}"))
        }
        SqlCommand::Shard(command) => shard(command),
        SqlCommand::Map(command) => map(command),
        SqlCommand::Table(command) => table(command),
        SqlCommand::User(command) => user(command),
        SqlCommand::Split { on, at, isolate, to, moving, target } => {
            let cut = json!({ "at": at, "isolate": isolate });
            split(&on, &cut, to.as_deref(), &moving, &target)
        }
        SqlCommand::Merge { on, moving, target } => merge(&on, &moving, &target),
        SqlCommand::Move { on, to, moving, target } => {
            begin_move(&on.database, &mapping(&on), &to, &moving, &target)
        }
        SqlCommand::Drain { database, shard, moving, target } => {
            drain(&database, &shard, &moving, &target)
        }
        SqlCommand::State { on, state, keep_sessions, target } => {
            set_state(&on, state, keep_sessions, &target)
        }
        SqlCommand::Ddl { database, statement, file, canary, wait, target } => {
            let statement = match (statement, file) {
                (Some(statement), _) => statement,
                (None, Some(file)) => std::fs::read_to_string(&file)
                    .map_err(|error| Failure::failed(format!("{}: {error}", file.display())))?,
                (None, None) => String::new(),
            };
            let body = json!({ "statement": statement, "canary": canary, "waits": wait });
            ddl(&database, &body, wait, &target)
        }
        SqlCommand::Check { database, repair, remove_orphans, references, target } => {
            let body = json!({
                "repair": repair, "remove_orphans": remove_orphans, "references": references,
            });
            check(&database, &body, &target)
        }
        SqlCommand::NextId { database, count, target } => {
            let body = json!({ "count": count });
            let answer = post(&database, "next-id", &body, &target)?;
            output::changed(target.json, &answer, || {
                let ids = answer["ids"].as_array().into_iter().flatten();
                ids.map(cell).collect::<Vec<_>>().join("\n")
            });
            Ok(())
        }
        SqlCommand::Job(command) => job(command),
    }
}

fn path(database: &str, rest: &str) -> String {
    format!("/v1/sql/{}{rest}", percent_encode(database))
}

fn post(database: &str, action: &str, body: &Value, target: &Target) -> Result<Value> {
    Client::find(target)?.post(&path(database, &format!("/{action}")), body)
}

/// Does an action and says what it changed.
fn act(
    database: &str,
    action: &str,
    body: Value,
    target: &Target,
    sentence: impl FnOnce(&Value) -> String,
) -> Result<()> {
    let answer = post(database, action, &body, target)?;
    output::changed(target.json, &answer, || sentence(&answer));
    Ok(())
}

/// Name and address of `NAME=ADDRESS`.
fn shard_form(text: &str) -> Result<Value> {
    let (name, address) = text
        .split_once('=')
        .ok_or_else(|| Failure::usage("a shard is written NAME=postgres://user@host/database"))?;
    Ok(json!({ "name": name, "address": address }))
}

fn list(target: &Target) -> Result<()> {
    let Some(answer) = fetch(target, "/v1/sql")? else { return Ok(()) };
    let columns = ["name", "shards", "maps", "tables", "mappings", "jobs"];
    output::table(&columns, &rows(&answer["databases"], &columns));
    Ok(())
}

fn init(database: &str, shards: &[String], target: &Target) -> Result<()> {
    let shards: Vec<Value> = shards.iter().map(|it| shard_form(it)).collect::<Result<_>>()?;
    let count = shards.len();
    let body = json!({ "name": database, "shards": shards });
    let answer = Client::find(target)?.post("/v1/sql", &body)?;
    output::changed(target.json, &answer, || {
        format!("made the sharded database {database} of {count} shards")
    });
    Ok(())
}

fn status(database: &str, sizes: bool, target: &Target) -> Result<()> {
    let Some(mut answer) = fetch(target, &path(database, ""))? else { return Ok(()) };
    let columns = ["name", "address", "region", "draining"];
    output::table(&columns, &rows(&answer["shards"], &columns));
    output::line("");
    for table in answer["tables"].as_array_mut().into_iter().flatten() {
        let by = table["columns"].as_array().into_iter().flatten();
        let by: Vec<String> = by.map(|column| cell(&column["name"])).collect();
        table["by"] = json!(by.join(","));
        table["table"] = json!(format!("{}.{}", cell(&table["schema"]), cell(&table["name"])));
    }
    let columns = ["table", "kind", "map", "by", "shard"];
    output::table(&columns, &rows(&answer["tables"], &columns));
    for map in answer["maps"].as_array().into_iter().flatten() {
        let key = cell(&map["key"]);
        output::line(&format!("\nmap {} ({}, {key})", cell(&map["name"]), cell(&map["kind"])));
        let columns = ["id", "range", "shard", "epoch", "state", "lock"];
        output::table(&columns, &rows(&map["mappings"], &columns));
    }
    if answer["jobs"].as_array().is_some_and(|jobs| !jobs.is_empty()) {
        output::line("");
        jobs_table(&answer["jobs"]);
    }
    if sizes && let Some(answer) = fetch(target, &path(database, "/sizes"))? {
        let mut lines = Vec::new();
        for shard in answer["shards"].as_array().into_iter().flatten() {
            for table in shard["tables"].as_array().into_iter().flatten() {
                let bytes = output::size(table["bytes"].as_u64().unwrap_or(0));
                lines.push(vec![
                    cell(&shard["shard"]),
                    cell(&table["table"]),
                    cell(&table["rows"]),
                    bytes,
                ]);
            }
            if let Some(error) = shard["error"].as_str() {
                lines.push(vec![cell(&shard["shard"]), error.to_owned()]);
            }
        }
        output::line("");
        output::table(&["shard", "table", "rows", "bytes"], &lines);
    }
    Ok(())
}

fn shard(command: SqlShardCommand) -> Result<()> {
    match command {
        SqlShardCommand::Add { database, shard, region, target } => {
            let mut body = shard_form(&shard)?;
            body["region"] = json!(region);
            let name = cell(&body["name"]);
            act(&database, "add-shard", body, &target, |_| format!("added shard {name}"))
        }
        SqlShardCommand::Remove { database, name, target } => {
            let body = json!({ "name": name });
            act(&database, "remove-shard", body, &target, |_| format!("removed shard {name}"))
        }
        SqlShardCommand::Fill { database, name, target } => {
            let body = json!({ "name": name });
            act(&database, "fill", body, &target, |_| format!("shard {name} takes mappings again"))
        }
        SqlShardCommand::Detach { database, name, target } => {
            let body = json!({ "name": name });
            act(&database, "detach", body, &target, |_| {
                format!("the mappings of shard {name} are offline")
            })
        }
        SqlShardCommand::Attach { database, shard, target } => {
            let body = shard_form(&shard)?;
            let name = cell(&body["name"]);
            act(&database, "attach", body, &target, |answer| {
                let count = answer["differences"].as_array().map_or(0, Vec::len);
                format!("attached shard {name}; it differs from the catalog in {count} mappings")
            })
        }
        SqlShardCommand::Compare { database, name, keep, target } => {
            compare(&database, name.as_deref(), keep, &target)
        }
    }
}

fn compare(database: &str, name: Option<&str>, keep: Option<Keep>, target: &Target) -> Result<()> {
    if let (Some(name), Some(keep)) = (name, keep) {
        let keep = match keep {
            Keep::Catalog => "catalog",
            Keep::Shard => "shard",
        };
        let body = json!({ "shard": name, "keep": keep });
        return act(database, "resolve", body, target, |answer| {
            format!("settled {} differences of shard {name}", cell(&answer["settled"]))
        });
    }
    let query = name.map(|name| format!("?shard={}", percent_encode(name))).unwrap_or_default();
    let path = path(database, &format!("/differences{query}"));
    let Some(answer) = fetch(target, &path)? else { return Ok(()) };
    let columns = ["shard", "mapping", "catalog", "local"];
    output::table(&columns, &rows(&answer["differences"], &columns));
    Ok(())
}

fn map(command: SqlMapCommand) -> Result<()> {
    match command {
        SqlMapCommand::Add { database, name, kind, key, on, target } => {
            let kind = match kind {
                MapKind::List => "list",
                MapKind::Range => "range",
                MapKind::Hash => "hash",
            };
            let body = json!({ "name": name, "kind": kind, "key": key, "on": on });
            act(&database, "add-map", body, &target, |_| format!("added map {name}"))
        }
        SqlMapCommand::Remove { database, name, target } => {
            let body = json!({ "name": name });
            act(&database, "remove-map", body, &target, |_| format!("removed map {name}"))
        }
        SqlMapCommand::Assign { database, map, keys, shard, target } => {
            let (low, high) = keys.split_once("..").unwrap_or((&keys, ""));
            let body = json!({ "map": map, "low": low, "high": high, "shard": shard });
            act(&database, "add-mapping", body, &target, |answer| {
                format!("mapping {} gives {keys} to shard {shard}", cell(&answer["mapping"]))
            })
        }
        SqlMapCommand::Unassign { on, target } => {
            act(&on.database, "remove-mapping", mapping(&on), &target, |answer| {
                format!("removed mapping {}", cell(&answer["mapping"]))
            })
        }
    }
}

fn table(command: SqlTableCommand) -> Result<()> {
    match command {
        SqlTableCommand::Add { database, table, by, map, reference, only_on, target } => {
            let body = match (reference, only_on, map) {
                (true, _, _) => json!({ "name": table, "kind": "reference" }),
                (_, Some(shard), _) => json!({ "name": table, "kind": "single", "shard": shard }),
                (_, _, Some(map)) => {
                    json!({ "name": table, "kind": "sharded", "map": map, "columns": by })
                }
                _ => {
                    let message = "say --by COLUMNS --map MAP, --reference, or --only-on SHARD";
                    return Err(Failure::usage(message));
                }
            };
            let kind = cell(&body["kind"]);
            act(&database, "add-table", body, &target, |_| format!("table {table} is {kind}"))
        }
        SqlTableCommand::Remove { database, table, target } => {
            let body = json!({ "name": table });
            act(&database, "remove-table", body, &target, |_| format!("took {table} out"))
        }
    }
}

fn user(command: SqlUserCommand) -> Result<()> {
    match command {
        SqlUserCommand::Add { database, name, role, target } => {
            let password = std::env::var(PASSWORD).map_err(|_| {
                Failure::failed(format!("{PASSWORD} is not set"))
                    .hint("the password of the login is read from this variable, never from a flag")
            })?;
            let body = json!({ "name": name, "password": password, "role": role });
            act(&database, "add-login", body, &target, |_| format!("{name} may log in"))
        }
        SqlUserCommand::Remove { database, name, target } => {
            let body = json!({ "name": name });
            act(&database, "remove-login", body, &target, |_| format!("removed login {name}"))
        }
    }
}

/// The fields that name a mapping.
fn mapping(on: &OnMapping) -> Value {
    json!({ "mapping": on.mapping, "map": on.map, "key": on.key })
}

fn set_state(
    on: &OnMapping,
    state: MappingState,
    keep_sessions: bool,
    target: &Target,
) -> Result<()> {
    let state = match state {
        MappingState::Online => "online",
        MappingState::ReadOnly => "read-only",
        MappingState::Offline => "offline",
    };
    let body = json!({ "state": state, "ends_sessions": !keep_sessions });
    act(&on.database, "state", merged(mapping(on), &body), target, |answer| {
        format!("mapping {} is {state}, epoch {}", cell(&answer["mapping"]), cell(&answer["epoch"]))
    })
}

fn ddl(database: &str, body: &Value, waits: bool, target: &Target) -> Result<()> {
    let answer = post(database, "ddl", body, target)?;
    let number = answer["job"].as_u64().unwrap_or(0);
    if waits {
        output::changed(target.json, &answer, || {
            format!("job {number} runs it on the canary and waits there")
        });
        return Ok(());
    }
    follow(database, number, target)
}

fn check(database: &str, body: &Value, target: &Target) -> Result<()> {
    let answer = post(database, "check", body, target)?;
    let findings = answer["findings"].as_array().cloned().unwrap_or_default();
    if target.json {
        output::json(&answer);
    } else if findings.is_empty() {
        output::line("everything fits");
    } else {
        let columns = ["kind", "shard", "table", "rows", "repaired", "detail"];
        output::table(&columns, &rows(&answer["findings"], &columns));
    }
    match findings.iter().all(|it| it["repaired"] == json!(true)) {
        true => Ok(()),
        false => Err(Failure::failed("something does not fit")),
    }
}

fn jobs_table(jobs: &Value) {
    let columns =
        ["job", "kind", "mapping", "from", "to", "step", "rows", "changes", "outcome", "trouble"];
    output::table(&columns, &rows(jobs, &columns));
}

fn job(command: SqlJobCommand) -> Result<()> {
    match command {
        SqlJobCommand::List { database, target } => {
            let Some(answer) = fetch(&target, &path(&database, "/jobs"))? else { return Ok(()) };
            jobs_table(&answer["jobs"]);
            Ok(())
        }
        SqlJobCommand::Show { database, number, target } => {
            let path = path(&database, &format!("/jobs/{number}"));
            let Some(answer) = fetch(&target, &path)? else { return Ok(()) };
            for (name, value) in answer.as_object().into_iter().flatten() {
                output::line(&format!("{name:<18} {}", cell(value)));
            }
            Ok(())
        }
        SqlJobCommand::Cancel { database, number, target } => {
            let body = json!({ "job": number });
            act(&database, "cancel", body, &target, |_| format!("job {number} is being cancelled"))
        }
        SqlJobCommand::Resume { database, number, target } => {
            let body = json!({ "job": number });
            act(&database, "resume", body, &target, |_| format!("job {number} goes on"))
        }
    }
}
