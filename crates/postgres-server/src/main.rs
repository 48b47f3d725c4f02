//! A private PostgreSQL server as a program, for tests in other languages: it lives until its standard input is closed.
//!
//! `postgres-server [--standby] [--listen ADDRESS] [--setting name=value]...` prints `postgres ready HOST:PORT [HOST:PORT]`.
//! Commits wait for the standby. With an address of this machine, clients use that one instead of loopback. Each line on
//! standard input is an order, answered with `done`:
//!
//! - `crash` ends the server as a crash would and starts it again;
//! - `failover` ends it for good and makes the standby the primary;
//! - `rejoin` makes a new standby in the place of the server that was ended, and waits until it follows;
//! - `detach` stops the standby, so that commits wait, and `attach` starts it again and waits until it follows.

use std::io;
use std::process::ExitCode;

use lazuli_postgres_server::{Server, Stop};

const STANDBY: &str = "standby";

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("postgres-server: {error}");
            ExitCode::FAILURE
        }
    }
}

struct Pair {
    primary: Server,
    standby: Option<Server>,
    /// The former primary.
    gone: Option<Server>,
}

fn run() -> io::Result<()> {
    let (mut has_standby, mut address) = (false, None);
    let mut settings = Vec::new();
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match &*argument {
            "--standby" => has_standby = true,
            "--listen" => address = Some(arguments.next().ok_or_else(usage)?),
            "--setting" => settings.push(arguments.next().ok_or_else(usage)?),
            _ => return Err(usage()),
        }
    }
    let lines: Vec<&str> = settings.iter().map(String::as_str).collect();
    let Some(mut primary) = Server::start_with(&lines)? else {
        return Err(io::Error::other("PostgreSQL is not installed"));
    };
    if let Some(address) = &address {
        primary.listen_at(address)?;
    }
    let mut pair = Pair { primary, standby: None, gone: None };
    if has_standby {
        pair.standby = Some(pair.primary.standby(STANDBY, &[])?);
        pair.wait_for_standby()?;
    }
    let host = address.as_deref().unwrap_or("127.0.0.1");
    let second =
        pair.standby.as_ref().map_or_else(String::new, |it| format!(" {host}:{}", it.port()));
    println!("postgres ready {host}:{}{second}", pair.primary.port());
    for line in io::stdin().lines() {
        pair.carry_out(&line?)?;
        println!("done");
    }
    Ok(())
}

impl Pair {
    fn carry_out(&mut self, order: &str) -> io::Result<()> {
        match (order, self.standby.take(), self.gone.take()) {
            ("crash", standby, gone) => {
                (self.standby, self.gone) = (standby, gone);
                self.primary.stop(Stop::Immediate)?;
                self.primary.begin()
            }
            ("failover", Some(standby), None) => {
                self.primary.stop(Stop::Immediate)?;
                standby.promote()?;
                self.gone = Some(std::mem::replace(&mut self.primary, standby));
                Ok(())
            }
            ("rejoin", None, Some(gone)) => {
                self.standby = Some(self.primary.standby_in_place_of(gone, STANDBY)?);
                self.wait_for_standby()
            }
            ("detach", Some(mut standby), None) => {
                standby.stop(Stop::Fast)?;
                self.standby = Some(standby);
                Ok(())
            }
            ("attach", Some(mut standby), None) => {
                standby.begin()?;
                self.standby = Some(standby);
                self.primary.is_followed_by(1)
            }
            _ => Err(usage()),
        }
    }

    /// From now on commits wait for the standby.
    fn wait_for_standby(&self) -> io::Result<()> {
        self.primary.wait_for_standbys(&format!("FIRST 1 ({STANDBY})"))?;
        self.primary.is_followed_by(1)
    }
}

fn usage() -> io::Error {
    io::Error::other(
        "usage: postgres-server [--standby] [--listen ADDRESS] [--setting name=value]...; orders: crash, \
         failover, rejoin, detach, attach",
    )
}
