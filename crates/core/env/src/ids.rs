//! Ids that are unique over all shards and sort by the time they were made (S23).
//!
//! Layout of the 128 bits, high to low, which is that of a version 7 UUID: 48 bits of milliseconds, 4 bits version,
//! 12 bits counter, 2 bits variant, 62 random bits. Within one [`Ids`] the counter makes them strictly increasing, also
//! when the clock steps back; between two of them the random bits keep them apart.

use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, Mutex};

use crate::{Clock, Random};

const COUNTER_MAX: u16 = 0x0fff;
const MILLIS_BITS: u64 = (1 << 48) - 1;

/// A unique, time-ordered id. Prints as a UUID.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(u128);

impl Id {
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(u128::from_be_bytes(bytes))
    }

    pub const fn to_bytes(self) -> [u8; 16] {
        self.0.to_be_bytes()
    }

    /// When it was made, in milliseconds since the Unix epoch.
    pub const fn millis(self) -> u64 {
        (self.0 >> 80) as u64
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let v = self.0;
        write!(
            f,
            "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
            v >> 96,
            (v >> 80) & 0xffff,
            (v >> 64) & 0xffff,
            (v >> 48) & 0xffff,
            v & 0xffff_ffff_ffff
        )
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The text was not 32 hexadecimal digits with dashes where a UUID has them.
#[derive(Debug, PartialEq, Eq)]
pub struct NotAnId;

impl FromStr for Id {
    type Err = NotAnId;

    fn from_str(text: &str) -> Result<Self, NotAnId> {
        let dashes = [8, 13, 18, 23];
        if text.len() != 36 || !dashes.iter().all(|&at| text.as_bytes()[at] == b'-') {
            return Err(NotAnId);
        }
        let digits: String = text.chars().filter(|c| *c != '-').collect();
        if digits.len() != 32 || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(NotAnId);
        }
        u128::from_str_radix(&digits, 16).map(Self).map_err(|_| NotAnId)
    }
}

/// Makes [`Id`]s.
pub struct Ids {
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    last: Mutex<(u64, u16)>,
}

impl Ids {
    pub fn new(clock: Arc<dyn Clock>, random: Arc<dyn Random>) -> Self {
        Self { clock, random, last: Mutex::new((0, 0)) }
    }

    pub fn next_id(&self) -> Id {
        let (millis, counter) = self.tick();
        let random = u128::from(self.random.next_u64()) & ((1 << 62) - 1);
        Id((u128::from(millis) << 80)
            | (0x7 << 76)
            | (u128::from(counter) << 64)
            | (0b10 << 62)
            | random)
    }

    /// The next (millisecond, counter) pair, greater than every one before. A full counter borrows from the future.
    fn tick(&self) -> (u64, u16) {
        let now = self.clock.now_ms() & MILLIS_BITS;
        let mut last = self.last.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        *last = match *last {
            (millis, _) if now > millis => (now, 0),
            (millis, COUNTER_MAX) => (millis + 1, 0),
            (millis, counter) => (millis, counter + 1),
        };
        *last
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;

    struct ManualClock(AtomicU64);

    impl Clock for ManualClock {
        fn now_ms(&self) -> u64 {
            self.0.load(Ordering::Relaxed)
        }
        fn uptime(&self) -> Duration {
            Duration::ZERO
        }
        fn sleep(&self, _: Duration) -> crate::BoxFuture<'static, ()> {
            Box::pin(std::future::ready(()))
        }
    }

    struct Same;

    impl Random for Same {
        fn next_u64(&self) -> u64 {
            u64::MAX
        }
    }

    #[test]
    fn ids_grow_when_the_clock_stands_still_or_steps_back() {
        let clock = Arc::new(ManualClock(AtomicU64::new(1_000)));
        let ids = Ids::new(clock.clone(), Arc::new(Same));
        let mut last = ids.next_id();
        for step in 0..10_000 {
            if step == 5_000 {
                clock.0.store(500, Ordering::Relaxed);
            }
            let next = ids.next_id();
            assert!(next > last, "{next} must follow {last}");
            last = next;
        }
        assert_eq!(last.millis(), 1_002);
    }

    #[test]
    fn ids_of_two_sources_differ() {
        let env = crate::real::env();
        let other = Ids::new(env.clock.clone(), env.random.clone());
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..10_000 {
            assert!(seen.insert(env.ids.next_id()));
            assert!(seen.insert(other.next_id()));
        }
    }

    #[test]
    fn ids_print_as_version_7_uuids_and_parse_back() {
        let id = crate::real::env().ids.next_id();
        let text = id.to_string();
        assert_eq!(text.as_bytes()[14], b'7');
        assert!(matches!(text.as_bytes()[19], b'8' | b'9' | b'a' | b'b'));
        assert_eq!(text.parse(), Ok(id));
        for bad in ["", "x", &text[1..], &text.replace('-', "0"), &text.replace('7', "+")] {
            assert_eq!(bad.parse::<Id>(), Err(NotAnId), "{bad}");
        }
    }
}
