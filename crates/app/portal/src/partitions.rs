//! Partitions as pages see them: read once from what the admin API says.

use serde_json::Value;

use crate::api::{Api, Result};
use crate::layout::{list, text};

/// How many partitions one request asks for.
const PAGE: &str = "10000";
/// The most partitions of a container that a page looks at.
pub(crate) const PARTITIONS_MAX: usize = 50_000;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Partition {
    pub(crate) id: u64,
    pub(crate) map: String,
    /// The first key; none at the beginning of the space.
    pub(crate) from: Option<String>,
    /// The key behind the last; none at the end of the space.
    pub(crate) to: Option<String>,
    pub(crate) shard: String,
    pub(crate) epoch: u64,
    pub(crate) state: String,
    pub(crate) items: u64,
    pub(crate) bytes: u64,
    pub(crate) reads: u64,
    pub(crate) writes: u64,
    pub(crate) throttled: u64,
    /// The keys that are asked for most.
    pub(crate) hottest: Vec<HotKey>,
}

/// A key that is asked for often. How often is known within bounds only.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct HotKey {
    pub(crate) key: String,
    pub(crate) at_least: u64,
    pub(crate) at_most: u64,
}

impl Partition {
    pub(crate) fn read(value: &Value) -> Self {
        let number = |name: &str| value[name].as_u64().unwrap_or(0);
        let key = |name: &str| value[name].as_str().map(str::to_owned);
        let hot = |one: &Value| HotKey {
            key: text(&one["key"]).to_owned(),
            at_least: one["at_least"].as_u64().unwrap_or(0),
            at_most: one["at_most"].as_u64().unwrap_or(0),
        };
        Self {
            id: number("id"),
            map: text(&value["map"]).to_owned(),
            from: key("from"),
            to: key("to"),
            shard: text(&value["shard"]).to_owned(),
            epoch: number("epoch"),
            state: text(&value["state"]).to_owned(),
            items: number("items"),
            bytes: number("bytes"),
            reads: number("reads"),
            writes: number("writes"),
            throttled: number("throttled"),
            hottest: list(&value["hottest"]).iter().map(hot).collect(),
        }
    }

    pub(crate) fn requests(&self) -> u64 {
        self.reads.saturating_add(self.writes)
    }

    pub(crate) fn path(&self) -> String {
        path(self.id)
    }

    /// Its keys in words.
    pub(crate) fn keys(&self) -> String {
        let from = self.from.as_ref().map(|from| match from.strip_prefix(AFTER) {
            Some(_) => from.clone(),
            None => format!("from {from}"),
        });
        let to = self.to.as_ref().map(|to| match to.strip_prefix(AFTER) {
            Some(last) => ("", format!("up to {last}")),
            None => ("to ", format!("below {to}")),
        });
        match (from, to) {
            (None, None) => "all keys".to_owned(),
            (Some(one), None) | (None, Some((_, one))) => one,
            (Some(from), Some((word, to))) => format!("{from} {word}{to}"),
        }
    }
}

/// What stands before a key where a bound follows that key.
const AFTER: &str = "after ";

/// The page of a partition.
pub(crate) fn path(id: u64) -> String {
    format!("/portal/partitions/{id}")
}

/// The partitions of a container in the order of keys, up to [`PARTITIONS_MAX`]; whether these are all.
pub(crate) async fn of_map(api: &Api, map: &str) -> Result<(Vec<Partition>, bool)> {
    let mut all = Vec::new();
    let mut after = String::new();
    while all.len() < PARTITIONS_MAX {
        let query = [("map", map), ("limit", PAGE), ("after", after.as_str())];
        let page = api.get_with(&["v1", "partitions"], &query).await?;
        all.extend(list(&page["partitions"]).iter().map(Partition::read));
        match page["next"].as_str() {
            Some(next) => after = next.to_owned(),
            None => return Ok((all, true)),
        }
    }
    Ok((all, false))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_read_as_people_say_them() {
        let keys = |from: Option<&str>, to: Option<&str>| {
            let [from, to] = [from, to].map(|bound| bound.map(str::to_owned));
            Partition { from, to, ..Partition::default() }.keys()
        };
        assert_eq!(keys(None, None), "all keys");
        assert_eq!(keys(None, Some("after city-0250")), "up to city-0250");
        assert_eq!(keys(Some("after city-0250"), None), "after city-0250");
        assert_eq!(keys(Some("a"), Some("b")), "from a to below b");
        assert_eq!(keys(Some("after a"), Some("after b")), "after a up to b");
    }
}
