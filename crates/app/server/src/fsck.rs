//! Checks everything that is kept: each key of each shard, catalog against local maps, the stores' own files, and the block
//! files beside them.
//!
//! A running server checks itself, from snapshots and while it serves; without one the data folder is opened, looked at
//! and closed again.

use std::sync::Arc;

use lazuli_engine::fsck::Report as ShardReport;
use lazuli_shardmap::manager::Manager;
use lazuli_shardmap::recovery::{Difference, DifferenceKind};
use lazuli_shardmap::{Container, ContainerId, Shard};
use lazuli_store::{Error, StoreReason};
use lazuli_store_embedded::EmbeddedStore;
use serde_json::{Value, json};

use crate::block_check;
use crate::core::Core;
use crate::failure::{Failure, Result};
use crate::folder::Folder;
use crate::home::Opened;
use crate::host::Host;
use crate::settings::Settings;
use crate::system;

/// What a check looked at, and what is not as it should be.
#[derive(Debug, Default)]
pub(crate) struct Report {
    shards: Vec<String>,
    keys: u64,
    items: u64,
    blocks: block_check::Found,
    findings: Vec<Finding>,
    /// Findings that were counted and not listed.
    unlisted: u64,
}

#[derive(Debug)]
pub(crate) struct Finding {
    pub(crate) shard: String,
    pub(crate) code: &'static str,
    /// In hexadecimal.
    pub(crate) key: Option<String>,
    pub(crate) message: String,
}

/// Checks the data folder while no server uses it.
pub fn offline(settings: &Settings, repair: bool) -> Result<Value> {
    system::make_files_private();
    let folder = Folder::open_existing(&settings.data)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| {
        Failure::new("no-threads", format!("the system gives no threads: {error}"))
    })?;
    runtime.block_on(async {
        let core = Core::open(&folder, settings).await?;
        let report = check(core.engine.manager(), &core.host).await?;
        let report =
            report.with_blocks(block_check::check(&core.blobs, &core.blocks, repair).await?);
        core.close().await;
        Ok(report.to_json())
    })
}

/// Checks all shards that are open; one that is down is a finding.
pub(crate) async fn check(
    manager: &Arc<Manager>,
    host: &Host,
) -> std::result::Result<Report, Error> {
    let mut report = Report::default();
    let catalog = manager.catalog();
    for shard in catalog.shards().await? {
        report.shards.push(shard.name.clone());
        if let Some(error) = host.why_down(shard.id) {
            let refusal = host.refusal(shard.id);
            let code = refusal.map_or("shard-down", |refusal| refusal.code());
            report.find(&shard.name, code, error.message().to_owned());
            continue;
        }
        let live = host.live().get(shard.id)?;
        match live.check(catalog).await {
            Ok(found) => report.take(&shard, found),
            Err(error) => report.find(&shard.name, error.code(), error.message().to_owned()),
        }
        for difference in manager.detect(shard.id).await? {
            let container = catalog.container(difference.container).await.ok();
            report.find(&shard.name, "maps-differ", describe(&difference, container.as_ref()));
        }
        // The files of a database are checked by its own tools.
        if let Some(Opened::Folder(store)) = host.opened(shard.id) {
            report.verify(&shard.name, store).await;
        }
    }
    if let Some(folders) = host.folders() {
        report.verify("catalog", folders.catalog().clone()).await;
        for name in folders.unknown(&report.shards) {
            report.find(&name, "folder-unknown", "the catalog has no shard in this folder".into());
        }
    }
    Ok(report)
}

impl Report {
    fn find(&mut self, shard: &str, code: &'static str, message: String) {
        self.findings.push(Finding { shard: shard.to_owned(), code, key: None, message });
    }

    fn take(&mut self, shard: &Shard, found: ShardReport) {
        self.keys += found.keys;
        self.items += found.items;
        self.unlisted += found.findings_unlisted;
        self.findings.extend(found.findings.into_iter().map(|one| Finding {
            shard: shard.name.clone(),
            code: one.code,
            key: one.key.map(|key| hex(&key)),
            message: one.message,
        }));
    }

    /// Adds what was found of the block files.
    pub(crate) fn with_blocks(self, blocks: block_check::Found) -> Self {
        Self { blocks, ..self }
    }

    /// Lets the store read all of its files.
    async fn verify(&mut self, name: &str, store: Arc<EmbeddedStore>) {
        let verified = tokio::task::spawn_blocking(move || store.verify()).await;
        let damages = match verified {
            Ok(Ok(verification)) => verification.damages,
            Ok(Err(error)) => return self.find(name, error.code(), error.message().to_owned()),
            Err(error) => return self.find(name, StoreReason::Panicked.into(), error.to_string()),
        };
        for damage in damages {
            let message = format!("{}: {}", damage.file.display(), damage.what);
            self.find(name, "store-damaged", message);
        }
    }

    pub(crate) fn to_json(&self) -> Value {
        let one = |finding: &Finding| {
            json!({
                "shard": finding.shard,
                "code": finding.code,
                "key": finding.key,
                "message": finding.message,
                "hint": hint(finding.code),
            })
        };
        let findings = self.findings.iter().chain(&self.blocks.findings);
        json!({
            "shards": self.shards,
            "keys": self.keys,
            "items": self.items,
            "block_files": self.blocks.files,
            "block_files_removed": self.blocks.removed,
            "findings": findings.map(one).collect::<Vec<_>>(),
            "findings_unlisted": self.unlisted + self.blocks.unlisted,
        })
    }
}

/// What to do about a finding.
fn hint(code: &str) -> &'static str {
    match code {
        "maps-differ" => "decide with `lazuli shard repair NAME --keep catalog` or `--keep shard`",
        "block-orphaned" => "nothing is lost; `lazuli fsck --repair` removes it",
        "block-missing" | "block-damaged" => {
            "the blob cannot be read; put it again, or restore the file from a backup"
        }
        "folder-older" | "folder-parted" | "catalog-older" => {
            "nothing is removed while it is so; the message says what to do"
        }
        "folder-of-other" => "put each folder back where it belongs",
        "shard-down" => "the message says why; all other shards serve",
        "key-orphaned" => "the key is not served and does no harm; report it",
        "counts-differ" => "the items are all there, only the figures are wrong; report it",
        "container-unknown" => "restore the catalog from a copy that knows the container",
        "folder-unknown" => "delete the folder if you do not need it",
        _ => "keep a copy of the data folder, then restore the shard from a backup",
    }
}

fn describe(difference: &Difference, container: Option<&Container>) -> String {
    let ContainerId(id) = difference.container;
    let name = container.map_or_else(|| format!("container {id}"), |one| one.name.clone());
    let who = match difference.kind() {
        DifferenceKind::CatalogOnly => {
            "the catalog says that the shard holds it, the shard does not"
        }
        DifferenceKind::ShardOnly => "the shard says that it holds it, the catalog does not",
        DifferenceKind::Both => "catalog and shard know it with other bounds, epochs or states",
    };
    let bound = |bound: &[u8]| match container {
        Some(one) => one.kind.print(&one.key, bound),
        None => format!("0x{}", hex(bound)),
    };
    let start = &difference.routes.start;
    let from = if start.is_empty() { "the beginning".to_owned() } else { bound(start) };
    let to = difference.routes.end.as_ref().map_or_else(|| "the end".to_owned(), |end| bound(end));
    format!("{name} from {from} to {to}: {who}")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
}
