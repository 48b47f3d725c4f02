//! What all handles of one bus share: caches, those who wait, and what is to be forwarded.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use lazuli_engine::{ContainerId, Env};
use tokio::sync::{Notify, watch};

use crate::address::Address;
use crate::config::Configs;
use crate::fragment::{Place, Woken};
use crate::rows::Line;
use crate::{BusSettings, ReadMessage};

/// How often each fragment of an endpoint was woken since somebody began to wait.
type Versions = Vec<u64>;

/// The endpoint of a watch: container, number of the entity, line.
pub(crate) type Watched = (ContainerId, u32, Line);

pub(crate) struct Shared {
    pub(crate) env: Env,
    pub(crate) reader: Arc<dyn ReadMessage>,
    pub(crate) settings: BusSettings,
    pub(crate) configs: Configs,
    watches: Mutex<BTreeMap<Watched, watch::Sender<Versions>>>,
    /// Fragments with something to forward, by container and route.
    forwards: Mutex<BTreeMap<(ContainerId, Bytes), Place>>,
    pub(crate) work: Notify,
    turn: AtomicU64,
    /// When entities that delete themselves were last used.
    uses: Mutex<BTreeMap<(String, Address), u64>>,
    /// When entities that are not used were last looked for.
    idle_ms: AtomicU64,
}

/// How often entities that are not used are looked for.
const IDLE_LOOK_MS: u64 = 30_000;

impl Shared {
    pub(crate) fn new(env: Env, reader: Arc<dyn ReadMessage>, settings: BusSettings) -> Self {
        Self {
            env,
            reader,
            settings,
            configs: Configs::default(),
            watches: Mutex::default(),
            forwards: Mutex::default(),
            work: Notify::new(),
            turn: AtomicU64::new(0),
            uses: Mutex::default(),
            idle_ms: AtomicU64::new(0),
        }
    }

    /// The next fragment of those that take turns.
    pub(crate) fn turn(&self) -> u64 {
        self.turn.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn note_use(&self, namespace: &str, address: &Address) {
        let mut uses = self.uses.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        uses.insert((namespace.to_owned(), address.clone()), self.env.clock.now_ms());
    }

    pub(crate) fn take_uses(&self) -> BTreeMap<(String, Address), u64> {
        let mut uses = self.uses.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        std::mem::take(&mut *uses)
    }

    /// Whether it is time to look for what is not used; once in a while.
    pub(crate) fn is_time_for_idle(&self) -> bool {
        let now = self.env.clock.now_ms();
        let last = self.idle_ms.load(Ordering::Relaxed);
        let is_time = now >= last.saturating_add(IDLE_LOOK_MS);
        if is_time {
            self.idle_ms.store(now, Ordering::Relaxed);
        }
        is_time
    }

    fn watches(&self) -> MutexGuard<'_, BTreeMap<Watched, watch::Sender<Versions>>> {
        self.watches.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub(crate) fn watch(&self, watched: Watched, fragments: u32) -> watch::Receiver<Versions> {
        let mut watches = self.watches();
        let none = || watch::Sender::new(vec![0; fragments as usize]);
        watches.entry(watched).or_insert_with(none).subscribe()
    }

    /// Forgets a watch that nobody has any more. The caller's own receiver is gone by then.
    pub(crate) fn unwatch(&self, watched: Watched) {
        let mut watches = self.watches();
        if watches.get(&watched).is_some_and(|it| it.receiver_count() == 0) {
            watches.remove(&watched);
        }
    }

    /// Tells those who wait for what a transaction made possible. Called after its commit.
    pub(crate) fn fire(&self, container: ContainerId, entity: u32, woken: Woken) {
        if !woken.lines.is_empty() {
            let watches = self.watches();
            for (fragment, line) in woken.lines {
                if let Some(watch) = watches.get(&(container, entity, line)) {
                    watch.send_modify(|versions| {
                        if let Some(version) = versions.get_mut(usize::from(fragment)) {
                            *version += 1;
                        }
                    });
                }
            }
        }
        for place in woken.forwards {
            self.want_forward(place);
        }
    }

    pub(crate) fn want_forward(&self, place: Place) {
        let mut forwards = self.forwards.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        forwards.insert((place.container, place.route.clone()), place);
        drop(forwards);
        self.work.notify_one();
    }

    pub(crate) fn take_forwards(&self) -> Vec<Place> {
        let mut forwards = self.forwards.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        std::mem::take(&mut *forwards).into_values().collect()
    }
}
