//! The settings of the balancer. `docs/balancing.md` lists them with their defaults.

use crate::{Goal, Load};

/// The weight of each goal; zero means that it does not count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Weights {
    pub bytes: f64,
    pub requests: f64,
    pub items: f64,
}

impl Weights {
    pub fn of(&self, goal: Goal) -> f64 {
        match goal {
            Goal::Bytes => self.bytes,
            Goal::Requests => self.requests,
            Goal::Items => self.items,
        }
    }
}

/// A part of each day, in minutes since midnight, UTC. It may reach over midnight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    pub from_minute: u32,
    pub to_minute: u32,
}

const MINUTE_MS: u64 = 60_000;
const DAY_MINUTES: u64 = 24 * 60;

impl Window {
    pub fn is_open(&self, now_ms: u64) -> bool {
        let minute = (now_ms / MINUTE_MS % DAY_MINUTES) as u32;
        if self.from_minute <= self.to_minute {
            (self.from_minute..self.to_minute).contains(&minute)
        } else {
            minute >= self.from_minute || minute < self.to_minute
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    pub weights: Weights,
    /// How far from the mean a shard may be before the balancer acts, as a part of the mean. Then it continues to
    /// half of it.
    pub band: f64,
    /// A move must reduce the difference of both shards by its own weight and this part of it more.
    pub gain_min: f64,
    /// Differences from the mean up to this are not worth a move, however large a part of the mean they are.
    pub floor: Load,
    /// How long a partition rests after it was moved or merged.
    pub rest_ms: u64,
    /// A partition with more bytes than this is split.
    pub split_bytes: u64,
    /// A partition with more requests per second than this is split.
    pub split_requests: f64,
    /// A partition that alone is more than this part of a shard's mean load is too large to balance. It is split too
    /// if its shard is outside of the band; infinity means never.
    pub split_share: f64,
    /// A shardlet with this share of its partition's requests is isolated.
    pub hot_share: f64,
    /// Neighbours that have no more bytes than this together are merged; zero means never.
    pub merge_bytes: u64,
    /// Neighbours with more requests per second than this together are not merged.
    pub merge_requests: f64,
    /// Moves running at the same time.
    pub moves_at_once: usize,
    /// Of these, how many may come from or go to one shard.
    pub moves_per_shard: usize,
    /// Bytes per second that all moves together may copy.
    pub bandwidth: u64,
    /// When actions may begin; none means at any time. Running ones continue.
    pub window: Option<Window>,
    /// The most actions of one plan. The next plan continues.
    pub actions_max: usize,
}

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

impl Default for Settings {
    fn default() -> Self {
        Self {
            weights: Weights { bytes: 1.0, requests: 1.0, items: 0.0 },
            band: 0.10,
            gain_min: 0.5,
            floor: Load { bytes: 64 * MIB, requests: 10.0, items: 100_000 },
            rest_ms: 10 * MINUTE_MS,
            split_bytes: 10 * GIB,
            split_requests: 2_000.0,
            split_share: 0.25,
            hot_share: 0.5,
            merge_bytes: 64 * MIB,
            merge_requests: 1.0,
            moves_at_once: 8,
            moves_per_shard: 2,
            bandwidth: 256 * MIB,
            window: None,
            actions_max: 10_000,
        }
    }
}

impl Settings {
    /// Bytes per second of one move: its part of the bandwidth, so that all together stay within it.
    pub fn rate(&self) -> u64 {
        (self.bandwidth / self.moves_at_once.max(1) as u64).max(1)
    }

    /// Names the first invalid setting.
    pub fn check(&self) -> Result<(), &'static str> {
        let weights = Goal::ALL.map(|goal| self.weights.of(goal));
        let part = |value: f64| value.is_finite() && value >= 0.0;
        let rules = [
            (weights.iter().all(|weight| part(*weight)), "a weight is a number from 0 up"),
            (weights.iter().any(|weight| *weight > 0.0), "one weight at least is above 0"),
            (self.band > 0.0 && self.band < 1.0, "the band is between 0 and 1"),
            (part(self.gain_min), "the least gain is a number from 0 up"),
            (part(self.floor.requests), "the floor of requests is a number from 0 up"),
            (self.hot_share > 0.0 && self.hot_share <= 1.0, "the hot share is between 0 and 1"),
            (self.split_bytes > 0, "partitions are split at a size above 0"),
            (self.split_requests > 0.0, "partitions are split at a load above 0"),
            (self.split_share > 0.0, "partitions are split at a share above 0"),
            (part(self.merge_requests), "the load up to which is merged is a number from 0 up"),
            // Otherwise splits and merges would alternate forever.
            (self.merge_bytes <= self.split_bytes / 2, "merged is up to half the size of splits"),
            (
                self.merge_requests <= self.split_requests / 2.0,
                "merged is up to half the load of splits",
            ),
            (
                self.moves_at_once > 0 && self.moves_per_shard > 0,
                "one move at least may be under way",
            ),
            (self.bandwidth > 0, "the bandwidth is above 0"),
            (self.actions_max > 0, "a plan may have one action at least"),
        ];
        rules.iter().find(|(holds, _)| !holds).map_or(Ok(()), |(_, sentence)| Err(*sentence))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_make_sense_and_nonsense_is_named() {
        assert_eq!(Settings::default().check(), Ok(()));
        let band = Settings { band: 1.5, ..Settings::default() };
        assert_eq!(band.check(), Err("the band is between 0 and 1"));
        let merge = Settings { merge_bytes: 6 * GIB, ..Settings::default() };
        assert_eq!(merge.check(), Err("merged is up to half the size of splits"));
        let none = Weights { bytes: 0.0, requests: 0.0, items: 0.0 };
        assert!(Settings { weights: none, ..Settings::default() }.check().is_err());
        let nan = Weights { bytes: f64::NAN, ..Settings::default().weights };
        assert!(Settings { weights: nan, ..Settings::default() }.check().is_err());
    }

    #[test]
    fn a_window_may_reach_over_midnight() {
        let hour = |hour: u64| hour * 60 * MINUTE_MS + 17 * DAY_MINUTES * MINUTE_MS;
        let day = Window { from_minute: 8 * 60, to_minute: 17 * 60 };
        assert_eq!([7, 8, 16, 17].map(|it| day.is_open(hour(it))), [false, true, true, false]);
        let night = Window { from_minute: 22 * 60, to_minute: 4 * 60 };
        assert_eq!(
            [21, 22, 0, 3, 4].map(|it| night.is_open(hour(it))),
            [false, true, true, true, false]
        );
    }

    #[test]
    fn moves_share_the_bandwidth() {
        let settings = Settings { bandwidth: 100, moves_at_once: 8, ..Settings::default() };
        assert_eq!(settings.rate(), 12);
    }
}
