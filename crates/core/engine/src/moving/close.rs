//! The end of a move: what it left behind is deleted, then it is remembered for a while.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use lazuli_shardmap::catalog::{Expected, kinds};
use lazuli_shardmap::layout::Space;
use lazuli_shardmap::local::LocalMap;
use lazuli_shardmap::record::{decode, encode};
use lazuli_shardmap::{Garbage, MapReason, Move, MoveStage, ShardId};
use lazuli_store::{Error, KeyRange, Result};

use super::status::{self, Finished, MoveStatus, Outcome, Phase};
use crate::engine::Engine;
use crate::garbage::{clean_keys, is_by_time_in};
use crate::item::keys_of;

/// How many moves that are over are remembered; beyond it the oldest are forgotten.
const MOVES_FINISHED_MAX: usize = 1_000;

impl Engine {
    /// Cleans up behind a move that has arrived or was called off, and ends it.
    pub(super) async fn close_move(
        &self,
        moving: Move,
        status: &Arc<Mutex<MoveStatus>>,
    ) -> Result<()> {
        self.manager.settle_routes(moving.container, &moving.routes).await?;
        let moving = &match moving.stage {
            MoveStage::Cancelled => {
                let cleared = self.manager.clear_move(moving.number).await?;
                // Another one may have begun that, and what becomes garbage is not known before it is done.
                self.manager.settle_routes(moving.container, &moving.routes).await?;
                cleared
            }
            _ => moving,
        };
        let (outcome, phase, shard) = match moving.stage {
            MoveStage::Arrived => (Outcome::Arrived, Phase::Retiring, moving.source),
            _ => (Outcome::Cancelled, Phase::CleaningUp, moving.target),
        };
        let (pause, bytes) = {
            let mut status = status::lock(status);
            status.moving = moving.clone();
            status.phase = phase;
            (status.pause_predicted.filter(|_| outcome == Outcome::Arrived), status.bytes)
        };
        let points = &self.env.points;
        if outcome == Outcome::Cancelled {
            self.forget_written_down(moving).await?;
            points.reach("move", "forgot what was written down").await;
        }
        for garbage in self.garbage_of(moving, shard).await? {
            self.clean(&garbage).await?;
            points.reach("move", phase.written()).await;
        }
        let ended_ms = self.env.clock.now_ms();
        let finished = Finished { moving: moving.clone(), outcome, ended_ms, pause, bytes };
        self.remember(&finished).await?;
        points.reach("move", "remembered").await;
        self.manager.end_move(moving.number).await?;
        points.reach("move", "ended").await;
        if outcome == Outcome::Cancelled {
            self.moves.counters.cancelled.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    async fn garbage_of(&self, moving: &Move, shard: ShardId) -> Result<Vec<Garbage>> {
        let all = self.manager.garbage().await?;
        let is_ours = |it: &Garbage| {
            it.shard == shard
                && it.container == moving.container
                && it.routes.overlaps(&moving.routes)
        };
        Ok(all.into_iter().filter(is_ours).collect())
    }

    /// Deletes what was written down for a move that does not come about, under the guards of the partitions that hold
    /// the routes now, offline ones too. One of them that is on its way again needs it: its own move will delete it. One
    /// that changes meanwhile refuses, and all is tried again.
    async fn forget_written_down(&self, moving: &Move) -> Result<()> {
        let Ok(shard) = self.shards.get(moving.source) else { return Ok(()) };
        shard.local.refresh().await?;
        for partition in shard.local.partitions()? {
            let is_other = partition.container != moving.container || partition.state.is_moving();
            let routes = partition.routes.intersect(&moving.routes);
            if is_other || routes.is_empty() {
                continue;
            }
            let guard = LocalMap::partition_guard(partition.id, partition.epoch);
            let rows = keys_of(moving.container, Space::MOVING, &KeyRange::all());
            clean_keys(&shard, &guard, rows, |key, _| is_by_time_in(key, &routes)).await?;
        }
        Ok(())
    }

    async fn remember(&self, finished: &Finished) -> Result<()> {
        let catalog = self.manager.catalog();
        let key = Bytes::copy_from_slice(&finished.moving.number.to_be_bytes());
        let kind = kinds::MOVE_FINISHED;
        catalog.put_record(kind, key, encode(finished), Expected::Anything).await?;
        let most = MOVES_FINISHED_MAX + 1;
        let kept = catalog.scan_records(kind, &KeyRange::all(), most).await?;
        if kept.len() == most {
            catalog.delete_record(kind, kept[0].key.clone(), Expected::Anything).await?;
        }
        Ok(())
    }

    /// Moves that are over, the oldest first.
    pub async fn moves_finished(&self) -> Result<Vec<Finished>> {
        let (kind, most) = (kinds::MOVE_FINISHED, MOVES_FINISHED_MAX);
        let records = self.manager.catalog().scan_records(kind, &KeyRange::all(), most).await?;
        records.into_iter().map(|record| decode(record.value)).collect()
    }

    /// What is remembered of a move that is over.
    pub async fn move_finished(&self, number: u64) -> Result<Finished> {
        let catalog = self.manager.catalog();
        let found = catalog.get_record(kinds::MOVE_FINISHED, &number.to_be_bytes()).await?;
        let missing =
            || Error::not_found(MapReason::MoveNotFound, format!("there is no move {number}"));
        decode(found.ok_or_else(missing)?.value)
    }
}
