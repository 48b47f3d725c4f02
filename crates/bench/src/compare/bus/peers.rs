//! The other servers, each as a private process on free ports, with what it needs there already.

use std::fs::{self, File};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use lazuli_trial::server::resident_kib;
use serde_json::json;

use super::super::Result;
use super::super::server::{cpu_of, free_address};

const START_WAIT: Duration = Duration::from_secs(120);
/// How often RabbitMQ's daemon of names is asked to end.
const EPMD_TRIES: usize = 40;

/// The salted hash of the password `guest`, as definitions have it.
const GUEST: &str = "AQIDBEMMOXwY6PKx/JKP9PAqfsb4ozuD0Ta3pxxa9gEYBMmD";

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// A process that ends with this value.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail only if it is gone already, which is what we want.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a program, and waits until it takes connections.
fn start(mut command: Command, folder: &Path, address: SocketAddr) -> Result<Process> {
    let log = File::create(folder.join("log.txt")).map_err(text)?;
    let errors = log.try_clone().map_err(text)?;
    command.stdin(Stdio::null()).stdout(log).stderr(errors);
    let began = Instant::now();
    let mut process = Process(command.spawn().map_err(|error| format!("{command:?}: {error}"))?);
    while TcpStream::connect(address).is_err() {
        if began.elapsed() > START_WAIT || !matches!(process.0.try_wait(), Ok(None)) {
            return Err(format!("{command:?} did not start: see {}", folder.display()));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(process)
}

/// RabbitMQ with AMQP 1.0 and two durable queues, `classic` and `quorum`.
pub(super) struct Rabbit {
    process: Process,
    pub(super) address: SocketAddr,
    /// The port of its own epmd, which outlives it.
    epmd: u16,
}

impl Rabbit {
    pub(super) fn start(program: &Path, folder: &Path) -> Result<Self> {
        fs::create_dir_all(folder).map_err(text)?;
        let folder = fs::canonicalize(folder).map_err(text)?;
        let (address, epmd) = (free_address()?, free_address()?.port());
        let queue = |kind: &str| {
            let arguments = json!({ "x-queue-type": kind });
            json!({
                "name": kind,
                "vhost": "/",
                "durable": true,
                "auto_delete": false,
                "arguments": arguments,
            })
        };
        let queues = ["classic", "quorum"].map(queue);
        let definitions = json!({
            "vhosts": [{ "name": "/" }],
            "users": [{
                "name": "guest",
                "password_hash": GUEST,
                "hashing_algorithm": "rabbit_password_hashing_sha256",
                "tags": "administrator",
            }],
            "permissions": [
                { "user": "guest", "vhost": "/", "configure": ".*", "write": ".*", "read": ".*" },
            ],
            "queues": queues,
        });
        let definitions_file = folder.join("definitions.json");
        fs::write(&definitions_file, definitions.to_string()).map_err(text)?;
        let config = format!(
            "load_definitions = {}\nlisteners.tcp.1 = {address}\n",
            definitions_file.display()
        );
        fs::write(folder.join("rabbitmq.conf"), config).map_err(text)?;
        fs::write(folder.join("plugins"), "[rabbitmq_amqp1_0].\n").map_err(text)?;
        let mut command = Command::new(program);
        command
            .env("HOME", &folder)
            .env("RABBITMQ_NODENAME", format!("bench{}@localhost", address.port()))
            .env("RABBITMQ_MNESIA_BASE", folder.join("mnesia"))
            .env("RABBITMQ_LOG_BASE", folder.join("log"))
            .env("RABBITMQ_CONFIG_FILE", folder.join("rabbitmq"))
            .env("RABBITMQ_ENABLED_PLUGINS_FILE", folder.join("plugins"))
            .env("RABBITMQ_NODE_PORT", address.port().to_string())
            .env("RABBITMQ_DIST_PORT", free_address()?.port().to_string())
            .env("ERL_EPMD_PORT", epmd.to_string())
            .env("ERL_EPMD_ADDRESS", "127.0.0.1");
        let process = start(command, &folder, address)?;
        // Queues are made a moment after the port is open.
        std::thread::sleep(Duration::from_secs(3));
        Ok(Self { process, address, epmd })
    }

    /// The program and all that it started.
    fn processes(&self) -> Vec<u32> {
        let mut all = vec![self.process.0.id()];
        let mut at = 0;
        while let Some(parent) = all.get(at).copied() {
            let path = format!("/proc/{parent}/task/{parent}/children");
            let children = fs::read_to_string(path).unwrap_or_default();
            all.extend(children.split_whitespace().filter_map(|id| id.parse::<u32>().ok()));
            at += 1;
        }
        all
    }

    /// Their resident memory.
    pub(super) fn memory(&self) -> u64 {
        self.processes().into_iter().map(resident_of).sum::<u64>() * 1024
    }

    /// Their processor time so far.
    pub(super) fn cpu(&self) -> Duration {
        self.processes().into_iter().map(cpu_of).sum()
    }
}

fn resident_of(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

impl Drop for Rabbit {
    fn drop(&mut self) {
        // The script that was started has the Erlang machine among its children.
        for process in self.processes().into_iter().skip(1) {
            let _ = Command::new("kill").args(["-KILL", &process.to_string()]).status();
        }
        let epmd = self.epmd.to_string();
        // It does not end before it has noticed that its node is gone.
        for _ in 0..EPMD_TRIES {
            let mut command = Command::new("epmd");
            command.args(["-port", &epmd, "-kill"]).stdout(Stdio::null()).stderr(Stdio::null());
            if command.status().is_ok_and(|status| status.success()) {
                break;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

/// NATS with streams on disk, each write of which is synced.
pub(super) struct Nats {
    process: Process,
    pub(super) address: SocketAddr,
}

impl Nats {
    pub(super) fn start(program: &Path, folder: &Path) -> Result<Self> {
        fs::create_dir_all(folder).map_err(text)?;
        let address = free_address()?;
        let config = format!(
            "listen: \"{address}\"\njetstream {{\n  store_dir: \"{}\"\n  sync_interval: always\n}}\n",
            folder.join("data").display()
        );
        let file = folder.join("nats.conf");
        fs::write(&file, config).map_err(text)?;
        let mut command = Command::new(program);
        command.arg("--config").arg(&file);
        Ok(Self { process: start(command, folder, address)?, address })
    }

    pub(super) fn memory(&self) -> Result<u64> {
        Ok(resident_kib(&self.process.0)? * 1024)
    }

    pub(super) fn cpu(&self) -> Duration {
        cpu_of(self.process.0.id())
    }
}
