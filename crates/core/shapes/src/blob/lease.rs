//! Leases of blobs and containers: a lock with an id, for 15 to 60 seconds or for good, with the service's rules for who
//! may do what in which state. Time is given in, so that a state is a function of the stored lease and the moment.

use lazuli_engine::{Error, Kind, Result};

use super::codec::{Reader, Writer, damaged};
use super::codes;

/// The shortest and the longest lease that is not for good, in seconds.
pub(super) const LEASE_SECONDS: std::ops::RangeInclusive<u32> = 15..=60;
/// The longest time that a lease may take to break.
pub(super) const BREAK_SECONDS_MAX: u32 = 60;

/// A lease as it is stored; the state follows from it and the time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lease {
    /// None: never leased, or released.
    pub id: Option<String>,
    /// None: for good.
    pub seconds: Option<u32>,
    /// When a lease that is not for good ends.
    pub expires_ms: Option<u64>,
    /// When it is broken, once somebody began to break it.
    pub broken_ms: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseState {
    Available,
    Leased,
    Expired,
    Breaking,
    Broken,
}

/// What to do with a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaseAction {
    /// `seconds` of none: for good. The id is the one proposed, or a new one.
    Acquire {
        id: String,
        seconds: Option<u32>,
    },
    Renew {
        id: String,
    },
    Change {
        id: String,
        proposed: String,
    },
    Release {
        id: String,
    },
    Break {
        seconds: Option<u32>,
    },
}

/// Whose lease it is: refusals name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leased {
    Blob,
    Container,
}

impl Lease {
    pub fn state(&self, now_ms: u64) -> LeaseState {
        if self.id.is_none() {
            return LeaseState::Available;
        }
        match (self.broken_ms, self.expires_ms) {
            (Some(broken), _) if now_ms < broken => LeaseState::Breaking,
            (Some(_), _) => LeaseState::Broken,
            (None, Some(expires)) if expires <= now_ms => LeaseState::Expired,
            (None, _) => LeaseState::Leased,
        }
    }

    /// Whether writes need its id.
    pub fn is_locked(&self, now_ms: u64) -> bool {
        matches!(self.state(now_ms), LeaseState::Leased | LeaseState::Breaking)
    }

    /// Makes the change, or says why not. Answers the seconds until a broken lease is free, and 0 for everything else.
    pub fn act(&mut self, action: &LeaseAction, now_ms: u64) -> Result<u32> {
        match action {
            LeaseAction::Acquire { id, seconds } => self.acquire(id, *seconds, now_ms)?,
            LeaseAction::Renew { id } => self.renew(id, now_ms)?,
            LeaseAction::Change { id, proposed } => self.change(id, proposed, now_ms)?,
            LeaseAction::Release { id } => {
                if !self.is(id) {
                    return Err(mismatch());
                }
                *self = Self::default();
            }
            LeaseAction::Break { seconds } => return self.begin_to_break(*seconds, now_ms),
        }
        Ok(0)
    }

    fn acquire(&mut self, id: &str, seconds: Option<u32>, now_ms: u64) -> Result<()> {
        if seconds.is_some_and(|seconds| !LEASE_SECONDS.contains(&seconds)) {
            let message = "a lease lasts 15 to 60 seconds, or for good";
            return Err(Error::invalid(codes::LEASE_DURATION_INVALID, message));
        }
        match self.state(now_ms) {
            LeaseState::Leased if !self.is(id) => {
                Err(refused(codes::LEASE_ALREADY_PRESENT, "there is a lease with another id"))
            }
            LeaseState::Breaking if self.is(id) => Err(refused(
                codes::LEASE_IS_BREAKING_ACQUIRE,
                "the lease is being broken and cannot be acquired until it is",
            )),
            LeaseState::Breaking => {
                Err(refused(codes::LEASE_ALREADY_PRESENT, "there is a lease with another id"))
            }
            LeaseState::Available
            | LeaseState::Leased
            | LeaseState::Expired
            | LeaseState::Broken => {
                let expires_ms = seconds.map(|seconds| now_ms + u64::from(seconds) * 1000);
                *self = Self { id: Some(id.to_owned()), seconds, expires_ms, broken_ms: None };
                Ok(())
            }
        }
    }

    fn renew(&mut self, id: &str, now_ms: u64) -> Result<()> {
        if !self.is(id) {
            return Err(mismatch());
        }
        if self.broken_ms.is_some() {
            let message = "the lease was broken and cannot be renewed";
            return Err(refused(codes::LEASE_IS_BROKEN_RENEW, message));
        }
        self.expires_ms = self.seconds.map(|seconds| now_ms + u64::from(seconds) * 1000);
        Ok(())
    }

    fn change(&mut self, id: &str, proposed: &str, now_ms: u64) -> Result<()> {
        match self.state(now_ms) {
            LeaseState::Leased if self.is(id) || self.is(proposed) => {
                self.id = Some(proposed.to_owned());
                Ok(())
            }
            LeaseState::Leased => Err(mismatch()),
            LeaseState::Breaking if self.is(id) => Err(refused(
                codes::LEASE_IS_BREAKING_CHANGE,
                "the lease is being broken and cannot be changed",
            )),
            LeaseState::Breaking => Err(mismatch()),
            LeaseState::Available | LeaseState::Expired | LeaseState::Broken => {
                Err(refused(codes::LEASE_NOT_PRESENT_LEASE, "there is no lease"))
            }
        }
    }

    fn begin_to_break(&mut self, seconds: Option<u32>, now_ms: u64) -> Result<u32> {
        if seconds.is_some_and(|seconds| seconds > BREAK_SECONDS_MAX) {
            let message = "a lease takes at most 60 seconds to break";
            return Err(Error::invalid(codes::LEASE_DURATION_INVALID, message));
        }
        let asked = seconds.map(|seconds| u64::from(seconds) * 1000);
        let left = match self.state(now_ms) {
            LeaseState::Available => {
                return Err(refused(codes::LEASE_NOT_PRESENT_LEASE, "there is no lease to break"));
            }
            LeaseState::Leased => match self.expires_ms {
                Some(expires) => {
                    asked.map_or(expires - now_ms, |asked| asked.min(expires - now_ms))
                }
                None => asked.unwrap_or(0),
            },
            LeaseState::Breaking => {
                let left = self.broken_ms.unwrap_or(now_ms).saturating_sub(now_ms);
                asked.map_or(left, |asked| asked.min(left))
            }
            LeaseState::Broken | LeaseState::Expired => 0,
        };
        self.broken_ms = Some(now_ms + left);
        Ok(u32::try_from(left.div_ceil(1000)).unwrap_or(BREAK_SECONDS_MAX))
    }

    /// Whether a write may go ahead that brings this lease id or none.
    pub fn check_write(&self, given: Option<&str>, now_ms: u64, whose: Leased) -> Result<()> {
        match (given, self.is_locked(now_ms)) {
            (None, false) => Ok(()),
            (None, true) => {
                let message = "there is a lease, and the request does not have its id";
                Err(Error::precondition(codes::LEASE_ID_MISSING, message))
            }
            (Some(_), _) => self.check_read(given, now_ms, whose),
        }
    }

    /// Whether a read may go ahead: only an id that is given must be right.
    pub fn check_read(&self, given: Option<&str>, now_ms: u64, whose: Leased) -> Result<()> {
        let Some(given) = given else { return Ok(()) };
        let (mismatch, absent) = match whose {
            Leased::Blob => (codes::LEASE_ID_MISMATCH_BLOB, codes::LEASE_NOT_PRESENT_BLOB),
            Leased::Container => {
                (codes::LEASE_ID_MISMATCH_CONTAINER, codes::LEASE_NOT_PRESENT_CONTAINER)
            }
        };
        match self.state(now_ms) {
            LeaseState::Leased | LeaseState::Breaking if self.is(given) => Ok(()),
            LeaseState::Leased | LeaseState::Breaking => {
                Err(Error::precondition(mismatch, "the lease has another id"))
            }
            LeaseState::Available => Err(Error::precondition(absent, "there is no lease")),
            LeaseState::Expired | LeaseState::Broken if self.is(given) => {
                Err(Error::precondition(codes::LEASE_LOST, "the lease has ended"))
            }
            LeaseState::Expired | LeaseState::Broken => {
                Err(Error::precondition(absent, "there is no lease with this id"))
            }
        }
    }

    /// After a write nobody can come back to a lease that had ended.
    pub(super) fn settle(&mut self, now_ms: u64) {
        if !self.is_locked(now_ms) {
            *self = Self::default();
        }
    }

    fn is(&self, id: &str) -> bool {
        self.id.as_deref().is_some_and(|own| own.eq_ignore_ascii_case(id))
    }

    pub(super) fn write(&self, to: &mut Writer) {
        to.text(self.id.as_deref().unwrap_or_default());
        to.number(self.seconds.map_or(0, u64::from));
        to.number(self.expires_ms.unwrap_or(0));
        to.number(self.broken_ms.unwrap_or(0));
    }

    pub(super) fn read(from: &mut Reader) -> Result<Self> {
        let id = from.text()?;
        if id.is_empty() {
            return Err(damaged());
        }
        let seconds = from.small()?;
        let (expires, broken) = (from.number()?, from.number()?);
        let some = |value: u64| (value > 0).then_some(value);
        Ok(Self {
            id: Some(id),
            seconds: (seconds > 0).then_some(seconds),
            expires_ms: some(expires),
            broken_ms: some(broken),
        })
    }
}

fn mismatch() -> Error {
    refused(codes::LEASE_ID_MISMATCH_LEASE, "the lease has another id")
}

/// A conflict with the lease as it is, which another request could resolve.
fn refused(code: &'static str, message: &str) -> Error {
    Error::new(Kind::Exists, code, message)
}

#[cfg(test)]
#[path = "lease_tests.rs"]
mod tests;
