//! The cache: what was answered is there after a kill, as far as the setting promises it, and transactions are whole.
//!
//! Every writer has keys of its own: a counter, a list that gets each number of the counter, and two counters in one slot
//! that are only changed together. So what must be there follows from the last answer, and from the time of every answer
//! where a second may be lost.

use std::fmt;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::ops::Range;
use std::time::{Duration, Instant};

use lazuli_resp::{Answer, read_answer};
use lazuli_trial::Result;

use super::Load;

/// How long before the kill an answer must have been for nothing of it to be lost under `everysec`: the second that is
/// promised, and what a busy machine adds.
const LOST_MAX: Duration = Duration::from_millis(2_500);

/// What a writer was answered.
pub(crate) struct Written {
    writer: usize,
    /// When each number of the counter was answered, from the first one of this round on.
    first: i64,
    answered: Vec<Instant>,
    /// When the connection broke.
    ended: Instant,
}

/// The load under one of the two durable settings.
#[derive(Default)]
pub(crate) struct Cache<const ALWAYS: bool> {
    writes: usize,
    lost: usize,
}

impl<const ALWAYS: bool> Load for Cache<ALWAYS> {
    type Log = Written;
    const FRONT: &str = "cache";
    const WRITERS: usize = 8;
    const LIFE_MS: Range<u64> = if ALWAYS { 100..1_500 } else { 500..4_000 };
    const ARGUMENTS: &[&str] =
        if ALWAYS { &["--cache-persistence=always"] } else { &["--cache-persistence=everysec"] };

    fn create(&self, _: SocketAddr) -> Result {
        Ok(())
    }

    fn write(&self, address: SocketAddr, _: u64, writer: usize) -> Result<Written> {
        let mut written = Written { writer, first: 0, answered: Vec::new(), ended: Instant::now() };
        let Ok(mut client) = Client::connect(address) else { return Ok(written) };
        written.first = match client.ask(&["GET", &format!("n:{writer}")]) {
            Ok(Answer::Bulk(text)) => number(&text)?,
            Ok(Answer::Null(_)) => 0,
            Ok(other) => return Err(format!("GET: {other:?}")),
            Err(Broken) => return Ok(written),
        };
        let mut next = written.first;
        loop {
            next += 1;
            match step(&mut client, writer, next) {
                Ok(()) => written.answered.push(Instant::now()),
                Err(Stop::Broken) => break,
                Err(Stop::Wrong(what)) => return Err(what),
            }
        }
        written.ended = Instant::now();
        Ok(written)
    }

    fn settle(&mut self, address: SocketAddr, logs: Vec<Written>) -> Result {
        let mut client = Client::connect(address).map_err(|_| "cannot connect")?;
        for log in logs {
            self.check(&mut client, &log)?;
        }
        Ok(())
    }
}

impl<const ALWAYS: bool> Cache<ALWAYS> {
    fn check(&mut self, client: &mut Client, log: &Written) -> Result {
        let writer = log.writer;
        let mut get = |key: String| match client.ask(&["GET", &key]) {
            Ok(Answer::Bulk(text)) => number(&text),
            Ok(Answer::Null(_)) => Ok(0),
            other => Err(format!("GET {key}: {:?}", other.ok())),
        };
        let found = get(format!("n:{writer}"))?;
        let (one, two) = (get(format!("a{{{writer}}}"))?, get(format!("b{{{writer}}}"))?);
        let sent = log.first + log.answered.len() as i64 + 1;
        let safe = |it: &&Instant| ALWAYS || log.ended.duration_since(**it) > LOST_MAX;
        let promised = log.first + log.answered.iter().filter(safe).count() as i64;
        if !(promised..=sent).contains(&found) {
            return Err(format!("counter {writer} is {found}, not from {promised} to {sent}"));
        }
        if one != two {
            return Err(format!("a transaction is torn: {one} and {two}"));
        }
        // The three keys of a step are in different slots: the last step may be there in part, none before it.
        if (one - found).abs() > 1 {
            return Err(format!("counter {writer} is {found}, and its transaction {one}"));
        }
        let list = client.ask(&["LRANGE", &format!("l:{writer}"), "0", "-1"]);
        let Ok(Answer::Array(items)) = list else { return Err("LRANGE failed".into()) };
        for (index, item) in items.iter().enumerate() {
            if *item != Answer::Bulk((index + 1).to_string().into_bytes()) {
                return Err(format!("element {index} of list {writer} is {item:?}"));
            }
        }
        if (items.len() as i64 - found).abs() > 1 {
            return Err(format!("counter {writer} is {found}, its list has {}", items.len()));
        }
        self.writes += log.answered.len();
        self.lost += (sent - 1 - found).max(0) as usize;
        self.level(client, writer, found, items.len() as i64, one)
    }

    /// Brings the keys of a writer to the same number, so that the next round begins with whole steps.
    fn level(&self, client: &mut Client, writer: usize, n: i64, l: i64, t: i64) -> Result {
        let most = n.max(l).max(t).to_string();
        let broken = |_| "the connection broke while nobody was killed".to_owned();
        let (a, b) = (format!("a{{{writer}}}"), format!("b{{{writer}}}"));
        client
            .ask(&["MSET", &format!("n:{writer}"), &most, &a, &most, &b, &most])
            .map_err(broken)?;
        if l < n.max(t) {
            client.ask(&["RPUSH", &format!("l:{writer}"), &most]).map_err(broken)?;
        }
        Ok(())
    }
}

impl<const ALWAYS: bool> fmt::Display for Cache<ALWAYS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { writes, lost } = self;
        write!(f, "{writes} steps answered, {lost} of them lost within what is promised")
    }
}

enum Stop {
    Broken,
    Wrong(String),
}

/// One step: the counter, the list, and the transaction.
fn step(client: &mut Client, writer: usize, next: i64) -> std::result::Result<(), Stop> {
    let text = next.to_string();
    let (a, b) = (format!("a{{{writer}}}"), format!("b{{{writer}}}"));
    let commands: [&[&str]; 6] = [
        &["RPUSH", &format!("l:{writer}"), &text],
        &["MULTI"],
        &["INCR", &a],
        &["INCR", &b],
        &["EXEC"],
        &["INCR", &format!("n:{writer}")],
    ];
    for command in commands {
        match client.ask(command) {
            Ok(Answer::Error(text)) => {
                return Err(Stop::Wrong(String::from_utf8_lossy(&text).into_owned()));
            }
            Ok(Answer::Integer(number)) if number != next => {
                return Err(Stop::Wrong(format!("{command:?} answered {number}, not {next}")));
            }
            Ok(_) => {}
            Err(Broken) => return Err(Stop::Broken),
        }
    }
    Ok(())
}

fn number(text: &[u8]) -> Result<i64> {
    lazuli_resp::parse_integer(text).ok_or(format!("no number: {text:?}"))
}

/// The connection broke.
#[derive(Debug)]
struct Broken;

struct Client {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Client {
    fn connect(address: SocketAddr) -> std::result::Result<Self, Broken> {
        let stream = TcpStream::connect(address).map_err(|_| Broken)?;
        stream.set_nodelay(true).map_err(|_| Broken)?;
        Ok(Self { stream, buffer: Vec::new() })
    }

    fn ask(&mut self, command: &[&str]) -> std::result::Result<Answer, Broken> {
        let mut request = format!("*{}\r\n", command.len());
        for argument in command {
            request.push_str(&format!("${}\r\n{argument}\r\n", argument.len()));
        }
        self.stream.write_all(request.as_bytes()).map_err(|_| Broken)?;
        loop {
            if let Ok(Some((answer, length))) = read_answer(&self.buffer) {
                self.buffer.drain(..length);
                return Ok(answer);
            }
            let mut chunk = [0; 16 * 1024];
            match self.stream.read(&mut chunk) {
                Ok(count @ 1..) => self.buffer.extend_from_slice(&chunk[..count]),
                _ => return Err(Broken),
            }
        }
    }
}
