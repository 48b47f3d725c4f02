//! What is asked: filling by many commands at once, and runs of redis-benchmark.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;

use super::super::{Options, Result};
use super::Load;
use super::peers::Peer;

/// Connections of redis-benchmark, as it has by default.
const CONNECTIONS: &str = "50";
/// Commands that are sent at once while filling.
const FILLED_AT_ONCE: u64 = 1_000;

/// One figure of one server.
#[derive(Clone, Copy, Debug)]
pub(super) struct Figure {
    pub(super) per_second: f64,
    /// Processor time of the server for one request, in microseconds.
    pub(super) cpu_us: f64,
    pub(super) p99_ms: f64,
}

/// What redis-benchmark is told.
pub(super) struct Run<'l> {
    load: &'l Load,
    pipeline: usize,
    size: usize,
    requests: u64,
    keys: u64,
}

impl<'l> Run<'l> {
    /// `at` says which of the rates of the load is meant.
    pub(super) fn new(
        load: &'l Load,
        at: usize,
        pipeline: usize,
        size: usize,
        options: &Options,
    ) -> Self {
        // There are many figures, so each has half of the usual time.
        let requests = (load.rates[at] as f64 * options.time.as_secs_f64() / 2.0) as u64;
        Self { load, pipeline, size, requests, keys: options.entities }
    }

    pub(super) fn name(&self) -> String {
        format!("{}, pipeline {}", self.load.name.to_uppercase(), self.pipeline)
    }
}

/// One run against one server.
pub(super) fn measure(peer: &Peer, run: &Run<'_>) -> Result<Figure> {
    if let Some(key) = run.load.collects {
        ask(peer.address, &["DEL", key])?;
    }
    let before = peer.cpu();
    let mut command = Command::new("redis-benchmark");
    command.args(["-h", "127.0.0.1", "-p", &peer.address.port().to_string(), "--csv"]);
    command.args(["-t", run.load.name, "-c", CONNECTIONS, "-n", &run.requests.to_string()]);
    command.args(["-P", &run.pipeline.to_string(), "-d", &run.size.to_string()]);
    command.args(["-r", &run.keys.to_string()]);
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    let used = peer.cpu().saturating_sub(before);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let (per_second, p99_ms) = read(&said).ok_or_else(|| {
        format!("{command:?} says {said} {}", String::from_utf8_lossy(&output.stderr))
    })?;
    let cpu_us = used.as_secs_f64() * 1e6 / run.requests as f64;
    Ok(Figure { per_second, cpu_us, p99_ms })
}

/// The rate and the 99th percentile of the last line: name, rate, mean, least, p50, p95, p99, longest.
fn read(said: &str) -> Option<(f64, f64)> {
    let line = said.lines().last()?;
    // Names such as `MSET (10 keys)` have no commas.
    let mut fields = line.split(',').map(|field| field.trim_matches('"'));
    let per_second = fields.nth(1)?.parse().ok()?;
    Some((per_second, fields.nth(4)?.parse().ok()?))
}

/// Sets the keys that redis-benchmark draws from.
pub(super) fn fill(address: SocketAddr, keys: u64, size: usize) -> Result {
    let stream = TcpStream::connect(address).map_err(broken)?;
    let mut answers = BufReader::new(stream.try_clone().map_err(broken)?);
    let mut stream = stream;
    let value = "v".repeat(size);
    let mut sent = 0;
    while sent < keys {
        let until = (sent + FILLED_AT_ONCE).min(keys);
        let mut batch = Vec::new();
        for key in sent..until {
            // Writing into memory does not fail.
            let _ =
                write!(batch, "*3\r\n$3\r\nSET\r\n$16\r\nkey:{key:012}\r\n${size}\r\n{value}\r\n");
        }
        stream.write_all(&batch).map_err(broken)?;
        let mut answered = vec![0; (until - sent) as usize * OK.len()];
        answers.read_exact(&mut answered).map_err(broken)?;
        if !answered.chunks(OK.len()).all(|it| it == OK) {
            return Err(format!("SET: {}", String::from_utf8_lossy(&answered[..100])));
        }
        sent = until;
    }
    Ok(())
}

const OK: &[u8] = b"+OK\r\n";

fn broken(error: std::io::Error) -> String {
    format!("the connection broke: {error}")
}

/// Sends a command and reads the first line of its reply.
fn ask(address: SocketAddr, words: &[&str]) -> Result<(BufReader<TcpStream>, String)> {
    let mut stream = TcpStream::connect(address).map_err(broken)?;
    stream.write_all(format!("{}\r\n", words.join(" ")).as_bytes()).map_err(broken)?;
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).map_err(broken)?;
    match line.starts_with('-') {
        true => Err(format!("{words:?}: {line}")),
        false => Ok((reader, line)),
    }
}

/// What the server says that its keys and values take.
pub(super) fn used_memory(address: SocketAddr) -> Result<u64> {
    let (mut reader, line) = ask(address, &["INFO", "memory"])?;
    let length = line.trim().strip_prefix('$').and_then(|it| it.parse().ok());
    let mut text = vec![0; length.ok_or_else(|| format!("INFO: {line}"))?];
    reader.read_exact(&mut text).map_err(broken)?;
    let text = String::from_utf8_lossy(&text);
    let used = text.lines().find_map(|line| line.strip_prefix("used_memory:"));
    used.and_then(|it| it.trim().parse().ok()).ok_or_else(|| format!("no used_memory in {text}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_and_percentile_are_read_from_what_redis_benchmark_prints() {
        let said = "\"test\",\"rps\",\"avg_latency_ms\"\n\
                    \"MSET (10 keys)\",\"96153.85\",\"0.271\",\"0.080\",\"0.263\",\"0.391\",\"0.511\",\"1.007\"\n";
        assert_eq!(read(said), Some((96153.85, 0.511)));
        assert_eq!(read("Could not connect"), None);
    }
}
