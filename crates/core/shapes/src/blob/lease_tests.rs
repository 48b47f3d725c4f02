//! The rules of leases as tables: each row is a state, what is tried, and what comes of it.

use super::*;

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
    use codes::{
        LEASE_ALREADY_PRESENT as PRESENT, LEASE_ID_MISMATCH_LEASE as MISMATCH,
        LEASE_IS_BREAKING_ACQUIRE as ACQUIRES, LEASE_IS_BREAKING_CHANGE as CHANGES,
        LEASE_IS_BROKEN_RENEW as BROKE, LEASE_NOT_PRESENT_LEASE as ABSENT,
    };
    let stop = LeaseAction::Break { seconds: None };
    let states = [Available, Held, Breaking, Broken, Expired];
    type Outcome = std::result::Result<LeaseState, &'static str>;
    let table: [(LeaseAction, [Outcome; 5]); 12] = [
        (acquire("a"), [Ok(Held), Ok(Held), Err(ACQUIRES), Ok(Held), Ok(Held)]),
        (acquire("b"), [Ok(Held), Err(PRESENT), Err(PRESENT), Ok(Held), Ok(Held)]),
        (renew("a"), [Err(MISMATCH), Ok(Held), Err(BROKE), Err(BROKE), Ok(Held)]),
        (renew("b"), [Err(MISMATCH), Err(MISMATCH), Err(MISMATCH), Err(MISMATCH), Err(MISMATCH)]),
        (change("a", "b"), [Err(ABSENT), Ok(Held), Err(CHANGES), Err(ABSENT), Err(ABSENT)]),
        (change("b", "a"), [Err(ABSENT), Ok(Held), Err(MISMATCH), Err(ABSENT), Err(ABSENT)]),
        (change("b", "c"), [Err(ABSENT), Err(MISMATCH), Err(MISMATCH), Err(ABSENT), Err(ABSENT)]),
        (release("a"), [Err(MISMATCH), Ok(Available), Ok(Available), Ok(Available), Ok(Available)]),
        (release("b"), [Err(MISMATCH), Err(MISMATCH), Err(MISMATCH), Err(MISMATCH), Err(MISMATCH)]),
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
    let infinite = Lease { id: Some("a".into()), seconds: None, expires_ms: None, broken_ms: None };
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
    let (absent, lost) = (Some(codes::LEASE_NOT_PRESENT_BLOB), Some(codes::LEASE_LOST));
    let wrong = Some(codes::LEASE_ID_MISMATCH_BLOB);
    let missing = Some(codes::LEASE_ID_MISSING);
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
    assert_eq!(ended.act(&renew("a"), NOW).unwrap_err().code(), codes::LEASE_ID_MISMATCH_LEASE);
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
