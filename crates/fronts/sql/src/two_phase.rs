//! Two-phase commit over several shards, and what finishes it after a crash.
//!
//! The ledger is in the catalog shard's database. A row that names the transaction and its shards is durable before the first
//! PREPARE; the decision is one update of it, made under the coordinator's epoch; the row is deleted when every shard has
//! finished. So a prepared transaction without a row was never decided, and one with a row is finished by whoever reads it:
//! by the process that wrote it, or by another one that has raised the epoch first. From then on the first can decide nothing.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::BytesMut;
use lazuli_sharded_sql::{GID_PREFIX, Snapshot, quote_literal};

use crate::Front;
use crate::error::{SqlError, code};
use crate::limits::{COORDINATOR_SILENCE_MAX, RECOVERY_INTERVAL};
use crate::shard::Lease;

/// This process as one that decides.
pub(crate) struct Coordinator {
    id: String,
    next: AtomicU64,
    /// Transactions that are being committed now.
    active: Mutex<BTreeSet<String>>,
    /// Databases in whose ledger this process is written down.
    registered: Mutex<BTreeSet<String>>,
}

/// The only epoch that a process ever decides under: once it was raised by another one, it begins again under a new name.
const EPOCH: u64 = 1;

impl Coordinator {
    pub(crate) fn new(id: String) -> Self {
        let (active, registered) = (Mutex::default(), Mutex::default());
        Self { id, next: AtomicU64::new(0), active, registered }
    }

    fn begin(&self) -> String {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let gid = format!("{GID_PREFIX}{}_{EPOCH}_{number}", self.id);
        self.active.lock().unwrap_or_else(PoisonError::into_inner).insert(gid.clone());
        gid
    }

    fn end(&self, gid: &str) {
        self.active.lock().unwrap_or_else(PoisonError::into_inner).remove(gid);
    }

    fn is_active(&self, gid: &str) -> bool {
        self.active.lock().unwrap_or_else(PoisonError::into_inner).contains(gid)
    }

    fn is_registered(&self, database: &str) -> bool {
        self.registered.lock().unwrap_or_else(PoisonError::into_inner).contains(database)
    }
}

/// A session of ours on a shard, with its own settings.
pub(crate) async fn own_session(
    front: &Front,
    snapshot: &Snapshot,
    shard: usize,
) -> Result<Lease, SqlError> {
    let mut out = BytesMut::new();
    let pool = front.pools.pool(&snapshot.shards[shard]);
    let mut lease = pool.lease(&Arc::default(), None, &mut out).await?;
    if !out.is_empty() {
        lease.write(&out).await.map_err(crate::shard::Ended::from)?;
        while lease.setup > 0 {
            lease.drain().await?;
            lease.setup -= 1;
        }
    }
    Ok(lease)
}

async fn register(front: &Front, database: &str, catalog: &mut Lease) -> Result<(), SqlError> {
    let coordinator = &front.coordinator;
    if coordinator.is_registered(database) {
        return Ok(());
    }
    let id = quote_literal(&coordinator.id);
    let text = format!(
        "INSERT INTO lazuli.coordinator (id, epoch) VALUES ({id}, {EPOCH}) ON CONFLICT (id) DO NOTHING"
    );
    catalog.simple(&text).await?;
    let mut registered = coordinator.registered.lock().unwrap_or_else(PoisonError::into_inner);
    registered.insert(database.to_owned());
    Ok(())
}

/// Commits on all shards or on none.
pub(crate) async fn commit(
    front: &Arc<Front>,
    database: &str,
    leases: Vec<(u32, Lease)>,
) -> Result<(), SqlError> {
    let (front, database) = (front.clone(), database.to_owned());
    // In a task of its own: a client that leaves must not stop it in the middle.
    let committing = tokio::spawn(async move { commit_all(&front, &database, leases).await });
    committing.await.map_err(|_| SqlError::new(code::INTERNAL, "the commit has failed"))?
}

async fn commit_all(
    front: &Front,
    database: &str,
    mut leases: Vec<(u32, Lease)>,
) -> Result<(), SqlError> {
    let gone = || SqlError::new(code::NO_DATABASE, "the database does not exist any more");
    let snapshot = front.databases.snapshot(database).ok_or_else(gone)?;
    let mut catalog = own_session(front, &snapshot, snapshot.catalog_shard).await?;
    register(front, database, &mut catalog).await?;
    let gid = front.coordinator.begin();
    let prepared = prepare(front, &snapshot, &mut catalog, &gid, &mut leases).await;
    let decided = match prepared {
        Ok(()) => decide(front, &mut catalog, &gid).await,
        Err(error) => Err((error, Decision::Abort)),
    };
    let result = match decided {
        Ok(()) => {
            finish(&mut catalog, &gid, &mut leases, "COMMIT").await;
            Ok(())
        }
        Err((error, Decision::Abort)) => {
            finish(&mut catalog, &gid, &mut leases, "ROLLBACK").await;
            Err(error)
        }
        Err((error, Decision::Unknown)) => Err(error),
    };
    front.coordinator.end(&gid);
    result
}

/// What is known of a decision that was not made.
enum Decision {
    Abort,
    /// The catalog shard was lost while it wrote it down: recovery will read what it says.
    Unknown,
}

async fn prepare(
    front: &Front,
    snapshot: &Snapshot,
    catalog: &mut Lease,
    gid: &str,
    leases: &mut [(u32, Lease)],
) -> Result<(), SqlError> {
    let name = |id: &u32| {
        let shard = snapshot.shards.iter().find(|shard| shard.id == *id);
        shard.map_or_else(String::new, |shard| quote_literal(&shard.name))
    };
    let shards: Vec<_> = leases.iter().map(|(id, _)| name(id)).collect();
    let gids: Vec<_> = leases.iter().map(|(id, _)| quote_literal(&on_shard(gid, *id))).collect();
    let (id, quoted) = (quote_literal(&front.coordinator.id), quote_literal(gid));
    let intent = format!(
        "INSERT INTO lazuli.transaction (gid, coordinator, epoch, shards, gids) \
         VALUES ({quoted}, {id}, {EPOCH}, ARRAY[{}]::text[], ARRAY[{}]::text[])",
        shards.join(", "),
        gids.join(", ")
    );
    catalog.simple(&intent).await?;
    front.fault("intent");
    for (index, (id, lease)) in leases.iter_mut().enumerate() {
        let own = quote_literal(&on_shard(gid, *id));
        lease.simple(&format!("PREPARE TRANSACTION {own}")).await?;
        if index == 0 {
            front.fault("prepared-one");
        }
    }
    front.fault("prepared");
    Ok(())
}

/// Writes the decision down, if nobody has raised our epoch.
async fn decide(front: &Front, catalog: &mut Lease, gid: &str) -> Result<(), (SqlError, Decision)> {
    let (id, quoted) = (quote_literal(&front.coordinator.id), quote_literal(gid));
    let text = format!(
        "BEGIN; SELECT 1 FROM lazuli.coordinator WHERE id = {id} AND epoch = {EPOCH} FOR SHARE; \
         UPDATE lazuli.transaction SET committed = true WHERE gid = {quoted} AND NOT committed \
         AND EXISTS (SELECT 1 FROM lazuli.coordinator WHERE id = {id} AND epoch = {EPOCH}) RETURNING 1"
    );
    let fenced = || {
        let message = "the commit was taken over by another process and rolled back";
        SqlError::new(code::SERIALIZATION, message).hint("Try the transaction again.")
    };
    match catalog.simple(&text).await {
        Ok(rows) if rows.len() == 1 => {}
        Ok(_) => {
            let _ = catalog.simple("ROLLBACK").await;
            return Err((fenced(), Decision::Abort));
        }
        // Nothing was committed by this: the transaction in which it was written is lost with its session.
        Err(error) => return Err((error, Decision::Abort)),
    }
    let unknown = |_| {
        let message = "the outcome of the commit is not known yet";
        let hint = "It will be committed or rolled back on all shards within seconds.";
        (SqlError::new(code::UNKNOWN_OUTCOME, message).hint(hint), Decision::Unknown)
    };
    catalog.simple("COMMIT").await.map_err(unknown)?;
    front.fault("decided");
    Ok(())
}

/// The name of a transaction on one shard.
fn on_shard(gid: &str, shard: u32) -> String {
    format!("{gid}_{shard}")
}

/// Tells the shards, and deletes the row if all have heard it. What is left is done by recovery.
async fn finish(catalog: &mut Lease, gid: &str, leases: &mut [(u32, Lease)], verb: &str) {
    let quoted = quote_literal(gid);
    let mut is_done = !catalog.is_dirty;
    for (id, lease) in leases.iter_mut() {
        if lease.is_dirty {
            is_done = false;
            continue;
        }
        // A shard that has not prepared is still in its transaction, which ends without a name.
        let text = match lease.status {
            lazuli_pg::TxStatus::Idle => {
                format!("{verb} PREPARED {}", quote_literal(&on_shard(gid, *id)))
            }
            _ => "ROLLBACK".to_owned(),
        };
        if let Err(error) = lease.simple(&text).await {
            // A PREPARE that failed has rolled back by itself.
            is_done &= verb == "ROLLBACK" && error.code == UNDEFINED_OBJECT;
        }
    }
    if is_done {
        let delete = format!("DELETE FROM lazuli.transaction WHERE gid = {quoted}");
        if let Err(error) = catalog.simple(&delete).await {
            tracing::debug!(%error, gid, "recovery will delete the row of a finished transaction");
        }
    }
}

/// There is no prepared transaction with this name.
const UNDEFINED_OBJECT: &str = "42704";

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
    let id = quote_literal(&front.coordinator.id);
    if front.coordinator.is_registered(database) {
        catalog
            .simple(&format!("UPDATE lazuli.coordinator SET seen = now() WHERE id = {id}"))
            .await?;
    }
    let silence = COORDINATOR_SILENCE_MAX.as_secs();
    // Whoever was silent for too long can decide nothing from here on.
    let raise = format!(
        "UPDATE lazuli.coordinator SET epoch = epoch + 1 WHERE id <> {id} \
         AND seen < now() - interval '{silence} s'"
    );
    catalog.simple(&raise).await?;
    let rows = format!(
        "SELECT t.gid, t.committed, array_to_string(t.shards, ','), \
         array_to_string(t.gids, ','), t.coordinator = {id} \
         FROM lazuli.transaction t LEFT JOIN lazuli.coordinator c ON c.id = t.coordinator \
         WHERE c.epoch IS DISTINCT FROM t.epoch \
         OR (t.coordinator = {id} AND t.begun < now() - interval '{silence} s')"
    );
    for row in catalog.simple(&rows).await? {
        let [Some(gid), Some(committed), Some(shards), Some(gids), Some(is_own)] = row.as_slice()
        else {
            continue;
        };
        if is_own == "t" && front.coordinator.is_active(gid) {
            continue;
        }
        let parts: Vec<_> = shards.split(',').zip(gids.split(',')).collect();
        settle(front, &snapshot, &mut catalog, gid, committed == "t", &parts).await?;
    }
    let forget = format!(
        "DELETE FROM lazuli.coordinator c WHERE epoch > {EPOCH} AND seen < now() - interval '1 hour' \
         AND NOT EXISTS (SELECT 1 FROM lazuli.transaction t WHERE t.coordinator = c.id)"
    );
    catalog.simple(&forget).await?;
    orphans(front, &snapshot, &mut catalog).await
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
                tracing::info!(gid, "rolled back a prepared transaction that nobody knows");
            }
        }
    }
    Ok(())
}
