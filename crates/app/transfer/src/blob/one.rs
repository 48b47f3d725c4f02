//! Operations on one blob without its content: its properties, a copy within the service, its removal.

use std::time::{Duration, Instant};

use lazuli_console::{Failure, Result};
use lazuli_http::client::blocking::Answer;
use lazuli_http::date::parse_rfc1123;

use super::address::BlobAddress;
use super::listing::Entry;
use crate::account::Credential;
use crate::session::{Answered, Call, ServiceError, Session};

const COPY_STATUS: &str = "x-ms-copy-status";
/// How often a copy that the service has not finished is polled.
const COPY_LOOK_FIRST: Duration = Duration::from_millis(50);
const COPY_LOOK_MAX: Duration = Duration::from_secs(5);
/// How long a copy may take in the service.
const COPY_WAIT_MAX: Duration = Duration::from_secs(4 * 3600);

/// The properties of a blob; none if there is no such blob.
pub fn stat(session: &mut Session, blob: &BlobAddress) -> Result<Option<Entry>> {
    let answer = session.ask(Call::new("HEAD", &blob.path()))?.answer;
    match answer.status {
        200..=299 => {}
        404 => return Ok(None),
        _ => return Err(ServiceError::of(&answer).failure()),
    }
    let entry = entry(blob, &answer);
    entry.map(Some).ok_or_else(|| Failure::failed("the service does not say what the blob is"))
}

fn entry(blob: &BlobAddress, answer: &Answer) -> Option<Entry> {
    let text = |name: &str| answer.header(name).map(str::to_owned);
    Some(Entry {
        name: blob.name.clone(),
        size: answer.header("content-length")?.parse().ok()?,
        md5: text("content-md5"),
        etag: text("etag")?,
        modified: answer.header("last-modified").and_then(parse_rfc1123)?,
        kind: text("x-ms-blob-type").unwrap_or_default(),
    })
}

/// Removes a blob with its snapshots.
pub(super) fn remove(session: &mut Session, blob: &BlobAddress) -> Result<()> {
    let path = blob.path();
    let headers = [("x-ms-delete-snapshots", "include")];
    let call = Call { headers: &headers, ..Call::new("DELETE", &path) };
    let Answered { answer, in_doubt } = session.ask(call)?;
    match answer.status {
        200..=299 => Ok(()),
        // The answer to an earlier attempt got lost.
        404 if in_doubt => Ok(()),
        _ => Err(ServiceError::of(&answer).failure()),
    }
}

/// Has the service copy a blob, and waits until it has.
pub(super) fn copy(session: &mut Session, from: &BlobAddress, to: &BlobAddress) -> Result<()> {
    let account = session.account();
    let source = match &account.credential {
        Credential::Key(_) => format!("{}{}", account.base(), from.path()),
        Credential::Sas(sas) => format!("{}{}?{sas}", account.base(), from.path()),
    };
    let path = to.path();
    let headers = [("x-ms-copy-source", source.as_str())];
    let mut answer = session.expect(Call { headers: &headers, ..Call::new("PUT", &path) })?;
    let (began, mut pause) = (Instant::now(), COPY_LOOK_FIRST);
    loop {
        match answer.header(COPY_STATUS) {
            Some("success") | None => return Ok(()),
            Some("pending") if began.elapsed() < COPY_WAIT_MAX => {}
            Some(status) => {
                let why = answer.header("x-ms-copy-status-description").unwrap_or_default();
                return Err(Failure::failed(format!("the copy is {status} {why}").trim_end()));
            }
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(COPY_LOOK_MAX);
        answer = session.expect(Call::new("HEAD", &path))?;
    }
}
