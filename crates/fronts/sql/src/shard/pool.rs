//! Sessions on shards that are not used at the moment, for the next statement that needs one.

use std::collections::HashMap;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use bytes::BytesMut;
use lazuli_pg::TxStatus;
use lazuli_pg::client::write_query;
use lazuli_pg::startup::cancel_request;
use lazuli_sharded_sql::{Shard, ShardServer, quote_ident};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::connection::Connection;
use super::login::connect;
use crate::error::{SqlError, code};
use crate::limits::{CONNECT_TIME_MAX, IDLE_TIME_MAX, SHARD_CONNECTIONS_MAX, SHARD_WAIT_MAX};
use crate::session::Settings;

/// All pools, one for each server of a shard.
#[derive(Default)]
pub(crate) struct Pools {
    pools: Mutex<HashMap<String, Arc<Pool>>>,
}

pub(crate) struct Pool {
    server: ShardServer,
    idle: Mutex<Vec<(Box<Connection>, Instant)>>,
    room: Arc<Semaphore>,
}

/// A session that is used. Dropped, it goes back if nothing is open in it, and is closed otherwise.
pub(crate) struct Lease {
    connection: Option<Box<Connection>>,
    pool: Arc<Pool>,
    _room: OwnedSemaphorePermit,
    /// How many answers have to be read before those of the next statement: what setting it up has caused.
    pub(crate) setup: usize,
}

impl Deref for Lease {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        self.connection.as_deref().expect("it is taken only when it is dropped")
    }
}

impl DerefMut for Lease {
    fn deref_mut(&mut self) -> &mut Connection {
        self.connection.as_deref_mut().expect("it is taken only when it is dropped")
    }
}

impl Pools {
    /// The pool of a shard, to be kept by whoever uses it often.
    pub(crate) fn pool(&self, shard: &Shard) -> Arc<Pool> {
        let name = format!("{:?} {:?} {:?}", shard.server, shard.server.tls, shard.server.password);
        let mut pools = self.pools.lock().unwrap_or_else(PoisonError::into_inner);
        let made = || {
            Arc::new(Pool {
                server: shard.server.clone(),
                idle: Mutex::default(),
                room: Arc::new(Semaphore::new(SHARD_CONNECTIONS_MAX)),
            })
        };
        pools.entry(name).or_insert_with(made).clone()
    }
}

impl Pool {
    /// A session with these settings and this role. What has to be sent for them is in `out`, to be sent first.
    pub(crate) async fn lease(
        self: &Arc<Self>,
        settings: &Arc<Settings>,
        role: Option<&str>,
        out: &mut BytesMut,
    ) -> Result<Lease, SqlError> {
        let pool = self.clone();
        let room = match pool.room.clone().try_acquire_owned() {
            Ok(room) => room,
            Err(_) => match timeout(SHARD_WAIT_MAX, pool.room.clone().acquire_owned()).await {
                Ok(Ok(room)) => room,
                _ => {
                    let message = format!("all connections to shard {:?} are in use", pool.server);
                    return Err(SqlError::new(code::TOO_MANY_CONNECTIONS, message));
                }
            },
        };
        let connection = match pool.take(settings, role) {
            Some(connection) => connection,
            None => Box::new(connect(&pool.server).await?),
        };
        let mut lease = Lease { connection: Some(connection), pool, _room: room, setup: 0 };
        lease.set_up(settings, role, out);
        Ok(lease)
    }

    /// A session with the same settings if there is one, else any.
    fn take(&self, settings: &Arc<Settings>, role: Option<&str>) -> Option<Box<Connection>> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        // Old ones are at the front, because they are taken from and put back to the end.
        while idle.first().is_some_and(|(_, since)| since.elapsed() > IDLE_TIME_MAX) {
            idle.remove(0);
        }
        let same = |it: &(Box<Connection>, Instant)| {
            (Arc::ptr_eq(&it.0.settings, settings) || it.0.settings == *settings)
                && it.0.role.as_deref() == role
        };
        loop {
            let index = idle.iter().rposition(same).or_else(|| idle.len().checked_sub(1))?;
            let (connection, _) = idle.remove(index);
            if connection.is_alive() {
                return Some(connection);
            }
        }
    }
}

impl Lease {
    /// Appends statements that give the session other settings and another role.
    fn set_up(&mut self, settings: &Arc<Settings>, role: Option<&str>, out: &mut BytesMut) {
        if *self.settings == **settings && self.role.as_deref() == role {
            self.settings = settings.clone();
            return;
        }
        let mut text = String::from("RESET ALL; RESET ROLE");
        if let Some(role) = role {
            text.push_str(&format!("; SET ROLE {}", quote_ident(role)));
        }
        for (name, value) in &settings.values {
            text.push_str(&format!("; SET {name} TO {value}"));
        }
        write_query(out, &text);
        self.settings = settings.clone();
        self.role = role.map(str::to_owned);
        self.setup += 1;
    }

    /// Has the server end what runs in this session, over a connection of its own.
    pub(crate) fn canceller(&self) -> Canceller {
        Canceller { pool: self.pool.clone(), key: self.key }
    }

    /// The session is not used again.
    pub(crate) fn close(mut self) {
        self.connection = None;
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let Some(connection) = self.connection.take() else { return };
        if connection.is_dirty || connection.status != TxStatus::Idle {
            return;
        }
        let mut idle = self.pool.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.push((connection, Instant::now()));
    }
}

/// What is needed to cancel what runs in a session.
#[derive(Clone)]
pub(crate) struct Canceller {
    pool: Arc<Pool>,
    key: (u32, u32),
}

impl Canceller {
    pub(crate) async fn cancel(&self) {
        let cancelling = async {
            let server = &self.pool.server;
            let mut stream = TcpStream::connect((server.host.as_str(), server.port)).await?;
            stream.write_all(&cancel_request(self.key.0, self.key.1)).await?;
            // The server closes the connection when it has passed the request on.
            let mut rest = [0; 1];
            tokio::io::AsyncReadExt::read(&mut stream, &mut rest).await
        };
        let _ = timeout(CONNECT_TIME_MAX, cancelling).await;
    }
}
