//! Threads that keep a server busy while it is killed, and what each was told.

use std::net::SocketAddr;
use std::thread::JoinHandle;

use crate::Result;

/// Starts writers of a round, each with its number.
pub fn start<Log: Send + 'static>(
    address: SocketAddr,
    round: u64,
    count: usize,
    write: fn(SocketAddr, u64, usize) -> Result<Log>,
) -> Vec<JoinHandle<Result<Log>>> {
    (0..count).map(|writer| std::thread::spawn(move || write(address, round, writer))).collect()
}

/// Waits until all have ended.
pub fn join<Log>(writers: Vec<JoinHandle<Result<Log>>>) -> Result<Vec<Log>> {
    let joined = writers.into_iter().map(|writer| writer.join());
    joined.map(|log| log.map_err(|_| "a writer panicked".to_owned())?).collect()
}
