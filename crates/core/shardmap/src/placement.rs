//! Placement rules: which shards may hold which routes (S16).
//!
//! Every rule whose routes overlap a partition's applies to that partition, and all that apply must
//! hold. So rules only ever narrow: "all of it in the EU" and "these tenants on premium shards"
//! together mean premium shards in the EU, in whatever order they were written. Where no rule
//! applies, any shard will do.

use std::collections::BTreeMap;
use std::fmt;

use lazuli_store::{Error, KeyRange, Result};

use crate::Shard;

/// Routes of this range may live only on shards of this region (if one is named) with all of these
/// labels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    pub routes: KeyRange,
    pub region: Option<String>,
    pub labels: BTreeMap<String, String>,
}

impl Rule {
    /// Whether the shard is what the rule asks for, whatever the routes.
    fn takes(&self, shard: &Shard) -> bool {
        self.region.as_ref().is_none_or(|region| *region == shard.region)
            && self.labels.iter().all(|(name, value)| shard.labels.get(name) == Some(value))
    }
}

/// What the rule asks for, as `region eu, tier = premium`.
impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let region = self.region.iter().map(|region| format!("region {region}"));
        let labels = self.labels.iter().map(|(name, value)| format!("{name} = {value}"));
        f.write_str(&region.chain(labels).collect::<Vec<_>>().join(", "))
    }
}

/// Refuses with `placement-refused`, naming the first rule that forbids it, to place these routes
/// on this shard.
pub fn allowed(rules: &[Rule], routes: &KeyRange, shard: &Shard) -> Result<()> {
    let broken = |rule: &&Rule| rule.routes.overlaps(routes) && !rule.takes(shard);
    match rules.iter().enumerate().find(|(_, rule)| broken(rule)) {
        None => Ok(()),
        Some((nth, rule)) => Err(Error::invalid(
            "placement-refused",
            format!("shard {} is not what placement rule {} asks for: {rule}", shard.name, nth + 1),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ShardId;
    use bytes::Bytes;

    fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn shard(region: &str, pairs: &[(&str, &str)]) -> Shard {
        let name = "shard-0001".to_owned();
        let (region, labels) = (region.to_owned(), labels(pairs));
        Shard { id: ShardId(1), location: name.clone(), name, region, labels, version: 1 }
    }

    fn range(start: &'static str, end: &'static str) -> KeyRange {
        KeyRange::new(start, Some(Bytes::from(end)))
    }

    fn rules() -> Vec<Rule> {
        let eu = Rule {
            routes: KeyRange::all(),
            region: Some("eu".to_owned()),
            labels: BTreeMap::new(),
        };
        let premium =
            Rule { routes: range("m", "p"), region: None, labels: labels(&[("tier", "premium")]) };
        vec![eu, premium]
    }

    #[test]
    fn any_shard_will_do_where_no_rule_applies() {
        assert!(allowed(&[], &KeyRange::all(), &shard("us", &[])).is_ok());
        assert!(allowed(&rules()[1..], &range("a", "m"), &shard("us", &[])).is_ok());
    }

    #[test]
    fn all_rules_that_overlap_must_hold() {
        let premium = [("tier", "premium"), ("disk", "fast")];
        assert!(allowed(&rules(), &range("a", "m"), &shard("eu", &[])).is_ok());
        assert!(allowed(&rules(), &range("a", "n"), &shard("eu", &premium)).is_ok());
        assert!(allowed(&rules(), &range("a", "n"), &shard("us", &premium)).is_err());
        assert!(allowed(&rules(), &range("a", "n"), &shard("eu", &[("tier", "basic")])).is_err());
    }

    #[test]
    fn a_refusal_names_the_shard_and_the_rule() {
        let refused = allowed(&rules(), &range("n", "o"), &shard("eu", &[])).unwrap_err();
        assert_eq!(refused.code(), "placement-refused");
        assert_eq!(
            refused.message(),
            "shard shard-0001 is not what placement rule 2 asks for: tier = premium"
        );
    }
}
