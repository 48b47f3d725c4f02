//! One front in the admin API: its requests by operation and outcome, how long they took, connections and bytes, and what it
//! tells of itself alone.

use std::collections::BTreeMap;

use lazuli_history::Step as Grained;
use lazuli_net::metrics::Series;
use lazuli_net::{Cell, Counts, Grain, Metrics, Section, quantile_s};
use lazuli_shardmap::ShardId;
use serde_json::{Value, json};

use super::jobs;
use super::refusal::{Refusal, Result};
use crate::fronts;
use crate::running::Running;

/// What the figures of the admin API and the portal are called, which are in no table of fronts.
const OWN_TITLES: [(&str, &str); 2] = [("admin", "Admin API"), ("portal", "Portal")];
const MICROS_PER_SECOND: f64 = 1e6;

/// The figures of the front of this name, with steps as long as asked for.
pub(super) async fn show(running: &Running, name: &str, step: Grained) -> Result<Value> {
    let mut all = running.listening().chain([&running.portal]);
    let metrics = all.find(|metrics| metrics.name() == name);
    let metrics = metrics.ok_or_else(|| Refusal::not_found("front", name, "lazuli status"))?;
    let grain = match step {
        Grained::TenSeconds => Grain::Fine,
        Grained::Minute => Grain::Minute,
        Grained::TenMinutes => Grain::TenMinutes,
    };
    let sheet = running.sheets.iter().find(|(front, _)| *front == name);
    let sections = match sheet {
        Some((_, make)) => make().await,
        None => Vec::new(),
    };
    let shards = jobs::names(running).await?;
    let recent = metrics.recent(grain);
    Ok(json!({
        "name": name,
        "title": title(name),
        "urls": running.urls(name),
        "counts": show_counts(metrics.counts()),
        "operations": operations(metrics),
        "step_s": grain.step_s(),
        "recent": recent.iter().map(show_step).collect::<Vec<_>>(),
        "sections": sections.iter().map(|it| show_section(it, &shards)).collect::<Vec<_>>(),
    }))
}

pub(super) fn title(name: &str) -> &str {
    let own = OWN_TITLES.iter().find(|(known, _)| *known == name).map(|(_, title)| *title);
    own.or_else(|| fronts::find(name).map(|front| front.title)).unwrap_or(name)
}

fn show_counts(counts: Counts) -> Value {
    json!({
        "connections_open": counts.connections_open,
        "connections": counts.connections,
        "connections_refused": counts.refused,
        "received_bytes": counts.received_bytes,
        "sent_bytes": counts.sent_bytes,
        "panics": counts.panics,
        "timeouts": counts.timeouts,
    })
}

fn operations(metrics: &Metrics) -> Vec<Value> {
    let one = |(name, series): (&&'static str, &Series)| {
        let sum = |counts: fn(lazuli_net::Outcome) -> bool| -> u64 {
            series.outcomes.iter().filter(|(it, _)| counts(**it)).map(|(_, count)| count).sum()
        };
        let requests = sum(|_| true);
        let outcomes: BTreeMap<String, u64> =
            series.outcomes.iter().map(|(outcome, count)| (outcome.text(), *count)).collect();
        json!({
            "name": name,
            "requests": requests,
            "requests_per_second": metrics.rate(series),
            "refused": sum(lazuli_net::Outcome::is_refused),
            "failed": sum(lazuli_net::Outcome::is_failed),
            "outcomes": outcomes,
            "mean_us": (series.sum_s * MICROS_PER_SECOND / requests.max(1) as f64).round() as u64,
            "p50_us": quantile(&series.buckets, 0.5),
            "p99_us": quantile(&series.buckets, 0.99),
        })
    };
    metrics.operations().iter().map(one).collect()
}

fn show_step(step: &lazuli_net::Step) -> Value {
    let buckets = step.buckets.map(u64::from);
    json!({
        "requests": step.requests,
        "refused": step.refused,
        "failed": step.failed,
        "p50_us": quantile(&buckets, 0.5),
        "p99_us": quantile(&buckets, 0.99),
    })
}

/// What a part of the requests took at most. None if there were no requests.
fn quantile(buckets: &[u64; lazuli_net::metrics::BUCKETS_S.len() + 1], part: f64) -> Option<u64> {
    quantile_s(buckets, part).map(|seconds| (seconds * MICROS_PER_SECOND).round() as u64)
}

fn show_section(section: &Section, shards: &jobs::Names) -> Value {
    let cell = |it: &Cell| show_cell(it, shards);
    match section {
        Section::Figures { title, figures } => {
            let figure =
                |(name, it): &(&'static str, Cell)| json!({ "name": name, "value": cell(it) });
            json!({ "title": title, "figures": figures.iter().map(figure).collect::<Vec<_>>() })
        }
        Section::Table { title, columns, rows, note } => json!({
            "title": title,
            "columns": columns,
            "rows": rows.iter().map(|row| row.iter().map(cell).collect()).collect::<Vec<Vec<_>>>(),
            "note": note,
        }),
    }
}

/// A figure with its unit as its only field; a shard by its name.
fn show_cell(cell: &Cell, shards: &jobs::Names) -> Value {
    match cell {
        Cell::Text(text) => json!({ "text": text }),
        Cell::Count(count) => json!({ "count": count }),
        Cell::Bytes(bytes) => json!({ "bytes": bytes }),
        Cell::Rate(rate) => json!({ "rate": rate }),
        Cell::Share(share) => json!({ "share": share }),
        Cell::Micros(micros) => json!({ "micros": micros }),
        Cell::Seconds(seconds) => json!({ "seconds": seconds }),
        Cell::Shard(id) => {
            let id = u32::try_from(*id).ok().map(ShardId);
            json!({ "shard": id.and_then(|id| shards.get(&id)) })
        }
        Cell::None => json!({}),
    }
}
