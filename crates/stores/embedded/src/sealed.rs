//! Memtables that were sealed, kept until the engine has no more use for them.
//!
//! The engine lets go of a memtable under the lock that all readers and the committer take, and mostly in the committer's
//! own thread. Freeing what it holds, tens of thousands of entries one by one, takes many milliseconds. Whoever has a
//! pointer of its own to it is the last to let go, where nobody waits for it.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

/// How often it is looked whether one is not in use any more, while nothing is written.
const LOOK: Duration = Duration::from_millis(100);
/// How many such looks there are at most until the next one is sealed: for as long the engine may keep it, and a store in
/// which nothing is written is to be quiet.
const LOOKS_MAX: u32 = 50;

#[derive(Default)]
pub(crate) struct Sealed {
    kept: Vec<Arc<dyn Any + Send + Sync>>,
    looks_left: u32,
}

impl Sealed {
    pub(crate) fn keep(&mut self, memtable: Arc<dyn Any + Send + Sync>) {
        self.kept.push(memtable);
        self.looks_left = LOOKS_MAX;
    }

    /// When to look again, whether or not anything is written until then.
    pub(crate) fn look_after(&self) -> Option<Duration> {
        (!self.kept.is_empty() && self.looks_left > 0).then_some(LOOK)
    }

    /// Nothing was written since the last look.
    pub(crate) fn note_quiet(&mut self) {
        self.looks_left = self.looks_left.saturating_sub(1);
    }

    /// Frees those that nobody else has.
    pub(crate) fn free_unused(&mut self) {
        let is_unused = |memtable: &mut Arc<_>| Arc::strong_count(memtable) == 1;
        let unused: Vec<_> = self.kept.extract_if(.., is_unused).collect();
        if !unused.is_empty() {
            // It is rare, once in many megabytes. Without a thread it happens here.
            let _ = std::thread::Builder::new()
                .name("lazuli:free".to_owned())
                .spawn(move || drop(unused));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Sender, channel};

    use super::*;

    /// Tells on which thread it is dropped.
    struct Told(Sender<Option<String>>);

    impl Drop for Told {
        fn drop(&mut self) {
            self.0.send(std::thread::current().name().map(str::to_owned)).unwrap();
        }
    }

    #[test]
    fn what_is_in_use_is_kept_and_what_is_not_is_freed_elsewhere() {
        let (tell, told) = channel();
        let (one, two) = (Arc::new(Told(tell.clone())), Arc::new(Told(tell)));
        let mut sealed = Sealed::default();
        sealed.keep(one.clone());
        sealed.keep(two.clone());
        sealed.free_unused();
        assert!(told.try_recv().is_err());
        drop(one);
        assert!(told.try_recv().is_err(), "it is not the last to let go");
        sealed.free_unused();
        assert_eq!(told.recv().unwrap().as_deref(), Some("lazuli:free"));
        assert!(sealed.look_after().is_some());
        drop(two);
        sealed.free_unused();
        assert_eq!(told.recv().unwrap().as_deref(), Some("lazuli:free"));
        assert_eq!(sealed.look_after(), None);
    }

    #[test]
    fn what_stays_in_use_is_not_looked_at_for_ever_but_kept() {
        let (tell, told) = channel();
        let memtable = Arc::new(Told(tell));
        let mut sealed = Sealed::default();
        sealed.keep(memtable.clone());
        let mut looks = 0;
        while sealed.look_after().is_some() {
            sealed.free_unused();
            sealed.note_quiet();
            looks += 1;
        }
        assert_eq!(looks, LOOKS_MAX);
        drop(memtable);
        sealed.free_unused();
        assert_eq!(told.recv().unwrap().as_deref(), Some("lazuli:free"));
    }
}
