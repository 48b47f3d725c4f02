//! The SQL front: a sharded database as one database, over PostgreSQL's protocol.
//!
//! A statement is planned without IO (`plan`), routed by the newest snapshot of the sharded database, and run on one shard as
//! it is or on several shards with a last step by PostgreSQL itself (`session`). `shard` keeps sessions on the shards' servers,
//! `space` what was learned of them, `two_phase` commits on several shards. `docs/sql.md` says what is supported.

mod cancel;
mod error;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod limits;
mod plan;
mod session;
mod shard;
mod space;
mod two_phase;
mod types;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use lazuli_net::{BoxFuture, Connection, Metrics, Protocol, Tls};
use lazuli_sharded_sql::{Databases, Snapshot};
use sha2::{Digest, Sha256, Sha384, Sha512};

use cancel::Cancels;
use error::SqlError;
use shard::Pools;
use space::Space;
use two_phase::Coordinator;

/// What the front is put together from.
pub struct Parts {
    pub databases: Arc<dyn Databases>,
    /// What clients that ask for TLS get; none: they are told that there is none.
    pub tls: Option<Tls>,
    /// Whether clients that do not ask for it are turned away.
    pub requires_tls: bool,
    pub metrics: Arc<Metrics>,
}

pub(crate) struct Front {
    databases: Arc<dyn Databases>,
    tls: Option<Tls>,
    requires_tls: bool,
    certificate_hash: Option<Vec<u8>>,
    metrics: Arc<Metrics>,
    pools: Pools,
    cancels: Cancels,
    spaces: Mutex<HashMap<String, Arc<Space>>>,
    coordinator: Coordinator,
    /// From which the salts of users who do not exist are made.
    seed: [u8; 32],
}

/// The front as a protocol on a listener, and its background work, which finishes two-phase commits until it is dropped.
pub fn front(parts: Parts) -> (Arc<dyn Protocol>, BoxFuture<()>) {
    let front = Arc::new(assemble(parts));
    (front.clone(), Box::pin(two_phase::recover_forever(front)))
}

fn assemble(parts: Parts) -> Front {
    let Parts { databases, tls, requires_tls, metrics } = parts;
    let certificate_hash = tls.as_ref().map(|tls| binding(tls.certificate()));
    let seed = Sha256::digest(format!("{}{}{}{}", chance(), chance(), chance(), chance())).into();
    Front {
        databases,
        tls,
        requires_tls,
        certificate_hash,
        metrics,
        pools: Pools::default(),
        cancels: Cancels::default(),
        spaces: Mutex::default(),
        coordinator: Coordinator::new(),
        seed,
    }
}

/// The hash of a certificate to which SCRAM binds (RFC 5929): the one that it is signed with, and SHA-256 instead of MD5 and SHA-1.
fn binding(der: &[u8]) -> Vec<u8> {
    const SHA384: [&[u8]; 2] =
        [b"\x2a\x86\x48\xce\x3d\x04\x03\x03", b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0c"];
    const SHA512: [&[u8]; 2] =
        [b"\x2a\x86\x48\xce\x3d\x04\x03\x04", b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0d"];
    let has = |oids: [&[u8]; 2]| oids.iter().any(|oid| der.windows(oid.len()).any(|it| it == *oid));
    if has(SHA384) {
        Sha384::digest(der).to_vec()
    } else if has(SHA512) {
        Sha512::digest(der).to_vec()
    } else {
        Sha256::digest(der).to_vec()
    }
}

/// A number that nobody can guess.
pub(crate) fn chance() -> u32 {
    getrandom::u32().unwrap_or_else(|error| panic!("the system gives no random numbers: {error}"))
}

impl Front {
    /// A random text for SCRAM.
    fn nonce(&self) -> String {
        (0..5).map(|_| format!("{:08x}", chance())).collect()
    }

    /// What is known of this version of a database.
    async fn space(&self, snapshot: &Snapshot) -> Result<Arc<Space>, SqlError> {
        let known = {
            let spaces = self.spaces.lock().unwrap_or_else(PoisonError::into_inner);
            spaces.get(&snapshot.name).filter(|it| it.version == snapshot.version).cloned()
        };
        if let Some(known) = known {
            return Ok(known);
        }
        let mut catalog = two_phase::own_session(self, snapshot, snapshot.catalog_shard).await?;
        let mut space = Space::load(snapshot, &mut catalog).await?;
        let named = types::load(&mut catalog).await?;
        // A shard that cannot be reached now is looked at with the next change of the database.
        for (index, shard) in snapshot.shards.iter().enumerate() {
            if index == snapshot.catalog_shard || named.is_empty() {
                continue;
            }
            let Ok(mut session) = two_phase::own_session(self, snapshot, index).await else {
                continue;
            };
            if let Some(types) = types::compare(&named, &types::load(&mut session).await?) {
                space.types.insert(shard.id, types);
            }
        }
        let space = Arc::new(space);
        let mut spaces = self.spaces.lock().unwrap_or_else(PoisonError::into_inner);
        spaces.insert(snapshot.name.clone(), space.clone());
        Ok(space)
    }

    /// Ends the process here if a test of crashes asks for it.
    fn fault(&self, place: &str) {
        let is_wanted = || std::env::var("LAZULI_SQL_FAULT").is_ok_and(|wanted| wanted == place);
        // Optimized programs, which people run, have no such door.
        if cfg!(debug_assertions) && is_wanted() {
            std::process::abort();
        }
    }
}

impl Protocol for Front {
    fn serve(self: Arc<Self>, connection: Connection) -> BoxFuture<()> {
        Box::pin(session::serve(self, connection))
    }

    fn alpn(&self) -> Option<&'static [u8]> {
        Some(b"postgresql")
    }
}
