//! A look over the keys for people: which are the biggest, and which are used most.
//!
//! One stripe is locked at a time. Where there are many keys, every so many of them is looked at, so that the time is bounded.

use crate::dict::Keyed;
use crate::entry::Entry;
use crate::keyspace::{Keyspace, STRIPES};

/// How many keys are looked at in all.
const LOOKED_MAX: usize = 128 * 1024;
/// How much of a key is kept.
const KEY_BYTES_MAX: usize = 128;

/// A key that stands out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    pub database: usize,
    /// Its beginning.
    pub key: Vec<u8>,
    pub type_name: &'static str,
    pub bytes: u64,
    /// The logarithmic counter of its uses, under the policies by frequency; zero under others.
    pub uses: u32,
}

/// What a look over the keys has found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Survey {
    pub keys: usize,
    /// Keys with an expiry.
    pub expiring: usize,
    /// How many of them were looked at.
    pub looked: usize,
    /// The biggest first.
    pub biggest: Vec<Found>,
    /// The most used first; none under policies that do not count uses.
    pub hottest: Vec<Found>,
}

impl Keyspace {
    /// Looks over all keys for `most` of each kind.
    pub fn survey(&self, most: usize) -> Survey {
        let mut survey = Survey::default();
        let by_frequency = self.policy().is_by_frequency();
        for stripe in 0..STRIPES {
            let guard = self.lock(stripe);
            let keys: usize = guard.databases.iter().map(|it| it.keys.len()).sum();
            let apart = keys.div_ceil(LOOKED_MAX / STRIPES).max(1);
            for (database, place) in guard.databases.iter().enumerate() {
                survey.keys += place.keys.len();
                survey.expiring += place.expiries.len();
                for entry in place.keys.iter().step_by(apart) {
                    survey.looked += 1;
                    let uses = if by_frequency { self.frequency(entry.clock()) } else { 0 };
                    let found = || found(database, entry, uses);
                    keep(&mut survey.biggest, most, entry.bytes() as u64, |it| it.bytes, found);
                    if by_frequency {
                        let uses = u64::from(uses);
                        keep(&mut survey.hottest, most, uses, |it| u64::from(it.uses), found);
                    }
                }
            }
        }
        survey
    }
}

fn found(database: usize, entry: &Entry, uses: u32) -> Found {
    let key = entry.key();
    Found {
        database,
        key: key[..key.len().min(KEY_BYTES_MAX)].to_vec(),
        type_name: entry.type_name(),
        bytes: entry.bytes() as u64,
        uses,
    }
}

/// Puts what was found into its place among the largest, which are few.
fn keep(
    all: &mut Vec<Found>,
    most: usize,
    size: u64,
    size_of: impl Fn(&Found) -> u64,
    found: impl FnOnce() -> Found,
) {
    let at = all.partition_point(|it| size_of(it) >= size);
    if at < most {
        all.insert(at, found());
        all.truncate(most);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eviction::Policy;
    use crate::keys::Expiry;

    fn filled(policy: Policy) -> Keyspace {
        let keyspace = Keyspace::new(lazuli_env::real::env(), 2, None);
        keyspace.set_policy(policy);
        for number in 0..100usize {
            let key = format!("key-{number}").into_bytes();
            let mut space = keyspace.space_of(number % 2, 0, &key);
            space.set(&key, &vec![b'x'; number * 10], Expiry::Never);
            space.finish();
        }
        keyspace
    }

    fn names(found: &[Found]) -> Vec<String> {
        found.iter().map(|it| String::from_utf8(it.key.clone()).unwrap()).collect()
    }

    #[test]
    fn the_biggest_keys_are_found_in_their_order() {
        let survey = filled(Policy::NoEviction).survey(3);
        assert_eq!((survey.keys, survey.looked, survey.expiring), (100, 100, 0));
        assert_eq!(names(&survey.biggest), ["key-99", "key-98", "key-97"]);
        assert_eq!(survey.biggest[0].database, 1);
        assert_eq!(survey.hottest, [], "uses are not counted under this policy");
    }

    #[test]
    fn the_most_used_key_comes_first_where_uses_are_counted() {
        let keyspace = filled(Policy::AllKeysLfu);
        for _ in 0..2_000 {
            let mut space = keyspace.space_of(1, 0, b"key-7");
            space.look(b"key-7").unwrap();
            space.finish();
        }
        let survey = keyspace.survey(5);
        assert_eq!(names(&survey.hottest)[0], "key-7");
        assert!(survey.hottest[0].uses > survey.hottest[1].uses);
    }
}
