//! Clients that watch keys or wait for keys; and the end of a command.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::space::{Effects, Space};
use crate::stripe::Named;

impl Space<'_> {
    /// From now on the flag is set when the key changes.
    pub fn watch(&mut self, key: &[u8], flag: Arc<AtomicBool>) {
        let named: Named = (self.database, key.into());
        self.stripe(key).watched.entry(named).or_default().push(flag);
    }

    pub fn unwatch(&mut self, key: &[u8], flag: &Arc<AtomicBool>) {
        let named: Named = (self.database, key.into());
        let watched = &mut self.stripe(key).watched;
        if let Some(flags) = watched.get_mut(&named) {
            flags.retain(|it| !Arc::ptr_eq(it, flag));
            if flags.is_empty() {
                watched.remove(&named);
            }
        }
    }

    /// A client waits for a key, behind those who wait already.
    pub fn wait_for(&mut self, key: &[u8], client: u64) {
        let named: Named = (self.database, key.into());
        let line = self.stripe(key).waiting.entry(named).or_default();
        if !line.contains(&client) {
            line.push_back(client);
        }
    }

    pub fn wait_no_more(&mut self, key: &[u8], client: u64) {
        let named: Named = (self.database, key.into());
        let waiting = &mut self.stripe(key).waiting;
        if let Some(line) = waiting.get_mut(&named) {
            line.retain(|it| *it != client);
            if line.is_empty() {
                waiting.remove(&named);
            }
        }
    }

    /// Who waits for a key, the longest waiting first.
    pub fn waiting_for(&mut self, key: &[u8]) -> Vec<u64> {
        let named: Named = (self.database, key.into());
        self.stripe(key)
            .waiting
            .get(&named)
            .map(VecDeque::iter)
            .into_iter()
            .flatten()
            .copied()
            .collect()
    }

    /// Hands what was written to the journal, while the locks are still held: so rows are in the order of their commands.
    pub fn commit(&mut self) {
        let rows = &mut self.effects.rows.bytes;
        if !rows.is_empty() {
            if let Some(journal) = &self.keyspace.journal {
                journal.push(rows);
            }
            rows.clear();
        }
        self.publish_bytes();
    }

    /// Ends the command: commits and releases the locks.
    pub fn finish(mut self) -> Effects {
        self.commit();
        std::mem::take(&mut self.effects)
    }

    /// What has happened so far, which is then forgotten; rows are kept for the commit.
    pub fn take_effects(&mut self) -> Effects {
        let rows = std::mem::take(&mut self.effects.rows);
        let effects = std::mem::take(&mut self.effects);
        self.effects.rows = rows;
        effects
    }
}
