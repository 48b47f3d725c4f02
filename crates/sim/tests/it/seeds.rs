//! Some seeds of every scenario, with every test run. More: `cargo xtask sim --seeds N`.

use lazuli_sim::runner::{run_many, run_one};
use lazuli_sim::scenario::{CANARIES, SCENARIOS};
use lazuli_sim::workloads::cache::IN_MOTION;

/// Seeds of each scenario, unless `LAZULI_SIM_SEEDS` says how many.
const SEEDS: u64 = 25;

#[test]
fn every_scenario_holds_for_some_seeds() {
    let scenarios: Vec<_> = SCENARIOS.iter().collect();
    let seeds = std::env::var("LAZULI_SIM_SEEDS").map_or(SEEDS, |seeds| seeds.parse().unwrap());
    let failures = run_many(&scenarios, 0, seeds);
    for report in &failures {
        println!("{}: {}", report.replay(), report.failure.as_deref().unwrap_or_default());
    }
    assert!(failures.is_empty(), "{} failures, first: {}", failures.len(), failures[0].replay());
}

/// Within so many seeds the bug of a canary must be found.
const CANARY_SEEDS: u64 = 300;

#[test]
fn every_canary_fails() {
    for canary in CANARIES {
        let found = (0..CANARY_SEEDS).find_map(|seed| run_one(canary, seed, false).failure);
        let found = found.unwrap_or_else(|| panic!("{} went unnoticed", canary.name));
        println!("{}: {found}", canary.name);
    }
}

#[test]
fn every_scenario_takes_the_same_way_with_the_same_seed() {
    for scenario in SCENARIOS {
        let mut ways = std::collections::BTreeSet::new();
        for seed in 0..5 {
            let first = run_one(scenario, seed, false);
            let second = run_one(scenario, seed, false);
            assert_eq!(first.trace, second.trace, "{}", first.replay());
            ways.insert(first.trace);
        }
        assert_eq!(ways.len(), 5, "{}: different seeds took the same way", scenario.name);
    }
}

/// The scenario of the cache would prove little if its partitions moved one after another.
#[test]
fn partitions_of_the_cache_move_at_the_same_time() {
    let scenario = lazuli_sim::scenario::find("cache").unwrap();
    let together = |seed| {
        let log = run_one(scenario, seed, true).log;
        let counts =
            log.iter().filter_map(|line| line.split_once(IN_MOTION)?.0.split(' ').nth_back(1));
        counts.filter_map(|it| it.parse::<u64>().ok()).max().unwrap_or_default()
    };
    let most = (0..20).map(together).max();
    assert!(most >= Some(2), "at most {most:?} partitions were in motion");
}
