//! What a path of the administration names.

use lazuli_bus_shape::EntityKind;

use crate::error::Fault;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Resource {
    Namespace,
    Entities(EntityKind),
    Entity(String),
    Subscriptions(String),
    Subscription(String, String),
    Rules(String, String),
    Rule(String, String, String),
    Hubs,
    Groups(String),
    Group(String, String),
}

impl Resource {
    /// `$namespaceinfo`, `$Resources/queues`, `topic/subscriptions/name/rules/name` and what stands in front of them.
    pub(super) fn parse(path: &str) -> Result<Self, Fault> {
        let path = path.trim_matches('/');
        let is = |part: &str, word: &str| part.eq_ignore_ascii_case(word);
        if is(path, "$namespaceinfo") {
            return Ok(Self::Namespace);
        }
        if is(path, "$Resources/queues") {
            return Ok(Self::Entities(EntityKind::Queue));
        }
        if is(path, "$Resources/topics") {
            return Ok(Self::Entities(EntityKind::Topic));
        }
        if is(path, "$Resources/eventhubs") {
            return Ok(Self::Hubs);
        }
        let parts: Vec<&str> = path.split('/').collect();
        if path.is_empty() || parts.iter().any(|part| part.starts_with('$') && *part != "$Default")
        {
            return Err(Fault::new(404, "amqp:not-found", "There is nothing at this address."));
        }
        let own = |part: &str| part.to_owned();
        // Names of hubs have no slashes, so nothing else is mistaken for a group of one.
        match parts.as_slice() {
            [hub, groups] if is(groups, "consumergroups") => return Ok(Self::Groups(own(hub))),
            [hub, groups, group] if is(groups, "consumergroups") => {
                return Ok(Self::Group(own(hub), own(group)));
            }
            _ => {}
        }
        let at = parts.iter().rposition(|part| is(part, "subscriptions")).filter(|at| *at > 0);
        let Some(at) = at else { return Ok(Self::Entity(own(path))) };
        let topic = parts[..at].join("/");
        match &parts[at + 1..] {
            [] => Ok(Self::Subscriptions(topic)),
            [name] => Ok(Self::Subscription(topic, own(name))),
            [name, rules] if is(rules, "rules") => Ok(Self::Rules(topic, own(name))),
            [name, rules, rule] if is(rules, "rules") => {
                Ok(Self::Rule(topic, own(name), own(rule)))
            }
            _ => Ok(Self::Entity(own(path))),
        }
    }

    /// The queue or topic that it belongs to; empty if it belongs to the namespace.
    pub(super) fn entity(&self) -> &str {
        match self {
            Self::Namespace | Self::Entities(_) | Self::Hubs => "",
            Self::Entity(name)
            | Self::Groups(name)
            | Self::Group(name, _)
            | Self::Subscriptions(name)
            | Self::Subscription(name, _)
            | Self::Rules(name, _)
            | Self::Rule(name, _, _) => name,
        }
    }

    /// The path as the service writes it.
    pub(super) fn path(&self) -> String {
        match self {
            Self::Namespace => "$namespaceinfo".to_owned(),
            Self::Entities(EntityKind::Queue) => "$Resources/queues".to_owned(),
            Self::Entities(EntityKind::Topic) => "$Resources/topics".to_owned(),
            Self::Hubs => "$Resources/eventhubs".to_owned(),
            Self::Groups(hub) => format!("{hub}/ConsumerGroups"),
            Self::Group(hub, group) => format!("{hub}/ConsumerGroups/{group}"),
            Self::Entity(name) => name.clone(),
            Self::Subscriptions(topic) => format!("{topic}/Subscriptions"),
            Self::Subscription(topic, name) => format!("{topic}/Subscriptions/{name}"),
            Self::Rules(topic, name) => format!("{topic}/Subscriptions/{name}/Rules"),
            Self::Rule(topic, name, rule) => format!("{topic}/Subscriptions/{name}/Rules/{rule}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_name_what_they_say() {
        for (path, wanted) in [
            ("/$Resources/Queues", "$Resources/queues"),
            ("/$namespaceinfo", "$namespaceinfo"),
            ("/a/b", "a/b"),
            ("/$Resources/EventHubs", "$Resources/eventhubs"),
            ("/h/consumergroups", "h/ConsumerGroups"),
            ("/h/ConsumerGroups/$Default", "h/ConsumerGroups/$Default"),
            ("/t/subscriptions", "t/Subscriptions"),
            ("/t/Subscriptions/s", "t/Subscriptions/s"),
            ("/t/Subscriptions/s/rules/", "t/Subscriptions/s/Rules"),
            ("/t/subscriptions/s/rules/$Default", "t/Subscriptions/s/Rules/$Default"),
        ] {
            assert_eq!(Resource::parse(path).unwrap().path(), wanted);
        }
        for path in ["/", "", "/$cbs", "/q/$management", "/$Resources/other"] {
            assert_eq!(Resource::parse(path).unwrap_err().status, 404, "{path}");
        }
    }
}
