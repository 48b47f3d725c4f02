//! The status of the server: version, endpoints, shards, maps and problems.

use serde_json::{Value, json};

use super::refusal::Result;
use crate::accounts::Account;
use crate::endpoints::{by_name, reasons};
use crate::fronts::FRONTS;
use crate::health::Unhealthy;
use crate::running::Running;
use crate::secret::MASK;
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
        "connection_strings": connection_strings(running).await,
        "not_started": reasons(&running.not_started),
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

/// What a client takes to find and use each front with the first account. Only the key that is published is shown.
async fn connection_strings(running: &Running) -> Value {
    let accounts = running.accounts.list().await;
    let Some((account, _)) = accounts.first() else { return json!({}) };
    let is_published = account.key1.matches(Account::published().key1.reveal());
    let key = if is_published { account.key1.reveal() } else { MASK };
    let served = FRONTS.iter().filter_map(|front| {
        let endpoint = running.endpoints.iter().find(|endpoint| endpoint.name == front.name)?;
        let text = (front.connection_string)(&endpoint.url(), &account.name, key);
        Some((front.name.to_owned(), json!(text)))
    });
    served.collect()
}
