//! All groups of consumers that this process coordinates, and those who wait in them.

mod group;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use bytes::Bytes;
use tokio::sync::Notify;

use crate::error::Code;
use crate::limits::{GROUP_BYTES_MAX, GROUPS_MAX, NAME_BYTES_MAX};
pub(crate) use group::Join;
use group::{Group, State};

/// What a member learns when all have joined.
#[derive(Debug, Default)]
pub(crate) struct Joined {
    pub(crate) generation: i32,
    pub(crate) protocol: String,
    pub(crate) leader: String,
    pub(crate) member: String,
    /// For the leader: who there is, with instance and what the protocol has to know.
    pub(crate) members: Vec<(String, Option<String>, Bytes)>,
}

impl Joined {
    pub(crate) fn refused(member: String) -> Self {
        Self { generation: -1, member, ..Self::default() }
    }
}

/// A group of a list.
pub(crate) struct Listed {
    pub(crate) name: String,
    pub(crate) protocol_type: String,
}

/// What people are told about a group.
pub(crate) struct Described {
    pub(crate) state: &'static str,
    pub(crate) protocol_type: String,
    pub(crate) protocol: String,
    pub(crate) members: Vec<DescribedMember>,
}

pub(crate) struct DescribedMember {
    pub(crate) id: String,
    pub(crate) instance: Option<String>,
    pub(crate) client: String,
    pub(crate) host: String,
    pub(crate) metadata: Bytes,
    pub(crate) assignment: Bytes,
}

/// Namespace and name.
type GroupId = (String, String);

#[derive(Default)]
struct Slot {
    group: Group,
    /// Wakes those who wait for the group to go on.
    changed: Arc<Notify>,
}

#[derive(Default)]
pub(crate) struct Groups {
    all: Mutex<BTreeMap<GroupId, Slot>>,
}

impl Groups {
    fn all(&self) -> MutexGuard<'_, BTreeMap<GroupId, Slot>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something with a group that is there, once time has done its part. Who waits in it is woken if it changed.
    fn with<T>(
        &self,
        namespace: &str,
        name: &str,
        act: impl FnOnce(&mut Group, Instant) -> T,
    ) -> Option<T> {
        let mut all = self.all();
        let id = (namespace.to_owned(), name.to_owned());
        let slot = all.get_mut(&id)?;
        let now = Instant::now();
        let before = (slot.group.state, slot.group.generation);
        let ticked = slot.group.tick(now);
        let answer = act(&mut slot.group, now);
        let again = slot.group.tick(now);
        if ticked || again || before != (slot.group.state, slot.group.generation) {
            slot.changed.notify_waiters();
        }
        if slot.group.is_idle() {
            all.remove(&id);
        }
        Some(answer)
    }

    /// Joins, and waits until all have.
    pub(crate) async fn join(
        &self,
        random: &str,
        namespace: &str,
        name: &str,
        join: Join,
    ) -> Result<Joined, (Code, String)> {
        let given = join.member.clone();
        let names = [name, &join.member, join.instance.as_deref().unwrap_or_default()];
        if name.is_empty() || names.iter().any(|name| name.len() > 2 * NAME_BYTES_MAX) {
            return Err((Code::INVALID_GROUP_ID, given));
        }
        let member = {
            self.make_room(namespace, name, &given)?;
            let act = |group: &mut Group, now| group.join(random, join, now);
            self.with(namespace, name, act).ok_or((Code::UNKNOWN_MEMBER_ID, given))??
        };
        loop {
            let Some(changed) = self.changed(namespace, name) else {
                return Err((Code::UNKNOWN_MEMBER_ID, member));
            };
            // Registered before the look, so that no change in between is missed.
            let mut woken = std::pin::pin!(changed.notified());
            woken.as_mut().enable();
            let looked = self.with(namespace, name, |group, now| {
                if !group.members.contains_key(&member) {
                    return Err(Err((Code::UNKNOWN_MEMBER_ID, member.clone())));
                }
                match group.state {
                    State::Completing | State::Stable => Err(Ok(joined(group, &member))),
                    State::Preparing | State::Empty => Ok(group.next_tick(now)),
                }
            });
            match looked {
                None => return Err((Code::UNKNOWN_MEMBER_ID, member)),
                Some(Err(answer)) => return answer,
                Some(Ok(until)) => tokio::select! {
                    biased;
                    () = woken => {}
                    () = tokio::time::sleep_until(until.into()) => {}
                },
            }
        }
    }

    /// Makes a group, unless there are too many or they hold too much.
    fn make_room(&self, namespace: &str, name: &str, given: &str) -> Result<(), (Code, String)> {
        let mut all = self.all();
        let id = (namespace.to_owned(), name.to_owned());
        let held: usize = all.values().map(|slot| slot.group.bytes()).sum();
        if held > GROUP_BYTES_MAX || (!all.contains_key(&id) && all.len() >= GROUPS_MAX) {
            return Err((Code::GROUP_MAX_SIZE_REACHED, given.to_owned()));
        }
        all.entry(id).or_default();
        Ok(())
    }

    fn changed(&self, namespace: &str, name: &str) -> Option<Arc<Notify>> {
        let all = self.all();
        Some(all.get(&(namespace.to_owned(), name.to_owned()))?.changed.clone())
    }

    /// Forgets a group that another process coordinates from now on. Who waits in it is told that it is no member.
    pub(crate) fn let_go(&self, namespace: &str, name: &str) {
        let gone = self.all().remove(&(namespace.to_owned(), name.to_owned()));
        if let Some(slot) = gone {
            slot.changed.notify_waiters();
        }
    }

    /// What a member gets: at once if the leader has said so, else when it does.
    pub(crate) async fn sync(
        &self,
        namespace: &str,
        name: &str,
        generation: i32,
        member: &str,
        instance: Option<&str>,
        assignments: Vec<(String, Bytes)>,
    ) -> Result<Bytes, Code> {
        let mut assignments = Some(assignments);
        loop {
            let changed = self.changed(namespace, name).ok_or(Code::UNKNOWN_MEMBER_ID)?;
            let mut woken = std::pin::pin!(changed.notified());
            woken.as_mut().enable();
            let looked = self.with(namespace, name, |group, now| {
                if let Err(code) = group.check(generation, member, instance, now) {
                    return Err(Err(code));
                }
                if group.state == State::Completing
                    && group.leader == member
                    && let Some(assignments) = assignments.take()
                {
                    group.assign(assignments);
                }
                match group.state {
                    State::Stable => {
                        let found = group.members.get(member);
                        Err(Ok(found.map(|it| it.assignment.clone()).unwrap_or_default()))
                    }
                    State::Completing => Ok(group.next_tick(now)),
                    State::Preparing | State::Empty => Err(Err(Code::REBALANCE_IN_PROGRESS)),
                }
            });
            match looked.ok_or(Code::UNKNOWN_MEMBER_ID)? {
                Err(answer) => return answer,
                Ok(until) => tokio::select! {
                    biased;
                    () = woken => {}
                    () = tokio::time::sleep_until(until.into()) => {}
                },
            }
        }
    }

    pub(crate) fn heartbeat(
        &self,
        namespace: &str,
        name: &str,
        generation: i32,
        member: &str,
        instance: Option<&str>,
    ) -> Code {
        let beat = self.with(namespace, name, |group, now| {
            group.check(generation, member, instance, now)?;
            match group.state {
                State::Preparing => Err(Code::REBALANCE_IN_PROGRESS),
                State::Completing | State::Stable | State::Empty => Ok(()),
            }
        });
        beat.unwrap_or(Err(Code::UNKNOWN_MEMBER_ID)).err().unwrap_or(Code::NONE)
    }

    pub(crate) fn leave(
        &self,
        namespace: &str,
        name: &str,
        member: &str,
        instance: Option<&str>,
    ) -> Code {
        let left = self.with(namespace, name, |group, now| group.leave(member, instance, now));
        left.unwrap_or(Err(Code::UNKNOWN_MEMBER_ID)).err().unwrap_or(Code::NONE)
    }

    /// Whether offsets of the group may be committed: by a member of this generation, or by anyone if nobody is in it.
    pub(crate) fn may_commit(
        &self,
        namespace: &str,
        name: &str,
        generation: i32,
        member: &str,
        instance: Option<&str>,
    ) -> Result<(), Code> {
        let checked = self.with(namespace, name, |group, now| {
            if generation < 0 && group.members.is_empty() {
                return Ok(());
            }
            group.check(generation, member, instance, now)?;
            match group.state {
                State::Completing => Err(Code::REBALANCE_IN_PROGRESS),
                State::Preparing | State::Stable | State::Empty => Ok(()),
            }
        });
        match checked {
            Some(checked) => checked,
            None if generation < 0 => Ok(()),
            None => Err(Code::UNKNOWN_MEMBER_ID),
        }
    }

    /// Forgets a group without members, and says whether there was one.
    pub(crate) fn forget(&self, namespace: &str, name: &str) -> Result<bool, Code> {
        let has_members = self.with(namespace, name, |group, _| !group.members.is_empty());
        match has_members {
            Some(true) => Err(Code::NON_EMPTY_GROUP),
            Some(false) => {
                self.all().remove(&(namespace.to_owned(), name.to_owned()));
                Ok(true)
            }
            None => Ok(false),
        }
    }

    pub(crate) fn list(&self, namespace: &str) -> Vec<Listed> {
        let all = self.all();
        let here = all.iter().filter(|((one, _), _)| one == namespace);
        here.map(|((_, name), slot)| {
            let protocol_type = slot.group.protocol_type.clone();
            Listed { name: name.clone(), protocol_type }
        })
        .collect()
    }

    pub(crate) fn describe(&self, namespace: &str, name: &str) -> Described {
        let found = self.with(namespace, name, |group, _| {
            let member = |(id, member): (&String, &group::Member)| DescribedMember {
                id: id.clone(),
                instance: member.join.instance.clone(),
                client: member.join.client.clone(),
                host: member.join.host.clone(),
                metadata: member.metadata(&group.protocol),
                assignment: member.assignment.clone(),
            };
            Described {
                state: group.state.name(),
                protocol_type: group.protocol_type.clone(),
                protocol: group.protocol.clone(),
                members: group.members.iter().map(member).collect(),
            }
        });
        found.unwrap_or_else(|| Described {
            state: "Dead",
            protocol_type: String::new(),
            protocol: String::new(),
            members: Vec::new(),
        })
    }
}

fn joined(group: &Group, member: &str) -> Joined {
    let is_leader = group.leader == member;
    let of = |(id, member): (&String, &group::Member)| {
        (id.clone(), member.join.instance.clone(), member.metadata(&group.protocol))
    };
    Joined {
        generation: group.generation,
        protocol: group.protocol.clone(),
        leader: group.leader.clone(),
        member: member.to_owned(),
        members: group.members.iter().filter(|_| is_leader).map(of).collect(),
    }
}
