//! Starts a private PostgreSQL server, with a standby if asked to, prints the addresses, and ends with its standard input.
//!
//! `postgres-server [--standby] [--setting name=value]...` prints `postgres ready HOST:PORT [STANDBY-HOST:PORT]`. Commits wait
//! for the standby. A line `crash` on standard input ends the server as a crash would and starts it again; `failover` ends
//! it for good and makes the standby the primary. Each is answered with `done`.

use std::io;
use std::process::ExitCode;

use lazuli_postgres_server::{Server, Stop};

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("postgres-server: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> io::Result<()> {
    let mut has_standby = false;
    let mut settings = Vec::new();
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match &*argument {
            "--standby" => has_standby = true,
            "--setting" => settings.push(arguments.next().ok_or_else(usage)?),
            _ => return Err(usage()),
        }
    }
    let lines: Vec<&str> = settings.iter().map(String::as_str).collect();
    let Some(server) = Server::start_with(&lines)? else {
        return Err(io::Error::other("PostgreSQL is not installed"));
    };
    let standby = if has_standby { Some(server.standby("standby", &[])?) } else { None };
    if standby.is_some() {
        server.wait_for_standbys("FIRST 1 (standby)")?;
    }
    let second = standby.as_ref().map_or_else(String::new, |it| format!(" {}", it.host()));
    println!("postgres ready {}{second}", server.host());
    let (mut primary, mut standby) = (server, standby);
    for line in io::stdin().lines() {
        match (&*line?, standby.take()) {
            ("crash", other) => {
                primary.stop(Stop::Immediate)?;
                primary.begin()?;
                standby = other;
            }
            ("failover", Some(other)) => {
                primary.stop(Stop::Immediate)?;
                other.promote()?;
                primary = other;
            }
            _ => return Err(usage()),
        }
        println!("done");
    }
    Ok(())
}

fn usage() -> io::Error {
    io::Error::other("usage: postgres-server [--standby] [--setting name=value]...")
}
