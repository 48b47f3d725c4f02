//! `lazuli cache export FILE`: all databases as one RDB file, key by key. Each key is as it was when it was read: the file
//! is no picture of one moment.

use std::collections::HashSet;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use lazuli_console::progress::{Figures, Meter};
use lazuli_console::{Failure, Result, output};
use lazuli_keyspace::rdb::file::{Writer, restore_libraries};
use lazuli_keyspace::{rdb, slot_of};
use lazuli_resp::Answer;
use serde_json::json;

use super::{Cache, Scan, shown};
use crate::args::cache::Place;

/// A file that is being written; it gets its name when it is whole.
struct Sink {
    out: BufWriter<File>,
    partial: PathBuf,
    writer: Writer,
    version: u16,
    figures: Figures,
}

pub(super) fn run(path: &Path, overwrite: bool, version: u16, place: &Place) -> Result<()> {
    let failed = |error: std::io::Error| Failure::failed(format!("{}: {error}", path.display()));
    if path.exists() && !overwrite {
        let failure = Failure::failed(format!("{} is there already", path.display()));
        return Err(failure.hint("--overwrite replaces it"));
    }
    let (mut cache, _) = Cache::find(place)?;
    let as_json = place.target.json;
    let mut meter = Meter::new("exported", "keys", as_json, Figures::default(), None);
    let mut partial = path.as_os_str().to_owned();
    partial.push(".partial");
    let partial = PathBuf::from(partial);
    let mut head = Vec::new();
    let writer = Writer::begin(version, &mut head);
    let out = BufWriter::new(File::create(&partial).map_err(failed)?);
    let mut sink = Sink { out, partial, writer, version, figures: Figures::default() };
    let written = sink.write(&head).and_then(|()| export(&mut cache, &mut sink, &mut meter));
    let (libraries, Sink { mut out, partial, writer, figures, .. }) = match written {
        Ok(libraries) => (libraries, sink),
        Err(failure) => {
            let _ = std::fs::remove_file(&sink.partial);
            return Err(failure);
        }
    };
    let mut end = Vec::new();
    writer.end(&mut end);
    out.write_all(&end).and_then(|()| out.flush()).map_err(failed)?;
    out.get_ref().sync_all().map_err(failed)?;
    std::fs::rename(&partial, path).map_err(failed)?;
    meter.finish();
    let answer = json!({
        "file": path.display().to_string(),
        "keys": figures.items,
        "libraries": libraries,
        "bytes": figures.bytes + end.len() as u64,
    });
    output::changed(as_json, &answer, || {
        format!("exported {} keys to {}", figures.items, path.display())
    });
    Ok(())
}

/// Writes libraries and all databases, and says how many libraries there were.
fn export(cache: &mut Cache, sink: &mut Sink, meter: &mut Meter) -> Result<usize> {
    let Answer::Bulk(payload) = cache.ask(&[b"FUNCTION", b"DUMP"])? else {
        return Err(Failure::failed("the server answered FUNCTION DUMP in an unknown form"));
    };
    let codes = restore_libraries(&payload)
        .map_err(|_| Failure::failed("the functions of the server cannot be read"))?;
    for code in &codes {
        let mut bytes = Vec::new();
        sink.writer.library(code, &mut bytes);
        sink.write(&bytes)?;
    }
    for (name, _) in cache.info("keyspace")? {
        let number = name.strip_prefix("db").and_then(|it| it.parse().ok());
        let Some(number) = number else { continue };
        cache.select(number)?;
        database(number, cache, sink, meter)?;
    }
    Ok(codes.len())
}

fn database(number: usize, cache: &mut Cache, sink: &mut Sink, meter: &mut Meter) -> Result<()> {
    let mut steps = Scan::new(None, None);
    // A scan may show a key again near where it did before, and a file must not: the keys of the last slots are kept.
    let mut written: HashSet<Vec<u8>> = HashSet::new();
    while let Some(mut keys) = steps.next(cache)? {
        let first = keys.iter().map(|key| slot_of(key)).min();
        if let Some(first) = first {
            written.retain(|key| slot_of(key) >= first.saturating_sub(1));
        }
        keys.retain(|key| written.insert(key.clone()));
        let mut commands: Vec<Vec<&[u8]>> = Vec::new();
        for key in &keys {
            commands.push(vec![b"PEXPIRETIME", key]);
            commands.push(vec![b"DUMP", key]);
        }
        cache.send(commands.iter().map(Vec::as_slice))?;
        for key in &keys {
            let (expiry, dumped) = (cache.receive()?, cache.receive()?);
            sink.key(number, key, &expiry, dumped)?;
            meter.show(sink.figures);
        }
    }
    Ok(())
}

impl Sink {
    fn key(&mut self, database: usize, key: &[u8], expiry: &Answer, dumped: Answer) -> Result<()> {
        let at_ms = match expiry {
            Answer::Integer(at) => u64::try_from(*at).ok(),
            _ => None,
        };
        let payload = match dumped {
            Answer::Bulk(payload) => payload,
            // It is gone meanwhile.
            Answer::Null(_) => return Ok(()),
            other => {
                let message = format!("the key `{}` cannot be read: {other:?}", shown(key));
                return Err(Failure::failed(message));
            }
        };
        let (body, version) = rdb::unseal(&payload)
            .map_err(|_| Failure::failed(format!("the key `{}` came damaged", shown(key))))?;
        if version > self.version {
            let failure = Failure::failed(format!(
                "the key `{}` is a hash with fields that expire, which version {} of RDB cannot hold",
                shown(key),
                self.version
            ));
            return Err(failure.hint("--rdb-version 12 can, and Redis reads it from 7.4 on"));
        }
        let mut bytes = Vec::with_capacity(body.len() + key.len() + 32);
        self.writer.key(database, key, at_ms, body, &mut bytes);
        self.figures.items += 1;
        self.write(&bytes)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.figures.bytes += bytes.len() as u64;
        let written = self.out.write_all(bytes);
        written.map_err(|error| Failure::failed(format!("{}: {error}", self.partial.display())))
    }
}
