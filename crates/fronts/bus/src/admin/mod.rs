//! The administration over HTTP: entities, subscriptions and rules as ATOM entries.
//!
//! One request: `resource` says what the path names, the token says in which namespace, one call of the shape does it, and
//! `entry` writes the answer. Errors are the service's documents.

mod configuration;
mod description;
mod duration;
mod entry;
mod hubs;
mod resource;
mod rule;

use std::sync::Arc;

use lazuli_bus_shape::{
    Address, Bus, Description, Entity, EntityKind, MessageCounts, Rule, Subscription,
    SystemProperty,
};
use lazuli_http::uri::{Query, percent_decode};
use lazuli_http::xml::Element;
use lazuli_http::{Handler, Method, Request, Response, StatusCode, handler, xml};
use lazuli_log::Logs;

use crate::access::{self, Right, Shown};
use crate::error::{Fault, from_core};
use crate::{Front, now_ms};

pub use configuration::{configure, configure_hubs};
use entry::{Entry, Feed};
use resource::Resource;

/// The longest description of an entity or rule.
const BODY_BYTES_MAX: usize = 256 * 1024;
/// How many entries a page of a list has, if the client does not say, and at the most.
const PAGE: usize = 100;

pub(crate) fn administration(front: Arc<Front>) -> Handler {
    handler(move |request| {
        let front = front.clone();
        async move {
            let id = request.id;
            match answer(&front, request).await {
                Ok(response) => response,
                Err(fault) => refusal(&fault, &id.to_string()),
            }
        }
    })
}

type Result<T> = std::result::Result<T, Fault>;

/// Everything that answers are made from.
struct Context<'a> {
    bus: &'a Bus,
    logs: &'a Logs,
    namespace: String,
    /// What links and ids begin with, such as `https://localhost:5672`.
    base: String,
    version: String,
}

async fn answer(front: &Front, mut request: Request) -> Result<Response> {
    let query = request.query.clone();
    let query = Query::parse(&query).map_err(|_| Fault::argument("The query is malformed."))?;
    let path = percent_decode(&request.path)
        .map_err(|_| Fault::argument("The path is malformed."))?
        .into_owned();
    let token = request.header("authorization").unwrap_or_default().to_owned();
    let resource = Resource::parse(&path)?;
    let scheme = if request.secure { "https" } else { "http" };
    let host = request.header("host").unwrap_or("localhost").to_owned();
    let audience = format!("{scheme}://{host}/{}", resource.entity());
    let token = token.strip_prefix("Bearer ").unwrap_or(&token);
    let shown = Shown { token, audience: &audience, secure: request.secure };
    let mut claim = access::check(front, &shown).await?;
    claim.path = signed_path(&claim.path, &host);
    let namespace = access::allowed(&[claim], &resource.path(), Right::Manage)?;
    let version = query.get("api-version").unwrap_or("2021-05").to_owned();
    let (bus, logs, base) = (&front.bus, &front.hubs.logs, format!("{scheme}://{host}"));
    let context = Context { bus, logs, namespace, base, version };
    let is_update = request.header("if-match").is_some();
    let body = request.take_body().collect(BODY_BYTES_MAX).await;
    let body = body.map_err(|_| Fault::argument("The body cannot be read, or is too long."))?;
    let page = Page {
        skip: number(&query, "$skip")?.unwrap_or(0),
        top: number(&query, "$top")?.unwrap_or(PAGE).clamp(1, PAGE),
    };
    match request.method {
        Method::GET => context.get(&resource, page).await,
        Method::PUT => context.put(&resource, &body, is_update).await,
        Method::DELETE => context.delete(&resource).await,
        _ => Err(Fault::new(405, "amqp:not-allowed", "The method is not allowed here.")),
    }
}

/// The path that a token is for. Some clients sign the whole address of a request with its query, percent-encoded, others
/// the host without a scheme in front of it.
fn signed_path(path: &str, host: &str) -> String {
    let path = path.split('?').next().unwrap_or_default();
    let rest = path.strip_prefix(&host.to_lowercase());
    let path = rest.filter(|rest| rest.is_empty() || rest.starts_with('/')).unwrap_or(path);
    let decoded = percent_decode(path).unwrap_or(path.into());
    decoded.trim_matches('/').to_lowercase()
}

#[derive(Clone, Copy)]
struct Page {
    skip: usize,
    top: usize,
}

fn number(query: &Query<'_>, name: &str) -> Result<Option<usize>> {
    let text = query.get(name);
    let number = text.map(str::parse).transpose();
    number.map_err(|_| Fault::argument(format!("{name} is no number.")))
}

/// The error document of the service.
fn refusal(fault: &Fault, request: &str) -> Response {
    let status = u16::try_from(fault.status).ok().and_then(|it| StatusCode::from_u16(it).ok());
    let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut body = String::from("<Error>");
    xml::write(&mut body, "Code", &status.as_u16().to_string());
    let text = format!(
        "SubCode={}00. {} TrackingId:{request}, SystemTracker:lazuli, Timestamp:{}",
        status.as_u16(),
        fault.description,
        entry::moment(now_ms()),
    );
    xml::write(&mut body, "Detail", &text);
    body.push_str("</Error>");
    let response = Response::new(status).with("content-type", "application/xml; charset=utf-8");
    response.with_body(body)
}

/// The description inside of an ATOM entry.
fn content(body: &[u8], name: &str) -> Result<Element> {
    let bad = || Fault::argument(format!("The body is no ATOM entry with a {name}."));
    let root = xml::parse(body).map_err(|_| bad())?;
    let mut content = root;
    if content.name == "entry" {
        let inner = content.children.into_iter().find(|child| child.name == "content");
        content = inner.ok_or_else(bad)?;
    }
    if content.name == name {
        return Ok(content);
    }
    content.children.into_iter().find(|child| child.name == name).ok_or_else(bad)
}

impl Context<'_> {
    async fn get(&self, resource: &Resource, page: Page) -> Result<Response> {
        let (bus, namespace) = (self.bus, self.namespace.as_str());
        let Page { skip, top } = page;
        match resource {
            Resource::Namespace => Ok(Entry::namespace(self).response(StatusCode::OK)),
            Resource::Entities(kind) => {
                let found = bus.entities(namespace, *kind, skip, top).await.map_err(from_core)?;
                let mut feed = Feed::new(self, &resource.path(), page, found.has_more);
                for entity in found.items {
                    feed.push(self.entity_entry(entity).await?);
                }
                Ok(feed.response())
            }
            Resource::Hubs => self.list_hubs(&resource.path(), page).await,
            Resource::Groups(hub) => self.list_groups(hub, &resource.path(), page).await,
            Resource::Group(hub, group) => self.get_group(hub, group).await,
            Resource::Entity(name) => match bus.entity(namespace, name).await {
                Ok(entity) => Ok(self.entity_entry(entity).await?.response(StatusCode::OK)),
                Err(error) if error.kind() == lazuli_engine::Kind::NotFound => {
                    // What is not there is an empty list.
                    let nothing = || Feed::new(self, &resource.path(), page, false).response();
                    Ok(self.get_hub(name).await?.unwrap_or_else(nothing))
                }
                Err(error) => Err(from_core(error)),
            },
            Resource::Subscriptions(topic) => {
                let found = bus.subscriptions(namespace, topic, skip, top).await;
                let found = found.map_err(from_core)?;
                let mut feed = Feed::new(self, &resource.path(), page, found.has_more);
                for subscription in found.items {
                    feed.push(self.subscription_entry(subscription).await?);
                }
                Ok(feed.response())
            }
            Resource::Subscription(topic, name) => {
                let found = bus.subscription(namespace, topic, name).await.map_err(from_core)?;
                Ok(self.subscription_entry(found).await?.response(StatusCode::OK))
            }
            Resource::Rules(topic, name) => {
                let found = bus.rules(namespace, topic, name, skip, top).await;
                let found = found.map_err(from_core)?;
                let mut feed = Feed::new(self, &resource.path(), page, found.has_more);
                for rule in found.items {
                    feed.push(self.rule_entry(topic, name, &rule));
                }
                Ok(feed.response())
            }
            Resource::Rule(topic, subscription, name) => {
                let found = bus.rule(namespace, topic, subscription, name).await;
                let rule = found.map_err(from_core)?;
                Ok(self.rule_entry(topic, subscription, &rule).response(StatusCode::OK))
            }
        }
    }

    async fn put(&self, resource: &Resource, body: &[u8], is_update: bool) -> Result<Response> {
        let status = if is_update { StatusCode::OK } else { StatusCode::CREATED };
        match resource {
            Resource::Group(hub, group) => self.put_group(hub, group, body, is_update).await,
            Resource::Entity(name) => {
                if let Some(response) = self.put_hub(name, body, is_update).await? {
                    return Ok(response);
                }
                let entity = self.put_entity(name, body, is_update).await?;
                Ok(self.entity_entry(entity).await?.response(status))
            }
            Resource::Subscription(topic, name) => {
                let found = self.put_subscription(topic, name, body, is_update).await?;
                Ok(self.subscription_entry(found).await?.response(status))
            }
            Resource::Rule(topic, subscription, name) => {
                let rule = rule::read(&content(body, "RuleDescription")?, Some(name))?;
                let (bus, namespace) = (self.bus, self.namespace.as_str());
                let put = match is_update {
                    true => bus.update_rule(namespace, topic, subscription, rule).await,
                    false => bus.create_rule(namespace, topic, subscription, rule).await,
                };
                let rule = put.map_err(from_core)?;
                Ok(self.rule_entry(topic, subscription, &rule).response(status))
            }
            _ => Err(Fault::new(405, "amqp:not-allowed", "This cannot be created.")),
        }
    }

    async fn put_entity(&self, name: &str, body: &[u8], is_update: bool) -> Result<Entity> {
        let (bus, namespace) = (self.bus, self.namespace.as_str());
        let (kind, element) = match content(body, "TopicDescription") {
            Ok(element) => (EntityKind::Topic, element),
            Err(_) => (EntityKind::Queue, content(body, "QueueDescription")?),
        };
        if is_update {
            let before = bus.entity(namespace, name).await.map_err(from_core)?;
            let after = description::read(&element, before.description)?;
            let updated = bus.update_entity(namespace, kind, name, after, None).await;
            return updated.map_err(from_core);
        }
        let new = description::read(&element, Description::queue())?;
        if self.hub(name).await?.is_some() {
            let text = format!("There is an event hub at '{name}'.");
            return Err(Fault::new(409, "com.microsoft:entity-already-exists", text));
        }
        bus.create_entity(namespace, kind, name, new).await.map_err(from_core)
    }

    async fn put_subscription(
        &self,
        topic: &str,
        name: &str,
        body: &[u8],
        is_update: bool,
    ) -> Result<Subscription> {
        let (bus, namespace) = (self.bus, self.namespace.as_str());
        let element = content(body, "SubscriptionDescription")?;
        if is_update {
            let before = bus.subscription(namespace, topic, name).await.map_err(from_core)?;
            let after = description::read(&element, before.description)?;
            let updated = bus.update_subscription(namespace, topic, name, after, None).await;
            return updated.map_err(from_core);
        }
        let new = description::read(&element, Description::subscription())?;
        let rule = element.child("DefaultRuleDescription").filter(|it| !it.children.is_empty());
        let rule = rule.map(|rule| rule::read(rule, None)).transpose()?;
        bus.create_subscription(namespace, topic, name, new, rule).await.map_err(from_core)
    }

    async fn delete(&self, resource: &Resource) -> Result<Response> {
        let (bus, namespace) = (self.bus, self.namespace.as_str());
        let deleted = match resource {
            Resource::Group(hub, group) => {
                self.delete_group(hub, group).await?;
                return Ok(Response::new(StatusCode::OK));
            }
            Resource::Entity(name) if self.hub(name).await?.is_some() => {
                self.logs.delete_hub(namespace, name).await
            }
            Resource::Entity(name) => bus.delete_entity(namespace, None, name).await,
            Resource::Subscription(topic, name) => {
                bus.delete_subscription(namespace, topic, name).await
            }
            Resource::Rule(topic, subscription, name) => {
                bus.delete_rule(namespace, topic, subscription, name).await
            }
            _ => return Err(Fault::new(405, "amqp:not-allowed", "This cannot be deleted.")),
        };
        deleted.map_err(from_core)?;
        Ok(Response::new(StatusCode::OK))
    }

    async fn counts(&self, address: &Address) -> Result<MessageCounts> {
        let endpoint = self.bus.open(&self.namespace, address).await.map_err(from_core)?;
        self.bus.counts(&endpoint).await.map_err(from_core)
    }

    async fn entity_entry(&self, entity: Entity) -> Result<Entry> {
        let counts = self.counts(&Address::entity(&entity.name)).await?;
        let subscriptions = match entity.kind {
            EntityKind::Queue => 0,
            EntityKind::Topic => {
                let all = self.bus.subscriptions(&self.namespace, &entity.name, 0, 10_000).await;
                all.map_err(from_core)?.items.len()
            }
        };
        Ok(Entry::entity(self, &entity, &counts, subscriptions))
    }

    async fn subscription_entry(&self, found: Subscription) -> Result<Entry> {
        let address = Address::subscription(&found.topic, &found.name);
        let counts = self.counts(&address).await?;
        Ok(Entry::subscription(self, &found, &counts))
    }

    fn rule_entry(&self, topic: &str, subscription: &str, rule: &Rule) -> Entry {
        Entry::rule(self, topic, subscription, rule)
    }
}

/// The element of a correlation filter for one of the service's own properties.
const CORRELATED: [(&str, SystemProperty); 8] = [
    ("CorrelationId", SystemProperty::CorrelationId),
    ("MessageId", SystemProperty::MessageId),
    ("To", SystemProperty::To),
    ("ReplyTo", SystemProperty::ReplyTo),
    ("Label", SystemProperty::Label),
    ("SessionId", SystemProperty::SessionId),
    ("ReplyToSessionId", SystemProperty::ReplyToSessionId),
    ("ContentType", SystemProperty::ContentType),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_for_a_path_however_its_client_signs_it() {
        for (signed, wanted) in [
            ("", ""),
            ("q", "q"),
            ("localhost:5672", ""),
            ("localhost:5672/q", "q"),
            ("q?api-version=2021-05", "q"),
            (
                "t/subscriptions/s/rules/%24default?api-version=1",
                "t/subscriptions/s/rules/$default",
            ),
            ("localhost:56721", "localhost:56721"),
        ] {
            assert_eq!(signed_path(signed, "LOCALHOST:5672"), wanted);
        }
    }
}
