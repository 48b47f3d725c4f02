//! The hottest keys of a partition in bounded memory: the space-saving sketch. Each count is at most too high by the
//! error kept beside it, and every key with more than 1/N of the requests is in the list.

use bytes::Bytes;

/// How many keys a partition watches.
pub const HOT_KEYS_MAX: usize = 16;

/// A key with how often it was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HotKey {
    pub route: Bytes,
    pub requests: u64,
    /// How much too high `requests` may be.
    pub error: u64,
}

impl HotKey {
    /// How often it was asked for at least.
    pub fn sure(&self) -> u64 {
        self.requests.saturating_sub(self.error)
    }
}

#[derive(Default)]
pub(crate) struct HotKeys {
    keys: Vec<HotKey>,
}

impl HotKeys {
    pub(crate) fn count(&mut self, route: &[u8]) {
        if let Some(known) = self.keys.iter_mut().find(|key| key.route == route) {
            known.requests += 1;
            return;
        }
        let new =
            |requests, error| HotKey { route: Bytes::copy_from_slice(route), requests, error };
        if self.keys.len() < HOT_KEYS_MAX {
            self.keys.push(new(1, 0));
        } else if let Some(coldest) = self.keys.iter_mut().min_by_key(|key| key.requests) {
            *coldest = new(coldest.requests + 1, coldest.requests);
        }
    }

    /// Those first that were surely asked for most.
    pub(crate) fn list(&self) -> Vec<HotKey> {
        let mut keys = self.keys.clone();
        let heat = |key: &HotKey| (key.sure(), key.requests);
        keys.sort_by(|a, b| heat(b).cmp(&heat(a)).then(a.route.cmp(&b.route)));
        keys
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hot_key_stands_out_of_many_cold_ones() {
        let mut hot = HotKeys::default();
        for n in 0..10_000u32 {
            hot.count(&n.to_be_bytes());
            if n % 4 == 0 {
                hot.count(b"hot");
            }
        }
        let list = hot.list();
        assert_eq!(list.len(), HOT_KEYS_MAX);
        assert_eq!(&list[0].route[..], b"hot");
        assert!(list[0].requests - list[0].error <= 2_500 && list[0].requests >= 2_500);
    }
}
