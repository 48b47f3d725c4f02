//! Backups and restores in the admin API: a backup is a response body, a restore a request body.

use std::sync::Arc;

use lazuli_engine::backup::{Backup, BackupReason};
use lazuli_http::{Body, BodyError, Response, StatusCode};
use lazuli_shardmap::{MapReason, PartitionId};
use lazuli_store::Error;
use serde_json::{Value, json};

use super::maps::show_bounds;
use super::refusal::{Refusal, Result};
use crate::restores::{self, Phase, RestoreReason, Restores, Status, Wanted};
use crate::running::Running;

/// A backup of a partition, as it is at this moment, or as a standby of its shard shows it.
pub(super) async fn take(running: &Running, id: u64, stale: bool) -> Result<Response> {
    let backup = match stale {
        true => running.engine.allowing_stale().backup(PartitionId(id)).await,
        false => running.engine.backup(PartitionId(id)).await,
    };
    let backup = backup.map_err(|error| match error.reason() {
        Some(MapReason::PartitionNotFound) => {
            Refusal::not_found("partition", &id.to_string(), "lazuli partition list")
        }
        _ => error.into(),
    })?;
    let (map, lsn) = (backup.head().container.name.clone(), backup.head().lsn.0);
    tracing::info!(partition = id, map, lsn, "began a backup");
    let mut response =
        Response::new(StatusCode::OK).with("content-type", "application/octet-stream");
    response.body = Body::streamed(backup, move |mut backup: Backup| async move {
        match backup.next().await {
            Ok(Some(piece)) => Ok(Some((piece, backup))),
            Ok(None) => Ok(None),
            Err(error) => {
                tracing::warn!(partition = id, %error, "a backup was cut short");
                Err(BodyError::Broken)
            }
        }
    });
    Ok(response)
}

/// Takes a backup in and begins to restore it.
pub(super) async fn restore(restores: &Arc<Restores>, body: Body, wanted: Wanted) -> Result<Value> {
    match restores.begin(body, wanted).await {
        Ok(begun) => Ok(show_status(&begun)),
        Err(error) => Err(with_hint(error)),
    }
}

/// A refusal with what to do about it.
fn with_hint(error: Error) -> Refusal {
    let of_backup = error.reason().map(|reason| match reason {
        BackupReason::RoutesNotEmpty => {
            "restore into another map with --into, or let what is there be deleted with --replace"
        }
        BackupReason::Damaged | BackupReason::Truncated => {
            "nothing was changed; use another backup"
        }
    });
    let of_restore = error.reason().map(|reason| match reason {
        RestoreReason::AccountNotFound => "`lazuli account create` makes one",
        RestoreReason::Running => "wait until it is done",
    });
    let Some(hint) = of_backup.or(of_restore) else { return error.into() };
    Refusal::from(error).hint(hint)
}

/// All restores of the fleet, the newest first.
pub(super) async fn list(running: &Running) -> Result<Value> {
    let mut all: Vec<Value> = running.restores.list().iter().map(show_status).collect();
    all.extend(restores::elsewhere(&running.nodes).await?);
    all.sort_by_key(|one| std::cmp::Reverse(one["restore"].as_u64()));
    Ok(json!({ "restores": all }))
}

pub(super) async fn show(running: &Running, number: u64) -> Result<Value> {
    if let Some(own) = running.restores.get(number) {
        return Ok(show_status(&own));
    }
    let missing = || Refusal::not_found("restore", &number.to_string(), "GET /v1/restores");
    let others = restores::elsewhere(&running.nodes).await?;
    others.into_iter().find(|one| one["restore"] == json!(number)).ok_or_else(missing)
}

pub(crate) fn show_status(status: &Status) -> Value {
    let (from, to) = show_bounds(&status.head.container, &status.head.routes);
    let error = match &status.phase {
        Phase::Failed(error) => json!({ "code": error.code(), "message": error.message() }),
        _ => Value::Null,
    };
    json!({
        "restore": status.number,
        "map": status.map,
        "partitions": status.partitions,
        "backup_of": {
            "map": status.head.container.name,
            "partition": status.head.partition.0,
            "from": from,
            "to": to,
            "lsn": status.head.lsn.0,
            "taken_ms": status.head.taken_ms,
        },
        "phase": match &status.phase {
            Phase::Clearing => "clearing",
            Phase::Loading => "loading",
            Phase::Verifying => "verifying",
            Phase::Done => "done",
            Phase::Failed(_) => "failed",
        },
        "rows": status.progress.rows,
        "bytes": status.progress.bytes,
        "bytes_expected": status.totals.row_bytes + status.totals.file_bytes,
        "error": error,
    })
}
