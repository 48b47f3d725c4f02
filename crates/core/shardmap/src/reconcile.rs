//! The reconciler: finishes what a crash left half done, and says what it cannot decide.
//!
//! It runs at start and every now and then. Nothing depends on when: any caller that meets an unfinished operation finishes
//! it as well.

use lazuli_store::{Error, Result};

use crate::catalog::View;
use crate::manager::Manager;
use crate::recovery::Difference;
use crate::{ContainerId, ShardId};

/// What the reconciler did, and what is left for an operator.
#[derive(Debug, Default)]
pub struct Report {
    /// Operations that it finished.
    pub finished: Vec<u64>,
    /// Operations that it could not finish.
    pub stuck: Vec<(u64, Error)>,
    /// Containers whose deletion it could not finish.
    pub undeleted: Vec<(ContainerId, Error)>,
    /// Shards that it could not look at.
    pub unreachable: Vec<(ShardId, Error)>,
    /// Shards that have taken operations of which the catalog knows nothing: the catalog was restored from a backup.
    pub ahead: Vec<ShardId>,
    /// Where catalog and local maps differ.
    pub differences: Vec<Difference>,
}

impl Report {
    /// Whether nothing is left to do or to decide.
    pub fn is_clean(&self) -> bool {
        self.stuck.is_empty()
            && self.undeleted.is_empty()
            && self.unreachable.is_empty()
            && self.ahead.is_empty()
            && self.differences.is_empty()
    }
}

impl Manager {
    /// Finishes all that can be finished and compares the catalog with the local map of every shard that answers. Fails
    /// only if the catalog itself does not answer.
    pub async fn reconcile(&self) -> Result<Report> {
        let mut report = Report::default();
        let shards = self.catalog().shards().await?;
        for shard in &shards {
            let refreshed = match self.local(shard.id) {
                Ok(local) => local.refresh().await,
                Err(error) => Err(error),
            };
            if let Err(error) = refreshed {
                report.unreachable.push((shard.id, error));
            }
        }
        for operation in self.catalog().operations().await? {
            match self.finish(&operation).await {
                Ok(()) => report.finished.push(operation.number),
                Err(error) => report.stuck.push((operation.number, error)),
            }
        }
        let snapshot = self.catalog().snapshot().await?;
        let deleting = View::of(&*snapshot).deleting().await?;
        drop(snapshot);
        for container in deleting.into_iter().map(|deleting| deleting.container.id) {
            if let Err(error) = self.go_on_deleting(container).await {
                report.undeleted.push((container, error));
            }
        }
        for shard in shards {
            let is_known = report.unreachable.iter().any(|(id, _)| *id == shard.id);
            if !is_known && let Err(error) = self.look_at(shard.id, &mut report).await {
                report.unreachable.push((shard.id, error));
            }
        }
        Ok(report)
    }

    async fn look_at(&self, shard: ShardId, report: &mut Report) -> Result<()> {
        // In this order: a shard has never seen more than the catalog has decided by then.
        let seen = self.local(shard)?.seen()?;
        if seen > self.catalog().version().await? {
            report.ahead.push(shard);
        }
        self.reconcile_arrivals(shard).await?;
        self.reconcile_garbage(shard).await?;
        report.differences.extend(self.detect(shard).await?);
        Ok(())
    }
}
