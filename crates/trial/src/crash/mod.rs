//! Kill -9 under load, round after round on the same data.
//!
//! Each round starts the server, checks what the round before wrote, lets writers write over the wire, kills the server at a
//! random moment, and runs `lazuli fsck` on what is left. What is written and what must hold afterwards is a [`Load`].

pub(crate) mod blobs;
pub(crate) mod bus;
pub(crate) mod cache;
pub(crate) mod documents;
pub(crate) mod hub;
pub(crate) mod queues;
pub(crate) mod search;
pub(crate) mod tables;

use std::fmt;
use std::net::SocketAddr;
use std::ops::Range;
use std::path::Path;
use std::time::{Duration, Instant};

use lazuli_trial::Result;
use lazuli_trial::server::{self, Server};

use crate::Options;

/// All data of all rounds is checked after every so many rounds; in between only that of the last one.
const FULL_CHECK_ROUNDS: u64 = 10;

/// What one front is given to do, and what must hold after every kill.
pub(crate) trait Load: fmt::Display + Sync {
    /// The answers that one writer of a round got.
    type Log: Send + 'static;

    /// The endpoint that is written to.
    const FRONT: &str;
    const WRITERS: usize;
    /// The server is killed this many milliseconds after the first writer starts.
    const LIFE_MS: Range<u64>;
    /// What the server is told beside what every trial tells it.
    const ARGUMENTS: &[&str] = &[];

    /// Makes the server what the load needs, before the first round.
    fn prepare(&self, _server: &Server, _folder: &Path) -> Result {
        Ok(())
    }

    /// Creates what the writers need, before the first round.
    fn create(&self, address: SocketAddr) -> Result;

    /// Writes until the connection breaks. An answer that is neither a success nor a broken connection is a failure.
    fn write(&self, address: SocketAddr, round: u64, writer: usize) -> Result<Self::Log>;

    /// Checks the answers of the last round against the restarted server.
    fn settle(&mut self, address: SocketAddr, logs: Vec<Self::Log>) -> Result;

    /// Checks everything that was ever settled.
    fn check_all(&self, _address: SocketAddr) -> Result {
        Ok(())
    }

    /// The last checks, after which nothing is written.
    fn finish(&mut self, _server: &Server, _folder: &Path) -> Result {
        Ok(())
    }
}

pub(crate) fn run<L: Load>(options: &Options, mut load: L) -> Result {
    let rounds: u64 = options.value("--rounds")?;
    let random = lazuli_env::real::env().random;
    let (mut logs, mut starts, mut life_total) = (Vec::new(), Vec::new(), Duration::ZERO);
    for round in 0..=rounds {
        let began = Instant::now();
        let server = Server::start_with(&options.binary, &options.folder, L::ARGUMENTS)?;
        starts.push(began.elapsed());
        let address = server.endpoint(L::FRONT)?;
        if round == 0 {
            load.prepare(&server, &options.folder)?;
            load.create(address)?;
        }
        load.settle(address, std::mem::take(&mut logs))?;
        if round == rounds {
            load.check_all(address)?;
            load.finish(&server, &options.folder)?;
            server.stop()?;
        } else {
            if round % FULL_CHECK_ROUNDS == FULL_CHECK_ROUNDS - 1 {
                load.check_all(address)?;
            }
            let life = L::LIFE_MS.start + random.below(L::LIFE_MS.end - L::LIFE_MS.start);
            let life = Duration::from_millis(life);
            life_total += life;
            logs = write_until_killed(&load, server, address, round, life)?;
        }
        server::fsck(&options.binary, &options.folder)?;
    }
    println!("{rounds} rounds of kill -9 under {} connections, {life_total:?} of load", L::WRITERS);
    println!("{load}");
    let average = starts.iter().sum::<Duration>() / starts.len() as u32;
    let longest = starts.iter().max().copied().unwrap_or_default();
    println!("start after a kill: {average:?} on average, {longest:?} at most");
    println!("fsck clean after every kill and after the last stop");
    Ok(())
}

/// Writers write as fast as they are answered, until the server is killed.
fn write_until_killed<L: Load>(
    load: &L,
    server: Server,
    address: SocketAddr,
    round: u64,
    life: Duration,
) -> Result<Vec<L::Log>> {
    std::thread::scope(|scope| {
        let start = |writer| scope.spawn(move || load.write(address, round, writer));
        let writers: Vec<_> = (0..L::WRITERS).map(start).collect();
        std::thread::sleep(life);
        server.kill()?;
        let joined = writers.into_iter().map(|writer| writer.join());
        joined.map(|log| log.map_err(|_| "a writer panicked".to_owned())?).collect()
    })
}

/// Reads with one connection for each log, and gathers what the readers found.
fn read_all<Log: Send + 'static, Found: Send + 'static>(
    address: SocketAddr,
    logs: Vec<Log>,
    read: fn(SocketAddr, Log) -> Result<Found>,
) -> Result<Vec<Found>> {
    let start = |log| std::thread::spawn(move || read(address, log));
    let readers: Vec<_> = logs.into_iter().map(start).collect();
    let joined = readers.into_iter().map(|reader| reader.join());
    joined.map(|found| found.map_err(|_| "a reader panicked".to_owned())?).collect()
}
