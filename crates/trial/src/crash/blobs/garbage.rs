//! Garbage collection: once all blobs are deleted, no block file may be left.

use std::path::Path;
use std::time::{Duration, Instant};

use lazuli_trial::client::Client;
use lazuli_trial::server::Server;
use lazuli_trial::{Result, blobs};

use super::CONTAINER;

/// How long the collector may take.
const COLLECT_WAIT: Duration = Duration::from_secs(120);
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// Deletes the container and waits until the last block file is gone. Says how many there were.
pub(super) fn collected(server: &Server, folder: &Path) -> Result<usize> {
    let blocks = folder.join("data").join("blocks");
    let before = files(&blocks)?;
    let mut client = Client::connect(server.endpoint("blobs")?)?;
    client.expect(blobs::delete_container(CONTAINER), &[202])?;
    let start = Instant::now();
    loop {
        let left = files(&blocks)?;
        if left == 0 {
            return Ok(before);
        }
        if start.elapsed() > COLLECT_WAIT {
            return Err(format!("{left} of {before} block files are still there"));
        }
        std::thread::sleep(LOOK_INTERVAL);
    }
}

/// How many block files there are, finished or not.
fn files(blocks: &Path) -> Result<usize> {
    let mut count = 0;
    let list = |path: &Path| {
        let entries = std::fs::read_dir(path).map(|entries| entries.flatten().collect());
        let entries: Vec<_> = entries.unwrap_or_default();
        entries.into_iter().map(|entry| entry.path())
    };
    for generation in list(blocks) {
        count += list(&generation).filter(|path| !path.ends_with("swept")).count();
    }
    Ok(count)
}
