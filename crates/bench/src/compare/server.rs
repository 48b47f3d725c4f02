//! The two servers, as processes whose time and memory can be read.

use std::fs::File;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use lazuli_trial::server::{peak_kib, resident_kib};

use super::{Front, Options, Result};

/// How long a server may take to start with the data that it has.
const START_WAIT: Duration = Duration::from_secs(120);
const START_LOOK: Duration = Duration::from_millis(1);

/// A server has settled when it uses less than this share of a core over this time.
const SETTLED_SHARE: f64 = 0.03;
const SETTLED_LOOK: Duration = Duration::from_millis(400);
/// How long is waited for that.
const SETTLED_WAIT: Duration = Duration::from_secs(30);

/// The command of the emulator of documents, in the folder of its package.
const DOCUMENT_COMMAND: &str = "lib/cli.js";

/// Starts the emulator of documents so that it keeps connections, by its module.
const KEEPING_PEER: &str = "require(process.argv[1]).createHttpServer({ keepAlive: true })\
     .listen(Number(process.argv[2]), '127.0.0.1');";

/// Which of the two, and how it is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Ours, an answer means that the bytes are on disk.
    Synced,
    /// Ours, an answer means that the operating system has the bytes.
    Relaxed,
    /// The emulator of the front, as its command starts it.
    Peer,
    /// That of documents, with connections that are kept. Its command closes each behind one answer.
    KeepingPeer,
}

pub(super) struct Server {
    child: Child,
    pub(super) address: SocketAddr,
    /// From its start until it took a connection.
    pub(super) started: Duration,
}

impl Server {
    pub(super) fn start(kind: Kind, options: &Options, folder: &Path) -> Result<Self> {
        std::fs::create_dir_all(folder).map_err(|error| error.to_string())?;
        let address = free_address()?;
        let log = File::create(folder.join("server.log")).map_err(|error| error.to_string())?;
        let mut command = command(kind, options, folder, address)?;
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let start = Instant::now();
        let child = command.spawn().map_err(|error| format!("{command:?}: {error}"))?;
        let mut server = Self { child, address, started: Duration::ZERO };
        while TcpStream::connect(address).is_err() {
            if start.elapsed() > START_WAIT || !matches!(server.child.try_wait(), Ok(None)) {
                return Err(format!("{kind:?} did not start: see {}", folder.display()));
            }
            std::thread::sleep(START_LOOK);
        }
        server.started = start.elapsed();
        Ok(server)
    }

    /// The processor time that it has used so far.
    pub(super) fn cpu(&self) -> Duration {
        cpu_of(self.child.id())
    }

    /// Its resident memory, in bytes.
    pub(super) fn memory(&self) -> Result<u64> {
        Ok(resident_kib(&self.child)? * 1024)
    }

    /// The most that its resident memory has been, in bytes.
    pub(super) fn peak_memory(&self) -> Result<u64> {
        Ok(peak_kib(&self.child)? * 1024)
    }

    /// Waits until it has done what it does behind the requests: compactions, or saving its whole state.
    pub(super) fn settle(&self) {
        settled(self.child.id());
    }
}

/// Waits until a process does next to nothing.
pub(super) fn settled(process: u32) {
    let start = Instant::now();
    while start.elapsed() < SETTLED_WAIT {
        let before = cpu_of(process);
        std::thread::sleep(SETTLED_LOOK);
        let used = cpu_of(process).saturating_sub(before);
        if used.as_secs_f64() < SETTLED_LOOK.as_secs_f64() * SETTLED_SHARE {
            return;
        }
    }
}

/// The processor time that a process has used so far.
pub(super) fn cpu_of(process: u32) -> Duration {
    let folder = format!("/proc/{process}/task");
    let Ok(threads) = std::fs::read_dir(folder) else { return Duration::ZERO };
    let time = |thread: std::fs::DirEntry| {
        let times = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
        times.split(' ').next()?.parse().ok().map(Duration::from_nanos)
    };
    threads.filter_map(|thread| time(thread.ok()?)).sum()
}

impl Drop for Server {
    fn drop(&mut self) {
        // Both fail only if the server is gone already, which is what we want.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn command(kind: Kind, options: &Options, folder: &Path, address: SocketAddr) -> Result<Command> {
    let port = address.port().to_string();
    if kind == Kind::KeepingPeer {
        let mut command = Command::new("node");
        command.args(["-e", KEEPING_PEER]).arg(&options.peer).arg(port);
        return Ok(command);
    }
    if kind == Kind::Peer && options.front == Front::Documents {
        let mut command = Command::new("node");
        command.arg(options.peer.join(DOCUMENT_COMMAND));
        command.args(["--no-ssl", "--host", "127.0.0.1", "--port", &port]);
        return Ok(command);
    }
    if kind == Kind::Peer {
        let mut command = Command::new("node");
        command.arg(&options.peer).args(["--silent", "--loose", "--skipApiVersionCheck"]);
        command.arg("--disableTelemetry").arg("--location").arg(folder.join("data"));
        for (name, front) in [
            ("--blobPort", Front::Blobs),
            ("--queuePort", Front::Queues),
            ("--tablePort", Front::Tables),
        ] {
            let other = free_address()?.port().to_string();
            command.args([name, if front == options.front { &port } else { &other }]);
        }
        return Ok(command);
    }
    let durability = if kind == Kind::Relaxed { "relaxed" } else { "synced" };
    let mut command = Command::new(&options.binary);
    command.arg("serve").arg("--data").arg(folder.join("data"));
    for (name, front) in [
        ("--blob-port", Front::Blobs),
        ("--document-port", Front::Documents),
        ("--queue-port", Front::Queues),
        ("--table-port", Front::Tables),
        ("--bus-port", Front::Bus),
    ] {
        let is_it = front == options.front || (front == Front::Bus && options.front == Front::Hub);
        command.args([name, if is_it { &port } else { "0" }]);
    }
    // Request units are counted, but not limited: the emulator has none.
    command.args(["--document-throttling", "off"]);
    command.args(["--ports", "free", "--durability", durability]);
    Ok(command)
}

pub(super) fn free_address() -> Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    listener.map_err(|error| error.to_string())
}
