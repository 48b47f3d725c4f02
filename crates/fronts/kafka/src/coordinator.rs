//! The operations of groups. `claims` says whether this process coordinates one, `groups` decides.

use lazuli_kafka_wire::{Reader, Writer};

use crate::Front;
use crate::connection::{Asked, Session};
use crate::error::{Code, Hangup, code_of};
use crate::groups::{Join, Joined, Listed};
use crate::limits::TOPICS_MAX;
use crate::topics::BROKER;

const OPERATIONS_UNKNOWN: i32 = i32::MIN;

impl Front {
    pub(crate) async fn find_coordinator(
        &self,
        session: &Session,
        asked: &Asked,
        request: &mut Reader,
        response: &mut Writer,
    ) -> Result<Code, Hangup> {
        let namespace = session.namespace()?;
        let group = request.text()?;
        let is_group = asked.version == 0 || request.i8()? == 0;
        let found = match is_group {
            true => self.coordinates(session, namespace, &group).await,
            false => {
                let text = "there are no transactions".to_owned();
                Err((Code::TRANSACTIONAL_ID_AUTHORIZATION_FAILED, text))
            }
        };
        let (code, text) = match found {
            Ok(()) => (Code::NONE, None),
            // To look for a coordinator is no mistake, wherever it is.
            Err((Code::NOT_COORDINATOR, text)) => (Code::COORDINATOR_NOT_AVAILABLE, Some(text)),
            Err((code, text)) => (code, Some(text)),
        };
        if asked.version >= 1 {
            response.i32(0);
        }
        response.i16(code.0);
        if asked.version >= 1 {
            response.nullable_text(text.as_deref());
        }
        response.i32(if code == Code::NONE { BROKER } else { -1 });
        self.write_address(session, response);
        Ok(code)
    }

    pub(crate) async fn join_group(
        &self,
        session: &Session,
        asked: &Asked,
        request: &mut Reader,
        response: &mut Writer,
    ) -> Result<Code, Hangup> {
        let version = asked.version;
        let (group, session_ms) = (request.text()?, request.i32()?);
        let rebalance_ms = if version >= 1 { request.i32()? } else { session_ms };
        let member = request.text()?;
        let instance = if version >= 5 { request.nullable_text()? } else { None };
        let protocol_type = request.text()?;
        let protocols = request.array(|it| Ok((it.text()?, it.bytes()?)))?;
        let join = Join {
            member,
            instance,
            client: asked.client.clone(),
            host: session.peer.ip().to_string(),
            session_ms,
            rebalance_ms,
            protocol_type,
            protocols,
            // Older clients do not know the error that tells them their id.
            must_know_id: version >= 4,
        };
        let namespace = session.namespace()?;
        let joined = self.join(session, namespace, &group, join).await;
        let (code, joined) = match joined {
            Ok(joined) => (Code::NONE, joined),
            Err((code, member)) => (code, Joined::refused(member)),
        };
        if version >= 2 {
            response.i32(0);
        }
        response.i16(code.0);
        response.i32(joined.generation);
        response.text(&joined.protocol);
        response.text(&joined.leader);
        response.text(&joined.member);
        response.array(&joined.members, |response, (id, instance, metadata)| {
            response.text(id);
            if version >= 5 {
                response.nullable_text(instance.as_deref());
            }
            response.bytes(metadata);
        });
        Ok(code)
    }

    /// Joins a group. Whoever waited for the others may have lost the group to another process meanwhile.
    async fn join(
        &self,
        session: &Session,
        namespace: &str,
        group: &str,
        join: Join,
    ) -> Result<Joined, (Code, String)> {
        let member = join.member.clone();
        let refused = |(code, _)| (code, member.clone());
        self.coordinates(session, namespace, group).await.map_err(refused)?;
        let joined = self.groups.join(&self.random(), namespace, group, join).await?;
        self.coordinates(session, namespace, group).await.map_err(refused)?;
        Ok(joined)
    }

    /// Eight hexadecimal digits twice: part of the ids of members.
    fn random(&self) -> String {
        let random = &self.logs.engine().env().random;
        format!("{:016x}{:016x}", random.next_u64(), random.next_u64())
    }

    pub(crate) async fn sync_group(
        &self,
        session: &Session,
        asked: &Asked,
        request: &mut Reader,
        response: &mut Writer,
    ) -> Result<Code, Hangup> {
        let version = asked.version;
        let (group, generation, member) = (request.text()?, request.i32()?, request.text()?);
        let instance = if version >= 3 { request.nullable_text()? } else { None };
        let assignments = request.array(|it| Ok((it.text()?, it.bytes()?)))?;
        let namespace = session.namespace()?;
        let instance = instance.as_deref();
        let groups = &self.groups;
        let mut synced = match self.coordinates(session, namespace, &group).await {
            Ok(()) => {
                groups.sync(namespace, &group, generation, &member, instance, assignments).await
            }
            Err((code, _)) => Err(code),
        };
        if let Err((code, _)) = self.coordinates(session, namespace, &group).await {
            synced = Err(code);
        }
        let code = synced.as_ref().err().copied().unwrap_or(Code::NONE);
        if version >= 1 {
            response.i32(0);
        }
        response.i16(code.0);
        response.bytes(&synced.unwrap_or_default());
        Ok(code)
    }

    pub(crate) async fn heartbeat(
        &self,
        session: &Session,
        asked: &Asked,
        request: &mut Reader,
        response: &mut Writer,
    ) -> Result<Code, Hangup> {
        let (group, generation, member) = (request.text()?, request.i32()?, request.text()?);
        let instance = if asked.version >= 3 { request.nullable_text()? } else { None };
        let namespace = session.namespace()?;
        let instance = instance.as_deref();
        let code = match self.coordinates(session, namespace, &group).await {
            Ok(()) => self.groups.heartbeat(namespace, &group, generation, &member, instance),
            Err((code, _)) => code,
        };
        if asked.version >= 1 {
            response.i32(0);
        }
        response.i16(code.0);
        Ok(code)
    }

    pub(crate) async fn leave_group(
        &self,
        session: &Session,
        asked: &Asked,
        request: &mut Reader,
        response: &mut Writer,
    ) -> Result<Code, Hangup> {
        let group = request.text()?;
        let namespace = session.namespace()?;
        let lost = self.coordinates(session, namespace, &group).await.err().map(|(code, _)| code);
        if asked.version < 3 {
            let member = request.text()?;
            let left = || self.groups.leave(namespace, &group, &member, None);
            let code = lost.unwrap_or_else(left);
            if asked.version >= 1 {
                response.i32(0);
            }
            response.i16(code.0);
            return Ok(code);
        }
        let members = request.array(|it| Ok((it.text()?, it.nullable_text()?)))?;
        if members.len() > TOPICS_MAX {
            return Err(Hangup::Malformed);
        }
        response.i32(0);
        response.i16(lost.unwrap_or(Code::NONE).0);
        let members = if lost.is_some() { Vec::new() } else { members };
        response.array(&members, |response, (member, instance)| {
            let code = self.groups.leave(namespace, &group, member, instance.as_deref());
            response.text(member);
            response.nullable_text(instance.as_deref());
            response.i16(code.0);
        });
        Ok(lost.unwrap_or(Code::NONE))
    }

    pub(crate) async fn describe_groups(
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
        let mut codes = Vec::new();
        for name in &names {
            codes.push(self.is_elsewhere(namespace, name).await.unwrap_or(Code::NONE));
        }
        let mut codes = codes.into_iter();
        if asked.version >= 1 {
            response.i32(0);
        }
        response.array(&names, |response, name| {
            let group = self.groups.describe(namespace, name);
            response.i16(codes.next().unwrap_or(Code::NONE).0);
            response.text(name);
            response.text(group.state);
            response.text(&group.protocol_type);
            response.text(&group.protocol);
            response.array(&group.members, |response, member| {
                response.text(&member.id);
                if asked.version >= 4 {
                    response.nullable_text(member.instance.as_deref());
                }
                response.text(&member.client);
                response.text(&member.host);
                response.bytes(&member.metadata);
                response.bytes(&member.assignment);
            });
            if asked.version >= 3 {
                response.i32(OPERATIONS_UNKNOWN);
            }
        });
        Ok(Code::NONE)
    }

    pub(crate) async fn list_groups(
        &self,
        session: &Session,
        asked: &Asked,
        _request: &mut Reader,
        response: &mut Writer,
    ) -> Result<Code, Hangup> {
        let namespace = session.namespace()?;
        let mut groups = self.groups.list(namespace);
        let code = match self.logs.group_names(namespace).await {
            Ok(names) => {
                for name in names {
                    if !groups.iter().any(|group| group.name == name) {
                        groups.push(Listed { name, protocol_type: "consumer".to_owned() });
                    }
                }
                Code::NONE
            }
            Err(error) => code_of(&error),
        };
        if asked.version >= 1 {
            response.i32(0);
        }
        response.i16(code.0);
        response.array(&groups, |response, group| {
            response.text(&group.name);
            response.text(&group.protocol_type);
        });
        Ok(code)
    }
}
