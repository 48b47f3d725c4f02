//! The walk of docs/sql.md, taken as a reader takes it: every command of its `console` blocks, in order, in a shell, and what
//! is printed must be what the page says.
//!
//! A command stands behind `$ `, its further lines behind `> `, what it prints below. A line `…` stands for any lines. The
//! addresses of the page become those of the run; counts of changes and milliseconds may differ, and nothing else.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use lazuli_postgres_server::Server as Postgres;

use crate::program::{Server, lazuli};

/// Where the page says that PostgreSQL is, and the endpoint.
const DATABASES: &str = "db.example";
const ENDPOINT: &str = "127.0.0.1:5433";
const SERVE: &str = "lazuli serve &";

struct Stop {
    command: String,
    expected: Vec<String>,
}

/// The commands of all `console` blocks.
fn stops(page: &str) -> Vec<Stop> {
    let mut stops: Vec<Stop> = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        if line != "```console" {
            continue;
        }
        for line in lines.by_ref().take_while(|line| *line != "```") {
            if let Some(command) = line.strip_prefix("$ ") {
                stops.push(Stop { command: command.to_owned(), expected: Vec::new() });
            } else if let Some(more) = line.strip_prefix("> ") {
                let stop = stops.last_mut().expect("a line goes on that never began");
                stop.command = format!("{}\n{more}", stop.command);
            } else {
                let stop = stops.last_mut().expect("something is printed before any command");
                stop.expected.push(line.to_owned());
            }
        }
    }
    stops
}

struct Walk {
    postgres: Postgres,
    folder: PathBuf,
    server: Option<Server>,
    /// What the reader has exported.
    exported: BTreeMap<String, String>,
    /// What runs in the background.
    beside: Option<Child>,
}

impl Walk {
    /// The page's text with the addresses of this run.
    fn to_run(&self, text: &str) -> String {
        let text = text.replace(DATABASES, &self.postgres.host());
        match &self.server {
            Some(server) => text.replace(ENDPOINT, &server.endpoint("sql")),
            None => text,
        }
    }

    fn shell(&self, line: &str) -> Command {
        let mut shell = lazuli(&self.folder, &[]);
        let program = PathBuf::from(shell.get_program());
        let postgres = PathBuf::from(self.postgres.program("psql").get_program());
        let own = [program.parent().unwrap().to_owned(), postgres.parent().unwrap().to_owned()];
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path = std::env::join_paths(own.into_iter().chain(std::env::split_paths(&path)));
        let kept: Vec<_> = shell.get_envs().map(|(name, _)| name.to_owned()).collect();
        shell = Command::new("sh");
        for name in kept {
            shell.env_remove(name);
        }
        shell.args(["-c", &self.to_run(line)]).current_dir(&self.folder).env("PATH", path.unwrap());
        shell.env("PGHOST", "127.0.0.1").env("PGPORT", self.postgres.port().to_string());
        shell.env("PGUSER", "postgres").env("LC_ALL", "C").envs(&self.exported);
        shell.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        shell
    }

    fn take(&mut self, stop: &Stop) {
        let command = stop.command.as_str();
        if command == SERVE {
            self.server = Some(Server::start(&self.folder));
        } else if let Some(settings) = command.strip_prefix("export ") {
            for setting in settings.split(' ') {
                let (name, value) = setting.split_once('=').unwrap();
                self.exported.insert(name.to_owned(), self.to_run(value));
            }
        } else if let Some(command) = command.strip_suffix(" &") {
            self.beside = Some(self.shell(command).spawn().unwrap());
        } else if command == "wait" {
            let output = self.beside.take().unwrap().wait_with_output().unwrap();
            self.compare(stop, &output);
        } else {
            let output = self.shell(command).output().unwrap();
            self.compare(stop, &output);
        }
    }

    fn compare(&self, stop: &Stop, output: &std::process::Output) {
        let text = [&output.stdout[..], &output.stderr[..]].concat();
        let text = String::from_utf8_lossy(&text);
        let log = || self.server.as_ref().map(Server::log).unwrap_or_default();
        assert!(output.status.success(), "$ {}\n{text}\n{}", stop.command, log());
        let text = text.replace(&self.postgres.host(), DATABASES);
        let printed: Vec<String> = text.lines().map(masked).collect();
        let expected: Vec<String> = stop.expected.iter().map(|line| masked(line)).collect();
        let (command, expected_text) = (&stop.command, stop.expected.join("\n"));
        assert!(
            is_like(&expected, &printed),
            "$ {command}\nthe page says\n{expected_text}\nbut this came\n{text}"
        );
    }
}

/// Whether lines are those of the page, where `…` stands for any.
fn is_like(expected: &[String], printed: &[String]) -> bool {
    match expected.split_first() {
        None => printed.is_empty(),
        Some((first, rest)) if first == "…" => {
            (0..=printed.len()).any(|skipped| is_like(rest, &printed[skipped..]))
        }
        Some((first, rest)) => printed.first() == Some(first) && is_like(rest, &printed[1..]),
    }
}

/// A line without what varies, and with one blank where there are several: columns are as wide as their widest value.
fn masked(line: &str) -> String {
    let words: Vec<&str> = line.split_whitespace().collect();
    let varies = |index: usize| {
        words.get(index + 1).is_some_and(|unit| unit.starts_with("changes") || *unit == "ms")
    };
    let shown =
        words.iter().enumerate().map(|(index, word)| if varies(index) { "N" } else { word });
    shown.collect::<Vec<_>>().join(" ")
}

#[test]
fn the_walk_of_the_page_prints_what_the_page_says() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/sql.md");
    let stops = stops(&std::fs::read_to_string(page).unwrap());
    assert!(stops.iter().any(|stop| stop.command == SERVE) && stops.len() > 20);
    let lines = ["fsync=off", "max_prepared_transactions=20"];
    let Some(postgres) = Postgres::start_with(&lines).unwrap() else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut walk = Walk {
        postgres,
        folder: folder.path().to_owned(),
        server: None,
        exported: BTreeMap::new(),
        beside: None,
    };
    stops.iter().for_each(|stop| walk.take(stop));
    assert!(walk.beside.is_none(), "something is still running");
}

#[test]
fn what_varies_is_masked_and_nothing_else() {
    let said = "moved mapping 9 from a to b: 2000 rows, 812 changes; writers waited for 43.0 ms";
    assert_eq!(masked(said), masked(&said.replace("812", "7").replace("43.0", "9.9")));
    assert_ne!(masked(said), masked(&said.replace("2000", "1999")));
    let lines = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    assert!(is_like(&lines("a … d"), &lines("a b c d")) && is_like(&lines("a …"), &lines("a")));
    assert!(!is_like(&lines("a … d"), &lines("a b c")) && !is_like(&lines("a"), &lines("a b")));
}
