//! The shards by their names, and the colour that each has on every page.

use std::collections::BTreeMap;

use maud::{Markup, html};
use serde_json::Value;

use crate::api::{Api, Result};
use crate::chart::swatch;
use crate::layout::{list, text};

/// The colours of shards. They follow from the ids, so that a shard keeps its colour when others come and go.
#[derive(Debug, Default)]
pub(crate) struct Colours(BTreeMap<String, usize>);

impl Colours {
    pub(crate) async fn of(api: &Api) -> Result<Self> {
        Ok(Self::read(&api.get(&["v1", "shards"]).await?))
    }

    pub(crate) fn read(shards: &Value) -> Self {
        // The first shard has the id one.
        let colour = |one: &Value| one["id"].as_u64().unwrap_or(0).saturating_sub(1) as usize;
        let one = |shard: &Value| (text(&shard["name"]).to_owned(), colour(shard));
        Self(list(&shards["shards"]).iter().map(one).collect())
    }

    /// The colour of a shard; that of the first one if it is not known.
    pub(crate) fn get(&self, shard: &str) -> usize {
        self.0.get(shard).copied().unwrap_or(0)
    }

    /// The name of a shard behind its colour.
    pub(crate) fn name(&self, shard: &str) -> Markup {
        html! { span.shard { (swatch(self.get(shard))) (shard) } }
    }
}
