//! Room for a command that needs memory, under the limit of the memory.

use std::sync::Arc;
use std::time::Instant;

use crate::server::Server;

impl Server {
    /// Evicts keys until there is room; false if the policy has none to give.
    pub(crate) fn make_room(self: &Arc<Self>) -> bool {
        let max = self.keyspace.memory_max();
        if self.keyspace.used_bytes() <= max {
            return true;
        }
        let began = Instant::now();
        let is_done = self.evict_to(max);
        self.latency.took("eviction-cycle", began.elapsed(), self.keyspace.now_ms());
        is_done
    }

    fn evict_to(self: &Arc<Self>, max: u64) -> bool {
        while self.keyspace.used_bytes() > max {
            match self.keyspace.evict_one(self.keyspace.now_ms()) {
                Some(effects) => self.tell(&effects),
                None => return false,
            }
        }
        true
    }
}
