//! The log of what was refused: like incidents are one entry, as ACL LOG shows them.

use std::collections::VecDeque;

/// How many entries there are at most, the newest first.
const ENTRIES_MAX: usize = 128;
/// After this time a like incident is an entry of its own.
const GROUPED_MS: u64 = 60_000;
/// How much of a name that a client has sent is kept.
const NAME_BYTES_MAX: usize = 256;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    Command,
    Key,
    Channel,
    Auth,
}

impl Reason {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Command => "command",
            Self::Key => "key",
            Self::Channel => "channel",
            Self::Auth => "auth",
        }
    }
}

/// Something that was refused.
#[derive(Clone, Debug)]
pub(crate) struct Incident {
    pub(crate) count: u64,
    pub(crate) reason: Reason,
    /// `toplevel`, `multi` or `lua`.
    pub(crate) context: &'static str,
    /// The command, key or channel.
    pub(crate) object: Vec<u8>,
    pub(crate) user: String,
    pub(crate) at_ms: u64,
    pub(crate) client: String,
}

#[derive(Default)]
pub(crate) struct Log(VecDeque<Incident>);

impl Log {
    pub(crate) fn add(&mut self, mut incident: Incident) {
        incident.object.truncate(NAME_BYTES_MAX);
        if incident.user.len() > NAME_BYTES_MAX {
            incident.user = incident.user.chars().take(NAME_BYTES_MAX / 4).collect();
        }
        let is_like = |it: &Incident| {
            (it.reason, it.context) == (incident.reason, incident.context)
                && (&it.object, &it.user) == (&incident.object, &incident.user)
                && incident.at_ms.saturating_sub(it.at_ms) <= GROUPED_MS
        };
        if let Some(at) = self.0.iter().position(is_like) {
            incident.count += self.0.remove(at).map_or(0, |it| it.count);
        }
        self.0.push_front(incident);
        self.0.truncate(ENTRIES_MAX);
    }

    pub(crate) fn entries(&self) -> impl ExactSizeIterator<Item = &Incident> {
        self.0.iter()
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}
