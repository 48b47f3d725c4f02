//! Receivers that wait: they look at every fragment, and not again at one that was empty before something happened there.

use std::time::Duration;

use lazuli_engine::{BoxFuture, Result, join_all};
use tokio::sync::watch;

use crate::bus::{Bus, gone};
use crate::endpoint::Endpoint;
use crate::limits::RECEIVE_MESSAGES_MAX;
use crate::message::Delivery;
use crate::receive::{Receive, ReceiveMode, Received};
use crate::rows::LineState;
use crate::session::SessionLock;
use crate::shared::Watched;

/// The longest single sleep of a receiver that waits.
const SLEEP_MAX: Duration = Duration::from_secs(60);

/// What a receiver knows of a fragment.
#[derive(Clone, Copy)]
struct Known {
    /// Whether there may be something.
    maybe: bool,
    /// The version of the watch when it was last looked at.
    version: u64,
    /// When something may come by itself.
    next_ms: u64,
    /// See [`LineState::wakes`].
    wakes: u64,
}

/// Waits for something to happen in an endpoint, such as a session that gets messages.
pub struct Watcher {
    bus: Bus,
    endpoint: Endpoint,
    watched: Watched,
    versions: Option<watch::Receiver<Vec<u64>>>,
    fragments: Vec<Known>,
    polled: Duration,
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.versions = None;
        self.bus.shared.unwatch(self.watched);
    }
}

impl Watcher {
    pub(crate) fn new(bus: &Bus, endpoint: &Endpoint) -> Self {
        let watched = (endpoint.0.container, endpoint.0.entity, endpoint.0.line);
        let versions = bus.shared.watch(watched, endpoint.fragments());
        let first = Known { maybe: true, version: 0, next_ms: 0, wakes: 0 };
        let mut fragments = vec![first; endpoint.fragments() as usize];
        for (known, version) in fragments.iter_mut().zip(versions.borrow().iter()) {
            known.version = *version;
        }
        let polled = bus.engine.env().clock.uptime();
        let (bus, endpoint) = (bus.clone(), endpoint.clone());
        Self { bus, endpoint, watched, versions: Some(versions), fragments, polled }
    }

    /// Waits until something was sent, given back or activated, or for `at_most`, and says whether something was. The
    /// first call answers at once. May be dropped and called again at any time.
    pub async fn changed(&mut self, at_most: Duration) -> bool {
        let clock = self.bus.engine.env().clock.clone();
        let deadline = clock.uptime().saturating_add(at_most);
        loop {
            self.look();
            if self.fragments.iter().any(|known| known.maybe) {
                self.fragments.iter_mut().for_each(|known| known.maybe = false);
                return true;
            }
            if clock.uptime() >= deadline {
                return false;
            }
            self.wait(deadline.saturating_sub(clock.uptime())).await;
        }
    }

    /// Takes note of what has happened in this process, and of what has come by itself.
    fn look(&mut self) {
        let now = self.bus.engine.env().clock.now_ms();
        let Some(versions) = &mut self.versions else { return };
        let versions = versions.borrow_and_update();
        for (known, version) in self.fragments.iter_mut().zip(versions.iter()) {
            if known.version != *version {
                (known.version, known.maybe) = (*version, true);
            }
            if known.next_ms <= now {
                (known.next_ms, known.maybe) = (u64::MAX, true);
            }
        }
    }

    /// Waits for a change, the next time at which something comes by itself, or the next poll.
    async fn wait(&mut self, at_most: Duration) {
        let clock = self.bus.engine.env().clock.clone();
        let next_ms = self.fragments.iter().map(|known| known.next_ms).min().unwrap_or(u64::MAX);
        let until_next = Duration::from_millis(next_ms.saturating_sub(clock.now_ms()).max(1));
        let poll = self.bus.shared.settings.poll;
        let until_poll = (self.polled + poll).saturating_sub(clock.uptime());
        let pause = at_most.min(until_next).min(until_poll).min(SLEEP_MAX);
        let Some(versions) = &mut self.versions else { return };
        tokio::select! {
            biased;
            _ = versions.changed() => return,
            () = clock.sleep(pause) => {}
        }
        if clock.uptime() >= self.polled + poll {
            self.polled = clock.uptime();
            self.poll().await;
        }
    }

    /// Asks the fragments whether another process, or a request that was dropped, has brought something.
    async fn poll(&mut self) {
        for at in 0..self.fragments.len() {
            let Ok(place) = self.endpoint.place(at as u16) else { return };
            // A fragment that does not answer is asked again at the next poll.
            let Ok(Some(item)) = self.bus.engine.get(&place.line(self.endpoint.0.line), 0).await
            else {
                continue;
            };
            let Ok(state) = lazuli_shardmap::record::decode::<LineState>(item.payload) else {
                continue;
            };
            let known = &mut self.fragments[at];
            if known.wakes != state.wakes {
                (known.wakes, known.maybe) = (state.wakes, true);
            }
        }
    }
}

/// A fragment, and what was found in it.
type Look = (usize, Result<Received>);

impl Watcher {
    async fn look_into(&self, at: usize, receive: Receive) -> Look {
        self.bus.used(&self.endpoint);
        let (container, route) = (receive.place.container, receive.place.route.clone());
        (at, self.bus.engine.write(container, &route, receive).await)
    }

    /// Notes what a fragment has said of itself, and answers its messages.
    fn learn(&mut self, at: usize, received: Received) -> Vec<Delivery> {
        let container = self.endpoint.0.container;
        self.bus.shared.fire(container, self.endpoint.0.entity, received.woken);
        let known = &mut self.fragments[at];
        known.maybe |= received.has_more;
        (known.next_ms, known.wakes) = (received.next_ms, received.wakes);
        received.deliveries
    }

    /// A fragment that does not answer is asked again, but not in a loop without a pause.
    fn put_off(&mut self, at: usize) {
        let later = self.bus.engine.env().clock.now_ms().saturating_add(100);
        self.fragments[at].next_ms = later;
    }
}

/// A receiver of one endpoint, or of one session of it. It remembers which fragments were found empty.
pub struct Receiver {
    watcher: Watcher,
    mode: ReceiveMode,
    session: Option<SessionLock>,
    /// Where the next look begins, so that every fragment has its turn.
    turn: usize,
}

impl Receiver {
    pub(crate) fn new(
        bus: &Bus,
        endpoint: &Endpoint,
        mode: ReceiveMode,
        session: Option<SessionLock>,
    ) -> Self {
        let mut watcher = Watcher::new(bus, endpoint);
        if let Some(lock) = &session {
            // A session is in one fragment.
            for (at, known) in watcher.fragments.iter_mut().enumerate() {
                known.maybe = at == usize::from(lock.fragment);
            }
        }
        Self { watcher, mode, session, turn: 0 }
    }

    /// Waits until there may be a message: within a millisecond of the commit that brings it, when this process sent it.
    /// May be dropped and called again at any time.
    pub async fn ready(&mut self) {
        loop {
            self.watcher.look();
            if self.may_have().next().is_some() {
                return;
            }
            self.watcher.wait(SLEEP_MAX).await;
        }
    }

    /// The fragments that may have something, in the order of turns.
    fn may_have(&self) -> impl Iterator<Item = usize> + '_ {
        let count = self.watcher.fragments.len();
        let only = self.session.as_ref().map(|lock| usize::from(lock.fragment));
        (0..count)
            .map(move |nth| (self.turn + nth) % count)
            .filter(move |at| only.is_none_or(|only| only == *at))
            .filter(|at| self.watcher.fragments[*at].maybe)
    }

    /// The next messages, at most as many as asked for and possibly none. Must be run to its end: what it has received is
    /// locked, or already deleted.
    ///
    /// A fragment that does not answer is passed over if others have messages.
    pub async fn take(&mut self, most: usize) -> Result<Vec<Delivery>> {
        let most = most.clamp(1, RECEIVE_MESSAGES_MAX);
        self.watcher.look();
        let candidates: Vec<usize> = self.may_have().collect();
        self.turn = self.turn.wrapping_add(1);
        let mut deliveries = Vec::new();
        let mut failed = None;
        let mut candidates = candidates.as_slice();
        while !candidates.is_empty() && deliveries.len() < most {
            // Each of as many fragments as there is room for messages is asked for its share, all at the same time.
            let rest = most - deliveries.len();
            let (group, others) = candidates.split_at(rest.min(candidates.len()));
            candidates = others;
            let share = rest.div_ceil(group.len());
            let mut looks: Vec<BoxFuture<'_, Look>> = Vec::new();
            // Noted before: what comes while they run is looked at again.
            group.iter().for_each(|at| self.watcher.fragments[*at].maybe = false);
            for at in group {
                looks.push(Box::pin(self.watcher.look_into(*at, self.receive(*at, share)?)));
            }
            let looks = join_all(looks).await;
            for (at, look) in looks {
                match look {
                    Ok(received) => deliveries.extend(self.watcher.learn(at, received)),
                    Err(error) => {
                        self.watcher.put_off(at);
                        failed = failed.or(Some(gone(error)));
                    }
                }
            }
        }
        match failed {
            Some(error) if deliveries.is_empty() => Err(error),
            _ => Ok(deliveries),
        }
    }

    /// What is asked of a fragment.
    fn receive(&self, at: usize, most: usize) -> Result<Receive> {
        let Watcher { bus, endpoint, .. } = &self.watcher;
        Ok(Receive {
            shared: bus.shared.clone(),
            place: endpoint.place(at as u16)?,
            line: endpoint.0.line,
            session: self.session.clone(),
            mode: self.mode,
            most,
        })
    }

    /// The session lock after a renewal.
    pub fn set_session(&mut self, lock: SessionLock) {
        self.session = Some(lock);
    }

    pub fn session(&self) -> Option<&SessionLock> {
        self.session.as_ref()
    }
}
