//! Conditions as a table: what a request asks for, and what a read and a write make of it.

use super::*;

const NOW: u64 = 2_000_000;
const SECONDS: u64 = 1_000;

fn changed() -> Lsn {
    Lsn::at_ms(SECONDS * 1000 + 500)
}

fn these(etags: &[Lsn]) -> Option<Etags> {
    Some(Etags::These(etags.to_vec()))
}

fn code(outcome: Result<()>) -> Option<&'static str> {
    outcome.err().map(|error| error.code())
}

/// What a request asks for; what a read says, a write, and a write where there is nothing.
type Row = (Conditions, Option<&'static str>, Option<&'static str>, Option<&'static str>);

fn with(change: impl Fn(&mut Conditions)) -> Conditions {
    let mut conditions = Conditions::default();
    change(&mut conditions);
    conditions
}

fn has(value: &'static str) -> Option<TagTest> {
    Some(Arc::new(move |tags| tags.iter().any(|(_, it)| it == value)))
}

fn table() -> Vec<Row> {
    let other = Lsn(changed().0 + 1);
    let (not_met, same) = (Some(codes::CONDITION_NOT_MET), Some(codes::NOT_MODIFIED));
    let unsatisfiable = Some(codes::UNSATISFIABLE_CONDITION);
    let both = |etag, since| {
        with(|it| {
            it.if_none_match = these(&[etag]);
            it.if_modified_since = Some(since);
        })
    };
    let first_must = with(|it| {
        it.if_match = these(&[other]);
        it.if_none_match = these(&[changed()]);
    });
    let wildcard = with(|it| it.if_none_match = Some(Etags::Any));
    vec![
        (Conditions::default(), None, None, None),
        (with(|it| it.if_match = Some(Etags::Any)), None, None, not_met),
        (with(|it| it.if_match = these(&[changed()])), None, None, not_met),
        (with(|it| it.if_match = these(&[other, changed()])), None, None, not_met),
        (with(|it| it.if_match = these(&[other])), not_met, not_met, not_met),
        (with(|it| it.if_match = these(&[])), not_met, not_met, not_met),
        (wildcard, unsatisfiable, Some(codes::BLOB_EXISTS), None),
        (with(|it| it.if_none_match = these(&[changed()])), same, not_met, None),
        (with(|it| it.if_none_match = these(&[other, changed()])), same, not_met, None),
        (with(|it| it.if_none_match = these(&[other])), None, None, None),
        (with(|it| it.if_modified_since = Some(SECONDS - 1)), None, None, None),
        (with(|it| it.if_modified_since = Some(SECONDS)), same, not_met, None),
        (with(|it| it.if_unmodified_since = Some(SECONDS)), None, None, not_met),
        (with(|it| it.if_unmodified_since = Some(SECONDS - 1)), not_met, not_met, not_met),
        (with(|it| it.if_tags = has("a")), None, None, not_met),
        (with(|it| it.if_tags = has("b")), not_met, not_met, not_met),
        // Either of the two is enough, also for a write.
        (both(changed(), SECONDS - 1), None, None, None),
        (both(other, SECONDS), None, None, None),
        (both(changed(), SECONDS), same, not_met, None),
        // What must hold is looked at before what makes a read needless.
        (first_must, not_met, not_met, not_met),
    ]
}

#[test]
fn every_condition_on_a_read_on_a_write_and_on_nothing() {
    let tags = [("kind".to_owned(), "a".to_owned())];
    for (conditions, read, write, absent) in table() {
        let facts = || Facts { changed: changed(), modified_s: SECONDS, tags: &tags };
        let lease = Lease::default();
        assert_eq!(code(conditions.check_read(&facts(), &lease, NOW)), read, "{conditions:?}");
        let outcome = conditions.check_write(Some(facts()), Some(&lease), NOW);
        assert_eq!(code(outcome), write, "{conditions:?}");
        assert_eq!(code(conditions.check_write(None, None, NOW)), absent, "{conditions:?}");
    }
}

#[test]
fn a_lease_is_looked_at_before_the_conditions() {
    let lease = Lease { id: Some("a".into()), seconds: None, expires_ms: None, broken_ms: None };
    let facts = || Facts { changed: changed(), modified_s: SECONDS, tags: &[] };
    let conditions = Conditions { if_match: these(&[]), ..Conditions::default() };
    let outcome = conditions.check_write(Some(facts()), Some(&lease), NOW);
    assert_eq!(code(outcome), Some(codes::LEASE_ID_MISSING));
    let conditions = Conditions { lease_id: Some("b".into()), ..conditions };
    let outcome = conditions.check_read(&facts(), &lease, NOW);
    assert_eq!(code(outcome), Some(codes::LEASE_ID_MISMATCH_BLOB));
    let outcome = conditions.check_write(None, None, NOW);
    assert_eq!(code(outcome), Some(codes::LEASE_NOT_PRESENT_BLOB));
}
