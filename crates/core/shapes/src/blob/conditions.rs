//! Conditions of requests: ETags, times and tags, decided once for every operation.

use std::fmt;
use std::sync::Arc;

use lazuli_engine::{Error, Lsn, Result};

use super::BlobReason;
use super::lease::{Lease, Leased};
use super::record::BlobRecord;

/// Whether tags are those that a request asks for.
pub type TagTest = Arc<dyn Fn(&[(String, String)]) -> bool + Send + Sync>;

/// ETags of a condition. One that is none of ours matches nothing and is left out by the front.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Etags {
    /// The wildcard.
    Any,
    These(Vec<Lsn>),
}

/// What must hold before an operation. The default is that nothing must.
#[derive(Clone, Default)]
pub struct Conditions {
    pub if_match: Option<Etags>,
    pub if_none_match: Option<Etags>,
    /// In seconds since the Unix epoch, as all dates of conditions are.
    pub if_modified_since: Option<u64>,
    pub if_unmodified_since: Option<u64>,
    pub if_tags: Option<TagTest>,
    pub lease_id: Option<String>,
}

impl fmt::Debug for Conditions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Conditions")
            .field("if_match", &self.if_match)
            .field("if_none_match", &self.if_none_match)
            .field("if_modified_since", &self.if_modified_since)
            .field("if_unmodified_since", &self.if_unmodified_since)
            .field("if_tags", &self.if_tags.is_some())
            .field("lease_id", &self.lease_id)
            .finish()
    }
}

/// What conditions are about.
pub(super) struct Facts<'a> {
    pub(super) changed: Lsn,
    /// When that was, in seconds since the Unix epoch.
    pub(super) modified_s: u64,
    pub(super) tags: &'a [(String, String)],
}

impl Conditions {
    /// Only a lease id.
    pub fn leased(lease_id: Option<String>) -> Self {
        Self { lease_id, ..Self::default() }
    }

    /// Whether a write may go ahead on what is there, or is not.
    pub(super) fn check_write(
        &self,
        found: Option<Facts<'_>>,
        lease: Option<&Lease>,
        now_ms: u64,
    ) -> Result<()> {
        let (Some(facts), Some(lease)) = (found, lease) else { return self.check_absent() };
        lease.check_write(self.lease_id.as_deref(), now_ms, Leased::Blob)?;
        self.check_must(&facts)?;
        if self.if_none_match == Some(Etags::Any) {
            return Err(Error::exists(BlobReason::BlobExists, "there is a blob of this name"));
        }
        if self.is_known_already(&facts) {
            return Err(not_met());
        }
        Ok(())
    }

    /// Whether a read may go ahead; `not-modified` where the caller's copy is still good.
    pub(super) fn check_read(&self, facts: &Facts<'_>, lease: &Lease, now_ms: u64) -> Result<()> {
        lease.check_read(self.lease_id.as_deref(), now_ms, Leased::Blob)?;
        if self.if_none_match == Some(Etags::Any) {
            let message = "a read cannot ask that there be nothing";
            return Err(Error::invalid(BlobReason::UnsatisfiableCondition, message));
        }
        self.check_must(facts)?;
        if self.is_known_already(facts) {
            return Err(Error::precondition(BlobReason::NotModified, "it has not changed"));
        }
        Ok(())
    }

    /// Nothing can be unmodified or have an ETag where there is nothing, nor can it be leased.
    fn check_absent(&self) -> Result<()> {
        if self.lease_id.is_some() {
            let message = "there is no blob, and so no lease";
            return Err(Error::precondition(BlobReason::LeaseNotPresentBlob, message));
        }
        let fails = self.if_match.is_some() || self.if_unmodified_since.is_some();
        let fails = fails || self.if_tags.as_ref().is_some_and(|test| !test(&[]));
        if fails { Err(not_met()) } else { Ok(()) }
    }

    /// If-Match, If-Unmodified-Since and tags: each must hold.
    fn check_must(&self, facts: &Facts<'_>) -> Result<()> {
        let matches = match &self.if_match {
            None | Some(Etags::Any) => true,
            Some(Etags::These(etags)) => etags.contains(&facts.changed),
        };
        let unmodified = self.if_unmodified_since.is_none_or(|since| facts.seconds() <= since);
        let tagged = self.if_tags.as_ref().is_none_or(|test| test(facts.tags));
        if matches && unmodified && tagged { Ok(()) } else { Err(not_met()) }
    }

    /// If-None-Match and If-Modified-Since: it is enough that one of those that are given holds.
    fn is_known_already(&self, facts: &Facts<'_>) -> bool {
        let none_match = self.if_none_match.as_ref().map(|etags| match etags {
            Etags::Any => false,
            Etags::These(etags) => !etags.contains(&facts.changed),
        });
        let modified = self.if_modified_since.map(|since| facts.seconds() > since);
        match (none_match, modified) {
            (None, None) => false,
            (none_match, modified) => !(none_match == Some(true) || modified == Some(true)),
        }
    }
}

impl<'a> Facts<'a> {
    pub(super) fn of(record: &'a BlobRecord) -> Self {
        let (changed, modified_s) = (record.changed, record.modified_s());
        Self { changed, modified_s, tags: &record.tags }
    }

    fn seconds(&self) -> u64 {
        self.modified_s
    }
}

fn not_met() -> Error {
    Error::precondition(BlobReason::ConditionNotMet, "a condition of the request does not hold")
}

#[cfg(test)]
mod tests {
    use super::*;

    // Conditions as a table: what a request asks for, and what a read and a write make of it.

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
        let (not_met, same) =
            (Some(BlobReason::ConditionNotMet.code()), Some(BlobReason::NotModified.code()));
        let unsatisfiable = Some(BlobReason::UnsatisfiableCondition.code());
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
            (wildcard, unsatisfiable, Some(BlobReason::BlobExists.code()), None),
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
        let lease =
            Lease { id: Some("a".into()), seconds: None, expires_ms: None, broken_ms: None };
        let facts = || Facts { changed: changed(), modified_s: SECONDS, tags: &[] };
        let conditions = Conditions { if_match: these(&[]), ..Conditions::default() };
        let outcome = conditions.check_write(Some(facts()), Some(&lease), NOW);
        assert_eq!(code(outcome), Some(BlobReason::LeaseIdMissing.code()));
        let conditions = Conditions { lease_id: Some("b".into()), ..conditions };
        let outcome = conditions.check_read(&facts(), &lease, NOW);
        assert_eq!(code(outcome), Some(BlobReason::LeaseIdMismatchBlob.code()));
        let outcome = conditions.check_write(None, None, NOW);
        assert_eq!(code(outcome), Some(BlobReason::LeaseNotPresentBlob.code()));
    }
}
