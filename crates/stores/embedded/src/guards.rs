//! What the committer knows about guards, so that neither it nor the callers of `begin` and `snapshot` have to read them each
//! time. It can know because nothing but the committer writes.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use lazuli_store::{Result, Write};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::error::from_engine;

/// How many guards are remembered. All are forgotten when there are more.
pub(crate) const KNOWN_MAX: usize = 4 * 1024;
/// How long a guard that was learned may stay unknown to readers: showing all of them anew takes time.
const SHOW_MS_LEAST: u64 = 50;

/// Hashes keys of the local map. They are not chosen by clients, so a fast hash is enough.
#[derive(Clone, Copy, Default)]
pub(crate) struct KeyHasher(u64);

pub(crate) type ByKey = BuildHasherDefault<KeyHasher>;

impl Hasher for KeyHasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0 = xxh3_64_with_seed(bytes, self.0);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[derive(Default)]
pub(crate) struct Guards {
    /// Whether each recently used guard exists, with the effects of the current group.
    known: HashMap<Bytes, bool, ByKey>,
    /// The lowest and the highest of those keys. Guards are close together and almost every write is elsewhere, which
    /// two comparisons detect faster than a lookup in the map.
    span: Option<(Bytes, Bytes)>,
    /// The existing ones, as last published to readers.
    shown: Arc<HashSet<Bytes, ByKey>>,
    shown_at: Option<Instant>,
    learned: bool,
    /// A guard that readers believe to exist is gone: it must be published at once.
    lost: bool,
}

impl Guards {
    /// Loads these guards into the cache. Must be called before any effect of the group is applied.
    pub(crate) fn learn<'a>(
        &mut self,
        guards: impl Iterator<Item = &'a Bytes>,
        exists: impl Fn(&[u8]) -> fjall::Result<bool>,
    ) -> Result<()> {
        if self.known.len() > KNOWN_MAX {
            self.known.clear();
            self.span = None;
            self.lost = true;
        }
        for guard in guards {
            if !self.known.contains_key(guard) {
                let exists = exists(guard).map_err(|error| from_engine(&error))?;
                self.known.insert(guard.clone(), exists);
                self.widen(guard);
                self.learned = true;
            }
        }
        Ok(())
    }

    fn widen(&mut self, guard: &Bytes) {
        let (low, high) = self.span.get_or_insert_with(|| (guard.clone(), guard.clone()));
        if guard < low {
            *low = guard.clone();
        } else if guard > high {
            *high = guard.clone();
        }
    }

    fn may_know(&self, key: &Bytes) -> bool {
        self.span.as_ref().is_some_and(|(low, high)| low <= key && key <= high)
    }

    pub(crate) fn exists(&self, guard: &Bytes) -> bool {
        self.known.get(guard) == Some(&true)
    }

    /// Applies the effect of a write of the group.
    pub(crate) fn note(&mut self, write: &Write) {
        if !self.may_know(write.key()) {
            return;
        }
        if let Some(exists) = self.known.get_mut(write.key()) {
            *exists = matches!(write, Write::Put(..));
            if *exists {
                self.learned = true;
            } else {
                self.lost = true;
            }
        }
    }

    /// Something was written past this cache, and nothing deleted: missing guards may exist now.
    pub(crate) fn forget_missing(&mut self) {
        self.known.retain(|_, exists| *exists);
    }

    /// The existing guards after the group is written. Some may be missing, but none is stale.
    pub(crate) fn show(&mut self) -> Arc<HashSet<Bytes, ByKey>> {
        let least = Duration::from_millis(SHOW_MS_LEAST);
        let due = self.shown_at.is_none_or(|shown_at| shown_at.elapsed() >= least);
        if self.lost || (self.learned && due) {
            let existing = self.known.iter().filter(|(_, exists)| **exists);
            self.shown = Arc::new(existing.map(|(guard, _)| guard.clone()).collect());
            self.shown_at = Some(Instant::now());
            (self.learned, self.lost) = (false, false);
        }
        self.shown.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guard_that_is_lost_is_gone_from_what_readers_are_shown() {
        let mut guards = Guards::default();
        let (here, gone) = (Bytes::from("here"), Bytes::from("gone"));
        guards.learn([&here, &gone].into_iter(), |guard| Ok(guard == b"here")).unwrap();
        assert!(guards.exists(&here) && !guards.exists(&gone));
        assert_eq!(guards.show().iter().collect::<Vec<_>>(), [&here]);
        guards.note(&Write::Put(gone.clone(), Bytes::new()));
        guards.note(&Write::Delete(here.clone()));
        assert_eq!(guards.show().iter().collect::<Vec<_>>(), [&gone]);
    }

    #[test]
    fn what_was_missing_is_learned_again_once_forgotten() {
        let mut guards = Guards::default();
        let (here, gone) = (Bytes::from("here"), Bytes::from("gone"));
        guards.learn([&here, &gone].into_iter(), |guard| Ok(guard == b"here")).unwrap();
        guards.forget_missing();
        guards.learn([&here, &gone].into_iter(), |guard| Ok(guard == b"gone")).unwrap();
        assert!(guards.exists(&here) && guards.exists(&gone));
    }

    #[test]
    fn what_is_forgotten_is_learned_again() {
        let mut guards = Guards::default();
        let many: Vec<Bytes> = (0..=KNOWN_MAX).map(|n| n.to_string().into()).collect();
        guards.learn(many.iter(), |_| Ok(true)).unwrap();
        assert_eq!(guards.show().len(), KNOWN_MAX + 1);
        guards.learn(many[..1].iter(), |_| Ok(false)).unwrap();
        assert!(guards.show().is_empty());
    }
}
