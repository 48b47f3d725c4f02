//! The named points of durable work: each one is stopped at in every way, and nothing is lost.

use lazuli_sim::points::{POINTS, Sabotage, Stop};
use lazuli_sim::runner::run;
use lazuli_sim::scenario::stopped;

/// Within so many seeds a point must have been come to.
const SEEDS_MAX: u64 = 200;
const POINTS_LEAST: usize = 24;

/// Whether the work came to the point in this run. The run must hold either way.
fn is_stopped(sabotage: Sabotage, seed: u64) -> bool {
    let report = run("stops", seed, true, |world| stopped(world, sabotage));
    assert_eq!(report.failure, None, "{sabotage:?}, seed {seed}");
    for line in &report.log {
        // The time stands before it, and clients tell other things.
        if let Some((_, point)) = line.split_once(" point ").filter(|(time, _)| is_time(time)) {
            let is_known = POINTS.contains(&point) || is_elsewhere(point);
            assert!(is_known, "{point} is not in the list of points");
        }
    }
    report.log.iter().any(|line| line.contains(" stopped at "))
}

fn is_time(text: &str) -> bool {
    text.trim().parse::<f64>().is_ok()
}

/// Operations that are no part of a split, merge, move or maintenance.
fn is_elsewhere(point: &str) -> bool {
    let work = point.split_once(':').map(|(work, _)| work);
    work.is_some_and(|work| {
        ["create container", "delete container", "add partitions", "delete partition"]
            .contains(&work)
    })
}

#[test]
fn work_goes_on_wherever_it_was_stopped() {
    assert!(POINTS.len() >= POINTS_LEAST);
    for point in POINTS {
        for stop in Stop::ALL {
            let sabotage = Sabotage { point, stop, times: 2 };
            let found = (0..SEEDS_MAX).find(|seed| is_stopped(sabotage, *seed));
            assert!(found.is_some(), "nobody came to {point} in {SEEDS_MAX} seeds");
        }
    }
}
