//! The load: writers that put, overwrite, copy, lease, snapshot and delete blobs, and log the answers.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use lazuli_env::{SplitMix64, mix};
use lazuli_trial::client::{ACCOUNT, Answer, Client, Request};
use lazuli_trial::{Result, blobs};

use super::CONTAINER;
use super::contents::Content;

/// Blobs of one writer in one round. Few, so that most writes meet what is there.
const NAMES_MAX: usize = 12;

/// A blob as its writer knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Blob {
    pub(super) content: Content,
    pub(super) lease: Option<String>,
    /// What the blob held when each snapshot was taken, by the snapshot's time.
    pub(super) snapshots: BTreeMap<String, Content>,
}

/// One operation on one blob.
#[derive(Clone, Debug)]
pub(super) enum Step {
    Put(Content),
    /// The same content as another blob has.
    Copy {
        from: String,
        content: Content,
    },
    Acquire(String),
    Release,
    Snapshot,
    Delete,
}

#[derive(Clone, Debug)]
pub(super) struct Write {
    pub(super) name: String,
    pub(super) step: Step,
    /// The lease that the writer holds on the blob.
    lease: Option<String>,
}

/// What one writer of a round knows at its end.
#[derive(Default)]
pub(crate) struct Log {
    pub(super) blobs: BTreeMap<String, Blob>,
    /// Names that were deleted: nothing may be there.
    pub(super) deleted: Vec<String>,
    /// The last one, if the server died over it: made or not made, but never in part.
    pub(super) in_doubt: Option<Write>,
    pub(super) answered: Vec<&'static str>,
}

impl Write {
    fn path(&self) -> String {
        format!("/{CONTAINER}/{}", self.name)
    }

    /// What the operation does with what is known of the blob, if it is made.
    pub(super) fn apply(&self, blob: Option<Blob>, snapshot: Option<&str>) -> Option<Blob> {
        let with = |content: &Content| {
            let (lease, snapshots) =
                blob.clone().map_or_else(Default::default, |it| (it.lease, it.snapshots));
            Some(Blob { content: content.clone(), lease, snapshots })
        };
        match &self.step {
            Step::Put(content) | Step::Copy { content, .. } => with(content),
            Step::Acquire(id) => blob.map(|blob| Blob { lease: Some(id.clone()), ..blob }),
            Step::Release => blob.map(|blob| Blob { lease: None, ..blob }),
            Step::Snapshot => blob.map(|mut blob| {
                let taken = snapshot.map(|time| (time.to_owned(), blob.content.clone()));
                blob.snapshots.extend(taken);
                blob
            }),
            Step::Delete => None,
        }
    }

    /// Sends the operation. The last answer is the one that counts; what comes before it changes nothing that shows.
    fn send(&self, client: &mut Client, address: SocketAddr) -> Result<Answer> {
        let path = self.path();
        let comp = |comp: &str| Request::storage("PUT", &path, &format!("?comp={comp}"), "");
        let request = match &self.step {
            Step::Put(content) => match content.blocks().as_slice() {
                [whole] => blobs::put(&path, whole.clone()),
                blocks => {
                    for (number, block) in blocks.iter().enumerate() {
                        let put = self.with_lease(blobs::put_block(&path, number, block.clone()));
                        expect(&client.send(put)?, &[201])?;
                    }
                    blobs::put_block_list(&path, blocks.len())
                }
            },
            Step::Copy { from, .. } => {
                let source = format!("http://{address}/{ACCOUNT}/{CONTAINER}/{from}");
                let copy = Request::storage("PUT", &path, "", "");
                copy.with("host", &address.to_string())
                    .with("x-ms-copy-source", &source)
                    .with("x-ms-requires-sync", "true")
            }
            Step::Acquire(id) => comp("lease")
                .with("x-ms-lease-action", "acquire")
                .with("x-ms-lease-duration", "-1")
                .with("x-ms-proposed-lease-id", id),
            Step::Release => comp("lease").with("x-ms-lease-action", "release"),
            Step::Snapshot => comp("snapshot"),
            Step::Delete => {
                Request::storage("DELETE", &path, "", "").with("x-ms-delete-snapshots", "include")
            }
        };
        client.send(self.with_lease(request))
    }

    fn with_lease(&self, request: Request) -> Request {
        match &self.lease {
            Some(id) => request.with("x-ms-lease-id", id),
            None => request,
        }
    }

    fn kind(&self) -> &'static str {
        match &self.step {
            Step::Put(content) if content.blocks().len() > 1 => "uploads in blocks",
            Step::Put(_) => "puts",
            Step::Copy { .. } => "copies",
            Step::Acquire(_) | Step::Release => "leases",
            Step::Snapshot => "snapshots",
            Step::Delete => "deletions",
        }
    }
}

/// Begins the message of an answer that is no success, to tell it from a broken connection.
const REFUSED: &str = "REFUSED";

fn expect(answer: &Answer, expected: &[u16]) -> Result {
    if expected.contains(&answer.status) {
        return Ok(());
    }
    Err(format!("{REFUSED}: {} {}", answer.status, answer.text()))
}

/// Writes until the connection breaks. An answer that is neither yes nor a broken connection is a failure.
pub(super) fn write(address: SocketAddr, round: u64, writer: usize) -> Result<Log> {
    let mut log = Log::default();
    // A server that dies before the writer has connected leaves nothing to remember.
    let Ok(mut client) = Client::connect(address) else { return Ok(log) };
    let mut plan = Plan::new(round, writer);
    loop {
        let write = plan.next(&log.blobs);
        let answer = write.send(&mut client, address);
        let answered = answer.and_then(|answer| {
            expect(&answer, &[200, 201, 202])?;
            Ok(answer.header("x-ms-snapshot").map(str::to_owned))
        });
        match answered {
            Ok(snapshot) => {
                log.deleted.retain(|name| *name != write.name);
                let before = log.blobs.remove(&write.name);
                match write.apply(before, snapshot.as_deref()) {
                    Some(after) => drop(log.blobs.insert(write.name.clone(), after)),
                    None => log.deleted.push(write.name.clone()),
                }
                log.answered.push(write.kind());
            }
            Err(error) if error.starts_with(REFUSED) => return Err(format!("{write:?}: {error}")),
            Err(_) => {
                log.in_doubt = Some(write);
                return Ok(log);
            }
        }
    }
}

/// What a writer does next.
struct Plan {
    prefix: String,
    number: u64,
    random: SplitMix64,
}

impl Plan {
    fn new(round: u64, writer: usize) -> Self {
        let random = SplitMix64::new(mix(round * 1000 + writer as u64));
        Self { prefix: format!("{round:06}-{writer:02}"), number: 0, random }
    }

    fn next(&mut self, known: &BTreeMap<String, Blob>) -> Write {
        self.number += 1;
        let name = format!("{}-{:02}", self.prefix, self.random.below(NAMES_MAX));
        let blob = known.get(&name);
        let step = match (self.random.below(10), blob) {
            (0, Some(Blob { lease: None, .. })) => Step::Acquire(self.lease_id()),
            (0, Some(_)) => Step::Release,
            (1, Some(_)) => Step::Snapshot,
            (2, Some(_)) => Step::Delete,
            (3 | 4, _) => self.copy(&name, known),
            _ => Step::Put(Content { name: name.clone(), number: self.number }),
        };
        let lease = blob.and_then(|it| it.lease.clone());
        Write { name, step, lease }
    }

    fn copy(&mut self, name: &str, known: &BTreeMap<String, Blob>) -> Step {
        let at = self.random.below(known.len().max(1));
        match known.iter().nth(at).filter(|(from, _)| *from != name) {
            Some((from, blob)) => Step::Copy { from: from.clone(), content: blob.content.clone() },
            None => Step::Put(Content { name: name.to_owned(), number: self.number }),
        }
    }

    fn lease_id(&self) -> String {
        let writer: String = self.prefix.chars().filter(char::is_ascii_digit).collect();
        format!("00000000-0000-4000-8000-{writer:0>8}{:04}", self.number % 10_000)
    }
}
