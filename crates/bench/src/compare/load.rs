//! Keeps a number of connections busy for a while, each with the next request as soon as the last one is answered.
//!
//! A figure counts the answers within a window that begins when all is warm. Where too few of them come in that time, the
//! connections go on until each has had some, and all answers since the start are divided by the time until the last one.

use std::cell::Cell;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::task::{JoinSet, LocalSet};

use super::Result;
use super::connection::{Answer, Connection};
use super::server::Server;
use crate::figures::Latency;

/// Answers that come before this are not counted: connections are being opened, caches are cold.
const WARM_UP: Duration = Duration::from_millis(300);
/// A window is long enough if it has this many answers for each connection.
const ANSWERS_LEAST: usize = 2;
/// How long is waited for them, from the start.
const LONGEST: Duration = Duration::from_secs(90);

/// What a connection sends next.
pub(super) trait Requests {
    /// Writes a whole request; `turn` counts those of this connection.
    fn write(&mut self, turn: u64, request: &mut Vec<u8>);

    /// Whether anything but the length of a body is looked at.
    fn reads_body(&self) -> bool {
        true
    }

    /// Whether this is what the service answers to it.
    fn is_expected(&mut self, answer: &Answer<'_>) -> bool;
}

/// One figure of one server.
#[derive(Clone, Debug, Default)]
pub(super) struct Figure {
    pub(super) per_second: f64,
    /// Answers per second of processor time of the server.
    pub(super) per_cpu: f64,
    pub(super) p50: Duration,
    pub(super) p99: Duration,
    /// Connections that the server ended before it had answered.
    pub(super) reopened: u64,
}

/// Runs `connections` of them against a server, each with requests of its own.
pub(super) fn run<R: Requests + 'static>(
    server: &Server,
    connections: usize,
    time: Duration,
    requests: impl Fn() -> Result<R>,
) -> Result<Figure> {
    run_at(server.address, connections, time, || server.cpu(), requests)
}

/// The same against any server at an address; `used` is its processor time so far.
pub(super) fn run_at<R: Requests + 'static>(
    address: SocketAddr,
    connections: usize,
    time: Duration,
    used: impl Fn() -> Duration,
    requests: impl Fn() -> Result<R>,
) -> Result<Figure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let local = LocalSet::new();
    let window = Window::new(Instant::now(), time);
    let mut cpu = Cpu { start: used(), ..Cpu::default() };
    let mut tasks = Vec::new();
    for _ in 0..connections {
        let requests = requests()?;
        tasks.push(local.spawn_local(async move {
            let connection = Connection::open(address).await?;
            busy(connection, requests, window).await
        }));
    }
    let answers = runtime.block_on(local.run_until(async {
        tokio::time::sleep_until(window.from.into()).await;
        cpu.from = used();
        tokio::time::sleep_until(window.until.into()).await;
        cpu.until = used();
        let answers = gather(tasks).await;
        cpu.end = used();
        answers
    }))?;
    Ok(answers.figure(connections, window, cpu))
}

/// When answers count.
#[derive(Clone, Copy)]
struct Window {
    start: Instant,
    from: Instant,
    until: Instant,
    /// When the connections give up.
    end: Instant,
}

impl Window {
    fn new(start: Instant, time: Duration) -> Self {
        let from = start + WARM_UP;
        let until = from + time;
        Self { start, from, until, end: until.max(start + LONGEST) }
    }
}

/// What the server had used of the processor at the ends of the window, at the start, and when all had come.
#[derive(Clone, Copy, Default)]
struct Cpu {
    start: Duration,
    from: Duration,
    until: Duration,
    end: Duration,
}

/// When answers came and how long they took.
#[derive(Default)]
struct Answers {
    times: Vec<(Instant, Duration)>,
    reopened: u64,
}

async fn gather(
    tasks: Vec<impl Future<Output = std::result::Result<Result<Answers>, tokio::task::JoinError>>>,
) -> Result<Answers> {
    let mut all = Answers::default();
    for task in tasks {
        let mut answers = pin!(task).await.map_err(|error| error.to_string())??;
        all.times.append(&mut answers.times);
        all.reopened += answers.reopened;
    }
    Ok(all)
}

/// Sends requests until the window is over and enough are answered.
async fn busy(
    mut connection: Connection,
    mut requests: impl Requests,
    window: Window,
) -> Result<Answers> {
    let mut times = Vec::new();
    let mut request = Vec::new();
    for turn in 0.. {
        request.clear();
        requests.write(turn, &mut request);
        let start = Instant::now();
        let asked = connection.ask(&request, requests.reads_body());
        let Ok(answer) = tokio::time::timeout_at(window.end.into(), asked).await else { break };
        let (answer, end) = (answer?, Instant::now());
        if !requests.is_expected(&answer) {
            let (status, body) = (answer.status, answer.body);
            let body = String::from_utf8_lossy(&body[..body.len().min(2_000)]);
            return Err(format!("{status} {body} to {}", String::from_utf8_lossy(&request)));
        }
        times.push((end, end - start));
        if end > window.until && times.len() >= ANSWERS_LEAST {
            break;
        }
    }
    Ok(Answers { times, reopened: connection.reopened })
}

impl Answers {
    fn figure(self, connections: usize, window: Window, cpu: Cpu) -> Figure {
        let within = |end: Instant| end > window.from && end <= window.until;
        let counted = self.times.iter().filter(|(end, _)| within(*end)).count();
        if counted >= ANSWERS_LEAST * connections {
            let times = self.times.iter().filter(|(end, _)| within(*end)).map(|(_, took)| *took);
            let (time, cpu) = (window.until - window.from, cpu.until.saturating_sub(cpu.from));
            return figure(times.collect(), time, cpu, self.reopened);
        }
        let last = self.times.iter().map(|(end, _)| *end).max();
        // No answer at all counts as one at the end of the wait.
        let time = last.unwrap_or(window.end) - window.start;
        let times = match last {
            Some(_) => self.times.into_iter().map(|(_, took)| took).collect(),
            None => vec![time],
        };
        figure(times, time, cpu.end.saturating_sub(cpu.start), self.reopened)
    }
}

/// A number that was not given out before: it makes names unlike those of all other connections and runs.
pub(super) fn nonce() -> u64 {
    static NONCE: AtomicU64 = AtomicU64::new(0);
    NONCE.fetch_add(1, Ordering::Relaxed)
}

/// Sends the requests with the numbers from 0 to `count` over some connections, until `wait` is over. Each answer must be as
/// expected. Says how many were answered.
pub(super) fn send_all(
    server: &Server,
    count: u64,
    connections: usize,
    wait: Duration,
    request: impl Fn(u64) -> Vec<u8> + 'static,
    is_expected: fn(u16, &[u8]) -> bool,
) -> Result<u64> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let (address, end) = (server.address, Instant::now() + wait);
    let (next, request) = (Rc::new(Cell::new(0)), Rc::new(request));
    let mut tasks = JoinSet::new();
    let local = LocalSet::new();
    for _ in 0..connections {
        let (next, request) = (next.clone(), request.clone());
        let work = async move {
            let mut connection = Connection::open(address).await?;
            let mut done = 0;
            while Instant::now() < end && next.get() < count {
                let number = next.replace(next.get() + 1);
                let answer = connection.ask(&request(number), true).await?;
                if !is_expected(answer.status, answer.body) {
                    let body = String::from_utf8_lossy(answer.body);
                    return Err(format!("{} {body}", answer.status));
                }
                done += 1;
            }
            Ok(done)
        };
        tasks.spawn_local_on(work, &local);
    }
    let done = local.block_on(&runtime, tasks.join_all());
    done.into_iter().sum()
}

fn figure(times: Vec<Duration>, time: Duration, cpu: Duration, reopened: u64) -> Figure {
    let Latency { count, p50, p99, .. } = Latency::of(times);
    let (per_second, per_cpu) =
        (count as f64 / time.as_secs_f64(), count as f64 / cpu.as_secs_f64().max(1e-9));
    Figure { per_second, per_cpu, p50, p99, reopened }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_counts_answers_and_ranks_their_times() {
        let times = (1..=100).map(Duration::from_millis).collect();
        let figure = figure(times, Duration::from_secs(10), Duration::from_secs(2), 0);
        assert_eq!((figure.per_second, figure.per_cpu), (10.0, 50.0));
        assert_eq!(figure.p50, Duration::from_millis(51));
        assert_eq!(figure.p99, Duration::from_millis(100));
    }

    /// Two connections for two seconds, answered at these moments.
    fn measured(at: &[f64]) -> Figure {
        let start = Instant::now();
        let second = Duration::from_secs(1);
        let moment = |at: f64| start + Duration::from_secs_f64(WARM_UP.as_secs_f64() + at);
        let times = at.iter().map(|at| (moment(*at), second));
        let answers = Answers { times: times.collect(), reopened: 0 };
        let cpu = Cpu { start: second, from: second, until: 2 * second, end: 5 * second };
        answers.figure(2, Window::new(start, 2 * second), cpu)
    }

    #[test]
    fn answers_within_the_window_count_if_there_are_enough_and_all_of_them_otherwise() {
        let figure = measured(&[-0.1, 0.5, 1.0, 1.5, 2.0, 2.5]);
        assert_eq!((figure.per_second, figure.per_cpu), (2.0, 4.0));
        let figure = measured(&[-0.1, 1.0, 4.0, 6.7]);
        let near = |value: f64, to: f64| (value - to).abs() < 1e-6;
        assert!(near(figure.per_second, 4.0 / 7.0) && near(figure.per_cpu, 1.0), "{figure:?}");
        let figure = measured(&[]);
        assert!(near(figure.per_second, 1.0 / LONGEST.as_secs_f64()), "{figure:?}");
    }
}
