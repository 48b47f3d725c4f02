//! The maps that a router keeps, within bounds.
//!
//! When there are too many containers, or too many partitions in all of them together, one that was
//! not used lately goes. A hand walks round the containers: it spares who was used since it last
//! came by, and takes the first who was not. That is nearly "the one unused for longest", and a use
//! costs no more than setting a flag.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::slot::Slot;
use crate::{Container, ContainerId};

pub(super) struct Cache {
    containers_max: usize,
    entries_max: usize,
    kept: RwLock<Kept>,
}

#[derive(Default)]
struct Kept {
    slots: BTreeMap<ContainerId, Used>,
    names: BTreeMap<String, ContainerId>,
    /// The entries of all slots together, as they were last counted.
    entries: usize,
    hand: Option<ContainerId>,
}

#[derive(Default)]
struct Used {
    slot: Arc<Slot>,
    /// Its key in `names`, so that it is removed from there without a search.
    name: Option<String>,
    entries: usize,
    lately: AtomicBool,
}

impl Used {
    fn touch(&self) -> &Arc<Slot> {
        // Looking first keeps the flag's cache line shared by all who only read it.
        if !self.lately.load(Ordering::Relaxed) {
            self.lately.store(true, Ordering::Relaxed);
        }
        &self.slot
    }
}

impl Cache {
    pub(super) fn new(containers_max: usize, entries_max: usize) -> Self {
        Self { containers_max: containers_max.max(1), entries_max, kept: RwLock::default() }
    }

    fn read(&self) -> RwLockReadGuard<'_, Kept> {
        self.kept.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Kept> {
        self.kept.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn get(&self, id: ContainerId) -> Option<Arc<Slot>> {
        self.read().slots.get(&id).map(|used| used.touch().clone())
    }

    /// Whether this is the slot that is kept of a container.
    pub(super) fn keeps(&self, id: ContainerId, slot: &Arc<Slot>) -> bool {
        self.read().slots.get(&id).is_some_and(|used| Arc::ptr_eq(&used.slot, slot))
    }

    /// The containers whose maps are kept.
    pub(super) fn ids(&self) -> Vec<ContainerId> {
        self.read().slots.keys().copied().collect()
    }

    /// What `look` sees in a slot, without holding on to it: the way of every routed request.
    pub(super) fn look<T>(&self, id: ContainerId, look: impl FnOnce(&Slot) -> T) -> Option<T> {
        self.read().slots.get(&id).map(|used| look(used.touch()))
    }

    pub(super) fn get_or_insert(&self, id: ContainerId) -> Arc<Slot> {
        if let Some(slot) = self.get(id) {
            return slot;
        }
        let mut kept = self.write();
        // Not yet used lately: what is used once only makes room before what is used again and
        // again.
        let slot = kept.slots.entry(id).or_default().slot.clone();
        self.shrink(&mut kept, id);
        slot
    }

    /// The container of this name, if its map is known.
    pub(super) fn named(&self, name: &str) -> Option<Arc<Container>> {
        let kept = self.read();
        let used = kept.slots.get(kept.names.get(name)?)?;
        used.touch().container()
    }

    /// Takes note that a slot was read anew: of its name and of its size.
    pub(super) fn admit(&self, id: ContainerId, slot: &Arc<Slot>) {
        let (Some(container), entries) = (slot.container(), slot.entries()) else { return };
        if self.read().knows(id, &container.name, entries) {
            return;
        }
        let mut kept = self.write();
        let Some(used) = kept.slots.get_mut(&id).filter(|used| Arc::ptr_eq(&used.slot, slot))
        else {
            return;
        };
        let before = std::mem::replace(&mut used.entries, entries);
        let former = used.name.replace(container.name.clone());
        kept.entries = kept.entries - before + entries;
        kept.forget_name(former.as_deref(), id);
        kept.names.insert(container.name.clone(), id);
        self.shrink(&mut kept, id);
    }

    pub(super) fn remove(&self, id: ContainerId) {
        self.write().remove(id);
    }

    /// Lets containers go, but not this one, until what is kept is within bounds.
    fn shrink(&self, kept: &mut Kept, but: ContainerId) {
        while kept.slots.len() > 1
            && (kept.slots.len() > self.containers_max || kept.entries > self.entries_max)
        {
            let unused = kept.next_unused(but);
            kept.remove(unused);
        }
    }
}

impl Kept {
    fn knows(&self, id: ContainerId, name: &str, entries: usize) -> bool {
        self.names.get(name) == Some(&id)
            && self.slots.get(&id).is_some_and(|used| used.entries == entries)
    }

    /// Moves the hand to the next container that was not used since the hand last passed it.
    /// There is another one than `but`, and the second time round no flag is set any more.
    fn next_unused(&mut self, but: ContainerId) -> ContainerId {
        loop {
            let from = self.hand.map_or(Bound::Unbounded, Bound::Excluded);
            let next = self.slots.range((from, Bound::Unbounded)).next();
            self.hand = next.map(|(id, _)| *id);
            if let Some((id, used)) = next
                && *id != but
                && !used.lately.swap(false, Ordering::Relaxed)
            {
                return *id;
            }
        }
    }

    fn remove(&mut self, id: ContainerId) {
        if let Some(used) = self.slots.remove(&id) {
            self.entries -= used.entries;
            self.forget_name(used.name.as_deref(), id);
        }
    }

    /// Removes a container's name, unless another container has taken it since.
    fn forget_name(&mut self, name: Option<&str>, id: ContainerId) {
        if let Some(name) = name
            && self.names.get(name) == Some(&id)
        {
            self.names.remove(name);
        }
    }
}
