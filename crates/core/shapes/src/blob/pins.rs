//! Pins: which blobs are being read, so that the collector deletes nothing that a reader still needs.
//!
//! A reader takes its pin before its snapshot. The collector takes a ticket after its own: a reader with a later pin has a
//! later snapshot, in which the garbage is garbage already. So it is enough to wait for the pins from before the ticket.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use lazuli_engine::KeyRange;

#[derive(Default)]
struct Held {
    last: u64,
    /// The pins of each route that has some.
    routes: BTreeMap<Bytes, Vec<u64>>,
    /// Pins of whole ranges of routes, by number.
    ranges: BTreeMap<u64, KeyRange>,
}

#[derive(Default)]
pub(super) struct Pins {
    held: Mutex<Held>,
}

/// Held while a route is read.
pub(super) struct Pin {
    pins: Arc<Pins>,
    route: Bytes,
    number: u64,
}

/// Held while a range of routes is read.
pub(super) struct RangePin {
    pins: Arc<Pins>,
    number: u64,
}

impl Pins {
    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub(super) fn pin(self: &Arc<Self>, route: &Bytes) -> Pin {
        let mut held = self.lock();
        held.last += 1;
        let number = held.last;
        held.routes.entry(route.clone()).or_default().push(number);
        Pin { pins: self.clone(), route: route.clone(), number }
    }

    pub(super) fn pin_range(self: &Arc<Self>, routes: &KeyRange) -> RangePin {
        let mut held = self.lock();
        held.last += 1;
        let number = held.last;
        held.ranges.insert(number, routes.clone());
        RangePin { pins: self.clone(), number }
    }

    /// A number above those of all pins so far.
    pub(super) fn ticket(&self) -> u64 {
        let mut held = self.lock();
        held.last += 1;
        held.last
    }

    /// Whether a reader that began before the ticket still reads the route.
    pub(super) fn is_read(&self, route: &[u8], ticket: u64) -> bool {
        let held = self.lock();
        let is_pinned =
            held.routes.get(route).is_some_and(|pins| pins.iter().any(|pin| *pin < ticket));
        is_pinned || held.ranges.range(..ticket).any(|(_, routes)| routes.contains(route))
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        let mut held = self.pins.lock();
        if let Some(pins) = held.routes.get_mut(&self.route) {
            pins.retain(|pin| *pin != self.number);
            if pins.is_empty() {
                held.routes.remove(&self.route);
            }
        }
    }
}

impl Drop for RangePin {
    fn drop(&mut self) {
        self.pins.lock().ranges.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_read_until_its_pin_from_before_the_ticket_is_gone() {
        let pins: Arc<Pins> = Arc::default();
        let held = pins.pin_range(&KeyRange::prefix("r"));
        let ticket = pins.ticket();
        let late = pins.pin_range(&KeyRange::all());
        assert!(pins.is_read(b"r1", ticket) && !pins.is_read(b"s", ticket));
        drop(held);
        assert!(!pins.is_read(b"r1", ticket));
        assert!(pins.is_read(b"r1", pins.ticket()));
        drop(late);
        assert!(pins.lock().ranges.is_empty());
    }

    #[test]
    fn a_route_is_read_until_the_last_pin_from_before_the_ticket_is_gone() {
        let pins: Arc<Pins> = Arc::default();
        let route = Bytes::from_static(b"r");
        let (first, second) = (pins.pin(&route), pins.pin(&route));
        let ticket = pins.ticket();
        let late = pins.pin(&route);
        assert!(!pins.is_read(b"other", ticket));
        drop(first);
        assert!(pins.is_read(&route, ticket));
        drop(second);
        assert!(!pins.is_read(&route, ticket));
        assert!(pins.is_read(&route, pins.ticket()));
        drop(late);
        assert!(pins.lock().routes.is_empty());
    }
}
