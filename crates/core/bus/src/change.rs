//! Changes of the directory: what may be created, changed and deleted, decided in one transaction.

use std::collections::BTreeSet;

use lazuli_engine::{Error, Lsn, Result, Transaction, Tx};

use crate::description::{Description, EntityKind, Rule};
use crate::directory::{EntityPhase, EntityRecord, Shelf, SubscriptionRecord};
use crate::fragment::not_found;
use crate::limits::{RULES_MAX, SUBSCRIPTIONS_MAX};
use crate::{BusReason, BusSettings};

/// The longest chain of forwarding that is followed to find a loop.
const CHAIN_MAX: usize = 1_000;

fn exists(name: &str) -> Error {
    Error::exists(BusReason::EntityExists, format!("there is an entity '{name}' already"))
}

pub(crate) fn rule_missing(name: &str) -> Error {
    Error::not_found(BusReason::RuleNotFound, format!("there is no rule '{name}'"))
}

fn check_version(found: Lsn, wanted: Option<Lsn>) -> Result<()> {
    match wanted {
        Some(wanted) if wanted != found => {
            Err(Error::precondition(BusReason::EntityChanged, "the entity was changed"))
        }
        _ => Ok(()),
    }
}

/// A change of one entity, its subscriptions and rules.
pub(crate) enum EntityChange {
    Create {
        kind: EntityKind,
        description: Description,
    },
    Update {
        kind: EntityKind,
        description: Description,
        version: Option<Lsn>,
    },
    Delete {
        kind: Option<EntityKind>,
    },
    CreateSubscription {
        name: String,
        description: Description,
        rule: Rule,
    },
    UpdateSubscription {
        name: String,
        description: Description,
        version: Option<Lsn>,
    },
    DeleteSubscription {
        name: String,
    },
    CreateRule {
        subscription: String,
        rule: Rule,
    },
    UpdateRule {
        subscription: String,
        rule: Rule,
    },
    DeleteRule {
        subscription: String,
        name: String,
    },
    /// It was used at this time.
    Touch {
        subscription: Option<String>,
        at_ms: u64,
    },
    /// It goes, if it has not been used for as long as it says.
    DeleteIdle {
        subscription: Option<String>,
    },
}

pub(crate) struct Change {
    pub(crate) shelf: Shelf,
    pub(crate) settings: BusSettings,
    /// The queue or topic.
    pub(crate) name: String,
    pub(crate) change: EntityChange,
}

impl Transaction for Change {
    type Output = ();

    async fn run(&self, tx: &mut Tx<'_>) -> Result<()> {
        let shelf = &self.shelf;
        let found = shelf.load_entity(tx, &self.name).await?;
        if let EntityChange::Create { kind, description } = &self.change {
            return self.create(tx, found, *kind, description).await;
        }
        let version = tx.get(&shelf.entity(&self.name)).await?.map_or(Lsn::ZERO, |it| it.version);
        let is_there = |it: &EntityRecord| it.phase != EntityPhase::Deleting;
        let mut entity = found.filter(is_there).ok_or_else(not_found)?;
        let now = tx.now_ms();
        match &self.change {
            EntityChange::Create { .. } => {}
            EntityChange::Update { kind, description, version: wanted } => {
                if entity.kind != *kind {
                    return Err(not_found());
                }
                check_version(version, *wanted)?;
                entity.description.check_change(description)?;
                self.check_forwarding(tx, description, &self.name).await?;
                (entity.description, entity.updated_ms) = (description.clone(), now);
            }
            EntityChange::Delete { kind } => {
                if kind.is_some_and(|kind| kind != entity.kind) {
                    return Err(not_found());
                }
                entity.phase = EntityPhase::Deleting;
            }
            EntityChange::Touch { subscription: None, at_ms } => {
                entity.accessed_ms = entity.accessed_ms.max(*at_ms);
                return shelf.save_entity(tx, &entity).await;
            }
            EntityChange::DeleteIdle { subscription: None } => {
                if !is_idle(&entity.description, entity.accessed_ms.max(entity.updated_ms), now) {
                    return Ok(());
                }
                entity.phase = EntityPhase::Deleting;
            }
            change => {
                if entity.kind != EntityKind::Topic {
                    let message = "only topics have subscriptions";
                    return Err(Error::invalid(BusReason::WrongKind, message));
                }
                if !self.change_subscription(tx, &entity, change).await? {
                    return Ok(());
                }
            }
        }
        entity.change += 1;
        shelf.save_entity(tx, &entity).await
    }
}

fn is_idle(description: &Description, used_ms: u64, now_ms: u64) -> bool {
    description.auto_delete_ms.is_some_and(|idle_ms| used_ms.saturating_add(idle_ms) <= now_ms)
}

impl Change {
    async fn create(
        &self,
        tx: &mut Tx<'_>,
        found: Option<EntityRecord>,
        kind: EntityKind,
        description: &Description,
    ) -> Result<()> {
        if found.is_some() {
            return Err(exists(&self.name));
        }
        let shelf = &self.shelf;
        self.check_forwarding(tx, description, &self.name).await?;
        let mut counters = shelf.load_counters(tx).await?;
        let is_partitioned = u32::from(description.fragments > 1);
        let too_many = counters.entities as usize >= self.settings.entities_max
            || is_partitioned == 1
                && counters.partitioned as usize >= self.settings.partitioned_max;
        if too_many {
            let message = "the namespace has as many entities as it may have";
            return Err(Error::precondition(BusReason::TooManyEntities, message));
        }
        counters.last += 1;
        counters.entities += 1;
        counters.partitioned += is_partitioned;
        let now = tx.now_ms();
        let record = EntityRecord {
            number: counters.last,
            kind,
            name: self.name.clone(),
            description: description.clone(),
            created_ms: now,
            updated_ms: now,
            accessed_ms: now,
            phase: EntityPhase::Creating,
            change: 1,
            settled: 0,
        };
        tx.put(&shelf.counters(), lazuli_shardmap::record::encode(&counters)).await?;
        shelf.save_entity(tx, &record).await
    }

    /// Changes a subscription or its rules, and says whether the fragments must know.
    async fn change_subscription(
        &self,
        tx: &mut Tx<'_>,
        topic: &EntityRecord,
        change: &EntityChange,
    ) -> Result<bool> {
        let (shelf, now) = (&self.shelf, tx.now_ms());
        let name = match change {
            EntityChange::CreateSubscription { name, description, rule } => {
                return self.create_subscription(tx, topic, name, description, rule).await;
            }
            EntityChange::UpdateSubscription { name, .. }
            | EntityChange::DeleteSubscription { name } => name,
            EntityChange::CreateRule { subscription, .. }
            | EntityChange::UpdateRule { subscription, .. }
            | EntityChange::DeleteRule { subscription, .. } => subscription,
            EntityChange::Touch { subscription: Some(name), .. }
            | EntityChange::DeleteIdle { subscription: Some(name) } => name,
            _ => return Ok(false),
        };
        let key = shelf.subscription(&self.name, name);
        let version = tx.get(&key).await?.map_or(Lsn::ZERO, |item| item.version);
        let found = shelf.load_subscription(tx, &self.name, name).await?;
        let mut record = found.ok_or_else(not_found)?;
        match change {
            EntityChange::UpdateSubscription { description, version: wanted, .. } => {
                check_version(version, *wanted)?;
                record.description.check_change(description)?;
                self.check_forwarding(tx, description, &self.name).await?;
                (record.description, record.updated_ms) = (description.clone(), now);
            }
            EntityChange::CreateRule { .. }
            | EntityChange::UpdateRule { .. }
            | EntityChange::DeleteRule { .. } => change_rules(&mut record.rules, change, now)?,
            EntityChange::Touch { at_ms, .. } => {
                record.accessed_ms = record.accessed_ms.max(*at_ms);
                shelf.save_subscription(tx, &record).await?;
                return Ok(false);
            }
            EntityChange::DeleteIdle { .. }
                if !is_idle(
                    &record.description,
                    record.accessed_ms.max(record.updated_ms),
                    now,
                ) =>
            {
                return Ok(false);
            }
            _ => {
                tx.delete(&key).await?;
                let address = format!("{}/subscriptions/{}", self.name, record.name);
                shelf.note_idle(tx, &address, false).await?;
                return Ok(true);
            }
        }
        record.changed = topic.change + 1;
        shelf.save_subscription(tx, &record).await?;
        Ok(true)
    }

    async fn create_subscription(
        &self,
        tx: &mut Tx<'_>,
        topic: &EntityRecord,
        name: &str,
        description: &Description,
        rule: &Rule,
    ) -> Result<bool> {
        let (shelf, now) = (&self.shelf, tx.now_ms());
        if shelf.load_subscription(tx, &self.name, name).await?.is_some() {
            return Err(exists(name));
        }
        if shelf.subscriptions_in(tx, &self.name).await?.len() >= SUBSCRIPTIONS_MAX {
            let message = format!("a topic has at most {SUBSCRIPTIONS_MAX} subscriptions");
            return Err(Error::precondition(BusReason::TooManyEntities, message));
        }
        self.check_forwarding(tx, description, &self.name).await?;
        let mut counters = shelf.load_counters(tx).await?;
        counters.last += 1;
        tx.put(&shelf.counters(), lazuli_shardmap::record::encode(&counters)).await?;
        let record = SubscriptionRecord {
            number: counters.last,
            topic: topic.name.clone(),
            name: name.to_owned(),
            description: description.clone(),
            rules: vec![Rule { created_ms: now, ..rule.clone() }],
            created_ms: now,
            updated_ms: now,
            accessed_ms: now,
            changed: topic.change + 1,
        };
        shelf.save_subscription(tx, &record).await?;
        Ok(true)
    }

    /// Refuses to forward to what is not there, and chains that come back to the entity of the description.
    async fn check_forwarding(
        &self,
        tx: &Tx<'_>,
        description: &Description,
        entity: &str,
    ) -> Result<()> {
        let targets = |it: &Description| {
            let both = [it.forward_to.clone(), it.forward_dead_letters_to.clone()];
            both.into_iter().flatten().map(|name| name.to_lowercase())
        };
        let is_loop = || {
            let message = format!("messages of '{entity}' would be forwarded to itself");
            Error::invalid(BusReason::ForwardLoop, message)
        };
        let mut open: Vec<String> = targets(description).collect();
        let mut seen: BTreeSet<String> = BTreeSet::new();
        while let Some(name) = open.pop() {
            if name == entity.to_lowercase() {
                return Err(is_loop());
            }
            if !seen.insert(name.clone()) || seen.len() > CHAIN_MAX {
                continue;
            }
            let found = self.shelf.load_entity(tx, &name).await?;
            let Some(found) = found.filter(|it| it.phase != EntityPhase::Deleting) else {
                let message =
                    format!("messages would be forwarded to '{name}', which is not there");
                return Err(Error::invalid(BusReason::BadProperty, message));
            };
            open.extend(targets(&found.description));
            for subscription in self.shelf.subscriptions_in(tx, &name).await? {
                open.extend(targets(&subscription.description));
            }
        }
        Ok(())
    }
}

/// Adds, replaces or removes a rule.
fn change_rules(rules: &mut Vec<Rule>, change: &EntityChange, now_ms: u64) -> Result<()> {
    let is_of = |rule: &Rule, name: &str| rule.name.to_lowercase() == name.to_lowercase();
    match change {
        EntityChange::CreateRule { rule, .. } => {
            if rules.iter().any(|old| is_of(old, &rule.name)) {
                let message = format!("there is a rule '{}' already", rule.name);
                return Err(Error::exists(BusReason::RuleExists, message));
            }
            if rules.len() >= RULES_MAX {
                let message = format!("a subscription has at most {RULES_MAX} rules");
                return Err(Error::precondition(BusReason::TooManyEntities, message));
            }
            rules.push(Rule { created_ms: now_ms, ..rule.clone() });
            rules.sort_by_key(|rule| rule.name.to_lowercase());
        }
        EntityChange::UpdateRule { rule, .. } => {
            let old = rules.iter_mut().find(|old| is_of(old, &rule.name));
            let old = old.ok_or_else(|| rule_missing(&rule.name))?;
            *old = Rule { created_ms: old.created_ms, name: old.name.clone(), ..rule.clone() };
        }
        EntityChange::DeleteRule { name, .. } => {
            let before = rules.len();
            rules.retain(|rule| !is_of(rule, name));
            if rules.len() == before {
                return Err(rule_missing(name));
            }
        }
        _ => {}
    }
    Ok(())
}
