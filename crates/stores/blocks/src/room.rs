//! Keeps disk space free for the stores beside these files: they need it to commit deletions, which free space.

use std::path::Path;

use lazuli_store::{Error, Result};

/// Below this part of the disk nothing is written, within these bounds. The embedded store has the same.
const LEAST_PART: u64 = 20;
const LEAST_BYTES_MIN: u64 = 32 * 1024 * 1024;
const LEAST_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// Refuses to write to a disk that is full.
pub(crate) fn check(folder: &Path) -> Result<()> {
    match space_of(folder) {
        Some((free, total)) if free < least(total) => {
            let (place, free, least) = (folder.display(), free >> 20, least(total) >> 20);
            let message = format!(
                "the disk of {place} is full: {free} MiB are free, and contents need {least} MiB"
            );
            Err(Error::unavailable("disk-full", message))
        }
        _ => Ok(()),
    }
}

fn least(total: u64) -> u64 {
    (total / LEAST_PART).clamp(LEAST_BYTES_MIN, LEAST_BYTES_MAX)
}

/// Free space for us, and size of the file system.
#[cfg(unix)]
fn space_of(path: &Path) -> Option<(u64, u64)> {
    let found = rustix::fs::statvfs(path).ok()?;
    let bytes = |blocks: u64| blocks.saturating_mul(found.f_frsize);
    // Some network file systems do not report it.
    (found.f_blocks > 0).then(|| (bytes(found.f_bavail), bytes(found.f_blocks)))
}

#[cfg(not(unix))]
fn space_of(_: &Path) -> Option<(u64, u64)> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_must_be_free_follows_from_the_disk_within_bounds() {
        let mib = 1 << 20;
        assert_eq!(least(100 * mib), 32 * mib);
        assert_eq!(least(2_000 * mib), 100 * mib);
        assert_eq!(least(1 << 50), 256 * mib);
    }
}
