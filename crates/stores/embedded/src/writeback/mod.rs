//! Starts writeback of tables while they grow, so that commits never wait for much of them.
//!
//! The engine writes a table as fast as it can and syncs it at the end. Until then the page cache collects tens of
//! megabytes, and once they are written, the small fsync of a commit waits behind them, on this shard and on every
//! other one on the disk. The engine has no hook for this. So a thread learns from the file system (inotify) which
//! tables are being written, and requests writeback of their new parts, piece by piece.
//!
//! The store works without it. It changes no file, syncs none and holds none open; durability depends only on the
//! engine's own fsyncs. Where it cannot work, or fails, only commits beside large writes are slower.

#[cfg(target_os = "linux")]
mod growth;
#[cfg(target_os = "linux")]
mod watch;

#[cfg(target_os = "linux")]
pub(crate) use watch::Writeback;

/// Other systems have no call for it.
#[cfg(not(target_os = "linux"))]
pub(crate) struct Writeback;

#[cfg(not(target_os = "linux"))]
impl Writeback {
    pub(crate) fn start(_: &std::path::Path) -> Option<Self> {
        None
    }
}
