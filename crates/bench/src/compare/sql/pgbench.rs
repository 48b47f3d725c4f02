//! One run of pgbench against one side.

use std::time::Duration;

use super::super::Result;
use super::world::{PASSWORD, Side, World};

/// An account that any shard may have.
const SELECT: &str = "\\set aid random(1, 100000 * :scale)\n\
    SELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n";

/// TPC-B whose teller and account are those of its branch, so that one shard has all of a transaction's rows.
const TPC_B: &str = "\\set bid random(1, :scale)\n\
    \\set tid (:bid - 1) * 10 + random(1, 10)\n\
    \\set aid (:bid - 1) * 100000 + random(1, 100000)\n\
    \\set delta random(-5000, 5000)\n\
    BEGIN;\n\
    UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;\n\
    SELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n\
    UPDATE pgbench_tellers SET tbalance = tbalance + :delta WHERE tid = :tid;\n\
    UPDATE pgbench_branches SET bbalance = bbalance + :delta WHERE bid = :bid;\n\
    INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (:tid, :bid, :aid, :delta, CURRENT_TIMESTAMP);\n\
    END;\n";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Script {
    Select,
    TpcB,
}

impl Script {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Select => "select",
            Self::TpcB => "tpcb",
        }
    }

    fn text(self) -> &'static str {
        match self {
            Self::Select => SELECT,
            Self::TpcB => TPC_B,
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Figure {
    pub(super) per_second: f64,
    pub(super) latency_ms: f64,
    /// Processor time of what stands between pgbench and PostgreSQL for one transaction, in microseconds.
    pub(super) cpu_us: f64,
}

pub(super) fn run(
    world: &World,
    side: Side,
    script: Script,
    mode: &str,
    clients: usize,
    time: Duration,
) -> Result<Figure> {
    let (port, user, database) = world.login(side);
    let login = Login { port, user, database };
    let scale = world.branches().to_string();
    let before = world.cpu(side);
    let said = asked(world, &login, (script.name(), script.text()), mode, clients, time, &scale)?;
    let used = world.cpu(side).saturating_sub(before);
    let mut figure = read(&said).ok_or_else(|| format!("pgbench says {said}"))?;
    figure.1.cpu_us = used.as_secs_f64() * 1e6 / figure.0.max(1.0);
    Ok(figure.1)
}

/// Who connects to what.
pub(super) struct Login<'l> {
    pub(super) port: u16,
    pub(super) user: &'l str,
    pub(super) database: &'l str,
}

/// What pgbench prints about a script.
pub(super) fn asked(
    world: &World,
    login: &Login<'_>,
    (name, script): (&str, &str),
    mode: &str,
    clients: usize,
    time: Duration,
    scale: &str,
) -> Result<String> {
    let file = world.postgres.write_file(&format!("{name}.sql"), script);
    let file = file.map_err(|error| error.to_string())?;
    let mut pgbench = world.postgres.program("pgbench");
    let (seconds, clients) = (time.as_secs().max(1).to_string(), clients.to_string());
    pgbench.env("PGPASSWORD", PASSWORD).args(["-n", "-h", "127.0.0.1", "-U", login.user]);
    pgbench.args(["-p", &login.port.to_string(), "-M", mode, "-T", &seconds, "-c", &clients]);
    pgbench.args(["-D", &format!("scale={scale}"), "-f"]).arg(file).arg(login.database);
    let output = pgbench.output().map_err(|error| error.to_string())?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() && said.contains("number of failed transactions: 0 ") {
        return Ok(said);
    }
    Err(format!("{pgbench:?}: {said}{}", String::from_utf8_lossy(&output.stderr)))
}

/// The number of transactions, and the figure without processor time.
pub(super) fn read(said: &str) -> Option<(f64, Figure)> {
    let after = |name: &str| {
        let rest = said.lines().find_map(|line| line.strip_prefix(name))?;
        rest.split([' ', '/']).next()?.parse::<f64>().ok()
    };
    let count = after("number of transactions actually processed: ")?;
    let (per_second, latency_ms) = (after("tps = ")?, after("latency average = ")?);
    Some((count, Figure { per_second, latency_ms, cpu_us: 0.0 }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read_from_what_pgbench_prints() {
        let said = "number of transactions actually processed: 4131\n\
                    number of failed transactions: 0 (0.000%)\n\
                    latency average = 0.484 ms\n\
                    tps = 2065.183 (without initial connection time)\n";
        let (count, figure) = read(said).unwrap();
        assert_eq!((count, figure.per_second, figure.latency_ms), (4131.0, 2065.183, 0.484));
        assert!(read("connection refused").is_none());
    }
}
