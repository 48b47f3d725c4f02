//! The first part of following a server: the whole of its keys, as one RDB file in the connection.

use std::time::Duration;

use lazuli_keyspace::rdb::file::{BadFile, Key, Reader, Record};
use lazuli_keyspace::rdb::longest_row;
use tokio::time::timeout;

use super::link::{Ended, Replica, Wire, passing};
use crate::limits::{DATABASES, DURABLE_BYTES_MAX, READ_BYTES};

/// A copy without a length ends with as many bytes as were said before it.
const MARK_BYTES: usize = 40;
/// A long record is looked at again when this time brings nothing more.
const PIECE_PAUSE: Duration = Duration::from_millis(20);
/// After how many keys others have their turn, and the store may catch up.
const KEYS_AT_ONCE: u64 = 500;

impl Replica {
    /// Puts the keys of the source in the place of all that is here.
    pub(super) async fn load(&mut self, wire: &mut Wire) -> Result<(), Ended> {
        let head = wire.line().await?;
        let mark = match head.strip_prefix('$') {
            Some(length) if let Ok(length) = length.parse::<u64>() => {
                self.server.replication.note(|status| status.copy_bytes = Some(length));
                None
            }
            Some(mark) if let Some(mark) = mark.strip_prefix("EOF:") => Some(mark.to_owned()),
            _ => return Err(passing(format!("the source sends no copy: {head}"))),
        };
        self.server.set_loading(true);
        // What is here belongs to no history from now on, until the copy is whole.
        self.id.clear();
        self.clear();
        if let Some(session) = &mut self.session {
            (session.database, session.queue) = (0, None);
        }
        self.copy(wire).await?;
        if let Some(mark) = mark {
            while wire.rest().len() < MARK_BYTES {
                wire.read(READ_BYTES).await?;
            }
            if &wire.rest()[..MARK_BYTES] != mark.as_bytes() {
                return Err(passing("the copy does not end as it should"));
            }
            wire.start += MARK_BYTES;
        }
        self.server.set_loading(false);
        Ok(())
    }

    async fn copy(&mut self, wire: &mut Wire) -> Result<(), Ended> {
        let (mut reader, mut keys, mut copied) = (Reader::default(), 0_u64, 0_u64);
        loop {
            let taken = match reader.next(wire.rest()) {
                Ok(None) => None,
                Ok(Some((Record::End, length))) => {
                    wire.start += length;
                    return Ok(());
                }
                Ok(Some((Record::Key(key), length))) => {
                    self.put(&key)?;
                    keys += 1;
                    Some(length)
                }
                Ok(Some((Record::Library(code), length))) => {
                    self.apply_words(&[b"FUNCTION", b"LOAD", b"REPLACE", &code])?;
                    Some(length)
                }
                Ok(Some((Record::Note { name, value }, length))) => {
                    self.note(&name, &value);
                    Some(length)
                }
                Ok(Some((Record::Other, length))) => Some(length),
                Err(bad @ BadFile::Checksum) => return Err(passing(bad)),
                Err(bad) => return Err(Ended::ForGood(bad.to_string())),
            };
            match taken {
                Some(length) => {
                    wire.start += length;
                    copied += length as u64;
                }
                None => read_as_much_again(wire).await?,
            }
            if taken.is_none() || keys.is_multiple_of(KEYS_AT_ONCE) {
                let now_ms = self.server.keyspace.now_ms();
                self.server.replication.note(|status| {
                    (status.copied_bytes, status.heard_ms) = (copied, now_ms);
                });
                self.server.keyspace.settled().await;
                tokio::task::yield_now().await;
            }
        }
    }

    /// A source that follows another one says which database the commands behind the copy are for.
    fn note(&mut self, name: &[u8], value: &[u8]) {
        let number = std::str::from_utf8(value).ok().and_then(|it| it.parse().ok());
        if let (b"repl-stream-db", Some(number), Some(session)) = (name, number, &mut self.session)
            && number < DATABASES
        {
            session.database = number;
        }
    }

    /// Puts one key of the copy into the keyspace.
    fn put(&self, key: &Key<'_>) -> Result<(), Ended> {
        let name = || String::from_utf8_lossy(&key.key).into_owned();
        if key.database >= DATABASES {
            let message = format!("the source has a database {}", key.database);
            return Err(Ended::ForGood(format!("{message}, and this server has {DATABASES}")));
        }
        let value = key.value().map_err(|_| {
            Ended::ForGood(format!("the value of the key `{}` cannot be read", name()))
        })?;
        let keyspace = &self.server.keyspace;
        if keyspace.is_persistent() && longest_row(&value) > DURABLE_BYTES_MAX {
            let message = format!("the key `{}` holds more than a durable cache takes", name());
            return Err(Ended::ForGood(message));
        }
        let mut space = keyspace.space_of(key.database, keyspace.now_ms(), &key.key);
        space.show_expired();
        space.put(&key.key, value, key.expires_at_ms);
        self.server.settle(space);
        Ok(())
    }

    /// Empties all databases, and forgets all functions.
    fn clear(&mut self) {
        let keyspace = &self.server.keyspace;
        let mut space = keyspace.space_of_all(0, keyspace.now_ms());
        for number in 0..keyspace.databases() {
            let cleared = space.clear(number);
            self.server.free(cleared);
        }
        for name in self.server.scripts.flush_libraries() {
            space.write_library(name.as_bytes(), None);
        }
        self.server.settle(space);
    }
}

/// Reads until there is twice as much, or nothing comes for a moment: so a long record is looked at a few times only.
async fn read_as_much_again(wire: &mut Wire) -> Result<(), Ended> {
    let before = wire.rest().len();
    let wanted = before.saturating_mul(2).max(READ_BYTES);
    wire.read(before.max(READ_BYTES)).await?;
    while wire.rest().len() < wanted {
        match timeout(PIECE_PAUSE, wire.read(READ_BYTES)).await {
            Ok(read) => drop(read?),
            Err(_) => return Ok(()),
        }
    }
    Ok(())
}
