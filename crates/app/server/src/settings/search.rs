//! The settings of the Search front.

use super::table::{Row, row};
use super::{Reader, Result, value};

pub(super) const ROWS: &[Row] = &[
    row(
        "search-wait",
        "on|off",
        Some("off"),
        "Whether documents are answered only when searches find them; a request can say so for itself",
    ),
    row(
        "search-units",
        "limited|any",
        Some("limited"),
        "Partitions and replicas of an index: up to 6 replicas and 36 units as with the service, or any",
    ),
];

const SWITCH: &[(&str, bool)] = &[("on", true), ("off", false)];
const UNITS: &[(&str, bool)] = &[("limited", true), ("any", false)];

pub(super) fn settings(one: &Reader<'_>) -> Result<lazuli_search::Settings> {
    Ok(lazuli_search::Settings {
        waits: one.need("search-wait", |text| value::choice(text, SWITCH))?,
        is_scale_limited: one.need("search-units", |text| value::choice(text, UNITS))?,
    })
}
