//! Has the system write tables out while they grow, so that commits never wait for much of them.
//!
//! The engine writes a table as fast as it can and syncs it at the end. Until then the file system gathers tens of
//! megabytes, and once it writes them, the small sync of a commit stands in line behind them, on this shard and on every
//! other one of the disk. The engine lets nobody in between. So a thread is told by the file system itself which tables
//! are being written, and asks for what is new of them to be written out at once, piece by piece.
//!
//! Nothing depends on it. It changes no file, syncs none and holds none open; what is on disk is decided by the engine's
//! own syncs alone. Where it cannot work, or stops working, only commits beside large writes are slower.

#[cfg(target_os = "linux")]
mod growth;
#[cfg(target_os = "linux")]
mod watch;

#[cfg(target_os = "linux")]
pub(crate) use watch::Writeback;

/// Other systems have no way to ask for it.
#[cfg(not(target_os = "linux"))]
pub(crate) struct Writeback;

#[cfg(not(target_os = "linux"))]
impl Writeback {
    pub(crate) fn start(_: &std::path::Path) -> Option<Self> {
        None
    }
}
