//! The settings of the balancer.

use std::time::Duration;

use lazuli_balance::{Load, Settings as Planner};

use super::{Reader, Result, Wrong, value};

/// The shortest and the longest time over which requests are averaged: what the history has.
const AVERAGE_MINUTES: std::ops::RangeInclusive<u64> = 1..=120;

/// What the balancer of a running server is told.
#[derive(Clone, Debug)]
pub struct Balance {
    /// Whether it makes and carries out plans by itself.
    pub automatic: bool,
    /// How often it does.
    pub interval: Duration,
    /// Over how many minutes requests are averaged.
    pub average_minutes: u32,
    pub planner: Planner,
}

const SWITCH: &[(&str, bool)] = &[("off", false), ("on", true)];

pub(super) fn balance(one: &Reader<'_>) -> Result<Balance> {
    let planner = Planner {
        weights: one.need("balance-goals", value::goals)?,
        band: one.need("balance-band", value::percent)?,
        gain_min: one.need("balance-gain-min", value::percent)?,
        floor: Load {
            bytes: one.need("balance-floor-bytes", value::bytes_or_none)?,
            requests: one.need("balance-floor-requests", value::number)?,
            items: one.need("balance-floor-items", value::number)? as u64,
        },
        rest_ms: millis(one.need("balance-rest", value::time)?),
        split_bytes: one.need("balance-split-bytes", value::bytes)?,
        split_requests: one.need("balance-split-requests", value::number)?,
        split_share: one.need("balance-split-share", value::percent)?,
        hot_share: one.need("balance-hot-share", value::percent)?,
        merge_bytes: one.need("balance-merge-bytes", value::bytes_or_none)?,
        merge_requests: one.need("balance-merge-requests", value::number)?,
        moves_at_once: one.need("balance-moves-at-once", value::count)?,
        moves_per_shard: one.need("balance-moves-per-shard", value::count)?,
        bandwidth: one.need("balance-bandwidth", value::bytes)?,
        window: one.may("balance-window", value::window)?,
        actions_max: one.need("balance-actions-max", value::count)?,
    };
    planner.check().map_err(|sentence| Wrong::new(format!("balance: {sentence}")))?;
    let average = one.need("balance-average", value::time)?;
    let minutes = average.as_secs() / 60;
    if !AVERAGE_MINUTES.contains(&minutes) || minutes * 60 != average.as_secs() {
        let sentence = "balance-average takes whole minutes from 1m to 2h";
        return Err(Wrong::new(sentence.to_owned()));
    }
    Ok(Balance {
        automatic: one.need("balance", |text| value::choice(text, SWITCH))?,
        interval: one.need("balance-interval", value::time)?,
        average_minutes: minutes as u32,
        planner,
    })
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
