//! One group of consumers: who its members are, and which of its states it is in. Time is passed in.
//!
//! `Empty` → a member joins → `Preparing`: all members have to join (again) until a deadline → `Completing`: the leader
//! says what each member gets → `Stable`, until a member joins, leaves or is silent for too long. A group in memory only:
//! after a restart members join anew, and go on from the offsets that they committed.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use bytes::Bytes;

use crate::error::Code;
use crate::limits::{FIRST_JOIN_WAIT, MEMBERS_MAX, PENDING_MAX, REBALANCE_MAX, SESSION_MS};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Empty,
    Preparing,
    Completing,
    Stable,
}

impl State {
    /// As the protocol names it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Empty => "Empty",
            Self::Preparing => "PreparingRebalance",
            Self::Completing => "CompletingRebalance",
            Self::Stable => "Stable",
        }
    }
}

/// What a client says when it joins.
#[derive(Clone, Debug)]
pub(crate) struct Join {
    /// Empty if it has no id yet.
    pub(crate) member: String,
    /// A name that outlives its connections.
    pub(crate) instance: Option<String>,
    pub(crate) client: String,
    pub(crate) host: String,
    pub(crate) session_ms: i32,
    pub(crate) rebalance_ms: i32,
    pub(crate) protocol_type: String,
    /// How members could share the partitions, best first, with what each way has to know of the member.
    pub(crate) protocols: Vec<(String, Bytes)>,
    pub(crate) must_know_id: bool,
}

impl Join {
    fn bytes(&self) -> usize {
        let protocols = self.protocols.iter().map(|(name, data)| name.len() + data.len());
        let names = self.client.len() + self.host.len() + self.member.len();
        names + self.instance.as_ref().map_or(0, String::len) + protocols.sum::<usize>()
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) join: Join,
    seen: Instant,
    /// Whether it has joined since the group began to prepare.
    has_joined: bool,
    pub(crate) assignment: Bytes,
}

impl Member {
    fn session(&self) -> Duration {
        Duration::from_millis(u64::try_from(self.join.session_ms).unwrap_or(0))
    }

    fn rebalance(&self) -> Duration {
        let wanted = Duration::from_millis(u64::try_from(self.join.rebalance_ms).unwrap_or(0));
        wanted.max(self.session()).min(REBALANCE_MAX)
    }

    pub(crate) fn metadata(&self, protocol: &str) -> Bytes {
        let found = self.join.protocols.iter().find(|(name, _)| name == protocol);
        found.map(|(_, data)| data.clone()).unwrap_or_default()
    }
}

#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) state: State,
    pub(crate) generation: i32,
    pub(crate) protocol_type: String,
    pub(crate) protocol: String,
    pub(crate) leader: String,
    pub(crate) members: BTreeMap<String, Member>,
    /// Ids that were given to clients that have not joined with them yet.
    pending: BTreeSet<String>,
    /// When those who have not joined are left out; when the leader has to have said what each gets.
    deadline: Option<Instant>,
}

impl Default for Group {
    fn default() -> Self {
        Self {
            state: State::Empty,
            generation: 0,
            protocol_type: String::new(),
            protocol: String::new(),
            leader: String::new(),
            members: BTreeMap::new(),
            pending: BTreeSet::new(),
            deadline: None,
        }
    }
}

impl Group {
    pub(crate) fn is_idle(&self) -> bool {
        self.members.is_empty() && self.pending.is_empty()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.members.values().map(|member| member.join.bytes() + member.assignment.len()).sum()
    }

    /// Takes a member in, or gives a client the id to join with. Answers the member's id.
    pub(crate) fn join(
        &mut self,
        random: &str,
        mut join: Join,
        now: Instant,
    ) -> Result<String, (Code, String)> {
        let given = join.member.clone();
        let refuse = |code| Err((code, given.clone()));
        if !SESSION_MS.contains(&join.session_ms) {
            return refuse(Code::INVALID_SESSION_TIMEOUT);
        }
        if join.protocols.is_empty() || !self.takes(&join) {
            return refuse(Code::INCONSISTENT_GROUP_PROTOCOL);
        }
        if join.member.is_empty() {
            match self.instance(join.instance.as_deref()) {
                // The same instance comes back: it takes the place of what it was before.
                Some(before) => join.member = before,
                None => {
                    if self.members.len() >= MEMBERS_MAX || self.pending.len() >= PENDING_MAX {
                        return refuse(Code::GROUP_MAX_SIZE_REACHED);
                    }
                    join.member = format!("{}-{random}", join.client);
                    if join.must_know_id && join.instance.is_none() {
                        self.pending.insert(join.member.clone());
                        return Err((Code::MEMBER_ID_REQUIRED, join.member));
                    }
                }
            }
        } else if let Some(known) = self.instance(join.instance.as_deref()) {
            if known != join.member {
                return refuse(Code::FENCED_INSTANCE_ID);
            }
        } else if !self.members.contains_key(&join.member) && !self.pending.contains(&join.member) {
            return refuse(Code::UNKNOWN_MEMBER_ID);
        }
        self.pending.remove(&join.member);
        let id = join.member.clone();
        self.admit(join, now);
        Ok(id)
    }

    fn admit(&mut self, join: Join, now: Instant) {
        let id = join.member.clone();
        let before = self.members.get(&id);
        let is_same = before.is_some_and(|before| before.join.protocols == join.protocols);
        // Who says what it said before gets what it got, unless it is the one who divides.
        if is_same && self.state == State::Completing
            || is_same && self.state == State::Stable && self.leader != id
        {
            if let Some(member) = self.members.get_mut(&id) {
                member.seen = now;
                member.has_joined = true;
            }
            return;
        }
        if self.members.is_empty() {
            self.protocol_type = join.protocol_type.clone();
        }
        let was_empty = self.state == State::Empty;
        self.prepare(now);
        let member = Member { join, seen: now, has_joined: true, assignment: Bytes::new() };
        self.members.insert(id, member);
        if was_empty {
            self.deadline = Some(now + FIRST_JOIN_WAIT);
        }
    }

    fn takes(&self, join: &Join) -> bool {
        let others = self.members.iter().filter(|(id, _)| **id != join.member);
        let mut others = others.map(|(_, member)| member).peekable();
        if others.peek().is_none() {
            return true;
        }
        let all: Vec<_> = others.collect();
        let common = |name: &String| {
            all.iter().all(|member| member.join.protocols.iter().any(|(other, _)| other == name))
        };
        self.protocol_type == join.protocol_type
            && join.protocols.iter().any(|(name, _)| common(name))
    }

    fn instance(&self, instance: Option<&str>) -> Option<String> {
        let instance = instance?;
        let is_it = |member: &&Member| member.join.instance.as_deref() == Some(instance);
        self.members.values().find(is_it).map(|member| member.join.member.clone())
    }

    /// From now on all have to join (again).
    fn prepare(&mut self, now: Instant) {
        if self.state == State::Preparing {
            return;
        }
        self.state = State::Preparing;
        for member in self.members.values_mut() {
            member.has_joined = false;
            member.assignment = Bytes::new();
        }
        let longest = self.members.values().map(Member::rebalance).max();
        self.deadline = Some(now + longest.unwrap_or(FIRST_JOIN_WAIT));
    }

    /// Does what time brings: leaves out who was silent for too long, and goes on where all have joined or had their time.
    /// Answers whether anything changed.
    pub(crate) fn tick(&mut self, now: Instant) -> bool {
        let before = (self.state, self.generation, self.members.len());
        let is_waiting = self.state == State::Preparing;
        let is_alive = |member: &Member| {
            // A member that waits for the others cannot send heartbeats.
            (is_waiting && member.has_joined) || now < member.seen + member.session()
        };
        let count = self.members.len();
        self.members.retain(|_, member| is_alive(member));
        if self.members.len() < count && matches!(self.state, State::Stable | State::Completing) {
            self.prepare(now);
        }
        let is_over = self.deadline.is_some_and(|deadline| now >= deadline);
        match self.state {
            State::Preparing => {
                let all_joined = self.members.values().all(|member| member.has_joined);
                // The first members of an empty group wait for more to come.
                let is_first = self.generation == 0 || self.leader.is_empty();
                if is_over || (all_joined && !is_first) {
                    self.complete(now);
                }
            }
            // A leader that says nothing is left out.
            State::Completing if is_over => {
                let leader = self.leader.clone();
                self.members.remove(&leader);
                self.prepare(now);
            }
            State::Completing | State::Stable | State::Empty => {}
        }
        if self.members.is_empty() && self.state != State::Empty {
            self.empty();
        }
        before != (self.state, self.generation, self.members.len())
    }

    fn empty(&mut self) {
        self.state = State::Empty;
        self.generation = self.generation.wrapping_add(1).max(1);
        self.deadline = None;
        self.leader.clear();
        self.protocol.clear();
    }

    fn complete(&mut self, now: Instant) {
        self.members.retain(|_, member| member.has_joined);
        let Some(first) = self.members.keys().next().cloned() else { return };
        self.generation = self.generation.wrapping_add(1).max(1);
        if !self.members.contains_key(&self.leader) {
            self.leader = first;
        }
        self.protocol = self.choose();
        self.state = State::Completing;
        for member in self.members.values_mut() {
            member.seen = now;
        }
        let longest = self.members.values().map(Member::rebalance).max();
        self.deadline = longest.map(|longest| now + longest);
    }

    /// The protocol that all know and most like best.
    fn choose(&self) -> String {
        let knows = |member: &Member, name: &str| {
            member.join.protocols.iter().any(|(other, _)| other == name)
        };
        let mut votes: BTreeMap<&str, usize> = BTreeMap::new();
        for member in self.members.values() {
            let names = member.join.protocols.iter().map(|(name, _)| name.as_str());
            let all_know = |name: &&str| self.members.values().all(|other| knows(other, name));
            if let Some(best) = names.into_iter().find(all_know) {
                *votes.entry(best).or_default() += 1;
            }
        }
        let best = votes.into_iter().max_by_key(|(_, votes)| *votes);
        best.map(|(name, _)| name.to_owned()).unwrap_or_default()
    }

    /// Refuses who is not a member of this generation, and notes that the others live.
    pub(crate) fn check(
        &mut self,
        generation: i32,
        member: &str,
        instance: Option<&str>,
        now: Instant,
    ) -> Result<(), Code> {
        if let Some(known) = self.instance(instance)
            && known != member
        {
            return Err(Code::FENCED_INSTANCE_ID);
        }
        let found = self.members.get_mut(member).ok_or(Code::UNKNOWN_MEMBER_ID)?;
        if generation != self.generation {
            return Err(Code::ILLEGAL_GENERATION);
        }
        found.seen = now;
        Ok(())
    }

    /// The leader says what each gets.
    pub(crate) fn assign(&mut self, assignments: Vec<(String, Bytes)>) {
        for (id, assignment) in assignments {
            if let Some(member) = self.members.get_mut(&id) {
                member.assignment = assignment;
            }
        }
        self.state = State::Stable;
        self.deadline = None;
    }

    pub(crate) fn leave(
        &mut self,
        member: &str,
        instance: Option<&str>,
        now: Instant,
    ) -> Result<(), Code> {
        if self.pending.remove(member) {
            return Ok(());
        }
        let id = match self.instance(instance) {
            Some(known) if !member.is_empty() && known != member => {
                return Err(Code::FENCED_INSTANCE_ID);
            }
            Some(known) => known,
            None => member.to_owned(),
        };
        self.members.remove(&id).ok_or(Code::UNKNOWN_MEMBER_ID)?;
        if matches!(self.state, State::Stable | State::Completing) {
            self.prepare(now);
        }
        self.tick(now);
        Ok(())
    }

    /// When to look again at the latest.
    pub(crate) fn next_tick(&self, now: Instant) -> Instant {
        let ends = self.members.values().filter(|member| !member.has_joined);
        let ends = ends.map(|member| member.seen + member.session());
        let soon = now + Duration::from_secs(1);
        ends.chain(self.deadline).min().map_or(soon, |end| end.min(soon).max(now))
    }
}
