//! `lazuli simulate`: the arguments.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args as ClapArgs, ValueEnum};
use lazuli_balance::{Settings, Weights, Window};
use lazuli_server::settings::{parse_bytes, parse_goals, parse_number, parse_time, parse_window};

pub(crate) const AFTER_HELP: &str = "Nothing but this process is asked or changed. The same flags and seed print the \
                                     same. How to read it: docs/balancing.md";

/// The most shards and partitions of a simulated fleet: what fits into the memory of a small machine.
const SHARDS_MAX: u64 = 100_000;
const PARTITIONS_MAX: u64 = 20_000_000;
const HOURS_MAX: u64 = 10_000;

#[derive(Debug, ClapArgs)]
pub(crate) struct Simulate {
    /// How many shards
    #[arg(long, value_name = "N", default_value = "100",
          value_parser = clap::value_parser!(u64).range(1..=SHARDS_MAX))]
    pub(crate) shards: u64,
    /// How many partitions
    #[arg(long, value_name = "N", default_value = "10000",
          value_parser = clap::value_parser!(u64).range(1..=PARTITIONS_MAX))]
    pub(crate) partitions: u64,
    /// How requests are spread over partitions: `uniform`, or `zipf:S` with an exponent such as 1.1
    #[arg(long, value_name = "LOAD", default_value = "zipf:1.1", value_parser = load)]
    pub(crate) load: Spread,
    /// Requests per second of the whole fleet [default: 1000 for each shard]
    #[arg(long, value_name = "N", value_parser = parse_number)]
    pub(crate) requests: Option<f64>,
    /// Bytes of a partition on average
    #[arg(long, value_name = "BYTES", default_value = "256MiB", value_parser = parse_bytes)]
    pub(crate) bytes: u64,
    /// Where partitions are at the start
    #[arg(long, default_value = "random")]
    pub(crate) start: Start,
    /// How many of the shards are new and empty
    #[arg(long, value_name = "N", default_value = "0")]
    pub(crate) empty: u64,
    /// How many of the shards are being drained
    #[arg(long, value_name = "N", default_value = "0")]
    pub(crate) drain: u64,
    /// How often the load shifts to other partitions, such as 6h [default: never]
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub(crate) shift: Option<Duration>,
    /// A fleet in a JSON file instead of a random one
    #[arg(long, value_name = "FILE",
          conflicts_with_all = ["shards", "partitions", "load", "requests", "bytes", "start", "empty", "drain"])]
    pub(crate) fleet: Option<PathBuf>,
    /// How many hours to simulate at most
    #[arg(long, value_name = "N", default_value = "24",
          value_parser = clap::value_parser!(u64).range(1..=HOURS_MAX))]
    pub(crate) hours: u64,
    /// The time between two lines
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = parse_time)]
    pub(crate) step: Duration,
    /// The seed of the random numbers
    #[arg(long, value_name = "N", default_value = "1")]
    pub(crate) seed: u64,
    #[command(flatten)]
    pub(crate) balance: Balance,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// The settings of the balancer that differ from the defaults.
#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "Settings of the balancer")]
pub(crate) struct Balance {
    /// The weights of the goals [default: bytes=1,requests=1,items=0]
    #[arg(long, value_name = "GOALS", value_parser = parse_goals)]
    goals: Option<Weights>,
    /// How many percent a shard may differ from the mean [default: 10]
    #[arg(long, value_name = "PERCENT", value_parser = parse_number)]
    band: Option<f64>,
    /// How long a partition is left alone after a change [default: 10m]
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    rest: Option<Duration>,
    /// Partitions with more bytes are split [default: 10GiB]
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    split_bytes: Option<u64>,
    /// Partitions with more requests per second are split [default: 2000]
    #[arg(long, value_name = "N", value_parser = parse_number)]
    split_requests: Option<f64>,
    /// On overloaded shards, partitions with more percent of the average load of a shard are split [default: 25]
    #[arg(long, value_name = "PERCENT", value_parser = parse_number)]
    split_share: Option<f64>,
    /// Neighbours that have at most this many bytes together are merged, unless they are busy [default: 64MiB]
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes, conflicts_with = "no_merge")]
    merge_bytes: Option<u64>,
    /// Never merge
    #[arg(long)]
    no_merge: bool,
    /// Moves at the same time [default: 8]
    #[arg(long, value_name = "N")]
    moves_at_once: Option<usize>,
    /// Of these, from or to one shard [default: 2]
    #[arg(long, value_name = "N")]
    moves_per_shard: Option<usize>,
    /// Bytes per second that all moves copy together [default: 256MiB]
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    bandwidth: Option<u64>,
    /// When moves may start, UTC, such as 22:00-04:00 [default: at any time]
    #[arg(long, value_name = "FROM-TO", value_parser = parse_window)]
    window: Option<Window>,
}

impl Balance {
    /// All settings, with the defaults of those that were not given. One plan may be as long as the fleet needs.
    pub(crate) fn settings(&self) -> Settings {
        let usual = Settings::default();
        let merge_bytes = if self.no_merge { Some(0) } else { self.merge_bytes };
        Settings {
            weights: self.goals.unwrap_or(usual.weights),
            band: self.band.map_or(usual.band, |percent| percent / 100.0),
            rest_ms: self.rest.map_or(usual.rest_ms, |rest| rest.as_millis() as u64),
            split_bytes: self.split_bytes.unwrap_or(usual.split_bytes),
            split_requests: self.split_requests.unwrap_or(usual.split_requests),
            split_share: self.split_share.map_or(usual.split_share, |percent| percent / 100.0),
            merge_bytes: merge_bytes.unwrap_or(usual.merge_bytes),
            moves_at_once: self.moves_at_once.unwrap_or(usual.moves_at_once),
            moves_per_shard: self.moves_per_shard.unwrap_or(usual.moves_per_shard),
            bandwidth: self.bandwidth.unwrap_or(usual.bandwidth),
            window: self.window,
            actions_max: usize::MAX,
            ..usual
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Spread {
    Uniform,
    /// The load of the n-th partition is that of the first, divided by n to this power.
    Zipf(f64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Start {
    /// All on the first shard
    OneShard,
    /// One after another over all shards
    Even,
    /// Each on any shard
    Random,
}

fn load(text: &str) -> Result<Spread, String> {
    let expected = || "`uniform`, or `zipf:S` with an exponent from 0 to 10".to_owned();
    match text.strip_prefix("zipf:") {
        Some(exponent) => {
            let exponent =
                parse_number(exponent).ok().filter(|it| *it <= 10.0).ok_or_else(expected)?;
            Ok(Spread::Zipf(exponent))
        }
        None => (text == "uniform").then_some(Spread::Uniform).ok_or_else(expected),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_are_read() {
        assert_eq!(load("uniform"), Ok(Spread::Uniform));
        assert_eq!(load("zipf:1.1"), Ok(Spread::Zipf(1.1)));
        assert!(
            ["zipf", "zipf:", "zipf:-1", "zipf:NaN", "zipf:11", "x"]
                .iter()
                .all(|it| load(it).is_err())
        );
    }
}
