//! Histories of synthetic samples.

use std::time::Duration;

use lazuli_engine::{Latencies, ShardId};

use super::*;

const STEP_MS: u64 = 10_000;
/// A moment at which all steps begin.
const BEGIN_MS: u64 = 1_800_000_000_000;

fn held(shard: u32) -> Held {
    Held { shard: ShardId(shard), container: ContainerId(7) }
}

fn sample(id: u64, writes: u64, bytes: u64) -> Sample {
    let took = Duration::from_micros(100);
    Sample {
        partition: PartitionId(id),
        held: Some(held(1)),
        size: Some(Size { items: bytes / 10, bytes, outside: 0 }),
        reads: 0,
        writes,
        throttled: 0,
        read_times: Latencies::default(),
        write_times: Latencies::of((0..writes).map(|_| took)),
    }
}

/// A history with a clock that advances by ten seconds and a little.
struct Run {
    history: History,
    steps: u64,
}

impl Run {
    fn new(partitions_max: usize) -> Self {
        Self { history: History::new(partitions_max, BEGIN_MS), steps: 0 }
    }

    fn step(&mut self, samples: &[Sample]) {
        self.steps += 1;
        self.history.take(BEGIN_MS + self.steps * STEP_MS + 3, samples);
    }

    fn series(&self, id: u64, step: Step) -> Vec<Point> {
        self.history.partition(PartitionId(id), step).unwrap_or_default()
    }
}

#[test]
fn every_length_of_step_has_the_same_requests_and_quiet_steps_are_zero() {
    let mut run = Run::new(10);
    for step in 0..60 {
        // Every other minute is idle.
        let busy = [sample(1, step + 1, 100 + step)];
        run.step(if step / 6 % 2 == 0 { &busy } else { &[] });
    }
    let fine = run.series(1, Step::TenSeconds);
    let (minutes, tens) = (run.series(1, Step::Minute), run.series(1, Step::TenMinutes));
    assert_eq!((fine.len(), minutes.len(), tens.len()), (60, 10, 1));
    let writes = |points: &[Point]| points.iter().map(|point| point.writes).sum::<u64>();
    assert_eq!(writes(&fine), writes(&minutes));
    assert_eq!(writes(&fine), writes(&tens));
    assert_eq!((fine[7].writes, fine[7].write.mean_us), (0, 0));
    assert_eq!(fine[7].size.bytes, 105, "a quiet step has the size of the one before");
    assert_eq!(fine[12].at_ms, BEGIN_MS + 12 * STEP_MS);
    assert_eq!((fine[12].writes, fine[12].size.bytes), (13, 112));
    let (mean, p99) = (fine[12].write.mean_us, fine[12].write.p99_us);
    assert!(mean == 100 && (64..=128).contains(&p99), "{mean} {p99}");
}

#[test]
fn a_day_of_traffic_stays_within_its_memory_and_quiet_partitions_cost_an_entry() {
    let mut run = Run::new(10);
    run.step(&[sample(2, 1, 5)]);
    for step in 0..2 * 8_640 {
        run.step(&[sample(1, 1, step)]);
    }
    for step in Step::ALL {
        assert_eq!(run.series(1, step).len(), step.kept() as usize, "{step:?}");
        assert!(run.series(1, step).iter().all(|point| point.writes == step.ms() / STEP_MS));
        let quiet = run.series(2, step);
        assert!(quiet.iter().all(|point| point.writes == 0 && point.size.bytes == 5));
    }
    let both = run.history.bytes();
    assert!((324 * 32..12_000).contains(&both), "{both} bytes for a busy and a quiet partition");
    let mut quiet = Run::new(10);
    quiet.history.resize([(
        PartitionId(1),
        held(1),
        Some(Size { items: 1, bytes: 2, outside: 0 }),
    )]);
    assert!(quiet.history.bytes() < 400, "{}", quiet.history.bytes());
}

#[test]
fn sums_of_a_container_do_not_jump_when_a_partition_is_split() {
    let mut run = Run::new(10);
    run.step(&[sample(1, 5, 1_000)]);
    run.step(&[sample(1, 5, 1_000)]);
    // Partition 1 becomes 2 and 3, of which one is in use at once and the other is counted later.
    let is_here = |id: PartitionId, held: Held| (id != PartitionId(1)).then_some(held);
    assert!(run.history.find(is_here));
    run.history.resize([(PartitionId(2), held(1), None), (PartitionId(3), held(1), None)]);
    run.step(&[Sample { size: None, ..sample(2, 5, 0) }]);
    assert_eq!(run.history.unsized_partitions(9).len(), 2);
    run.step(&[sample(2, 5, 400), Sample { writes: 0, ..sample(3, 0, 600) }]);
    run.step(&[]);
    let sums = run.history.container(ContainerId(7), Step::TenSeconds);
    let bytes: Vec<u64> = sums.iter().map(|point| point.size.bytes).collect();
    let writes: Vec<u64> = sums.iter().map(|point| point.writes).collect();
    assert_eq!(bytes, [1_000; 5]);
    assert_eq!(writes, [5, 5, 5, 5, 0]);
    assert_eq!(run.series(1, Step::TenSeconds).len(), 2, "it ends where it was split");
    assert!(run.history.container(ContainerId(8), Step::TenSeconds).iter().all(|p| p.writes == 0));
}

#[test]
fn a_moved_partition_goes_on_with_what_both_shards_saw() {
    let mut run = Run::new(10);
    run.step(&[sample(1, 5, 1_000)]);
    let left = Sample { held: None, size: None, ..sample(1, 2, 0) };
    run.step(&[left, Sample { held: Some(held(2)), ..sample(1, 3, 1_010) }]);
    assert!(!run.history.find(|_, _| Some(held(2))));
    let series = run.series(1, Step::TenSeconds);
    assert_eq!(
        series.iter().map(|p| (p.writes, p.size.bytes)).collect::<Vec<_>>(),
        [(5, 1_000), (5, 1_010)]
    );
    assert_eq!(run.history.sum(Step::TenSeconds, |held| held.shard == ShardId(2))[1].writes, 5);
    // A query for a partition that has ended and was never in the history.
    run.step(&[Sample { held: None, ..sample(9, 2, 0) }]);
    assert!(!run.history.is_watched(PartitionId(9)));
}

#[test]
fn whoever_was_quiet_for_longest_makes_room() {
    let mut run = Run::new(2);
    run.step(&[sample(1, 1, 1)]);
    run.step(&[sample(2, 1, 1)]);
    run.step(&[sample(3, 1, 1)]);
    let is_watched = |run: &Run, id: &u64| run.history.is_watched(PartitionId(*id));
    let watched = |run: &Run| (1..6).filter(|id| is_watched(run, id)).collect::<Vec<_>>();
    assert_eq!(watched(&run), [2, 3].to_vec());
    run.step(&[sample(3, 1, 1), sample(4, 1, 1), sample(5, 1, 1)]);
    assert_eq!(watched(&run), [3, 4].to_vec());
    assert_eq!((run.history.partitions(), run.history.unwatched()), (2, 1));
}

#[test]
fn rates_are_means_over_minutes_or_since_a_partition_is_known() {
    let mut run = Run::new(10);
    for _ in 0..90 {
        run.step(&[sample(1, 100, 1)]);
    }
    run.step(&[sample(2, 100, 1)]);
    let rate = |id, minutes| run.history.rates(PartitionId(id), minutes).unwrap().writes;
    assert!((rate(1, 5) - 10.0).abs() < 0.4, "{}", rate(1, 5));
    assert!((rate(1, 10) - 10.0).abs() < 0.2, "{}", rate(1, 10));
    assert!((5.0..=10.0).contains(&rate(2, 5)), "{}", rate(2, 5));
    assert_eq!(run.history.rates(PartitionId(3), 5), None);
    let lately = run.history.lately(PartitionId(1)).unwrap();
    assert_eq!((lately.writes, lately.write.mean_us), (500, 100));
}

#[test]
fn a_clock_that_stalls_or_goes_back_loses_nothing() {
    let mut run = Run::new(10);
    run.step(&[sample(1, 1, 1)]);
    run.steps = 0;
    run.step(&[sample(1, 2, 1)]);
    run.steps = 30;
    run.step(&[sample(1, 4, 1)]);
    run.step(&[]);
    let writes: u64 = run.series(1, Step::TenSeconds).iter().map(|point| point.writes).sum();
    assert_eq!(writes, 7);
}
