//! Commands made from seeds, sent to Redis and to the cache: the replies must be the same, byte by byte, but for what a server
//! is free to choose (the order of sets, random picks, times).
//!
//! One sequence begins with empty databases and uses few keys, so that commands meet each other's results, also those of the
//! wrong type. Everything comes from the seed and the number of the sequence: a report says how to repeat it.

mod compare;
mod grammar;
mod reply;
mod templates;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

pub(crate) use grammar::Generator;
use lazuli_trial::Result;
pub(crate) use reply::Reply;

use crate::Options;

/// Commands of one sequence.
const COMMANDS: u64 = 60;
/// How long a server may take to answer.
const PATIENCE: Duration = Duration::from_secs(20);
/// Differences that are told before the run ends.
const DIFFERENCES_MAX: usize = 20;

/// A connection to one of the servers.
pub(crate) struct Server {
    stream: TcpStream,
    received: Vec<u8>,
    from: usize,
}

impl Server {
    pub(crate) fn connect(address: &str) -> Result<Self> {
        let stream = TcpStream::connect(address).map_err(|error| format!("{address}: {error}"))?;
        stream.set_nodelay(true).map_err(|error| error.to_string())?;
        stream.set_read_timeout(Some(PATIENCE)).map_err(|error| error.to_string())?;
        Ok(Self { stream, received: Vec::new(), from: 0 })
    }

    fn send(&mut self, commands: &[Vec<Vec<u8>>]) -> Result {
        let mut bytes = Vec::new();
        for command in commands {
            bytes.extend_from_slice(format!("*{}\r\n", command.len()).as_bytes());
            for argument in command {
                bytes.extend_from_slice(format!("${}\r\n", argument.len()).as_bytes());
                bytes.extend_from_slice(argument);
                bytes.extend_from_slice(b"\r\n");
            }
        }
        self.stream.write_all(&bytes).map_err(|error| error.to_string())
    }

    /// Sends one command and takes its reply.
    pub(crate) fn ask(&mut self, words: &[&str]) -> Result<Reply> {
        self.push(words)?;
        self.receive()
    }

    pub(crate) fn ask_bytes(&mut self, words: &[&[u8]]) -> Result<Reply> {
        self.push_words(&words.iter().map(|it| it.to_vec()).collect::<Vec<_>>())?;
        self.receive()
    }

    /// Sends one command, whose reply comes later.
    pub(crate) fn push(&mut self, command: &[&str]) -> Result {
        self.push_words(&words(command))
    }

    pub(crate) fn push_words(&mut self, command: &[Vec<u8>]) -> Result {
        self.send(&[command.to_vec()])
    }

    /// Takes so many replies and forgets them.
    pub(crate) fn settle(&mut self, replies: u64) -> Result {
        (0..replies).try_for_each(|_| self.receive().map(drop))
    }

    fn receive(&mut self) -> Result<Reply> {
        loop {
            if let Some((reply, length)) = reply::read(&self.received[self.from..])? {
                self.from += length;
                if self.from == self.received.len() {
                    self.received.clear();
                    self.from = 0;
                }
                return Ok(reply);
            }
            let mut chunk = [0; 65536];
            let length = self.stream.read(&mut chunk).map_err(|error| error.to_string())?;
            if length == 0 {
                return Err("the connection was closed".into());
            }
            self.received.extend_from_slice(&chunk[..length]);
        }
    }
}

/// Runs as many sequences as were asked for on both servers.
pub(crate) fn run(options: &Options) -> Result {
    let ours: String = options.value("--ours")?;
    let theirs: String = options.value("--theirs")?;
    let seed: u64 = options.value("--seed")?;
    let (first, count): (u64, u64) = (options.value("--first")?, options.value("--sequences")?);
    let mut servers = [Server::connect(&ours)?, Server::connect(&theirs)?];
    let (mut differences, mut commands) = (Vec::new(), 0);
    for sequence in first..first + count {
        let made = make(seed, sequence);
        commands += made.len();
        if let Some(difference) = differ(&mut servers, &made)
            .map_err(|error| format!("seed {seed}, sequence {sequence}: {error}"))?
        {
            println!("--- seed {seed}, sequence {sequence}\n{difference}");
            differences.push(sequence);
            if differences.len() >= DIFFERENCES_MAX {
                break;
            }
        }
    }
    println!("{count} sequences, {commands} commands, {} with differences", differences.len());
    if differences.is_empty() {
        return Ok(());
    }
    Err(format!(
        "Redis answers otherwise in sequences {differences:?}; repeat one with \
         `cargo xtask differential-cache --seed {seed} --first {} --sequences 1`",
        differences[0]
    ))
}

fn make(seed: u64, sequence: u64) -> Vec<Vec<Vec<u8>>> {
    let mut generator = Generator::new(seed.wrapping_mul(1_000_003).wrapping_add(sequence));
    let protocol = if sequence.is_multiple_of(2) { "2" } else { "3" };
    let mut made = vec![words(&["FLUSHALL"]), words(&["HELLO", protocol])];
    made.extend((0..COMMANDS).map(|_| generator.command()));
    made
}

fn words(words: &[&str]) -> Vec<Vec<u8>> {
    words.iter().map(|word| word.as_bytes().to_vec()).collect()
}

/// The first reply that differs, with the commands before it that used the same keys.
fn differ(servers: &mut [Server; 2], made: &[Vec<Vec<u8>>]) -> Result<Option<String>> {
    for server in servers.iter_mut() {
        server.send(made)?;
    }
    let mut difference = None;
    for (number, command) in made.iter().enumerate() {
        let ours =
            servers[0].receive().map_err(|error| format!("{}: ours: {error}", show(command)))?;
        let theirs =
            servers[1].receive().map_err(|error| format!("{}: Redis: {error}", show(command)))?;
        // What HELLO tells is about the server.
        if difference.is_some() || number < 2 || compare::is_same(command, &ours, &theirs) {
            continue;
        }
        let earlier: Vec<String> = made[2..number]
            .iter()
            .filter(|other| other.iter().skip(1).any(|word| command[1..].contains(word)))
            .map(|other| format!("    {}", show(other)))
            .collect();
        difference = Some(format!(
            "{}\n  {}\n    ours:  {ours}\n    Redis: {theirs}",
            earlier.join("\n"),
            show(command)
        ));
    }
    Ok(difference)
}

fn show(command: &[Vec<u8>]) -> String {
    let words = command.iter().map(|word| {
        let text = word.escape_ascii().to_string();
        if text.is_empty() || text.contains(' ') { format!("\"{text}\"") } else { text }
    });
    words.collect::<Vec<_>>().join(" ")
}
