//! The servers: ours and Debian's, each a process whose time and memory can be read.

use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use lazuli_trial::server::{Server, resident_kib};

use super::super::server::{cpu_of, free_address, settled};
use super::super::{Options, Result};

const START_WAIT: Duration = Duration::from_secs(30);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Ours { is_persistent: bool },
    Redis { is_persistent: bool },
}

/// A server that ends with this value.
pub(super) struct Peer {
    process: Process,
    pub(super) address: SocketAddr,
}

enum Process {
    Ours(Server),
    Redis(Child),
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Self::Redis(child) = self {
            // Both fail only if it is gone already, which is what we want.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Peer {
    pub(super) fn start(options: &Options, kind: Kind) -> Result<Self> {
        static LAST: AtomicU32 = AtomicU32::new(0);
        let number = LAST.fetch_add(1, Ordering::Relaxed);
        let folder = options.folder.join(format!("server-{number}"));
        std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
        match kind {
            Kind::Ours { is_persistent } => {
                let setting = if is_persistent { "everysec" } else { "none" };
                let persistence = format!("--cache-persistence={setting}");
                let server = Server::start_with(&options.binary, &folder, &[&persistence])?;
                let address = server.endpoint("cache")?;
                Ok(Self { process: Process::Ours(server), address })
            }
            Kind::Redis { is_persistent } => {
                let address = free_address()?;
                let mut command = Command::new(&options.peer);
                command.args(["--port", &address.port().to_string(), "--bind", "127.0.0.1"]);
                command.args(["--save", "", "--appendfsync", "everysec"]);
                command.args(["--appendonly", if is_persistent { "yes" } else { "no" }]);
                // Rewriting the file in the middle of a figure would be compared with nothing of ours.
                command.args(["--auto-aof-rewrite-percentage", "0"]);
                command.arg("--dir").arg(&folder).stdin(Stdio::null()).stdout(Stdio::null());
                let child = command.spawn().map_err(|error| format!("{command:?}: {error}"))?;
                let peer = Self { process: Process::Redis(child), address };
                peer.wait()?;
                Ok(peer)
            }
        }
    }

    fn wait(&self) -> Result {
        let began = Instant::now();
        while TcpStream::connect(self.address).is_err() {
            if began.elapsed() > START_WAIT {
                return Err("redis-server did not start".to_owned());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    fn process_id(&self) -> u32 {
        match &self.process {
            Process::Ours(server) => server.process_id(),
            Process::Redis(child) => child.id(),
        }
    }

    /// The processor time that it has used so far.
    pub(super) fn cpu(&self) -> Duration {
        cpu_of(self.process_id())
    }

    /// Its resident memory, in bytes.
    pub(super) fn memory(&self) -> Result<u64> {
        let kib = match &self.process {
            Process::Ours(server) => server.resident_kib()?,
            Process::Redis(child) => resident_kib(child)?,
        };
        Ok(kib * 1024)
    }

    /// Waits until it does nothing more behind what it has answered.
    pub(super) fn settle(&self) {
        settled(self.process_id());
    }
}
