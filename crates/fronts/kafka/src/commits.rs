//! How far groups have come: offsets committed and asked for, and groups forgotten.

use std::collections::BTreeMap;

use lazuli_kafka_wire::{Reader, Writer};
use lazuli_log::limits::OFFSET_NOTE_BYTES_MAX;
use lazuli_log::{CommittedOffset, GroupOffset};

use crate::Front;
use crate::connection::{Asked, Session};
use crate::error::{Code, Hangup, code_of};
use crate::limits::{TOPICS_LISTED_MAX, TOPICS_MAX};
use crate::produce::check_count;

struct Part {
    index: i32,
    offset: i64,
    note: String,
}

struct Topic {
    name: String,
    parts: Vec<Part>,
}

/// What the protocol says where nothing was committed.
const NO_OFFSET: i64 = -1;

impl Front {
    pub(crate) async fn offset_commit(
        &self,
        session: &Session,
        asked: &Asked,
        request: &mut Reader,
        response: &mut Writer,
    ) -> Result<Code, Hangup> {
        let version = asked.version;
        let group = request.text()?;
        let (generation, member) = (request.i32()?, request.text()?);
        let instance = if version >= 7 { request.nullable_text()? } else { None };
        if version <= 4 {
            request.i64()?;
        }
        let topics = request.array(|it| {
            let name = it.text()?;
            let parts = it.array(|it| {
                let (index, offset) = (it.i32()?, it.i64()?);
                if version >= 6 {
                    it.i32()?;
                }
                let note = it.nullable_text()?.unwrap_or_default();
                Ok(Part { index, offset, note })
            })?;
            Ok(Topic { name, parts })
        })?;
        check_count(topics.len(), topics.iter().map(|topic| topic.parts.len()))?;
        let namespace = session.namespace()?;
        let instance = instance.as_deref();
        let may = match self.coordinates(session, namespace, &group).await {
            Ok(()) => self.groups.may_commit(namespace, &group, generation, &member, instance),
            Err((code, _)) => Err(code),
        };
        let codes = match may {
            Ok(()) => self.commit(namespace, &group, &topics).await,
            Err(code) => vec![code; topics.iter().map(|topic| topic.parts.len()).sum()],
        };
        if version >= 3 {
            response.i32(0);
        }
        let mut code = codes.iter();
        response.array(&topics, |response, topic| {
            response.text(&topic.name);
            response.array(&topic.parts, |response, part| {
                response.i32(part.index);
                response.i16(code.next().unwrap_or(&Code::UNKNOWN_SERVER_ERROR).0);
            });
        });
        let failed = codes.iter().find(|code| **code != Code::NONE);
        Ok(failed.copied().unwrap_or(Code::NONE))
    }

    /// Commits what can be, and says what came of each.
    async fn commit(&self, namespace: &str, group: &str, topics: &[Topic]) -> Vec<Code> {
        let mut codes = Vec::new();
        let mut offsets = Vec::new();
        for topic in topics {
            let hub = self.logs.hub(namespace, &topic.name).await;
            for part in &topic.parts {
                let partition = u32::try_from(part.index).unwrap_or(u32::MAX);
                let hub = match &hub {
                    Ok(hub) if partition < hub.settings.partitions => hub,
                    Ok(_) => {
                        codes.push(Code::UNKNOWN_TOPIC_OR_PARTITION);
                        continue;
                    }
                    Err(error) => {
                        codes.push(code_of(error));
                        continue;
                    }
                };
                if part.note.len() > OFFSET_NOTE_BYTES_MAX {
                    codes.push(Code::OFFSET_METADATA_TOO_LARGE);
                    continue;
                }
                let offset = u64::try_from(part.offset).unwrap_or(0);
                let committed = CommittedOffset { offset, note: part.note.clone() };
                offsets.push(GroupOffset { hub: hub.id(), partition, committed });
                codes.push(Code::NONE);
            }
        }
        if offsets.is_empty() {
            return codes;
        }
        if let Err(error) = self.logs.commit_offsets(namespace, group, offsets, self.holder()).await
        {
            let failed = match code_of(&error) {
                Code::INVALID_TOPIC_EXCEPTION => Code::INVALID_GROUP_ID,
                code => code,
            };
            codes.iter_mut().filter(|code| **code == Code::NONE).for_each(|code| *code = failed);
        }
        codes
    }

    pub(crate) async fn offset_fetch(
        &self,
        session: &Session,
        asked: &Asked,
        request: &mut Reader,
        response: &mut Writer,
    ) -> Result<Code, Hangup> {
        let version = asked.version;
        let group = request.text()?;
        let wanted = request.nullable_array(|it| Ok((it.text()?, it.array(|it| it.i32())?)))?;
        let wanted_count = wanted.as_deref().unwrap_or_default();
        check_count(wanted_count.len(), wanted_count.iter().map(|(_, parts)| parts.len()))?;
        let namespace = session.namespace()?;
        let found = self.offsets_of(namespace, &group, wanted).await;
        let code = found.as_ref().err().copied().unwrap_or(Code::NONE);
        if version >= 3 {
            response.i32(0);
        }
        let found = found.unwrap_or_default();
        response.array(&found, |response, (name, parts)| {
            response.text(name);
            response.array(parts, |response, (index, committed)| {
                response.i32(*index);
                response.i64(committed.as_ref().map_or(NO_OFFSET, |it| it.offset as i64));
                if version >= 5 {
                    response.i32(-1);
                }
                response.nullable_text(Some(committed.as_ref().map_or("", |it| &it.note)));
                response.i16(0);
            });
        });
        if version >= 2 {
            response.i16(code.0);
        }
        Ok(code)
    }

    /// What a group has committed: of the partitions named, or of all.
    async fn offsets_of(
        &self,
        namespace: &str,
        group: &str,
        wanted: Option<Vec<(String, Vec<i32>)>>,
    ) -> Result<Vec<TopicOffsets>, Code> {
        let failed = |error: lazuli_engine::Error| code_of(&error);
        let committed = self.logs.committed(namespace, group).await.map_err(failed)?;
        let mut found = Vec::new();
        if let Some(wanted) = wanted {
            for (name, parts) in wanted {
                let hub = self.logs.hub(namespace, &name).await.ok();
                let of = |index: &i32| {
                    let partition = u32::try_from(*index).ok()?;
                    committed.get(&(hub.as_ref()?.id(), partition)).cloned()
                };
                let parts = parts.iter().map(|index| (*index, of(index))).collect();
                found.push((name, parts));
            }
            return Ok(found);
        }
        let hubs = self.logs.hubs(namespace, None, TOPICS_LISTED_MAX).await.map_err(failed)?;
        let names: BTreeMap<_, _> = hubs.into_iter().map(|hub| (hub.id(), hub.name)).collect();
        let mut by_name: BTreeMap<String, Vec<_>> = BTreeMap::new();
        for ((hub, partition), committed) in committed {
            if let Some(name) = names.get(&hub) {
                let parts = by_name.entry(name.clone()).or_default();
                parts.push((partition as i32, Some(committed)));
            }
        }
        Ok(by_name.into_iter().collect())
    }

    pub(crate) async fn delete_groups(
        &self,
        session: &Session,
        request: &mut Reader,
        response: &mut Writer,
    ) -> Result<Code, Hangup> {
        let names = request.array(|it| it.text())?;
        if names.len() > TOPICS_MAX {
            return Err(Hangup::Malformed);
        }
        let namespace = session.namespace()?;
        response.i32(0);
        response.count(names.len());
        let mut first_code = Code::NONE;
        for name in &names {
            let forgotten = match self.coordinates(session, namespace, name).await {
                Ok(()) => self.groups.forget(namespace, name),
                Err((code, _)) => Err(code),
            };
            let code = match forgotten {
                Err(code) => code,
                Ok(was_there) => match self.logs.forget_group(namespace, name).await {
                    Ok(had_offsets) if was_there || had_offsets => Code::NONE,
                    Ok(_) => Code::GROUP_ID_NOT_FOUND,
                    Err(error) => code_of(&error),
                },
            };
            response.text(name);
            response.i16(code.0);
            if first_code == Code::NONE {
                first_code = code;
            }
        }
        Ok(first_code)
    }
}

/// A topic, and what was committed for some of its partitions.
type TopicOffsets = (String, Vec<(i32, Option<CommittedOffset>)>);
