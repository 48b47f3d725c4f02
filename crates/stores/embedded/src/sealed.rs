//! Memtables that were sealed, kept until the engine has no more use for them.
//!
//! The engine lets go of a memtable under the lock that all readers and the committer take, and mostly in the committer's
//! own thread. Freeing what it holds, tens of thousands of entries one by one, takes many milliseconds. Whoever has a
//! pointer of its own to it is the last to let go, where nobody waits for it.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

/// How often it is looked whether one is not in use any more.
pub(crate) const SEALED_LOOK: Duration = Duration::from_millis(100);

#[derive(Default)]
pub(crate) struct Sealed(Vec<Arc<dyn Any + Send + Sync>>);

impl Sealed {
    pub(crate) fn keep(&mut self, memtable: Arc<dyn Any + Send + Sync>) {
        self.0.push(memtable);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Frees those that nobody else has.
    pub(crate) fn free_unused(&mut self) {
        let is_unused = |memtable: &mut Arc<_>| Arc::strong_count(memtable) == 1;
        let unused: Vec<_> = self.0.extract_if(.., is_unused).collect();
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
        assert!(!sealed.is_empty());
        drop(two);
        sealed.free_unused();
        assert_eq!(told.recv().unwrap().as_deref(), Some("lazuli:free"));
        assert!(sealed.is_empty());
    }
}
