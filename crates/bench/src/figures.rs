//! Figures that several benchmarks need: what the system says about this process, and the middle of many values.

use std::path::Path;
use std::time::Duration;

/// The processor time of this process so far, without the engine's background workers: they work off what either of the
/// two has left. Zero where the system does not say.
pub(crate) fn cpu_time() -> Duration {
    cpu_time_without("fjall")
}

/// The processor time of this process so far, without the threads whose names begin so. Zero where the system does not
/// say.
pub(crate) fn cpu_time_without(prefix: &str) -> Duration {
    let Ok(threads) = std::fs::read_dir("/proc/self/task") else { return Duration::ZERO };
    let time = |folder: &Path| {
        let name = std::fs::read_to_string(folder.join("comm")).ok()?;
        let times = std::fs::read_to_string(folder.join("schedstat")).ok()?;
        let nanos = times.split(' ').next()?.parse().ok()?;
        (!name.starts_with(prefix)).then_some(Duration::from_nanos(nanos))
    };
    threads.filter_map(|thread| time(&thread.ok()?.path())).sum()
}

/// The memory that the process has, as Linux says it.
pub(crate) fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}

pub(crate) fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}
