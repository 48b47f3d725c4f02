//! Import of entities: JSON lines, written a bounded number at a time while they come in.

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

/// The longest line: an entity of 1 MiB whose signs are all escaped.
const LINE_BYTES_MAX: usize = 8 * 1024 * 1024;
/// The most bytes of an import. `lazuli table import` takes any size, and goes on where it was interrupted.
const IMPORT_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// How many entities are written at once.
const AT_ONCE: usize = 32;
/// How many lines that were refused are named.
const REFUSED_SHOWN: usize = 100;

/// Every line is tried, whatever becomes of the others. The answer counts them and names the first that were refused.
pub(super) async fn run(
    owner: &Owner,
    table: &TablePath,
    mode: Mode,
    body: Body,
) -> Result<Response> {
    let mut lines = Lines { body, rest: Vec::new(), bytes: 0, is_over: false };
    let mut done = Done::default();
    let mut number = 0_u64;
    loop {
        let mut writing = JoinSet::new();
        while writing.len() < AT_ONCE {
            let Some(line) = lines.next().await? else { break };
            number += 1;
            let text = line.trim_ascii().strip_prefix(b"\xef\xbb\xbf").unwrap_or(line.trim_ascii());
            if text.is_empty() {
                continue;
            }
            match wish(table, mode, text) {
                Ok(wanted) => {
                    let owner = owner.clone();
                    writing.spawn(async move { (number, ask(&owner, wanted).await.err()) });
                }
                Err(refusal) => done.refuse(number, &refusal),
            }
        }
        let was_last = writing.len() < AT_ONCE;
        while let Some(written) = writing.join_next().await {
            match written {
                Ok((_, None)) => done.written += 1,
                Ok((number, Some(refusal))) => done.refuse(number, &refusal),
                Err(_) => return Err(super::answer::unread()),
            }
        }
        if was_last && lines.is_over {
            return Ok(ok(&done.show()));
        }
    }
}

/// The request that writes the entity of a line.
fn wish(table: &TablePath, mode: Mode, line: &[u8]) -> Result<Ask> {
    let Ok(mut entity) = serde_json::from_slice::<Map<String, Value>>(line) else {
        return Err(Refusal::bad_request("the line is no JSON object"));
    };
    // The service makes its own of these.
    entity.retain(|name, _| !name.starts_with("odata.") && !name.starts_with("Timestamp"));
    let key = |name: &str| match entity.get(name) {
        Some(Value::String(key)) => Ok(key.clone()),
        _ => Err(Refusal::bad_request(format!("the line has no {name} that is text"))),
    };
    let (partition_key, row_key) = (key("PartitionKey")?, key("RowKey")?);
    let body = Body::from(Bytes::from(Value::Object(entity).to_string()));
    Ok(match mode {
        Mode::Insert => insertion(table, body),
        Mode::Over(write) => {
            let path = EntityPath { table: table.clone(), partition_key, row_key };
            overwriting(&path, write, body)
        }
    })
}

/// What has become of the lines so far.
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
    is_over: bool,
}

impl Lines {
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
                    self.is_over = true;
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
        let mut lines = Lines { body, rest: Vec::new(), bytes: 0, is_over: false };
        let mut all = Vec::new();
        while let Ok(Some(line)) = lines.next().await {
            all.push(String::from_utf8(line).unwrap());
        }
        assert!(lines.is_over);
        all
    }

    #[tokio::test]
    async fn lines_are_put_together_from_the_pieces_they_come_in() {
        assert_eq!(lines(&["a\nb", "c", "\n\nd\n", "e"]).await, ["a\n", "bc\n", "\n", "d\n", "e"]);
        assert_eq!(lines(&["", ""]).await, [""; 0]);
    }
}
