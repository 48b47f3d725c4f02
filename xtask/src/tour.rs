//! The tour of README.md, taken as a reader takes it: its commands and its program run one after another on a fresh
//! folder, and what they print must be what README.md says they print.
//!
//! A `console` block holds commands behind `$ ` with their output; one without commands is the output of the `python`
//! block before it. The command that serves stays in the background. What may differ is in [`Differences`], nothing else.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::process::{self, Background, unusable};
use crate::workspace::{self, Workspace};
use crate::{Failure, Result, python};

/// The heading that the tour stands under.
const HEADING: &str = "## A 60-second tour";
/// The command that goes on while the others run.
const SERVE: &str = "lazuli serve";
/// How the line begins that says that all listeners accept.
const READY: &str = "lazuli ready ";
/// How long the server may take until it accepts connections.
const READY_WAIT: Duration = Duration::from_secs(60);

/// Something to run, and the lines that it must print.
#[derive(Debug, PartialEq)]
struct Stop {
    what: What,
    expected: Vec<String>,
}

#[derive(Debug, PartialEq)]
enum What {
    Command(String),
    Python(String),
}

/// Takes the tour of README.md with the program of this workspace.
pub(crate) fn take() -> Result {
    let workspace = Workspace::load()?;
    let program = workspace.program("lazuli")?;
    take_with(&workspace, program.parent().unwrap_or(Path::new(".")))
}

/// Takes it with the `lazuli` of a folder.
pub(crate) fn take_with(workspace: &Workspace, programs: &Path) -> Result {
    let path = workspace::root().join("README.md");
    let text = std::fs::read_to_string(&path).map_err(|error| unusable(&path, &error))?;
    let stops = stops(&text)?;
    let mut guide = Guide::new(workspace, programs)?;
    for stop in &stops {
        guide.lead(stop)?;
    }
    println!("the tour has {} stops, and each prints what README.md says", stops.len());
    match guide.server {
        Some(server) => server.stop(),
        None => Err(Failure::failed(format!("the tour never runs `{SERVE}`"))),
    }
}

/// The stops of the tour, in order.
fn stops(readme: &str) -> Result<Vec<Stop>> {
    let lines = readme.lines().skip_while(|line| *line != HEADING).skip(1);
    let mut lines = lines.take_while(|line| !line.starts_with("## "));
    let mut stops: Vec<Stop> = Vec::new();
    while let Some(line) = lines.next() {
        let Some(language) = line.strip_prefix("```") else { continue };
        let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        match language {
            "python" => {
                let what = What::Python(block.join("\n") + "\n");
                stops.push(Stop { what, expected: Vec::new() });
            }
            "console" => add_console(&mut stops, &block)?,
            other => {
                return Err(Failure::failed(format!("the tour cannot run a block of {other}")));
            }
        }
    }
    if stops.is_empty() {
        return Err(Failure::failed(format!("README.md has no tour under `{HEADING}`")));
    }
    Ok(stops)
}

fn add_console(stops: &mut Vec<Stop>, block: &[&str]) -> Result {
    for line in block {
        if let Some(command) = line.strip_prefix("$ ") {
            let what = What::Command(command.to_owned());
            stops.push(Stop { what, expected: Vec::new() });
        } else if let Some(stop) = stops.last_mut() {
            stop.expected.push((*line).to_owned());
        } else {
            return Err(Failure::failed(format!("the tour begins with the output `{line}`")));
        }
    }
    Ok(())
}

/// What may differ between README.md and a run: the ports, which are free ones here, and times.
#[derive(Default)]
struct Differences {
    /// An address as README.md has it, and where the server of this run listens.
    addresses: Vec<(String, String)>,
}

impl Differences {
    /// Learns the addresses from the line of the server that is ready and the one in README.md.
    fn learn(&mut self, written: &str, printed: &str) {
        let endpoint = |word: &str| word.split_once('=').map(|(_, endpoint)| endpoint.to_owned());
        let address = |endpoint: String| match endpoint.split_once("://") {
            Some((_, address)) => address.to_owned(),
            None => endpoint,
        };
        let written = written.split(' ').filter_map(endpoint).map(address);
        let printed = printed.split(' ').filter_map(endpoint).map(address);
        self.addresses.extend(written.zip(printed));
    }

    /// What README.md says, with the addresses of this run. Each place is replaced once: a port of this run may begin with the
    /// digits of one in README.md.
    fn to_run(&self, text: &str) -> String {
        let mut out = String::new();
        let mut rest = text;
        while let Some(next) = rest.chars().next() {
            let known = self.addresses.iter().find_map(|(written, real)| {
                let after = rest.strip_prefix(written.as_str())?;
                (!after.starts_with(|c: char| c.is_ascii_digit())).then_some((after, real))
            });
            if let Some((after, real)) = known {
                out.push_str(real);
                rest = after;
            } else {
                out.push(next);
                rest = &rest[next.len_utf8()..];
            }
        }
        out
    }

    /// A line with its times made alike.
    fn without_times(line: &str) -> String {
        let is_time = |word: &str| {
            let form: String =
                word.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
            form == "0000-00-00T00:00:00Z"
        };
        let words = line.split(' ').map(|word| if is_time(word) { "TIME" } else { word });
        words.collect::<Vec<_>>().join(" ")
    }

    fn same(&self, written: &str, printed: &str) -> bool {
        Self::without_times(&self.to_run(written)) == Self::without_times(printed)
    }
}

/// Runs one stop after another in a folder of their own.
struct Guide {
    folder: PathBuf,
    /// Where the program `lazuli` is.
    programs: PathBuf,
    python: PathBuf,
    server: Option<Background>,
    differences: Differences,
}

impl Guide {
    fn new(workspace: &Workspace, programs: &Path) -> Result<Self> {
        let programs = programs.to_owned();
        let python = python::environment(workspace)?;
        let folder = workspace.scratch.join("tour");
        process::fresh_folder(&folder)?;
        Ok(Self { folder, programs, python, server: None, differences: Differences::default() })
    }

    fn lead(&mut self, stop: &Stop) -> Result {
        let printed = match &stop.what {
            What::Command(line) if line == SERVE => self.serve(stop)?,
            What::Command(line) => {
                println!("--- $ {line}");
                self.output(self.shell(&self.differences.to_run(line)))?
            }
            What::Python(text) => {
                println!("--- python");
                let mut command = Command::new(&self.python);
                command.current_dir(&self.folder).arg("-c").arg(self.differences.to_run(text));
                self.output(command)?
            }
        };
        self.compare(stop, &printed)
    }

    /// A command in a shell that finds `lazuli`, without settings from outside.
    fn shell(&self, line: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", line]).current_dir(&self.folder);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("LAZULI_") {
                command.env_remove(name);
            }
        }
        let path = std::env::var_os("PATH").unwrap_or_default();
        let all = std::iter::once(self.programs.clone()).chain(std::env::split_paths(&path));
        if let Ok(path) = std::env::join_paths(all) {
            command.env("PATH", path);
        }
        command
    }

    /// Starts the server on free ports and waits until it is ready.
    fn serve(&mut self, stop: &Stop) -> Result<String> {
        println!("--- $ {SERVE}");
        // `exec` makes the server the child itself, so that it can be asked to end.
        let mut command = self.shell(&format!("exec {SERVE}"));
        command.env("LAZULI_PORTS", "free");
        let log = self.folder.join("server.log");
        let mut server = Background::start(&mut command, &log)?;
        let printed = server.wait_for(READY_WAIT, || {
            let text = std::fs::read_to_string(&log).ok()?;
            (text.lines().any(|line| line.starts_with(READY)) && text.ends_with('\n'))
                .then_some(text)
        })?;
        self.server = Some(server);
        let ready = |line: &&str| line.starts_with(READY);
        let written = stop.expected.iter().map(String::as_str).find(ready);
        if let (Some(written), Some(printed)) = (written, printed.lines().find(ready)) {
            self.differences.learn(written, printed);
        }
        Ok(printed)
    }

    /// What a program prints, on both outputs as a terminal shows them. It must end well.
    fn output(&self, mut command: Command) -> Result<String> {
        let line = process::describe(&command);
        let output = command.output();
        let output =
            output.map_err(|error| Failure::failed(format!("{line} did not start: {error}")))?;
        let both = [output.stdout, output.stderr].concat();
        let both = String::from_utf8_lossy(&both).into_owned();
        if output.status.success() {
            Ok(both)
        } else {
            Err(Failure::failed(format!("{line}: {}\n{both}", output.status)))
        }
    }

    fn compare(&self, stop: &Stop, printed: &str) -> Result {
        let printed: Vec<&str> = printed.lines().collect();
        let same = printed.len() == stop.expected.len()
            && printed.iter().zip(&stop.expected).all(|(a, b)| self.differences.same(b, a));
        if same {
            return Ok(());
        }
        let (expected, printed) = (stop.expected.join("\n"), printed.join("\n"));
        let message = format!("README.md says\n{expected}\nbut the program prints\n{printed}");
        Err(Failure::failed(message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const README: &str = "# X\n```sh\nnot the tour\n```\n## A 60-second tour\nText.\n```console\n$ lazuli serve\n\
                          lazuli ready tables=http://127.0.0.1:1\n```\n```python\nprint(1)\nprint(2)\n```\n\
                          ```console\n1\n2\n```\n```console\n$ a\nx\n$ b\n```\n## Next\n```sh\nrm\n```\n";

    #[test]
    fn the_tour_is_read_with_its_commands_programs_and_outputs() {
        let stop = |what, expected: &[&str]| Stop {
            what,
            expected: expected.iter().map(ToString::to_string).collect(),
        };
        let command = |line: &str| What::Command(line.to_owned());
        assert_eq!(
            stops(README).unwrap(),
            [
                stop(command("lazuli serve"), &["lazuli ready tables=http://127.0.0.1:1"]),
                stop(What::Python("print(1)\nprint(2)\n".to_owned()), &["1", "2"]),
                stop(command("a"), &["x"]),
                stop(command("b"), &[]),
            ]
        );
        assert!(stops("# no tour\n").is_err());
        assert!(stops(&README.replace("```python", "```perl")).is_err());
    }

    #[test]
    fn ports_and_times_may_differ_and_nothing_else() {
        let mut differences = Differences::default();
        let written = "lazuli ready tables=http://127.0.0.1:10002 admin=http://127.0.0.1:10010";
        let printed = "lazuli ready tables=http://127.0.0.1:4711 admin=http://127.0.0.1:4712";
        assert!(!differences.same(written, printed));
        differences.learn(written, printed);
        assert!(differences.same(written, printed));
        assert!(!differences.same(written, &printed.replace("4712", "4711")));
        assert!(!differences.same(written, &printed.replace("ready", "up")));
        assert!(differences.same("at 2026-01-01T00:00:00Z", "at 2031-12-31T23:59:59Z"));
        assert!(!differences.same("at 2026-01-01T00:00:00Z", "at noon"));
        assert!(!differences.same("9700 bytes", "9701 bytes"));
        assert_eq!(differences.to_run("x http://127.0.0.1:10002/a"), "x http://127.0.0.1:4711/a");
    }

    #[test]
    fn endpoints_of_every_scheme_and_of_none_are_learnt() {
        let mut differences = Differences::default();
        let written = "lazuli ready documents=https://127.0.0.1:8081 kafka=127.0.0.1:9092 bus=sb://127.0.0.1:5672";
        let printed = "lazuli ready documents=https://127.0.0.1:56721 kafka=127.0.0.1:4712 bus=sb://127.0.0.1:4713";
        differences.learn(written, printed);
        assert!(differences.same(written, printed));
        assert_eq!(differences.to_run("127.0.0.1:80810"), "127.0.0.1:80810");
    }

    #[test]
    fn the_tour_of_the_repository_can_be_read() {
        let text = std::fs::read_to_string(workspace::root().join("README.md")).unwrap();
        let stops = stops(&text).unwrap();
        assert!(stops.iter().any(|stop| stop.what == What::Command(SERVE.to_owned())));
        assert!(stops.iter().any(|stop| matches!(stop.what, What::Python(_))));
    }
}
