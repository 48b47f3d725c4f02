//! Finishes the two-phase commits that processes have left: killed ones, paused ones, and this one where it lost a session.

use std::sync::Arc;

use lazuli_sharded_sql::{GID_PREFIX, Snapshot, quote_literal};

use super::{EPOCH, UNDEFINED_OBJECT, own_session};
use crate::Front;
use crate::error::SqlError;
use crate::limits::{COORDINATOR_SILENCE_MAX, RECOVERY_INTERVAL};
use crate::shard::Lease;

/// Another session holds the lock of the row.
const LOCK_NOT_AVAILABLE: &str = "55P03";

/// Finishes what processes have left, again and again.
pub(crate) async fn recover_forever(front: Arc<Front>) {
    loop {
        tokio::time::sleep(RECOVERY_INTERVAL).await;
        for database in front.databases.names() {
            if let Err(error) = recover(&front, &database).await {
                tracing::debug!(%error, database, "the ledger of two-phase commits cannot be read");
            }
        }
    }
}

/// One look through the ledger and the shards of a database.
pub(crate) async fn recover(front: &Front, database: &str) -> Result<(), SqlError> {
    let Some(snapshot) = front.databases.snapshot(database) else { return Ok(()) };
    let mut catalog = own_session(front, &snapshot, snapshot.catalog_shard).await?;
    let exists = catalog.simple("SELECT to_regclass('lazuli.transaction') IS NOT NULL").await?;
    if exists.first().and_then(|row| row.first().cloned().flatten()).as_deref() != Some("t") {
        return Ok(());
    }
    let name = front.coordinator.name();
    let id = quote_literal(&name);
    if front.coordinator.is_registered(database) {
        let alive = format!(
            "UPDATE lazuli.coordinator SET seen = now() WHERE id = {id} AND epoch = {EPOCH} RETURNING 1"
        );
        if catalog.simple(&alive).await?.is_empty() {
            front.coordinator.lose(&name);
        }
    }
    let silence = COORDINATOR_SILENCE_MAX.as_secs();
    // A process that was silent for too long can decide nothing from here on. One that is deciding now holds its row.
    let raise = format!(
        "UPDATE lazuli.coordinator SET epoch = epoch + 1 WHERE id IN (SELECT id FROM lazuli.coordinator \
         WHERE id <> {id} AND seen < now() - interval '{silence} s' FOR UPDATE SKIP LOCKED)"
    );
    catalog.simple(&raise).await?;
    let rows = format!(
        "SELECT t.gid, array_to_string(t.shards, ','), array_to_string(t.gids, ',') \
         FROM lazuli.transaction t LEFT JOIN lazuli.coordinator c ON c.id = t.coordinator \
         WHERE c.epoch IS DISTINCT FROM t.epoch \
         OR (t.coordinator = {id} AND t.begun < now() - interval '{silence} s')"
    );
    for row in catalog.simple(&rows).await? {
        let [Some(gid), Some(shards), Some(gids)] = row.as_slice() else { continue };
        if front.coordinator.is_active(gid) {
            continue;
        }
        let parts: Vec<_> = shards.split(',').zip(gids.split(',')).collect();
        if let Some(is_committed) = decision(&mut catalog, gid).await? {
            settle(front, &snapshot, &mut catalog, gid, is_committed, &parts).await?;
        }
    }
    let forget = format!(
        "DELETE FROM lazuli.coordinator c WHERE epoch > {EPOCH} AND seen < now() - interval '1 hour' \
         AND NOT EXISTS (SELECT 1 FROM lazuli.transaction t WHERE t.coordinator = c.id)"
    );
    catalog.simple(&forget).await?;
    orphans(front, &snapshot, &mut catalog).await
}

/// What was decided about a transaction whose coordinator decides nothing any more. None if that is open: its row is gone, or
/// locked by a decision whose COMMIT has not ended, whose session may be lost to us and wait for a standby.
async fn decision(catalog: &mut Lease, gid: &str) -> Result<Option<bool>, SqlError> {
    let gid = quote_literal(gid);
    let text =
        format!("SELECT committed FROM lazuli.transaction WHERE gid = {gid} FOR UPDATE NOWAIT");
    match catalog.simple(&text).await {
        Ok(rows) => {
            Ok(rows.first().and_then(|row| row.first()?.as_deref().map(|value| value == "t")))
        }
        Err(error) if error.code == LOCK_NOT_AVAILABLE => Ok(None),
        Err(error) => Err(error),
    }
}

/// Ends a transaction of the ledger on all its shards.
async fn settle(
    front: &Front,
    snapshot: &Snapshot,
    catalog: &mut Lease,
    gid: &str,
    is_committed: bool,
    parts: &[(&str, &str)],
) -> Result<(), SqlError> {
    let verb = if is_committed { "COMMIT" } else { "ROLLBACK" };
    for (name, own) in parts {
        let quoted = quote_literal(own);
        let Some(shard) = snapshot.shard_named(name) else { continue };
        let mut lease = own_session(front, snapshot, shard).await?;
        let query = format!(
            "SELECT 1 FROM pg_prepared_xacts WHERE gid = {quoted} AND database = current_database()"
        );
        if !lease.simple(&query).await?.is_empty() {
            match lease.simple(&format!("{verb} PREPARED {quoted}")).await {
                Err(error) if error.code != UNDEFINED_OBJECT => return Err(error),
                _ => tracing::info!(gid = own, shard = name, verb, "ended a prepared transaction"),
            }
        }
    }
    let quoted = quote_literal(gid);
    catalog.simple(&format!("DELETE FROM lazuli.transaction WHERE gid = {quoted}")).await.map(drop)
}

/// Rolls back prepared transactions of ours that have no row: a process that was taken over has prepared them too late.
async fn orphans(front: &Front, snapshot: &Snapshot, catalog: &mut Lease) -> Result<(), SqlError> {
    let silence = COORDINATOR_SILENCE_MAX.as_secs();
    let like = quote_literal(&format!("{}%", GID_PREFIX.replace('_', "\\_")));
    let query = format!(
        "SELECT gid FROM pg_prepared_xacts WHERE gid LIKE {like} AND database = current_database() \
         AND prepared < now() - interval '{silence} s'"
    );
    for shard in 0..snapshot.shards.len() {
        let Ok(mut lease) = own_session(front, snapshot, shard).await else { continue };
        for row in lease.simple(&query).await? {
            let Some(Some(gid)) = row.first() else { continue };
            let quoted = quote_literal(gid);
            let known = format!("SELECT 1 FROM lazuli.transaction WHERE {quoted} = ANY (gids)");
            let base = gid.rsplit_once('_').map_or(gid.as_str(), |(base, _)| base);
            if !front.coordinator.is_active(base) && catalog.simple(&known).await?.is_empty() {
                let _ = lease.simple(&format!("ROLLBACK PREPARED {quoted}")).await;
                tracing::info!(
                    gid,
                    "rolled back a prepared transaction that has no row in the ledger"
                );
            }
        }
    }
    Ok(())
}
