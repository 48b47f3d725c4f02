//! Topics: what there are and where, created, deleted, given more partitions, described.

use std::sync::Arc;

use lazuli_engine::{Error, Kind};
use lazuli_kafka_wire::{Reader, Writer};
use lazuli_log::{Hub, HubSettings, LogReason};

use crate::Front;
use crate::configs::{Config, configs, set};
use crate::connection::{Asked, Session};
use crate::error::{Code, Hangup, code_of};
use crate::limits::{TOPICS_LISTED_MAX, TOPICS_MAX};

/// The one broker that clients are told of: this server.
pub(crate) const BROKER: i32 = 0;
/// The partitions of a topic that is created without saying how many.
const PARTITIONS_DEFAULT: u32 = 4;
/// What a client asks for that wants to know which operations are allowed, and is not told.
const OPERATIONS_UNKNOWN: i32 = i32::MIN;
/// The kind of resource that a topic is.
pub(crate) const TOPIC: i8 = 2;

impl Front {
    pub(crate) async fn metadata(
        &self,
        session: &Session,
        asked: &Asked,
        request: &mut Reader,
        response: &mut Writer,
    ) -> Result<Code, Hangup> {
        let version = asked.version;
        let mut names = request.nullable_array(|it| it.text())?;
        // In the oldest version an empty list means all.
        names = names.filter(|names| version > 0 || !names.is_empty());
        if names.as_ref().is_some_and(|names| names.len() > TOPICS_MAX) {
            return Err(Hangup::Malformed);
        }
        let may_create = version < 4 || request.bool()?;
        let namespace = session.namespace()?;
        let mut found = Vec::new();
        match &names {
            None => {
                let hubs = self.logs.hubs(namespace, None, TOPICS_LISTED_MAX).await;
                let hubs = hubs.unwrap_or_default().into_iter();
                found.extend(hubs.map(|hub| (hub.name.clone(), Ok(Arc::new(hub)))));
            }
            Some(names) => {
                for name in names {
                    let hub = self.topic(namespace, name, may_create).await;
                    found.push((name.clone(), hub));
                }
            }
        }
        if version >= 3 {
            response.i32(0);
        }
        response.count(1);
        self.write_broker(session, response);
        if version >= 1 {
            response.nullable_text(None);
        }
        if version >= 2 {
            response.nullable_text(Some("lazuli"));
        }
        if version >= 1 {
            response.i32(BROKER);
        }
        response.count(found.len());
        let mut first_code = Code::NONE;
        for (name, hub) in &found {
            let code = hub.as_ref().map_or_else(code_of, |_| Code::NONE);
            if first_code == Code::NONE {
                first_code = code;
            }
            write_topic(response, version, name, code, hub.as_ref().ok());
        }
        if version >= 8 {
            response.i32(OPERATIONS_UNKNOWN);
        }
        Ok(first_code)
    }

    /// A topic by its name; created if it may be.
    async fn topic(
        &self,
        namespace: &str,
        name: &str,
        may_create: bool,
    ) -> Result<Arc<Hub>, Error> {
        let found = self.logs.hub(namespace, name).await;
        let (Some(partitions), true) = (self.settings.auto_create, may_create) else {
            return found;
        };
        match found {
            Err(error) if error.is(LogReason::HubNotFound) => {
                let settings = HubSettings::new(partitions);
                match self.logs.create_hub(namespace, name, &settings).await {
                    // Another client used it first.
                    Err(error) if error.kind() == Kind::Exists => {
                        self.logs.hub(namespace, name).await
                    }
                    created => created,
                }
            }
            found => found,
        }
    }

    /// `host | port` of this server, as the client has reached it.
    pub(crate) fn write_address(&self, session: &Session, response: &mut Writer) {
        response.text(&session.local.ip().to_canonical().to_string());
        response.i32(session.local.port().into());
    }

    fn write_broker(&self, session: &Session, response: &mut Writer) {
        response.i32(BROKER);
        self.write_address(session, response);
    }

    pub(crate) async fn create_topics(
        &self,
        session: &Session,
        asked: &Asked,
        request: &mut Reader,
        response: &mut Writer,
    ) -> Result<Code, Hangup> {
        let topics = request.array(NewTopic::read)?;
        request.i32()?;
        let only_check = asked.version >= 1 && request.bool()?;
        if topics.len() > TOPICS_MAX {
            return Err(Hangup::Malformed);
        }
        let namespace = session.namespace()?;
        if asked.version >= 2 {
            response.i32(0);
        }
        response.count(topics.len());
        let mut first_code = Code::NONE;
        for topic in &topics {
            let created = async {
                let settings = topic.settings()?;
                if only_check {
                    return self.check_new(namespace, &topic.name).await;
                }
                let created = self.logs.create_hub(namespace, &topic.name, &settings).await;
                created.map(|_| ()).map_err(|error| (code_of(&error), error.message().to_owned()))
            };
            let (code, text) = match created.await {
                Ok(()) => (Code::NONE, None),
                Err((code, text)) => (code, Some(text)),
            };
            response.text(&topic.name);
            response.i16(code.0);
            if asked.version >= 1 {
                response.nullable_text(text.as_deref());
            }
            if first_code == Code::NONE {
                first_code = code;
            }
        }
        Ok(first_code)
    }

    async fn check_new(&self, namespace: &str, name: &str) -> Result<(), (Code, String)> {
        lazuli_log::check_hub_name(name)
            .map_err(|error| (code_of(&error), error.message().to_owned()))?;
        match self.logs.hub(namespace, name).await {
            Ok(_) => Err((Code::TOPIC_ALREADY_EXISTS, format!("there is a topic {name:?}"))),
            Err(_) => Ok(()),
        }
    }

    pub(crate) async fn delete_topics(
        &self,
        session: &Session,
        asked: &Asked,
        request: &mut Reader,
        response: &mut Writer,
    ) -> Result<Code, Hangup> {
        let names = request.array(|it| it.text())?;
        if names.len() > TOPICS_MAX {
            return Err(Hangup::Malformed);
        }
        let namespace = session.namespace()?;
        if asked.version >= 1 {
            response.i32(0);
        }
        response.count(names.len());
        let mut first_code = Code::NONE;
        for name in &names {
            let deleted = self.logs.delete_hub(namespace, name).await;
            let code = deleted.map_or_else(|error| code_of(&error), |()| Code::NONE);
            response.text(name);
            response.i16(code.0);
            if first_code == Code::NONE {
                first_code = code;
            }
        }
        Ok(first_code)
    }

    pub(crate) async fn create_partitions(
        &self,
        session: &Session,
        request: &mut Reader,
        response: &mut Writer,
    ) -> Result<Code, Hangup> {
        let topics = request.array(|it| {
            let (name, count) = (it.text()?, it.i32()?);
            let assigned = it.nullable_array(|it| it.array(|it| it.i32()))?;
            Ok((name, count, assigned.is_some()))
        })?;
        request.i32()?;
        let only_check = request.bool()?;
        if topics.len() > TOPICS_MAX {
            return Err(Hangup::Malformed);
        }
        let namespace = session.namespace()?;
        response.i32(0);
        response.count(topics.len());
        let mut first_code = Code::NONE;
        for (name, count, is_assigned) in &topics {
            let grown = match u32::try_from(*count) {
                _ if *is_assigned => Err(Code::INVALID_REPLICA_ASSIGNMENT),
                Err(_) => Err(Code::INVALID_PARTITIONS),
                Ok(count) => self.grow(namespace, name, count, only_check).await,
            };
            let code = grown.err().unwrap_or(Code::NONE);
            response.text(name);
            response.i16(code.0);
            response.nullable_text((code != Code::NONE).then_some(code.1));
            if first_code == Code::NONE {
                first_code = code;
            }
        }
        Ok(first_code)
    }

    async fn grow(
        &self,
        namespace: &str,
        name: &str,
        count: u32,
        only_check: bool,
    ) -> Result<(), Code> {
        let hub = self.logs.hub(namespace, name).await.map_err(|error| code_of(&error))?;
        let fits = hub.settings.partitions < count && count <= lazuli_log::limits::PARTITIONS_MAX;
        if !fits {
            return Err(Code::INVALID_PARTITIONS);
        }
        if !only_check {
            let grown = self.logs.set_partitions(namespace, name, count).await;
            grown.map_err(|error| code_of(&error))?;
        }
        Ok(())
    }

    pub(crate) async fn describe_configs(
        &self,
        session: &Session,
        asked: &Asked,
        request: &mut Reader,
        response: &mut Writer,
    ) -> Result<Code, Hangup> {
        let resources =
            request.array(|it| Ok((it.i8()?, it.text()?, it.nullable_array(|it| it.text())?)))?;
        if resources.len() > TOPICS_MAX {
            return Err(Hangup::Malformed);
        }
        let namespace = session.namespace()?;
        response.i32(0);
        response.count(resources.len());
        let mut first_code = Code::NONE;
        for (kind, name, keys) in &resources {
            let configs = match *kind {
                TOPIC => self.logs.hub(namespace, name).await.map(|hub| configs(&hub)),
                // A broker has no settings that clients may see.
                _ => Ok(Vec::new()),
            };
            let code = configs.as_ref().map_or_else(code_of, |_| Code::NONE);
            let wanted = |config: &&Config| {
                keys.as_ref().is_none_or(|keys| keys.iter().any(|key| key == config.name))
            };
            let configs = configs.unwrap_or_default();
            let configs: Vec<_> = configs.iter().filter(wanted).collect();
            response.i16(code.0);
            response.nullable_text((code != Code::NONE).then_some(code.1));
            response.i8(*kind);
            response.text(name);
            response.array(&configs, |response, config| config.write(response, asked.version));
            if first_code == Code::NONE {
                first_code = code;
            }
        }
        Ok(first_code)
    }
}

fn write_topic(
    response: &mut Writer,
    version: i16,
    name: &str,
    code: Code,
    hub: Option<&Arc<Hub>>,
) {
    response.i16(code.0);
    response.text(name);
    if version >= 1 {
        response.bool(false);
    }
    let partitions = hub.map_or(0, |hub| hub.settings.partitions);
    response.count(partitions as usize);
    for partition in 0..partitions {
        response.i16(0);
        response.i32(partition as i32);
        response.i32(BROKER);
        if version >= 7 {
            response.i32(0);
        }
        response.array(&[BROKER], |response, id| response.i32(*id));
        response.array(&[BROKER], |response, id| response.i32(*id));
        if version >= 5 {
            response.count(0);
        }
    }
    if version >= 8 {
        response.i32(OPERATIONS_UNKNOWN);
    }
}

/// A topic to create.
struct NewTopic {
    name: String,
    partitions: i32,
    copies: i16,
    is_assigned: bool,
    configs: Vec<(String, Option<String>)>,
}

impl NewTopic {
    fn read(it: &mut Reader) -> Result<Self, lazuli_kafka_wire::Malformed> {
        let (name, partitions, copies) = (it.text()?, it.i32()?, it.i16()?);
        let assigned = it.array(|it| Ok((it.i32()?, it.array(|it| it.i32())?)))?;
        let configs = it.array(|it| Ok((it.text()?, it.nullable_text()?)))?;
        Ok(Self { name, partitions, copies, is_assigned: !assigned.is_empty(), configs })
    }

    fn settings(&self) -> Result<HubSettings, (Code, String)> {
        let refuse = |code: Code, text: String| Err((code, text));
        if self.is_assigned {
            let text = "partitions are placed by the server".to_owned();
            return refuse(Code::INVALID_REPLICA_ASSIGNMENT, text);
        }
        if self.copies == 0 || self.copies < -1 {
            let text = "a topic has at least one copy".to_owned();
            return refuse(Code::INVALID_REPLICATION_FACTOR, text);
        }
        let partitions = match self.partitions {
            -1 => PARTITIONS_DEFAULT,
            count => u32::try_from(count).unwrap_or(0),
        };
        if partitions == 0 {
            let text = "a topic has at least one partition".to_owned();
            return refuse(Code::INVALID_PARTITIONS, text);
        }
        let mut settings = HubSettings::new(partitions);
        for (name, value) in &self.configs {
            set(&mut settings, name, value.as_deref()).map_err(|text| {
                (Code::INVALID_CONFIG, format!("{name} cannot be {value:?}: {text}"))
            })?;
        }
        Ok(settings)
    }
}
