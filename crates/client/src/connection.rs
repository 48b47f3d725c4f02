//! Connections to the shard of a key.
//!
//! A connection is opened with `lazuli.mapping = 'NUMBER/EPOCH'` as a startup option, so that RESET and DISCARD do not take
//! it away: the fence of the shard compares it with every row that the connection writes. Its application name ends with the
//! mapping, by which the server ends it when the mapping goes offline.

use std::ops::{Deref, DerefMut};
use std::time::Duration;

use lazuli_store_postgres::Settings;
use lazuli_store_postgres::plain::{self, Session};
use tokio_postgres::Client;

use crate::database::{Login, Map, Mapping};
use crate::error::{Error, Result};
use crate::key::Key;
use crate::state::Shard;

/// How often a connection is tried anew while the map changes, and the wait before that. Together longer than the pause of
/// a move.
const TRIES: u32 = 20;
const TRY_WAIT: Duration = Duration::from_millis(50);
/// The longest name of a program in `application_name`, which PostgreSQL cuts off at 63 bytes.
const APPLICATION_BYTES_MAX: usize = 30;

/// Whether a shard is asked if it holds the mapping before the connection is given out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Validation {
    Checked,
    /// Not asked. Writes of a stale connection are refused all the same.
    Unchecked,
}

/// A connection to a shard that writes rows of one mapping only, and only as long as the mapping has the epoch that it had.
#[derive(Debug)]
pub struct ShardConnection {
    client: Client,
    mapping: Mapping,
}

impl Map {
    /// A connection to the shard of a key. If the state that is known is old, it is refreshed and the connection tried again.
    pub async fn connect_for_key(
        &self,
        key: &Key,
        validation: Validation,
    ) -> Result<ShardConnection> {
        let database = &self.database;
        for attempt in 0..TRIES {
            if attempt > 1 {
                tokio::time::sleep(TRY_WAIT).await;
            }
            let state = database.state();
            let mapping = match self.place(&state, key) {
                // Somebody may have added it since.
                Err(Error::MappingNotFound) if attempt == 0 => {
                    database.refresh_from(&state).await?;
                    continue;
                }
                placed => placed?,
            };
            let shard = &state.shards[state.shard(&mapping.shard)?];
            let client = match open(shard, database.login(), Some(&mapping)).await {
                Ok(client) => client,
                Err(error) => {
                    if attempt == 0 && database.refresh_for(&mapping.shard, &state).await {
                        continue;
                    }
                    return Err(error);
                }
            };
            database.answers(&mapping.shard);
            let connection = ShardConnection { client, mapping };
            if validation == Validation::Unchecked {
                return Ok(connection);
            }
            match connection.held().await? {
                Held::Here => return Ok(connection),
                Held::Offline => {
                    return Err(Error::MappingOffline { mapping: connection.mapping.number });
                }
                Held::Changing | Held::Elsewhere => database.refresh_from(&state).await?,
            }
        }
        Err(Error::Busy)
    }
}

/// What a shard says of a mapping.
enum Held {
    Here,
    Offline,
    /// At the end of a move.
    Changing,
    Elsewhere,
}

impl ShardConnection {
    pub fn mapping(&self) -> &Mapping {
        &self.mapping
    }

    pub fn shard(&self) -> &str {
        &self.mapping.shard
    }

    /// Whether the shard still holds the mapping as it was when the connection was opened. Writes ask this by themselves; a
    /// transaction that only reads can.
    pub async fn is_current(&self) -> Result<bool> {
        Ok(matches!(self.held().await?, Held::Here | Held::Changing))
    }

    async fn held(&self) -> Result<Held> {
        let Mapping { number, epoch, .. } = &self.mapping;
        let query = format!("SELECT lazuli.mapping_state({number})");
        let row = self.client.query_one(&query, &[]).await?;
        let told: Option<String> = row.try_get(0)?;
        let told = told.unwrap_or_default();
        Ok(match told.split_once(' ') {
            Some((held, "open" | "read-only")) if held == epoch.to_string() => Held::Here,
            Some((_, "offline")) => Held::Offline,
            Some((_, "fenced")) => Held::Changing,
            _ => Held::Elsewhere,
        })
    }
}

impl Deref for ShardConnection {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

impl DerefMut for ShardConnection {
    fn deref_mut(&mut self) -> &mut Client {
        &mut self.client
    }
}

/// A connection to a shard, for one mapping or for whatever may be asked of all.
pub(crate) async fn open(
    shard: &Shard,
    login: &Login,
    mapping: Option<&Mapping>,
) -> Result<Client> {
    let mut settings: Settings = shard.settings.clone();
    if let Some(user) = &login.user {
        settings.user.clone_from(user);
    }
    let mut program = login.application.clone().unwrap_or_else(|| "lazuli-client".to_owned());
    while program.len() > APPLICATION_BYTES_MAX {
        program.pop();
    }
    let (application, options) = match mapping {
        Some(Mapping { number, epoch, .. }) => (
            format!("{program} lazuli mapping {number}"),
            format!("-c lazuli.mapping={number}/{epoch}"),
        ),
        None => (program, String::new()),
    };
    let password = login.password.as_deref();
    let session = Session { application: &application, options: &options, password };
    Ok(plain::connect_with(&settings, &session).await?)
}
