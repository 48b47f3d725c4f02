//! Which groups this process coordinates. Alone it coordinates all; where several processes share the stores it claims a
//! group before it answers for it, renews the claim as members ask, and refuses what is for another process.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use lazuli_log::{CLAIM_RENEWAL, Claim, Claimed};

use crate::Front;
use crate::connection::Session;
use crate::error::{Code, code_of};
use crate::limits::GROUPS_MAX;

/// Namespace and name of a group.
type GroupId = (String, String);

/// The claims of this process.
pub(crate) struct Claims {
    /// Names this process, and no other one before or after it.
    holder: u64,
    /// Since when each claim is known to hold, before its row was written.
    renewed: Mutex<BTreeMap<GroupId, Instant>>,
}

impl Claims {
    pub(crate) fn new(holder: u64) -> Self {
        Self { holder, renewed: Mutex::default() }
    }

    fn is_fresh(&self, id: &GroupId) -> bool {
        let renewed = self.renewed.lock().unwrap_or_else(PoisonError::into_inner);
        renewed.get(id).is_some_and(|at| at.elapsed() < CLAIM_RENEWAL)
    }

    fn note(&self, id: GroupId, at: Option<Instant>) {
        let mut renewed = self.renewed.lock().unwrap_or_else(PoisonError::into_inner);
        // Those that nobody asked for lately have ended, or will.
        if renewed.len() >= GROUPS_MAX {
            renewed.retain(|_, at| at.elapsed() < CLAIM_RENEWAL);
        }
        match at {
            Some(at) => drop(renewed.insert(id, at)),
            None => drop(renewed.remove(&id)),
        }
    }
}

impl Front {
    /// Who commits offsets, for the shape to compare with the claim; none where nobody else could.
    pub(crate) fn holder(&self) -> Option<u64> {
        self.logs.is_shared().then_some(self.claims.holder)
    }

    /// Why another process has to be asked about a group, if one has to; this one claims nothing by that.
    pub(crate) async fn is_elsewhere(&self, namespace: &str, group: &str) -> Option<Code> {
        if !self.logs.is_shared() {
            return None;
        }
        match self.logs.claimant(namespace, group, Claimed::Coordinator).await {
            Ok(claim) => {
                let other = claim.filter(|claim| claim.holder != self.claims.holder);
                other.map(|_| Code::NOT_COORDINATOR)
            }
            Err(_) => Some(Code::COORDINATOR_NOT_AVAILABLE),
        }
    }

    /// Whether this process coordinates the group; else the code, and a sentence that says who does.
    pub(crate) async fn coordinates(
        &self,
        session: &Session,
        namespace: &str,
        group: &str,
    ) -> Result<(), (Code, String)> {
        let id = (namespace.to_owned(), group.to_owned());
        if !self.logs.is_shared() || self.claims.is_fresh(&id) {
            return Ok(());
        }
        let (began, note) = (Instant::now(), session.local.to_string());
        let wanted = Claim { holder: self.claims.holder, level: 0, note, until_ms: 0 };
        let claimed = Claimed::Coordinator;
        match self.logs.claim(namespace, group, claimed, wanted, false).await {
            Ok(claim) if claim.holder == self.claims.holder => {
                self.claims.note(id, Some(began));
                Ok(())
            }
            Ok(other) => {
                self.claims.note(id, None);
                self.groups.let_go(namespace, group);
                let note = other.note;
                let text = format!("another node coordinates this group: connect to {note}");
                Err((Code::NOT_COORDINATOR, text))
            }
            Err(error) => {
                let code = match code_of(&error) {
                    Code::INVALID_TOPIC_EXCEPTION => Code::INVALID_GROUP_ID,
                    _ => Code::COORDINATOR_NOT_AVAILABLE,
                };
                Err((code, error.message().to_owned()))
            }
        }
    }
}
