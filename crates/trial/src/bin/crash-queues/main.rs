//! Kill -9 under producers and consumers, round after round on the same queues: every message whose put was answered comes
//! at least once, no two hold one at the same time, none comes after its time to live, and they come in the order in
//! which they became visible. Run by `cargo xtask crash-queues`.

mod consumers;
mod history;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use lazuli_trial::options::Options;
use lazuli_trial::server::{self, Server};
use lazuli_trial::{Result, queues};

use consumers::{HIDDEN_SECONDS_MAX, QUEUES, work};
use history::History;

const WORKERS: usize = 12;

/// The server dies this long after the first worker starts, at least and at most.
const LIFE_MS_MIN: u64 = 100;
const LIFE_MS_MAX: u64 = 1_500;

fn main() -> ExitCode {
    match Options::read().and_then(|options| run(&options)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("crash-queues: {message}");
            ExitCode::from(1)
        }
    }
}

fn run(options: &Options) -> Result {
    let rounds: u64 = options.value("--rounds")?;
    let random = lazuli_env::real::env().random;
    let mut history = History::default();
    for round in 0..rounds {
        let server = Server::start(&options.binary, &options.folder)?;
        if round == 0 {
            for queue in QUEUES {
                queues::create_at(server.queue_address()?, queue)?;
            }
        }
        let life = LIFE_MS_MIN + random.below(LIFE_MS_MAX - LIFE_MS_MIN);
        let address = server.queue_address()?;
        let workers: Vec<_> = (0..WORKERS)
            .map(|worker| std::thread::spawn(move || work(address, round, worker)))
            .collect();
        std::thread::sleep(Duration::from_millis(life));
        server.kill()?;
        for worker in workers {
            let events = worker.join().map_err(|_| "a worker panicked".to_owned())??;
            history.note(events)?;
        }
        history.check()?;
        server::fsck(&options.binary, &options.folder)?;
    }
    let server = Server::start(&options.binary, &options.folder)?;
    // Whoever has hidden something from others has then let go of it.
    std::thread::sleep(Duration::from_secs(HIDDEN_SECONDS_MAX + 1));
    let start = Instant::now();
    for queue in QUEUES {
        history.note(consumers::drain(server.queue_address()?, queue)?)?;
    }
    history.check()?;
    history.check_nothing_lost()?;
    let drained = start.elapsed();
    server.stop()?;
    server::fsck(&options.binary, &options.folder)?;
    println!("{rounds} rounds of kill -9 under {WORKERS} connections\n{history}");
    println!("worked off in {} ms; fsck clean after every kill and stop", drained.as_millis());
    Ok(())
}
