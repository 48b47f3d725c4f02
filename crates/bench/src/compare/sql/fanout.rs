//! Queries over four shards against the same rows on one, through the endpoint, in turns.

use super::super::{Options, Result};
use super::pgbench::{Figure, Login, asked, read};
use super::world::{LOGIN, World, shard};
use super::{is_quick, rounds};
use crate::figures::median;
use crate::report::Report;

const ROWS: u64 = 400_000;
const ROWS_QUICK: u64 = 100_000;
const TABLE: &str = "CREATE TABLE fact (id bigint PRIMARY KEY, kind int, cents bigint)";

const QUERIES: [(&str, &str); 4] = [
    ("count", "SELECT count(*) FROM fact;\n"),
    ("groups", "SELECT kind, count(*), sum(cents) FROM fact GROUP BY kind ORDER BY kind;\n"),
    ("top", "SELECT id, cents FROM fact ORDER BY cents DESC, id LIMIT 10;\n"),
    ("few rows", "SELECT sum(cents) FROM fact WHERE id IN (1, 1000, 50000, 99999);\n"),
];

pub(super) fn run(world: &World, options: &Options, report: &mut Report) -> Result {
    let rows = if is_quick(options) { ROWS_QUICK } else { ROWS };
    for (name, shards) in [("four", 4), ("one", 1)] {
        world.make_sharded(name, shards, TABLE)?;
        let each = rows / u64::from(shards);
        let ends: Vec<u64> = (1..u64::from(shards)).map(|it| it * each + 1).collect();
        world.make_map(name, "facts", "bigint", &ends)?;
        world.make_table(name, "fact", "facts", "id")?;
        for number in 1..=shards {
            let low = u64::from(number - 1) * each + 1;
            let fill = format!(
                "INSERT INTO fact SELECT n, n % 50, n * 7919 % 1000003 FROM generate_series({low}, {}) n",
                low + each - 1
            );
            world.load(&shard(name, number), &fill)?;
            world.load(&shard(name, number), "VACUUM ANALYZE")?;
        }
    }
    report.say(format_args!("\nfan-out, {rows} rows, one client"));
    report.say("| query | 4 shards ms | 1 shard ms | times |\n|---|---|---|---|");
    for (name, query) in QUERIES {
        let mut figures: [Vec<Figure>; 2] = Default::default();
        for round in 0..rounds(options) {
            for turn in 0..2 {
                let at = (round + turn) % 2;
                let database = ["four", "one"][at];
                let login = Login { port: world.endpoint().port(), user: LOGIN, database };
                let said =
                    asked(world, &login, ("fanout", query), "extended", 1, options.time, "1")?;
                let figure = read(&said).ok_or_else(|| format!("pgbench says {said}"))?;
                figures[at].push(figure.1);
            }
        }
        let [four, one] =
            [0, 1].map(|side| median(figures[side].iter().map(|figure| figure.latency_ms)));
        let line = format!("| {name} | {four:.2} | {one:.2} | {:.2} |", four / one);
        eprintln!("{line}");
        report.say(line);
    }
    Ok(())
}
