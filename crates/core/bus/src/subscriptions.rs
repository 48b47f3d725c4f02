//! Subscriptions of topics and their rules.

use lazuli_engine::{Lsn, Result};
use lazuli_shardmap::record::decode;

use crate::DEFAULT_RULE;
use crate::address::check_subscription_name;
use crate::bus::Bus;
use crate::change::{EntityChange, rule_missing};
use crate::description::{Description, EntityKind, Rule, Subscription};
use crate::directory::SubscriptionRecord;
use crate::entities::ListPage;
use crate::filter::Filter;
use crate::fragment::not_found;

impl Bus {
    /// With no rule given it gets [`DEFAULT_RULE`].
    pub async fn create_subscription(
        &self,
        namespace: &str,
        topic: &str,
        name: &str,
        description: Description,
        rule: Option<Rule>,
    ) -> Result<Subscription> {
        check_subscription_name(name)?;
        description.check()?;
        let rule = rule.unwrap_or_else(|| Rule {
            name: DEFAULT_RULE.to_owned(),
            filter: Filter::True,
            action: None,
            created_ms: 0,
        });
        check_rule(&rule)?;
        let change = EntityChange::CreateSubscription { name: name.to_owned(), description, rule };
        self.change(namespace, topic, change).await?;
        self.subscription(namespace, topic, name).await
    }

    pub async fn update_subscription(
        &self,
        namespace: &str,
        topic: &str,
        name: &str,
        description: Description,
        version: Option<Lsn>,
    ) -> Result<Subscription> {
        description.check()?;
        let name_of = name.to_owned();
        let change = EntityChange::UpdateSubscription { name: name_of, description, version };
        self.change(namespace, topic, change).await?;
        self.subscription(namespace, topic, name).await
    }

    pub async fn delete_subscription(
        &self,
        namespace: &str,
        topic: &str,
        name: &str,
    ) -> Result<()> {
        let change = EntityChange::DeleteSubscription { name: name.to_owned() };
        self.change(namespace, topic, change).await
    }

    pub(crate) async fn subscription_record(
        &self,
        namespace: &str,
        topic: &str,
        name: &str,
    ) -> Result<(SubscriptionRecord, Lsn)> {
        let shelf = self.shelf_or_not_found(namespace).await?;
        let item = self.engine.get(&shelf.subscription(topic, name), 1).await?;
        let item = item.ok_or_else(not_found)?;
        Ok((decode(item.payload)?, item.version))
    }

    pub async fn subscription(
        &self,
        namespace: &str,
        topic: &str,
        name: &str,
    ) -> Result<Subscription> {
        let (record, version) = self.subscription_record(namespace, topic, name).await?;
        Ok(record.subscription(version))
    }

    /// The subscriptions of a topic by name, without the first `skip` ones.
    pub async fn subscriptions(
        &self,
        namespace: &str,
        topic: &str,
        skip: usize,
        most: usize,
    ) -> Result<ListPage<Subscription>> {
        let shelf = self.shelf_or_not_found(namespace).await?;
        let (record, _) = self.record(&shelf, namespace, topic).await?;
        if record.kind != EntityKind::Topic {
            return Err(not_found());
        }
        let view = self.engine.read(shelf.container.id, &shelf.route, 1).await?;
        let all = shelf.subscriptions(&view, topic).await?;
        let has_more = all.len() > skip.saturating_add(most);
        let page = all.into_iter().skip(skip).take(most);
        let items = page.map(|(record, version)| record.subscription(version)).collect();
        Ok(ListPage { items, has_more })
    }

    pub async fn create_rule(
        &self,
        namespace: &str,
        topic: &str,
        subscription: &str,
        rule: Rule,
    ) -> Result<Rule> {
        check_rule(&rule)?;
        let name = rule.name.clone();
        let change = EntityChange::CreateRule { subscription: subscription.to_owned(), rule };
        self.change(namespace, topic, change).await?;
        self.rule(namespace, topic, subscription, &name).await
    }

    pub async fn update_rule(
        &self,
        namespace: &str,
        topic: &str,
        subscription: &str,
        rule: Rule,
    ) -> Result<Rule> {
        check_rule(&rule)?;
        let name = rule.name.clone();
        let change = EntityChange::UpdateRule { subscription: subscription.to_owned(), rule };
        self.change(namespace, topic, change).await?;
        self.rule(namespace, topic, subscription, &name).await
    }

    pub async fn delete_rule(
        &self,
        namespace: &str,
        topic: &str,
        subscription: &str,
        name: &str,
    ) -> Result<()> {
        let (subscription, name) = (subscription.to_owned(), name.to_owned());
        self.change(namespace, topic, EntityChange::DeleteRule { subscription, name }).await
    }

    pub async fn rule(
        &self,
        namespace: &str,
        topic: &str,
        subscription: &str,
        name: &str,
    ) -> Result<Rule> {
        let (record, _) = self.subscription_record(namespace, topic, subscription).await?;
        let wanted = name.to_lowercase();
        let found = record.rules.into_iter().find(|rule| rule.name.to_lowercase() == wanted);
        found.ok_or_else(|| rule_missing(name))
    }

    pub async fn rules(
        &self,
        namespace: &str,
        topic: &str,
        subscription: &str,
        skip: usize,
        most: usize,
    ) -> Result<ListPage<Rule>> {
        let (record, _) = self.subscription_record(namespace, topic, subscription).await?;
        let has_more = record.rules.len() > skip.saturating_add(most);
        let items = record.rules.into_iter().skip(skip).take(most).collect();
        Ok(ListPage { items, has_more })
    }
}

fn check_rule(rule: &Rule) -> Result<()> {
    check_subscription_name(&rule.name)?;
    match &rule.filter {
        Filter::Correlation(correlation) => correlation.check(),
        Filter::True | Filter::False | Filter::Sql(_) => Ok(()),
    }
}
