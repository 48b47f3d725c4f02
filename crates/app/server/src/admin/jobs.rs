//! Jobs in the admin API: running and finished moves.

use std::collections::BTreeMap;

use lazuli_engine::{Finished, Move, MoveStatus, Outcome, Phase};
use lazuli_shardmap::{MapReason, ShardId};
use serde_json::{Value, json};

use super::refusal::{Refusal, Result};
use super::request::Steer;
use crate::running::Running;

/// How many jobs that are over a list shows, the newest first.
const FINISHED_SHOWN: usize = 100;

pub(super) type Names = BTreeMap<ShardId, String>;

pub(super) async fn names(running: &Running) -> Result<Names> {
    let shards = running.catalog().shards().await?;
    Ok(shards.into_iter().map(|shard| (shard.id, shard.name)).collect())
}

pub(super) async fn list(running: &Running) -> Result<Value> {
    let names = names(running).await?;
    let open = running.engine.move_statuses().await?;
    let over = running.engine.moves_finished().await?;
    let mut jobs: Vec<Value> = open.iter().map(|status| show_open(&names, status)).collect();
    let over = over.iter().rev().take(FINISHED_SHOWN);
    jobs.extend(over.map(|finished| show_finished(&names, finished)));
    Ok(json!({ "jobs": jobs }))
}

pub(super) async fn show(running: &Running, number: u64) -> Result<Value> {
    let names = names(running).await?;
    if let Ok(status) = running.engine.move_status(number).await {
        return Ok(show_open(&names, &status));
    }
    let finished = running.engine.move_finished(number).await;
    match finished {
        Ok(finished) => Ok(show_finished(&names, &finished)),
        Err(error) if error.is(MapReason::MoveNotFound) => {
            Err(Refusal::not_found("job", &number.to_string(), "lazuli job list"))
        }
        Err(error) => Err(error.into()),
    }
}

pub(super) async fn steer(running: &Running, number: u64, steer: Steer) -> Result<Value> {
    let engine = &running.engine;
    let steered = match steer {
        Steer::Pause => engine.pause_move(number).await,
        Steer::Resume => engine.resume_move(number).await,
        Steer::Cancel => engine.cancel_move(number).await,
    };
    match steered {
        Ok(_) => {}
        Err(error) if error.is(MapReason::MoveNotFound) => {
            return Err(Refusal::not_found("job", &number.to_string(), "lazuli job list"));
        }
        Err(error) => return Err(error.into()),
    }
    tracing::info!(job = number, ?steer, "steered a job");
    show(running, number).await
}

fn show_move(names: &Names, moving: &Move) -> Value {
    let name = |id: &ShardId| names.get(id).cloned().unwrap_or_else(|| id.to_string());
    json!({
        "job": moving.number,
        "kind": "move",
        "partition": moving.partition.0,
        "from": name(&moving.source),
        "to": name(&moving.target),
        "epoch": moving.epoch,
        "pause_limit_ms": moving.pause_limit_ms,
        "begun_ms": moving.begun_ms,
    })
}

fn show_open(names: &Names, status: &MoveStatus) -> Value {
    let mut shown = show_move(names, &status.moving);
    let left = status.bytes_expected.saturating_sub(status.bytes);
    let is_copying = status.phase == Phase::Copying && status.rate > 0;
    shown["phase"] = json!(match status.phase {
        _ if status.moving.is_paused => "paused",
        Phase::Waiting => "waiting",
        Phase::Copying => "copying",
        Phase::CatchingUp => "catching up",
        Phase::Verifying => "verifying",
        Phase::Fenced => "fenced",
        Phase::Retiring => "retiring",
        Phase::CleaningUp => "cleaning up",
    });
    shown["items"] = json!(status.items);
    shown["bytes"] = json!(status.bytes);
    shown["bytes_expected"] = json!(status.bytes_expected);
    shown["bytes_per_second"] = json!(status.rate);
    shown["lag"] = json!(status.lag);
    shown["eta_seconds"] = if is_copying { json!(left / status.rate) } else { Value::Null };
    shown["pause_predicted_us"] =
        json!(status.pause_predicted.map(|pause| pause.as_micros() as u64));
    shown["trouble"] = json!(status.trouble.as_ref().map(ToString::to_string));
    shown
}

fn show_finished(names: &Names, finished: &Finished) -> Value {
    let mut shown = show_move(names, &finished.moving);
    shown["phase"] = json!(match finished.outcome {
        Outcome::Arrived => "done",
        Outcome::Cancelled => "cancelled",
    });
    shown["bytes"] = json!(finished.bytes);
    shown["ended_ms"] = json!(finished.ended_ms);
    shown["pause_us"] = json!(finished.pause.map(|pause| pause.as_micros() as u64));
    shown
}
