//! Starts a private PostgreSQL server, with a standby if asked to, prints the addresses, and ends with its standard input.
//!
//! `postgres-server [--standby] [--setting name=value]...` prints `postgres ready HOST:PORT [STANDBY-HOST:PORT]`.

use std::io::{self, Read};
use std::process::ExitCode;

use lazuli_postgres_server::Server;

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
    let second = standby.as_ref().map_or_else(String::new, |it| format!(" {}", it.host()));
    println!("postgres ready {}{second}", server.host());
    io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

fn usage() -> io::Error {
    io::Error::other("usage: postgres-server [--standby] [--setting name=value]...")
}
