//! Leases of blobs and containers: a lock with an id, for 15 to 60 seconds or for good, with the service's rules for who
//! may do what in which state. Time is given in, so that a state is a function of the stored lease and the moment.

use lazuli_engine::{Error, Kind, Result};

use super::BlobReason;
use super::rows::{Reader, Writer, damaged};

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
    /// When it is broken, once a request has begun to break it.
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
            return Err(Error::invalid(BlobReason::LeaseDurationInvalid, message));
        }
        match self.state(now_ms) {
            LeaseState::Leased if !self.is(id) => {
                Err(refused(BlobReason::LeaseAlreadyPresent, "there is a lease with another id"))
            }
            LeaseState::Breaking if self.is(id) => Err(refused(
                BlobReason::LeaseIsBreakingAcquire,
                "the lease is being broken and cannot be acquired until it is",
            )),
            LeaseState::Breaking => {
                Err(refused(BlobReason::LeaseAlreadyPresent, "there is a lease with another id"))
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
            return Err(refused(BlobReason::LeaseIsBrokenRenew, message));
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
                BlobReason::LeaseIsBreakingChange,
                "the lease is being broken and cannot be changed",
            )),
            LeaseState::Breaking => Err(mismatch()),
            LeaseState::Available | LeaseState::Expired | LeaseState::Broken => {
                Err(refused(BlobReason::LeaseNotPresentLease, "there is no lease"))
            }
        }
    }

    fn begin_to_break(&mut self, seconds: Option<u32>, now_ms: u64) -> Result<u32> {
        if seconds.is_some_and(|seconds| seconds > BREAK_SECONDS_MAX) {
            let message = "a lease takes at most 60 seconds to break";
            return Err(Error::invalid(BlobReason::LeaseDurationInvalid, message));
        }
        let asked = seconds.map(|seconds| u64::from(seconds) * 1000);
        let left = match self.state(now_ms) {
            LeaseState::Available => {
                return Err(refused(
                    BlobReason::LeaseNotPresentLease,
                    "there is no lease to break",
                ));
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
                Err(Error::precondition(BlobReason::LeaseIdMissing, message))
            }
            (Some(_), _) => self.check_read(given, now_ms, whose),
        }
    }

    /// Whether a read may go ahead: only an id that is given must be right.
    pub fn check_read(&self, given: Option<&str>, now_ms: u64, whose: Leased) -> Result<()> {
        let Some(given) = given else { return Ok(()) };
        let (mismatch, absent) = match whose {
            Leased::Blob => (BlobReason::LeaseIdMismatchBlob, BlobReason::LeaseNotPresentBlob),
            Leased::Container => {
                (BlobReason::LeaseIdMismatchContainer, BlobReason::LeaseNotPresentContainer)
            }
        };
        match self.state(now_ms) {
            LeaseState::Leased | LeaseState::Breaking if self.is(given) => Ok(()),
            LeaseState::Leased | LeaseState::Breaking => {
                Err(Error::precondition(mismatch, "the lease has another id"))
            }
            LeaseState::Available => Err(Error::precondition(absent, "there is no lease")),
            LeaseState::Expired | LeaseState::Broken if self.is(given) => {
                Err(Error::precondition(BlobReason::LeaseLost, "the lease has ended"))
            }
            LeaseState::Expired | LeaseState::Broken => {
                Err(Error::precondition(absent, "there is no lease with this id"))
            }
        }
    }

    /// After a write, an expired lease cannot be renewed any more.
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
    refused(BlobReason::LeaseIdMismatchLease, "the lease has another id")
}

/// A conflict with the lease as it is, which another request could resolve.
fn refused(reason: BlobReason, message: &str) -> Error {
    Error::new(Kind::Exists, reason, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    // The rules of leases as tables: each row is a state, what is tried, and what comes of it.

    const NOW: u64 = 1_000_000;
    use LeaseState::{Available, Breaking, Broken, Expired, Leased as Held};

    fn lease(state: LeaseState) -> Lease {
        let of = |expires_ms, broken_ms| Lease {
            id: Some("a".into()),
            seconds: Some(30),
            expires_ms: Some(expires_ms),
            broken_ms,
        };
        let lease = match state {
            Available => Lease::default(),
            Held => of(NOW + 20_000, None),
            Expired => of(NOW - 1, None),
            Breaking => of(NOW + 20_000, Some(NOW + 10_000)),
            Broken => of(NOW + 20_000, Some(NOW)),
        };
        assert_eq!(lease.state(NOW), state);
        lease
    }

    fn acquire(id: &str) -> LeaseAction {
        LeaseAction::Acquire { id: id.into(), seconds: Some(15) }
    }

    fn renew(id: &str) -> LeaseAction {
        LeaseAction::Renew { id: id.into() }
    }

    fn change(id: &str, proposed: &str) -> LeaseAction {
        LeaseAction::Change { id: id.into(), proposed: proposed.into() }
    }

    fn release(id: &str) -> LeaseAction {
        LeaseAction::Release { id: id.into() }
    }

    #[test]
    fn every_action_in_every_state_does_what_the_service_does() {
        const PRESENT: &str = BlobReason::LeaseAlreadyPresent.code();
        const MISMATCH: &str = BlobReason::LeaseIdMismatchLease.code();
        const ACQUIRES: &str = BlobReason::LeaseIsBreakingAcquire.code();
        const CHANGES: &str = BlobReason::LeaseIsBreakingChange.code();
        const BROKE: &str = BlobReason::LeaseIsBrokenRenew.code();
        const ABSENT: &str = BlobReason::LeaseNotPresentLease.code();
        let stop = LeaseAction::Break { seconds: None };
        let states = [Available, Held, Breaking, Broken, Expired];
        type Outcome = std::result::Result<LeaseState, &'static str>;
        let table: [(LeaseAction, [Outcome; 5]); 12] = [
            (acquire("a"), [Ok(Held), Ok(Held), Err(ACQUIRES), Ok(Held), Ok(Held)]),
            (acquire("b"), [Ok(Held), Err(PRESENT), Err(PRESENT), Ok(Held), Ok(Held)]),
            (renew("a"), [Err(MISMATCH), Ok(Held), Err(BROKE), Err(BROKE), Ok(Held)]),
            (
                renew("b"),
                [Err(MISMATCH), Err(MISMATCH), Err(MISMATCH), Err(MISMATCH), Err(MISMATCH)],
            ),
            (change("a", "b"), [Err(ABSENT), Ok(Held), Err(CHANGES), Err(ABSENT), Err(ABSENT)]),
            (change("b", "a"), [Err(ABSENT), Ok(Held), Err(MISMATCH), Err(ABSENT), Err(ABSENT)]),
            (
                change("b", "c"),
                [Err(ABSENT), Err(MISMATCH), Err(MISMATCH), Err(ABSENT), Err(ABSENT)],
            ),
            (
                release("a"),
                [Err(MISMATCH), Ok(Available), Ok(Available), Ok(Available), Ok(Available)],
            ),
            (
                release("b"),
                [Err(MISMATCH), Err(MISMATCH), Err(MISMATCH), Err(MISMATCH), Err(MISMATCH)],
            ),
            (stop, [Err(ABSENT), Ok(Breaking), Ok(Breaking), Ok(Broken), Ok(Broken)]),
            (
                LeaseAction::Break { seconds: Some(0) },
                [Err(ABSENT), Ok(Broken), Ok(Broken), Ok(Broken), Ok(Broken)],
            ),
            (
                LeaseAction::Break { seconds: Some(60) },
                [Err(ABSENT), Ok(Breaking), Ok(Breaking), Ok(Broken), Ok(Broken)],
            ),
        ];
        for (action, outcomes) in table {
            for (state, expected) in states.into_iter().zip(outcomes) {
                let mut lease = lease(state);
                let before = lease.clone();
                let outcome = lease.act(&action, NOW);
                if outcome.is_err() {
                    assert_eq!(lease, before, "a refusal changes nothing");
                }
                let outcome = outcome.map(|_| lease.state(NOW)).map_err(|error| error.code());
                assert_eq!(outcome, expected, "{action:?} when {state:?}");
            }
        }
    }

    #[test]
    fn breaking_takes_the_time_asked_for_but_no_longer_than_the_lease() {
        let infinite =
            Lease { id: Some("a".into()), seconds: None, expires_ms: None, broken_ms: None };
        for (lease, asked, seconds) in [
            (lease(Held), None, 20),
            (lease(Held), Some(5), 5),
            (lease(Held), Some(60), 20),
            (lease(Breaking), None, 10),
            (lease(Breaking), Some(4), 4),
            (lease(Breaking), Some(60), 10),
            (lease(Broken), Some(60), 0),
            (lease(Expired), Some(60), 0),
            (infinite.clone(), None, 0),
            (infinite, Some(60), 60),
        ] {
            let mut broken = lease.clone();
            let left = broken.act(&LeaseAction::Break { seconds: asked }, NOW).unwrap();
            assert_eq!(left, seconds, "{lease:?} asked {asked:?}");
            assert!(!broken.is_locked(NOW + u64::from(seconds) * 1000));
        }
    }

    #[test]
    fn writes_and_reads_need_the_right_id_where_there_is_a_lease() {
        let states = [Available, Held, Breaking, Broken, Expired];
        let (absent, lost) =
            (Some(BlobReason::LeaseNotPresentBlob.code()), Some(BlobReason::LeaseLost.code()));
        let wrong = Some(BlobReason::LeaseIdMismatchBlob.code());
        let missing = Some(BlobReason::LeaseIdMissing.code());
        let writes = [
            (None, [None, missing, missing, None, None]),
            (Some("a"), [absent, None, None, lost, lost]),
            (Some("b"), [absent, wrong, wrong, absent, absent]),
        ];
        for (given, outcomes) in writes {
            for (state, expected) in states.into_iter().zip(outcomes) {
                let lease = lease(state);
                let write = lease.check_write(given, NOW, Leased::Blob).err().map(|it| it.code());
                assert_eq!(write, expected, "write with {given:?} when {state:?}");
                let read = lease.check_read(given, NOW, Leased::Blob).err().map(|it| it.code());
                let expected = if given.is_none() { None } else { expected };
                assert_eq!(read, expected, "read with {given:?} when {state:?}");
            }
        }
    }

    #[test]
    fn a_lease_lasts_fifteen_to_sixty_seconds_or_for_good() {
        for (seconds, fine) in
            [(Some(14), false), (Some(15), true), (Some(60), true), (Some(61), false)]
        {
            let action = LeaseAction::Acquire { id: "a".into(), seconds };
            assert_eq!(Lease::default().act(&action, NOW).is_ok(), fine, "{seconds:?}");
        }
        let mut lease = Lease::default();
        lease.act(&LeaseAction::Acquire { id: "a".into(), seconds: None }, NOW).unwrap();
        assert_eq!(lease.state(u64::MAX), Held);
    }

    #[test]
    fn a_lease_that_ended_cannot_be_renewed_after_a_write() {
        let mut ended = lease(Expired);
        ended.settle(NOW);
        assert_eq!(
            ended.act(&renew("a"), NOW).unwrap_err().code(),
            BlobReason::LeaseIdMismatchLease.code()
        );
        let mut held = lease(Held);
        held.settle(NOW);
        assert_eq!(held, lease(Held));
    }

    #[test]
    fn a_lease_survives_its_row() {
        for state in [Held, Expired, Breaking, Broken] {
            let mut writer = Writer::new();
            lease(state).write(&mut writer);
            let again = Lease::read(&mut Reader::new(writer.finish())).unwrap();
            assert_eq!(again, lease(state));
        }
    }
}
