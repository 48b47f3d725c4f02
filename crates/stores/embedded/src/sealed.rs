//! Sealed memtables, kept until the engine no longer uses them.
//!
//! The engine drops a memtable under the lock that all readers and the committer take, and mostly in the
//! committer's own thread. Freeing its tens of thousands of entries takes many milliseconds. A reference of our own
//! makes the last drop happen in another thread.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

/// How often unused ones are looked for while nothing is written.
const LOOK: Duration = Duration::from_millis(100);
/// How many such checks there are at most until the next one is sealed: the engine may keep it that long, and an idle
/// store should not wake up.
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

    /// When to check again, even if nothing is written until then.
    pub(crate) fn look_after(&self) -> Option<Duration> {
        (!self.kept.is_empty() && self.looks_left > 0).then_some(LOOK)
    }

    /// Nothing was written since the last check.
    pub(crate) fn note_quiet(&mut self) {
        self.looks_left = self.looks_left.saturating_sub(1);
    }

    /// Frees those that only we reference.
    pub(crate) fn free_unused(&mut self) {
        let is_unused = |memtable: &mut Arc<_>| Arc::strong_count(memtable) == 1;
        let unused: Vec<_> = self.kept.extract_if(.., is_unused).collect();
        if !unused.is_empty() {
            // It is rare, once in many megabytes. If no thread can be started it happens here.
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

    /// Reports the thread on which it is dropped.
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
