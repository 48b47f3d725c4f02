//! Splits, merges and moves, and the jobs that are waited for.

use std::time::Duration;

use serde_json::{Value, json};

use super::{act, mapping, path, post};
use crate::args::Target;
use crate::args::sql::{Moving, OnMapping};
use crate::client::Client;
use lazuli_console::output::{self, cell};
use lazuli_console::progress::{Screen, bar};
use lazuli_console::{Failure, Result};

/// How often a job that is waited for is polled.
const LOOK: Duration = Duration::from_millis(100);
/// Characters of a progress bar.
const BAR: usize = 20;

pub(super) fn merged(mut one: Value, other: &Value) -> Value {
    for (name, value) in other.as_object().into_iter().flatten() {
        one[name] = value.clone();
    }
    one
}

pub(super) fn split(
    on: &OnMapping,
    cut: &Value,
    to: Option<&str>,
    moving: &Moving,
    target: &Target,
) -> Result<()> {
    let answer = post(&on.database, "split", &merged(mapping(on), cut), target)?;
    let Some(to) = to else {
        output::changed(target.json, &answer, || {
            format!("split into mappings {}", cell(&answer["mappings"]))
        });
        return Ok(());
    };
    // Of three parts the isolated key is the middle one.
    let ids: Vec<u64> =
        answer["mappings"].as_array().into_iter().flatten().filter_map(Value::as_u64).collect();
    let moved = match (&ids[..], cut["isolate"].is_null()) {
        ([_, upper], true) | ([_, upper, _], false) => *upper,
        _ => {
            // The key is at an end of its mapping, so it has to be found.
            let body = json!({ "map": on.map, "key": cut["isolate"] });
            return begin_move(&on.database, &body, to, moving, target);
        }
    };
    begin_move(&on.database, &json!({ "mapping": moved }), to, moving, target)
}

pub(super) fn merge(on: &OnMapping, moving: &Moving, target: &Target) -> Result<()> {
    let client = Client::find(target)?;
    let shown = client.get(&path(&on.database, ""))?;
    let all = || {
        let maps = shown["maps"].as_array().into_iter().flatten();
        maps.flat_map(|map| {
            map["mappings"].as_array().into_iter().flatten().map(move |it| (map, it))
        })
    };
    if let Some(id) = on.mapping
        && let Some((map, left)) = all().find(|it| it.1["id"] == json!(id))
        && let Some((_, right)) =
            all().find(|it| it.0["id"] == map["id"] && it.1["low"] == left["high"])
        && right["shard"] != left["shard"]
    {
        let waits = Moving { detach: false, ..*moving };
        let right = json!({ "mapping": right["id"] });
        begin_move(&on.database, &right, &cell(&left["shard"]), &waits, target)?;
    }
    act(&on.database, "merge", mapping(on), target, |answer| {
        format!("merged into mapping {}", cell(&answer["mapping"]))
    })
}

fn options(moving: &Moving) -> Value {
    json!({ "pause_limit_ms": moving.pause_limit_ms, "rows_per_second": moving.rows_per_second })
}

pub(super) fn begin_move(
    database: &str,
    mapping: &Value,
    to: &str,
    moving: &Moving,
    target: &Target,
) -> Result<()> {
    let body = merged(merged(json!({ "to": to }), mapping), &options(moving));
    let answer = post(database, "move", &body, target)?;
    let number = answer["job"].as_u64().unwrap_or(0);
    if moving.detach {
        output::changed(target.json, &answer, || format!("job {number} moves it to {to}"));
        return Ok(());
    }
    follow(database, number, target)
}

pub(super) fn drain(database: &str, shard: &str, moving: &Moving, target: &Target) -> Result<()> {
    let body = merged(json!({ "shard": shard }), &options(moving));
    let answer = post(database, "drain", &body, target)?;
    let jobs: Vec<u64> =
        answer["jobs"].as_array().into_iter().flatten().filter_map(Value::as_u64).collect();
    if !moving.detach {
        for job in &jobs {
            follow(database, *job, target)?;
        }
    }
    output::changed(target.json, &answer, || match moving.detach {
        true => format!("{} jobs drain shard {shard}", jobs.len()),
        false => format!("drained shard {shard}: {} mappings moved", jobs.len()),
    });
    Ok(())
}

/// Waits until a job is over, with its progress on the terminal if there is one.
pub(super) fn follow(database: &str, number: u64, target: &Target) -> Result<()> {
    let client = Client::find(target)?;
    let screen = Screen::new(target.json);
    let job = loop {
        let job = client.get(&path(database, &format!("/jobs/{number}")))?;
        if !job["outcome"].is_null() {
            break job;
        }
        screen.show(&[progress(&job)]);
        std::thread::sleep(LOOK);
    };
    screen.finish();
    output::changed(target.json, &job, || summary(&job));
    match job["outcome"].as_str() {
        Some("done") => Ok(()),
        _ => Err(Failure::failed(format!("job {number}: {}", cell(&job["trouble"])))),
    }
}

fn progress(job: &Value) -> String {
    let number = |name: &str| job[name].as_u64().unwrap_or(0);
    let trouble = job["trouble"].as_str().map(|it| format!(" ({it})")).unwrap_or_default();
    let eta = job["eta_s"].as_f64().map(|eta| format!(", {eta:.0} s left")).unwrap_or_default();
    let bar = bar(number("rows"), number("rows_expected").max(1), BAR);
    format!(
        "{bar} {}: {} rows, {} changes{eta}{trouble}",
        cell(&job["step"]),
        number("rows"),
        number("changes")
    )
}

fn summary(job: &Value) -> String {
    if job["kind"] == json!("ddl") {
        return format!(
            "job {} {} on {}",
            cell(&job["job"]),
            cell(&job["outcome"]),
            cell(&job["done"])
        );
    }
    let pause = job["pause_us"].as_f64().unwrap_or(0.0) / 1_000.0;
    format!(
        "moved mapping {} from {} to {}: {} rows, {} changes; writers waited for {pause:.1} ms",
        cell(&job["mapping"]),
        cell(&job["from"]),
        cell(&job["to"]),
        cell(&job["rows"]),
        cell(&job["changes"])
    )
}
