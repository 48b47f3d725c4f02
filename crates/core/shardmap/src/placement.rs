//! Placement rules: which shards may hold which routes (S16).

use std::collections::BTreeMap;

use lazuli_store::KeyRange;

/// Routes of this range may live only on shards of this region (if one is named) with all of these labels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    pub routes: KeyRange,
    pub region: Option<String>,
    pub labels: BTreeMap<String, String>,
}
