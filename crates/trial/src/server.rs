//! The server under test, as a process that can be killed.

use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::Result;

/// How long the server may take to start, also after a kill.
const START_WAIT: Duration = Duration::from_secs(60);

/// How long it may take to end when asked to.
const STOP_WAIT: Duration = Duration::from_secs(20);

const POLL_INTERVAL: Duration = Duration::from_millis(5);

pub struct Server {
    child: Child,
    /// What the ready file says.
    ready: String,
    log: PathBuf,
}

impl Server {
    /// Starts a server on the data in `folder` and waits until it accepts.
    pub fn start(binary: &Path, folder: &Path) -> Result<Self> {
        Self::start_with(binary, folder, &[])
    }

    /// The same with further arguments.
    pub fn start_with(binary: &Path, folder: &Path, arguments: &[&str]) -> Result<Self> {
        let ready = folder.join("ready.json");
        // The file of the process before must not be mistaken for that of this one.
        let _ = std::fs::remove_file(&ready);
        let log = folder.join("server.log");
        let file = File::create(&log).map_err(|error| format!("{}: {error}", log.display()))?;
        let child = command(binary, "serve", folder)
            .args(["--ports=free", "--document-throttling=off"])
            .args(arguments)
            .arg("--ready-file")
            .arg(&ready)
            .stderr(file)
            .stdout(Stdio::null())
            .stdin(Stdio::null())
            .spawn()
            .map_err(|error| format!("{}: {error}", binary.display()))?;
        let mut server = Self { child, ready: String::new(), log };
        server.ready = server.wait_until_ready(&ready)?;
        Ok(server)
    }

    fn wait_until_ready(&mut self, ready: &Path) -> Result<String> {
        let start = Instant::now();
        while start.elapsed() < START_WAIT {
            if let Ok(text) = std::fs::read_to_string(ready) {
                return Ok(text);
            }
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(self.failure(&format!("ended at its start: {status}")));
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        Err(self.failure("was not ready in time"))
    }

    /// Where a front listens, by the ready file.
    pub fn endpoint(&self, front: &str) -> Result<SocketAddr> {
        let ready: serde_json::Value = serde_json::from_str(&self.ready).unwrap_or_default();
        let url = ready["endpoints"][front].as_str();
        let address = url.and_then(|url| url.rsplit("://").next()?.parse().ok());
        address.ok_or(format!("no endpoint of {front} in: {}", self.ready))
    }

    /// The id of the process.
    pub fn process_id(&self) -> u32 {
        self.child.id()
    }

    /// How much memory the process has, in KiB.
    pub fn resident_kib(&self) -> Result<u64> {
        resident_kib(&self.child)
    }

    /// The log of the server so far.
    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// SIGKILL: no destructor runs, nothing is flushed.
    pub fn kill(mut self) -> Result {
        if let Ok(Some(status)) = self.child.try_wait() {
            return Err(self.failure(&format!("ended by itself before it was killed: {status}")));
        }
        self.child.kill().map_err(|error| error.to_string())?;
        self.child.wait().map_err(|error| error.to_string())?;
        Ok(())
    }

    /// Asks the server to end, as an operator would.
    pub fn stop(mut self) -> Result {
        let ask = format!("kill -TERM {}", self.child.id());
        Command::new("sh").args(["-c", &ask]).status().map_err(|error| error.to_string())?;
        let start = Instant::now();
        while start.elapsed() < STOP_WAIT {
            match self.child.try_wait() {
                Ok(Some(status)) if status.success() => return Ok(()),
                Ok(Some(status)) => return Err(self.failure(&format!("ended with {status}"))),
                Ok(None) => std::thread::sleep(POLL_INTERVAL),
                Err(error) => return Err(self.failure(&error.to_string())),
            }
        }
        Err(self.failure("did not end in time"))
    }

    fn failure(&self, what: &str) -> String {
        format!("the server {what}\n{}", self.log())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Both fail only if the server is gone already, which is what we want.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The resident memory of a process.
pub fn resident_kib(process: &Child) -> Result<u64> {
    status_kib(process, "VmRSS:")
}

/// The most that it has been.
pub fn peak_kib(process: &Child) -> Result<u64> {
    status_kib(process, "VmHWM:")
}

fn status_kib(process: &Child, field: &str) -> Result<u64> {
    let path = format!("/proc/{}/status", process.id());
    let status = std::fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    let word = line.and_then(|line| line.split_whitespace().next());
    word.and_then(|word| word.parse().ok()).ok_or(format!("no {field} in {path}"))
}

/// Fails with what `lazuli fsck` says unless it finds nothing.
pub fn fsck(binary: &Path, folder: &Path) -> Result {
    let output = command(binary, "fsck", folder).output().map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    let said = [output.stdout, output.stderr].concat();
    Err(format!("fsck: {}\n{}", output.status, String::from_utf8_lossy(&said)))
}

fn command(binary: &Path, name: &str, folder: &Path) -> Command {
    let mut command = Command::new(binary);
    command.arg(name).arg("--data").arg(folder.join("data"));
    command
}
