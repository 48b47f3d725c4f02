//! Running other programs: to the end, or in the background for exactly as long as we live.

use std::fs::File;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::{Failure, Result};

/// How often a condition is looked at while waiting for it.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// How long a program has to end after it was asked to.
const STOP_WAIT: Duration = Duration::from_secs(20);

/// Lines of a log that are shown when its program failed.
const LOG_LINES_SHOWN: usize = 40;

/// Runs a program to its end, its output going where ours goes. Anything but exit code 0 is a failure.
pub(crate) fn run(command: &mut Command) -> Result {
    let line = describe(command);
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(Failure::failed(format!("{line}: {status}"))),
        Err(error) => Err(Failure::failed(format!("{line} did not start: {error}"))),
    }
}

/// Whether a program starts and ends with exit code 0, its output thrown away.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|it| it.success())
}

/// The command as a person would type it, without the folders in front of the program.
pub(crate) fn describe(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or(command.get_program());
    let mut line = program.to_string_lossy().into_owned();
    for word in command.get_args() {
        line.push(' ');
        line.push_str(&word.to_string_lossy());
    }
    line
}

/// A program in the background, its output in a log file. Dropping it kills it, so that a failed or panicking step
/// leaves nothing behind.
pub(crate) struct Background {
    child: Child,
    log: PathBuf,
    line: String,
}

impl Background {
    pub(crate) fn start(command: &mut Command, log: &Path) -> Result<Self> {
        let line = describe(command);
        let file = File::create(log).map_err(|error| unusable(log, &error))?;
        let copy = file.try_clone().map_err(|error| unusable(log, &error))?;
        let child = command
            .stdin(Stdio::null())
            .stdout(file)
            .stderr(copy)
            .spawn()
            .map_err(|error| Failure::failed(format!("{line} did not start: {error}")))?;
        Ok(Self { child, log: log.to_owned(), line })
    }

    /// Waits until `ready` answers something. Fails when the program ends before that, or after `limit`.
    pub(crate) fn wait_for<T>(
        &mut self,
        limit: Duration,
        mut ready: impl FnMut() -> Option<T>,
    ) -> Result<T> {
        let start = Instant::now();
        loop {
            if let Some(answer) = ready() {
                return Ok(answer);
            }
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(self.failure(&format!("ended before it was ready: {status}")));
            }
            if start.elapsed() > limit {
                return Err(self.failure(&format!("was not ready within {limit:?}")));
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    /// Asks the program to end (SIGTERM) and waits until it has; it must end with exit code 0.
    pub(crate) fn stop(mut self) -> Result {
        // The shell's own `kill` is there on every machine, the program of that name is not.
        let ask = format!("kill -TERM {}", self.child.id());
        run(Command::new("sh").args(["-c", &ask]))?;
        let start = Instant::now();
        while start.elapsed() < STOP_WAIT {
            match self.child.try_wait() {
                Ok(Some(status)) if status.success() => return Ok(()),
                Ok(Some(status)) => return Err(self.failure(&format!("ended with {status}"))),
                Ok(None) => std::thread::sleep(POLL_INTERVAL),
                Err(error) => return Err(self.failure(&error.to_string())),
            }
        }
        Err(self.failure(&format!("did not end within {STOP_WAIT:?} of SIGTERM")))
    }

    fn failure(&self, what: &str) -> Failure {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        let shown = lines[lines.len().saturating_sub(LOG_LINES_SHOWN)..].join("\n");
        Failure::failed(format!("{} {what}\n{shown}", self.line))
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        // Both fail only if the program is gone already, which is what we want.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A port that was free a moment ago, for programs that cannot choose one by themselves.
pub(crate) fn free_port() -> Result<u16> {
    TcpListener::bind("127.0.0.1:0")
        .and_then(|listener| listener.local_addr())
        .map(|address| address.port())
        .map_err(|error| Failure::failed(format!("no free port on loopback: {error}")))
}

/// An empty folder at `path`, whatever was there before.
pub(crate) fn fresh_folder(path: &Path) -> Result {
    if path.exists() {
        std::fs::remove_dir_all(path).map_err(|error| unusable(path, &error))?;
    }
    std::fs::create_dir_all(path).map_err(|error| unusable(path, &error))
}

pub(crate) fn unusable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::failed(format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    fn log(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("xtask-{name}-{}.log", std::process::id()))
    }

    #[test]
    fn a_program_that_fails_is_a_failure() {
        assert!(run(&mut shell("exit 0")).is_ok());
        assert!(matches!(run(&mut shell("exit 3")), Err(Failure::Failed(_))));
        assert!(!succeeds(&mut Command::new("no-such-program-anywhere")));
    }

    #[test]
    fn a_program_that_ends_before_it_is_ready_shows_its_log() {
        let log = log("ends-early");
        let mut program = Background::start(&mut shell("echo broken pipe organ; exit 1"), &log);
        let program = program.as_mut().unwrap();
        let waited = program.wait_for(Duration::from_secs(10), || None::<()>);
        let Err(Failure::Failed(message)) = waited else { panic!("it cannot be ready") };
        assert!(message.contains("broken pipe organ"), "{message}");
        std::fs::remove_file(log).unwrap();
    }

    #[test]
    fn a_dropped_program_is_gone() {
        let log = log("dropped");
        // `exec` makes the sleeper the child itself, as a server is.
        let program = Background::start(&mut shell("exec sleep 600"), &log).unwrap();
        let alive = format!("kill -0 {}", program.child.id());
        assert!(succeeds(&mut shell(&alive)));
        drop(program);
        assert!(!succeeds(&mut shell(&alive)));
        std::fs::remove_file(log).unwrap();
    }
}
