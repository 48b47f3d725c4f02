//! What the server is and does, at a glance.

use serde_json::{Value, json};

use super::refusal::Result;
use crate::endpoints::by_name;
use crate::health::Unhealthy;
use crate::running::Running;
use crate::settings::Durability;

pub(super) async fn status(running: &Running) -> Result<Value> {
    let catalog = running.catalog();
    let shards = catalog.shards().await?;
    let down = shards.iter().filter(|shard| running.host.why_down(shard.id).is_some()).count();
    let troubles: Vec<Value> = running
        .engine
        .troubles()
        .into_iter()
        .map(|trouble| {
            let error = trouble.error.to_string();
            json!({ "work": trouble.work, "error": error, "count": trouble.count })
        })
        .collect();
    let unhealthy: Vec<Value> = running.unhealthy().iter().map(Unhealthy::json).collect();
    Ok(json!({
        "version": env!("CARGO_PKG_VERSION"),
        "pid": std::process::id(),
        "uptime_s": running.started.elapsed().as_secs(),
        "durability": match running.durability {
            Durability::Synced => "synced",
            Durability::Relaxed => "relaxed",
        },
        "endpoints": by_name(&running.endpoints),
        "shards": shards.len(),
        "shards_down": down,
        "shards_refused": running.host.refused(),
        "blocks": if running.blocks.doubt().is_some() { "in doubt" } else { "fine" },
        "maps": catalog.container_count().await?,
        "catalog_version": catalog.version().await?,
        "operations_pending": catalog.operations().await?.len(),
        "unhealthy": unhealthy,
        "troubles": troubles,
    }))
}
