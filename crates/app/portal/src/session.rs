//! Sessions of logged-in visitors, and the CSRF token that every change must repeat.
//!
//! They are kept in memory, so a restart ends them all. Their number is bounded: the least recently used one is evicted. Ids
//! and CSRF tokens are 32 random bytes each.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The most sessions at the same time.
const SESSIONS_MAX: usize = 64;
/// How long a session lasts without a request.
const IDLE_MAX: Duration = Duration::from_secs(60 * 60);
/// How long it lasts in any case.
const AGE_MAX: Duration = Duration::from_secs(12 * 60 * 60);
/// Random bytes of an id, and of the secret of a session.
const ID_BYTES: usize = 32;

/// A logged-in visitor.
#[derive(Clone, Debug)]
pub(crate) struct Session {
    pub(crate) id: String,
    /// The CSRF token, which every form repeats.
    pub(crate) csrf: String,
}

impl Session {
    /// Whether a form repeats the CSRF token of this session, compared in constant time.
    pub(crate) fn vouches_for(&self, given: &str) -> bool {
        let (mine, given) = (self.csrf.as_bytes(), given.as_bytes());
        let differing = mine.iter().zip(given).fold(0, |differing, (a, b)| differing | (a ^ b));
        mine.len() == given.len() && std::hint::black_box(differing) == 0
    }
}

struct Kept {
    session: Session,
    begun: Instant,
    used: Instant,
    /// What the next page shows.
    notice: Option<Notice>,
}

/// The outcome of a change, shown once on the next page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Notice {
    pub(crate) text: String,
    pub(crate) good: bool,
}

#[derive(Default)]
pub(crate) struct Sessions(Mutex<HashMap<String, Kept>>);

impl Sessions {
    /// Begins a session. None if the system gives no random bytes.
    pub(crate) fn begin(&self, now: Instant) -> Option<Session> {
        let session = Session { id: random()?, csrf: random()? };
        let mut kept = self.lock(now);
        if kept.len() >= SESSIONS_MAX {
            let oldest = kept.values().min_by_key(|one| one.used).map(|one| one.session.id.clone());
            oldest.and_then(|id| kept.remove(&id));
        }
        let one = Kept { session: session.clone(), begun: now, used: now, notice: None };
        kept.insert(session.id.clone(), one);
        Some(session)
    }

    /// The session of this id, used now.
    pub(crate) fn find(&self, id: &str, now: Instant) -> Option<Session> {
        let mut kept = self.lock(now);
        let one = kept.get_mut(id)?;
        one.used = now;
        Some(one.session.clone())
    }

    /// Whether the session still exists. This does not count as a use of it.
    pub(crate) fn lasts(&self, id: &str, now: Instant) -> bool {
        self.lock(now).contains_key(id)
    }

    pub(crate) fn end(&self, id: &str, now: Instant) {
        self.lock(now).remove(id);
    }

    pub(crate) fn leave_notice(&self, id: &str, notice: Notice, now: Instant) {
        if let Some(one) = self.lock(now).get_mut(id) {
            one.notice = Some(notice);
        }
    }

    pub(crate) fn take_notice(&self, id: &str, now: Instant) -> Option<Notice> {
        self.lock(now).get_mut(id)?.notice.take()
    }

    /// All sessions that are still good.
    fn lock(&self, now: Instant) -> MutexGuard<'_, HashMap<String, Kept>> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|_, one| {
            let idle = now.saturating_duration_since(one.used);
            let age = now.saturating_duration_since(one.begun);
            idle < IDLE_MAX && age < AGE_MAX
        });
        kept
    }
}

fn random() -> Option<String> {
    let mut bytes = [0; ID_BYTES];
    getrandom::fill(&mut bytes).ok()?;
    Some(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_ends_when_it_is_idle_or_old_or_told_to() {
        let (sessions, start) = (Sessions::default(), Instant::now());
        let one = sessions.begin(start).unwrap();
        assert!(sessions.find(&one.id, start + IDLE_MAX / 2).is_some());
        assert!(sessions.find(&one.id, start + IDLE_MAX).is_some(), "it was used in between");
        assert!(sessions.find(&one.id, start + IDLE_MAX * 2).is_none());
        let two = sessions.begin(start).unwrap();
        let mut now = start;
        while now < start + AGE_MAX {
            assert!(sessions.find(&two.id, now).is_some());
            now += IDLE_MAX / 2;
        }
        assert!(sessions.find(&two.id, now).is_none());
        let three = sessions.begin(start).unwrap();
        sessions.end(&three.id, start);
        assert!(sessions.find(&three.id, start).is_none());
    }

    #[test]
    fn the_session_unused_for_longest_makes_room() {
        let (sessions, start) = (Sessions::default(), Instant::now());
        let begin = |second| sessions.begin(start + Duration::from_secs(second)).unwrap();
        let all: Vec<Session> = (0..SESSIONS_MAX as u64).map(begin).collect();
        let later = start + Duration::from_secs(100);
        assert!(sessions.find(&all[0].id, later).is_some());
        sessions.begin(later).unwrap();
        assert!(!sessions.lasts(&all[1].id, later));
        assert!(sessions.lasts(&all[0].id, later) && sessions.lasts(&all[2].id, later));
    }

    #[test]
    fn only_the_secret_of_the_session_vouches() {
        let session = Sessions::default().begin(Instant::now()).unwrap();
        assert!(session.vouches_for(&session.csrf.clone()));
        for other in ["", "0", &session.csrf[1..], &format!("{}0", session.csrf), &session.id] {
            assert!(!session.vouches_for(other), "{other}");
        }
    }

    #[test]
    fn a_notice_is_told_once() {
        let (sessions, now) = (Sessions::default(), Instant::now());
        let id = sessions.begin(now).unwrap().id;
        let notice = Notice { text: "split".to_owned(), good: true };
        sessions.leave_notice(&id, notice.clone(), now);
        assert_eq!(sessions.take_notice(&id, now), Some(notice));
        assert_eq!(sessions.take_notice(&id, now), None);
    }
}
