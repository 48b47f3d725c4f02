//! One server: made, started, stopped, followed by a standby, promoted.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::programs::Programs;

const START_TIME_MAX: Duration = Duration::from_secs(60);
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// Runs the server, and ends it when told to or when whoever started it has ended. In the latter case the folder goes too.
const KEEPER: &str = r#"
folder=$1; shift
"$@" & pid=$!
if read how; then kill -$how $pid; wait $pid
else kill -QUIT $pid; wait $pid; rm -rf "$folder"
fi
"#;

/// A server of our own. Dropped, it is ended and its folder removed.
pub struct Server {
    programs: Programs,
    folder: PathBuf,
    port: u16,
    keeper: Option<Child>,
}

/// How a server is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Sessions are ended, and everything is written out.
    Fast,
    /// Like a crash of the server: the next start recovers.
    Immediate,
}

fn failed(what: impl std::fmt::Display) -> io::Error {
    io::Error::other(what.to_string())
}

impl Server {
    /// A new server with a database `postgres` whose superuser is `postgres`, without a password. None if PostgreSQL is not
    /// installed; where the variable `CI` is set, that is an error.
    pub fn start() -> io::Result<Option<Self>> {
        Self::start_with(&["fsync=off"])
    }

    /// The same with lines for its configuration.
    pub fn start_with(lines: &[&str]) -> io::Result<Option<Self>> {
        let Some(programs) = Programs::find() else {
            if std::env::var_os("CI").is_some() {
                return Err(failed(
                    "PostgreSQL is not installed, and nothing may be skipped in CI",
                ));
            }
            eprintln!("SKIPPED: PostgreSQL is not installed (apt-get install postgresql)");
            return Ok(None);
        };
        let mut server = Self::new(programs)?;
        let data = server.data();
        let mut make = server.programs.command("initdb");
        make.args(["-A", "trust", "-U", "postgres", "--locale=C", "-E", "UTF8", "-N", "-D"]);
        run(make.arg(&data))?;
        let folder = server.folder.display().to_string();
        server.configure(&[
            "listen_addresses='127.0.0.1'",
            &format!("unix_socket_directories='{folder}'"),
            "wal_log_hints=on",
            "wal_keep_size='256MB'",
            "max_connections=300",
        ])?;
        server.configure(&[&format!("port={}", server.port)])?;
        server.configure(lines)?;
        server.begin()?;
        Ok(Some(server))
    }

    fn new(programs: Programs) -> io::Result<Self> {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        Self::new_on(programs, port)
    }

    fn new_on(programs: Programs, port: u16) -> io::Result<Self> {
        static LAST: AtomicU32 = AtomicU32::new(0);
        // A process that was killed leaves its folders behind, and its id may be given out again.
        let folder = loop {
            let number = LAST.fetch_add(1, Ordering::Relaxed);
            let name = format!("lazuli-postgres-{}-{number}", std::process::id());
            let folder = std::env::temp_dir().join(name);
            match fs::create_dir(&folder) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                made => break made.map(|()| folder)?,
            }
        };
        programs.give(&folder)?;
        Ok(Self { programs, folder, port, keeper: None })
    }

    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// `127.0.0.1:PORT`
    pub fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// The address of a database for Lazuli.
    pub fn address(&self, database: &str) -> String {
        format!("postgres://postgres@{}/{database}?sslmode=disable", self.host())
    }

    /// The folder, for files that the server is to read.
    pub fn folder(&self) -> &std::path::Path {
        &self.folder
    }

    /// Writes a file into the folder that only the server's user may read.
    pub fn write_file(&self, name: &str, text: &str) -> io::Result<PathBuf> {
        use std::os::unix::fs::PermissionsExt;
        let path = self.folder.join(name);
        fs::write(&path, text)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
        self.programs.give(&path)?;
        Ok(path)
    }

    /// Adds lines to the configuration, which count from the next start or [`Self::reload`] on.
    pub fn configure(&self, lines: &[&str]) -> io::Result<()> {
        let mut file = OpenOptions::new().append(true).open(self.data().join("postgresql.conf"))?;
        lines.iter().try_for_each(|line| writeln!(file, "{line}"))
    }

    /// Replaces the rules of who may log in and how.
    pub fn set_logins(&self, rules: &str) -> io::Result<()> {
        fs::write(self.data().join("pg_hba.conf"), rules)
    }

    pub fn reload(&self) -> io::Result<()> {
        run(self.programs.command("pg_ctl").arg("-D").arg(self.data()).args(["-s", "reload"]))
            .map(drop)
    }

    /// Starts a server that was stopped, and waits until it answers.
    pub fn begin(&mut self) -> io::Result<()> {
        let log = OpenOptions::new().create(true).append(true).open(self.folder.join("log"))?;
        let mut keeper = self.programs.as_user("sh");
        keeper.args(["-c", KEEPER, "keeper"]).arg(&self.folder);
        keeper.arg(self.programs.path("postgres")).arg("-D").arg(self.data());
        keeper.stdin(Stdio::piped()).stdout(log.try_clone()?).stderr(log);
        self.keeper = Some(keeper.spawn()?);
        let begun = Instant::now();
        loop {
            let mut ready = self.programs.command("pg_isready");
            ready.args(["-q", "-h", "127.0.0.1", "-p", &self.port.to_string()]);
            if ready.status()?.success() {
                return Ok(());
            }
            if begun.elapsed() > START_TIME_MAX || !self.data().exists() {
                return Err(failed(format!("the server does not start: {}", self.log())));
            }
            sleep(LOOK_INTERVAL);
        }
    }

    /// What the server has written to its log.
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.join("log")).unwrap_or_default()
    }

    /// Stops the server and waits for its end.
    pub fn stop(&mut self, how: Stop) -> io::Result<()> {
        let Some(mut keeper) = self.keeper.take() else { return Ok(()) };
        let signal = match how {
            Stop::Fast => "INT",
            Stop::Immediate => "QUIT",
        };
        if let Some(mut orders) = keeper.stdin.take() {
            writeln!(orders, "{signal}")?;
        }
        keeper.wait().map(drop)
    }

    /// Runs statements as the superuser and returns what they print, without headers.
    pub fn psql(&self, database: &str, statements: &str) -> io::Result<String> {
        let mut psql = self.programs.command("psql");
        psql.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1"]);
        psql.args(["-U", "postgres", "-d", database, "-p", &self.port.to_string()]);
        run(psql.args(["-c", statements])).map(|text| text.trim_end().to_owned())
    }

    /// The same for a script with commands of psql's own.
    pub fn psql_script(&self, database: &str, script: &str) -> io::Result<String> {
        let mut psql = self.programs.command("psql");
        psql.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1"]);
        psql.args(["-U", "postgres", "-d", database, "-p", &self.port.to_string(), "-f", "-"]);
        psql.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = psql.spawn()?;
        if let Some(mut input) = child.stdin.take() {
            input.write_all(script.as_bytes())?;
        }
        let output = child.wait_with_output()?;
        match output.status.success() {
            true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
            false => Err(failed(String::from_utf8_lossy(&output.stderr))),
        }
    }

    /// A program of PostgreSQL's, such as `pgbench`, as the user that the server runs as.
    pub fn program(&self, name: &str) -> std::process::Command {
        self.programs.command(name)
    }

    /// Any other program, as the same user.
    pub fn other_program(&self, path: &str) -> std::process::Command {
        self.programs.as_user(path)
    }

    /// A standby that follows this server, with lines for its configuration.
    pub fn standby(&self, name: &str, lines: &[&str]) -> io::Result<Self> {
        let standby = Self::new(self.programs.clone())?;
        self.follow(standby, name, lines)
    }

    /// The same in the place of a server that was stopped for good: on its port, from nothing.
    pub fn standby_in_place_of(&self, gone: Self, name: &str) -> io::Result<Self> {
        let port = gone.port;
        drop(gone);
        let standby = Self::new_on(self.programs.clone(), port)?;
        self.follow(standby, name, &[])
    }

    fn follow(&self, mut standby: Self, name: &str, lines: &[&str]) -> io::Result<Self> {
        let slot = format!("SELECT pg_create_physical_replication_slot('{name}')");
        self.psql("postgres", &slot)?;
        let mut copy = self.programs.command("pg_basebackup");
        copy.args(["-h", "127.0.0.1", "-U", "postgres", "-p", &self.port.to_string()]);
        copy.args(["-R", "-X", "stream", "-c", "fast", "-N", "-S", name, "-D"]);
        run(copy.arg(standby.data()))?;
        standby.configure(&[
            &format!("port={}", standby.port),
            &format!("cluster_name='{name}'"),
            &format!("unix_socket_directories='{}'", standby.folder.display()),
        ])?;
        standby.configure(lines)?;
        standby.begin()?;
        Ok(standby)
    }

    /// Lets clients come by another address of this machine too, without a password. Before the server has a standby.
    pub fn listen_at(&mut self, address: &str) -> io::Result<()> {
        self.configure(&[&format!("listen_addresses='127.0.0.1,{address}'")])?;
        let rules = fs::read_to_string(self.data().join("pg_hba.conf"))?;
        self.set_logins(&format!("{rules}\nhost all all {address}/8 trust\n"))?;
        self.stop(Stop::Fast)?;
        self.begin()
    }

    /// Waits until as many standbys follow, and commits can wait for them.
    pub fn is_followed_by(&self, count: usize) -> io::Result<()> {
        let begun = Instant::now();
        let query = "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming' \
                     AND sync_state IN ('sync', 'quorum')";
        while self.psql("postgres", query)? != count.to_string() {
            if begun.elapsed() > START_TIME_MAX {
                return Err(failed(format!("no standby follows: {}", self.log())));
            }
            sleep(LOOK_INTERVAL);
        }
        Ok(())
    }

    /// From now on commits wait for these standbys.
    pub fn wait_for_standbys(&self, names: &str) -> io::Result<()> {
        let set = format!("ALTER SYSTEM SET synchronous_standby_names = '{names}'");
        self.psql("postgres", &set)?;
        self.reload()
    }

    /// Makes a standby the primary, on the next timeline.
    pub fn promote(&self) -> io::Result<()> {
        let mut promote = self.programs.command("pg_ctl");
        run(promote.arg("-D").arg(self.data()).args(["-s", "-w", "promote"])).map(drop)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // A server that cannot be stopped any more is ended by its keeper.
        let _ = self.stop(Stop::Immediate);
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn run(command: &mut std::process::Command) -> io::Result<String> {
    let output = command.stdin(Stdio::null()).output()?;
    if !output.status.success() {
        let told = String::from_utf8_lossy(&output.stderr);
        return Err(failed(format!("{:?}: {told}", command.get_program())));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
