//! A shard on PostgreSQL against PostgreSQL itself: lane commits and gets against prepared `pgbench`, scans and loads against
//! the bare statement, two processes against one, blocks against the device, tables through HTTP against an embedded server, and
//! the gap of a failover. The sides take turns, so that other load on the machine affects both. Client and server share the
//! machine.

mod bare;
mod failover;
mod ours;
mod price;

use lazuli_postgres_server::Server;
use lazuli_store::Result;

use crate::figures::failed;
use crate::report::{Report, Turns};
use bare::Bare;
use ours::Ours;

/// How long each turn takes, how many there are, and how many rows are there.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    pub turn_ms: u64,
    pub rounds: usize,
    pub rows: usize,
}

impl Size {
    /// What the bounds are for.
    pub const FULL: Self = Self { turn_ms: 2_000, rounds: 3, rows: 200_000 };
    /// Enough to see that it runs.
    pub const TINY: Self = Self { turn_ms: 100, rounds: 1, rows: 3_000 };
}

/// One figure: what each side did per second in each round.
struct Row {
    name: &'static str,
    against: &'static str,
    share_least: f64,
    turns: Turns,
}

impl Row {
    fn new(name: &'static str, against: &'static str, share_least: f64) -> Self {
        Self { name, against, share_least, turns: Turns::default() }
    }

    fn add_to(self, report: &mut Report) {
        let [ours, theirs] = self.turns.medians();
        report
            .say(format_args!("{}: {ours:.0} a second, {}: {theirs:.0}", self.name, self.against));
        report.at_least(format!("{}, share", self.name), self.turns.share(), self.share_least);
    }
}

/// None where PostgreSQL is not installed.
pub async fn run(size: Size) -> Result<Option<Report>> {
    let lines = ["shared_buffers='512MB'", "max_wal_size='4GB'", "min_wal_size='2GB'"];
    let server = Server::start_with(&lines);
    let Some(server) = server.map_err(failed)? else { return Ok(None) };
    let bare = Bare::new(&server, size).await?;
    let ours = [Ours::new(&server, size).await?, Ours::new(&server, size).await?];
    ours[0].fill().await?;
    bare.analyze()?;
    let mut report = Report::default();
    commits(size, &bare, &ours, &mut report).await?;
    reads(size, &bare, &ours[0], &mut report).await?;
    writes(size, &bare, &ours[0], &mut report).await?;
    price::run(&server, size, &mut report).await?;
    drop(bare);
    drop(ours);
    drop(server);
    failover::run(size, &mut report).await?;
    Ok(Some(report))
}

async fn commits(size: Size, bare: &Bare<'_>, ours: &[Ours; 2], report: &mut Report) -> Result<()> {
    let mut one = Row::new("commits, 1 lane", "pgbench -N, 1 client", 0.6);
    let mut many = Row::new("commits, 16 lanes", "pgbench -N, 16 clients", 0.6);
    let mut apart = Row::new("commits, 2 processes x 8", "one process, 16 lanes", 0.9);
    let mut together = Row::new("commits, 2 on one partition", "one process", 0.8);
    for _ in 0..size.rounds {
        one.turns.ours.push(ours[0].commits(0..1).await?);
        one.turns.theirs.push(bare.pgbench("-N", 1)?);
        many.turns.ours.push(ours[0].commits(0..16).await?);
        many.turns.theirs.push(bare.pgbench("-N", 16)?);
        let (a, b) = tokio::join!(ours[0].commits(0..8), ours[1].commits(8..16));
        apart.turns.ours.push(a? + b?);
        apart.turns.theirs.push(ours[0].commits(0..16).await?);
        let (a, b) = tokio::join!(ours[0].commits(0..1), ours[1].commits(0..1));
        together.turns.ours.push(a? + b?);
        together.turns.theirs.push(ours[0].commits(0..1).await?);
    }
    [one, many, apart, together].into_iter().for_each(|row| row.add_to(report));
    Ok(())
}

async fn reads(size: Size, bare: &Bare<'_>, ours: &Ours, report: &mut Report) -> Result<()> {
    let mut one = Row::new("guarded gets, 1 task", "pgbench -S, 1 client", 0.6);
    let mut many = Row::new("guarded gets, 16 tasks", "pgbench -S, 16 clients", 0.6);
    let mut scans = Row::new("rows scanned, 1,000 a page", "the bare query", 0.7);
    for _ in 0..size.rounds {
        one.turns.ours.push(ours.gets(1).await?);
        one.turns.theirs.push(bare.pgbench("-S", 1)?);
        many.turns.ours.push(ours.gets(16).await?);
        many.turns.theirs.push(bare.pgbench("-S", 16)?);
        scans.turns.ours.push(ours.scans().await?);
        scans.turns.theirs.push(bare.scans().await?);
    }
    [one, many, scans].into_iter().for_each(|row| row.add_to(report));
    Ok(())
}

async fn writes(size: Size, bare: &Bare<'_>, ours: &Ours, report: &mut Report) -> Result<()> {
    let mut loads = Row::new("rows loaded", "bare COPY", 0.7);
    let mut blocks = Row::new("MiB of blocks written", "the device, 8 MiB synced", 0.35);
    for round in 0..size.rounds {
        bare.recycle_log()?;
        loads.turns.ours.push(ours.loads(round).await?);
        loads.turns.theirs.push(bare.copies().await?);
        blocks.turns.ours.push(ours.blocks(size).await?);
        blocks.turns.theirs.push(bare.device(size)?);
    }
    [loads, blocks].into_iter().for_each(|row| row.add_to(report));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    #[ignore = "the failover part has yet to be run"]
    async fn it_runs() {
        if let Some(report) = Box::pin(run(Size::TINY)).await.unwrap() {
            let lost = report.values("failover, answered writes lost");
            assert_eq!(lost, [0.0], "{report}");
            let figures = report.values("");
            assert_eq!(figures.iter().filter(|figure| **figure > 0.0).count(), 14, "{report}");
            assert_eq!(figures.len(), 15);
        }
    }
}
