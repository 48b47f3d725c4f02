//! Measures a start with all fronts, the first one of all and a later one, and the memory of an idle server. Fails if a
//! bound is missed.
//!
//! `cargo run --release -p lazuli-bench --bin start [FOLDER]`: the folder is where the disk is that counts. The server is
//! this same program, started again with `--serve`: it links what `lazuli` links.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use lazuli_bench::{Report, conclude};
use lazuli_server::settings::{Settings, Sources};
use lazuli_trial::server::resident_kib;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const ROUNDS: usize = 9;
const FIRST_START_MS_MAX: f64 = 150.0;
const COLD_START_MS_MAX: f64 = 60.0;
const IDLE_MIB_MAX: f64 = 40.0;
/// How long an idle server is left alone before its memory is read.
const IDLE: Duration = Duration::from_secs(1);

type Result<T> = std::result::Result<T, String>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match &arguments[..] {
        [serve, data] if serve == "--serve" => run_server(data),
        [folder] => measure(Path::new(folder)),
        _ => measure(&std::env::temp_dir()),
    };
    conclude(done)
}

fn run_server(data: &str) -> Result<Report> {
    let mut flags: BTreeMap<_, _> = [("ports", "free".to_owned())].into();
    flags.insert("data", data.to_owned());
    let sources = Sources { flags, folder: data.into(), ..Sources::default() };
    let settings = sources.texts().and_then(|texts| Settings::read(&texts));
    let served = lazuli_server::serve(settings.map_err(|error| error.to_string())?);
    served.map(|()| Report::default()).map_err(|error| error.to_string())
}

fn measure(folder: &Path) -> Result<Report> {
    let folder = tempfile::tempdir_in(folder).map_err(|error| error.to_string())?;
    let (mut first, mut cold, mut idle_kib) = (Vec::new(), Vec::new(), 0);
    for round in 0..ROUNDS {
        let data = folder.path().join(format!("data-{round}"));
        let (took, server) = start(&data)?;
        first.push(took);
        stop(server)?;
        let (took, server) = start(&data)?;
        cold.push(took);
        if round == 0 {
            std::thread::sleep(IDLE);
            idle_kib = resident_kib(&server)?;
        }
        stop(server)?;
    }
    let middle_ms = |mut times: Vec<Duration>| {
        times.sort_unstable();
        times[ROUNDS / 2].as_secs_f64() * 1e3
    };
    let mut report = Report::default();
    report.at_most("first start of all, ms", middle_ms(first), FIRST_START_MS_MAX);
    report.at_most("cold start, ms", middle_ms(cold), COLD_START_MS_MAX);
    report.at_most("idle memory, MiB", idle_kib as f64 / 1024.0, IDLE_MIB_MAX);
    Ok(report)
}

/// Starts a server and waits for its ready line.
fn start(data: &Path) -> Result<(Duration, Child)> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let began = Instant::now();
    let mut server = Command::new(program)
        .arg("--serve")
        .arg(data)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| error.to_string())?;
    let mut line = String::new();
    let output = server.stdout.take().ok_or("the server has no output")?;
    BufReader::new(output).read_line(&mut line).map_err(|error| error.to_string())?;
    match line.starts_with("lazuli ready") {
        true => Ok((began.elapsed(), server)),
        false => Err(format!("the server did not start: {line}")),
    }
}

fn stop(mut server: Child) -> Result<()> {
    let stopped = Command::new("kill").arg(server.id().to_string()).status();
    stopped.and_then(|_| server.wait()).map(drop).map_err(|error| error.to_string())
}
