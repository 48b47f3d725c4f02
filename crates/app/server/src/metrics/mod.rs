//! What `/metrics` says: requests, connections, shards, the busiest partitions, the process.

mod page;
mod process;

use std::sync::Arc;

use lazuli_balance::Goal;
use lazuli_engine::{LiveShard, PartitionId, ShardId};
use lazuli_history::Point;
use lazuli_net::metrics::{BUCKETS_S, Series};
use lazuli_store::Copies;

use crate::balance::Kind;
use crate::health::STATES;
use crate::running::Running;
use page::Page;

/// How many partitions of all shards are named: the busiest ones.
const PARTITIONS_MAX: usize = 50;
const MICROS_PER_SECOND: f64 = 1e6;

impl Running {
    /// The page of metrics at this moment.
    pub(crate) async fn metrics(&self) -> String {
        let mut page = Page::default();
        let uptime = self.started.elapsed().as_secs_f64();
        page.single("lazuli_uptime_seconds", "gauge", "Time since the start.", uptime);
        self.write_requests(&mut page);
        self.write_bytes(&mut page);
        self.write_connections(&mut page);
        self.write_in_flight(&mut page);
        self.write_moves(&mut page);
        self.write_balance(&mut page);
        self.write_shards(&mut page);
        self.write_health(&mut page);
        self.write_doubts(&mut page).await;
        self.write_partitions(&mut page).await;
        let hot_ends = self.engine.hot_ends().len() as f64;
        let help = "Maps whose inserts all land at one end.";
        page.single("lazuli_maps_with_hot_end", "gauge", help, hot_ends);
        let removed = self.removed.count() as f64;
        let help = "Block files removed because nothing named them any more.";
        page.single("lazuli_block_files_removed_total", "counter", help, removed);
        process::write(&mut page);
        page.text()
    }

    /// Requests by operation and outcome, and how long they took: the same for every front, whatever its protocol.
    fn write_requests(&self, page: &mut Page) {
        let counted =
            || self.listening().chain([&self.portal]).map(|it| (it.name(), it.operations()));
        let name = "lazuli_requests_total";
        page.family(name, "counter", "Requests answered.");
        for (front, operations) in counted() {
            for (operation, series) in &operations {
                for (outcome, count) in &series.outcomes {
                    let status = outcome.text();
                    let labels = [("front", front), ("operation", operation), ("status", &status)];
                    page.sample(name, &labels, *count as f64);
                }
            }
        }
        page.family("lazuli_request_seconds", "histogram", "How long requests took.");
        for (front, operations) in counted() {
            for (operation, series) in &operations {
                write_durations(page, &[("front", front), ("operation", operation)], series);
            }
        }
    }

    fn write_bytes(&self, page: &mut Page) {
        let name = "lazuli_bytes_total";
        page.family(name, "counter", "Bytes of connections, inside TLS.");
        for front in self.listening() {
            let counts = front.counts();
            for (direction, bytes) in
                [("received", counts.received_bytes), ("sent", counts.sent_bytes)]
            {
                let labels = [("front", front.name()), ("direction", direction)];
                page.sample(name, &labels, bytes as f64);
            }
        }
    }

    fn write_connections(&self, page: &mut Page) {
        type Figure = fn(&lazuli_net::Counts) -> u64;
        let families: [(&str, &str, &str, Figure); 6] = [
            ("lazuli_connections_open", "gauge", "Open connections.", |c| c.connections_open),
            ("lazuli_connections_total", "counter", "Connections accepted.", |c| c.connections),
            ("lazuli_connections_refused_total", "counter", "Connections over the limit.", |c| {
                c.refused
            }),
            ("lazuli_panics_total", "counter", "Requests that hit a fault of ours.", |c| c.panics),
            ("lazuli_timeouts_total", "counter", "Requests that took too long.", |c| c.timeouts),
            (
                "lazuli_accept_failures_total",
                "counter",
                "Connections refused by the system.",
                |c| c.accept_failures,
            ),
        ];
        for (name, kind, help, figure) in families {
            page.family(name, kind, help);
            for front in self.listening() {
                page.sample(name, &[("front", front.name())], figure(&front.counts()) as f64);
            }
        }
    }

    /// One sample per store and state: 1 for the one that it is in.
    fn write_health(&self, page: &mut Page) {
        let name = "lazuli_store_health";
        page.family(name, "gauge", "What a store takes: all, deletions, reads, or nothing.");
        let unhealthy = self.host.unhealthy();
        for store in self.host.store_names() {
            let found = unhealthy.iter().find(|it| it.store == store);
            let is = found.map_or(STATES[0], |it| it.state);
            for state in STATES {
                let labels = [("store", store.as_str()), ("state", state)];
                page.sample(name, &labels, f64::from(u8::from(state == is)));
            }
        }
    }

    fn write_in_flight(&self, page: &mut Page) {
        let budget = &self.budget;
        for (name, kind, help, value) in [
            ("lazuli_in_flight_bytes", "gauge", "Memory of bodies and answers.", budget.held()),
            ("lazuli_in_flight_bytes_peak", "gauge", "The most it ever was.", budget.peak()),
            ("lazuli_in_flight_bytes_limit", "gauge", "The most it may be.", budget.bytes_max()),
            (
                "lazuli_in_flight_refused_total",
                "counter",
                "Times that there was no memory left for a body or an answer.",
                budget.refused(),
            ),
        ] {
            page.single(name, kind, help, value as f64);
        }
    }

    fn write_shards(&self, page: &mut Page) {
        type Figure = fn(&lazuli_engine::ShardStats) -> u64;
        let families: [(&str, &str, &str, Figure); 3] = [
            ("lazuli_shard_commits_total", "counter", "Batches committed.", |s| s.commits),
            ("lazuli_shard_transactions_total", "counter", "Transactions in those batches.", |s| {
                s.transactions
            }),
            ("lazuli_shard_partitions_warm", "gauge", "Partitions in use lately.", |s| {
                s.partitions_warm as u64
            }),
        ];
        let shards = self.host.live().all();
        for (name, kind, help, figure) in families {
            page.family(name, kind, help);
            for shard in &shards {
                let id = shard.id.to_string();
                page.sample(name, &[("shard", &id)], figure(&shard.stats()) as f64);
            }
        }
        self.write_standbys(page, &shards);
    }

    /// Only of shards whose address names standbys that may be read.
    fn write_standbys(&self, page: &mut Page, shards: &[Arc<LiveShard>]) {
        let copies: Vec<_> = shards
            .iter()
            .filter_map(|shard| Some((shard.id.to_string(), shard.store().copies()?)))
            .collect();
        let name = "lazuli_shard_standby_read";
        page.family(name, "gauge", "Whether reads that allow an old state go to a standby.");
        for (id, copies) in &copies {
            let is_read = matches!(copies, Copies::Behind(_));
            page.sample(name, &[("shard", id)], f64::from(u8::from(is_read)));
        }
        let name = "lazuli_shard_standby_behind_seconds";
        page.family(name, "gauge", "How old the state may be that is read from a standby.");
        for (id, copies) in &copies {
            if let Copies::Behind(time) = copies {
                page.sample(name, &[("shard", id)], time.as_secs_f64());
            }
        }
    }

    /// Folders that are not taken as they are, and whether copies of this moment would be known as such.
    async fn write_doubts(&self, page: &mut Page) {
        let refused = self.host.refused() as f64;
        let help = "Shards that are down because their folders are in doubt.";
        page.single("lazuli_shards_refused", "gauge", help, refused);
        let in_doubt = f64::from(u8::from(self.blocks.doubt().is_some()));
        let help = "Whether the folder of block files is in doubt.";
        page.single("lazuli_blocks_in_doubt", "gauge", help, in_doubt);
        let behind = f64::from(u8::from(self.is_behind().await));
        let help = "Whether something was written that the catalog has not recorded yet.";
        page.single("lazuli_floors_behind", "gauge", help, behind);
    }

    fn write_moves(&self, page: &mut Page) {
        type Figure = fn(&lazuli_engine::MoveStats) -> f64;
        let families: [(&str, &str, &str, Figure); 11] = [
            ("lazuli_moves_under_way", "gauge", "Moves that are led.", |m| m.under_way as f64),
            ("lazuli_moves_begun_total", "counter", "Moves that began.", |m| m.begun as f64),
            ("lazuli_moves_arrived_total", "counter", "Partitions that arrived.", |m| {
                m.arrived as f64
            }),
            ("lazuli_moves_cancelled_total", "counter", "Moves that were called off.", |m| {
                m.cancelled as f64
            }),
            ("lazuli_moves_handed_over_total", "counter", "Moves of whole tables.", |m| {
                m.handed_over as f64
            }),
            ("lazuli_moves_reopened_total", "counter", "Fences that stood for too long.", |m| {
                m.reopened as f64
            }),
            ("lazuli_moves_retries_total", "counter", "Moves that had to be tried again.", |m| {
                m.retries as f64
            }),
            ("lazuli_moves_fenced_writes_total", "counter", "Writes that met a fence.", |m| {
                m.fenced_writes as f64
            }),
            ("lazuli_moves_bytes_total", "counter", "Bytes copied or handed over.", |m| {
                m.bytes as f64
            }),
            ("lazuli_moves_pause_seconds_total", "counter", "For how long fences stood.", |m| {
                m.pause_total.as_secs_f64()
            }),
            ("lazuli_moves_pause_seconds_max", "gauge", "The longest of them.", |m| {
                m.pause_longest.as_secs_f64()
            }),
        ];
        let stats = self.engine.move_stats();
        for (name, kind, help, figure) in families {
            page.family(name, kind, help);
            page.sample(name, &[], figure(&stats));
        }
    }

    fn write_balance(&self, page: &mut Page) {
        let state = self.balancer.state();
        let plans = state.plans as f64;
        page.single("lazuli_balance_plans_total", "counter", "Plans made to be done.", plans);
        let running = f64::from(u8::from(state.running.is_some()));
        page.single("lazuli_balance_running", "gauge", "Whether plans are carried out.", running);
        let families = [
            ("lazuli_balance_actions_begun_total", "Actions that began.", &state.begun),
            ("lazuli_balance_actions_done_total", "Actions that were done.", &state.done),
            ("lazuli_balance_actions_failed_total", "Actions that were not.", &state.failed),
        ];
        for (name, help, counts) in families {
            page.family(name, "counter", help);
            for kind in Kind::ALL {
                page.sample(name, &[("kind", kind.name())], counts.of(kind) as f64);
            }
        }
        let name = "lazuli_balance_evenness";
        page.family(
            name,
            "gauge",
            "The fullest shard as a multiple of the mean, by the last plan.",
        );
        for (goal, peak) in Goal::ALL.into_iter().zip(state.peaks.into_iter().flatten()) {
            page.sample(name, &[("goal", goal.name())], peak);
        }
    }

    /// How long requests took in the last minute, and what the history takes.
    fn write_latencies(&self, page: &mut Page, named: Vec<(ShardId, PartitionId)>) {
        type Figure = fn(&Point) -> u64;
        let families: [(&str, &str, Figure); 4] = [
            ("lazuli_partition_read_mean_seconds", "Mean time of a read, last minute.", |p| {
                p.read.mean_us
            }),
            ("lazuli_partition_read_p99_seconds", "99 % of reads took less, last minute.", |p| {
                p.read.p99_us
            }),
            ("lazuli_partition_write_mean_seconds", "Mean time of a write, last minute.", |p| {
                p.write.mean_us
            }),
            ("lazuli_partition_write_p99_seconds", "99 % of writes took less, last minute.", |p| {
                p.write.p99_us
            }),
        ];
        let history = self.history.history();
        for (name, help, figure) in families {
            page.family(name, "gauge", help);
            for (shard, partition) in &named {
                let Some(lately) = history.lately(*partition) else { continue };
                let (shard, partition) = (shard.to_string(), partition.to_string());
                let labels = [("shard", shard.as_str()), ("partition", partition.as_str())];
                page.sample(name, &labels, figure(&lately) as f64 / MICROS_PER_SECOND);
            }
        }
        let watched = history.partitions() as f64;
        page.single("lazuli_history_partitions", "gauge", "Partitions with a history.", watched);
        let help = "Times that a partition in use found no room in the history.";
        let unwatched = history.unwatched() as f64;
        page.single("lazuli_history_unwatched_total", "counter", help, unwatched);
        let bytes = history.bytes() as f64;
        page.single("lazuli_history_bytes", "gauge", "Memory of the history.", bytes);
    }

    async fn write_partitions(&self, page: &mut Page) {
        type Figure = fn(&lazuli_engine::PartitionStats) -> u64;
        let families: [(&str, &str, &str, Figure); 5] = [
            ("lazuli_partition_items", "gauge", "Items.", |s| s.counts.items),
            ("lazuli_partition_bytes", "gauge", "Bytes of keys, values and block files.", |s| {
                s.counts.bytes
            }),
            ("lazuli_partition_reads_total", "counter", "Reads.", |s| s.reads),
            ("lazuli_partition_writes_total", "counter", "Writes.", |s| s.writes),
            ("lazuli_partition_throttled_total", "counter", "Requests over budget.", |s| {
                s.throttled
            }),
        ];
        let mut busiest = Vec::new();
        for shard in self.host.live().all() {
            let stats = shard.busiest_partitions(PARTITIONS_MAX).await.unwrap_or_default();
            busiest.extend(stats.into_iter().map(|stats| (shard.id, stats)));
        }
        busiest.sort_by_key(|(_, stats)| std::cmp::Reverse(stats.reads + stats.writes));
        busiest.truncate(PARTITIONS_MAX);
        let named = busiest.iter().map(|(shard, stats)| (*shard, stats.partition)).collect();
        self.write_latencies(page, named);
        for (name, kind, help, figure) in families {
            page.family(name, kind, help);
            for (shard, stats) in &busiest {
                let (shard, partition) = (shard.to_string(), stats.partition.to_string());
                let labels = [("shard", shard.as_str()), ("partition", partition.as_str())];
                page.sample(name, &labels, figure(stats) as f64);
            }
        }
    }
}

fn write_durations(page: &mut Page, labels: &[(&str, &str); 2], series: &Series) {
    let mut below = 0;
    for (at, count) in series.buckets.iter().enumerate() {
        below += count;
        let bound = BUCKETS_S.get(at).map_or_else(|| "+Inf".to_owned(), f64::to_string);
        let labels = [labels[0], labels[1], ("le", bound.as_str())];
        page.sample("lazuli_request_seconds_bucket", &labels, below as f64);
    }
    page.sample("lazuli_request_seconds_sum", labels, series.sum_s);
    page.sample("lazuli_request_seconds_count", labels, below as f64);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_counted_below_each_bound() {
        let mut series = Series::default();
        for bucket in [0, 2, BUCKETS_S.len()] {
            series.buckets[bucket] = 1;
        }
        series.sum_s = 60.5;
        let mut page = Page::default();
        write_durations(&mut page, &[("front", "tables"), ("operation", "GetEntity")], &series);
        let text = page.text();
        for line in [
            "lazuli_request_seconds_bucket{front=\"tables\",operation=\"GetEntity\",le=\"0.0005\"} 1",
            "lazuli_request_seconds_bucket{front=\"tables\",operation=\"GetEntity\",le=\"10\"} 2",
            "lazuli_request_seconds_bucket{front=\"tables\",operation=\"GetEntity\",le=\"+Inf\"} 3",
            "lazuli_request_seconds_count{front=\"tables\",operation=\"GetEntity\"} 3",
        ] {
            assert!(text.lines().any(|have| have == line), "{line} in\n{text}");
        }
    }
}
