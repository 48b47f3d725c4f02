//! `lazuli cache …`: keys of the running server, over its own protocol.

mod connection;
mod export;
mod follow;
mod import;
mod keys;
mod map;

use lazuli_console::{Failure, Result};
use lazuli_resp::Answer;

use crate::args::cache::CacheCommand;
use connection::Cache;

/// How many keys one step of a scan is asked for.
const SCAN_KEYS: &[u8] = b"500";

pub(crate) fn run(command: CacheCommand) -> Result<()> {
    match command {
        CacheCommand::Map(place) => map::run(&place),
        CacheCommand::Top { count, pattern, database } => {
            keys::top(&database, pattern.as_deref(), count as usize)
        }
        CacheCommand::Scan { pattern, kind, limit, database } => {
            keys::scan(&database, pattern.as_deref(), kind, limit as usize)
        }
        CacheCommand::Delete { pattern, yes, database } => keys::delete(&database, &pattern, yes),
        CacheCommand::Import(wanted) => match &wanted.from {
            Some(source) => follow::run(source, &wanted),
            None => import::run(&wanted),
        },
        CacheCommand::Export { file, overwrite, rdb_version, place } => {
            export::run(&file, overwrite, rdb_version, &place)
        }
    }
}

/// Steps through the keys of the selected database. Each step gives some keys, perhaps none.
struct Scan {
    words: Vec<Vec<u8>>,
    cursor: Option<Vec<u8>>,
}

impl Scan {
    fn new(pattern: Option<&str>, kind: Option<&str>) -> Self {
        let mut words: Vec<Vec<u8>> = vec![b"COUNT".to_vec(), SCAN_KEYS.to_vec()];
        for (name, value) in [("MATCH", pattern), ("TYPE", kind)] {
            if let Some(value) = value {
                words.extend([name.as_bytes().to_vec(), value.as_bytes().to_vec()]);
            }
        }
        Self { words, cursor: Some(b"0".to_vec()) }
    }

    /// The keys of the next step; none at the end.
    fn next(&mut self, cache: &mut Cache) -> Result<Option<Vec<Vec<u8>>>> {
        let Some(cursor) = self.cursor.take() else { return Ok(None) };
        let mut command: Vec<&[u8]> = vec![b"SCAN", &cursor];
        command.extend(self.words.iter().map(Vec::as_slice));
        let unexpected = || Failure::failed("the server answered SCAN in an unknown form");
        let Answer::Array(parts) = cache.ask(&command)? else { return Err(unexpected()) };
        let Ok([Answer::Bulk(next), Answer::Array(found)]) = <[Answer; 2]>::try_from(parts) else {
            return Err(unexpected());
        };
        self.cursor = Some(next).filter(|it| it != b"0");
        let keys = found.into_iter().map(|it| match it {
            Answer::Bulk(key) => Ok(key),
            _ => Err(unexpected()),
        });
        keys.collect::<Result<_>>().map(Some)
    }
}

/// A key as people read it: what is no text in escapes.
fn shown(key: &[u8]) -> String {
    match std::str::from_utf8(key) {
        Ok(text) if !text.chars().any(char::is_control) => text.to_owned(),
        _ => key.escape_ascii().to_string(),
    }
}
