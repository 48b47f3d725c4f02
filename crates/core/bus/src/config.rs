//! What a fragment knows of its entity: a copy of the directory's description, its subscriptions and their rules.
//!
//! The copy is in the fragment's own shardlet, so that every transaction goes by one state of it. Parsed rules are kept
//! in memory, by the number of the change that the fragment's state names.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use bytes::{BufMut, Bytes, BytesMut};
use lazuli_engine::{ContainerId, Result};
use lazuli_shardmap::record::Record;

use crate::description::{Description, EntityKind, Rule};
use crate::filter::{Action, CorrelationFilter, Filter};
use crate::record::{damaged, fields};

/// How many fragments' rules are kept in memory.
const KEPT_MAX: usize = 10_000;

/// An entity as its fragments know it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct EntityConfig {
    pub(crate) number: u32,
    pub(crate) kind: EntityKind,
    pub(crate) name: String,
    pub(crate) description: Description,
}

/// A subscription as the fragments of its topic know it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SubscriptionConfig {
    pub(crate) number: u32,
    /// The change of the topic that made it what it is.
    pub(crate) changed: u64,
    pub(crate) name: String,
    pub(crate) description: Description,
    pub(crate) rules: Vec<Rule>,
}

fields!(EntityConfig { number, kind, name, description });
fields!(SubscriptionConfig { number, changed, name, description, rules });

impl Record for Rule {
    fn write(&self, out: &mut BytesMut) {
        self.name.write(out);
        match &self.filter {
            Filter::True => out.put_u8(1),
            Filter::False => out.put_u8(2),
            Filter::Sql(sql) => {
                out.put_u8(3);
                sql.text().to_owned().write(out);
            }
            Filter::Correlation(correlation) => {
                out.put_u8(4);
                correlation.system.write(out);
                correlation.properties.write(out);
            }
        }
        self.action.as_ref().map(|action| action.text().to_owned()).write(out);
        self.created_ms.write(out);
    }

    fn read(input: &mut Bytes) -> Result<Self> {
        let name = String::read(input)?;
        let filter = match u8::read(input)? {
            1 => Filter::True,
            2 => Filter::False,
            3 => Filter::sql(&String::read(input)?)?,
            4 => {
                let (system, properties) = (Vec::read(input)?, Vec::read(input)?);
                Filter::Correlation(CorrelationFilter { system, properties })
            }
            _ => return Err(damaged("a rule")),
        };
        let action = Option::<String>::read(input)?;
        let action = action.map(|text| Action::parse(&text)).transpose()?;
        Ok(Self { name, filter, action, created_ms: u64::read(input)? })
    }
}

/// An entity with its subscriptions.
#[derive(Debug)]
pub(crate) struct FragmentConfig {
    /// The number of the change.
    pub(crate) change: u64,
    pub(crate) entity: EntityConfig,
    pub(crate) subscriptions: Vec<SubscriptionConfig>,
}

impl FragmentConfig {
    /// The description of the entity, or of a subscription.
    pub(crate) fn description(&self, owner: u32) -> Option<&Description> {
        match owner {
            0 => Some(&self.entity.description),
            _ => self.subscription(owner).map(|it| &it.description),
        }
    }

    pub(crate) fn subscription(&self, owner: u32) -> Option<&SubscriptionConfig> {
        self.subscriptions.iter().find(|it| it.number == owner)
    }

    /// The address of the entity or of a subscription.
    pub(crate) fn address(&self, owner: u32) -> String {
        let name = &self.entity.name;
        match self.subscription(owner) {
            Some(subscription) => format!("{name}/Subscriptions/{}", subscription.name),
            None => name.clone(),
        }
    }
}

/// Parsed configurations, by fragment.
#[derive(Default)]
pub(crate) struct Configs(Mutex<BTreeMap<(ContainerId, Bytes), Arc<FragmentConfig>>>);

impl Configs {
    pub(crate) fn get(
        &self,
        container: ContainerId,
        route: &Bytes,
        change: u64,
    ) -> Option<Arc<FragmentConfig>> {
        let kept = self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        kept.get(&(container, route.clone())).filter(|it| it.change == change).cloned()
    }

    pub(crate) fn keep(&self, container: ContainerId, route: &Bytes, it: Arc<FragmentConfig>) {
        let mut kept = self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if kept.len() >= KEPT_MAX {
            kept.clear();
        }
        kept.insert((container, route.clone()), it);
    }
}
