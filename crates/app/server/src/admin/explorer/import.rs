//! Import of entities: JSON lines, written a bounded number at a time while they come in.

use std::collections::HashSet;

use bytes::Bytes;
use lazuli_http::{Body, BodyError, Response};
use serde_json::{Map, Value, json};
use tokio::task::JoinSet;

use super::super::ok;
use super::super::refusal::{Refusal, Result};
use super::answer::ask;
use super::entities::{insertion, overwriting};
use super::request::{EntityPath, Mode, TablePath};
use crate::owner::{Ask, Owner};

/// The longest line: an entity of 1 MiB whose characters are all escaped.
const LINE_BYTES_MAX: usize = 8 * 1024 * 1024;
/// The most bytes of an import. `lazuli table import` takes any size, and goes on where it was interrupted.
const IMPORT_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// How many entities are written at once.
const AT_ONCE: usize = 32;
/// How many lines that were refused are named.
const REFUSED_SHOWN: usize = 100;

/// Every line is tried, also after one was refused. The answer counts them and names the first that were refused.
pub(super) async fn run(
    owner: &Owner,
    table: &TablePath,
    mode: Mode,
    body: Body,
) -> Result<Response> {
    let mut lines = Lines { body, rest: Vec::new(), bytes: 0, number: 0 };
    let mut done = Done::default();
    let written = write(owner, table, mode, &mut lines, &mut done).await;
    if written.is_err() {
        // So that a client that is still sending reads the answer.
        lines.body.discard().await;
    }
    written.map(|()| ok(&done.show()))
}

async fn write(
    owner: &Owner,
    table: &TablePath,
    mode: Mode,
    lines: &mut Lines,
    done: &mut Done,
) -> Result<()> {
    // Lines of the same keys are written in their order, so the second of two waits for the next round.
    let mut held = None;
    loop {
        let (mut writing, mut keys) = (JoinSet::new(), HashSet::new());
        while writing.len() < AT_ONCE {
            let next = match held.take() {
                Some(next) => Some(next),
                None => lines.next_entity(done).await?,
            };
            let Some(next) = next else { break };
            if !keys.insert((next.partition_key.clone(), next.row_key.clone())) {
                held = Some(next);
                break;
            }
            let (owner, number) = (owner.clone(), next.number);
            let wanted = next.ask(table, mode);
            writing.spawn(async move { (number, ask(&owner, wanted).await.err()) });
        }
        if writing.is_empty() {
            return Ok(());
        }
        while let Some(written) = writing.join_next().await {
            match written {
                Ok((_, None)) => done.written += 1,
                Ok((number, Some(refusal))) => done.refuse(number, &refusal),
                Err(_) => return Err(super::answer::unread()),
            }
        }
    }
}

/// The entity of a line.
struct Entity {
    number: u64,
    partition_key: String,
    row_key: String,
    members: Map<String, Value>,
}

impl Entity {
    fn parse(number: u64, line: &[u8]) -> Result<Self> {
        let Ok(mut members) = serde_json::from_slice::<Map<String, Value>>(line) else {
            return Err(Refusal::bad_request("the line is no JSON object"));
        };
        // The service makes its own of these.
        members.retain(|name, _| {
            !name.starts_with("odata.") && !["Timestamp", "Timestamp@odata.type"].contains(&&**name)
        });
        let key = |name: &str| match members.get(name) {
            Some(Value::String(key)) => Ok(key.clone()),
            _ => Err(Refusal::bad_request(format!("the line has no {name} that is text"))),
        };
        let (partition_key, row_key) = (key("PartitionKey")?, key("RowKey")?);
        Ok(Self { number, partition_key, row_key, members })
    }

    /// The request that writes it.
    fn ask(self, table: &TablePath, mode: Mode) -> Ask {
        let Self { partition_key, row_key, members, .. } = self;
        let body = Body::from(Bytes::from(Value::Object(members).to_string()));
        match mode {
            Mode::Insert => insertion(table, body),
            Mode::Over(write) => {
                let path = EntityPath { table: table.clone(), partition_key, row_key };
                overwriting(&path, write, body)
            }
        }
    }
}

/// The outcomes of the lines so far.
#[derive(Default)]
struct Done {
    written: u64,
    refused: u64,
    shown: Vec<(u64, Value)>,
}

impl Done {
    fn refuse(&mut self, line: u64, refusal: &Refusal) {
        self.refused += 1;
        if self.shown.len() < REFUSED_SHOWN {
            let (code, message) = (refusal.code(), refusal.message());
            self.shown.push((line, json!({ "line": line, "code": code, "message": message })));
        }
    }

    fn show(mut self) -> Value {
        self.shown.sort_by_key(|(line, _)| *line);
        let shown: Vec<Value> = self.shown.into_iter().map(|(_, shown)| shown).collect();
        json!({ "written": self.written, "refused": self.refused, "refusals": shown })
    }
}

/// The lines of a body that is still coming in.
struct Lines {
    body: Body,
    rest: Vec<u8>,
    bytes: u64,
    /// How many lines were read.
    number: u64,
}

impl Lines {
    /// The entity of the next line that has one; none when there are no more. Blank lines are passed over, those without an
    /// entity are refused.
    async fn next_entity(&mut self, done: &mut Done) -> Result<Option<Entity>> {
        while let Some(line) = self.next().await? {
            self.number += 1;
            let text = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&line).trim_ascii();
            if text.is_empty() {
                continue;
            }
            match Entity::parse(self.number, text) {
                Ok(entity) => return Ok(Some(entity)),
                Err(refusal) => done.refuse(self.number, &refusal),
            }
        }
        Ok(None)
    }

    /// The next line without its end; none when there are no more.
    async fn next(&mut self) -> Result<Option<Vec<u8>>> {
        let mut searched = 0;
        loop {
            if let Some(at) = self.rest[searched..].iter().position(|byte| *byte == b'\n') {
                let behind = self.rest.split_off(searched + at + 1);
                return Ok(Some(std::mem::replace(&mut self.rest, behind)));
            }
            searched = self.rest.len();
            if searched > LINE_BYTES_MAX {
                let message = format!("a line is longer than {LINE_BYTES_MAX} bytes");
                return Err(Refusal::too_large(message));
            }
            match self.body.chunk().await {
                Ok(Some(chunk)) => {
                    self.bytes += chunk.len() as u64;
                    self.rest.extend_from_slice(&chunk);
                }
                Ok(None) => {
                    let last = std::mem::take(&mut self.rest);
                    return Ok(Some(last).filter(|last| !last.is_empty()));
                }
                Err(error) => return Err(broken(error)),
            }
            if self.bytes > IMPORT_BYTES_MAX {
                let message = format!("an import has at most {IMPORT_BYTES_MAX} bytes");
                return Err(Refusal::too_large(message));
            }
        }
    }
}

fn broken(error: BodyError) -> Refusal {
    Refusal::bad_request(format!("{error}; the lines before it may be written"))
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn lines(pieces: &'static [&'static str]) -> Vec<String> {
        let body = Body::streamed(pieces, |pieces| async move {
            Ok(pieces.split_first().map(|(piece, rest)| (Bytes::from(*piece), rest)))
        });
        let mut lines = Lines { body, rest: Vec::new(), bytes: 0, number: 0 };
        let mut all = Vec::new();
        while let Ok(Some(line)) = lines.next().await {
            all.push(String::from_utf8(line).unwrap());
        }
        all
    }

    #[tokio::test]
    async fn lines_are_put_together_from_the_pieces_they_come_in() {
        assert_eq!(lines(&["a\nb", "c", "\n\nd\n", "e"]).await, ["a\n", "bc\n", "\n", "d\n", "e"]);
        assert_eq!(lines(&["", ""]).await, [""; 0]);
    }
}
