//! Making room: which keys go when memory is full, and how the use of keys is measured.
//!
//! As the service does it, a key's clock has 24 bits: under the policies by last use the seconds of its last use, under those
//! by frequency the minute of its last decrement and a logarithmic counter. Keys to go are the best of a few samples.

use std::sync::atomic::Ordering;

use crate::dict::Keyed;
use crate::entry::Entry;
use crate::keyspace::{Keyspace, STRIPES};

/// How many keys are drawn to find one to evict.
const SAMPLES: usize = 5;
/// Of how many stripes the best is taken: one alone may have but a key that is used all the time.
const CANDIDATES: usize = 4;
/// How many times keys are drawn before a policy on keys with an expiry looks no further.
const TRIES: usize = 64;
const CLOCK_MASK: u64 = 0xff_ffff;
/// The counter of a new key.
const FREQUENCY_START: u32 = 5;
/// How slowly the counter grows.
const FREQUENCY_FACTOR: u32 = 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Policy {
    NoEviction,
    AllKeysLru,
    AllKeysLfu,
    AllKeysRandom,
    VolatileLru,
    VolatileLfu,
    VolatileRandom,
    VolatileTtl,
}

impl Policy {
    pub const ALL: [(&'static str, Self); 8] = [
        ("noeviction", Self::NoEviction),
        ("allkeys-lru", Self::AllKeysLru),
        ("allkeys-lfu", Self::AllKeysLfu),
        ("allkeys-random", Self::AllKeysRandom),
        ("volatile-lru", Self::VolatileLru),
        ("volatile-lfu", Self::VolatileLfu),
        ("volatile-random", Self::VolatileRandom),
        ("volatile-ttl", Self::VolatileTtl),
    ];

    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(it, _)| it.eq_ignore_ascii_case(name)).map(|(_, policy)| *policy)
    }

    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, it)| *it == self).map_or("noeviction", |(name, _)| name)
    }

    fn is_volatile(self) -> bool {
        use Policy::{VolatileLfu, VolatileLru, VolatileRandom, VolatileTtl};
        matches!(self, VolatileLfu | VolatileLru | VolatileRandom | VolatileTtl)
    }

    pub fn is_by_frequency(self) -> bool {
        matches!(self, Self::AllKeysLfu | Self::VolatileLfu)
    }
}

impl Keyspace {
    pub fn policy(&self) -> Policy {
        let index = self.policy.load(Ordering::Relaxed);
        Policy::ALL
            .iter()
            .find(|(_, it)| *it as usize == index)
            .map_or(Policy::NoEviction, |it| it.1)
    }

    pub fn set_policy(&self, policy: Policy) {
        self.policy.store(policy as usize, Ordering::Relaxed);
        self.tick();
    }

    /// The most that keys and values may take; zero is no limit.
    pub fn memory_max(&self) -> u64 {
        self.memory_max.load(Ordering::Relaxed)
    }

    pub fn set_memory_max(&self, bytes: u64) {
        self.memory_max.store(bytes, Ordering::Relaxed);
    }

    /// Sets the clock of uses by the time. To be called a few times a second.
    pub fn tick(&self) {
        let seconds = self.env.clock.now_ms() / 1000;
        self.clock.store(seconds, Ordering::Relaxed);
    }

    /// The clock of a key that is made now.
    pub(crate) fn clock(&self) -> u32 {
        let seconds = self.clock.load(Ordering::Relaxed);
        match self.policy().is_by_frequency() {
            true => (((seconds / 60) & 0xffff) as u32) << 8 | FREQUENCY_START,
            false => (seconds & CLOCK_MASK) as u32,
        }
    }

    /// The clock of a key that is used now, from what it was and what a new key would get.
    #[inline]
    pub(crate) fn used(&self, before: u32, new: u32) -> u32 {
        if !self.policy().is_by_frequency() {
            return new;
        }
        let counter = self.frequency(before);
        let base = counter.saturating_sub(FREQUENCY_START);
        let grows =
            counter < 255 && self.env.random.below(u64::from(base * FREQUENCY_FACTOR + 1)) == 0;
        (new & 0xff_ff00) | (counter + u32::from(grows))
    }

    /// The counter of a clock, less by one for every minute without use.
    pub fn frequency(&self, clock: u32) -> u32 {
        let minutes = (self.clock.load(Ordering::Relaxed) / 60) as u32 & 0xffff;
        let idle = minutes.wrapping_sub(clock >> 8) & 0xffff;
        (clock & 0xff).saturating_sub(idle)
    }

    /// For how many seconds a key was not used, by its clock.
    pub fn idle_s(&self, clock: u32) -> u64 {
        let now = self.clock.load(Ordering::Relaxed) & CLOCK_MASK;
        now.wrapping_sub(u64::from(clock)) & CLOCK_MASK
    }

    /// Evicts one key by the policy; whether there was one. No lock may be held. The key's events are returned.
    pub fn evict_one(&self, now_ms: u64) -> Option<crate::space::Effects> {
        let policy = self.policy();
        if policy == Policy::NoEviction {
            return None;
        }
        let first = self.env.random.below(STRIPES as u64) as usize;
        let stripes = (0..STRIPES).map(|it| (first + it) % STRIPES);
        let found = stripes.filter_map(|stripe| self.victim(stripe, policy)).take(CANDIDATES);
        let (_, database, key) = found.max_by_key(|(merit, ..)| *merit)?;
        let mut space = self.space_of(database, now_ms, &key);
        space.evict(&key);
        Some(space.finish())
    }

    /// The best key to go of a stripe, with its merit: of a few drawn by chance, or the first to expire.
    fn victim(&self, stripe: usize, policy: Policy) -> Option<(u64, usize, Box<[u8]>)> {
        let guard = self.lock(stripe);
        let mut best: Option<(u64, usize, &Entry)> = None;
        for (number, place) in guard.databases.iter().enumerate() {
            if policy == Policy::VolatileTtl || place.keys.is_empty() {
                continue;
            }
            let mut drawn = 0;
            for _ in 0..if policy.is_volatile() { TRIES } else { 1 } {
                for entry in place.keys.samples(self.env.random.next_u64(), SAMPLES) {
                    if policy.is_volatile() && entry.expires_at_ms().is_none() {
                        continue;
                    }
                    drawn += 1;
                    let merit = self.merit(policy, entry);
                    if best.as_ref().is_none_or(|(it, ..)| merit > *it) {
                        best = Some((merit, number, entry));
                    }
                }
                if drawn >= SAMPLES || place.expiries.is_empty() {
                    break;
                }
            }
        }
        if let Some((merit, number, entry)) = best {
            return Some((merit, number, entry.key().into()));
        }
        if !policy.is_volatile() {
            return None;
        }
        // The index of expiries is exact where drawing found nothing, and for the policy by time to live.
        let first = |place: &crate::stripe::Database| {
            let (at, position) = place.expiries.first().copied()?;
            let entry = place.keys.find_at(position, |it| it.expires_at_ms() == Some(at))?;
            Some((at, Box::<[u8]>::from(entry.key())))
        };
        let each = guard.databases.iter().enumerate();
        let due =
            each.filter_map(|(number, place)| first(place).map(|(at, key)| (at, number, key)));
        // The sooner a key expires, the better it is to go.
        due.min_by_key(|(at, ..)| *at).map(|(at, number, key)| (u64::MAX - at, number, key))
    }

    /// The more, the sooner a key goes.
    fn merit(&self, policy: Policy, entry: &Entry) -> u64 {
        match policy {
            Policy::AllKeysLru | Policy::VolatileLru => self.idle_s(entry.clock()),
            Policy::AllKeysLfu | Policy::VolatileLfu => {
                u64::from(255 - self.frequency(entry.clock()).min(255))
            }
            _ => self.env.random.next_u64(),
        }
    }
}
