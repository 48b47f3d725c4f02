//! Keeps a number of connections busy for a while, each with the next request as soon as the last one is answered.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::pin;
use std::rc::Rc;
use std::time::{Duration, Instant};

use tokio::task::LocalSet;

use super::Result;
use super::connection::Connection;
use super::server::Server;

/// Answers that come before this are not counted: connections are being opened, caches are cold.
const WARM_UP: Duration = Duration::from_millis(300);

/// What a connection sends next.
pub(super) trait Requests {
    /// Writes a whole request; `turn` counts those of this connection.
    fn write(&mut self, turn: u64, request: &mut Vec<u8>);

    /// Whether this is what the service answers to it.
    fn is_expected(&mut self, status: u16, body: &[u8]) -> bool;
}

/// One figure of one server.
#[derive(Clone, Debug, Default)]
pub(super) struct Figure {
    pub(super) per_second: f64,
    /// Answers per second of processor time of the server.
    pub(super) per_cpu: f64,
    pub(super) p50: Duration,
    pub(super) p99: Duration,
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

/// The same against whatever listens at an address, and has used so much of the processor.
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
    let from = Instant::now() + WARM_UP;
    let window = Rc::new((from, from + time));
    let mut tasks = Vec::new();
    for _ in 0..connections {
        let window = window.clone();
        let requests = requests()?;
        tasks.push(local.spawn_local(async move {
            let connection = Connection::open(address).await?;
            busy(connection, requests, &window).await
        }));
    }
    let mut cpu = Duration::ZERO;
    let answers = runtime.block_on(local.run_until(async {
        tokio::time::sleep_until(window.0.into()).await;
        let before = used();
        tokio::time::sleep_until(window.1.into()).await;
        cpu = used().saturating_sub(before);
        gather(tasks).await
    }))?;
    Ok(figure(answers, time, cpu))
}

async fn gather(
    tasks: Vec<
        impl Future<Output = std::result::Result<Result<Vec<Duration>>, tokio::task::JoinError>>,
    >,
) -> Result<Vec<Duration>> {
    let mut all = Vec::new();
    for task in tasks {
        let times = pin!(task).await.map_err(|error| error.to_string())?;
        all.append(&mut times?);
    }
    Ok(all)
}

/// How long each answer took that came within the window.
async fn busy(
    mut connection: Connection,
    mut requests: impl Requests,
    window: &(Instant, Instant),
) -> Result<Vec<Duration>> {
    let mut times = Vec::new();
    let mut request = Vec::new();
    for turn in 0.. {
        request.clear();
        requests.write(turn, &mut request);
        let start = Instant::now();
        let (status, body) = connection.exchange(&request).await?;
        let end = Instant::now();
        if !requests.is_expected(status, body) {
            let body = String::from_utf8_lossy(&body[..body.len().min(2_000)]);
            return Err(format!("{status} {body} to {}", String::from_utf8_lossy(&request)));
        }
        if end > window.1 {
            break;
        }
        if end > window.0 {
            times.push(end - start);
        }
    }
    Ok(times)
}

/// Waits for all of them, and answers the first failure.
pub(super) async fn all(work: Vec<impl Future<Output = Result>>) -> Result {
    let mut running: Vec<_> = work.into_iter().map(|one| Some(Box::pin(one))).collect();
    std::future::poll_fn(|context| {
        let mut is_done = true;
        for slot in &mut running {
            let Some(one) = slot else { continue };
            match one.as_mut().poll(context) {
                std::task::Poll::Ready(Ok(())) => *slot = None,
                std::task::Poll::Ready(Err(error)) => return std::task::Poll::Ready(Err(error)),
                std::task::Poll::Pending => is_done = false,
            }
        }
        if is_done { std::task::Poll::Ready(Ok(())) } else { std::task::Poll::Pending }
    })
    .await
}

fn figure(mut times: Vec<Duration>, time: Duration, cpu: Duration) -> Figure {
    times.sort_unstable();
    let at = |share: f64| {
        let index = (times.len() as f64 * share) as usize;
        times.get(index).or(times.last()).copied().unwrap_or_default()
    };
    let count = times.len() as f64;
    Figure {
        per_second: count / time.as_secs_f64(),
        per_cpu: count / cpu.as_secs_f64().max(1e-9),
        p50: at(0.50),
        p99: at(0.99),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_counts_answers_and_ranks_their_times() {
        let times = (1..=100).map(Duration::from_millis).collect();
        let figure = figure(times, Duration::from_secs(10), Duration::from_secs(2));
        assert_eq!((figure.per_second, figure.per_cpu), (10.0, 50.0));
        assert_eq!(figure.p50, Duration::from_millis(51));
        assert_eq!(figure.p99, Duration::from_millis(100));
    }
}
