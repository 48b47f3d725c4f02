//! Settings of topics changed, and records deleted from the beginning of a topic on.

use std::collections::BTreeSet;

use lazuli_kafka_wire::{Reader, Writer};
use lazuli_log::{Cleanup, HubSettings, LogReason};

use crate::Front;
use crate::configs::{CLEANUP, reset, reset_all, set};
use crate::connection::Session;
use crate::error::{Code, Hangup, code_of};
use crate::limits::TOPICS_MAX;
use crate::produce::check_count;
use crate::topics::TOPIC;

/// All records there are.
const TO_THE_END: i64 = -1;

/// What is to become of one setting.
enum Change {
    Set(Option<String>),
    Reset,
    Append(String),
    Subtract(String),
}

struct Resource {
    kind: i8,
    name: String,
    changes: Vec<(String, Change)>,
    /// Whether settings that are not named go back to what they are without being set.
    is_whole: bool,
}

impl Resource {
    fn read_whole(it: &mut Reader) -> Result<Self, lazuli_kafka_wire::Malformed> {
        let (kind, name) = (it.i8()?, it.text()?);
        let changes = it.array(|it| Ok((it.text()?, Change::Set(it.nullable_text()?))))?;
        Ok(Self { kind, name, changes, is_whole: true })
    }

    fn read_increment(it: &mut Reader) -> Result<Self, lazuli_kafka_wire::Malformed> {
        let (kind, name) = (it.i8()?, it.text()?);
        let changes = it.array(|it| {
            let (name, operation, value) = (it.text()?, it.i8()?, it.nullable_text()?);
            let change = match operation {
                0 => Change::Set(value),
                1 => Change::Reset,
                2 => Change::Append(value.unwrap_or_default()),
                3 => Change::Subtract(value.unwrap_or_default()),
                _ => return Err(lazuli_kafka_wire::Malformed),
            };
            Ok((name, change))
        })?;
        Ok(Self { kind, name, changes, is_whole: false })
    }

    fn apply(&self, settings: &mut HubSettings) -> Result<(), String> {
        if self.is_whole {
            reset_all(settings);
        }
        for (name, change) in &self.changes {
            let done = match change {
                Change::Set(value) => set(settings, name, value.as_deref()),
                Change::Reset => reset(settings, name),
                Change::Append(words) => combine(settings, name, words, true),
                Change::Subtract(words) => combine(settings, name, words, false),
            };
            done.map_err(|text| format!("{name}: {text}"))?;
        }
        Ok(())
    }
}

/// Adds words to a list of them, or takes them away. The one setting that is a list is the policy of cleaning up.
fn combine(
    settings: &mut HubSettings,
    name: &str,
    words: &str,
    adds: bool,
) -> Result<(), &'static str> {
    if name != CLEANUP {
        return Err("this setting is no list");
    }
    let mut all: BTreeSet<&str> = settings.cleanup.name().split(',').collect();
    for word in words.split(',').map(str::trim) {
        if adds {
            all.insert(word);
        } else {
            all.remove(word);
        }
    }
    let all: Vec<&str> = all.into_iter().collect();
    settings.cleanup =
        Cleanup::of_name(&all.join(",")).ok_or("delete, compact, or both of them")?;
    Ok(())
}

impl Front {
    pub(crate) async fn alter_configs(
        &self,
        session: &Session,
        request: &mut Reader,
        response: &mut Writer,
    ) -> Result<Code, Hangup> {
        let resources = request.array(Resource::read_whole)?;
        self.alter(session, resources, request, response).await
    }

    pub(crate) async fn alter_some_configs(
        &self,
        session: &Session,
        request: &mut Reader,
        response: &mut Writer,
    ) -> Result<Code, Hangup> {
        let resources = request.array(Resource::read_increment)?;
        self.alter(session, resources, request, response).await
    }

    async fn alter(
        &self,
        session: &Session,
        resources: Vec<Resource>,
        request: &mut Reader,
        response: &mut Writer,
    ) -> Result<Code, Hangup> {
        let only_check = request.bool()?;
        if resources.len() > TOPICS_MAX {
            return Err(Hangup::Malformed);
        }
        let namespace = session.namespace()?;
        response.i32(0);
        response.count(resources.len());
        let mut first_code = Code::NONE;
        for resource in &resources {
            let altered = self.alter_one(namespace, resource, only_check).await;
            let (code, text) = match altered {
                Ok(()) => (Code::NONE, None),
                Err((code, text)) => (code, Some(text)),
            };
            response.i16(code.0);
            response.nullable_text(text.as_deref());
            response.i8(resource.kind);
            response.text(&resource.name);
            if first_code == Code::NONE {
                first_code = code;
            }
        }
        Ok(first_code)
    }

    async fn alter_one(
        &self,
        namespace: &str,
        resource: &Resource,
        only_check: bool,
    ) -> Result<(), (Code, String)> {
        if resource.kind != TOPIC {
            let text = "only topics have settings that clients may change";
            return Err((Code::INVALID_REQUEST, text.to_owned()));
        }
        let refused = |error: lazuli_engine::Error| match error.is(LogReason::BadSettings) {
            true => (Code::INVALID_CONFIG, error.message().to_owned()),
            false => (code_of(&error), error.message().to_owned()),
        };
        let hub = self.logs.hub(namespace, &resource.name).await.map_err(refused)?;
        let mut wanted = hub.settings.clone();
        resource.apply(&mut wanted).map_err(|text| (Code::INVALID_CONFIG, text))?;
        if only_check {
            return Ok(());
        }
        let change = |settings: &mut HubSettings| {
            let mut wanted = settings.clone();
            // What others have set meanwhile may make it impossible; then nothing changes.
            if resource.apply(&mut wanted).is_ok() {
                *settings = wanted;
            }
        };
        self.logs.change_hub(namespace, &resource.name, change).await.map(drop).map_err(refused)
    }

    pub(crate) async fn delete_records(
        &self,
        session: &Session,
        request: &mut Reader,
        response: &mut Writer,
    ) -> Result<Code, Hangup> {
        let topics = request.array(|it| {
            let name = it.text()?;
            Ok((name, it.array(|it| Ok((it.i32()?, it.i64()?)))?))
        })?;
        request.i32()?;
        check_count(topics.len(), topics.iter().map(|(_, parts)| parts.len()))?;
        let namespace = session.namespace()?;
        response.i32(0);
        response.count(topics.len());
        let mut first_code = Code::NONE;
        for (name, parts) in &topics {
            response.text(name);
            response.count(parts.len());
            for (index, before) in parts {
                let deleted = self.delete_from(namespace, name, *index, *before).await;
                let code = deleted.err().unwrap_or(Code::NONE);
                response.i32(*index);
                response.i64(deleted.map_or(-1, |first| first as i64));
                response.i16(code.0);
                if first_code == Code::NONE {
                    first_code = code;
                }
            }
        }
        Ok(first_code)
    }

    /// Deletes what is in front of an offset, and says where the topic begins then.
    async fn delete_from(
        &self,
        namespace: &str,
        topic: &str,
        index: i32,
        before: i64,
    ) -> Result<u64, Code> {
        let partition = u32::try_from(index).map_err(|_| Code::UNKNOWN_TOPIC_OR_PARTITION)?;
        let before = match before {
            TO_THE_END => None,
            before => Some(u64::try_from(before).map_err(|_| Code::OFFSET_OUT_OF_RANGE)?),
        };
        let delete = async {
            let hub = self.logs.hub(namespace, topic).await?;
            // What is only compacted keeps the newest record of every key, as brokers of Kafka have it.
            if hub.settings.cleanup == Cleanup::Compact {
                return Ok(Err(Code::POLICY_VIOLATION));
            }
            self.logs.delete_records(&hub, partition, before).await.map(Ok)
        };
        delete.await.map_err(|error| code_of(&error))?
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(name: &str, change: Change) -> Resource {
        let changes = vec![(name.to_owned(), change)];
        Resource { kind: TOPIC, name: "t".to_owned(), changes, is_whole: false }
    }

    #[test]
    fn lists_grow_and_shrink_and_other_settings_are_set() {
        let mut settings = HubSettings::new(1);
        let both = change(CLEANUP, Change::Append("compact".to_owned()));
        both.apply(&mut settings).unwrap();
        assert_eq!(settings.cleanup, Cleanup::CompactAndDelete);
        change(CLEANUP, Change::Subtract("delete".to_owned())).apply(&mut settings).unwrap();
        assert_eq!(settings.cleanup, Cleanup::Compact);
        let none = change(CLEANUP, Change::Subtract("compact".to_owned()));
        assert!(none.apply(&mut settings).is_err());
        let number = change("retention.ms", Change::Append("1".to_owned()));
        assert!(number.apply(&mut settings).is_err());
        change("retention.ms", Change::Set(Some("7".to_owned()))).apply(&mut settings).unwrap();
        change(CLEANUP, Change::Reset).apply(&mut settings).unwrap();
        assert_eq!(settings.cleanup, Cleanup::Delete);
        let whole = Resource { is_whole: true, ..change("retention.bytes", Change::Reset) };
        whole.apply(&mut settings).unwrap();
        assert_eq!(settings, HubSettings::new(1));
    }
}
