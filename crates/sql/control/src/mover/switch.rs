//! The end of a move: fence, last pass, the catalog's commit, and the target's opening.

use std::time::Duration;

use lazuli_store::Result;
use tokio::time::{Instant, sleep};

use super::{Mover, TAKEN};
use crate::book::Draft;
use crate::job::{Step, Work};
use crate::link::sqlstate;
use crate::local::{self, LocalChange};

/// How long the move rests after the range could not be fenced in time, for each time that it was tried.
const RETREAT: Duration = Duration::from_millis(100);
const RETREAT_MAX: Duration = Duration::from_secs(5);
/// How long the shards' local maps are waited for when the mapping changes hands. Nobody holds rows of them by then.
const APPLY_TIME_MAX: Duration = Duration::from_secs(10);

impl Mover<'_> {
    /// Fences the range and gives it to the target, or opens it again and goes back.
    pub(super) async fn switch(&mut self) -> Result<()> {
        self.ensure_open().await?;
        // Temporary tables and plans are made before anybody waits.
        self.make_key_tables().await?;
        // Much may have been written while all rows were compared.
        self.pass_most().await?;
        let limit = Duration::from_millis(self.work.options.pause_limit_ms);
        let begun = Instant::now();
        let epoch = self.mapping.epoch + 1;
        let id = self.mapping.id;
        let guarding = self.guarding();
        let fenced = local::fence(&mut self.source, &guarding, id, epoch, limit / 2).await;
        if let Err(error) = fenced {
            return match sqlstate(&error) {
                // A transaction has written to the range and does not end, or waits for us.
                "57014" | "55P03" | "40P01" => self.retreat("a transaction holds the range").await,
                TAKEN => Err(self.taken()),
                _ => Err(self.source.failed(&error)),
            };
        }
        self.control.reached(self.job, "fenced").await;
        loop {
            let changes = self.pass(true).await?;
            if changes == 0 && self.waiting().await? == 0 {
                break;
            }
            if begun.elapsed() > limit {
                return self.retreat("the rest took too long").await;
            }
        }
        self.control.reached(self.job, "drained").await;
        self.commit(epoch + 1).await?;
        self.control.reached(self.job, "committed").await;
        self.open_and_close().await?;
        self.work.pause_us = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.advance(Step::Retire, "opened").await
    }

    /// Opens the range on the source again, and lets writers go on for a while.
    async fn retreat(&mut self, why: &str) -> Result<()> {
        self.ensure_open().await?;
        self.work.retreats += 1;
        let retreats = self.work.retreats;
        let trouble = format!("could not fence the range {retreats} times: {why}");
        self.control.tell(&self.name, self.job, |told| told.trouble = Some(trouble));
        self.advance(Step::CatchUp, "retreated").await?;
        sleep((RETREAT * retreats).min(RETREAT_MAX)).await;
        Ok(())
    }

    /// The catalog gives the mapping to the target. From here on there is no way back.
    async fn commit(&mut self, epoch: u64) -> Result<()> {
        let (job, leader) = (self.job, self.epoch);
        self.mapping.epoch = epoch;
        self.mapping.shard = self.work.to;
        self.work.step = Step::Open;
        let (mapping, work) = (self.mapping.clone(), self.work.clone());
        let edit = |draft: &mut Draft| {
            draft.led(job, leader)?.work = Work::Move(work.clone());
            draft.mappings.insert(mapping.id, mapping.clone());
            Ok(())
        };
        self.control.change(&self.name, edit).await.map(drop)
    }

    /// Goes on where a leader died after the commit.
    pub(super) async fn open_target(&mut self) -> Result<()> {
        self.open_and_close().await?;
        self.advance(Step::Retire, "opened").await
    }

    /// The target's local map takes the mapping, and the source's drops it.
    async fn open_and_close(&mut self) -> Result<()> {
        let taken = LocalChange { removed: Vec::new(), put: vec![self.mapping.clone()] };
        local::apply(&mut self.target, self.job, &taken, APPLY_TIME_MAX).await?;
        self.control.reached(self.job, "target-open").await;
        let gone = LocalChange { removed: vec![self.mapping.id], put: Vec::new() };
        local::apply(&mut self.source, self.job, &gone, APPLY_TIME_MAX).await
    }
}
