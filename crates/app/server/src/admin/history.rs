//! The last day of figures in the admin API: of one partition, of a map, of everything.

use lazuli_history::{Latency, Point, Step};
use lazuli_shardmap::{MapReason, PartitionId};
use serde_json::{Value, json};

use super::maps;
use super::refusal::{Refusal, Result};
use crate::running::Running;

/// Of one partition. One that is gone is shown for as long as anything is known of it.
pub(super) async fn partition(running: &Running, id: u64, step: Step) -> Result<Value> {
    let series = running.history.history().partition(PartitionId(id), step);
    let points = match series {
        Some(points) => points,
        None => {
            let missing = |error: lazuli_store::Error| match error.reason() {
                Some(MapReason::PartitionNotFound) => {
                    Refusal::not_found("partition", &id.to_string(), "lazuli partition list")
                }
                _ => error.into(),
            };
            running.catalog().partition(PartitionId(id)).await.map_err(missing)?;
            Vec::new()
        }
    };
    Ok(with_points(json!({ "partition": id }), step, &points))
}

/// The sums over a map's partitions; percentiles are those of the slowest one.
pub(super) async fn map(running: &Running, name: &str, step: Step) -> Result<Value> {
    let container = maps::find(running, name).await?;
    let points = running.history.history().container(container.id, step);
    Ok(with_points(json!({ "map": name }), step, &points))
}

/// The sums over all partitions.
pub(super) fn everything(running: &Running, step: Step) -> Value {
    let points = running.history.history().sum(step, |_| true);
    with_points(json!({}), step, &points)
}

fn with_points(mut shown: Value, step: Step, points: &[Point]) -> Value {
    shown["step"] = json!(step.name());
    shown["step_ms"] = json!(step.ms());
    shown["points"] = points.iter().map(show).collect();
    shown
}

fn show(point: &Point) -> Value {
    let Point { at_ms, size, reads, writes, throttled, read, write } = point;
    let Latency { mean_us: read_mean_us, p99_us: read_p99_us } = read;
    let Latency { mean_us: write_mean_us, p99_us: write_p99_us } = write;
    json!({
        "at_ms": at_ms,
        "items": size.items,
        "bytes": size.bytes,
        "reads": reads,
        "writes": writes,
        "throttled": throttled,
        "read_mean_us": read_mean_us,
        "read_p99_us": read_p99_us,
        "write_mean_us": write_mean_us,
        "write_p99_us": write_p99_us,
    })
}
