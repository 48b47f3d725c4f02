//! Two-phase commit over several shards, and what finishes it after a crash.
//!
//! The ledger is in the catalog shard's database. A row that names the transaction and its shards is durable before the first
//! PREPARE; the decision is one update of it, made under the coordinator's epoch; the row is deleted when every shard has
//! finished. So a prepared transaction without a row was never decided, and one with a row is finished by whoever reads it:
//! by the process that wrote it, or by another one that has raised the epoch first. From then on the first can decide nothing
//! under its name, and goes on under a new one. Recovery locks the row of a transaction before it finishes it: a decision whose COMMIT is
//! still on its way, or waits for a standby, holds that lock, and is not decided until it ends.

mod recovery;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::BytesMut;
use lazuli_sharded_sql::{GID_PREFIX, Snapshot, quote_literal};

use crate::error::{SqlError, code};
use crate::shard::Lease;
use crate::{Front, chance};

pub(crate) use recovery::recover_forever;

/// This process as one that decides.
pub(crate) struct Coordinator {
    /// Its name in the ledger, and in the names of its transactions.
    name: Mutex<Arc<str>>,
    next: AtomicU64,
    /// Transactions that are being committed now.
    active: Mutex<BTreeSet<String>>,
    /// Databases in whose ledger this process is written down.
    registered: Mutex<BTreeSet<String>>,
}

/// The only epoch that a process ever decides under: once it was raised by another one, it begins again under a new name.
const EPOCH: u64 = 1;

impl Coordinator {
    pub(crate) fn new() -> Self {
        let (active, registered) = (Mutex::default(), Mutex::default());
        Self { name: Mutex::new(new_name()), next: AtomicU64::new(0), active, registered }
    }

    fn name(&self) -> Arc<str> {
        self.name.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Another process has raised the epoch of this name: nothing is decided under it any more.
    fn lose(&self, lost: &str) {
        let mut name = self.name.lock().unwrap_or_else(PoisonError::into_inner);
        if **name == *lost {
            *name = new_name();
            self.registered.lock().unwrap_or_else(PoisonError::into_inner).clear();
            tracing::warn!("another process has taken over two-phase commits of this one");
        }
    }

    fn begin(&self, name: &str) -> String {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let gid = format!("{GID_PREFIX}{name}_{EPOCH}_{number}");
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

fn new_name() -> Arc<str> {
    format!("{:08x}{:08x}", chance(), chance()).into()
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

/// Writes this process down in the ledger, and answers the name under which it stands there.
async fn register(
    front: &Front,
    database: &str,
    catalog: &mut Lease,
) -> Result<Arc<str>, SqlError> {
    let coordinator = &front.coordinator;
    let name = coordinator.name();
    if coordinator.is_registered(database) {
        return Ok(name);
    }
    let id = quote_literal(&name);
    let text = format!(
        "INSERT INTO lazuli.coordinator (id, epoch) VALUES ({id}, {EPOCH}) ON CONFLICT (id) DO NOTHING"
    );
    catalog.simple(&text).await?;
    let current = coordinator.name.lock().unwrap_or_else(PoisonError::into_inner);
    if *current == name {
        let mut registered = coordinator.registered.lock().unwrap_or_else(PoisonError::into_inner);
        registered.insert(database.to_owned());
    }
    Ok(name)
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
    let name = register(front, database, &mut catalog).await?;
    let gid = front.coordinator.begin(&name);
    let mut ledger = Ledger { front, catalog: &mut catalog, name: &name, gid: &gid };
    let decided = match ledger.prepare(&snapshot, &mut leases).await {
        Ok(()) => ledger.decide().await,
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

/// A transaction in the ledger, until it is decided.
struct Ledger<'a> {
    front: &'a Front,
    catalog: &'a mut Lease,
    /// The coordinator that decides.
    name: &'a str,
    gid: &'a str,
}

impl Ledger<'_> {
    /// Writes the intent down, and prepares on every shard.
    async fn prepare(
        &mut self,
        snapshot: &Snapshot,
        leases: &mut [(u32, Lease)],
    ) -> Result<(), SqlError> {
        let name = |id: &u32| {
            let shard = snapshot.shards.iter().find(|shard| shard.id == *id);
            shard.map_or_else(String::new, |shard| quote_literal(&shard.name))
        };
        let own = |id: &u32| quote_literal(&on_shard(self.gid, *id));
        let shards: Vec<_> = leases.iter().map(|(id, _)| name(id)).collect();
        let gids: Vec<_> = leases.iter().map(|(id, _)| own(id)).collect();
        let intent = format!(
            "INSERT INTO lazuli.transaction (gid, coordinator, epoch, shards, gids) \
             VALUES ({}, {}, {EPOCH}, ARRAY[{}]::text[], ARRAY[{}]::text[])",
            quote_literal(self.gid),
            quote_literal(self.name),
            shards.join(", "),
            gids.join(", ")
        );
        self.catalog.simple(&intent).await?;
        self.front.fault("intent");
        for (index, (_, lease)) in leases.iter_mut().enumerate() {
            lease.simple(&format!("PREPARE TRANSACTION {}", gids[index])).await?;
            if index == 0 {
                self.front.fault("prepared-one");
            }
        }
        self.front.fault("prepared");
        Ok(())
    }

    /// Writes the decision down, if nobody has raised the coordinator's epoch.
    async fn decide(&mut self) -> Result<(), (SqlError, Decision)> {
        let (id, gid) = (quote_literal(self.name), quote_literal(self.gid));
        let text = format!(
            "BEGIN; SELECT 1 FROM lazuli.coordinator WHERE id = {id} AND epoch = {EPOCH} FOR SHARE; \
             UPDATE lazuli.transaction SET committed = true WHERE gid = {gid} AND NOT committed \
             AND EXISTS (SELECT 1 FROM lazuli.coordinator WHERE id = {id} AND epoch = {EPOCH}) RETURNING 1"
        );
        let fenced = || {
            let message = "the commit was taken over by another process and rolled back";
            SqlError::new(code::SERIALIZATION, message).hint("Try the transaction again.")
        };
        match self.catalog.simple(&text).await {
            Ok(rows) if rows.len() == 1 => {}
            Ok(_) => {
                let _ = self.catalog.simple("ROLLBACK").await;
                self.front.coordinator.lose(self.name);
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
        self.catalog.simple("COMMIT").await.map_err(unknown)?;
        self.front.fault("decided");
        Ok(())
    }
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
