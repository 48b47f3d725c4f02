//! What a shard is to delete, as its local map knows it.

use bytes::Bytes;
use lazuli_store::{Result, Write};

use super::rows::{garbage_key, scan_all};
use super::{APPLY_TRIES_MAX, Garbage, LocalMap, may_have_happened};
use crate::layout::Space;
use crate::record::decode;

impl LocalMap {
    /// What is to be deleted here.
    pub async fn garbage(&self) -> Result<Vec<Garbage>> {
        let items = scan_all(&*self.store.snapshot(), Space::GARBAGE).await?;
        items.into_iter().map(|(_, row)| decode(row)).collect()
    }

    /// The key that must exist when a slice of this garbage is deleted, so that nobody deletes what came after it.
    pub fn garbage_guard(id: u64) -> Bytes {
        garbage_key(id)
    }

    /// Says that this garbage is deleted. Again is fine.
    pub async fn garbage_done(&self, id: u64) -> Result<()> {
        let key = Self::garbage_guard(id);
        let mut tries = 1;
        while self.store.snapshot().get(&key).await?.is_some() {
            let txn = self.store.begin(vec![]).await?;
            match txn.commit(vec![Write::Delete(key.clone())]).await {
                Err(error) if may_have_happened(&error) && tries < APPLY_TRIES_MAX => tries += 1,
                result => return result,
            }
        }
        Ok(())
    }
}
