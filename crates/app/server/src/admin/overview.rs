//! Totals for the overview page: requests by service, and storage by shard.

use lazuli_net::{Grain, Metrics, STEP_S, Step};
use lazuli_shardmap::Shard;
use serde_json::{Value, json};

use super::fronts;
use super::refusal::Result;
use crate::running::Running;

/// The most partitions of a shard that are counted for one answer because their figures are not known yet. If there are
/// more, the sums say that they are partial.
const COUNTED_MAX: usize = 100;
/// Over how many of the last steps a rate is taken.
const RATE_STEPS: usize = 2;

pub(super) async fn overview(running: &Running) -> Result<Value> {
    let mut shards = Vec::new();
    for shard in running.catalog().shards().await? {
        shards.push(sums(running, &shard).await?);
    }
    let services: Vec<Value> =
        running.listening().map(|metrics| service(running, metrics)).collect();
    Ok(json!({ "services": services, "step_s": STEP_S, "shards": shards }))
}

fn service(running: &Running, metrics: &Metrics) -> Value {
    let name = metrics.name();
    let (mut requests, mut refused, mut failed) = (0, 0, 0);
    for (outcome, count) in metrics.operations().values().flat_map(|series| &series.outcomes) {
        requests += count;
        refused += if outcome.is_refused() { *count } else { 0 };
        failed += if outcome.is_failed() { *count } else { 0 };
    }
    let recent = metrics.recent(Grain::Fine);
    let last = &recent[recent.len().saturating_sub(RATE_STEPS)..];
    let seconds = (last.len().max(1) as u64 * STEP_S) as f64;
    let lately: u64 = last.iter().map(|step| step.requests).sum();
    let troubled: u64 = last.iter().map(|step| step.refused + step.failed).sum();
    let step = |step: &Step| json!([step.requests, step.refused, step.failed]);
    json!({
        "name": name,
        "title": fronts::title(name),
        "urls": running.urls(name),
        "requests": requests,
        "refused": refused,
        "failed": failed,
        "requests_per_second": lately as f64 / seconds,
        "errors_per_second": troubled as f64 / seconds,
        "recent": recent.iter().map(step).collect::<Vec<_>>(),
    })
}

/// What the partitions of a shard hold and were asked for, added up. A shard that is down has no sums.
async fn sums(running: &Running, shard: &Shard) -> Result<Value> {
    let mut shown = json!({ "name": shard.name });
    if running.host.why_down(shard.id).is_some() {
        return Ok(shown);
    }
    let live = running.engine.shards().get(shard.id)?;
    let (mut items, mut bytes, mut uncounted) = (0u64, 0u64, 0);
    for (partition, (_, known)) in live.sizes().await? {
        let size = match known {
            Some(size) => Some(size),
            None if uncounted == COUNTED_MAX => None,
            None => {
                uncounted += 1;
                running.engine.partition_size(partition, shard.id).await.ok()
            }
        };
        items += size.map_or(0, |size| size.items);
        bytes += size.map_or(0, |size| size.bytes);
    }
    let mut asked = live.asked();
    asked.add(&running.history.history().elsewhere_on(shard.id));
    for (name, figure) in [
        ("items", items),
        ("bytes", bytes),
        ("reads", asked.reads),
        ("writes", asked.writes),
        ("throttled", asked.throttled),
    ] {
        shown[name] = json!(figure);
    }
    shown["partial"] = json!(uncounted == COUNTED_MAX);
    Ok(shown)
}
