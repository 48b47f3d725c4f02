//! `lazuli cache import FILE`: an RDB file, record by record.

use std::fs::File;
use std::io::Read;

use lazuli_console::progress::{Figures, Meter};
use lazuli_console::{Failure, Result, output};
use lazuli_keyspace::rdb::file::{Key, Reader, Record};
use lazuli_resp::Answer;
use lazuli_resp::limits::BULK_BYTES_MAX;
use serde_json::json;

use super::{Cache, shown};
use crate::args::cache::Import;

/// How much of the file is read at once.
const PIECE_BYTES: usize = 1024 * 1024;
/// How many commands, and how many bytes of them, are sent before their answers are taken.
const COMMANDS_AT_ONCE: usize = 500;
const BYTES_AT_ONCE: usize = 4 * 1024 * 1024;

/// What became of the file.
#[derive(Default)]
struct Counts {
    keys: u64,
    libraries: u64,
    /// Keys and libraries that were here already.
    kept: u64,
}

/// Commands on their way, with what each of them brings.
struct Batch<'c> {
    cache: &'c mut Cache,
    commands: Vec<(String, Vec<Vec<u8>>)>,
    bytes: usize,
    database: usize,
    replaces: bool,
    counts: Counts,
}

pub(super) fn run(wanted: &Import) -> Result<()> {
    let Some(path) = &wanted.file else { return Err(Failure::usage("which file?")) };
    let failed = |what: String| Failure::failed(format!("{}: {what}", path.display()));
    let mut file = File::open(path).map_err(|error| failed(error.to_string()))?;
    let whole = file.metadata().ok().map(|it| it.len());
    let (mut cache, _) = Cache::find(&wanted.place)?;
    let as_json = wanted.place.target.json;
    let mut meter = Meter::new("imported", "keys", as_json, Figures::default(), whole);
    let mut batch = Batch {
        cache: &mut cache,
        commands: Vec::new(),
        bytes: 0,
        database: 0,
        replaces: wanted.replace,
        counts: Counts::default(),
    };
    let mut reader = Reader::default();
    let (mut buffer, mut start, mut taken) = (Vec::new(), 0, 0);
    loop {
        let next = reader.next(&buffer[start..]).map_err(|bad| failed(bad.to_string()))?;
        let length = match next {
            None => {
                buffer.drain(..start);
                start = 0;
                if read_as_much_again(&mut file, &mut buffer)
                    .map_err(|it| failed(it.to_string()))?
                    == 0
                {
                    return Err(failed("the file ends too early".to_owned()));
                }
                continue;
            }
            Some((Record::End, _)) => break,
            Some((Record::Key(key), length)) => {
                batch.key(&key, reader.version())?;
                length
            }
            Some((Record::Library(code), length)) => {
                batch.library(code)?;
                length
            }
            Some((_, length)) => length,
        };
        start += length;
        taken += length as u64;
        meter.show(Figures { items: batch.counts.keys, bytes: taken });
    }
    batch.flush()?;
    let Counts { keys, libraries, kept } = batch.counts;
    meter.finish();
    let answer = json!({ "keys": keys, "libraries": libraries, "kept": kept });
    output::changed(as_json, &answer, || {
        let kept = match kept {
            0 => String::new(),
            kept => format!("; {kept} were there already (--replace replaces them)"),
        };
        format!("imported {keys} keys and {libraries} libraries of functions{kept}")
    });
    Ok(())
}

/// Reads at least as much as there is already, so that long records are looked at a few times only.
fn read_as_much_again(file: &mut File, buffer: &mut Vec<u8>) -> std::io::Result<u64> {
    let wanted = buffer.len().max(PIECE_BYTES) as u64;
    file.by_ref().take(wanted).read_to_end(buffer).map(|it| it as u64)
}

impl Batch<'_> {
    fn key(&mut self, key: &Key<'_>, version: u16) -> Result<()> {
        if key.database != self.database {
            self.flush()?;
            self.cache.select(key.database)?;
            self.database = key.database;
        }
        let payload = key.payload(version);
        if payload.len() > BULK_BYTES_MAX {
            let message = format!("the key `{}` takes more than 512 MiB", shown(&key.key));
            return Err(Failure::failed(message));
        }
        let expiry = key.expires_at_ms.unwrap_or(0).to_string().into_bytes();
        let mut words = vec![b"RESTORE".to_vec(), key.key.clone(), expiry, payload];
        words.push(b"ABSTTL".to_vec());
        if self.replaces {
            words.push(b"REPLACE".to_vec());
        }
        self.add(format!("the key `{}`", shown(&key.key)), words)
    }

    fn library(&mut self, code: Vec<u8>) -> Result<()> {
        let mut words = vec![b"FUNCTION".to_vec(), b"LOAD".to_vec()];
        if self.replaces {
            words.push(b"REPLACE".to_vec());
        }
        words.push(code);
        self.add("a library of functions".to_owned(), words)
    }

    fn add(&mut self, what: String, words: Vec<Vec<u8>>) -> Result<()> {
        self.bytes += words.iter().map(Vec::len).sum::<usize>();
        self.commands.push((what, words));
        match self.commands.len() >= COMMANDS_AT_ONCE || self.bytes >= BYTES_AT_ONCE {
            true => self.flush(),
            false => Ok(()),
        }
    }

    /// Sends what waits, and takes all answers.
    fn flush(&mut self) -> Result<()> {
        self.bytes = 0;
        let commands = std::mem::take(&mut self.commands);
        let words: Vec<Vec<&[u8]>> =
            commands.iter().map(|(_, words)| words.iter().map(Vec::as_slice).collect()).collect();
        self.cache.send(words.iter().map(Vec::as_slice))?;
        for (what, words) in &commands {
            let is_key = words[0] == b"RESTORE";
            match self.cache.receive()? {
                Answer::Error(text) if is_there(&text) => self.counts.kept += 1,
                Answer::Error(text) => {
                    let text = String::from_utf8_lossy(&text);
                    return Err(Failure::failed(format!("{what} was refused: {text}")));
                }
                _ if is_key => self.counts.keys += 1,
                _ => self.counts.libraries += 1,
            }
        }
        Ok(())
    }
}

/// Whether an error says that what is brought is there already.
fn is_there(text: &[u8]) -> bool {
    text.starts_with(b"BUSYKEY") || text.ends_with(b"already exists")
}
